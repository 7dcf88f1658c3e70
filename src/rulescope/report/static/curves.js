"use strict";
// The learning curves of an assay, with controls for condition, measure, arms and seeds.
(() => {
  const { el, load, select, toggle } = rulescope;
  const place = document.getElementById("curves");
  const index = JSON.parse(document.getElementById("curves-index").textContent);
  if (!index.panels.length) {
    place.replaceChildren(el("p", { class: "empty" }, "The store has no lifetime of this assay."));
    return;
  }
  const axes = Object.keys(index.axes);
  const styles = new Map(index.arms.map((style) => [style.arm, style]));
  const state = { panel: index.first, measure: null, seeds: "middle", hidden: new Set(),
    logX: false, logY: false };
  const controls = el("div", { class: "controls" });
  const legend = el("div", { class: "arms", role: "group", "aria-label": "Arms" });
  const canvas = el("div");
  const values = el("div");
  const table = rulescope.asTable(values);
  let panel = null, draw = null;

  // The panel with the chosen label that has most other labels in common with the present one.
  function towards(axis, label) {
    const wanted = [...index.panels[state.panel]];
    wanted[axis] = label;
    const likeness = (labels) => labels.reduce((sum, one, i) =>
      sum + (one === wanted[i] ? (i === axis ? 100 : 1) : 0), 0);
    let best = 0;
    index.panels.forEach((labels, i) => {
      if (likeness(labels) > likeness(index.panels[best])) best = i;
    });
    return best;
  }

  function show() {
    const now = index.panels[state.panel];
    const fields = axes.map((axis, i) => select(axis, index.axes[axis].map((label) => [label, label]),
      now[i], (label) => open(towards(i, label))));
    const seeds = [...new Set(panel.arms.flatMap((arm) => arm.seeds.map((one) => one.seed)))]
      .sort((one, other) => one - other);
    fields.push(select("measure", panel.measures.map((name) => [name, index.measures[name]]),
      state.measure, (name) => change({ measure: name })));
    fields.push(select("seeds", [["middle", "trimmed mean and range"], ["each", "each seed"],
      ...seeds.map((seed) => [`s${seed}`, `seed ${seed}`])], state.seeds,
    (seeds_) => change({ seeds: seeds_ })));
    fields.push(rulescope.axes(state, change));
    controls.replaceChildren(...fields);
    legend.replaceChildren(...panel.arms.map(({ arm, seeds: runs }) => {
      const style = styles.get(arm);
      return toggle([rulescope.swatch(style), el("span", null, style.name),
        el("small", null, `n = ${runs.length}`)], !state.hidden.has(arm), (on) => {
        state.hidden[on ? "delete" : "add"](arm);
        change({});
      });
    }));
  }

  function lines() {
    const found = [];
    for (const one of panel.arms) {
      if (state.hidden.has(one.arm)) continue;
      const style = styles.get(one.arm);
      const runs = one.seeds.filter((seed) => seed.values[state.measure]
        && (!state.seeds.startsWith("s") || state.seeds === `s${seed.seed}`));
      if (state.seeds === "middle" && one.mid[state.measure] && runs.length) {
        const columns = runs.map((seed) => seed.values[state.measure]);
        const over = (pick) => columns[0].map((_, i) => {
          const there = columns.map((column) => column[i]).filter((value) => value !== null);
          return there.length ? pick(...there) : null;
        });
        found.push({ ...style, x: panel.steps[runs[0].steps], y: one.mid[state.measure],
          low: over(Math.min), high: over(Math.max) });
        continue;
      }
      for (const seed of runs)
        found.push({ ...style, name: `${style.name}, seed ${seed.seed}`, run: seed.run,
          x: panel.steps[seed.steps], y: seed.values[state.measure], faint: runs.length > 1 });
    }
    return found;
  }

  function change(asked) {
    Object.assign(state, asked);
    const found = lines();
    const options = { lines: found, x: "interactions", y: index.measures[state.measure],
      logX: state.logX, logY: state.logY, change: panel.change,
      include: state.measure.endsWith("score") ? [0, 1] : [] };
    if (draw) draw(options);
    else draw = rulescope.chart(canvas, options);
    values.replaceChildren(rulescope.tabulate(found, index.measures[state.measure]));
  }

  async function open(turn) {
    try {
      panel = await load(`curves/${index.page}-${turn}`);
    } catch (fault) {
      rulescope.failed(canvas, fault);
      draw = null;
      return;
    }
    state.panel = turn;
    if (!panel.measures.includes(state.measure)) state.measure = panel.measure;
    const seeds = panel.arms.flatMap((arm) => arm.seeds.map((one) => `s${one.seed}`));
    if (state.seeds.startsWith("s") && !seeds.includes(state.seeds)) state.seeds = "middle";
    const focused = [...controls.querySelectorAll("select")].indexOf(document.activeElement);
    show();
    change({});
    if (focused >= 0) controls.querySelectorAll("select")[focused].focus();
    place.dataset.ready = String(turn);
  }

  place.replaceChildren(controls, legend, canvas, table);
  open(index.first);
})();
