// What the stages that run over time share.

/** A group of which only what lies left of a moving edge is seen. */
function revealed(svg, left, top, height) {
  const id = `clip-${clips++}`;
  const area = shape("rect", { x: left - 4, y: top, width: 0, height });
  svg.append(shape("clipPath", { id }, area));
  return {
    group: shape("g", { "clip-path": `url(#${id})` }),
    until: (x) => area.setAttribute("width", Math.max(0, x - left + 4)),
  };
}

/** [from, to) of every stretch in which `wanted` holds. */
function stretches(values, wanted) {
  const found = [];
  values.forEach((value, i) => {
    if (!wanted(value)) return;
    const last = found[found.length - 1];
    if (last && last[1] === i) last[1] = i + 1;
    else found.push([i, i + 1]);
  });
  return found;
}

function dot(colour) {
  return shape(
    "svg",
    { width: 12, height: 12, "aria-hidden": "true" },
    shape("circle", { cx: 6, cy: 6, r: 5, fill: colour }),
  );
}
