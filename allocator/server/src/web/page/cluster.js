// Machines and distributed jobs. Only a cluster's manager, or a run on several nodes, has them.

import { UNKNOWN, element, percent, span } from "./text.js";

const find = (id) => document.getElementById(id);

/** Fills a table with rows, or hides it if there are none. */
function fill(id, heads, rows) {
  const section = find(id);
  section.hidden = rows.length === 0;
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const table = section.querySelector("table");
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows);
}

/** A row; with `wrong`, its last cell is a warning. */
function row(name, texts, remark, wrong) {
  const last = element("td", { class: wrong ? "remark wrong" : "remark" }, remark);
  return element("tr", {}, element("th", { scope: "row" }, name), ...texts.map((text) => element("td", {}, text)), last);
}

/** Shows the machines, or the CPU sets into which one is split. */
export function showMachines({ nodes, jobs }) {
  const rows = nodes.map(({ name, cpus, cpu, trouble }) => {
    const here = jobs.filter((job) => job.node === name).length;
    return row(name, [String(cpus), percent(cpu), String(here)], trouble ?? "", Boolean(trouble));
  });
  fill("machines", ["Machine", "CPUs", "Use", "Jobs", "Remark"], rows);
}

const several = (count, one, many) => (count === 1 ? `1 ${one}` : `${count} ${many}`);

/** The machines of tasks, in words. */
function places(all) {
  const words = Object.entries(all).map(([node, { ps, workers }]) => {
    const kinds = [ps && several(ps, "server", "servers"), workers && several(workers, "worker", "workers")];
    return `${kinds.filter(Boolean).join(" and ")} on ${node}`;
  });
  return words.join(", ");
}

/** Shows the distributed jobs: their states, and where their tasks run. */
export function showGangs({ gangs, now }) {
  const rows = gangs.map(({ job, state, submitted, ps, workers, least, places: all, why, trouble }) => {
    const age = submitted === null ? UNKNOWN : `${span(now - submitted)} ago`;
    const most = least < workers.of ? `${least} to ${workers.of}` : String(workers.of);
    const remark = trouble ?? (state === "waiting" ? why : null) ?? places(all);
    return row(job, [state, age, `${ps.placed} of ${ps.of}`, `${workers.placed} of ${most}`], remark, Boolean(trouble));
  });
  fill("gangs", ["Distributed job", "State", "Submitted", "Servers", "Workers", "Where, or why not"], rows);
}
