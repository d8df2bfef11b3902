// Making elements. Text only ever goes in as text, so that no name in the data can become markup.

/** An HTML element with attributes and children (elements or text). */
function element(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function shape(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

/** Offer choices in a native select; keeps the present one if it is still there. Values are the positions. */
function offer(select, names) {
  const before = select.selectedOptions[0]?.textContent;
  select.replaceChildren(...names.map((name, i) => element("option", { value: i }, String(name))));
  const again = names.findIndex((name) => String(name) === before);
  select.value = String(Math.max(0, again));
}

/** A number for reading: three significant digits, or as many as asked. */
function shortNumber(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3)
    return value
      .toExponential(Math.max(0, digits - 1))
      .replace(/\.?0+e/, "e")
      .replace("-", "−")
      .replace("e+", "e");
  const text = size >= 10 ** (digits - 1) ? String(Math.round(value)) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

/** A score: always as many decimals, so that columns can be compared. */
const score = (value, digits = 2) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");

/** A table from rows of cells; a cell is text or an element, numbers are right-aligned where `numeric` says so. */
function table(heads, rows, numeric = []) {
  const kind = (i) => (numeric.includes(i) ? "number" : null);
  const made = element("table");
  if (heads)
    made.append(
      element(
        "thead",
        {},
        element("tr", {}, ...heads.map((h, i) => element("th", { scope: "col", class: kind(i) }, h))),
      ),
    );
  const body = rows.map((row) =>
    element(
      "tr",
      {},
      ...row.map((cell, i) => (/^T[DH]$/.test(cell?.tagName) ? cell : element("td", { class: kind(i) }, cell))),
    ),
  );
  made.append(element("tbody", {}, ...body));
  return made;
}

/** Announce a text to screen readers. */
function say(text) {
  byId("live").textContent = text;
}

/** Call `draw` now, and whenever the width of `host` changes. Returns a function that draws again. */
function keepDrawn(host, draw) {
  let width = 0;
  const again = () => {
    if (host.clientWidth > 0) draw(host.clientWidth);
  };
  new ResizeObserver(() => {
    if (Math.abs(host.clientWidth - width) >= 1) {
      width = host.clientWidth;
      again();
    }
  }).observe(host);
  return again;
}
