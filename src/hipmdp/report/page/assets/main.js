// Reads the data, and shows one family at a time.

function start() {
  const data = JSON.parse(byId("data").textContent);
  const sections = [
    learningSection(data),
    summarySection(data),
    playerSection(data),
    latentsSection(data),
    uncertaintySection(data),
    runsSection(),
  ];
  downloadsSection(data);
  const cells = data.families.reduce((sum, family) => sum + family.cells.length, 0);
  byId("study-line").textContent = `${data.studies.join(", ")}: ${count(cells, "cell")} · written by hipmdp ${data.version}`;
  const show = (family) => sections.forEach((section) => section.show(family));
  const choices = data.families.map((family, i) => {
    const radio = element("input", { type: "radio", name: "family", checked: i === 0 });
    radio.addEventListener("change", () => show(family));
    return element("label", {}, radio, family.name);
  });
  byId("families").append(...choices);
  show(data.families[0]);
}

start();
