// A chart of means with 95 % intervals over whole numbers (episodes), to be read with pointer or keyboard.

/** An empty chart in `host`. `show(lines, options)` fills it; a line is {name, style, first, mean, low, high}. */
function lineChart(host, name) {
  const svg = shape("svg", { tabindex: 0, role: "img", "aria-label": name });
  const tip = element("div", { class: "tip", hidden: true });
  host.classList.add("chart");
  host.append(svg, tip);
  let lines = [],
    options = {},
    view = null,
    at = null;

  const draw = keepDrawn(host, (width) => {
    view = chartView(lines, options, width);
    svg.setAttribute("viewBox", `0 0 ${width} ${view.height}`);
    svg.setAttribute("height", view.height);
    svg.replaceChildren();
    drawAxes(svg, view.box, view.x, view.y, { xName: options.xName, yName: options.yName, xTicks: view.xTicks });
    const inside = clipped(svg, view.box);
    lines.forEach((line) => drawBand(inside, line, view));
    // The last is on top: embedded comes first in every list.
    [...lines].reverse().forEach((line) => drawLine(inside, line, view));
    if (!lines.length)
      svg.append(
        shape("text", { x: width / 2, y: view.height / 2, "text-anchor": "middle" }, "Nothing is switched on."),
      );
    svg.append(shape("line", { class: "cursor", y1: view.box.top, y2: view.box.bottom, visibility: "hidden" }));
    point(at, false);
  });

  /** Read off the values at one episode, or at none. */
  function point(where, aloud) {
    at = where;
    const cursor = svg.querySelector(".cursor");
    const rows = where === null ? [] : readAt(lines, where, options.share);
    tip.hidden = rows.length === 0;
    cursor?.setAttribute("visibility", tip.hidden ? "hidden" : "visible");
    if (tip.hidden) return;
    const pixel = view.x(where);
    cursor.setAttribute("x1", pixel);
    cursor.setAttribute("x2", pixel);
    const head = `after episode ${where}`;
    tip.replaceChildren(
      element("strong", {}, head),
      table(
        null,
        rows.map((row) => [element("span", {}, swatch(row.style), " ", row.name), row.text, row.interval]),
      ),
    );
    placeTip(tip, pixel, view);
    if (aloud) say(`${head}: ${rows.map((row) => `${row.name} ${row.text} ${row.interval}`).join("; ")}`);
  }

  const within = (episode) => Math.min(view.last, Math.max(view.first, episode));
  svg.addEventListener("pointermove", (event) => follow(event));
  svg.addEventListener("pointerdown", (event) => follow(event));
  svg.addEventListener("pointerleave", () => document.activeElement !== svg && point(null));
  svg.addEventListener("focus", () => point(at ?? view.last, true));
  svg.addEventListener("blur", () => point(null));
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") point(null);
    if (!(event.key in moves)) return;
    event.preventDefault();
    point(within((at ?? view.last) + moves[event.key]), true);
  });

  function follow(event) {
    const box = svg.getBoundingClientRect();
    const share = (event.clientX - box.left - view.box.left) / (view.box.right - view.box.left);
    point(within(Math.round(view.x.domain[0] + share * (view.x.domain[1] - view.x.domain[0]))), false);
  }

  return {
    show(newLines, newOptions) {
      lines = newLines;
      options = newOptions;
      at = null;
      draw();
    },
  };
}

/** Beside the cursor, on the side with more room; below the chart where that is narrow, as on a phone. */
function placeTip(tip, pixel, view) {
  const narrow = view.width < 420,
    right = pixel > (view.box.left + view.box.right) / 2;
  tip.classList.toggle("below", narrow);
  tip.style.left = narrow ? "0" : right ? "auto" : `${pixel + 12}px`;
  tip.style.right = narrow ? "0" : right ? `${view.width - pixel + 12}px` : "auto";
  tip.style.top = `${narrow ? view.height + 4 : Math.max(0, Math.min(view.box.top, view.height - tip.offsetHeight))}px`;
}

/** Scales and places for these lines at this width. */
function chartView(lines, options, width) {
  const height = Math.round(Math.min(340, Math.max(230, width * 0.62)));
  const box = { left: 50, top: 26, right: width - 12, bottom: height - 42 };
  const first = Math.min(...lines.map((line) => line.first), Infinity);
  const last = Math.max(...lines.map((line) => line.first + line.mean.length - 1), -Infinity);
  const ends = lines.length ? [first, last] : [1, 10];
  const values = lines.flatMap((line) => [...line.mean, ...line.low, ...line.high]);
  let domain = extent(options.log ? values.filter((value) => value > 0) : values);
  if (options.log) domain = [domain[0] / 1.15, domain[1] * 1.15];
  // Far below random there is nothing to tell apart.
  else if (options.share)
    domain = [Math.max(-0.5, Math.min(0.9, domain[0] - 0.06)), Math.max(1.06, Math.min(1.5, domain[1] + 0.03))];
  else domain = airy(domain);
  const air = (ends[1] - ends[0] || 1) * 0.02;
  const x = linearScale([ends[0] - air, ends[1] + air], [box.left, box.right]);
  const y = (options.log ? logScale : linearScale)(domain, [box.bottom, box.top]);
  const wanted = Math.max(2, Math.round((box.right - box.left) / 50));
  const xTicks = [...new Set([ends[0], ...niceTicks(ends[0], ends[1], wanted)])].filter(Number.isInteger);
  // The first episode is always named; its neighbour makes room where they would touch.
  const apart = xTicks.filter((tick, i) => i === 0 || x(tick) - x(xTicks[0]) > 22);
  return { width, height, box, x, y, first: ends[0], last: ends[1], xTicks: apart };
}

function drawBand(group, line, view) {
  const places = line.low.map((low, i) => [view.x(line.first + i), low, line.high[i]]);
  const known = places.filter(([, low, high]) => low !== null && high !== null && Number.isFinite(view.y(low)));
  if (known.length < 2) return;
  const upper = known.map(([x, , high]) => [x, view.y(high)]);
  const lower = known.map(([x, low]) => [x, view.y(low)]).reverse();
  group.append(
    shape("path", { class: "band", d: `${linePath([...upper, ...lower])}Z`, fill: line.style.colour, opacity: 0.15 }),
  );
}

function drawLine(group, line, view) {
  const { style } = line;
  const points = line.mean.map((value, i) => [view.x(line.first + i), value === null ? null : view.y(value)]);
  const drawn = shape("g", { class: "series", "data-series": line.name });
  drawn.append(
    shape("path", {
      d: linePath(points),
      fill: "none",
      stroke: style.colour,
      "stroke-width": 2,
      "stroke-dasharray": style.dashed ? "6 4" : null,
    }),
  );
  if (style.marker && points.length <= 40) {
    const attributes = { stroke: style.colour, "stroke-width": 1.5, fill: style.filled ? style.colour : "var(--card)" };
    for (const [x, y] of points)
      if (Number.isFinite(y ?? NaN)) drawn.append(marker(style.marker, x, y, style.filled ? 2.6 : 3.8, attributes));
  }
  group.append(drawn);
}

/** What each line says at an episode, the largest first. */
function readAt(lines, episode, share) {
  const write = share ? score : shortNumber;
  const rows = [];
  for (const { name, style, first, mean, low, high } of lines) {
    const i = episode - first;
    if (mean[i] === undefined || mean[i] === null) continue;
    const interval = low[i] === null ? "" : `${write(low[i], 2)} … ${write(high[i], 2)}`;
    rows.push({ name, style, value: mean[i], text: write(mean[i], 3), interval });
  }
  return rows.sort((a, b) => b.value - a.value);
}
