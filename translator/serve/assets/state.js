"use strict";
// What the page shows, mirrored in the fragment of its address, so that a link leads back to it.
const State = (() => {
  const DEFAULTS = { text: "", pair: "", unit: "words", sentence: 0, rank: 0, prefixes: {}, open: [] };
  const state = structuredClone(DEFAULTS);

  // Prefixes are kept for each line: {line: [one for each segment]}.
  function read(fragment) {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    Object.assign(state, structuredClone(DEFAULTS));
    state.text = given.get("text") ?? "";
    state.pair = given.get("pair") ?? "";
    state.unit = given.get("unit") === "pieces" ? "pieces" : "words";
    state.sentence = count(given.get("sentence"));
    state.rank = count(given.get("rank"));
    state.open = (given.get("open") ?? "").split(",").filter((name) => ["alternatives", "heads", "beam"].includes(name));
    state.prefixes = readPrefixes(given.get("prefixes"));
    return state;
  }

  function count(text) {
    const number = Number(text ?? 0);
    return Number.isInteger(number) && number >= 0 ? number : 0;
  }

  // A link may have been mistyped: whatever is not a list of texts is left out.
  function readPrefixes(text) {
    const found = {};
    try {
      for (const [line, texts] of Object.entries(JSON.parse(text ?? "{}"))) {
        if (/^\d+$/.test(line) && Array.isArray(texts)) found[line] = texts.map((one) => (typeof one === "string" ? one : ""));
      }
    } catch { /* then there are no prefixes */ }
    return found;
  }

  function write() {
    const shown = new URLSearchParams();
    if (state.text) shown.set("text", state.text);
    if (state.pair) shown.set("pair", state.pair);
    if (state.unit !== "words") shown.set("unit", state.unit);
    if (state.sentence) shown.set("sentence", String(state.sentence));
    if (state.rank) shown.set("rank", String(state.rank));
    if (state.open.length) shown.set("open", state.open.join(","));
    if (Object.keys(state.prefixes).length) shown.set("prefixes", JSON.stringify(state.prefixes));
    const fragment = shown.toString();
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }

  return { state, read, write };
})();
