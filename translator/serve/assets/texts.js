"use strict";
// Pieces, words and texts of a hypothesis.
const Texts = (() => {
  const SPACE = "\u2581"; // SentencePiece's mark for the space before a word
  const END = "</s>";

  // The text that pieces spell; a character may be spelled byte by byte.
  function join(pieces) {
    const bytes = [];
    let text = "";
    const flush = () => {
      if (bytes.length) text += new TextDecoder().decode(new Uint8Array(bytes.splice(0)));
    };
    for (const piece of pieces) {
      const byte = /^<0x([0-9A-F]{2})>$/.exec(piece);
      if (byte) bytes.push(parseInt(byte[1], 16));
      else {
        flush();
        text += piece.replaceAll(SPACE, " ");
      }
    }
    flush();
    return text;
  }

  // A piece as shown among words, where gaps stand for spaces; a piece that is only a space is shown as an open box.
  function bare(piece) {
    return piece === END ? "end" : piece.replaceAll(SPACE, "") || "\u2423";
  }

  function percent(probability) {
    if (probability >= 0.995) return `${(100 * probability).toFixed(probability > 0.9995 ? 0 : 1)} %`;
    if (probability >= 0.01) return `${(100 * probability).toFixed(0)} %`;
    return probability >= 0.0001 ? `${(100 * probability).toFixed(2)} %` : "under 0.01 %";
  }

  // Words in their text: where each begins, and whether it follows the one before without a space. A word with bytes that
  // do not form a character is not in the text.
  function place(words, text) {
    let position = 0;
    return words.map((word) => {
      const start = text.indexOf(word, position);
      const isThere = start >= 0;
      const glued = isThere && start === position && position > 0;
      if (isThere) position = start + word.length;
      return { start, glued, isThere };
    });
  }

  // Whether a sentence is shown by words or by pieces: a barely trained model may write pieces that form no words.
  function unitOf(segment, hypothesis, wanted) {
    return segment.source_words.length && hypothesis.target_words.length ? wanted : "pieces";
  }

  // The units of a side: {text, first, after, glued, start, probability}, by words or by pieces.
  function units(segment, hypothesis, unit, side) {
    const isSource = side === "source";
    const pieces = isSource ? segment.source_pieces : hypothesis.pieces.map((one) => one.piece);
    if (unit === "pieces") {
      return pieces.map((piece, n) => ({
        text: bare(piece), first: n, after: n + 1, glued: n > 0 && !piece.startsWith(SPACE), end: piece === END,
        probability: isSource ? null : hypothesis.pieces[n].probability,
      }));
    }
    const words = isSource ? segment.source_words : hypothesis.target_words;
    const places = place(words.map((word) => word[2]), isSource ? segment.source : hypothesis.text);
    return words.map(([first, after, text], n) => ({
      text, first, after, ...places[n], end: false,
      probability: isSource ? null : hypothesis.pieces.slice(first, after).reduce((all, one) => all * one.probability, 1),
    }));
  }

  function level(probability) {
    return probability > 0.9 ? 4 : probability > 0.5 ? 3 : probability > 0.2 ? 2 : 1;
  }

  // The longest common subsequence of two lists of words: pairs of places.
  function common(first, second) {
    const best = Array.from({ length: first.length + 1 }, () => new Uint16Array(second.length + 1));
    for (let i = first.length - 1; i >= 0; i--) {
      for (let j = second.length - 1; j >= 0; j--) {
        best[i][j] = first[i] === second[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
      }
    }
    const pairs = [];
    for (let i = 0, j = 0; i < first.length && j < second.length;) {
      if (first[i] === second[j]) pairs.push([i++, j++]);
      else if (best[i + 1][j] >= best[i][j + 1]) i++;
      else j++;
    }
    return pairs;
  }

  return { SPACE, END, join, bare, percent, unitOf, units, place, level, common };
})();
