"use strict";
// Filters over the rows of all lifetimes. A field is [values, places]: its distinct values, and for
// each row which of them it has.
rulescope.filters = (rows, changed) => {
  const { el, select, field: labelled } = rulescope;
  const chosen = new Map(); // field -> value, as text; "assay" and "" (the search) among them
  const fields = new Map(Object.entries(rows.fields));
  fields.set("assay", [rows.pages, null]);
  const usual = ["assay", ...rows.shown].filter((name) => fields.get(name)[0].length > 1);
  const extra = new Set();
  const place = el("form", { class: "controls", role: "search", "aria-label": "Lifetimes",
    onsubmit: (event) => event.preventDefault() });

  const words = (value) => (value === null ? "none" : value === "" ? "none" : String(value));
  const label = (name) => name.replaceAll("_", " ");

  function has(name, row, wanted) {
    const [values, places] = fields.get(name);
    if (name === "assay") return rows.assays[row].some((page) => rows.pages[page] === wanted);
    return words(values[places[row]]) === wanted;
  }

  function found(row, text) {
    if (rows.runs[row].startsWith(text)) return true;
    return rows.shown.some((name) => {
      const [values, places] = fields.get(name);
      return words(values[places[row]]).toLowerCase().includes(text);
    });
  }

  // The rows that pass every filter but, if given, that of one field.
  function passing(but) {
    const asked = [...chosen].filter(([name]) => name !== but && name !== "");
    const text = but === "" ? "" : (chosen.get("") ?? "").toLowerCase();
    return rows.runs.map((_, row) => row).filter((row) =>
      asked.every(([name, wanted]) => has(name, row, wanted)) && (!text || found(row, text)));
  }

  function options(name) {
    const [values, places] = fields.get(name);
    const counts = new Map(values.map((value) => [words(value), 0]));
    // An address may name a value that no lifetime has.
    if (chosen.has(name) && !counts.has(chosen.get(name))) counts.set(chosen.get(name), 0);
    for (const row of passing(name)) {
      const theirs = name === "assay"
        ? rows.assays[row].map((page) => rows.pages[page]) : [words(values[places[row]])];
      for (const one of theirs) counts.set(one, counts.get(one) + 1);
    }
    return [["", "any"], ...[...counts].filter(([value, count]) => count || chosen.get(name) === value)
      .map(([value, count]) => [value, `${value} (${count})`])];
  }

  function put(name, value) {
    if (value === "") chosen.delete(name);
    else chosen.set(name, value);
    show();
    changed();
  }

  function field(name) {
    const made = select(label(name), options(name), chosen.get(name) ?? "", (value) => put(name, value));
    made.querySelector("select").dataset.field = name;
    return made;
  }

  function show() {
    const focused = document.activeElement?.dataset?.field;
    const search = el("input", { type: "search", value: chosen.get("") ?? "", "data-field": "text",
      placeholder: "id, learner, world …", oninput: (event) => {
        const value = event.target.value.trim();
        if (value) chosen.set("", value);
        else chosen.delete("");
        changed();
      }, onchange: show });
    const left = [...fields.keys()].filter((name) => !usual.includes(name) && !extra.has(name)
      && fields.get(name)[0].length > 1).sort();
    const more = left.length ? select("more fields", [["", "choose …"],
      ...left.map((name) => [name, label(name)])], "", (name) => {
      extra.add(name);
      show();
      place.querySelector(`[data-field="${CSS.escape(name)}"]`).focus();
    }) : null;
    const clear = chosen.size ? el("button", { type: "button", class: "plain", onclick: () => {
      chosen.clear();
      show();
      changed();
      place.querySelector("input").focus();
    } }, "Clear all") : null;
    place.replaceChildren(...[labelled("search", search, "wide"),
      ...[...usual, ...extra].map(field), more, clear].filter(Boolean));
    if (focused) place.querySelector(`[data-field="${CSS.escape(focused)}"]`)?.focus();
  }

  // Filters as the end of an address: assay=E1&learner=disco
  function asText() {
    return new URLSearchParams([...chosen].map(([name, value]) => [name || "text", value])).toString();
  }

  function fromText(text) {
    chosen.clear();
    for (const [name, value] of new URLSearchParams(text)) {
      const key = name === "text" ? "" : name;
      if (key !== "" && !fields.has(key)) continue;
      chosen.set(key, value);
      if (key !== "" && !usual.includes(key)) extra.add(key);
    }
    show();
  }

  show();
  return { place, passing: () => passing(null), words, label, asText, fromText };
};
