// A square map of cells that is read with pointer or keyboard.

/** An empty map in `host`; `paint` draws its contents, `point` is called with the place of the pointer. */
function cellMap(host, name, paint, point) {
  const svg = shape("svg", { tabindex: 0, role: "img", "aria-label": name });
  host.classList.add("chart");
  host.append(svg);
  let measured = null,
    box = null,
    place = null,
    at = null;

  const draw = keepDrawn(host, (width) => {
    if (!measured) return;
    const side = Math.min(width - 52, 380),
      cells = measured.variance.length;
    svg.setAttribute("viewBox", `0 0 ${width} ${side + 50}`);
    svg.setAttribute("height", side + 50);
    svg.replaceChildren();
    box = { left: 38, top: 10, right: 38 + side, bottom: 10 + side };
    const x = linearScale([-measured.bound, measured.bound], [box.left, box.right]);
    const y = linearScale([-measured.bound, measured.bound], [box.bottom, box.top]);
    drawAxes(svg, box, x, y, { xName: "x", xCount: 4, yCount: 4 });
    const size = side / cells;
    place = { size, cells, x: (i) => box.left + (i + 0.5) * size, y: (j) => box.bottom - (j + 0.5) * size };
    paint(svg, place);
    // The two edges of the goal, where the walls are.
    svg.append(
      shape("path", {
        d: `M${x(0)} ${box.top}V${y(0)}H${box.right}`,
        fill: "none",
        stroke: "var(--soft)",
        "stroke-width": 1.5,
      }),
    );
    svg.append(
      shape("rect", {
        class: "here",
        width: size,
        height: size,
        fill: "none",
        stroke: "currentColor",
        "stroke-width": 2.5,
        visibility: "hidden",
      }),
    );
    mark(at);
  });

  function mark(where) {
    at = where;
    const here = svg.querySelector(".here");
    if (!here) return;
    here.setAttribute("visibility", where ? "visible" : "hidden");
    if (!where) return;
    here.setAttribute("x", place.x(where[0]) - place.size / 2);
    here.setAttribute("y", place.y(where[1]) - place.size / 2);
  }

  const inside = (k) => Math.min(place.cells - 1, Math.max(0, k));
  svg.addEventListener("pointermove", (event) => {
    const outer = svg.getBoundingClientRect();
    const i = Math.floor((event.clientX - outer.left - box.left) / place.size);
    const j = Math.floor((box.bottom - event.clientY + outer.top) / place.size);
    point(i === inside(i) && j === inside(j) ? [i, j] : null);
  });
  svg.addEventListener("pointerleave", () => point(null));
  svg.addEventListener("focus", () => point(at ?? [0, 0], true));
  svg.addEventListener("blur", () => point(null));
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!move || !at) return;
    event.preventDefault();
    point([inside(at[0] + move[0]), inside(at[1] + move[1])], true);
  });
  return {
    mark,
    show(maps) {
      measured = maps;
      at = null;
      draw();
    },
  };
}
