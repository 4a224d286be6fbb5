//! The successive files under one name.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirEntryExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::open::{Got, Identity, Mark, Open};
use super::{Break, Piece, Progress, READS, State};

/// Number of remembered files, for example for a link that points back at one.
const KNOWN: usize = 8;
/// Maximum number of folder entries searched for a renamed file.
const ENTRIES: usize = 10_000;
/// The most bytes before a saved position that are read again.
const RECALLED: u64 = 256 << 20;
/// Maximum number of breaks in one poll.
const BREAKS: u32 = 8;

/// Follows the files under a name.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    open: Option<Open>,
    /// Later files under the name, which are still empty. A program whose log was rotated writes to the old
    /// file until it opens the new one, and many never do.
    next: VecDeque<Open>,
    /// Files that were read before.
    known: VecDeque<Mark>,
    /// The file that the previous follower was reading, and the empty ones after it. They may have been
    /// renamed since.
    unfinished: Vec<Mark>,
    recall: Recall,
}

/// Whether the first file was read again up to its saved position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recall {
    NotYet,
    /// From here on it was not.
    From(u64),
    Done,
}

/// The file type found under the name.
#[derive(Debug)]
pub(super) enum Found {
    File(Progress),
    Pipe(File),
}

impl Tail {
    pub(super) fn new(path: PathBuf, known: Vec<Mark>) -> Self {
        let last = known.iter().rposition(|mark| mark.offset > 0).unwrap_or(0);
        let unfinished = known.get(last..).unwrap_or_default().to_vec();
        let (next, recall) = (VecDeque::new(), Recall::NotYet);
        Self { path, open: None, next, known: known.into(), unfinished, recall }
    }

    pub(super) fn poll(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> io::Result<Found> {
        let mut progress = Progress::default();
        if self.open.is_none() {
            match self.find()? {
                Some(Opened::File(open)) => self.open = Some(open),
                Some(Opened::Pipe(file)) => return Ok(Found::Pipe(file)),
                None => return Ok(Found::File(progress)),
            }
            progress.opened = true;
        }
        if self.recall != Recall::Done {
            progress.more = self.recall(buffer, sink)?;
            if progress.more {
                progress.state = State::Up;
                return Ok(Found::File(progress));
            }
        }
        self.read(buffer, sink, &mut progress)?;
        Ok(Found::File(progress))
    }

    /// Reads what is before the saved position again. Returns whether there is more of it.
    fn recall(&mut self, buffer: &mut [u8], sink: &mut dyn FnMut(Piece<'_>)) -> io::Result<bool> {
        let Some(open) = &self.open else { return Ok(false) };
        let mut from = match self.recall {
            Recall::From(from) => from,
            Recall::NotYet | Recall::Done => open.mark().offset.saturating_sub(RECALLED),
        };
        for _ in 0..READS {
            let read = open.read_again(buffer, from)?;
            let bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                self.recall = Recall::Done;
                return Ok(false);
            }
            from = from.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            sink(Piece::Recalled(bytes));
        }
        self.recall = Recall::From(from);
        Ok(true)
    }

    fn read(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Piece<'_>),
        progress: &mut Progress,
    ) -> io::Result<()> {
        // Set once the old file has a successor. The old file is read to its end first.
        let mut successor = None;
        for _ in 0..READS + BREAKS {
            let Some(open) = &mut self.open else { return Ok(()) };
            let got = open.has_name().and_then(|has_name| {
                let is_up = has_name || !self.next.is_empty();
                progress.state = if is_up { State::Up } else { State::Missing };
                open.read(buffer, sink)
            });
            if got.is_err() {
                // A stale handle is useless.
                self.close();
            }
            match got? {
                Got::Bytes => {}
                Got::Truncated => sink(Piece::Break(Break::Truncated)),
                Got::Replaced => sink(Piece::Break(Break::Replaced)),
                Got::End => match successor.take() {
                    Some(open) => {
                        self.close();
                        self.open = Some(open);
                        progress.opened = true;
                        sink(Piece::Break(Break::Rotated));
                    }
                    None => match self.successor()? {
                        None => return Ok(()),
                        found => successor = found,
                    },
                },
            }
        }
        progress.more = true;
        Ok(())
    }

    /// The read positions of all files; the current one and the empty ones after it last.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let later: Vec<Mark> = self.open.iter().chain(&self.next).map(Open::mark).collect();
        let is_before = |mark: &&Mark| later.iter().all(|one| one.identity != mark.identity);
        self.known.iter().filter(is_before).chain(&later).copied().collect()
    }

