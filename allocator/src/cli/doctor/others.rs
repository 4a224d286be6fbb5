//! Other allocators on this machine, found among its processes and the kernel's locks.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use paceline_api::plain::cut;
use paceline_node::limits::inspection::EngineState;

use super::super::locks::VARIABLE;
use super::report::Finding;

/// The longest command line that is read, in bytes.
const MAX_LINE: u64 = 4096;
/// The most characters of a command line that are shown.
const MAX_SHOWN: usize = 120;
/// The longest list of locks that is read, in bytes.
const MAX_LOCKS: u64 = 4 << 20;
/// The commands that write limits.
const COMMANDS: [&str; 2] = ["run", "agent"];

/// An allocator that runs.
#[derive(Debug, PartialEq, Eq)]
struct Allocator {
    pid: u32,
    /// Its command line.
    line: String,
    part: Part,
}

/// Which containers an allocator manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Those of this state folder: it has the folder's lock.
    Here,
    /// Some of this engine's: it shares the engine's lock with others of its kind.
    Confined,
    /// All of this engine's.
    All,
    /// Those of another engine.
    OtherEngine,
    /// It has no lock that can be seen from here.
    Unknown,
}

/// Allocators besides those that hold a lock in the state folder. `lock` is the file of the engine's
/// lock.
pub(super) fn others(proc: &Path, engines: &[EngineState], lock: Option<&Path>) -> Finding {
    let found = match allocators(proc, engines, lock) {
        Ok(found) => found,
        Err(error) => {
            let found = format!("cannot list the processes in {}: {error}", proc.display());
            return Finding::warning("allocators", found, "mount /proc, or set --proc");
        }
    };
    let of = |part: Part| {
        let of_it = found.iter().filter(|it| it.part == part);
        let shown = |it: &Allocator| format!("process {} ({})", it.pid, cut(&it.line, MAX_SHOWN));
        of_it.map(shown).collect::<Vec<_>>().join(", ")
    };
    let (all, unknown) = (of(Part::All), of(Part::Unknown));
    let (confined, elsewhere) = (of(Part::Confined), of(Part::OtherEngine));
    if !all.is_empty() {
        return Finding::warning(
            "allocators",
            format!("all containers of this engine are managed with another state folder: {all}"),
            "name that folder by --state-dir or --config to examine it; no other run starts \
             beside it, unless both are confined by --with-label",
        );
    }
    if !unknown.is_empty() {
        return Finding::warning(
            "allocators",
            format!("no lock of theirs is visible from here: {unknown}"),
            "check that each has another engine, or containers of its own by --with-label",
        );
    }
    let parts = [
        (!of(Part::Here).is_empty()).then(|| "the one that holds the lock".to_owned()),
        (!confined.is_empty()).then(|| format!("confined by --with-label: {confined}")),
        (!elsewhere.is_empty()).then(|| format!("of another engine: {elsewhere}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Finding::ok(
        "allocators",
        if parts.is_empty() { "none runs".to_owned() } else { parts.join("; ") },
    )
}

/// A folder of locks that is not the machine's.
pub(super) fn locks(given: Option<&Path>) -> Option<Finding> {
    let given = given?.display();
    let found = format!("{VARIABLE} is set: locks are in {given}");
    let advice = "unset it; allocators with another folder of locks are not noticed";
    Some(Finding::warning("locks", found, advice))
}

fn allocators(
    proc: &Path,
    engines: &[EngineState],
    lock: Option<&Path>,
) -> io::Result<Vec<Allocator>> {
    let holders = lock.map(|lock| holders(proc, lock)).unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that is not root has started the allocator's container, which is found itself.
        let root = entry.metadata().is_ok_and(|process| process.uid() == 0);
        if root && let Some(words) = command_line(&entry.path()) {
            let part = part(pid, &words, engines, &holders);
            found.push(Allocator { pid, line: words.join(" "), part });
        }
    }
    found.sort_by_key(|allocator| allocator.pid);
    Ok(found)
}

fn part(pid: u32, words: &[String], engines: &[EngineState], holders: &[(u32, Part)]) -> Part {
    let own = format!("process {pid} on ");
    let mut of_folder = engines.iter().filter_map(|engine| engine.holder.as_ref());
    if of_folder.any(|holder| holder.contains(&own)) {
        return Part::Here;
    }
    if let Some((_, part)) = holders.iter().find(|(holder, _)| *holder == pid) {
        return *part;
    }
    // An allocator in a container may have locks of its own.
    let confined =
        words.iter().any(|word| word == "--with-label" || word.starts_with("--with-label="));
    if confined { Part::Confined } else { Part::Unknown }
}

/// The processes that hold locks of engines, as the kernel lists them. The locks themselves are not
/// touched: a run that starts at this moment could not take its own.
fn holders(proc: &Path, lock: &Path) -> Vec<(u32, Part)> {
    let files = lock.parent().and_then(|locks| fs::read_dir(locks).ok()).into_iter().flatten();
    let inode = |file: fs::DirEntry| {
        let is_of_an_engine = file.path().extension().is_some_and(|it| it == "lock");
        let inode = file.metadata().ok().filter(|_| is_of_an_engine)?.ino();
        Some((inode.to_string(), file.path() == lock))
    };
    let files: BTreeMap<String, bool> = files.flatten().filter_map(inode).collect();
    let mut text = String::new();
    let read = File::open(proc.join("locks"))
        .and_then(|locks| locks.take(MAX_LOCKS).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let holder = |line: &str| {
        // 7: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, mode, pid, place, ..] = words.as_slice() else { return None };
        let part = match (files.get(place.rsplit(':').next()?)?, mode == "WRITE") {
            (false, _) => Part::OtherEngine,
            (true, true) => Part::All,
            (true, false) => Part::Confined,
        };
        Some((pid.parse().ok()?, part))
    };
    text.lines().filter_map(holder).collect()
}

/// The command line of a process, if it is an allocator. It may end at any time.
fn command_line(process: &Path) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    File::open(process.join("cmdline")).ok()?.take(MAX_LINE).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<String> =
        text.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let (program, rest) = words.split_first()?;
    let is_ours = Path::new(program).file_name().is_some_and(|name| name == "paceline");
    let writes = rest.iter().any(|word| COMMANDS.contains(&word.as_str()));
    (is_ours && writes).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    fn process(proc: &Path, pid: u32, words: &[&str]) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cmdline"), words.join("\0") + "\0").unwrap();
    }

    #[test]
    fn allocators_are_distinguished_by_their_locks() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 7, &["/usr/local/bin/paceline", "run", "--policy", "none"]);
        process(proc.path(), 8, &["paceline", "top"]);
        process(proc.path(), 9, &["run", "paceline"]);
        fs::create_dir(proc.path().join("self")).unwrap();
        let holder = |pid: u32| EngineState {
            holder: Some(format!("process {pid} on box since now, policy none")),
            ..EngineState::default()
        };
        let found = others(proc.path(), &[holder(7)], None);
        assert_eq!((found.level, &*found.found), (Level::Ok, "the one that holds the lock"));
        let found = others(proc.path(), &[holder(77)], None);
        assert_eq!(found.level, Level::Warning);
        assert!(found.found.contains("process 7 (/usr/local/bin/paceline run"), "{found:?}");
        assert_eq!(others(&proc.path().join("self"), &[], None).found, "none runs");
        assert_eq!(others(&proc.path().join("none"), &[], None).level, Level::Warning);
    }

    #[test]
    fn allocators_confined_by_labels_are_fine_beside_each_other() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 7, &["paceline", "run", "--with-label", "team=a"]);
        process(proc.path(), 8, &["paceline", "run", "--config", "/etc/b.toml"]);
        let lock = proc.path().join("engine.lock");
        fs::write(&lock, "").unwrap();
        let held_of = |lock_held: &Path, mode: &str| {
            let inode = fs::metadata(lock_held).unwrap().ino();
            let line = format!("1: FLOCK  ADVISORY  {mode} 8 fe:00:{inode} 0 EOF\n");
            let posix = format!("2: POSIX  ADVISORY  WRITE 7 fe:00:{inode} 0 EOF\n");
            fs::write(proc.path().join("locks"), line + &posix).unwrap();
            others(proc.path(), &[], Some(&lock))
        };
        let held = |mode: &str| held_of(&lock, mode);
        let found = held("READ");
        assert_eq!(found.level, Level::Ok, "{found:?}");
        assert!(found.found.contains("process 7 (") && found.found.contains("process 8 ("));
        let found = held("WRITE");
        assert_eq!(found.level, Level::Warning);
        assert!(found.found.starts_with("all containers of this engine"), "{found:?}");
        assert!(!found.found.contains("process 7 ("), "{found:?}");
        let of_another = proc.path().join("engine-2.lock");
        fs::write(&of_another, "").unwrap();
        let found = held_of(&of_another, "WRITE");
        assert_eq!(found.level, Level::Ok);
        assert!(found.found.contains("of another engine: process 8 ("), "{found:?}");
        fs::write(proc.path().join("locks"), "").unwrap();
        let found = others(proc.path(), &[], Some(&lock));
        assert_eq!(found.level, Level::Warning);
        assert!(found.found.starts_with("no lock of theirs"), "{found:?}");
    }
}
