"use strict";
// Charts in SVG without any library. A page has figures with a <div class="plot"> and their data as JSON; see charts.py.
// Kinds: line, bars, heatmap, heads; explore.js adds image and frames. All texts are set as text, never as HTML.
const Charts = (() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const COLOURS = 6; // --series-1 … in style.css
  const MARGIN = { top: 12, right: 14, bottom: 46, left: 66 };

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function shape(name, attributes = {}, ...children) {
    const element = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function format(value, spec = {}) {
    if (value === null || value === undefined) return "–";
    if (spec.percent) return `${(100 * value).toFixed(spec.digits ?? 1)} %`;
    if (value !== 0 && Math.abs(value) < 0.01) return String(Number(value.toPrecision(3)));
    return value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) >= 1000 ? 0 : spec.digits ?? 2 });
  }

  // As short as a value on an axis can be.
  function short(value, spec) {
    if (spec.percent) return `${Number((100 * value).toPrecision(4))} %`;
    return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential().replace("-", "−") : format(value, { digits: 4 });
  }

  // Round numbers from low to high, about as many as asked for.
  function ticks(low, high, count) {
    const raw = (high - low || 1) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(Number((n * step).toPrecision(12)));
    return found;
  }

  // ---- one tooltip for the page ----
  let tooltip = null;
  function show(lines, x, y) {
    if (!tooltip) {
      tooltip = make("div", { id: "tooltip", role: "status" });
      document.body.append(tooltip);
    }
    tooltip.replaceChildren(...lines.map((line) => make("div", { dir: "auto" }, line)));
    tooltip.hidden = false;
    const box = tooltip.getBoundingClientRect();
    tooltip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 4))}px`;
    tooltip.style.top = `${y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18}px`;
  }
  function hide() {
    if (tooltip) tooltip.hidden = true;
  }

  // Pointer and arrow keys choose one of `count` items; `at(i)` is its place in the drawing, `find(x, y)` the item there.
  function interactive(drawing, { count, find, at, describe, stride = 1, highlight = () => {} }) {
    let current = -1;
    const choose = (index, x, y) => {
      current = index;
      highlight(index);
      show(describe(index), x, y);
    };
    const leave = () => {
      highlight(-1);
      hide();
    };
    drawing.setAttribute("tabindex", "0");
    drawing.addEventListener("pointermove", (event) => {
      const box = drawing.getBoundingClientRect();
      const index = find(event.clientX - box.left, event.clientY - box.top);
      if (index >= 0 && index < count) choose(index, event.clientX, event.clientY);
      else leave();
    });
    drawing.addEventListener("pointerleave", leave);
    drawing.addEventListener("blur", leave);
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: stride, ArrowUp: -stride }[event.key];
      if (!step || (stride === 1 && event.key.match(/Up|Down/))) return;
      event.preventDefault();
      const next = Math.max(0, Math.min(count - 1, current + step));
      const box = drawing.getBoundingClientRect();
      const [x, y] = at(next);
      choose(next, box.left + x, box.top + y);
    });
  }

  function legend(names, colours = names.map((_, n) => n)) {
    const items = names.map((name, n) =>
      make("span", {}, make("i", { class: `key colour-${(colours[n] % COLOURS) + 1}` }), make("bdi", {}, name)));
    return make("div", { class: "legend" }, ...items);
  }

  function axes(drawing, spec, width, height, yTicks, yOf) {
    for (const value of yTicks) {
      const y = yOf(value);
      drawing.append(shape("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y, class: "grid" }));
      drawing.append(shape("text", { x: MARGIN.left - 6, y: y + 4, class: "tick end" }, short(value, spec)));
    }
    const middle = (MARGIN.top + height - MARGIN.bottom) / 2;
    const vertical = { x: 12, y: middle, class: "label middle", transform: `rotate(-90 12 ${middle})` };
    drawing.append(shape("text", vertical, spec.y));
    drawing.append(shape("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 6, class: "label middle" }, spec.x));
  }

  // Moves, or squeezes, labels that would be cut off at an edge of the drawing, which must be part of the page, so that they have a size.
  function fit(drawing) {
    const frame = drawing.getBoundingClientRect();
    for (const text of drawing.querySelectorAll("text.middle:not([transform])")) {
      if (text.getBoundingClientRect().width > frame.width) { // on a phone
        text.setAttribute("textLength", frame.width - 2);
        text.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
      const box = text.getBoundingClientRect();
      const shift = Math.min(0, frame.right - box.right) || Math.max(0, frame.left - box.left);
      if (shift) text.setAttribute("dx", shift.toFixed(1));
    }
  }

  function canvasFor(plot, spec, height) {
    const width = Math.max(260, plot.clientWidth);
    const drawing = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.title });
    return [drawing, width];
  }

  // From values to places on an axis; "log" has powers of ten as ticks, or of two where there are few of ten.
  function scale(kind, [low, high], [from, to], count) {
    const change = kind === "log" ? Math.log10 : (value) => value;
    const [start, end] = [change(low), change(high)];
    const place = (value) => from + ((change(value) - start) / (end - start || 1)) * (to - from);
    return { place, ticks: kind === "log" ? logTicks(low, high, count) : ticks(low, high, count) };
  }

  // Powers of ten where there are enough of them; otherwise powers of two, or 1, 2, 5, 10, … below 1.
  function logTicks(low, high, count) {
    const found = [];
    if (Math.log10(high / low) < 2.5 && low < 0.9) {
      for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) found.push(...[1, 2, 5].map((factor) => Number((factor * 10 ** power).toPrecision(6))));
      return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    }
    const base = low < 0.9 || high / low > 20_000 ? 10 : 2;
    const [first, last] = [low, high].map((value, end) => (end ? Math.floor : Math.ceil)(Math.log(value) / Math.log(base) + (end ? 1e-9 : -1e-9)));
    const step = Math.max(1, Math.ceil((last - first + 1) / (count + 1)));
    for (let power = first; power <= last; power += step) found.push(Number((base ** power).toPrecision(12)));
    return found;
  }

  // The lowest and highest value with some room around them; zero stays the bottom of what is never negative.
  function span(values, kind) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (kind === "log") return [low / 1.25, high * 1.25];
    const pad = (high - low || Math.abs(high) || 1) * 0.05;
    return [low >= 0 ? Math.max(0, low - pad) : low - pad, high + pad];
  }

  // Curves, and series with mode "points" as dots. Axes are linear or logarithmic: xScale, yScale; xRange and yRange fix them.
  function line(plot, spec) {
    const height = spec.height ?? 240;
    const [drawing, width] = canvasFor(plot, spec, height);
    const all = spec.series.flatMap((one) => one.points);
    const xs = all.map((point) => point[0]);
    const edge = spec.xScale === "log" ? 1.06 : 1;
    const sides = spec.xRange ?? [Math.min(...xs) / edge, Math.max(...xs) * edge];
    const heights = spec.yRange ?? span(all.map((point) => point[1]), spec.yScale);
    const { place: xOf, ticks: xTicks } = scale(spec.xScale, sides, [MARGIN.left, width - MARGIN.right], width < 420 ? 3 : 6);
    const { place: yOf, ticks: yTicks } = scale(spec.yScale, heights, [height - MARGIN.bottom, MARGIN.top], 5);
    axes(drawing, spec, width, height, yTicks, yOf);
    for (const x of xTicks) {
      drawing.append(shape("text", { x: xOf(x), y: height - MARGIN.bottom + 16, class: "tick middle" }, format(x, { digits: spec.xDigits ?? 0 })));
    }
    spec.series.forEach((one, n) => {
      const colour = ((one.colour ?? n) % COLOURS) + 1;
      const inside = one.points.filter(([, y]) => y >= heights[0] - 1e-12 && y <= heights[1] + 1e-12);
      if (one.mode !== "points") {
        const path = inside.map(([x, y], i) => `${i ? "L" : "M"}${xOf(x).toFixed(1)} ${yOf(y).toFixed(1)}`).join("");
        drawing.append(shape("path", { d: path, class: `curve stroke-${colour}${one.dashed ?? n % 2 ? " dashed" : ""}` }));
      }
      if (one.mode === "points" || (one.points.length < 30 && one.mode !== "line")) {
        for (const [x, y] of inside) drawing.append(shape("circle", { cx: xOf(x).toFixed(1), cy: yOf(y).toFixed(1), r: 3, class: `fill-${colour}` }));
      }
    });
    const places = [...new Set(xs)].sort((a, b) => a - b);
    const cursor = shape("line", { y1: MARGIN.top, y2: height - MARGIN.bottom, class: "cursor", visibility: "hidden" });
    drawing.append(cursor);
    const nearest = (points, x) => points.reduce((best, one) => (Math.abs(one[0] - x) < Math.abs(best[0] - x) ? one : best));
    const at = (x) => format(x, { digits: spec.xDigits ?? 0 });
    interactive(drawing, {
      count: places.length,
      find: (x) => places.reduce((best, place, i) => (Math.abs(xOf(place) - x) < Math.abs(xOf(places[best]) - x) ? i : best), 0),
      at: (i) => [xOf(places[i]), MARGIN.top],
      highlight: (i) => {
        cursor.setAttribute("visibility", i < 0 ? "hidden" : "visible");
        if (i >= 0) for (const end of ["x1", "x2"]) cursor.setAttribute(end, xOf(places[i]));
      },
      describe: (i) => [`${spec.x} ${at(places[i])}`, ...spec.series.filter((one) => one.points.length)
        .map((one) => [one.name, nearest(one.points, places[i])])
        .map(([name, point]) => `${name}: ${format(point[1], spec)}${point[0] === places[i] ? "" : ` (at ${at(point[0])})`}`)],
    });
    plot.append(...(spec.series.length > 1 ? [legend(spec.series.map((one) => one.name), spec.series.map((one, n) => one.colour ?? n))] : []), drawing);
    fit(drawing);
  }

  function bars(plot, spec) {
    const height = 250;
    const [drawing, width] = canvasFor(plot, spec, height);
    const values = spec.series.flatMap((one) => one.values).filter((value) => value !== null);
    const high = spec.maximum ?? (Math.max(0, ...values) * 1.05 || 1);
    const step = (width - MARGIN.left - MARGIN.right) / Math.max(1, spec.categories.length);
    const yOf = (y) => height - MARGIN.bottom - (y / high) * (height - MARGIN.top - MARGIN.bottom);
    axes(drawing, spec, width, height, ticks(0, high, 5), yOf);
    const thickness = (step * 0.8) / spec.series.length;
    const widest = Math.max(...spec.categories.map((name) => name.length)) * 7 + 8;
    const every = Math.max(1, Math.ceil(widest / step));
    const shade = shape("rect", { y: MARGIN.top, height: height - MARGIN.top - MARGIN.bottom, width: step, class: "shade", visibility: "hidden" });
    drawing.append(shade);
    spec.categories.forEach((name, i) => {
      const x = MARGIN.left + i * step;
      spec.series.forEach((one, n) => {
        if (one.values[i] === null) return;
        const y = yOf(Math.min(high, one.values[i]));
        drawing.append(shape("rect", {
          x: x + step * 0.1 + n * thickness, y, width: Math.max(1, thickness - 1), height: Math.max(0.5, height - MARGIN.bottom - y), class: `fill-${(n % COLOURS) + 1}`,
        }));
      });
      if (spec.expected) {
        const y = yOf(spec.expected[i]);
        drawing.append(shape("line", { x1: x, x2: x + step, y1: y, y2: y, class: "expected" }));
      }
      if (i % every === 0) {
        drawing.append(shape("text", { x: x + step / 2, y: height - MARGIN.bottom + 16, class: "tick middle" }, name));
      }
    });
    interactive(drawing, {
      count: spec.categories.length,
      find: (x) => Math.floor((x - MARGIN.left) / step),
      at: (i) => [MARGIN.left + (i + 0.5) * step, MARGIN.top],
      highlight: (i) => {
        shade.setAttribute("visibility", i < 0 ? "hidden" : "visible");
        if (i >= 0) shade.setAttribute("x", MARGIN.left + i * step);
      },
      describe: (i) => [`${spec.x} ${spec.categories[i]}`, ...spec.series.map((one) => `${one.name}: ${format(one.values[i], spec)}`), ...(spec.notes[i] ? [spec.notes[i]] : [])],
    });
    plot.append(...(spec.series.length > 1 ? [legend(spec.series.map((one) => one.name))] : []), drawing);
    fit(drawing);
  }

  function heatmap(plot, spec) {
    const longest = Math.max(...spec.rows.map((name) => [...name].length));
    const widest = Math.max(...spec.columns.map((name) => [...name].length));
    const left = Math.min(150, 16 + longest * 8.5);
    const slanted = widest > 4;
    const top = slanted ? Math.min(130, 14 + widest * 7.5) : 24;
    const room = Math.max(260, plot.clientWidth) - left - 12;
    const size = Math.max(14, Math.min(spec.cell ?? 46, room / spec.columns.length));
    const width = left + size * spec.columns.length + (slanted ? 40 : 12);
    const height = top + size * spec.rows.length + 6;
    const drawing = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.title });
    const high = spec.maximum ?? (Math.max(...spec.values.flat()) || 1);
    spec.columns.forEach((name, c) => {
      const x = left + (c + 0.5) * size;
      const place = slanted ? { x, y: top - 6, transform: `rotate(-50 ${x} ${top - 6})`, class: "tick" } : { x, y: top - 8, class: "tick middle" };
      drawing.append(shape("text", place, name));
    });
    spec.rows.forEach((name, r) => {
      drawing.append(shape("text", { x: left - 6, y: top + (r + 0.5) * size + 4, class: "tick end" }, name));
      spec.columns.forEach((_, c) => {
        const share = Math.max(0, Math.min(1, spec.values[r][c] / high));
        const cell = { x: left + c * size, y: top + r * size, width: size - 1, height: size - 1, class: "cell" };
        drawing.append(shape("rect", { ...cell, class: "cell ground" }), shape("rect", { ...cell, "fill-opacity": share.toFixed(3) }));
        if (size >= 34 && !spec.plain) {
          const middle = { x: cell.x + size / 2, y: cell.y + size / 2 + 4, class: `value middle${share > 0.55 ? " on-dark" : ""}` };
          drawing.append(shape("text", middle, format(spec.values[r][c], { ...spec, percent: false, digits: spec.digits })));
        }
      });
    });
    const columns = spec.columns.length;
    const frame = shape("rect", { width: size - 1, height: size - 1, class: "frame", visibility: "hidden" });
    drawing.append(frame);
    interactive(drawing, {
      count: columns * spec.rows.length,
      stride: columns,
      find: (x, y) => {
        const [c, r] = [Math.floor((x - left) / size), Math.floor((y - top) / size)];
        return c >= 0 && c < columns && r >= 0 && r < spec.rows.length ? r * columns + c : -1;
      },
      at: (i) => [left + ((i % columns) + 0.5) * size, top + (Math.floor(i / columns) + 0.5) * size],
      highlight: (i) => {
        frame.setAttribute("visibility", i < 0 ? "hidden" : "visible");
        if (i >= 0) {
          frame.setAttribute("x", left + (i % columns) * size);
          frame.setAttribute("y", top + Math.floor(i / columns) * size);
        }
      },
      describe: (i) => {
        const [r, c] = [Math.floor(i / columns), i % columns];
        return [`${spec.rows[r]} → ${spec.columns[c]}`, format(spec.values[r][c], spec)];
      },
    });
    plot.append(make("div", { class: "scroll" }, drawing));
    fit(drawing);
  }

  // ---- attention of all layers and heads ----
  // The weights come packed in a page, and as nested lists from a server.
  function unpack(map) {
    if (map.weights) return (layer, head) => map.weights[layer][head];
    const bytes = atob(map.packed);
    const [rows, columns] = [map.target.length, map.source.length];
    return (layer, head) => {
      const start = (layer * map.heads + head) * rows * columns;
      return map.target.map((_, r) => map.source.map((__, c) => bytes.charCodeAt(start + r * columns + c) / 255));
    };
  }

  function mean(grids) {
    return grids[0].map((row, r) => row.map((_, c) => grids.reduce((sum, grid) => sum + grid[r][c], 0) / grids.length));
  }

  function thumbnail(values, name, isChosen) {
    const [rows, columns] = [values.length, values[0].length];
    const picture = shape("svg", { viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    values.forEach((row, r) => row.forEach((value, c) => {
      if (value > 0.03) picture.append(shape("rect", { x: c, y: r, width: 1, height: 1, class: "cell", "fill-opacity": value.toFixed(2) }));
    }));
    return make("button", { type: "button", class: "thumbnail", "aria-pressed": String(isChosen) }, picture, make("span", {}, name));
  }

  function heads(plot, spec, state = { map: 0, grid: 0 }) {
    const choice = make("select", { "aria-label": "sentence" });
    spec.maps.forEach((map, n) => {
      const text = map.source.slice(0, -1).join("").replaceAll("\u2581", " ").trim();
      choice.append(make("option", { value: String(n) }, `line ${map.line}: ${text}`));
    });
    choice.value = String(state.map);
    const map = spec.maps[state.map];
    const grid = unpack(map);
    const grids = [];
    for (let layer = 0; layer < map.layers; layer++) {
      for (let head = 0; head < map.heads; head++) grids.push({ name: `layer ${layer + 1}, head ${head + 1}`, values: grid(layer, head) });
    }
    if (grids.length > 1) grids.unshift({ name: "mean of all", values: mean(grids.map((one) => one.values)) });
    const redraw = (change) => {
      plot.replaceChildren();
      heads(plot, spec, { ...state, ...change });
    };
    choice.addEventListener("change", () => redraw({ map: Number(choice.value), grid: 0 }));
    const gallery = make("div", { class: "gallery" });
    grids.forEach((one, n) => {
      const button = thumbnail(one.values, one.name, n === state.grid);
      button.addEventListener("click", () => {
        spec.onGrid?.(n);
        redraw({ grid: n });
        plot.querySelectorAll(".thumbnail")[n].focus();
      });
      gallery.append(button);
    });
    const large = make("div", { class: "large" });
    if (spec.maps.length > 1) plot.append(make("label", { class: "control" }, "Sentence ", choice));
    plot.append(...(grids.length > 1 ? [gallery] : []), large);
    const chosen = grids[state.grid];
    heatmap(large, { title: `attention, ${chosen.name}`, rows: map.target, columns: map.source, values: chosen.values, maximum: 1, digits: 2, cell: 26, plain: true });
  }

  const kinds = { line, bars, heatmap, heads }; // explore.js adds image and frames

  function draw(figure) {
    const plot = figure.querySelector(".plot");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    plot.replaceChildren();
    kinds[spec.kind](plot, spec);
    plot.dataset.width = String(plot.clientWidth);
  }

  function drawAll() {
    const figures = [...document.querySelectorAll("figure.chart")];
    figures.forEach(draw);
    document.addEventListener("themechange", () => figures.filter((one) => one.querySelector(".pixels")).forEach(draw));
    let due = 0;
    window.addEventListener("resize", () => {
      clearTimeout(due);
      due = setTimeout(() => figures.filter((one) => one.querySelector(".plot").dataset.width !== String(one.querySelector(".plot").clientWidth)).forEach(draw), 150);
    });
  }

  return { make, shape, format, ticks, interactive, fit, heads, kinds, MARGIN, draw, drawAll, show, hide };
})();
