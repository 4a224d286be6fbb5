//! The locks of an engine's containers: the holder of one may write to its container.

use std::fs;
use std::path::{Path, PathBuf};

use tracing::warn;

use super::super::originals::{OriginalsError, at};
use super::engine::EngineLock;
use super::file::{Failed, Lock, first_line, open_to_read, text, text_of_holder};

/// The first line of a container's lock while no state folder needs to have its originals: before its
/// record is written, and after its limits were restored.
const NO_STATE: &str = "-";

/// The lock of one container.
#[derive(Debug)]
pub(in crate::limits) struct Claim {
    lock: Lock,
    /// The state folder with its originals, and the lines after it.
    text: String,
}

/// A container whose lock no process has, and whose record is missing.
pub(in crate::limits) struct Abandoned {
    pub(in crate::limits) id: String,
    pub(in crate::limits) state: PathBuf,
    /// The file of its lock.
    pub(in crate::limits) claim: PathBuf,
}

/// What the lock of a container lacks.
enum Missing {
    /// Nothing of ours is in the container.
    Nothing,
    /// The record of its originals, in this state folder.
    RecordIn(PathBuf),
}

impl EngineLock {
    /// Takes the lock of container `id`. It is refused while another process has it, and while another
    /// state folder has the container's originals, or our own one has lost them. With `recorded`, our own
    /// one has them: if the other one is missing, it was moved here.
    pub(in crate::limits) fn claim(
        &self,
        id: &str,
        recorded: bool,
    ) -> Result<Claim, OriginalsError> {
        let path = self.claim_of(id);
        if !self.folder.exists() {
            self.open_folder()?;
        }
        let mut lock = Lock::take(&path, false).map_err(|failed| match failed {
            Failed::Held(file) => {
                let holder = text_of_holder(&file);
                let holder = holder.lines().last().unwrap_or_default().to_owned();
                OriginalsError::Claimed { holder, claim: path.clone() }
            }
            Failed::Io(error) => OriginalsError::Io(path.clone(), error),
        })?;
        let before = text(&lock.file);
        if let Some(state) = before.lines().next().filter(|state| *state != NO_STATE) {
            let is_own = self.state == state;
            let state = Path::new(state);
            let is_lost = is_own && !recorded;
            let is_elsewhere =
                !is_own && may_have_record(state, id) && (!recorded || state.exists());
            if is_lost || is_elsewhere {
                return Err(OriginalsError::LeftBehind { state: state.to_owned(), claim: path });
            }
        }
        let text = self.text_of_claims();
        let begun = if recorded { text.clone() } else { without_state(&text) };
        lock.write(&begun).map_err(at(&path))?;
        Ok(Claim { lock, text })
    }

    /// The containers of this engine whose locks no process has, and whose records are not where the locks
    /// say.
    pub(in crate::limits) fn abandoned(&self) -> Vec<Abandoned> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let abandoned = |file: fs::DirEntry| {
            let name = file.file_name();
            let id = name.to_str()?.strip_suffix(".claim")?.to_owned();
            let claim = file.path();
            // While a lock is held here, an allocator that needs it is refused. So it is taken only where
            // its text says that none will.
            self.missing(&text(&open_to_read(&claim).ok()?), &id)?;
            let lock = Lock::take(&claim, false).ok()?;
            match self.missing(&text(&lock.file), &id)? {
                Missing::Nothing => {
                    lock.remove();
                    None
                }
                Missing::RecordIn(state) => Some(Abandoned { id, state, claim }),
            }
        };
        files.filter_map(abandoned).collect()
    }

    /// What the lock of container `id` with this text lacks; `None` if it is needed, or another engine's.
    fn missing(&self, text: &str, id: &str) -> Option<Missing> {
        let mut lines = text.lines();
        let (state, engine) = (lines.next()?, lines.next());
        if engine != Some(&format!("engine {}", self.engine)) {
            return None;
        }
        if state == NO_STATE {
            return Some(Missing::Nothing);
        }
        let state = PathBuf::from(state);
        let is_lost = !state.exists() || !may_have_record(&state, id);
        is_lost.then_some(Missing::RecordIn(state))
    }

    /// Whether the lock of container `id` names a state folder that has the originals, or had.
    pub(in crate::limits) fn names_a_record(&self, id: &str) -> bool {
        let state = open_to_read(&self.claim_of(id)).map(|file| text(&file));
        state.is_ok_and(|state| !matches!(first_line(&state), "" | NO_STATE))
    }

    /// Removes the lock of a container that does not exist any more.
    pub(in crate::limits) fn remove_claim(&self, id: &str) {
        if let Ok(lock) = Lock::take(&self.claim_of(id), false) {
            lock.remove();
        }
    }

    /// The text of a container's lock while the state folder has its originals.
    fn text_of_claims(&self) -> String {
        format!("{}\nengine {}\n{}\n", self.state, self.engine, self.holder)
    }

    fn claim_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.claim"))
    }
}

impl Claim {
    /// Whether its file is still there, so that no other process can take it.
    pub(in crate::limits) fn is_held(&self) -> bool {
        self.lock.is_at_its_path()
    }

    /// From now on the state folder has the container's originals.
    pub(in crate::limits) fn is_recorded(&mut self) {
        self.say(&self.text.clone());
    }

    /// From now on no state folder needs to have them: nothing of ours is left in the container.
    pub(in crate::limits) fn is_restored(&mut self) {
        self.say(&without_state(&self.text));
    }

    fn say(&mut self, text: &str) {
        if let Err(error) = self.lock.write(text) {
            warn!("cannot write {}: {error}", self.lock.path.display());
        }
    }

    /// Ends it.
    pub(in crate::limits) fn release(self) {
        self.lock.remove();
    }
}

/// The text of a container's lock without its state folder.
fn without_state(text: &str) -> String {
    text.split_once('\n').map_or_else(String::new, |(_, rest)| format!("{NO_STATE}\n{rest}"))
}

/// Whether a state folder has a record of container `id`, or cannot be seen from here.
fn may_have_record(state: &Path, id: &str) -> bool {
    let Ok(engines) = fs::read_dir(state) else { return true };
    engines.flatten().any(|engine| engine.path().join(format!("{id}.json")).exists())
}
