//! Other allocators on this machine, found among its processes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use paceline_node::limits::inspection::EngineState;

use super::report::Finding;

/// The longest command line that is read, in bytes.
const MAX_LINE: u64 = 4096;
/// The commands that write limits.
const COMMANDS: [&str; 2] = ["run", "agent"];

/// An allocator that runs.
#[derive(Debug, PartialEq, Eq)]
struct Allocator {
    pid: u32,
    /// Its command line.
    line: String,
}

/// Allocators besides those that hold a lock in the state folder.
pub(super) fn others(proc: &Path, engines: &[EngineState]) -> Finding {
    let found = match allocators(proc) {
        Ok(found) => found,
        Err(error) => {
            let found = format!("cannot list the processes in {}: {error}", proc.display());
            return Finding::warning("allocators", found, "mount /proc, or set --proc");
        }
    };
    let holds = |allocator: &Allocator| {
        let words = format!("process {} on ", allocator.pid);
        let holders = engines.iter().filter_map(|engine| engine.holder.as_ref());
        holders.into_iter().any(|holder| holder.contains(&words))
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) = found.into_iter().partition(holds);
    if elsewhere.is_empty() {
        let found = if here.is_empty() { "none runs" } else { "the one that holds the lock" };
        return Finding::ok("allocators", found);
    }
    let lines: Vec<String> =
        elsewhere.iter().map(|it| format!("process {} ({})", it.pid, it.line)).collect();
    Finding::warning(
        "allocators",
        format!("others use another state folder: {}", lines.join(", ")),
        "end them, or give each allocator containers of its own by --with-label",
    )
}

fn allocators(proc: &Path) -> io::Result<Vec<Allocator>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that is not root has started the allocator's container, which is found itself.
        let root = entry.metadata().is_ok_and(|process| process.uid() == 0);
        if root && let Some(line) = command_line(&entry.path()) {
            found.push(Allocator { pid, line });
        }
    }
    found.sort_by_key(|allocator| allocator.pid);
    Ok(found)
}

/// The command line of a process, if it is an allocator. It may end at any time.
fn command_line(process: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(process.join("cmdline")).ok()?.take(MAX_LINE).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split('\0').filter(|word| !word.is_empty()).collect();
    let (program, rest) = words.split_first()?;
    let is_ours = Path::new(program).file_name().is_some_and(|name| name == "paceline");
    let writes = rest.iter().any(|word| COMMANDS.contains(word));
    (is_ours && writes).then(|| words.join(" "))
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
    fn allocators_are_told_apart_by_the_lock_that_they_hold() {
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
        let found = others(proc.path(), &[holder(7)]);
        assert_eq!((found.level, &*found.found), (Level::Ok, "the one that holds the lock"));
        let found = others(proc.path(), &[holder(77)]);
        assert_eq!(found.level, Level::Warning);
        assert!(found.found.contains("process 7 (/usr/local/bin/paceline run"), "{found:?}");
        assert_eq!(others(&proc.path().join("self"), &[]).found, "none runs");
        assert_eq!(others(&proc.path().join("none"), &[]).level, Level::Warning);
    }
}
