// The settings and versions that the cells were made with.

function runsSection() {
  let family = null;

  function show(newFamily) {
    family = newFamily;
    offer(
      byId("run"),
      family.runs.map((_, i) => {
        const mine = family.cells.filter((cell) => cell.run === i);
        const methods = [
          ...new Set(
            mine.map((cell) =>
              [cell.method.replaceAll("_", "-"), ...(cell.variant === "plain" ? [] : [cell.variant])].join(", "),
            ),
          ),
        ];
        return `${methods.join("; ")} (${count(mine.length, "cell")})`;
      }),
    );
    draw();
  }

  function draw() {
    const position = Number(byId("run").value),
      run = family.runs[position];
    const mine = family.cells.filter((cell) => cell.run === position);
    const memory = extent(mine.map((cell) => cell.peak_gb));
    const setup = run.settings.setup ?? {};
    const facts = Object.entries(run.versions).map(([name, version]) => [name, version]);
    if (setup.preset) facts.unshift(["preset", setup.preset]);
    if (mine.some((cell) => cell.peak_gb)) facts.push(["largest memory", `${shortNumber(memory[1])} GB`]);
    byId("versions").replaceChildren(
      table(
        null,
        facts.map(([name, value]) => [element("th", { scope: "row" }, name), String(value)]),
      ),
    );
    byId("settings").replaceChildren(
      table(
        ["setting", "value"],
        flat(run.settings).map(([name, value]) => [name, element("td", { class: "words" }, value)]),
      ),
    );
  }

  byId("run").addEventListener("change", draw);
  return { show };
}

/** Nested settings as [path, text]. */
function flat(value, path = "") {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, inner]) => flat(inner, path ? `${path}.${name}` : name));
  }
  return [[path, value === null ? "–" : Array.isArray(value) ? JSON.stringify(value) : String(value)]];
}
