"use strict";
// What could replace a word: the runners-up of each of its pieces, or a word that is typed.
const Choices = (() => {
  const { make } = Charts;
  const box = document.getElementById("choices");
  let opener = null;

  // `onTake(prefix)` receives the new start of the translation; without it the list is only shown. A model that is
  // reversed writes the last piece first.
  function open(hypothesis, unit, button, { isWord, isReversed, language, onTake }) {
    close();
    opener = button;
    const pieces = hypothesis.pieces.map((one) => one.piece);
    const closer = make("button", { type: "button", "aria-label": "close" }, "×");
    closer.addEventListener("click", () => close(true));
    const name = make("span", { id: "choices-name" }, "Instead of ", make("bdi", {}, unit.text));
    box.replaceChildren(make("h3", {}, name, closer));
    for (let place = unit.first; place < unit.after; place++) box.append(...group(hypothesis, pieces, unit, place, { isWord, isReversed, onTake }));
    if (onTake && !unit.end) box.append(form(before(hypothesis, pieces, unit, isWord), onTake));
    box.querySelectorAll("bdi").forEach((text) => { text.lang = language; });
    button.setAttribute("aria-expanded", "true");
    box.hidden = false;
    position(button);
    box.scrollIntoView({ block: "nearest" });
    (box.querySelector("button.choice") ?? closer).focus({ preventScroll: true });
  }

  // The text before a word, including the space.
  function before(hypothesis, pieces, unit, isWord) {
    if (isWord && unit.isThere) return hypothesis.text.slice(0, unit.start);
    return Texts.join(pieces.slice(0, unit.first)).trimStart() + (pieces[unit.first].startsWith(Texts.SPACE) ? " " : "");
  }

  function group(hypothesis, pieces, unit, place, { isWord, isReversed, onTake }) {
    const own = hypothesis.pieces[place];
    const list = make("ul");
    const nameOf = (piece) => (piece === Texts.END ? "(the end)" : isWord ? Texts.bare(piece) : piece);
    list.append(make("li", {}, entry("span", nameOf(own.piece), own.probability, "written")));
    for (const other of own.runners_up) {
      const prefix = Texts.join([...pieces.slice(0, place), other.piece]).trim();
      const canTake = onTake && other.piece !== Texts.END && prefix !== "" && !prefix.includes("\ufffd") && other.piece !== Texts.SPACE;
      const note = isWord && place > 0 ? spacing(own.piece, other.piece) : "";
      const element = entry(canTake ? "button" : "span", nameOf(other.piece), other.probability, note);
      if (canTake) element.addEventListener("click", () => take(prefix, onTake));
      list.append(make("li", {}, element));
    }
    if (unit.after - unit.first === 1) return [list];
    const written = Texts.join(isReversed ? pieces.slice(place + 1, unit.after) : pieces.slice(unit.first, place)).trim();
    const [beside, edge] = isReversed ? ["before ", "at the end"] : ["after ", "at the beginning"];
    const heading = written ? make("h4", {}, beside, make("bdi", {}, written)) : make("h4", {}, edge);
    return [heading, list];
  }

  // Among words the mark for a space is not shown, so what does not begin as the written piece does says so.
  function spacing(own, other) {
    const [before, here] = [own, other].map((piece) => piece.startsWith(Texts.SPACE));
    if (before === here || other === Texts.END || own === Texts.END) return "";
    return here ? "after a space" : "without a space";
  }

  function entry(kind, text, probability, note) {
    const attributes = kind === "button" ? { type: "button", class: "choice" } : { class: "choice" };
    return make(kind, attributes, make("span", {}, make("bdi", {}, text), ...(note ? [make("span", { class: "facts" }, ` ${note}`)] : [])), make("span", { class: "share" }, Texts.percent(probability)));
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
    opener.setAttribute("aria-expanded", "false");
    box.hidden = true;
    if (isFocused && opener.isConnected) opener.focus();
  }

  // The Tab key leaves the box, which closes, for what comes before or after the word, as if the box were beside it.
  function leave(event) {
    const stops = [...box.querySelectorAll("button, input")];
    if (document.activeElement !== stops.at(event.shiftKey ? 0 : -1) && document.activeElement !== box) return;
    if (document.activeElement === box && !event.shiftKey) return;
    if (event.shiftKey) event.preventDefault(); // back to the word itself
    close(true);
  }

  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(true);
    else if (event.key === "Tab") leave(event);
  });
  box.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !box.contains(event.relatedTarget)) close();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!box.contains(event.target) && !opener?.contains(event.target)) close();
  });

  return { open, close };
})();
