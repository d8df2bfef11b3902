// How each method looks: Okabe and Ito's colours and a marker of its own, the same as in the figures.

const SPARE_MARKERS = ["o", "s", "^", "D", "v", "P"];

/** Colour, marker and dashes of a series; what has no style of its own takes the next of the palette. */
function styleOf(data, series, position) {
  const plain = series.variant === undefined || series.variant === "plain";
  const own = plain && Object.hasOwn(data.styles, series.method) ? data.styles[series.method] : null;
  const colour = own ? own.colour : data.palette[position % data.palette.length];
  return {
    // Ink is the colour of text: dark on light, light on dark.
    colour: colour === data.ink ? "currentColor" : colour,
    marker: own ? own.marker : SPARE_MARKERS[position % SPARE_MARKERS.length],
    dashed: own ? own.marker === "" : position >= data.palette.length,
    filled: series.method === "embedded",
  };
}

/** A short line with its marker, for legends. */
function swatch(style) {
  const svg = shape("svg", { width: 26, height: 14, "aria-hidden": "true" });
  svg.append(
    shape("line", {
      x1: 1,
      x2: 25,
      y1: 7,
      y2: 7,
      stroke: style.colour,
      "stroke-width": 2,
      "stroke-dasharray": style.dashed ? "5 3" : null,
    }),
  );
  if (style.marker)
    svg.append(
      marker(style.marker, 13, 7, 3.6, {
        fill: style.filled ? style.colour : "var(--paper)",
        stroke: style.colour,
        "stroke-width": 1.6,
      }),
    );
  return svg;
}
