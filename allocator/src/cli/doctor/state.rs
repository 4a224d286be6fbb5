//! The state folder: who can read it, what earlier runs have left in it, and its audit log.

use std::io;
use std::path::Path;

use paceline_api::audit::read;
use paceline_api::audit::verify::{End, Verdict, verify};
use paceline_api::clock::unix_seconds;
use paceline_api::figures::{counted, moment};
use paceline_api::state_folder::StateFolder;
use paceline_api::usage::may_make_in;
use paceline_node::limits::inspection::{EngineState, inspect};
use rustix::fs::statvfs;

use super::super::state::StateArgs;
use super::report::Finding;

/// Less free space, in bytes, is too little for a day's audit log …
const LITTLE_SPACE: u64 = 64 << 20;
/// … and so little may not be enough for the original limits.
const NO_SPACE: u64 = 1 << 20;
/// The most names in one sentence.
const MAX_NAMES: usize = 5;
/// An entry that is later than now by more seconds shows that the clock was set back.
const MAX_AHEAD: f64 = 60.0;

/// Examines the folder at `path`; `owner` is the user to whom it must belong. Commands that restore take
/// `options`. Also returns what it holds for each engine.
pub(super) fn examine(path: &Path, owner: u32, options: &str) -> (Vec<Finding>, Vec<EngineState>) {
    let unusable = |error: io::Error| {
        let found = format!("cannot read {}: {error}", path.display());
        let advice = "run as its owner, or choose another --state-dir";
        (vec![Finding::error("state folder", found, advice)], Vec::new())
    };
    let folder = match StateFolder::for_reading(path) {
        Ok(Some(folder)) => folder,
        Ok(None) => return (vec![missing(path, may_make_in)], Vec::new()),
        Err(error) => return unusable(error),
    };
    let ((found_owner, mode), engines) = match (folder.owner_and_mode(), inspect(&folder)) {
        (Ok(access), Ok(engines)) => (access, engines),
        (Err(error), _) | (_, Err(error)) => return unusable(error),
    };
    let mut findings = vec![access(path, (found_owner, owner), mode)];
    findings.extend(space(path));
    findings.extend(engines.iter().flat_map(|engine| of_engine(engine, &restore(path, options))));
    findings.push(audit(path));
    (findings, engines)
}

/// A missing folder, which a run can make if `may_make` finds nothing wrong with the nearest folder above.
fn missing(path: &Path, may_make: impl Fn(&Path) -> io::Result<()>) -> Finding {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let above = absolute.ancestors().skip(1).find(|above| above.exists());
    let above = above.unwrap_or(Path::new("/"));
    match may_make(above) {
        Ok(()) => {
            let found = format!("{} does not exist: the first run makes it", path.display());
            Finding::ok("state folder", found)
        }
        Err(error) => {
            let (path, above) = (path.display(), above.display());
            let found = format!("cannot make {path}: cannot write into {above}: {error}");
            Finding::error("state folder", found, "set HOME, or choose another --state-dir")
        }
    }
}

fn access(path: &Path, (found, expected): (u32, u32), mode: u32) -> Finding {
    let shown = path.display();
    if found != expected {
        let advice = format!("run chown {expected} {shown}, or choose another --state-dir");
        let found = format!("{shown} belongs to user {found}");
        return Finding::error("state folder", found, advice);
    }
    if mode & 0o002 != 0 {
        let found = format!("{shown} has mode {mode:03o}: every user may write into it");
        return Finding::error("state folder", found, "choose a folder of its own");
    }
    if mode & 0o077 != 0 {
        let found = format!("{shown} has mode {mode:03o}: other users may read it");
        return Finding::warning("state folder", found, "the next run makes it private");
    }
    Finding::ok("state folder", format!("{shown}, private"))
}

