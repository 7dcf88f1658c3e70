"use strict";
// One lifetime: learning curve, carriers, evaluations, lineage and record.
rulescope.lifetimePage = (run, life, names) => {
  const { el, number, whole } = rulescope;
  const style = { colours: "--light:var(--accent);--dark:var(--accent)", dashes: null };
  const log = life.log, manifest = life.manifest;
  const x = log.steps ?? log.iteration ?? [];

  function chart(column, name) {
    const place = el("div"), lines = [{ ...style, name, x, y: log[column] }];
    let options = { lines, x: "interactions", y: name, change: life.change, logX: false, logY: false,
      include: column.endsWith("score") ? [0, 1] : [] }, draw = null;
    // It has no width before it is in the page.
    requestAnimationFrame(() => {
      draw = rulescope.chart(place, options);
    });
    const change = (asked) => {
      options = { ...options, ...asked };
      draw?.(options);
    };
    return el("div", { class: "charted" }, place,
      el("div", { class: "controls" }, rulescope.axes(options, change, `Axes: ${name}`)),
      rulescope.asTable(rulescope.tabulate(lines, name)));
  }

  function part(title, ...content) {
    return el("section", null, el("h3", null, title), ...content);
  }

  const shown = (value) => {
    if (value === null) return "—";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value === "number") return number(value);
    return String(value);
  };

  function facts(pairs) {
    return el("dl", { class: "facts" }, pairs.map(([name, value]) =>
      [el("dt", null, name), el("dd", null, value)]));
  }

  function relatives(title, found, none) {
    const items = found.map(([id, here, words]) => el("li", null,
      here ? el("a", { href: `#${id}` }, el("code", null, id.slice(0, 12))) : el("code", null, id.slice(0, 12)),
      ` ${words}`));
    return el("div", null, el("h4", null, title),
      items.length ? el("ul", { class: "kin" }, items) : el("p", { class: "faint" }, none));
  }

  function lineage() {
    return el("div", { class: "lineage" },
      relatives("Donors", life.donors, "none: it starts with a new learner"),
      el("div", { class: "self", "aria-hidden": "true" }, el("code", null, run.slice(0, 12))),
      relatives("Recipients", life.recipients, "none in this store"));
  }

  // The carriers that have no chart, with their norms at the end.
  function unlogged() {
    if (!life.carriers.length) return "This learner has no carriers.";
    const held = new Set(life.terminal.map(([name]) => name.split("/")[0]));
    const left = life.carriers.filter(([, logged]) => !logged);
    if (!left.length) return "Every carrier was logged over time.";
    const texts = left.map(([name, , norm]) => (norm !== null ? `${name} (norm at the end ${number(norm)})`
      : held.has(name) ? name : `${name} (not recorded)`));
    const rest = left.length < life.carriers.length ? "Other carriers" : "Carriers";
    return `${rest}, not logged over time: ${texts.join(", ")}.`;
  }

  function carriers() {
    const known = Object.keys(names.carriers).filter((name) => log[name]);
    const charts = known.map((name) => el("div", { class: "half" }, chart(name, names.carriers[name])));
    const table = life.terminal.length ? listing("State at the end",
      ["Array", "Shape", "Norm"], life.terminal.map(([name, shape, norm]) =>
        [el("code", null, name), shape.length ? shape.join(" × ") : "1", number(norm)])) : null;
    return part("Carriers", charts.length ? el("div", { class: "halves" }, charts) : null,
      el("p", { class: "note unlogged" }, unlogged()), table);
  }

  function evaluations() {
    if (!life.evaluations.length) return null;
    return part("Evaluation", el("p", { class: "note" },
      "The frozen policy plays new games after the end of the lifetime."),
    listing("Reward per interaction", ["Policy", "Games", "Steps of each", "Reward"],
      life.evaluations.map(([policy, lanes, steps, rate]) => [policy, whole(lanes), whole(steps), number(rate)])));
  }

  function listing(caption, heads, rows) {
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", null, el("caption", null, caption),
        el("thead", null, el("tr", null, heads.map((text, i) =>
          el("th", { scope: "col", class: i ? "num" : null }, text)))),
        el("tbody", null, rows.map(([first, ...rest]) => el("tr", null,
          el("th", { scope: "row" }, first), rest.map((text) => el("td", { class: "num" }, text)))))));
  }

  function others() {
    const left = Object.keys(log).filter((name) => !["iteration", "steps", life.measure].includes(name)
      && !(name in names.carriers));
    if (!left.length) return null;
    const place = el("div");
    const open = (name) => place.replaceChildren(chart(name, name.replaceAll("_", " ")));
    const choice = rulescope.select("column", left.map((name) => [name, name.replaceAll("_", " ")]),
      left[0], open);
    const box = el("details", null, el("summary", null, `All other columns (${left.length})`), choice, place);
    box.addEventListener("toggle", () => {
      if (box.open && !place.firstChild) open(left[0]);
    });
    return box;
  }

  function recorded() {
    const plain = (kind, identity) => Object.entries(identity).map(([name, value]) =>
      [`${kind}: ${names.identities[name] ?? name}`, shown(value)]);
    const whole_ = (name, value) => el("details", null, el("summary", null, name),
      el("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
    return part("Record",
      facts([
        ["id", el("code", { class: "hash" }, manifest.id)],
        ["science hash", el("code", { class: "hash" }, manifest.science_hash)],
        ["started", manifest.started],
        ["seconds", number(manifest.seconds)],
        ...(manifest.rule ? [["rule", manifest.rule.name],
          ["rule digest", el("code", { class: "hash" }, manifest.rule.digest)]] : []),
        ...plain("source", manifest.source),
        ...plain("runtime", manifest.runtime),
        ...Object.entries(manifest.payload).map(([name, hash]) =>
          [name, el("code", { class: "hash" }, hash)]),
      ]),
      whole_("Specification, all defaults written out", manifest.spec),
      whole_("Canonical form, whose sha256 is the id", JSON.parse(manifest.canonical)));
  }

  const cells = life.cells.map(([name, href, words]) =>
    el("li", null, el("a", { href }, name), ` ${words}`));
  const title = names.headlines[life.measure] ?? life.measure;
  const thinned = life.every > 1 ? el("p", { class: "note" },
    `One of ${life.every} rows of the log is drawn.`) : null;
  return el("article", { class: "detail" },
    el("h2", { tabindex: "-1" }, `${life.title}, seed ${whole(life.seed)}`),
    cells.length ? el("ul", { class: "places" }, cells) : null,
    log[life.measure] ? part("Learning curve", chart(life.measure, title), thinned) : null,
    carriers(), others(), evaluations(), part("Lineage", lineage()), recorded());
};
