// Elements and numbers. Text from jobs is set by `textContent` or in attributes that cannot hold
// scripts, so it is never markup.

const SVG = "http://www.w3.org/2000/svg";
export const UNKNOWN = "–";

/** An element with attributes and children; a child that is a string becomes text. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for an SVG element. */
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Sets an element's text, if it differs. */
export function put(into, text) {
  if (into.textContent !== text) into.textContent = text;
}

/** Fills a `dl` with pairs of a term and its text, and an optional second line. */
export function facts(list, pairs) {
  const items = pairs.map(([term, text, more]) => {
    const value = element("dd", {}, text);
    if (more) value.append(element("small", {}, more));
    return element("div", {}, element("dt", {}, term), value);
  });
  list.replaceChildren(...items);
}

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** A number with four significant digits. */
export function number(value) {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(2);
  const decimals = size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(decimals, 7));
}

/** The same without trailing zeros, for values that were set and not measured. */
export const short = (value) => number(value).replace(/(\.\d*?)0+(?=$|e)/, "$1").replace(/\.(?=$|e)/, "");

/** A share as a percentage. */
export const percent = (share) => (known(share) ? `${(100 * share).toFixed(1)} %` : UNKNOWN);

/** A limit; the whole machine means none. */
export const limit = (share) => (known(share) && share >= 1 ? "none" : percent(share));

/** A short time, with its number formatted by `write`. */
export function duration(seconds, write = number) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds === 0 || seconds >= 1) return `${write(seconds)} s`;
  return seconds >= 0.001 ? `${write(1000 * seconds)} ms` : `${write(1e6 * seconds)} µs`;
}

/** A long time, in its two largest units. */
export function span(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const [per, large, small, rest] =
    whole < 3600 ? [60, "min", "s", whole] : whole < 86_400 ? [60, "h", "min", whole / 60] : [24, "d", "h", whole / 3600];
  const over = Math.floor(rest) % per;
  return `${Math.floor(rest / per)} ${large}${over ? ` ${over} ${small}` : ""}`;
}

/** Bytes in decimal units. */
export function bytes(count) {
  if (!known(count)) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = count < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}

/** The local time of day of a moment in Unix seconds. */
export function clock(seconds) {
  if (!known(seconds)) return UNKNOWN;
  return new Date(1000 * seconds).toLocaleTimeString("en-GB");
}

/** A whole number with thin spaces between thousands. */
export const whole = (count) => (known(count) ? count.toLocaleString("en-GB").replaceAll(",", "\u2009") : UNKNOWN);
