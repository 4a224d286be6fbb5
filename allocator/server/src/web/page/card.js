// One job: its figures, charts, decisions.

import { chart } from "./chart.js";
import { read } from "./live.js";
import { UNKNOWN, clock, duration, element, facts, limit, number, percent, put, short, span, whole } from "./text.js";

/** The most points of a job. Beyond it, every second point of the older half is dropped. */
const MAX_POINTS = 2400;
const COLUMNS = ["loss", "batch_latency", "cpu", "limit", "chosen"];

export const COLOURS = 6;

/** A job's name with its colour. */
export function label(kind, name, attributes = {}) {
  return element(kind, { class: "name", title: name, ...attributes }, element("i", { "aria-hidden": "true" }), element("b", {}, name));
}

function figure(title, keys, low) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", low ? "chart low" : "chart");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", title);
  const output = element("output", { "aria-hidden": "true" });
  const caption = element("figcaption", {}, element("span", {}, ...(keys ?? [title])), output);
  return { root: element("figure", {}, caption, svg), svg, output };
}

function key(kind, text) {
  return element("span", { class: `key ${kind}` }, element("i", { "aria-hidden": "true" }), text);
}

/** The targets of the loss that are set, for the chart. */
function tiers({ acceptable, objective }) {
  const all = [["acceptable", acceptable], ["objective", objective]];
  return all.filter(([, value]) => value !== null).map(([name, value]) => ({ name, value }));
}

/** The hosts of this machine, as addresses name them. */
const OWN_HOSTS = ["127.0.0.1", "[::1]", "localhost"];

/** The address of a job's own page, as this browser reaches it, or null. */
function reachable(page) {
  if (!page?.startsWith("http:")) return null;
  const address = new URL(page);
  return OWN_HOSTS.includes(address.hostname) && !OWN_HOSTS.includes(location.hostname) ? null : address.href;
}

/** A job's card; `colour` is the number of its colour, `id` its element id, for links. */
export class Card {
  constructor(job, colour, id) {
    this.job = job.job;
    this.points = [];
    this.apart = 1;
    this.visible = false;
    this.decided = null;
    this.build(colour, id);
  }

  build(colour, id) {
    const name = label("span", this.job, { id: `${id}-name` });
    this.badge = element("span", { class: "badge" });
    this.about = element("p", { class: "about" });
    this.page = element("a", { class: "own-page", target: "_blank", rel: "noreferrer" }, "Page of this job");
    this.trouble = element("p", { class: "trouble", role: "note" });
    this.figures = element("dl", { class: "figures" });
    this.why = element("p", { class: "why" });
    this.guards = element("p", { class: "guards" });
    const loss = figure("Loss");
    const batch = figure("Duration of a batch");
    const cpu = figure("CPU", [element("span", {}, "CPU"), key("limit", "limit"), key("use", "use")], true);
    this.charts = [[loss.root, ["loss"]], [batch.root, ["batch_latency"]], [cpu.root, ["cpu", "limit"]]];
    this.lossChart = chart(loss.svg, loss.output, { format: number, axis: short });
    this.batchChart = chart(batch.svg, batch.output, { format: duration, axis: (seconds) => duration(seconds, short), bounds: { from: 0 } });
    const axis = (share) => `${Math.round(100 * share)} %`;
    this.cpuChart = chart(cpu.svg, cpu.output, { format: percent, axis, bounds: { from: 0, to: 1 }, words: true });
    this.past = element("tbody");
    const heads = ["When", "Share", "Class", "Why"].map((text) => element("th", { scope: "col" }, text));
    const table = element("table", { class: "past" }, element("thead", {}, element("tr", {}, ...heads)), this.past);
    const scroll = element("div", { class: "past-scroll", tabindex: "0", role: "region", "aria-label": `Decisions on ${this.job}` }, table);
    this.details = element("details", {}, element("summary", {}, "Decisions"), scroll);
    this.details.addEventListener("toggle", () => this.readDecisions());
    const head = element("header", {}, element("h3", {}, name), this.badge);
    this.root = element(
      "article", { class: `card c${colour % COLOURS}`, id, "aria-labelledby": `${id}-name` },
      head, this.about, this.page, this.trouble, this.figures, loss.root, batch.root, cpu.root, this.why, this.guards, this.details,
    );
  }

  /** Reads the history from before this page was opened, or while it was disconnected. */
  async readHistory() {
    this.readFor = this.job;
    const past = await read(`v1/jobs/${encodeURIComponent(this.job)}/history`);
    if (!past) return;
    const points = past.t.map((t, place) => Object.fromEntries([["t", t], ...COLUMNS.map((name) => [name, past[name][place]])]));
    const until = past.t[past.t.length - 1] ?? -1;
    this.points = [...points, ...this.points.filter((point) => point.t > until)];
    this.apart = past.width;
    this.drawCharts();
  }

