//! `paceline status`: the current snapshot of the running allocator, as a table.

mod gangs;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use paceline_api::figures::{latency, number, share, span, steps, until};
use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::{JobView, MoveView, NodeView, Snapshot, Standing};
use paceline_api::plain::{fit, plain, plain_json, print, wrap};
use paceline_api::table::{Column, Table};
use paceline_server::control::{AskError, Reply, Request};

use super::control_args::ControlArgs;
use super::manager;
use super::orders::unexpected;
use gangs::gangs;

/// Show the jobs of the running allocator: loss, limit, CPU use and problems
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline status
  paceline status --json | jq '.jobs[] | {job, loss, limit}'
  paceline status --cluster

A dash means unknown. `paceline top` updates continuously; `paceline explain` gives reasons.")]
pub(super) struct StatusArgs {
    /// Print the whole snapshot as JSON
    #[arg(long)]
    json: bool,

    /// Show the jobs of all machines, from the manager of the Swarm on this machine
    #[arg(long)]
    cluster: bool,

    #[command(flatten)]
    control: ControlArgs,
}

pub(super) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let usual = args.cluster.then(|| manager::SOCKET.into());
    let snapshot = snapshot(&args.control.over(usual.as_ref())).await;
    let snapshot = if args.cluster { snapshot.map_err(of_manager)? } else { snapshot? };
    let text = if args.json {
        plain_json(&serde_json::to_string_pretty(&snapshot)?) + "\n"
    } else {
        text(&snapshot)
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The error of a request to a manager, which another command starts.
fn of_manager(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(AskError::NotRunning(path)) => anyhow!(
            "no manager answers at {}: check that `paceline manager` is running on this machine",
            path.display()
        ),
        _ => error,
    }
}

/// Requests the snapshot.
pub(super) async fn snapshot(control: &ControlArgs) -> anyhow::Result<Snapshot> {
    let reply = control.ask(&Request::Status).await?;
    if let Reply::Status(snapshot) = reply { Ok(*snapshot) } else { Err(unexpected(reply)) }
}

/// The longest line, in columns.
const WIDTH: usize = 100;
/// The longest shown name, in columns.
const NAME: usize = 20;
/// The width of a column of such names.
const NAMES: u16 = 20;

/// A table of jobs: its columns with their fixed widths, so that nothing moves from one call to the next, and
/// the cells of a row.
struct Columns {
    head: &'static [(&'static str, u16)],
    cells: fn(&JobView, now: f64) -> Vec<String>,
}

/// The table for policies that use losses and targets.
const BY_LOSS: Columns = Columns {
    head: &[
        ("job", NAMES),
        ("standing", 8),
        ("loss", 10),
        ("target", 10),
        ("step", 14),
        ("batch", 9),
        ("use", 7),
        ("limit", 7),
        ("class", 5),
    ],
    cells: |job, _| {
        vec![
            job.job.clone(),
            standing(job.standing).to_owned(),
            number(job.loss.or(job.last_loss)),
            number(job.targets.objective.or(job.targets.acceptable)),
            steps(job.step, job.total_steps),
            latency(job.batch_latency),
            share(job.cpu),
            share(job.limit),
            class(job),
        ]
    },
};

/// The table for policies that plan by the remaining work.
const BY_WORK: Columns = Columns {
    head: &[
        ("job", 16),
        ("standing", 8),
        ("loss", 9),
        ("step", 14),
        ("use", 7),
        ("limit", 7),
        ("ends in", 10),
        ("fair end", 10),
        ("class", 7),
    ],
    cells: |job, now| {
        vec![
            job.job.clone(),
            standing(job.standing).to_owned(),
            number(job.loss.or(job.last_loss)),
            steps(job.step, job.total_steps),
            share(job.cpu),
            share(job.limit),
            until(job.ends_at, now),
            until(job.fair_ends_at, now),
            class(job),
        ]
    },
};

fn class(job: &JobView) -> String {
    job.class.clone().unwrap_or_else(|| "-".to_owned())
}

fn text(snapshot: &Snapshot) -> String {
    let mut lines = heading(snapshot).to_vec();
    if snapshot.jobs.is_empty() {
        lines.push("no container has opted in".to_owned());
    } else {
        lines.push(String::new());
        lines.extend(table(snapshot));
        lines.push(String::new());
    }
    if !snapshot.gangs.is_empty() {
        if snapshot.jobs.is_empty() {
            lines.push(String::new());
        }
        lines.extend(gangs(snapshot));
        lines.push(String::new());
    }
    let cut = lines.iter().map(|line| fit(line.trim_end(), WIDTH) + "\n");
    // A remark ends with what to do.
    let whole =
        remarks(snapshot).into_iter().map(|remark| wrap(&plain(&remark), ("", "  "), WIDTH));
    cut.chain(whole).collect()
}

