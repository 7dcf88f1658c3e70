"use strict";
// The table of all measures: sorted by the button in a heading, narrowed to a rule or an axis. Rows
// without a number stay at the end; rows that are equal stay in the order of the page.
(() => {
  const { el, select, whole } = rulescope;
  const table = document.getElementById("atlas-rows");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const chosen = { rule: "", axis: "" };
  const sorting = { by: null, down: false };
  const count = el("p", { class: "count", role: "status" });

  const entry = (row, i) => row.cells[i].dataset.sort ?? row.cells[i].textContent.trim();

  function order(one, other) {
    const { by, down } = sorting;
    const [first, second] = [entry(one, by), entry(other, by)];
    if (first === "" || second === "") return (first === "") - (second === "");
    const difference = "number" in heads[by].dataset
      ? Number(first) - Number(second) : first.localeCompare(second, "en");
    return down ? -difference : difference;
  }

  function show() {
    const sorted = sorting.by === null ? rows : [...rows].sort(order);
    body.replaceChildren(...sorted);
    for (const row of rows) {
      row.hidden = Object.entries(chosen).some(([name, value]) => value && row.dataset[name] !== value);
    }
    heads.forEach((head, i) => {
      const arrow = head.querySelector("[aria-hidden]");
      if (!arrow) return;
      const now = sorting.by === i;
      arrow.textContent = now ? (sorting.down ? " ↓" : " ↑") : "";
      if (now) head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    count.textContent = `${whole(rows.filter((row) => !row.hidden).length)} of ${whole(rows.length)} rows`;
  }

  heads.forEach((head, i) => {
    if (head.tagName !== "TH") return;
    const number = "number" in head.dataset;
    // Numbers begin with the largest, words with A.
    head.replaceChildren(el("button", { type: "button", onclick: () => {
      Object.assign(sorting, { by: i, down: sorting.by === i ? !sorting.down : number });
      show();
    } }, head.textContent, el("span", { "aria-hidden": "true" })));
  });

  const narrow = (name) => {
    const values = [...new Set(rows.map((row) => row.dataset[name]))];
    return select(name, [["", "any"], ...values.map((value) => [value, value])], "", (value) => {
      chosen[name] = value;
      show();
    });
  };
  document.getElementById("atlas-controls").replaceChildren(
    el("form", { class: "controls", "aria-label": "Rows of the table",
      onsubmit: (event) => event.preventDefault() }, narrow("rule"), narrow("axis")), count);
  show();
})();
