// A small SVG chart of lines over time. It is redrawn completely, since it has few elements.

import { drawn, put, span } from "./text.js";

const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
/** Room for the label of a line at the bottom. */
const UNDER = 15;
/** The height of the words under the time axis. */
const WORDS = 16;
/** A longer gap between points, in seconds, interrupts a line. */
const GAP = 45;

/** Round numbers from `low` to `high`: three to five, or two if the next finer step gives more than five. */
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

/** Powers of ten and, if these are few, their doubles and fives. */
function logMarks(low, high) {
  const all = [];
  const wide = Math.log10(high / low) > 1.7;
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const by of wide ? [1] : [1, 2, 5]) all.push(by * 10 ** power);
  }
  return all.filter((mark) => mark >= low * 0.999 && mark <= high * 1.001);
}

/** The vertical scale of values; logarithmic if the values differ widely. */
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
    // Changes below the precision of the axis labels are shown as a level line.
    const least = 0.01 * Math.max(Math.abs(low), Math.abs(high));
    const lacking = Math.max(0, least - (high - low)) / 2;
    [low, high] = [low - lacking, high + lacking];
  }
  const room = (high - low || 1) * 0.06;
  if (from === undefined) low -= room;
  if (to === undefined) high += room;
  return { place: (value) => (value - low) / (high - low), marks: marks(low, high) };
}

/** A path through the known points; with `steps`, each value holds until the next. */
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

/** The area under the known points, piece by piece. */
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

/** The height and the greatest width of a label, and how far letters reach below its baseline, in pixels. */
const TAG = 13;
const TAG_WIDTH = 66;
const DESCENT = 3;

/**
 * Where the labels of target lines at these `heights` go, so that no label covers another label or line:
 * above or below its own line, on the right or else on the left. A place whose label would cover the curve,
 * by `covers`, is taken only if there is no other.
 */
export function placeTags(heights, bottom, covers = () => false) {
  const placed = [];
  for (const at of heights) {
    const sides = [false, true].flatMap((left) => [{ y: at - 4, left }, { y: at + 12, left }]);
    const fitting = sides.filter(({ y }) => y > TOP + 10 && y <= bottom + UNDER - DESCENT);
    const free = fitting.filter((tag) => placed.every((other) => other.left !== tag.left || Math.abs(other.y - tag.y) >= TAG));
    const clear = free.filter(({ y }) => heights.every((line) => line === at || line <= y - TAG + 2 || line >= y + 2));
    placed.push(clear.find((tag) => !covers(tag)) ?? clear[0] ?? free[0] ?? fitting[0] ?? sides[0]);
  }
  return placed;
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
 * A chart in the `svg` of a figure. `format` writes a value. `bounds` may fix the scale's ends, by
 * `from` and `to`. `words` adds labels under the time axis. `output` shows the values at the pointer.
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
      svg.replaceChildren(drawn("text", middle, "no reports in this time"));
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
    const heights = targets.map((target) => y(target.value));
    const dots = within.flat().filter(([, value]) => value !== null).map(([t, value]) => [x(t), y(value)]);
    const covers = (tag) => {
      const start = tag.left ? LEFT : width - RIGHT - TAG_WIDTH;
      return dots.some(([dx, dy]) => dx >= start && dx <= start + TAG_WIDTH && dy >= tag.y - TAG + 2 && dy <= tag.y + DESCENT);
    };
    const tags = placeTags(heights, bottom, covers);
    targets.forEach((target, place) => {
      const at = heights[place];
      const { y: baseline, left } = tags[place];
      parts.push(drawn("line", { class: "target", x1: LEFT, x2: width - RIGHT, y1: at.toFixed(1), y2: at.toFixed(1) }));
      const beside = left ? { x: LEFT + 4, "text-anchor": "start" } : { x: width - RIGHT, "text-anchor": "end" };
      parts.push(drawn("text", { class: "tag", y: baseline.toFixed(1), ...beside }, target.name));
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
