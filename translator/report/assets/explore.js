"use strict";
// Two more kinds of charts: pictures of large grids, and sliders between precomputed charts.
(() => {
  const { make, shape, format, ticks, interactive, fit, kinds, hide, MARGIN } = Charts;

  // A picture of many cells: `packed` has two bytes for each, from `low` (0) to `high` (65535), the higher byte first.
  // Negative values have a colour of their own; zero has the colour of the background.
  function image(plot, spec) {
    const [rows, columns] = spec.shape;
    const bytes = atob(spec.packed);
    const value = (r, c) => {
      const place = 2 * (r * columns + c);
      return spec.low + ((256 * bytes.charCodeAt(place) + bytes.charCodeAt(place + 1)) / 65535) * (spec.high - spec.low);
    };
    const most = Math.max(Math.abs(spec.low), Math.abs(spec.high)) || 1;
    const [left, top, bottom] = [MARGIN.left - 14, 6, 40];
    const width = Math.min(Math.max(240, plot.clientWidth - left - 10), spec.widest ?? 640);
    const height = Math.round(spec.height ?? Math.min(360, (width * rows) / columns));
    const canvas = make("canvas", { width: columns, height: rows, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(columns, rows);
    const rgb = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((two) => parseInt(two, 16));
    const [ground, up, down] = [rgb("--panel"), rgb("--cell"), rgb("--series-2")];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const share = Math.min(1, Math.abs(value(r, c)) / most);
        const towards = value(r, c) < 0 ? down : up;
        for (let n = 0; n < 3; n++) pixels.data[4 * (r * columns + c) + n] = ground[n] + share * (towards[n] - ground[n]);
        pixels.data[4 * (r * columns + c) + 3] = 255;
      }
    }
    context.putImageData(pixels, 0, 0);
    const total = [left + width + 10, top + height + bottom];
    const drawing = shape("svg", { width: total[0], height: total[1], viewBox: `0 0 ${total[0]} ${total[1]}`, role: "img", "aria-label": spec.title });
    drawing.append(shape("image", { href: canvas.toDataURL(), x: left, y: top, width, height, preserveAspectRatio: "none", class: "pixels" }));
    const name = (names, i) => (names ? names[i] : String(i));
    for (const c of ticks(0, columns - 1, width < 420 ? 4 : 8).filter(Number.isInteger)) {
      drawing.append(shape("text", { x: left + ((c + 0.5) / columns) * width, y: top + height + 15, class: "tick middle" }, name(spec.columnNames, c)));
    }
    for (const r of ticks(0, rows - 1, 6).filter(Number.isInteger)) {
      drawing.append(shape("text", { x: left - 6, y: top + ((r + 0.5) / rows) * height + 4, class: "tick end" }, name(spec.rowNames, r)));
    }
    const middle = top + height / 2;
    drawing.append(shape("text", { x: 12, y: middle, class: "label middle", transform: `rotate(-90 12 ${middle})` }, spec.y));
    drawing.append(shape("text", { x: left + width / 2, y: total[1] - 6, class: "label middle" }, spec.x));
    const cell = [width / columns, height / rows];
    const frame = shape("rect", { width: cell[0], height: cell[1], class: "frame", visibility: "hidden" });
    drawing.append(frame);
    interactive(drawing, {
      count: rows * columns,
      stride: columns,
      find: (x, y) => {
        const [c, r] = [Math.floor((x - left) / cell[0]), Math.floor((y - top) / cell[1])];
        return c >= 0 && c < columns && r >= 0 && r < rows ? r * columns + c : -1;
      },
      at: (i) => [left + ((i % columns) + 0.5) * cell[0], top + (Math.floor(i / columns) + 0.5) * cell[1]],
      highlight: (i) => {
        frame.setAttribute("visibility", i < 0 ? "hidden" : "visible");
        if (i >= 0) {
          frame.setAttribute("x", left + (i % columns) * cell[0]);
          frame.setAttribute("y", top + Math.floor(i / columns) * cell[1]);
        }
      },
      describe: (i) => [`${spec.y} ${name(spec.rowNames, Math.floor(i / columns))}, ${spec.x} ${name(spec.columnNames, i % columns)}`, format(value(Math.floor(i / columns), i % columns), spec)],
    });
    plot.append(make("div", { class: "scroll" }, drawing));
    fit(drawing);
  }

  // A slider between precomputed charts: `frames` are {label, note, panels}, and a panel is what
  // a chart's specification has beyond that of `common`. The series of both are drawn.
  function frames(plot, spec) {
    const start = plot.dataset.frame ?? String(spec.start ?? 0);
    const slider = make("input", { type: "range", min: "0", max: String(spec.frames.length - 1), step: "1", "aria-label": spec.control });
    slider.value = start;
    const [shown, note, panels] = [make("output", {}), make("p", { class: "facts" }), make("div", { class: "columns" })];
    plot.append(make("label", { class: "control slider" }, `${spec.control} `, slider, shown), note, panels);
    panels.append(...spec.common.map(() => make("div", {})));
    const redraw = () => {
      plot.dataset.frame = slider.value;
      const frame = spec.frames[Number(slider.value)];
      shown.textContent = frame.label;
      note.textContent = frame.note ?? "";
      slider.setAttribute("aria-valuetext", frame.label);
      spec.common.forEach((common, n) => {
        const panel = panels.children[n];
        const merged = { ...common, ...frame.panels[n], series: [...(common.series ?? []), ...(frame.panels[n].series ?? [])] };
        panel.style.minHeight = `${panel.offsetHeight}px`; // so that the page does not jump while it is drawn again
        panel.replaceChildren();
        if (spec.common.length > 1) panel.append(make("div", { class: "panel-title" }, merged.title));
        kinds[merged.kind](panel, merged);
        panel.style.minHeight = "";
      });
      hide();
    };
    slider.addEventListener("input", redraw);
    redraw();
  }

  Object.assign(kinds, { image, frames });
})();
