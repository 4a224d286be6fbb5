// A small chart of lines over time, as SVG, redrawn whole: it has few elements.

import { drawn, put, span } from "./text.js";

const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
const UNDER = 8;
/** Room for the words under the axis of time. */
const WORDS = 16;
/** A line is not drawn over a longer gap than this, in seconds: nothing was heard. */
const GAP = 45;

/** Round numbers from `low` to `high`: three to five of them, or two where three would be many more. */
function marks(low, high) {
  const power = 10 ** Math.floor(Math.log10(high - low));
  let before = [];
  for (const by of [5, 2, 1, 0.5, 0.2, 0.1]) {
    const step = by * power;
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    if (count > 5 && before.length >= 2) break;
    before = Array.from({ length: count }, (_, place) => (first + place) * step);
    if (count >= 3) break;
  }
  return before;
}

/** Powers of ten and, where there are few, what halves them. */
function logMarks(low, high) {
  const all = [];
  const wide = Math.log10(high / low) > 1.7;
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const by of wide ? [1] : [1, 2, 5]) all.push(by * 10 ** power);
  }
  return all.filter((mark) => mark >= low * 0.999 && mark <= high * 1.001);
}

/** The vertical scale of values: equal ratios are equal distances where values differ widely. */
function scale(values, { from, to }) {
  let low = Math.min(...values, from ?? Infinity);
  let high = Math.max(...values, to ?? -Infinity);
  const log = from === undefined && low > 0 && high / low > 25;
  if (log) {
    [low, high] = [low / 1.15, high * 1.15];
    const place = (value) => Math.log(value / low) / Math.log(high / low);
    return { place, marks: logMarks(low, high) };
  }
  if (from === undefined) {
    // What changes by less than can be written beside it is level.
    const least = 0.01 * Math.max(Math.abs(low), Math.abs(high));
    const lacking = Math.max(0, least - (high - low)) / 2;
    [low, high] = [low - lacking, high + lacking];
  }
  const room = (high - low || 1) * 0.06;
  if (from === undefined) low -= room;
  if (to === undefined) high += room;
  return { place: (value) => (value - low) / (high - low), marks: marks(low, high) };
}

/** A path through the points that are known; with `steps`, each holds until the next. */
function path(points, x, y, steps, gap) {
  let text = "";
  let before = null;
  for (const [t, value] of points) {
    if (value === null) {
      if (steps) before = null;
      continue;
    }
    const [px, py] = [x(t).toFixed(1), y(value).toFixed(1)];
    if (before === null || t - before > gap) text += `M${px} ${py}h0`;
    else text += steps ? `H${px}V${py}` : `L${px} ${py}`;
    before = t;
  }
  return text;
}

/** What lies under the known points, piece by piece. */
function area(points, x, y, gap) {
  let text = "";
  let piece = [];
  const close = () => {
    if (piece.length > 1) {
      const ends = [piece[0][0], piece[piece.length - 1][0]].map((t) => x(t).toFixed(1));
      const along = piece.map(([t, value]) => `${x(t).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
      text += `M${ends[0]} ${y(0).toFixed(1)}L${along}L${ends[1]} ${y(0).toFixed(1)}Z`;
    }
    piece = [];
  };
  for (const point of points) {
    const last = piece[piece.length - 1];
    if (point[1] === null || (last && point[0] - last[0] > gap)) close();
    if (point[1] !== null) piece.push(point);
  }
  close();
  return text;
}

/** The last known point at or before `t`. */
function valueAt(points, t) {
  let found = null;
  for (const [at, value] of points) {
    if (at > t) break;
    if (value !== null) found = value;
  }
  return found;
}

/**
 * A chart in the `svg` of a figure. `format` writes a value, `bounds` fixes the scale's ends where it
 * has `from` or `to`, `words` puts words under the axis of time; `output` shows what a pointer is at.
 */
export function chart(svg, output, { format, axis = format, bounds = {}, words = false }) {
  let shown = null;
  let pointer = null;

  const draw = () => {
    const width = svg.clientWidth;
    const height = svg.clientHeight;
    if (!shown || width < 80) return;
    const { lines, targets, begin, end, width: apart } = shown;
    const bottom = height - UNDER - (words ? WORDS : 0);
    const within = lines.map((line) => line.points.filter(([t]) => t >= begin && t <= end));
    const values = within.flat().map(([, value]) => value).filter((value) => value !== null);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", shown.alt);
    if (values.length === 0) {
      const middle = { x: width / 2, y: (TOP + bottom) / 2 + 4, "text-anchor": "middle" };
      svg.replaceChildren(drawn("text", middle, "nothing was reported in this time"));
      put(output, "");
      return;
    }
    const range = scale([...values, ...targets.map((target) => target.value)], bounds);
    const x = (t) => LEFT + ((t - begin) / (end - begin)) * (width - LEFT - RIGHT);
    const y = (value) => bottom - range.place(value) * (bottom - TOP);
    const gap = Math.max(GAP, 4 * apart);
    const parts = range.marks.flatMap((mark) => {
      const at = y(mark).toFixed(1);
      return [
        drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }),
        drawn("text", { x: LEFT - 7, y: Number(at) + 4, "text-anchor": "end" }, axis(mark)),
      ];
    });
    if (words) {
      const ends = [[LEFT, "start", `${span(end - begin)} ago`], [width - RIGHT, "end", "now"]];
      for (const [at, anchor, text] of ends) {
        parts.push(drawn("text", { x: at, y: height - 3, "text-anchor": anchor }, text));
      }
    }
    lines.forEach((line, place) => {
      const shape = line.kind === "area" ? area(within[place], x, y, gap) : path(within[place], x, y, line.kind === "ink", gap);
      parts.push(drawn("path", { class: line.kind, d: shape }));
    });
    targets.forEach((target, place) => {
      const at = y(target.value);
      const close = place > 0 && Math.abs(at - y(targets[place - 1].value)) < 15;
      parts.push(drawn("line", { class: "target", x1: LEFT, x2: width - RIGHT, y1: at.toFixed(1), y2: at.toFixed(1) }));
      const beside = close ? { x: LEFT + 4, "text-anchor": "start" } : { x: width - RIGHT, "text-anchor": "end" };
      const over = at - TOP > 14 ? at - 4 : at + 12;
      parts.push(drawn("text", { class: "tag", y: over.toFixed(1), ...beside }, target.name));
    });
    if (pointer !== null) {
      const t = begin + ((pointer - LEFT) / (width - LEFT - RIGHT)) * (end - begin);
      const at = Math.min(Math.max(t, begin), end);
      parts.push(drawn("line", { class: "cursor", x1: x(at).toFixed(1), x2: x(at).toFixed(1), y1: TOP, y2: bottom }));
      const said = lines.map((line, place) => `${line.name}${format(valueAt(within[place], at))}`);
      put(output, `${span(end - at)} ago: ${said.join(", ")}`);
    } else {
      put(output, "");
    }
    svg.replaceChildren(...parts);
  };

  svg.addEventListener("pointermove", (event) => {
    pointer = event.clientX - svg.getBoundingClientRect().left;
    draw();
  });
  svg.addEventListener("pointerleave", () => {
    pointer = null;
    draw();
  });
  return {
    draw,
    show(what) {
      shown = what;
      draw();
    },
  };
}