fn space(path: &Path) -> Option<Finding> {
    let disk = statvfs(path).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= LITTLE_SPACE {
        return None;
    }
    let found = format!("{} KiB are free in {}", free >> 10, path.display());
    Some(if free < NO_SPACE {
        Finding::error("space", found, "make room: without it, no container is limited")
    } else {
        Finding::warning("space", found, "make room: entries of the audit log may be lost")
    })
}

fn of_engine(state: &EngineState, restore: &str) -> Vec<Finding> {
    let EngineState { folder, holder, limited, unreadable, moves } = state;
    let mut findings = Vec::new();
    let count = limited.len();
    match holder {
        Some(holder) => {
            findings.push(Finding::ok("lock", format!("held by {holder}")));
            let found = format!("limited by this run: {}", counted(count, "container"));
            findings.push(Finding::ok("originals", found));
        }
        None if count == 0 => {
            findings.push(Finding::ok("lock", "free: no allocator uses this state folder"));
        }
        None => {
            let names = limited.iter().map(|(_, name)| name.as_str());
            let found = format!(
                "limits of a run that has ended are on {}: {} (engine {folder})",
                counted(count, "container"),
                some(names)
            );
            findings.push(Finding::error("leftovers", found, restore));
        }
    }
    if !unreadable.is_empty() {
        let found = format!("unusable records: {}", some(unreadable.iter().map(String::as_str)));
        let advice = "restore these containers by hand (docker update), then remove the files";
        findings.push(Finding::error("originals", found, advice));
    }
    if *moves > 0 && holder.is_none() {
        let found = format!("unfinished: {} (engine {folder})", counted(*moves, "move"));
        findings.push(Finding::error("moves", found, restore));
    }
    findings
}

/// The command that restores the limits of this folder.
fn restore(path: &Path, options: &str) -> String {
    if path == StateArgs::default().folder() {
        return format!("run `paceline restore{options}`");
    }
    format!("run `paceline restore{options} --state-dir {}`", path.display())
}

/// The first of these, and how many more there are.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown: Vec<&str> = names.iter().copied().take(MAX_NAMES).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn audit(folder: &Path) -> Finding {
    let verdict = match read::try_exists(folder) {
        Ok(false) => return Finding::ok("audit log", "none yet"),
        Ok(true) => verify(folder, None),
        Err(error) => Err(error),
    };
    match verdict {
        Ok(verdict) => judge(&verdict, unix_seconds()),
        Err(error) => {
            let advice = "run as the owner of the state folder";
            Finding::error("audit log", format!("cannot read it: {error}"), advice)
        }
    }
}

