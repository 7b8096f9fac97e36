"use strict";
// Connects the parts: state → translations → what is shown.
(() => {
  const { make } = Charts;
  const TYPING_PAUSE = 300; // milliseconds
  const PANELS = ["alternatives", "heads", "beam"];
  const find = (id) => document.getElementById(id);
  const data = find("translations");
  const isOnline = data === null;
  const { state } = State;
  let lines = []; // translations, one for each line
  let sentences = []; // {line, place, segment}: everything that the model translated at once
  let key = "";
  let failure = ""; // of the latest request
  let due = 0;
  let grid = 0; // the heads that are enlarged

  // ---- from state to translations ----
  const texts = () => state.text.split(/\r\n|\r|\n/);

  // Of the source and of the translation. A file has them, but not the name of the pair, and they are not in its address.
  const languages = () => (isOnline ? state.pair.split(">") : lines[0]?.languages ?? []);

  // Without a server a panel shows what the file has; a search for one translation has no others.
  const hasPanel = (name) => (isOnline ? name !== "alternatives" || Service.numBest(state.pair) > 1 : hasData(name));

  // What the panels show of the chosen translation. Another one than the best is known only together with the others.
  const needOf = (name) => (name === "heads" && state.rank ? `heads ${state.rank}` : name);
  const needs = () => [...new Set([...state.open.filter(hasPanel), ...(state.rank ? ["alternatives"] : [])])].map(needOf).sort();

  async function refresh() {
    clearTimeout(due);
    if (!isOnline) return render();
    find("text").lang = languages()[0] ?? "";
    failure = "";
    state.rank = Math.min(state.rank, Service.numBest(state.pair) - 1);
    const own = texts();
    const asked = { pair: state.pair, key, prefixes: own.map((_, n) => state.prefixes[n] ?? []) };
    find("translation").classList.add("waiting");
    try {
      lines = await Service.translate(own, { ...asked, wanted: own.map(() => []) });
      render();
      const chosen = sentences[state.sentence]?.line;
      if (chosen !== undefined && needs().length) {
        lines = await Service.translate(own, { ...asked, wanted: own.map((_, n) => (n === chosen ? needs() : [])) });
        render();
      }
      say(Service.note(asked.pair));
      find("translation").classList.remove("waiting");
    } catch (error) {
      if (error.name === "AbortError") return undefined; // a newer request is on its way
      fail(error.message);
      if (error.needsKey) find("key-control").hidden = false;
      if (error.retry) due = setTimeout(refresh, 1000 * error.retry);
      if (!(error instanceof Service.Problem)) throw error;
    }
    return undefined;
  }

  // What is already there stays, and panels that wait for their data no longer do.
  function fail(text) {
    failure = text;
    say(text);
    find("translation").classList.remove("waiting");
    document.querySelectorAll(".loading").forEach((note) => { note.textContent = text; });
  }

  function say(text) {
    find("message").textContent = text;
    find("message").hidden = !text;
  }

  // ---- from translations to what is shown ----
  function render() {
    sentences = lines.flatMap((line, n) => line.segments.map((segment, place) => ({ line: n, place, segment })));
    state.sentence = Math.min(state.sentence, Math.max(0, sentences.length - 1));
    if (isOnline) {
      find("translation").replaceChildren(...lines.map((line) => make("p", { dir: "auto", lang: languages()[1] ?? "" }, line.text)));
    }
    find("result").hidden = !sentences.length;
    PANELS.forEach((name) => { find(name).hidden = !sentences.length || !hasPanel(name); });
    State.write();
    if (!sentences.length) return Choices.close();
    fillMenu();
    const { line, place, segment } = sentences[state.sentence];
    const rank = Math.min(state.rank, segment.hypotheses.length - 1); // the others may still be loading
    drawForced(line, place);
    drawWeave(segment, segment.hypotheses[rank]);
    PANELS.filter(hasPanel).forEach((name) => drawPanel(name, sentences[state.sentence], rank));
    return undefined;
  }

  function fillMenu() {
    find("sentence-control").hidden = sentences.length < 2;
    const names = sentences.map(({ line, segment }) => `${isOnline ? line + 1 : lines[line].line ?? line + 1}: ${segment.source}`);
    const menu = find("sentence");
    if (menu.options.length !== names.length || names.some((name, n) => menu.options[n].text !== name)) {
      menu.replaceChildren(...names.map((name, n) => make("option", { value: String(n) }, name)));
    }
    menu.value = String(state.sentence);
  }

  const inTarget = (text) => make("bdi", { lang: languages()[1] ?? "" }, text);

  // The chosen start of the translation, and a button to remove it.
  function drawForced(line, place) {
    const prefix = state.prefixes[line]?.[place] ?? "";
    find("forced").hidden = !prefix;
    const button = make("button", { type: "button", id: "release" }, "remove");
    button.addEventListener("click", () => force(line, place, ""));
    find("forced").replaceChildren("begins with ", inTarget(prefix), " ", button);
  }

  function drawWeave(segment, hypothesis) {
    const { line, place } = sentences[state.sentence];
    Choices.close();
    const unit = Texts.unitOf(segment, hypothesis, state.unit);
    // A model that writes the end first cannot go on from a chosen beginning.
    const canChange = isOnline && !segment.reverse_target;
    const take = canChange ? (prefix) => force(line, place, prefix) : null;
    find("sentence").lang = languages()[0] ?? "";
    find("hint").textContent = `Point at a word to see what the model looked at. Click a word of the translation to ${canChange
      ? "choose another one; the rest is then translated again."
      : "see what else the model considered."}`;
    Weave.draw(segment, hypothesis, {
      unit,
      canChange,
      languages: languages(),
      onChoose: (chosen, button) => Choices.open(hypothesis, chosen, button, { isWord: unit === "words", isReversed: segment.reverse_target, language: languages()[1] ?? "", onTake: take }),
    });
  }

  async function force(line, place, prefix) {
    const own = [...(state.prefixes[line] ?? [])];
    while (own.length <= place) own.push("");
    own[place] = prefix;
    state.prefixes = { ...state.prefixes, [line]: own };
    if (!own.some(Boolean)) delete state.prefixes[line];
    state.rank = 0;
    await refresh();
    if (document.activeElement !== document.body) return;
    // What had the focus is no longer there: on with the word that was chosen.
    const words = [...document.querySelectorAll(".target .unit")];
    (words.findLast((word) => word.classList.contains("forced")) ?? words[0])?.focus({ preventScroll: true });
  }

  const hasData = (name) => sentences.some(({ segment }) => (name === "alternatives" ? segment.hypotheses.length > 1 : segment[name]));

  function drawPanel(name, { line, segment }, rank) {
    const panel = find(name);
    const plot = panel.querySelector(".plot");
    panel.open = state.open.includes(name);
    if (!panel.open) return;
    const isLoading = isOnline && !lines[line].wanted.includes(needOf(name));
    plot.style.minHeight = isLoading ? `${plot.offsetHeight}px` : ""; // so that the page does not jump
    if (isLoading) plot.replaceChildren(make("p", { class: "facts loading" }, failure || "…"));
    else if (name === "alternatives") Alternatives.draw(plot, segment, rank, languages()[1] ?? "", chooseRank);
    else if (name === "beam") Beam.draw(plot, segment.beam, segment.reverse_target);
    else drawHeads(plot, segment, rank);
  }

  function drawHeads(plot, segment, rank) {
    plot.replaceChildren();
    if (!segment.heads) return plot.append(make("p", { class: "facts" }, "This model has no attention to show."));
    const own = segment.heads.rank;
    const hypothesis = segment.hypotheses[own];
    if (segment.hypotheses.length > 1) {
      const note = own === rank ? ": " : ", since this file does not have those of the chosen one: ";
      const name = own ? `translation ${own + 1}` : "the best translation";
      plot.append(make("p", { class: "facts", id: "heads-of" }, `Of ${name}${note}`, inTarget(hypothesis.text)));
    }
    const drawing = make("div");
    plot.append(drawing);
    const map = { line: state.sentence + 1, source: segment.source_pieces, target: hypothesis.pieces.map((one) => one.piece), ...segment.heads };
    if (grid > map.layers * map.heads) grid = 0; // of a model with more heads
    return Charts.heads(drawing, { maps: [map], onGrid: (n) => { grid = n; } }, { map: 0, grid });
  }

  async function chooseRank(rank) {
    state.rank = rank;
    const focus = () => find("alternatives").querySelectorAll(".alternative")[rank]?.focus();
    render();
    focus();
    if (!isOnline || !state.open.includes("heads")) return;
    await refresh();
    if (document.activeElement === document.body) focus(); // it was drawn again
  }

  // ---- what people do ----
  function listen() {
    document.querySelectorAll("input[name=unit]").forEach((button) => button.addEventListener("change", () => {
      state.unit = button.value;
      render();
    }));
    find("sentence").addEventListener("change", (event) => {
      Object.assign(state, { sentence: Number(event.target.value), rank: 0 });
      refresh();
    });
    PANELS.forEach((name) => find(name).addEventListener("toggle", () => {
      const isOpen = find(name).open;
      if (isOpen === state.open.includes(name)) return;
      state.open = PANELS.filter((one) => (one === name ? isOpen : state.open.includes(one)));
      if (isOpen) refresh();
      else State.write();
    }));
    window.addEventListener("hashchange", () => {
      State.read(location.hash);
      show();
    });
    if (!isOnline) return;
    find("settings").addEventListener("submit", (event) => event.preventDefault());
    find("text").addEventListener("input", () => {
      Object.assign(state, { text: find("text").value, prefixes: {}, rank: 0 });
      clearTimeout(due);
      due = setTimeout(refresh, TYPING_PAUSE);
    });
    find("pair").addEventListener("change", () => {
      Object.assign(state, { pair: find("pair").value, prefixes: {}, rank: 0, sentence: 0 });
      refresh();
    });
    find("key").addEventListener("change", () => {
      key = find("key").value.trim();
      refresh();
    });
  }

  function show() {
    document.querySelectorAll("input[name=unit]").forEach((button) => { button.checked = button.value === state.unit; });
    if (isOnline) {
      find("text").value = state.text;
      if (![...find("pair").options].some((option) => option.value === state.pair)) state.pair = find("pair").options[0]?.value ?? "";
      find("pair").value = state.pair;
    }
    refresh();
  }

  async function start() {
    State.read(location.hash);
    if (!isOnline) {
      lines = JSON.parse(data.textContent);
      listen();
      return show();
    }
    try {
      const settings = await Service.settings();
      find("pair").replaceChildren(...settings.pairs.map(([value, name]) => make("option", { value }, name)));
      find("pair-control").hidden = settings.pairs.length < 2;
      find("key-control").hidden = !settings.needsKey;
      state.pair ||= settings.pair;
      state.text ||= find("text").value; // typed before the settings arrived
    } catch (error) {
      say(error.message);
      setTimeout(start, 1000 * (error.retry || 10));
      return undefined;
    }
    listen();
    say("");
    return show();
  }

  start();
})();
