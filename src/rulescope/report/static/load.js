"use strict";
// What the pages share. Data are scripts that call rulescope.give, because a page that was opened
// from disk may not fetch files. Text gets into the page as text, never as HTML.
const rulescope = (() => {
  const held = new Map();
  const waiting = new Map();

  function give(key, value) {
    held.set(key, value);
    for (const done of waiting.get(key)?.done ?? []) done(value);
    waiting.delete(key);
  }

  function load(key) {
    if (held.has(key)) return Promise.resolve(held.get(key));
    return new Promise((done, failed) => {
      const others = waiting.get(key);
      if (others) {
        others.done.push(done);
        return;
      }
      waiting.set(key, { done: [done] });
      const script = document.createElement("script");
      script.src = `data/${key.split("/").map(encodeURIComponent).join("/")}.js`;
      script.onerror = () => {
        waiting.delete(key);
        failed(new Error(`${script.src} cannot be read`));
      };
      document.head.append(script);
    });
  }

  // el("a", {href: "x.html", class: "y", onclick: f}, "text", child, [children])
  function el(tag, attributes, ...children) {
    const svg = ["svg", "g", "path", "line", "circle", "text", "rect"].includes(tag);
    const made = svg
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return made;
  }

  function number(value, digits = 4) {
    if (value === null || value === undefined) return "—";
    if (Number.isInteger(value)) return whole(value);
    const size = Math.abs(value);
    const text = size !== 0 && (size < 1e-3 || size >= 1e7)
      ? value.toExponential(digits - 1)
      : String(Number(value.toPrecision(digits)));
    return text.replaceAll("-", "−");
  }

  const whole = (value) => value.toLocaleString("en-US").replace("-", "−");

  // On an axis: 20k, 1.2M.
  function short(value) {
    const size = Math.abs(value);
    const [by, unit] = size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
    return number(value / by, 3) + unit;
  }

  let fields = 0;

  function field(label, control, kind) {
    control.id = `field-${(fields += 1)}`;
    return el("div", { class: kind ? `field ${kind}` : "field" },
      el("label", { for: control.id }, label), control);
  }

  function select(label, options, chosen, change) {
    const made = el("select", { onchange: () => change(made.value) }, options.map(([value, words]) =>
      el("option", { value, selected: String(value) === String(chosen) }, words)));
    return field(label, made);
  }

  function toggle(words, pressed, change, attributes) {
    const made = el("button", { type: "button", class: "toggle", "aria-pressed": String(pressed),
      ...attributes, onclick: () => {
        const on = made.getAttribute("aria-pressed") !== "true";
        made.setAttribute("aria-pressed", String(on));
        change(on);
      } }, words);
    return made;
  }

  function swatch(style) {
    return el("svg", { class: "swatch arm", style: style.colours, viewBox: "0 0 26 12",
      "aria-hidden": "true" },
    el("line", { x1: 1, y1: 6, x2: 25, y2: 6, "stroke-dasharray": style.dashes }));
  }

  function failed(place, fault) {
    place.replaceChildren(el("p", { class: "empty", role: "alert" }, fault.message));
  }

  return { give, load, el, number, whole, short, field, select, toggle, swatch, failed };
})();