fn judge(verdict: &Verdict, now: f64) -> Finding {
    let Verdict { entries, last, end, broken, .. } = verdict;
    let last = last.as_ref().map(|last| last.at);
    let found = format!(
        "{entries} entries{}",
        last.map_or(String::new(), |at| format!(", the last of {}", moment(at)))
    );
    if *broken > 0 {
        let places = counted(*broken, "place");
        let found = format!("{found}; the chain is broken in {places}");
        return Finding::error("audit log", found, "run paceline audit verify");
    }
    if last.is_some_and(|at| at - now > MAX_AHEAD) {
        let advice = "check the clock: it was set back, or had been wrong";
        return Finding::warning("audit log", format!("{found}, which is in the future"), advice);
    }
    match end {
        End::Unknown => Finding::warning(
            "audit log",
            format!("{found}; without a record of its end, as version 0.1.0 has written it"),
            "the next run accepts it as it is, and keeps its end",
        ),
        End::LostWithMachine { entries } => Finding::warning(
            "audit log",
            format!("{found}; {entries} were not on the disk when the machine failed"),
            "check why the machine went down",
        ),
        End::Whole | End::Broken => Finding::ok("audit log", format!("{found}, unbroken")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use paceline_api::audit::{Audit, Entry};

    use super::super::report::Level;
    use super::*;

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn level_of<'a>(findings: &'a [Finding], what: &str) -> (Level, &'a str) {
        let found = findings.iter().find(|finding| finding.what == what);
        found.map(|finding| (finding.level, finding.found.as_str())).expect("it is examined")
    }

    #[test]
    fn missing_folder_is_sound_and_is_not_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let (findings, _) = examine(&path, own(), "");
        assert_eq!(level_of(&findings, "state folder").0, Level::Ok);
        assert!(!path.exists());
    }

    #[test]
    fn missing_folder_that_cannot_be_made_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/state");
        let refused = |above: &Path| {
            assert_eq!(above, place.path(), "the nearest folder that is there");
            Err(io::ErrorKind::PermissionDenied.into())
        };
        let finding = missing(&path, refused);
        assert_eq!(finding.level, Level::Error);
        assert!(finding.found.starts_with("cannot make "), "{finding:?}");
        assert!(finding.advice.unwrap().contains("--state-dir"));
        assert_eq!(missing(&path, may_make_in).level, Level::Ok);
        fs::set_permissions(place.path(), PermissionsExt::from_mode(0o500)).unwrap();
        // Root may write everywhere.
        let expected = if own() == 0 { Level::Ok } else { Level::Error };
        assert_eq!(missing(&path, may_make_in).level, expected);
    }

    #[test]
    fn folder_that_others_read_or_own_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let level = |mode: u32, owner: u32| {
            fs::set_permissions(place.path(), PermissionsExt::from_mode(mode)).unwrap();
            let (findings, _) = examine(place.path(), owner, "");
            level_of(&findings, "state folder").0
        };
        assert_eq!(level(0o700, own()), Level::Ok);
        assert_eq!(level(0o755, own()), Level::Warning);
        assert_eq!(level(0o777, own()), Level::Error);
        assert_eq!(level(0o700, own() + 1), Level::Error);
    }

    #[test]
    fn limits_of_an_ended_run_are_an_error_and_of_a_running_one_are_not() {
        let limited = |count: u32| -> Vec<(String, String)> {
            (0..count).map(|n| (format!("{n:x}"), format!("job-{n}"))).collect()
        };
        let path = Path::new("/srv/limits");
        let left = EngineState { limited: limited(7), moves: 1, ..EngineState::default() };
        let findings = of_engine(&left, &restore(path, ""));
        let (level, found) = level_of(&findings, "leftovers");
        assert_eq!(level, Level::Error);
        assert!(found.contains("job-0, job-1, job-2, job-3, job-4 and 2 more"), "{found}");
        let advice = findings.iter().filter_map(|finding| finding.advice.as_deref());
        let command = "run `paceline restore --state-dir /srv/limits`";
        assert!(advice.clone().any(|advice| advice == command), "{findings:?}");
        assert_eq!(level_of(&findings, "moves").0, Level::Error);
        let holder = Some("process 7 on box".to_owned());
        let running = EngineState { holder, ..left };
        let findings = of_engine(&running, &restore(path, ""));
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        let unreadable = vec!["x.json: EOF".to_owned()];
        let findings = of_engine(&EngineState { unreadable, ..EngineState::default() }, "");
        assert_eq!(level_of(&findings, "originals").0, Level::Error);
    }

    #[test]
    fn audit_log_is_whole_broken_or_without_a_head() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(audit(place.path()).found, "none yet");
        Audit::open(place.path()).unwrap().write(&Entry::Ended { left: 0 });
        assert_eq!(audit(place.path()).level, Level::Ok);
        let log = place.path().join("audit.jsonl");
        let text = fs::read_to_string(&log).unwrap();
        fs::write(&log, text.lines().next().unwrap().to_owned() + "\n").unwrap();
        assert_eq!(audit(place.path()).level, Level::Error);
        let mut verdict = Verdict { entries: 1, end: End::Unknown, ..Verdict::default() };
        assert_eq!(judge(&verdict, 0.0).level, Level::Warning);
        verdict.end = End::LostWithMachine { entries: 2 };
        assert_eq!(judge(&verdict, 0.0).level, Level::Warning);
    }
}
