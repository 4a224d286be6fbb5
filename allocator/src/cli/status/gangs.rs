//! The distributed jobs of a Swarm, in `paceline status`.

use paceline_api::figures::span;
use paceline_api::live::snapshot::{GangState, GangView, PlaceView, Snapshot};
use paceline_api::plain::fit;
use paceline_api::table::{Column, Table};

use super::{NAME, NAMES, listing};

/// The distributed jobs: a table, and remarks on each.
pub(super) fn gangs(snapshot: &Snapshot) -> Vec<String> {
    let row = |gang: &GangView| {
        let GangView { ps, workers, least, .. } = gang;
        let age = gang.submitted.map_or("-".to_owned(), |at| span(snapshot.now - at));
        let servers = format!("{} of {}", ps.placed, ps.of);
        let range = if *least < workers.of { format!("{least} to ") } else { String::new() };
        let placed = format!("{} of {range}{}", workers.placed, workers.of);
        vec![gang.job.clone(), gang.state.name().to_owned(), age, servers, placed]
    };
    let columns = vec![
        Column::text("distributed job").wide(NAMES),
        Column::text("state").wide(10),
        Column::figures("submitted").wide(12),
        Column::figures("servers").wide(12),
        Column::figures("workers").wide(16),
    ];
    let mut lines = listing(Table { columns, rows: snapshot.gangs.iter().map(row).collect() });
    lines.push(String::new());
    for gang in &snapshot.gangs {
        let name = fit(&gang.job, NAME);
        let several = |count: u32, one: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {one}s")),
        };
        let place = |(node, at): (&String, &PlaceView)| {
            let kinds = [several(at.ps, "server"), several(at.workers, "worker")];
            format!("{node}: {}", kinds.into_iter().flatten().collect::<Vec<_>>().join(", "))
        };
        let places: Vec<String> = gang.places.iter().map(place).collect();
        if !places.is_empty() {
            lines.push(format!("{name} is on {}", places.join("; ")));
        }
        if let Some(why) = gang.why.as_ref().filter(|_| gang.state == GangState::Waiting) {
            lines.push(format!("{name} waits: {why}"));
        }
        lines.extend(gang.trouble.as_ref().map(|trouble| format!("{name}: {trouble}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use paceline_api::live::snapshot::TaskCountsView;

    use super::*;
    use crate::cli::status::text;

    #[test]
    fn distributed_jobs_have_places_and_reasons_to_wait() {
        let counts = |placed, of| TaskCountsView { placed, over: 0, of };
        let runs = GangView {
            job: "mnist".to_owned(),
            state: GangState::Running,
            submitted: Some(4665.0),
            ps: counts(1, 1),
            workers: counts(3, 4),
            least: 2,
            places: [
                ("w1".to_owned(), PlaceView { ps: 1, workers: 2 }),
                ("w2".to_owned(), PlaceView { ps: 0, workers: 1 }),
            ]
            .into(),
            ..GangView::default()
        };
        let waits = GangView {
            job: "x\x1b[2J".to_owned(),
            state: GangState::Waiting,
            workers: counts(0, 6),
            least: 6,
            why: Some("no room\x1b[31m".to_owned()),
            ..GangView::default()
        };
        let snapshot = Snapshot { now: 4725.0, gangs: vec![runs, waits], ..Snapshot::default() };
        let expected = "\
distributed job      state         submitted      servers          workers
--------------------------------------------------------------------------
mnist                running              1m       1 of 1      3 of 2 to 4
x\\u{1b}[2J           waiting               -       0 of 0           0 of 6

mnist is on w1: 1 server, 2 workers; w2: 1 worker
x\\u{1b}[2J waits: no room\\u{1b}[31m

cost: ";
        let text = text(&snapshot);
        assert!(text.contains(expected), "{text}");
    }
}