  async readDecisions() {
    if (!this.details.open) return;
    const past = await read(`v1/decisions?job=${encodeURIComponent(this.job)}`);
    const rows = (past?.decisions ?? []).map((one) =>
      element("tr", {}, ...[clock(one.at), percent(one.chosen), one.class ?? UNKNOWN, one.why ?? UNKNOWN].map((text) => element("td", {}, text))));
    this.past.replaceChildren(...rows);
  }

  /** Shows a snapshot of the job. `time` is the snapshot's; charts show `begin` to `time.t`. */
  show(job, time, begin) {
    this.latest = job;
    this.begin = begin;
    this.now = time.t;
    if (this.points.length === 0 || this.points[this.points.length - 1].t < time.t) {
      this.points.push(Object.fromEntries([["t", time.t], ...COLUMNS.map((name) => [name, job[name]])]));
      if (this.points.length > MAX_POINTS) {
        this.points = this.points.filter((_, place) => place > MAX_POINTS / 2 || place % 2);
      }
    }
    this.showWords(job, time);
    if (this.decided !== time.decision) {
      this.decided = time.decision;
      this.readDecisions();
    }
    this.drawCharts();
  }

  showWords(job, time) {
    this.badge.className = `badge ${job.standing}`;
    put(this.badge, job.standing);
    const steps = job.step === null ? null : `step ${whole(job.step)}${job.total_steps === null ? "" : ` of ${whole(job.total_steps)}`}`;
    const silent = job.reported_at !== null && time.now - job.reported_at > 30 ? `silent for ${span(time.now - job.reported_at)}` : null;
    const about = [job.state, steps, silent, job.container.slice(0, 12)];
    put(this.about, about.filter(Boolean).join(" · "));
    const page = reachable(job.page);
    this.page.hidden = page === null;
    if (page !== null) this.page.href = page;
    this.trouble.hidden = !job.trouble;
    put(this.trouble, job.trouble ?? "");
    const { acceptable, objective, batch_latency: asked } = job.targets;
    const goals = [acceptable, objective].filter((goal) => goal !== null).map(short).join(" → ");
    const reached = job.objective_at !== null ? "objective reached" : job.acceptable_at !== null ? "acceptable" : goals && `target ${goals}`;
    const waits = job.chosen !== null && job.limit !== null && Math.abs(job.chosen - job.limit) > 0.005;
    facts(this.figures, [
      ["Loss", number(job.last_loss), reached],
      ["Batch", duration(job.batch_latency), asked === null ? "" : `target ${duration(asked, short)}`],
      ["Limit", limit(job.limit), waits ? `chosen ${limit(job.chosen)}` : ""],
      ["Use", percent(job.cpu), job.throttled ? `${percent(job.throttled)} throttled` : ""],
      ...this.ending(job, time),
    ]);
    this.why.hidden = !job.why;
    put(this.why, job.why ? `${job.class && job.class !== "-" ? `${job.class}: ` : ""}${job.why}` : "");
    this.details.hidden = job.standing === "waiting";
    this.guards.hidden = job.guards.length === 0;
    put(this.guards, `Guards: ${job.guards.join(", ")}`);
  }

  /** When the job is expected to end, if the policy plans that. */
  ending({ ends_at: ends, fair_ends_at: fair, work_left: left }, { now }) {
    if (ends === null) return [];
    const equal = fair === null ? "" : `${span(fair - now)} under equal sharing`;
    return [["Ends in", span(ends - now), equal], ["Work left", span(left), "of the whole machine"]];
  }

  drawCharts() {
    if (!this.visible || !this.latest) return;
    const { latest: job, begin, now: end, apart: width } = this;
    // Charts of figures that a job never had are hidden.
    for (const [root, names] of this.charts) {
      root.hidden = !this.points.some((point) => names.some((name) => point[name] !== null));
    }
    const column = (name) => this.points.map((point) => [point.t, point[name] ?? null]);
    const common = { begin, end, width };
    const within = `over ${span(end - begin)}`;
    const goals = tiers(job.targets);
    const aims = goals.map(({ name, value }) => `, ${name} ${short(value)}`).join("");
    this.lossChart.show({ ...common, lines: [{ kind: "line", name: "", points: column("loss") }], targets: goals, alt: `Loss ${within}, now ${number(job.last_loss)}${aims}` });
    const asked = job.targets.batch_latency;
    const target = asked === null ? [] : [{ name: "target", value: asked }];
    this.batchChart.show({ ...common, lines: [{ kind: "line", name: "", points: column("batch_latency") }], targets: target, alt: `Duration of a batch ${within}, now ${duration(job.batch_latency)}${asked === null ? "" : `, target ${duration(asked, short)}`}` });
    const lines = [{ kind: "area", name: "use ", points: column("cpu") }, { kind: "ink", name: "limit ", points: column("limit") }];
    this.cpuChart.show({ ...common, lines, targets: [], alt: `CPU limit and use ${within}, now limit ${limit(job.limit)}, use ${percent(job.cpu)}` });
  }
}
