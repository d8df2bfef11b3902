// The two-link pendulum: lengths from θ, thickness from the masses, the goal line, the trail of its foot.

const TRAIL = 40;

function acrobotStage(scene, cell, data) {
  const parameter = (name) => cell.theta[scene.parameters.indexOf(name)] ?? 1;
  const [l1, l2, m1, m2] = ["l1", "l2", "m1", "m2"].map(parameter);
  const [blue, orange, green, , red, sky] = data.palette;
  return {
    caption: `l1 ${shortNumber(l1)}, l2 ${shortNumber(l2)}, m1 ${shortNumber(m1)}, m2 ${shortNumber(m2)}`,
    prepare(svg, width) {
      const side = Math.min(width, 440),
        reach = (l1 + l2) * 1.12,
        left = (width - side) / 2;
      const x = linearScale([-reach, reach], [left, left + side]);
      const y = linearScale([-reach, reach], [side, 0]);
      setSize(svg, width, side);
      svg.append(
        shape("line", {
          x1: left,
          x2: left + side,
          y1: y(l1),
          y2: y(l1),
          stroke: green,
          "stroke-width": 2,
          "stroke-dasharray": "7 5",
        }),
        shape("text", { class: "strong", x: left + 8, y: y(l1) - 7 }, "goal line"),
      );
      // Angles are from hanging down; the foot adds its own to the elbow's.
      const elbowAt = (i) => [l1 * Math.sin(cell.states[0][i]), -l1 * Math.cos(cell.states[0][i])];
      const footAt = (i) => {
        const [ex, ey] = elbowAt(i),
          angle = cell.states[0][i] + cell.states[1][i];
        return [ex + l2 * Math.sin(angle), ey - l2 * Math.cos(angle)];
      };
      const pixel = ([px, py]) => [x(px), y(py)];

      return (layer, step) => {
        for (let i = Math.max(1, step - TRAIL); i <= step; i++) {
          const fade = (0.75 * (i - step + TRAIL)) / TRAIL;
          layer.append(
            shape("path", {
              d: linePath([pixel(footAt(i - 1)), pixel(footAt(i))]),
              stroke: orange,
              "stroke-width": 2,
              opacity: fade,
              fill: "none",
            }),
          );
        }
        const [elbow, foot, hinge] = [pixel(elbowAt(step)), pixel(footAt(step)), pixel([0, 0])];
        const link = (from, to, mass, colour) =>
          shape("line", {
            x1: from[0],
            y1: from[1],
            x2: to[0],
            y2: to[1],
            stroke: colour,
            "stroke-width": 7 * Math.sqrt(mass) + 2,
            "stroke-linecap": "round",
          });
        layer.append(link(hinge, elbow, m1, blue), link(elbow, foot, m2, sky));
        for (const [px, py] of [hinge, elbow])
          layer.append(shape("circle", { cx: px, cy: py, r: 4.5, fill: "var(--ink)", stroke: "var(--paper)" }));
        layer.append(
          shape("circle", { class: "agent", cx: foot[0], cy: foot[1], r: 7, fill: orange, stroke: "var(--ink)" }),
        );
        const torque = step > 0 ? Math.sign(cell.actions[step - 1] - 1) : 0;
        if (torque) layer.append(turn(elbow[0], elbow[1], torque, red));
      };
    },
    time: (step) => `${(step * scene.seconds).toFixed(1)} s`,
  };
}

/** A round arrow about a joint: against the clock for a positive torque. */
function turn(x, y, torque, colour) {
  const r = 17,
    s = -torque;
  // Three quarters of a circle from the top, and a head at its end.
  const end = [x - s * r, y];
  const path = `M${x} ${y - r}A${r} ${r} 0 1 ${s > 0 ? 1 : 0} ${end[0]} ${end[1]}`;
  const head = `M${end[0] - 6} ${end[1] + 6}L${end[0]} ${end[1] - 2}L${end[0] + 6} ${end[1] + 6}`;
  return shape("path", {
    d: path + head,
    fill: "none",
    stroke: colour,
    "stroke-width": 2.5,
    "stroke-linecap": "round",
  });
}
