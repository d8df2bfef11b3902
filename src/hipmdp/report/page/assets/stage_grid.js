// The maps of grid and compass: goal, start, wall, wind, and the path walked so far.

/** The map of one of grid's two classes. */
function gridStage(scene, cell) {
  return mapStage(scene, cell, scene.classes[Math.round(cell.theta[0])] ?? scene.classes[0]);
}

/** The map of one member of compass: its wind and its wall are its own. */
function compassStage(scene, cell) {
  const [angle, windAngle, strength, wall] = cell.theta;
  const wind = scene.points.map(([px, py]) => {
    const length = scene.step * strength * Math.hypot(px - scene.origin, py - scene.origin);
    return [px, py, length * Math.cos(windAngle), length * Math.sin(windAngle)];
  });
  const left = Math.round(wall) === 1;
  return mapStage(scene, cell, {
    caption: `actions turned by ${Math.round((angle * 180) / Math.PI)}°`,
    colour: scene.colours[left ? 1 : 0],
    wall: left ? [[0, 0], [0, scene.bound]] : [[0, 0], [scene.bound, 0]],
    wind,
  });
}

/** A stage is prepared once per cell and width, and returns a function that draws one step into a layer. */
function mapStage(scene, cell, kind) {
  return {
    caption: kind.caption,
    prepare(svg, width) {
      const side = Math.min(width - 64, 440),
        left = Math.round((width - side) / 2) + 12;
      const box = { left, top: 12, right: left + side, bottom: 12 + side };
      const x = linearScale([-scene.bound, scene.bound], [box.left, box.right]);
      const y = linearScale([-scene.bound, scene.bound], [box.bottom, box.top]);
      setSize(svg, width, side + 52);
      drawAxes(svg, box, x, y, { xName: "x", xCount: 4, yCount: 4 });
      const [low, high] = scene.start;
      svg.append(
        shape("rect", {
          x: x(0),
          y: y(scene.bound),
          width: x(scene.bound) - x(0),
          height: y(0) - y(scene.bound),
          fill: scene.goal,
          opacity: 0.2,
        }),
        shape(
          "text",
          { class: "strong", x: x(scene.bound / 2), y: y(scene.bound / 2), "text-anchor": "middle" },
          "goal",
        ),
        shape("rect", {
          x: x(low),
          y: y(high),
          width: x(high) - x(low),
          height: y(low) - y(high),
          fill: "var(--soft)",
          opacity: 0.3,
        }),
        shape("text", { x: x((low + high) / 2), y: y(low) + 14, "text-anchor": "middle" }, "start"),
      );
      for (const [px, py, wx, wy] of kind.wind) svg.append(arrow(x(px), y(py), x(px + wx), y(py + wy), "var(--soft)"));
      const [[ax, ay], [bx, by]] = kind.wall;
      svg.append(
        shape("line", { x1: x(ax), y1: y(ay), x2: x(bx), y2: y(by), stroke: "currentColor", "stroke-width": 6 }),
      );
      const [wallX, wallY, anchor] = bx > ax ? [x(bx) - 4, y(0) + 17, "end"] : [x(0) - 8, y(by) + 16, "end"];
      svg.append(shape("text", { class: "strong", x: wallX, y: wallY, "text-anchor": anchor }, "wall"));

      return (layer, step) => {
        const points = cell.states[0].slice(0, step + 1).map((px, i) => [x(px), y(cell.states[1][i])]);
        layer.append(shape("path", { d: linePath(points), fill: "none", stroke: kind.colour, "stroke-width": 2 }));
        for (const [px, py] of points) layer.append(shape("circle", { cx: px, cy: py, r: 2.8, fill: kind.colour }));
        const [px, py] = points[points.length - 1];
        layer.append(
          shape("circle", {
            class: "agent",
            cx: px,
            cy: py,
            r: 8,
            fill: kind.colour,
            stroke: "var(--paper)",
            "stroke-width": 2,
          }),
        );
      };
    },
    time: () => "",
  };
}

/** A small arrow for the wind. */
function arrow(x1, y1, x2, y2, colour) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1,
    head = Math.min(4, length * 0.6);
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const side = (sign) => `${x2 - head * ux + sign * head * 0.6 * uy} ${y2 - head * uy - sign * head * 0.6 * ux}`;
  return shape("path", {
    d: `M${x1} ${y1}L${x2} ${y2}M${side(1)}L${x2} ${y2}L${side(-1)}`,
    fill: "none",
    stroke: colour,
    "stroke-width": 1,
    opacity: 0.55,
  });
}

function setSize(svg, width, height) {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
}