/// The process, its machine and its policy.
pub(super) fn heading(snapshot: &Snapshot) -> [String; 2] {
    let Snapshot { version, pid, started_at, now, node, policy, .. } = snapshot;
    let up = span(now - started_at);
    let used = node.cpu.map_or(String::new(), |used| format!(", {} in use", share(Some(used))));
    let dry = if policy.dry_run { ", dry run: nothing is written" } else { "" };
    let decided = snapshot.decision.as_ref().map_or("no decision yet".to_owned(), |decision| {
        format!("decision {}, {} ago", decision.number, span(now - decision.at))
    });
    [
        format!(
            "paceline {version}, process {pid}, up {up}; {}: {} CPUs{used}",
            node.name, node.cpus
        ),
        format!(
            "{} ({}), {} by {}{dry}; guards: {}; {decided}",
            policy.name,
            policy.variant,
            policy.enforcement,
            policy.actuator,
            guards(&policy.guards),
        ),
    ]
}

fn guards(on: &[Guard]) -> String {
    if on.is_empty() {
        return "none".to_owned();
    }
    on.iter().map(Guard::to_string).collect::<Vec<_>>().join(", ")
}

fn table(snapshot: &Snapshot) -> Vec<String> {
    let plans = snapshot.jobs.iter().any(|job| job.ends_at.is_some() || job.waits_for.is_some());
    let Columns { head, cells } = if plans { BY_WORK } else { BY_LOSS };
    let column = |(title, width): &(&str, u16)| {
        let column = match *title {
            "job" | "standing" | "class" => Column::text(*title),
            _ => Column::figures(*title),
        };
        column.wide(*width)
    };
    let rows = snapshot.jobs.iter().map(|job| cells(job, snapshot.now)).collect();
    listing(Table { columns: head.iter().map(column).collect(), rows })
}

/// The lines of a table whose columns have fixed widths: cells are escaped, and cut to them.
fn listing(mut table: Table) -> Vec<String> {
    for row in &mut table.rows {
        for (cell, column) in row.iter_mut().zip(&table.columns) {
            *cell = fit(cell, column.width.map_or(WIDTH, usize::from));
        }
    }
    table.listing().lines().map(str::to_owned).collect()
}

/// A standing in one word.
pub(super) const fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Waiting => "waiting",
        Standing::Managed => "managed",
        Standing::Pinned => "pinned",
        Standing::Released => "released",
        Standing::Ending => "ending",
        Standing::Moving => "moving",
    }
}

/// The jobs of each node, and the moves in progress.
fn places(snapshot: &Snapshot) -> Vec<String> {
    let place = |node: &NodeView| {
        let here = snapshot.jobs.iter().filter(|job| job.node.as_deref() == Some(&node.name));
        let jobs: Vec<String> = here.map(|job| fit(&job.job, NAME)).collect();
        let jobs = if jobs.is_empty() { "no job".to_owned() } else { jobs.join(", ") };
        let trouble = node.trouble.as_ref().map_or(String::new(), |why| format!("; {why}"));
        format!("node {} ({} CPUs): {jobs}{trouble}", node.name, node.cpus)
    };
    let way = |one: &MoveView| {
        let MoveView { job, from, to, reason, step, since } = one;
        let (job, age) = (fit(job, NAME), span(snapshot.now - since));
        format!("{job} moves from {from} to {to} since {age} ({step}): {reason}")
    };
    let nodes = snapshot.nodes.iter().map(place);
    nodes.chain(snapshot.moves.iter().map(way)).collect()
}

/// Remarks below the table.
fn remarks(snapshot: &Snapshot) -> Vec<String> {
    let mut remarks = places(snapshot);
    for job in &snapshot.jobs {
        let name = fit(&job.job, NAME);
        if let Some(trouble) = &job.trouble {
            remarks.push(format!("{name}: {trouble}"));
        }
        if let Some(why) = &job.unmovable {
            remarks.push(format!("{name} cannot be moved: {why}"));
        }
        if let Some(first) = &job.waits_for {
            remarks.push(format!("{name} waits for {}", fit(first, NAME)));
        }
        if job.guards != snapshot.policy.guards {
            remarks.push(format!("{name}: guards: {}", guards(&job.guards)));
        }
    }
    for shadow in &snapshot.shadows {
        let (differs, of) = (shadow.disagreements, shadow.decisions);
        let by =
            shadow.distance.map_or(String::new(), |by| format!(", by {} now", share(Some(by))));
        remarks.push(format!("{} would differ in {differs} of {of} decisions{by}", shadow.policy));
    }
    let cost = &snapshot.cost;
    let memory = cost.memory.map_or(String::new(), |m| format!(", {:.1} MiB", m / 1_048_576.0));
    if cost.moves + cost.failed_moves > 0 {
        remarks.push(format!(
            "moves: {} done, {} undone, {:.1} s without progress",
            cost.moves, cost.failed_moves, cost.move_seconds
        ));
    }
    remarks.push(format!(
        "cost: {:.1} s of CPU{memory}; {} limits written in {:.2} s, {} failed, {} changed by others",
        cost.cpu_seconds, cost.writes, cost.write_seconds, cost.failed_writes, cost.drifts
    ));
    remarks
}

