// The page: shows each snapshot in the header, the tables and the cards.

import { COLOURS, Card, label } from "./card.js";
import { showGangs, showMachines } from "./cluster.js";
import { follow } from "./live.js";
import { drawOrder, planned } from "./order.js";
import { UNKNOWN, bytes, clock, duration, element, facts, limit, number, percent, put, span } from "./text.js";

const find = (id) => document.getElementById(id);
/** Charts show at least this many seconds, so that a young run is not just noise. */
const MIN_SPAN = 60;

const cards = new Map();
/** The colour of each card. */
const colours = new Map();
let made = 0;
let latest = null;
let shownSpan = Number(document.querySelector("input[name=span]:checked").value);

const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const card = [...cards.values()].find(({ root }) => root === target);
    if (!card) continue;
    card.visible = isIntersecting;
    if (isIntersecting && !card.readFor) card.readHistory();
    card.drawCharts();
  }
}, { rootMargin: "300px" });
const size = new ResizeObserver(() => cards.forEach((card) => card.drawCharts()));
size.observe(find("cards"));

for (const choice of document.querySelectorAll("input[name=span]")) {
  choice.addEventListener("change", () => {
    shownSpan = Number(choice.value);
    if (!latest) return;
    showJobs(latest);
    showOrder(latest);
  });
}

const keyOf = (job) => `${job.container} ${job.job}`;

/** The colour with the fewest cards. */
function freeColour() {
  const taken = Array.from({ length: COLOURS }, (_, colour) => [...colours.values()].filter((one) => one === colour).length);
  return taken.indexOf(Math.min(...taken));
}

function cardOf(job) {
  const key = keyOf(job);
  if (!cards.has(key)) {
    colours.set(key, freeColour());
    made += 1;
    const card = new Card(job, colours.get(key), `job-${made}`);
    cards.set(key, card);
    find("cards").append(card.root);
    sight.observe(card.root);
  }
  return cards.get(key);
}

/** The start of the charts, in seconds since the run began. */
function beginOf({ t }) {
  return Math.min(Math.max(t - shownSpan, 0), t - MIN_SPAN);
}

function showJobs(snapshot) {
  const begin = beginOf(snapshot);
  const time = { t: snapshot.t, now: snapshot.now, decision: snapshot.decision?.number ?? null };
  const there = new Set(snapshot.jobs.map(keyOf));
  for (const [key, card] of cards) {
    if (there.has(key)) continue;
    sight.unobserve(card.root);
    card.root.remove();
    cards.delete(key);
    colours.delete(key);
  }
  for (const job of snapshot.jobs) cardOf(job).show(job, time, begin);
  find("no-jobs").hidden = snapshot.jobs.length > 0;
  find("overview").hidden = snapshot.jobs.length === 0;
}

function showOverview(snapshot) {
  const rows = snapshot.jobs.map((job) => {
    const card = cards.get(keyOf(job));
    const link = label("a", job.job, { href: `#${card.root.id}` });
    const head = element("th", { scope: "row", class: `c${colours.get(keyOf(job))}` }, link);
    const texts = [job.standing, job.class ?? UNKNOWN, number(job.last_loss), duration(job.batch_latency), percent(job.cpu), limit(job.limit)];
    const plan = [job.ends_at, job.fair_ends_at].map((at) => (at === null ? UNKNOWN : span(at - snapshot.now)));
    const cells = texts.map((text) => element("td", {}, text));
    return element("tr", {}, head, ...cells, ...plan.map((text) => element("td", { class: "plan" }, text)));
  });
  find("overview").classList.toggle("plans", planned(snapshot).length > 0);
  replaceRows(find("overview").tBodies[0], rows);
}

/** Replaces the rows of a table, and keeps the keyboard focus. */
function replaceRows(body, rows) {
  const at = [...body.rows].findIndex((row) => row.contains(document.activeElement));
  body.replaceChildren(...rows);
  if (at >= 0) body.rows[at]?.querySelector("a")?.focus({ preventScroll: true });
}

/** Shows the CPU that is not used by jobs, below them. */
function showOthers(others) {
  const head = element("th", { scope: "row" }, label("span", "everything else"));
  const cells = ["", "", "", "", percent(others), ""].map((text) => element("td", {}, text));
  const plan = ["", ""].map((text) => element("td", { class: "plan" }, text));
  find("overview").tFoot.replaceChildren(element("tr", {}, head, ...cells, ...plan));
}

function showBar(snapshot) {
  const using = snapshot.jobs.filter((job) => job.cpu > 0);
  const ours = using.reduce((sum, job) => sum + job.cpu, 0);
  const others = Math.max(0, (snapshot.node.cpu ?? ours) - ours);
  const all = [...using.map((job) => [job.job, job.cpu, `c${colours.get(keyOf(job))}`]), ["everything else", others, ""]];
  const total = Math.max(1, ours + others);
  const parts = all.map(([name, share, colour]) => {
    const part = element("i", { class: colour, title: `${name}: ${percent(share)}` });
    part.style.width = `${(100 * share) / total}%`;
    return part;
  });
  showOthers(others);
  find("bar").replaceChildren(...parts);
  find("bar").setAttribute("aria-label", `CPU in use: ${all.map(([name, share]) => `${name} ${percent(share)}`).join(", ")}`);
}

