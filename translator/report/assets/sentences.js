"use strict";
// The list of sentences: sorted, filtered, a few at a time. Marked stretches are every second one, beginning with the second.
(() => {
  const place = document.getElementById("sentences-list");
  if (!place) return;
  const { make, format } = Charts;
  const data = JSON.parse(document.getElementById("sentences-data").textContent);
  const controls = Object.fromEntries(["sort", "fault", "text"].map((name) => [name, document.getElementById(`sentences-${name}`)]));
  const PER_PAGE = 10;
  let page = 0;

  const average = (entry) => entry.runs.reduce((sum, run) => sum + run.chrf, 0) / entry.runs.length;
  const gain = (entry) => (entry.runs.length > 1 ? entry.runs[1].chrf - entry.runs[0].chrf : 0);
  const orders = {
    worst: (a, b) => average(a) - average(b) || a.line - b.line,
    best: (a, b) => average(b) - average(a) || b.source.length - a.source.length || a.line - b.line,
    random: (a, b) => a.random - b.random,
    line: (a, b) => a.line - b.line,
    longest: (a, b) => b.source.length - a.source.length || a.line - b.line,
    second: (a, b) => gain(b) - gain(a) || a.line - b.line,
    first: (a, b) => gain(a) - gain(b) || a.line - b.line,
  };

  function marked(stretches, kind, language) {
    const parts = stretches.map((text, n) => (n % 2 ? make(kind, {}, text) : text));
    return make("p", { class: "text", dir: "auto", lang: language }, ...parts);
  }

  function row(name, ...content) {
    return make("div", { class: "row" }, make("span", { class: "name" }, name), ...content);
  }

  function card(entry) {
    const result = make("article", { class: "sentence", "data-line": String(entry.line) });
    result.append(make("header", {}, `line ${entry.line}`));
    result.append(row("source", make("p", { class: "text", dir: "auto", lang: data.source_language }, entry.source)));
    entry.runs.forEach((run, n) => {
      const name = entry.runs.length > 1 ? `reference, against ${data.names[n]}` : "reference";
      if (n === 0 || run.reference.length > 1) result.append(row(name, marked(run.reference, "ins", data.target_language)));
      const facts = make("p", { class: "facts" }, `chrF ${format(run.chrf, { digits: 1 })}`, ...run.faults.flatMap((fault) => [" ", make("span", { class: "fault" }, fault)]));
      result.append(row(entry.runs.length > 1 ? data.names[n] : "output", make("div", {}, marked(run.output, "del", data.target_language), facts)));
    });
    return result;
  }

  function chosen() {
    const wanted = controls.text.value.trim().toLocaleLowerCase();
    const fault = controls.fault.value;
    return data.sentences.filter((entry) => {
      const texts = [entry.source, ...entry.runs.flatMap((run) => [run.reference.join(""), run.output.join("")])];
      return (!wanted || texts.some((text) => text.toLocaleLowerCase().includes(wanted)))
        && (!fault || entry.runs.some((run) => run.faults.includes(fault)));
    }).sort(orders[controls.sort.value]);
  }

  function render() {
    const found = chosen();
    const last = Math.max(0, Math.ceil(found.length / PER_PAGE) - 1);
    page = Math.max(0, Math.min(page, last));
    const shown = found.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
    place.replaceChildren(...shown.map(card));
    document.getElementById("sentences-count").textContent = found.length
      ? `${page * PER_PAGE + 1}–${page * PER_PAGE + shown.length} of ${found.length.toLocaleString("en-US")}`
      : "no such sentence";
    document.getElementById("sentences-before").disabled = page === 0;
    document.getElementById("sentences-after").disabled = page === last;
  }

  const restart = () => { page = 0; render(); };
  controls.sort.addEventListener("change", restart);
  controls.fault.addEventListener("change", restart);
  controls.text.addEventListener("input", restart);
  document.getElementById("sentences-before").addEventListener("click", () => { page -= 1; render(); });
  document.getElementById("sentences-after").addEventListener("click", () => { page += 1; render(); });
  for (const button of document.querySelectorAll("button[data-fault]")) {
    button.addEventListener("click", () => {
      controls.fault.value = button.dataset.fault;
      controls.text.value = "";
      restart();
      document.getElementById("sentences").scrollIntoView({ behavior: "smooth" });
    });
  }
  render();
})();
