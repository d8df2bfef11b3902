// Any other family: every state dimension over time, and below it a strip with one row per action.

const ROW = 84,
  LANE = 14;

function chartStage(scene, cell, data) {
  const steps = cell.states[0].length,
    colour = data.palette[0],
    accent = data.palette[4];
  const names = cell.states.map((_, k) => scene.states[k] ?? `state ${k + 1}`);
  const taken = [...new Set(cell.actions)].sort((a, b) => a - b);
  return {
    caption: "every state dimension over time",
    prepare(svg, width) {
      const left = 56,
        right = width - 14,
        stripTop = cell.states.length * ROW + 28,
        bottom = stripTop + taken.length * LANE;
      const x = linearScale([0, Math.max(1, steps - 1)], [left, right]);
      setSize(svg, width, bottom + 40);
      const strong = revealed(svg, left, 0, bottom + 10);
      const faint = shape("g", { opacity: 0.3 });
      const scales = cell.states.map((values, k) => {
        const top = k * ROW + 24,
          y = linearScale(airy(extent(values), 0.08), [k * ROW + ROW, top]);
        const box = { left, top, right, bottom: k * ROW + ROW };
        drawAxes(svg, box, x, y, { xTicks: [], yCount: 2 });
        svg.append(shape("text", { class: "strong", x: left, y: top - 7 }, names[k]));
        const d = linePath(values.map((value, i) => [x(i), value === null ? null : y(value)]));
        for (const group of [faint, strong.group])
          group.append(shape("path", { d, fill: "none", stroke: colour, "stroke-width": 2 }));
        return y;
      });
      svg.append(shape("text", { class: "strong", x: left, y: stripTop - 5 }, "action"));
      taken.forEach((action, row) => {
        const top = stripTop + row * LANE;
        const name = String(scene.actions[action] ?? action);
        svg.append(
          shape(
            "text",
            { x: left - 6, y: top + 11, "text-anchor": "end" },
            name.length > 8 ? `${name.slice(0, 7)}…` : name,
          ),
        );
        for (const [from, to] of stretches(cell.actions, (value) => value === action)) {
          for (const group of [faint, strong.group])
            group.append(
              shape("rect", { x: x(from), y: top + 2, width: x(to) - x(from), height: LANE - 4, fill: accent }),
            );
        }
      });
      svg.append(faint, strong.group);
      for (const tick of x.ticks(Math.round(width / 80)).filter(Number.isInteger))
        svg.append(shape("text", { x: x(tick), y: bottom + 15, "text-anchor": "middle" }, String(tick)));
      svg.append(shape("text", { x: (left + right) / 2, y: bottom + 32, "text-anchor": "middle" }, "step"));
      return (layer, step) => {
        strong.until(x(step));
        layer.append(shape("line", { class: "cursor", x1: x(step), x2: x(step), y1: 10, y2: bottom }));
        scales.forEach((y, k) => {
          const value = cell.states[k][step];
          if (value !== null)
            layer.append(
              shape("circle", {
                class: k ? null : "agent",
                cx: x(step),
                cy: y(value),
                r: 4,
                fill: colour,
                stroke: "var(--paper)",
              }),
            );
        });
      };
    },
    time: () => "",
  };
}