    fn close(&mut self) {
        let Some(mark) = self.open.take().map(|open| open.mark()) else { return };
        self.known.retain(|known| known.identity != mark.identity);
        self.known.push_back(mark);
        if self.known.len() > KNOWN {
            self.known.pop_front();
        }
    }

    /// The first file to read, if there is any.
    fn find(&mut self) -> io::Result<Option<Opened>> {
        let found = open(&self.path)?;
        let inode = found.as_ref().map(|(_, metadata)| Identity::from_metadata(metadata).inode);
        // The rest of files that were renamed meanwhile comes first.
        let is_elsewhere = |mark: &&Mark| inode != Some(mark.identity.inode);
        let mut earlier = self.unfinished.iter().take_while(is_elsewhere);
        let mut found_earlier = earlier.by_ref().filter_map(|mark| renamed(&self.path, *mark));
        if let Some(open) = found_earlier.next() {
            self.next = found_earlier.collect();
            self.unfinished.clear();
            return Ok(Some(Opened::File(open)));
        }
        let Some((file, metadata)) = found else { return Ok(None) };
        self.unfinished.clear();
        let kind = metadata.file_type();
        Ok(Some(if kind.is_fifo() || kind.is_char_device() {
            Opened::Pipe(file)
        } else {
            Opened::File(Open::new(file, Identity::from_metadata(&metadata), self.known.iter())?)
        }))
    }

    /// The first later file that has bytes.
    fn successor(&mut self) -> io::Result<Option<Open>> {
        let other = |metadata: &fs::Metadata| {
            let identity = Identity::from_metadata(metadata);
            let is_new = self.open.iter().chain(&self.next).all(|open| open.identity != identity);
            Some(identity).filter(|_| is_new && metadata.is_file())
        };
        // It is usually the same file and need not be opened.
        if fs::metadata(&self.path).is_ok_and(|metadata| other(&metadata).is_some())
            && let Some((file, metadata)) = open(&self.path)?
            && let Some(identity) = other(&metadata)
        {
            self.next.push_back(Open::new(file, identity, self.known.iter())?);
            if self.next.len() > KNOWN {
                self.next.pop_front();
            }
        }
        let ready = self.next.iter().position(|open| !open.is_empty());
        Ok(ready.and_then(|at| self.next.drain(..=at).next_back()))
    }
}

/// The first file under a name.
enum Opened {
    File(Open),
    Pipe(File),
}

/// Opens without waiting for the other end of a pipe. `None` if it does not exist.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, fs::Metadata)>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => {
            let file = File::from(file);
            let metadata = file.metadata()?;
            Ok(Some((file, metadata)))
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Searches the folder of `path` for the file of `mark`.
fn renamed(path: &Path, mark: Mark) -> Option<Open> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut same = entries.take(ENTRIES).flatten().filter(|e| e.ino() == mark.identity.inode);
    same.find_map(|entry| {
        let (file, metadata) = open(&entry.path()).ok()??;
        let identity = Identity::from_metadata(&metadata);
        let open = Open::new(file, identity, std::iter::once(&mark)).ok()?;
        Some(open).filter(|open| metadata.is_file() && open.mark().offset == mark.offset)
    })
}
