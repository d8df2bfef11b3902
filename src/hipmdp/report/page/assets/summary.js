// The table of scores after some episodes.

function summarySection(data) {
  function show(family) {
    const { after, rows, measure } = family.summary;
    const several = new Set(rows.map((row) => row.variant)).size > 1;
    const heads = [
      "method",
      ...(several ? ["variant"] : []),
      ...after.map((n) => `after ${n}`),
      "success",
      "seconds",
      "runs",
    ];
    const write = measure === "score" ? (value) => score(value) : (value) => shortNumber(value);
    const cells = rows.map((row, i) => [
      element("span", {}, ...(several ? [] : [swatch(styleOf(data, row, i)), " "]), row.method.replaceAll("_", "-")),
      ...(several ? [row.variant] : []),
      ...row.values.map((value) => estimateCell(value, write)),
      `${Math.round(100 * row.success)} %`,
      shortNumber(row.seconds),
      `${row.seeds} × ${row.instances}`,
    ]);
    const numeric = heads.map((_, i) => i).slice(several ? 2 : 1);
    byId("summary").replaceChildren(
      rows.length ? table(heads, cells, numeric) : "No method has a cell on every instance yet.",
    );
    const label = family.measures[measure];
    byId("summary-note").textContent = [
      `Mean ${label} after so many real episodes, with its 95 % interval where there are several seeds.`,
      "Success: of the last policy; seconds: median per cell; runs: seeds × instances.",
    ].join(" ");
    byId("summary-note").hidden = rows.length === 0;
  }
  return { show };
}

function estimateCell(value, write) {
  const cell = element("td", { class: "number" });
  if (value === null) return cell;
  cell.append(write(value[0]));
  if (value[1] !== null) cell.append(element("small", {}, `${write(value[1])} … ${write(value[2])}`));
  return cell;
}
