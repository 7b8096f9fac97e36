"use strict";
// The n-best list: every translation with what differs from the best one marked.
const Alternatives = (() => {
  const { make, format } = Charts;

  function draw(plot, segment, rank, language, onChoose) {
    const best = segment.hypotheses[0].target_words.map((word) => word[2]);
    plot.replaceChildren();
    segment.hypotheses.forEach((hypothesis, n) => {
      const text = make("span", { dir: "auto", lang: language }, ...(n === 0 ? [hypothesis.text] : marked(hypothesis, best)));
      const facts = `log-probability ${format(hypothesis.score, { digits: 2 })}, normalised ${format(hypothesis.normalized_score, { digits: 3 })}`;
      const button = make("button", { type: "button", class: "alternative", "aria-pressed": String(n === rank) }, text, make("span", { class: "facts" }, facts));
      button.addEventListener("click", () => onChoose(n));
      plot.append(button);
    });
    if (segment.hypotheses.length === 1) plot.append(make("p", { class: "facts" }, "The search found no other translation."));
  }

  // The text with marks: words that the best translation does not have, and words of the best one that are missing.
  function marked(hypothesis, best) {
    const words = hypothesis.target_words.map((word) => word[2]);
    const isWhole = Texts.place(words, hypothesis.text).every((one) => one.isThere);
    const text = isWhole ? hypothesis.text : words.join(" ");
    const places = Texts.place(words, text);
    const same = Texts.common(best, words);
    const kept = new Set(same.map((pair) => pair[1]));
    const parts = [];
    let end = 0;
    let next = 0; // of the best translation's words
    words.forEach((word, n) => {
      const pair = same.find((one) => one[1] === n);
      if (pair) {
        if (pair[0] > next) parts.push(" ", make("del", {}, best.slice(next, pair[0]).join(" ")));
        next = pair[0] + 1;
      }
      parts.push(text.slice(end, places[n].start), kept.has(n) ? word : make("ins", {}, word));
      end = places[n].start + word.length;
    });
    if (next < best.length) parts.push(" ", make("del", {}, best.slice(next).join(" ")));
    return [...parts, text.slice(end)];
  }

  return { draw };
})();