/** Shows the order of the jobs, if the policy plans one. */
function showOrder(snapshot) {
  const section = find("order");
  section.hidden = planned(snapshot).length === 0;
  if (section.hidden) return;
  const pointsOf = (job) => {
    const card = cards.get(keyOf(job));
    if (card && !card.readFor) card.readHistory();
    return card?.points ?? [];
  };
  const colourOf = (job) => `c${colours.get(keyOf(job))}`;
  drawOrder(section.querySelector("svg"), snapshot, beginOf(snapshot), pointsOf, colourOf);
}

function showSummary({ node, policy, jobs, decision, cost, now, t }) {
  put(find("node"), node.name);
  document.title = `Paceline ${node.name}`;
  const managed = jobs.filter((job) => job.standing === "managed").length;
  const rest = ["pinned", "released", "waiting", "moving", "ending"]
    .map((standing) => [jobs.filter((job) => job.standing === standing).length, standing])
    .filter(([count]) => count > 0).map(([count, standing]) => `${count} ${standing}`);
  const next = decision ? decision.interval - (now - decision.at) : null;
  facts(find("summary"), [
    ["Policy", policy.name, policy.dry_run ? "dry run: nothing is written" : `${policy.enforcement}, by ${policy.actuator}`],
    ["Jobs", `${managed} managed`, rest.join(", ")],
    ["CPU in use", percent(node.cpu), `of ${node.cpus} CPUs`],
    ["Last decision", decision ? `${span(now - decision.at)} ago` : UNKNOWN, decision ? `number ${decision.number}, ${next > 0 ? `next in ${span(next)}` : "next is due"}` : ""],
    ["Control costs", percent(t > 0 ? cost.cpu_seconds / t : null), `of one CPU, ${bytes(cost.memory)}`],
  ]);
}

function showShadows({ shadows, jobs }) {
  find("shadows").hidden = shadows.length === 0;
  const table = find("shadows").querySelector("table");
  table.classList.add("figures-only");
  const names = jobs.filter((job) => shadows.some((shadow) => job.job in shadow.limits)).map((job) => job.job);
  const heads = ["Policy", "Disagreed", "Mean distance", ...names].map((text) => element("th", { scope: "col" }, text));
  table.tHead.replaceChildren(element("tr", {}, ...heads));
  const rows = shadows.map((shadow) => {
    const texts = [`${shadow.disagreements} of ${shadow.decisions}`, percent(shadow.distance), ...names.map((name) => limit(shadow.limits[name]))];
    return element("tr", {}, element("th", { scope: "row" }, shadow.policy), ...texts.map((text) => element("td", {}, text)));
  });
  table.tBodies[0].replaceChildren(...rows);
}

function showRun({ version, pid, t, policy, cost, started_at: started }) {
  const params = Object.entries(policy.params).map(([name, value]) => [name, String(value)]);
  const actions = Object.entries(cost.guard_actions).map(([guard, count]) => `${guard} ${count}`);
  const mean = cost.writes > 0 ? duration(cost.write_seconds / cost.writes) : UNKNOWN;
  facts(find("run"), [
    ["Running for", span(t), `since ${clock(started)}`],
    ["Version", version, `process ${pid}`],
    ["Variant", policy.variant],
    ...params,
    ["Guards", policy.guards.join(", ") || "none", actions.length ? `acted: ${actions.join(", ")}` : ""],
    ["Limits written", String(cost.writes), `${mean} each, ${cost.failed_writes} failed`],
    ["Limits changed by others", String(cost.drifts)],
  ]);
}

function showState(state, heard) {
  const line = find("state");
  const text = { on: "Live", silent: "No new data", off: "Not connected" }[state];
  line.className = `state ${state === "on" ? "on" : "off"}`;
  put(line.querySelector("span"), text);
  document.body.classList.toggle("lost", state !== "on");
  const since = heard ? ` The figures are from ${clock(heard / 1000)}.` : "";
  const why = state === "off" ? "The allocator does not answer; trying again." : "The allocator answers, but has not sampled the jobs for a while.";
  find("notice").hidden = state === "on";
  put(find("notice"), state === "on" ? "" : why + since);
}

follow((snapshot, first) => {
  latest = snapshot;
  showJobs(snapshot);
  showOverview(snapshot);
  showOrder(snapshot);
  showBar(snapshot);
  showSummary(snapshot);
  showMachines(snapshot);
  showGangs(snapshot);
  showShadows(snapshot);
  showRun(snapshot);
  if (first) for (const card of cards.values()) if (card.visible) card.readHistory(); else card.readFor = null;
}, showState);
