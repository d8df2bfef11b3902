// The map of latents: one panel per seed, as every seed trains a model of its own.

function latentsSection(data) {
  let family = null,
    choices = [];

  function show(newFamily) {
    family = newFamily;
    const named = new Map();
    for (const map of family.latents) {
      const name = [
        map.method.replaceAll("_", "-"),
        ...(map.variant === "plain" ? [] : [map.variant]),
        ...(map.episodes > 50 ? ["long run"] : []),
      ].join(", ");
      named.set(name, [...(named.get(name) ?? []), map]);
    }
    choices = [...named.values()];
    byId("latents").hidden = choices.length === 0;
    offer(byId("latents-method"), [...named.keys()]);
    // A parameter that is the same in all instances explains nothing.
    const varied = family.scene.parameters
      .map((name, i) => ({ name, i }))
      .filter(({ i }) => new Set(family.cells.map((cell) => cell.theta[i])).size > 1);
    const offered = varied.length ? varied : family.scene.parameters.map((name, i) => ({ name, i }));
    offer(
      byId("latents-parameter"),
      offered.map(({ name }) => (family.scene.meanings[name] ? `${name}: ${family.scene.meanings[name]}` : name)),
    );
    family.offeredParameters = offered;
    draw();
  }

  function draw() {
    if (!choices.length) return;
    const maps = choices[Number(byId("latents-method").value)];
    const parameter = family.offeredParameters[Number(byId("latents-parameter").value)];
    const [low, high] = extent(maps.flatMap((map) => map.cells.map((cell) => family.cells[cell].theta[parameter?.i])));
    byId("latents-scale").replaceChildren(
      ...(parameter ? [element("strong", {}, parameter.name), ...shadeBar(data.scale, shortNumber(low), shortNumber(high))] : []),
    );
    const reach = Math.max(...maps.flatMap((map) => map.places.flat().map(Math.abs)), 1e-9) * 1.15;
    byId("latents-maps").replaceChildren(...maps.map((map) => panel(map, parameter, [low, high], reach)));
    const plane =
      maps[0].size > 2
        ? `The first two principal components of ${maps[0].size} numbers, over the cells of one seed.`
        : "The latent itself.";
    byId("latents-note").textContent = [
      "Each dot is the w_b of one instance after its last episode.",
      plane,
      "Every seed trains its own model, so seeds have axes of their own.",
    ].join(" ");
  }

  function panel(map, parameter, [low, high], reach) {
    const figure = element("figure", {}, element("figcaption", {}, `seed ${map.seed}`));
    const host = element("div", { class: "chart" }),
      readout = element("p", { class: "readout" }, correlation(map, parameter));
    const svg = shape("svg", {
      tabindex: 0,
      role: "img",
      "aria-label": `Latents of seed ${map.seed}. Arrows go from instance to instance.`,
    });
    host.append(svg);
    figure.append(host, readout);
    const values = map.cells.map((cell) => family.cells[cell].theta[parameter?.i] ?? 0);
    let dots = [],
      chosen = null;

    keepDrawn(host, (width) => {
      const height = Math.round(Math.min(width, 320) * 0.95);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      svg.replaceChildren();
      const box = { left: 38, top: 22, right: width - 10, bottom: height - 40 };
      const half = [(box.right - box.left) / 2, (box.bottom - box.top) / 2];
      // The same length is as many pixels on both axes and in all panels.
      const unit = Math.min(...half) / reach;
      const x = linearScale([-half[0] / unit, half[0] / unit], [box.left, box.right]);
      const y = linearScale([-half[1] / unit, half[1] / unit], [box.bottom, box.top]);
      const name = (i) =>
        map.shares
          ? `${width < 220 ? "PC" : "component"} ${i + 1} (${Math.round(100 * map.shares[i])} %)`
          : `w ${i + 1}`;
      drawAxes(svg, box, x, y, {
        xName: name(0),
        yName: name(1),
        xCount: width < 220 ? 2 : 4,
        yCount: width < 220 ? 2 : 4,
      });
      dots = map.places.map(([px, py], i) => {
        const share = high > low ? (values[i] - low) / (high - low) : 0.5;
        return shape("circle", {
          cx: x(px),
          cy: y(py),
          r: 6.5,
          fill: shade(data.scale, share),
          stroke: "currentColor",
          "stroke-width": 1,
        });
      });
      svg.append(...dots);
      if (chosen !== null) choose(chosen);
    });

    function choose(i, aloud = false) {
      chosen = i;
      dots.forEach((dot, j) => {
        dot.setAttribute("r", j === i ? 9 : 6.5);
        dot.setAttribute("stroke-width", j === i ? 3 : 1);
      });
      const cell = i === null ? null : family.cells[map.cells[i]];
      readout.textContent = cell
        ? `${cell.instance}: ${parameter ? `${parameter.name} ${shortNumber(values[i])}` : ""}`
        : correlation(map, parameter);
      if (aloud && cell) say(readout.textContent);
    }

    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const distances = dots.map((dot) =>
        Math.hypot(
          Number(dot.getAttribute("cx")) - event.clientX + box.left,
          Number(dot.getAttribute("cy")) - event.clientY + box.top,
        ),
      );
      const nearest = distances.indexOf(Math.min(...distances));
      choose(distances[nearest] < 40 ? nearest : null);
    });
    svg.addEventListener("pointerleave", () => choose(null));
    svg.addEventListener("focus", () => choose(chosen ?? 0, true));
    svg.addEventListener("blur", () => choose(null));
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      choose(((chosen ?? 0) + move + dots.length) % dots.length, true);
    });
    return figure;
  }

  /** How much the chosen parameter goes along with each axis; of fewer than five dots that says nothing. */
  function correlation(map, parameter) {
    if (!parameter || map.cells.length < 5) return "";
    const values = map.cells.map((cell) => family.cells[cell].theta[parameter.i]);
    const parts = [0, 1].map((axis) =>
      pearson(
        values,
        map.places.map((place) => place[axis]),
      ),
    );
    return `r = ${score(parts[0])} along, ${score(parts[1])} across`;
  }

  byId("latents-method").addEventListener("change", draw);
  byId("latents-parameter").addEventListener("change", draw);
  return { show };
}

/** Pearson's correlation; null where one side does not vary. */
function pearson(first, second) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [a, b] = [mean(first), mean(second)];
  let both = 0,
    one = 0,
    two = 0;
  first.forEach((value, i) => {
    both += (value - a) * (second[i] - b);
    one += (value - a) ** 2;
    two += (second[i] - b) ** 2;
  });
  return one > 0 && two > 0 ? both / Math.sqrt(one * two) : null;
}