#[cfg(test)]
pub(super) mod tests {
    use paceline_api::live::snapshot::{CostView, DecisionView, PolicyView, ShadowView};
    use paceline_wire::Targets;

    use super::*;

    /// Two jobs, one of them with control characters in its name.
    pub(in crate::cli) fn example() -> Snapshot {
        let vae = JobView {
            job: "vae".to_owned(),
            container: "c1".to_owned(),
            standing: Standing::Managed,
            loss: Some(118.2),
            targets: Targets { acceptable: Some(120.0), ..Targets::default() },
            step: Some(1234),
            total_steps: Some(4936),
            batch_latency: Some(0.031),
            cpu: Some(0.48),
            limit: Some(0.5),
            class: Some("CL".to_owned()),
            why: Some("converged".to_owned()),
            ..JobView::default()
        };
        let hostile = JobView {
            job: "x\x1b]0;owned\x07\x1b[2Jy\nvae managed".to_owned(),
            container: "c2".to_owned(),
            trouble: Some("no answer\x1b[31m".to_owned()),
            guards: vec![Guard::Slew],
            ..JobView::default()
        };
        Snapshot {
            version: "0.1.0".to_owned(),
            pid: 812,
            started_at: 1000.0,
            now: 4725.0,
            node: NodeView {
                name: "n1".to_owned(),
                cpus: 2.0,
                cpu: Some(0.93),
                ..NodeView::default()
            },
            policy: PolicyView {
                name: "flowcon".to_owned(),
                variant: "resolved".to_owned(),
                enforcement: "quota".to_owned(),
                actuator: "engine".to_owned(),
                ..PolicyView::default()
            },
            jobs: vec![vae, hostile],
            decision: Some(DecisionView { number: 12, at: 4721.0, interval: 20.0 }),
            shadows: vec![ShadowView {
                policy: "tradl".to_owned(),
                distance: Some(0.12),
                decisions: 12,
                disagreements: 3,
                ..ShadowView::default()
            }],
            cost: CostView { cpu_seconds: 1.26, writes: 24, ..CostView::default() },
            ..Snapshot::default()
        }
    }

    #[test]
    fn table_has_the_expected_text() {
        let expected = "\
paceline 0.1.0, process 812, up 1h 2m 5s; n1: 2 CPUs, 93.0 % in use
flowcon (resolved), quota by engine; guards: none; decision 12, 4s ago

job                  standing       loss     target           step     batch     use   limit class
--------------------------------------------------------------------------------------------------
vae                  managed      118.20     120.00    1234 (25 %)   31.0 ms  48.0 %  50.0 % CL
x\\u{1b}]0;owned\\u{7… waiting           -          -              -         -       -       - -

x\\u{1b}]0;owned\\u{7…: no answer\\u{1b}[31m
x\\u{1b}]0;owned\\u{7…: guards: slew
tradl would differ in 3 of 12 decisions, by 12.0 % now
cost: 1.3 s of CPU; 24 limits written in 0.00 s, 0 failed, 0 changed by others
";
        assert_eq!(text(&example()), expected);
    }

    #[test]
    fn table_of_a_planning_policy_shows_ends() {
        let mut snapshot = example();
        let job = |name: &str, ends: f64, fair: f64| JobView {
            job: name.to_owned(),
            ends_at: Some(snapshot.now + ends),
            fair_ends_at: Some(snapshot.now + fair),
            class: Some("runs".to_owned()),
            ..snapshot.jobs[0].clone()
        };
        let first = job("vae", 40.0, 62.0);
        let second = JobView {
            class: Some("waits".to_owned()),
            waits_for: Some("vae".to_owned()),
            ..job("mnist", 3725.0, 3800.0)
        };
        snapshot.jobs = vec![first, second];
        let expected = "
job              standing      loss           step     use   limit    ends in   fair end class
------------------------------------------------------------------------------------------------
vae              managed     118.20    1234 (25 %)  48.0 %  50.0 %        40s      1m 2s runs
mnist            managed     118.20    1234 (25 %)  48.0 %  50.0 %   1h 2m 5s  1h 3m 20s waits

mnist waits for vae
";
        let text = text(&snapshot);
        let shown: Vec<&str> = text.lines().skip(2).take(7).collect();
        assert_eq!(shown.join("\n") + "\n", expected);
    }

    #[test]
    fn lines_are_bounded_and_escaped_for_any_job_name() {
        let mut snapshot = example();
        snapshot.node.name = "n".repeat(300);
        for name in ["学习".repeat(60), "\x1b[A".repeat(50), "e\u{301}".repeat(90)] {
            let trouble = Some(name.clone());
            let job = JobView { job: name, loss: Some(-1e300), trouble, ..JobView::default() };
            snapshot.jobs.push(job);
        }
        let text = text(&snapshot);
        for line in text.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 100, "{line}");
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn run_without_jobs_has_a_remark() {
        assert!(text(&Snapshot::default()).contains("no container has opted in"));
    }
}
