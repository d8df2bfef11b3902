// Figure 1 of the paper, of grid: where the classes have been, and how unsure the model is under class 0's latent.

function uncertaintySection(data) {
  const readout = byId("uncertainty-readout");
  let measured = null,
    at = null;
  const visits = cellMap(byId("visits"), "Visits of the two classes. Arrows go from cell to cell.", drawVisits, point);
  const variance = cellMap(byId("variance"), "Epistemic variance. Arrows go from cell to cell.", drawVariance, point);

  function show(family) {
    byId("uncertainty").hidden = family.scene.kind !== "grid" || data.uncertainty.length === 0;
    if (byId("uncertainty").hidden) return;
    offer(
      byId("uncertainty-seed"),
      data.uncertainty.map((maps, i) => maps.seed ?? i),
    );
    byId("uncertainty-controls").hidden = data.uncertainty.length < 2;
    choose();
  }

  function choose() {
    measured = data.uncertainty[Number(byId("uncertainty-seed").value)];
    measured.logs = measured.variance.map((row) => row.map((value) => (value > 0 ? Math.log10(value) : null)));
    measured.range = extent(measured.logs.flat());
    at = null;
    visits.show(measured);
    variance.show(measured);
    const classes = classColours(data).map((colour, i) => element("span", {}, dot(colour), ` class ${i}`));
    byId("visits-scale").replaceChildren(...classes, element("span", {}, "larger: more visits"));
    byId("variance-scale").replaceChildren(
      element("strong", {}, "variance"),
      ...shadeBar(data.scale, shortNumber(10 ** measured.range[0]), shortNumber(10 ** measured.range[1])),
    );
    const ratio = measured.ratio_of_medians;
    byId("uncertainty-note").textContent =
      typeof ratio === "number"
        ? [
            "Median variance where class 0 never was but class 1 was, over the median where class 0 was:",
            `${shortNumber(ratio)} (${measured.cells_unseen} and ${measured.cells_seen} cells).`,
            "Above 1: the model knows where this class has not been.",
          ].join(" ")
        : "";
    point(null);
  }

  function point(where, aloud = false) {
    at = where;
    visits.mark(at);
    variance.mark(at);
    if (!at) {
      readout.textContent = "";
      return;
    }
    const [i, j] = at,
      side = (2 * measured.bound) / measured.variance.length;
    const centre = (k) => shortNumber(Number((-measured.bound + (k + 0.5) * side).toFixed(3)));
    const visited = `class 0 was here ${shortNumber(measured.red[i][j])} times, class 1 ${shortNumber(measured.blue[i][j])} times`;
    readout.textContent = `x ${centre(i)}, y ${centre(j)}: ${visited}; variance ${shortNumber(measured.variance[i][j])}`;
    if (aloud) say(readout.textContent);
  }

  function drawVisits(svg, place) {
    const [red, blue] = classColours(data);
    for (const [name, colour, shift] of [
      ["blue", blue, -0.16],
      ["red", red, 0.16],
    ]) {
      measured[name].forEach((column, i) =>
        column.forEach((visits, j) => {
          const radius = Math.sqrt(Math.min(visits, 100) / 100) * place.size * 0.34;
          if (visits > 0)
            svg.append(
              shape("circle", {
                cx: place.x(i) + shift * place.size,
                cy: place.y(j),
                r: Math.max(0.6, radius),
                fill: colour,
                opacity: 0.8,
              }),
            );
        }),
      );
    }
  }

  function drawVariance(svg, place) {
    const [low, high] = measured.range;
    measured.logs.forEach((column, i) =>
      column.forEach((value, j) => {
        const share = high > low ? (value - low) / (high - low) : 0.5;
        svg.append(
          shape("rect", {
            x: place.x(i) - place.size / 2,
            y: place.y(j) - place.size / 2,
            width: place.size + 0.5,
            height: place.size + 0.5,
            fill: value === null ? "none" : shade(data.scale, share),
          }),
        );
      }),
    );
  }

  byId("uncertainty-seed").addEventListener("change", choose);
  return { show };
}

/** The colours of class 0 and class 1. */
function classColours(data) {
  const grid = data.families.find((family) => family.scene.kind === "grid");
  return grid.scene.classes.map((kind) => kind.colour);
}
