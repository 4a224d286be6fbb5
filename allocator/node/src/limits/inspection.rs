//! What earlier runs have left in a state folder, read without changing anything: for
//! `paceline doctor`.

use std::fs::TryLockError;
use std::io::{self, Read};

use paceline_api::state_folder::StateFolder;
use serde::Deserialize;

/// The longest record that is read, in bytes.
const MAX_RECORD: u64 = 1 << 20;
/// The longest text of a lock, in bytes.
const MAX_HOLDER: u64 = 4096;

/// What a state folder holds for one container engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineState {
    /// The folder's name, made from the engine's id.
    pub folder: String,
    /// The process that holds the lock now; `None` if none does.
    pub holder: Option<String>,
    /// Containers with recorded original limits: their ids and names.
    pub limited: Vec<(String, String)>,
    /// Records that cannot be used, each with the reason.
    pub unreadable: Vec<String>,
    /// The number of moves that are under way.
    pub moves: usize,
}

/// The part of a record that is shown.
#[derive(Deserialize)]
struct Record {
    name: String,
}

/// What the folder holds, by engine.
pub fn inspect(folder: &StateFolder) -> io::Result<Vec<EngineState>> {
    let mut all = Vec::new();
    for name in folder.names()? {
        let Some(below) = folder.existing_subfolder(&name)? else { continue };
        if let Some(lock) = below.file("lock")? {
            all.push(of_engine(name, &below, lock)?);
        }
    }
    Ok(all)
}

fn of_engine(name: String, folder: &StateFolder, lock: std::fs::File) -> io::Result<EngineState> {
    let mut state = EngineState { folder: name, holder: holder(lock)?, ..EngineState::default() };
    for name in folder.names()? {
        let Some(id) = name.strip_suffix(".json") else { continue };
        match record(folder, &name) {
            Ok(Some(record)) => state.limited.push((id.to_owned(), record.name)),
            // Removed meanwhile.
            Ok(None) => {}
            Err(error) => {
                let path = folder.path_of(&name);
                state.unreadable.push(format!("{}: {error}", path.display()));
            }
        }
    }
    if let Some(moves) = folder.existing_subfolder("moves")? {
        state.moves = moves.names()?.iter().filter_map(|name| name.strip_suffix(".json")).count();
    }
    Ok(state)
}

fn record(folder: &StateFolder, name: &str) -> io::Result<Option<Record>> {
    let Some(bytes) = folder.read(name, MAX_RECORD)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)
}

/// Who holds a lock, by its own words.
fn holder(mut lock: std::fs::File) -> io::Result<Option<String>> {
    match lock.try_lock_shared() {
        Ok(()) => {
            lock.unlock()?;
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The lock counts, whatever its file says.
            drop(lock.by_ref().take(MAX_HOLDER).read_to_string(&mut text));
            Ok(Some(text.lines().next().unwrap_or_default().trim().to_owned()))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::limits::originals::Originals;

    #[test]
    fn state_folder_is_described_and_unchanged() {
        let place = tempfile::tempdir().unwrap();
        let originals = Originals::open(place.path(), "AB:CD", "policy none").unwrap();
        fs::write(place.path().join("AB-CD/4f2a.json"), r#"{"name": "of-4f2a"}"#).unwrap();
        fs::write(place.path().join("AB-CD/5e.json"), "{").unwrap();
        fs::create_dir(place.path().join("AB-CD/moves")).unwrap();
        fs::write(place.path().join("AB-CD/moves/4f2a.json"), "{}").unwrap();
        fs::write(place.path().join("notes"), "").unwrap();
        let folder = StateFolder::for_reading(place.path()).unwrap().unwrap();
        let held = inspect(&folder).unwrap();
        let [state] = held.as_slice() else { panic!("{held:?}") };
        assert!(state.holder.as_deref().unwrap().contains("policy none"), "{state:?}");
        assert_eq!(state.folder, "AB-CD");
        assert_eq!(state.limited, [("4f2a".to_owned(), "of-4f2a".to_owned())]);
        assert_eq!((state.unreadable.len(), state.moves), (1, 1));
        assert!(state.unreadable[0].contains("AB-CD/5e.json: "), "{state:?}");
        drop(originals);
        assert_eq!(inspect(&folder).unwrap()[0].holder, None);
        // Looking does not hold the lock.
        drop(Originals::open(place.path(), "AB:CD", "policy none").unwrap());
    }

    #[test]
    fn allocator_starts_while_another_looks_at_its_folder() {
        let place = tempfile::tempdir().unwrap();
        let open = || Originals::open(place.path(), "AB:CD", "policy none");
        drop(open().unwrap());
        let lock = fs::File::open(place.path().join("AB-CD/lock")).unwrap();
        lock.lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(20));
            drop(lock);
        });
        drop(open().unwrap());
        looking.join().unwrap();
    }

    #[test]
    fn folder_without_engines_holds_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::for_reading(place.path()).unwrap().unwrap();
        assert_eq!(inspect(&folder).unwrap(), []);
    }
}
