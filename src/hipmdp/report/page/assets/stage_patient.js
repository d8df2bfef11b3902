// The chart of a patient: six markers over days on a log axis, and which drugs were given.

function patientStage(scene, cell) {
  const steps = cell.states[0].length,
    day = (i) => i * scene.days;
  return {
    caption: "markers per ml",
    prepare(svg, width, legend) {
      const height = Math.round(Math.min(360, Math.max(250, width * 0.5))),
        strip = 20 * scene.treatments.length;
      const box = { left: 48, top: 14, right: width - 22, bottom: height };
      const low = Math.min(-1, Math.floor(extent(cell.states.flat())[0]));
      const x = linearScale([0, Math.max(scene.last_day, day(steps - 1))], [box.left, box.right]);
      const y = linearScale([low, Math.max(7, extent(cell.states.flat())[1])], [box.bottom, box.top]);
      y.label = (tick) => (tick > 3 || tick < -2 ? `1e${tick}`.replace("-", "−") : shortNumber(10 ** tick, 1));
      y.ticks = (count) => niceTicks(...y.domain, count).filter(Number.isInteger);
      setSize(svg, width, height + strip + 36);
      drawAxes(svg, { ...box }, x, y, {});
      svg.append(
        shape("line", {
          x1: box.left,
          x2: box.right,
          y1: y(scene.healthy),
          y2: y(scene.healthy),
          stroke: scene.healthy_colour,
          "stroke-width": 1.5,
          "stroke-dasharray": "2 4",
        }),
      );
      svg.append(
        shape("text", { x: box.right - 4, y: y(scene.healthy) - 5, "text-anchor": "end" }, "E of a healed patient"),
      );
      svg.append(shape("text", { x: box.left - 14, y: box.bottom + 16, "text-anchor": "end" }, "day"));
      const faint = shape("g", { opacity: 0.25 }),
        strong = revealed(svg, box.left, 0, height + strip + 60);
      const bars = shape("g", { opacity: 0.25 });
      scene.markers.forEach(({ colour }, k) => {
        const d = linePath(cell.states[k].map((value, i) => [x(day(i)), y(value)]));
        for (const group of [faint, strong.group])
          group.append(shape("path", { d, fill: "none", stroke: colour, "stroke-width": 2 }));
      });
      scene.treatments.forEach(({ name, colour, actions }, row) => {
        const top = box.bottom + 26 + 20 * row;
        svg.append(shape("text", { x: box.left - 6, y: top + 12, "text-anchor": "end" }, name));
        svg.append(shape("line", { class: "grid", x1: box.left, x2: box.right, y1: top + 8, y2: top + 8 }));
        for (const [from, to] of stretches(cell.actions, (action) => actions.includes(action))) {
          for (const group of [bars, strong.group])
            group.append(
              shape("rect", {
                x: x(day(from)),
                y: top,
                width: x(day(to)) - x(day(from)),
                height: 15,
                fill: colour,
                stroke: "var(--soft)",
                "stroke-width": 0.6,
              }),
            );
        }
      });
      svg.append(faint, bars, strong.group);
      return (layer, step) => {
        const at = x(day(step));
        strong.until(at);
        layer.append(shape("line", { class: "cursor", x1: at, x2: at, y1: box.top, y2: box.bottom + 26 + strip }));
        scene.markers.forEach(({ colour }, k) =>
          layer.append(
            shape("circle", {
              class: k ? null : "agent",
              cx: at,
              cy: y(cell.states[k][step]),
              r: 4,
              fill: colour,
              stroke: "var(--paper)",
            }),
          ),
        );
        legend.replaceChildren(
          ...scene.markers.map(({ name, colour }, k) =>
            element("span", {}, dot(colour), ` ${name} `, element("strong", {}, shortNumber(10 ** cell.states[k][step], 2))),
          ),
        );
      };
    },
    time: (step) => `day ${step * scene.days}`,
  };
}
