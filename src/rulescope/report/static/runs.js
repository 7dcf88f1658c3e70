"use strict";
// All lifetimes in a table, and one of them in detail. The end of the address is a run id or
// filters.
(async () => {
  const { el, load, number, whole } = rulescope;
  const place = document.getElementById("runs");
  const names = JSON.parse(document.getElementById("run-words").textContent);
  const AT_ONCE = 100;
  let rows;
  try {
    rows = await load("runs");
  } catch (fault) {
    rulescope.failed(place, fault);
    return;
  }
  const sorting = { by: null, down: false };
  let first = 0;
  const count = el("p", { class: "count", role: "status" });
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lifetimes" });
  const pager = el("nav", { class: "pager", "aria-label": "Pages of the table" });
  const filters = rulescope.filters(rows, () => {
    first = 0;
    const text = filters.asText();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    list();
  });
  const overview = el("div", null, filters.place, count, table, pager);
  const detail = el("div", { hidden: true });
  const columns = rows.shown.map((name) => {
    const [values, places] = rows.fields[name];
    return { name: filters.label(name), order: (row) => places[row],
      number: values.every((value) => value === null || typeof value === "number"),
      text: (row) => shown(values[places[row]]) };
  });
  // The score, or the return where a world has no scores: as many decimals in all rows of a kind.
  const level = (value) => (value === null ? "—"
    : value.toFixed(Math.abs(value) < 10 ? 3 : 1).replace(/^-(0\.0+)$/, "$1").replace("-", "−"));
  columns.push({ name: "final score or return", order: (row) => rows.level[row] ?? -Infinity, number: true,
    text: (row) => level(rows.level[row]) });

  const shown = (value) => (value === null || value === "" ? "—"
    : typeof value === "number" ? number(value) : String(value));

  function sorted(found) {
    const column = columns[sorting.by];
    if (!column) return found;
    const turn = sorting.down ? -1 : 1;
    return found.sort((one, other) => turn * (column.order(one) - column.order(other)) || one - other);
  }

  function head(column, i) {
    const now = sorting.by === i;
    return el("th", { scope: "col", class: column.number ? "num" : null,
      "aria-sort": now ? (sorting.down ? "descending" : "ascending") : null },
    el("button", { type: "button", "data-column": i, onclick: () => {
      Object.assign(sorting, { by: i, down: now && !sorting.down });
      list();
      table.querySelector(`[data-column="${i}"]`).focus();
    } }, column.name, el("span", { "aria-hidden": "true" }, now ? (sorting.down ? " ↓" : " ↑") : "")));
  }

  function list() {
    const found = sorted(filters.passing());
    const some = found.slice(first, first + AT_ONCE);
    count.textContent = `${whole(found.length)} of ${whole(rows.runs.length)} lifetimes`;
    table.replaceChildren(el("table", { class: "runs" },
      el("caption", { class: "visually-hidden" }, "Lifetimes that pass the filters"),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, "run"), columns.map(head))),
      el("tbody", null, some.map((row) => el("tr", null,
        el("th", { scope: "row" }, el("a", { href: `#${rows.runs[row]}` },
          el("code", null, rows.runs[row].slice(0, 12)))),
        columns.map((column) => el("td", { class: column.number ? "num" : null }, column.text(row))))))));
    const step = (words, to, possible) => el("button", { type: "button", disabled: !possible,
      onclick: () => {
        first = to;
        list();
        count.scrollIntoView();
      } }, words);
    pager.hidden = found.length <= AT_ONCE;
    pager.replaceChildren(step("Previous", first - AT_ONCE, first > 0),
      el("span", null, `${whole(first + 1)}–${whole(first + some.length)}`),
      step("Next", first + AT_ONCE, first + AT_ONCE < found.length));
  }

  async function one(run) {
    try {
      const life = (await load(`runs/${run.slice(0, 2)}`))[run];
      if (!life) throw new Error(`no lifetime ${run.slice(0, 12)} in this report`);
      detail.replaceChildren(el("p", null, el("button", { type: "button", class: "plain", onclick: () => {
        location.hash = filters.asText();
      } }, "← All lifetimes")), rulescope.lifetimePage(run, life, names));
    } catch (fault) {
      rulescope.failed(detail, fault);
    }
    overview.hidden = true;
    detail.hidden = false;
    detail.querySelector("h2")?.focus({ preventScroll: true });
    scrollTo(0, 0);
    place.dataset.ready = run;
  }

  function go() {
    const asked = location.hash.slice(1);
    if (/^[0-9a-f]{64}$/.test(asked)) {
      one(asked);
      return;
    }
    filters.fromText(asked);
    detail.hidden = true;
    detail.replaceChildren();
    overview.hidden = false;
    list();
    place.dataset.ready = "list";
  }

  place.replaceChildren(overview, detail);
  addEventListener("hashchange", go);
  go();
})();
