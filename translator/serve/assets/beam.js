"use strict";
// The beam as a tree: a column for each step with its candidates, best first, and lines to what they continue.
const Beam = (() => {
  const { make, shape, interactive } = Charts;
  const [COLUMN, ROW, BOX, MARGIN] = [104, 27, 84, 8];
  const SEEN = 3; // steps after a chosen beginning that should be in sight

  // Nodes come as objects from the server and as short lists from a file: [parent, piece, score, normalised, flags].
  function unpack(beam) {
    if (beam.nodes) return beam.nodes;
    const steps = [];
    return beam.packed.map(([parent, piece, score, normalized, flags], id) => {
      steps[id] = parent === null ? 0 : steps[parent] + 1;
      return { id, parent, step: steps[id], piece, score, normalized_score: normalized, kept: !!(flags & 1), ended: !!(flags & 2), best: !!(flags & 4) };
    });
  }

  function draw(plot, beam, isReversed, showsPruned = true) {
    plot.replaceChildren();
    if (!beam) {
      plot.append(make("p", { class: "facts" }, "There is no beam to show: the search was greedy, drew a sample, or had terms to write."));
      return;
    }
    const all = unpack(beam);
    const box = make("input", { type: "checkbox" });
    box.checked = showsPruned;
    box.addEventListener("change", () => {
      draw(plot, beam, isReversed, box.checked);
      plot.querySelector("input").focus();
    });
    const nodes = all.filter((node) => showsPruned || node.kept || node.ended);
    const ended = all.filter((node) => node.ended).length;
    const given = all.findIndex((node, n) => n + 1 === all.length || all[n + 1].step === node.step); // steps of a chosen beginning
    const facts = `${all.length} candidates in ${new Set(all.map((node) => node.step)).size} steps, ${ended} finished; the best is drawn in blue, dropped ones are dashed, finished ones green.${isReversed ? " This model writes the last piece first." : ""}${given > 0 ? ` The first ${given === 1 ? "step writes" : `${given} steps write`} the chosen beginning.` : ""}`;
    const frame = make("div", { class: "scroll" }, treeOf(nodes, all, facts, isReversed));
    plot.append(make("label", { class: "control" }, box, "dropped candidates"), make("p", { class: "facts" }, facts), frame);
    // Steps without a choice, on a phone, would leave nothing else to see.
    if ((given + SEEN) * COLUMN > frame.clientWidth) frame.scrollLeft = Math.max(0, given - 1) * COLUMN;
  }

  function treeOf(nodes, all, title, isReversed) {
    const rows = [];
    const place = new Map(nodes.map((node) => {
      const row = rows[node.step] ?? 0;
      rows[node.step] = row + 1;
      return [node.id, { x: MARGIN + node.step * COLUMN, y: MARGIN + row * ROW }];
    }));
    const [width, height] = [rows.length * COLUMN + 2 * MARGIN, Math.max(1, ...rows) * ROW + 2 * MARGIN];
    const drawing = shape("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `the beam: ${title}` });
    const kindOf = (node) => `${node.best ? " best" : ""}${node.ended ? " ended" : ""}${node.kept || node.ended ? "" : " pruned"}`;
    for (const node of [...nodes].sort((a, b) => Number(a.best) - Number(b.best))) {
      const [to, from] = [place.get(node.id), place.get(node.parent)];
      if (!from) continue;
      const [x1, y1, x2, y2] = [from.x + BOX, from.y + ROW / 2 - 2, to.x, to.y + ROW / 2 - 2];
      const bend = (x2 - x1) / 2;
      drawing.append(shape("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, class: `edge${kindOf(node)}` }));
    }
    for (const node of nodes) {
      const { x, y } = place.get(node.id);
      const text = node.piece === Texts.END ? "end" : node.piece;
      drawing.append(shape("rect", { x, y, width: BOX, height: ROW - 5, rx: 4, class: `box${kindOf(node)}`, "data-node": node.id }));
      drawing.append(shape("text", { x: x + BOX / 2, y: y + 15.5, class: kindOf(node).trim() }, text.length > 11 ? `${text.slice(0, 10)}…` : text));
    }
    const frame = shape("rect", { width: BOX, height: ROW - 5, rx: 4, class: "frame", visibility: "hidden" });
    drawing.append(frame);
    const path = (node) => {
      const before = node.parent === null ? [] : path(all[node.parent]);
      return isReversed ? [node.piece, ...before] : [...before, node.piece];
    };
    interactive(drawing, {
      count: nodes.length,
      find: (x, y) => nodes.findIndex((node) => {
        const at = place.get(node.id);
        return x >= at.x && x <= at.x + BOX && y >= at.y && y < at.y + ROW;
      }),
      at: (i) => [place.get(nodes[i].id).x, place.get(nodes[i].id).y],
      highlight: (i) => {
        frame.setAttribute("visibility", i < 0 ? "hidden" : "visible");
        if (i >= 0) for (const [key, value] of Object.entries(place.get(nodes[i].id))) frame.setAttribute(key, value);
      },
      describe: (i) => {
        const node = nodes[i];
        const fate = node.ended ? `finished, normalised ${node.normalized_score}` : node.kept ? "kept" : "dropped";
        return [Texts.join(path(node).filter((piece) => piece !== Texts.END)).trim() || node.piece, `log-probability ${node.score}, ${fate}`];
      },
    });
    return drawing;
  }

  return { draw };
})();
