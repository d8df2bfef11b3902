// From numbers to pixels.

/** Round numbers that cover [low, high] in about `count` steps. */
function niceTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.7);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** A linear scale: a function with `ticks(count)` and `domain`. */
function linearScale([low, high], [from, to]) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.domain = [low, high];
  scale.ticks = (count) => niceTicks(low, high, count);
  scale.label = (tick) => shortNumber(tick, 6);
  return scale;
}

/** A scale of powers of ten. Values must be above zero. */
function logScale([low, high], [from, to]) {
  const inner = linearScale([Math.log10(low), Math.log10(high)], [from, to]);
  const scale = (value) => inner(Math.log10(value));
  scale.domain = [low, high];
  scale.ticks = (count) => {
    const first = Math.ceil(Math.log10(low) - 1e-9),
      last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first >= 2) {
      const stride = Math.ceil((last - first) / count);
      return Array.from({ length: Math.floor((last - first) / stride) + 1 }, (_, i) => 10 ** (first + i * stride));
    }
    const all = [];
    for (let power = first - 1; power <= last + 1; power++) for (const m of [1, 2, 5]) all.push(m * 10 ** power);
    return all.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  };
  scale.label = (tick) => shortNumber(Number(tick.toPrecision(3)));
  return scale;
}

/** The smallest and largest of many numbers; nulls do not count. */
function extent(values) {
  let low = Infinity,
    high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

/** An extent with some air around it. */
function airy([low, high], share = 0.06) {
  const air = (high - low || Math.abs(high) || 1) * share;
  return [low - air, high + air];
}

/** A colour for a share in [0, 1], from a list of colours. */
function shade(colours, share) {
  return colours[Math.round(Math.min(1, Math.max(0, share)) * (colours.length - 1))];
}

/** The bar that explains colours: low on the left, high on the right. */
function shadeBar(colours, low, high) {
  const width = 120,
    part = width / colours.length;
  const bar = shape("svg", { width, height: 12, "aria-hidden": "true" });
  colours.forEach((colour, i) =>
    bar.append(shape("rect", { x: i * part, y: 0, width: part + 0.5, height: 12, fill: colour })),
  );
  return [element("span", { class: "together" }, low, bar, high)];
}
