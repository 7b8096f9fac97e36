"use strict";
// Source and target as two rows of words (two columns on a phone), and ribbons between them as wide as the attention.
const Weave = (() => {
  const { make, shape } = Charts;
  const NARROW = 560; // pixels
  const WIDEST = 14; // pixels of a ribbon, for a weight of 1
  const LEAST = 0.06; // weights below this have no ribbon
  const root = document.getElementById("weave");
  const seen = document.getElementById("seen");
  let current = null;

  function draw(segment, hypothesis, { unit, ...options }) {
    const weights = unit === "pieces" ? hypothesis.attention : hypothesis.word_attention;
    const sides = ["source", "target"].map((side) => ({ side, units: Texts.units(segment, hypothesis, unit, side), buttons: [] }));
    const drawing = shape("svg", { "aria-hidden": "true" });
    root.replaceChildren(drawing);
    current = { drawing, weights, sides, ribbons: [], languages: options.languages };
    sides.forEach((own) => root.append(rowOf(own, segment.num_forced, options)));
    seen.textContent = "";
    layOut();
  }

  function rowOf(own, numForced, { languages, canChange, onChoose }) {
    const isSource = own.side === "source";
    const row = make("div", { class: `side ${own.side}`, dir: "auto", role: "group", "aria-label": isSource ? "source" : "translation" });
    const language = languages[isSource ? 0 : 1];
    if (language) row.setAttribute("lang", language);
    own.units.forEach((unit, n) => {
      const button = make("button", { type: "button", class: "unit", tabindex: n === 0 ? "0" : "-1" }, unit.text);
      if (unit.glued) button.classList.add("glued");
      if (!isSource) {
        button.classList.add(`sure-${Texts.level(unit.probability)}`);
        if (unit.after <= numForced) button.classList.add("forced");
        button.setAttribute("aria-haspopup", "dialog");
        button.setAttribute("aria-expanded", "false");
        button.setAttribute("aria-label", `${unit.text}, probability ${Texts.percent(unit.probability)}${canChange ? "; choose another" : ""}`);
        button.addEventListener("click", () => onChoose(unit, button));
      }
      button.addEventListener("pointerenter", () => light(own.side, n));
      button.addEventListener("focus", () => light(own.side, n));
      button.addEventListener("pointerleave", rest);
      button.addEventListener("blur", rest);
      button.addEventListener("keydown", (event) => move(event, own, n));
      own.buttons.push(button);
      row.append(button);
    });
    return row;
  }

  // Arrow keys move through a side, in the direction of its script; the Tab key stops at only one of its words.
  function move(event, own, n) {
    const isForward = getComputedStyle(own.buttons[n].parentElement).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const steps = { ArrowRight: isForward === "ArrowRight" ? 1 : -1, ArrowLeft: isForward === "ArrowLeft" ? 1 : -1, ArrowDown: 1, ArrowUp: -1 };
    const last = own.buttons.length - 1;
    const next = event.key === "Home" ? 0 : event.key === "End" ? last : n + (steps[event.key] ?? 0);
    if (next === n || next < 0 || next > last) return;
    event.preventDefault();
    own.buttons.forEach((button, i) => button.setAttribute("tabindex", i === next ? "0" : "-1"));
    own.buttons[next].focus();
  }

  function layOut() {
    if (!current) return;
    root.className = root.clientWidth < NARROW ? "columns" : "rows";
    const [source, target] = current.sides;
    const isColumns = root.className === "columns";
    const frame = root.getBoundingClientRect();
    const place = (button, isSource) => {
      const box = button.getBoundingClientRect();
      return isColumns
        ? [(isSource ? box.right : box.left) - frame.left, box.top + box.height / 2 - frame.top]
        : [box.left + box.width / 2 - frame.left, (isSource ? box.bottom : box.top) - frame.top];
    };
    const from = source.buttons.map((button) => place(button, true));
    const to = target.buttons.map((button) => place(button, false));
    current.ribbons = [];
    (current.weights ?? []).forEach((row, t) => row.forEach((weight, s) => {
      if (weight < LEAST) return;
      const [[x1, y1], [x2, y2]] = [from[s], to[t]];
      const d = isColumns
        ? `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`
        : `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`;
      const path = shape("path", { d, class: "ribbon", "stroke-width": (weight * WIDEST).toFixed(1), "data-source": s, "data-target": t });
      current.ribbons.push({ path, s, t });
    }));
    current.drawing.replaceChildren(...current.ribbons.map((one) => one.path));
  }

  // Highlights what a word looked at or, for a word of the source, the words that looked at it.
  function light(side, n) {
    const { weights, sides, ribbons, languages } = current;
    if (!weights) return;
    const [source, target] = sides;
    const isSource = side === "source";
    const own = isSource ? source : target;
    const others = isSource ? target : source;
    const shares = others.units.map((_, i) => (isSource ? weights[i][n] : weights[n][i]));
    rest();
    own.buttons[n].classList.add("active");
    others.buttons.forEach((button, i) => button.classList.toggle("lit", shares[i] >= 0.1));
    ribbons.forEach(({ path, s, t }) => {
      const isOwn = (isSource ? s : t) === n;
      path.classList.toggle("lit", isOwn);
      path.classList.toggle("faded", !isOwn);
    });
    const best = shares.map((share, i) => [share, others.units[i].text]).filter(([share]) => share >= 0.05).sort((a, b) => b[0] - a[0]).slice(0, 4);
    const word = (text, isOfSource) => make("bdi", { lang: languages[isOfSource ? 0 : 1] ?? "" }, text);
    const list = best.flatMap(([share, text], i) => [i ? ", " : "", word(text, !isSource), ` ${Texts.percent(share)}`]);
    const unit = own.units[n];
    const probability = isSource ? [] : [` (probability ${Texts.percent(unit.probability)})`];
    const verb = isSource ? " was looked at by " : " looked at ";
    seen.replaceChildren(word(unit.text, isSource), ...probability, ...(list.length ? [verb, ...list] : [isSource ? " was hardly looked at" : " did not look at any word in particular"]));
  }

  function rest() {
    current.sides.forEach((own) => own.buttons.forEach((button) => button.classList.remove("active", "lit")));
    current.ribbons.forEach(({ path }) => path.classList.remove("lit", "faded"));
    seen.textContent = "";
  }

  let due = 0;
  new ResizeObserver(() => {
    clearTimeout(due);
    due = setTimeout(layOut, 60);
  }).observe(root);

  return { draw };
})();
