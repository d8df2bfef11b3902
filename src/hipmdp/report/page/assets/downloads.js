// The numbers behind the charts as CSV, made from the data inside the page.

function downloadsSection(data) {
  byId("download-curves").addEventListener("click", () => save("curves.csv", curveRows(data)));
  byId("download-episodes").addEventListener("click", () => save("episodes.csv", episodeRows(data)));
}

function curveRows(data) {
  const rows = [["family", "runs", "method", "variant", "what", "after_episodes", "mean", "low", "high"]];
  for (const family of data.families)
    for (const group of family.groups)
      for (const series of group.series) {
        for (const [what, curve] of Object.entries(series.curves)) {
          curve.mean.forEach((mean, i) =>
            rows.push([
              family.name,
              group.name,
              series.method,
              series.variant,
              what,
              curve.first + i,
              mean,
              curve.low[i],
              curve.high[i],
            ]),
          );
        }
      }
  return rows;
}

function episodeRows(data) {
  const names = [...new Set(data.families.flatMap((family) => Object.keys(family.cells[0].metrics)))];
  const rows = [["family", "method", "variant", "instance", "seed", "after_episodes", ...names]];
  for (const family of data.families)
    for (const cell of family.cells) {
      cell.metrics.seconds.forEach((_, i) => {
        const values = names.map((name) => cell.metrics[name]?.[i]);
        rows.push([family.name, cell.method, cell.variant, cell.instance, cell.seed, i + 1, ...values]);
      });
    }
  return rows;
}

/** Text with commas, quotes or line ends is quoted; text that a spreadsheet would run as a formula is kept text. */
function csvField(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function save(name, rows) {
  const text = `${rows.map((row) => row.map(csvField).join(",")).join("\n")}\n`;
  const link = element("a", { href: `data:text/csv;charset=utf-8,${encodeURIComponent(text)}`, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}
