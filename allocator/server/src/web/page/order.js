// The order of jobs over time: the CPU that each used until now, its expected end, and its end
// under equal sharing.

import { drawn, span } from "./text.js";

const LEFT = 150;
const RIGHT = 16;
const ROW = 26;
const BAR = 14;
/** The height of the words under the time axis. */
const WORDS = 20;
/** The most rows of the picture. */
const MAX_ROWS = 24;
/** The width of a column of the past, in pixels. */
const COLUMN = 4;
/** The largest part of the picture for the past, and its smallest width in pixels. */
const PAST = 0.5;
const MIN_PAST = 90;
/** A smaller use, as a share of the machine, is not drawn. */
const MIN_USE = 0.02;
const MAX_NAME = 18;

const finite = (value) => typeof value === "number" && Number.isFinite(value);

/** Seconds from now until a moment in Unix seconds, or null. */
const until = (moment, now) => (finite(moment) ? Math.max(0, moment - now) : null);

/** The jobs with a plan, ordered by their ends, with the time at which each begins. */
export function planned({ jobs, now }) {
  const all = jobs
    .map((job) => ({ job, ends: until(job.ends_at, now), fair: until(job.fair_ends_at, now) }))
    .filter(({ job, ends }) => ends !== null || finite(job.work_left) || job.waits_for);
  all.sort((a, b) => (a.ends ?? Infinity) - (b.ends ?? Infinity) || (a.job.job < b.job.job ? -1 : 1));
  let before = 0;
  for (const row of all) {
    row.begins = row.job.waits_for ? Math.min(before, row.ends ?? before) : 0;
    before = Math.max(before, row.ends ?? 0);
  }
  return all;
}

/** The picture in words, for screen readers. */
export function words(rows) {
  const one = ({ job, ends, fair }) => {
    const when = ends === null ? "end unknown" : `ends in ${span(ends)}`;
    return `${job.job} ${when}${fair === null ? "" : `, under equal sharing in ${span(fair)}`}`;
  };
  return `Expected order: ${rows.map(one).join("; ")}`;
}

/** A job's use of the machine in the past, as a mean for each column. */
function columns(points, begin, end, count) {
  const sums = Array.from({ length: count }, () => [0, 0]);
  for (const { t, cpu } of points) {
    const place = Math.floor(((t - begin) / (end - begin)) * count);
    const sum = sums[Math.min(place, count - 1)];
    if (t < begin || !finite(cpu) || !sum) continue;
    sum[0] += cpu;
    sum[1] += 1;
  }
  return sums.map(([sum, number]) => (number ? sum / number : 0));
}

/**
 * Draws the picture. `pointsOf` gives a job's figures over time, `colourOf` its colour. The past
 * begins at `begin`, in seconds since the run began.
 */
export function drawOrder(svg, snapshot, begin, pointsOf, colourOf) {
  const all = planned(snapshot);
  const rows = all.slice(0, MAX_ROWS);
  const more = all.length > rows.length ? `, and ${all.length - rows.length} more` : "";
  svg.setAttribute("aria-label", words(rows) + more);
  const width = Math.max(svg.clientWidth || 800, LEFT + RIGHT + 2 * MIN_PAST);
  const height = rows.length * ROW + WORDS;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const now = snapshot.t;
  const ahead = Math.max(10, ...rows.flatMap(({ ends, fair }) => [ends ?? 0, fair ?? 0]));
  const room = width - LEFT - RIGHT;
  const past = Math.min(PAST * room, Math.max(MIN_PAST, (room * (now - begin)) / (now - begin + ahead)));
  const before = (t) => LEFT + (past * (t - begin)) / Math.max(now - begin, 1e-9);
  const after = (seconds) => LEFT + past + ((room - past) * seconds) / ahead;
  // Points are a second apart, so more columns would stay empty.
  const count = Math.max(1, Math.floor(Math.min(past / COLUMN, now - begin)));
  const parts = rows.flatMap((row, place) => {
    const { job, ends, fair, begins } = row;
    const top = place * ROW + (ROW - BAR) / 2;
    const colour = colourOf(job);
    const letters = [...job.job];
    const name = letters.length > MAX_NAME ? `${letters.slice(0, MAX_NAME - 1).join("")}…` : job.job;
    const at = { x: LEFT - 10, y: top + BAR - 3, "text-anchor": "end", class: "job" };
    const drawnParts = [drawn("text", at, name, drawn("title", {}, job.job))];
    columns(pointsOf(job), begin, now, count).forEach((use, column) => {
      if (use < MIN_USE) return;
      const x = before(begin + ((now - begin) * column) / count);
      const opacity = Math.min(1, use).toFixed(2);
      drawnParts.push(drawn("rect", { x, y: top, width: past / count, height: BAR, "fill-opacity": opacity, class: `used ${colour}` }));
    });
    if (ends !== null) {
      const bar = { x: after(begins), y: top, width: Math.max(1, after(ends) - after(begins)), height: BAR, rx: 3 };
      drawnParts.push(drawn("rect", { ...bar, class: `ahead ${colour}` }, drawn("title", {}, `${job.job} ends in ${span(ends)}`)));
    }
    if (fair !== null) {
      const mark = { x1: after(fair), x2: after(fair), y1: top - 3, y2: top + BAR + 3, class: "fair" };
      drawnParts.push(drawn("line", mark, drawn("title", {}, `under equal sharing in ${span(fair)}`)));
    }
    return drawnParts;
  });
  const floor = rows.length * ROW;
  const at = after(0);
  const texts = [
    drawn("text", { x: LEFT, y: height - 4 }, `${span(now - begin)} ago`),
    drawn("text", { x: at, y: height - 4, "text-anchor": "middle" }, "now"),
    drawn("text", { x: width - RIGHT, y: height - 4, "text-anchor": "end" }, `in ${span(ahead)}${more}`),
  ];
  const line = drawn("line", { x1: at, x2: at, y1: 0, y2: floor, class: "now" });
  svg.replaceChildren(...parts, line, ...texts);
}
