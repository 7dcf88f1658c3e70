"use strict";
// Beside a chart: buttons for its axes, and its values as a table.
(() => {
  const { el, number, whole, toggle } = rulescope;

  // Two buttons; `now` is {logX, logY}; `change` is called with the new value of one of them.
  rulescope.axes = (now, change, label = "Axes") =>
    el("div", { class: "field", role: "group", "aria-label": label },
      el("span", { "aria-hidden": "true" }, "log axes"),
      el("span", { class: "pair" },
        toggle("x", now.logX, (on) => change({ logX: on }), { "aria-label": "Logarithmic x axis" }),
        toggle("y", now.logY, (on) => change({ logY: on }), { "aria-label": "Logarithmic y axis" })));

  // About ten rows of the values of `lines`, with links to their lifetimes.
  rulescope.tabulate = (lines, caption) => {
    const xs = [...new Set(lines.flatMap((line) => line.x))].sort((one, other) => one - other);
    const step = Math.max(Math.ceil(xs.length / 10), 1);
    const rows = xs.filter((_, i) => (xs.length - 1 - i) % step === 0);
    const head = lines.map((line) => el("th", { scope: "col", class: "num" },
      line.run ? el("a", { href: `runs.html#${line.run}` }, line.name) : line.name));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Values: ${caption}` },
      el("table", null,
        el("caption", null, `${caption}, selected rows`),
        el("thead", null, el("tr", null, el("th", { scope: "col", class: "num" }, "interactions"), head)),
        el("tbody", null, rows.map((x) => el("tr", null,
          el("th", { scope: "row", class: "num" }, whole(x)), lines.map((line) => {
            const i = line.x.indexOf(x);
            return el("td", { class: "num" }, i < 0 ? "" : number(line.y[i]));
          }))))));
  };

  // Closed at first.
  rulescope.asTable = (...content) =>
    el("details", { class: "values" }, el("summary", null, "As a table"), ...content);
})();
