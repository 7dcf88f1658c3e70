"use strict";
// A line chart. rulescope.chart(place, {lines, x, y, ...}) draws into `place` and returns a function
// that redraws it with other options. A line is {name, colours, dashes, x: [], y: [], low, high,
// faint}; null values are not drawn. The pointer or the arrow keys read values.
rulescope.chart = (() => {
  const { el, number, whole, short } = rulescope;
  const HEIGHT = 320;
  const MARGIN = { left: 58, right: 14, top: 14, bottom: 44 };
  const MOST = 14; // lines that are read out

  function ticksOf(low, high, log, room) {
    if (log) {
      const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
      const parts = last - first > 3 ? [1] : last - first > 1 ? [1, 3] : [1, 2, 5];
      const found = [];
      for (let power = first; power <= last; power++)
        for (const part of parts) found.push(part * 10 ** power);
      const inside = found.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
      if (inside.length > 2) return inside;
      // Within a decade there may be too few; linear steps always fit.
    }
    const rough = (high - low) / room, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((part) => part * power >= rough) * power;
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++)
      found.push(at * step || 0); // never −0
    return found;
  }

  function axisOf(values, log, length, from, room, pad) {
    const usable = values.filter((value) => value !== null && (!log || value > 0));
    let low = Infinity, high = -Infinity; // (a long list is too much for Math.min(...))
    for (const value of usable) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (!usable.length) [low, high] = log ? [1, 10] : [0, 1];
    if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
    if (!log && pad) [low, high] = [low - pad * (high - low), high + pad * (high - low)];
    const [a, b] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
    return {
      place: (value) => from + length * (((log ? Math.log10(value) : value) - a) / (b - a)),
      ticks: ticksOf(low, high, log, room),
    };
  }

  const drawable = (x, y, options) =>
    x !== null && y !== null && y !== undefined && (!options.logX || x > 0) && (!options.logY || y > 0);

  function path(line, column, across, up, options) {
    let commands = "", pen = "M";
    line.x.forEach((x, i) => {
      if (!drawable(x, column[i], options)) {
        pen = "M";
        return;
      }
      commands += `${pen}${across.place(x).toFixed(1)} ${up.place(column[i]).toFixed(1)}`;
      pen = "L";
    });
    return commands;
  }

  function band(line, across, up, options) {
    const there = line.x.map((_, i) => i).filter((i) =>
      drawable(line.x[i], line.low[i], options) && drawable(line.x[i], line.high[i], options));
    if (there.length < 2) return null;
    const at = (i, column) => `${across.place(line.x[i]).toFixed(1)} ${up.place(column[i]).toFixed(1)}`;
    const forth = there.map((i) => at(i, line.high)), back = there.map((i) => at(i, line.low)).reverse();
    return el("path", { class: "band arm", style: line.colours, d: `M${[...forth, ...back].join("L")}Z` });
  }

  function frame(across, up, width, options) {
    const bottom = HEIGHT - MARGIN.bottom, right = width - MARGIN.right;
    const parts = up.ticks.flatMap((tick) => {
      const y = up.place(tick);
      return [el("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y }),
        el("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, short(tick))];
    });
    parts.push(...across.ticks.flatMap((tick) => {
      const x = across.place(tick);
      return [el("line", { class: "tick", x1: x, x2: x, y1: bottom, y2: bottom + 4 }),
        el("text", { x, y: bottom + 18, "text-anchor": "middle" }, short(tick))];
    }));
    parts.push(el("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
    parts.push(el("text", { class: "name", x: (MARGIN.left + right) / 2, y: HEIGHT - 6,
      "text-anchor": "middle" }, options.x));
    parts.push(el("text", { class: "name", "text-anchor": "middle",
      transform: `translate(13 ${(MARGIN.top + bottom) / 2}) rotate(-90)` }, options.y));
    return parts;
  }

  return (place, first) => {
    let options = first, at = null, inverse = null;
    const drawing = el("svg", { "aria-hidden": "true" });
    const cross = el("g", { class: "cross" });
    const readout = el("div", { class: "readout", hidden: true });
    const announced = el("div", { class: "visually-hidden", "aria-live": "polite" });
    const box = el("div", { class: "chart", role: "group", tabindex: "0" }, drawing, readout);
    place.replaceChildren(box, announced);
    let across, up, width = 0;

    function draw() {
      width = Math.max(box.clientWidth, 280);
      const lines = options.lines, inner = width - MARGIN.left - MARGIN.right;
      const xs = lines.flatMap((line) => line.x.filter((x, i) => drawable(x, line.y[i], options)));
      const ys = lines.flatMap((line) => [line.y, line.low ?? [], line.high ?? []].flat());
      const wide = options.logX ? xs : [0, ...xs];
      across = axisOf(wide, options.logX, inner, MARGIN.left, Math.max(inner / 90, 3));
      up = axisOf(options.logY ? ys : [...ys, ...(options.include ?? [])], options.logY,
        -(HEIGHT - MARGIN.top - MARGIN.bottom), HEIGHT - MARGIN.bottom, 5, 0.03);
      inverse = (px) => (xs.length ? closest(xs, px) : null);
      drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      drawing.setAttribute("height", HEIGHT);
      const parts = frame(across, up, width, options);
      if (options.change && xs.some((one) => one >= options.change)) {
        const x = across.place(options.change);
        parts.push(el("line", { class: "change", x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
          el("text", { class: "note", x: x + 5, y: MARGIN.top + 10 }, "change"));
      }
      for (const line of lines) if (line.low) parts.push(band(line, across, up, options));
      for (const line of [...lines].reverse())
        parts.push(el("path", { class: line.faint ? "line arm faint" : "line arm", style: line.colours,
          "stroke-dasharray": line.dashes, d: path(line, line.y, across, up, options) }));
      drawing.replaceChildren(...parts.filter(Boolean), cross);
      box.setAttribute("aria-label", `${options.y} over ${options.x}. ${ends(lines)} `
        + "Arrow keys read values.");
      box.classList.toggle("nothing", !xs.length);
      read(at);
    }

    // The x among the data whose place is nearest to a place on the screen.
    const closest = (xs, px) => xs.reduce((best, x) =>
      (Math.abs(across.place(x) - px) < Math.abs(across.place(best) - px) ? x : best), xs[0] ?? 0);

    const ends = (lines) => lines.slice(0, MOST).map((line) => {
      const last = line.y.filter((value) => value !== null).at(-1);
      return `${line.name} ends at ${number(last ?? null, 3)}.`;
    }).join(" ");

    function read(x, announce) {
      at = x;
      cross.replaceChildren();
      readout.hidden = x === null || x === undefined;
      if (readout.hidden) return;
      const px = across.place(x);
      const found = options.lines.map((line) => ({ line, i: line.x.indexOf(x) }))
        .filter(({ line, i }) => i >= 0 && drawable(x, line.y[i], options))
        .map(({ line, i }) => ({ line, y: line.y[i] })).sort((one, other) => other.y - one.y);
      cross.append(el("line", { x1: px, x2: px, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
        ...found.map(({ line, y }) =>
          el("circle", { class: "arm", style: line.colours, cx: px, cy: up.place(y), r: 3.5 })));
      const rows = found.slice(0, MOST).map(({ line, y }) =>
        el("li", null, rulescope.swatch(line), el("span", null, line.name), el("b", null, number(y))));
      if (found.length > MOST) rows.push(el("li", null, `and ${found.length - MOST} more`));
      readout.replaceChildren(el("p", null, `${whole(x)} ${options.x}`), el("ul", null, rows));
      readout.classList.toggle("left", px > width / 2);
      readout.style.setProperty("--at", `${((px / width) * 100).toFixed(1)}%`);
      if (announce) announced.textContent = `${whole(x)}: ` + found.slice(0, MOST).map(({ line, y }) =>
        `${line.name} ${number(y, 3)}`).join(", ");
    }

    box.addEventListener("pointermove", (event) => {
      const px = (event.clientX - drawing.getBoundingClientRect().left) * (width / drawing.clientWidth);
      read(inverse(px));
    });
    box.addEventListener("pointerleave", () => read(null));
    box.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (event.key === "Escape") read(null);
      if (!steps && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      const xs = [...new Set(options.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
      const now = at === null || at === undefined ? -1 : xs.indexOf(at);
      const next = event.key === "Home" ? 0 : event.key === "End" ? xs.length - 1 : now + steps;
      read(xs[Math.min(Math.max(next, 0), xs.length - 1)], true);
    });
    new ResizeObserver(() => {
      if (Math.max(box.clientWidth, 280) !== width) draw();
    }).observe(box);
    draw();
    return (other) => {
      options = other;
      at = null;
      draw();
    };
  };
})();
