// Learning curves and the error of the model: which runs, which measure, which methods.

function learningSection(data) {
  const curves = lineChart(byId("curves"), "Learning curves. Left and right arrows read off the values.");
  const errors = lineChart(byId("errors"), "Error of the model. Left and right arrows read off the values.");
  const off = new Set();
  let family = null,
    measures = [];

  const group = () => family.groups[Number(byId("group").value)] ?? { series: [], left_out: {}, smooth: 1 };
  const measure = () => measures[Number(byId("measure").value)];

  function show(newFamily) {
    family = newFamily;
    offer(
      byId("group"),
      family.groups.map((g) => g.name),
    );
    byId("group-label").hidden = family.groups.length < 2;
    chooseGroup();
  }

  function chooseGroup() {
    const [main, ...others] = Object.keys(family.measures).filter((name) => name !== "model_error");
    // Some measures make no sense in some families, such as the logarithm of a negative return.
    measures = [main, ...others.filter((name) => group().series.some((series) => series.curves[name]))];
    offer(
      byId("measure"),
      measures.map((name) => family.measures[name]),
    );
    const legend = byId("methods").querySelector("legend");
    byId("methods").replaceChildren(legend, ...group().series.map(toggle));
    byId("methods").hidden = group().series.length === 0;
    draw();
  }

  /** A switch for one series, which is the legend at the same time. */
  function toggle(series, position) {
    const box = element("input", { type: "checkbox" });
    box.checked = !off.has(series.name);
    box.addEventListener("change", () => {
      if (box.checked) off.delete(series.name);
      else off.add(series.name);
      draw();
    });
    return element("label", {}, box, swatch(styleOf(data, series, position)), series.name);
  }

  function lines(what) {
    const all = group().series.map((series, i) => ({
      name: series.name,
      style: styleOf(data, series, i),
      ...series.curves[what],
    }));
    return all.filter((line) => line.mean && !off.has(line.name));
  }

  function draw() {
    const what = measure(),
      label = family.measures[what];
    const running = group().smooth > 1 ? `, mean of ${group().smooth} episodes` : "";
    byId("curves-title").textContent = `${label[0].toUpperCase()}${label.slice(1)}${running}`;
    const share = ["score", "log_score", "learning_score", "success"].includes(what);
    const drawn = lines(what);
    curves.show(drawn, { xName: "real episodes", yName: share ? "" : "return", share });
    byId("errors-figure").hidden = !group().series.some((series) => series.curves.model_error);
    errors.show(lines("model_error"), { xName: "real episodes", log: true });
    byId("learning-note").textContent = note(what);
  }

  function note(what) {
    const { series, left_out: left } = group();
    const sizes = [...new Set(series.map((s) => `${count(s.seeds, "seed")} × ${count(s.instances, "instance")}`))];
    const missing = series.filter((s) => !s.curves[what] && !off.has(s.name)).map((s) => s.name);
    const parts = [];
    if (sizes.length) parts.push(`Means over ${sizes.join("; ")}.`);
    if (series.some((s) => s.seeds > 1)) parts.push("Bands are 95 % intervals.");
    if (series.some((s) => s.seeds === 1)) parts.push("A single seed has no interval.");
    if (what.includes("score")) parts.push("Score 1: the best return known, 0: random.");
    if (missing.length) parts.push(`Not measured for ${missing.join(", ")}.`);
    const cells = Object.entries(left).map(([name, n]) => `${name} (${n})`);
    if (cells.length)
      parts.push(`Cells left out, as their seeds lack a cell on another instance: ${cells.join(", ")}.`);
    return parts.join(" ");
  }

  byId("group").addEventListener("change", chooseGroup);
  byId("measure").addEventListener("change", draw);
  return { show };
}

/** "1 seed", "5 seeds". */
function count(n, what) {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}
