"use strict";
// What could replace a word: the runners-up of each of its pieces, or a word that is typed.
const Choices = (() => {
  const { make } = Charts;
  const box = document.getElementById("choices");
  let opener = null;

  // `onTake(prefix)` receives the new start of the translation; without it the list is only shown. A model that is
  // reversed writes the last piece first.
  function open(hypothesis, unit, button, { isWord, isReversed, onTake }) {
    close();
    opener = button;
    const pieces = hypothesis.pieces.map((one) => one.piece);
    const closer = make("button", { type: "button", "aria-label": "close" }, "×");
    closer.addEventListener("click", () => close(true));
    const name = make("span", { id: "choices-name" }, "Instead of ", make("bdi", {}, unit.text));
    box.replaceChildren(make("h3", {}, name, closer));
    for (let place = unit.first; place < unit.after; place++) box.append(...group(hypothesis, pieces, unit, place, isReversed, onTake));
    if (onTake && !unit.end) box.append(form(before(hypothesis, pieces, unit, isWord), onTake));
    box.hidden = false;
    position(button);
    box.scrollIntoView({ block: "nearest" });
    (box.querySelector("button.choice") ?? closer).focus();
  }

  // The text before a word, including the space.
  function before(hypothesis, pieces, unit, isWord) {
    if (isWord && unit.isThere) return hypothesis.text.slice(0, unit.start);
    return Texts.join(pieces.slice(0, unit.first)).trimStart() + (pieces[unit.first].startsWith(Texts.SPACE) ? " " : "");
  }

  function group(hypothesis, pieces, unit, place, isReversed, onTake) {
    const own = hypothesis.pieces[place];
    const list = make("ul");
    list.append(make("li", {}, entry("span", own.piece, own.probability, "written")));
    for (const other of own.runners_up) {
      const prefix = Texts.join([...pieces.slice(0, place), other.piece]).trim();
      const canTake = onTake && other.piece !== Texts.END && prefix !== "" && !prefix.includes("\ufffd") && other.piece !== Texts.SPACE;
      const element = entry(canTake ? "button" : "span", other.piece, other.probability, "");
      if (canTake) element.addEventListener("click", () => take(prefix, onTake));
      list.append(make("li", {}, element));
    }
    if (unit.after - unit.first === 1) return [list];
    const written = Texts.join(isReversed ? pieces.slice(place + 1, unit.after) : pieces.slice(unit.first, place)).trim();
    const [beside, edge] = isReversed ? ["before ", "at the end"] : ["after ", "at the beginning"];
    const heading = written ? make("h4", {}, beside, make("bdi", {}, written)) : make("h4", {}, edge);
    return [heading, list];
  }

  function entry(kind, piece, probability, note) {
    const attributes = kind === "button" ? { type: "button", class: "choice" } : { class: "choice" };
    const name = make("bdi", {}, piece === Texts.END ? "(the end)" : piece);
    return make(kind, attributes, make("span", {}, name, ...(note ? [make("span", { class: "facts" }, ` ${note}`)] : [])), make("span", { class: "share" }, Texts.percent(probability)));
  }

  function form(start, onTake) {
    const field = make("input", { type: "text", dir: "auto", "aria-label": "another word", placeholder: "another word", maxlength: "200" });
    const result = make("form", {}, field, make("button", { type: "submit" }, "Use"));
    result.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) take(start + field.value.trim(), onTake);
    });
    return result;
  }

  function take(prefix, onTake) {
    close();
    onTake(prefix);
  }

  function position(button) {
    const [word, frame] = [button.getBoundingClientRect(), box.offsetParent.getBoundingClientRect()];
    const left = Math.max(0, Math.min(word.left - frame.left, frame.width - box.offsetWidth));
    box.style.left = `${left}px`;
    box.style.top = `${word.bottom - frame.top + 6}px`;
  }

  function close(isFocused = false) {
    if (box.hidden) return;
    box.hidden = true;
    if (isFocused && opener?.isConnected) opener.focus();
  }

  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(true);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!box.contains(event.target) && !opener?.contains(event.target)) close();
  });

  return { open, close };
})();
