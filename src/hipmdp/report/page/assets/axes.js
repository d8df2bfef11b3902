// The frame of a chart: grid lines, numbers and names of the two axes.

/** Draw the frame into `svg`; `box` is {left, top, right, bottom} in pixels, `x` and `y` are scales. */
function drawAxes(svg, box, x, y, { xName = "", yName = "", xCount, yCount, xTicks } = {}) {
  const width = box.right - box.left,
    height = box.bottom - box.top;
  const group = shape("g", { "aria-hidden": "true" });
  for (const tick of y.ticks(yCount ?? Math.max(2, Math.round(height / 45)))) {
    const at = y(tick);
    group.append(
      shape("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }),
      shape("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" }, y.label(tick)),
    );
  }
  for (const tick of xTicks ?? x.ticks(xCount ?? Math.max(2, Math.round(width / 60)))) {
    const at = x(tick);
    group.append(
      shape("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }),
      shape("text", { x: at, y: box.bottom + 16, "text-anchor": "middle" }, x.label(tick)),
    );
  }
  group.append(shape("path", { class: "axis", fill: "none", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }));
  if (xName)
    group.append(shape("text", { x: (box.left + box.right) / 2, y: box.bottom + 33, "text-anchor": "middle" }, xName));
  if (yName) group.append(shape("text", { x: box.left, y: box.top - 8, "text-anchor": "start" }, yName));
  svg.append(group);
}

/** A path through points; what is null, or off a log scale, breaks it. */
function linePath(points) {
  let path = "",
    pen = "M";
  for (const [x, y] of points) {
    if (!Number.isFinite(y ?? NaN)) {
      pen = "M";
      continue;
    }
    path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  return path;
}

let clips = 0;

/** Keep what is drawn inside the box: returns a group for it. */
function clipped(svg, box) {
  const id = `clip-${clips++}`;
  const area = shape("rect", {
    x: box.left,
    y: box.top - 6,
    width: box.right - box.left + 8,
    height: box.bottom - box.top + 12,
  });
  const inside = shape("g", { "clip-path": `url(#${id})` });
  svg.append(shape("clipPath", { id }, area), inside);
  return inside;
}

/** A dot in the shape of Matplotlib's marker of that name. */
function marker(name, x, y, size, attributes) {
  const s = size,
    d = size * 1.25;
  const paths = {
    s: `M${x - s} ${y - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    "^": `M${x} ${y - d}L${x + d} ${y + s}H${x - d}z`,
    v: `M${x} ${y + d}L${x + d} ${y - s}H${x - d}z`,
    D: `M${x} ${y - d}L${x + d} ${y}L${x} ${y + d}L${x - d} ${y}z`,
    P: `M${x - s / 2} ${y - d}h${s}v${d - s / 2}h${d - s / 2}v${s}h${s / 2 - d}v${d - s / 2}h${-s}v${s / 2 - d}h${s / 2 - d}v${-s}h${d - s / 2}z`,
  };
  if (paths[name]) return shape("path", { d: paths[name], ...attributes });
  return shape("circle", { cx: x, cy: y, r: s * 1.1, ...attributes });
}
