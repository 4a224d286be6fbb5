//! A pipe, which can be read only once and forwards.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Piece, Progress, READS, State};

/// Reads a pipe without blocking.
#[derive(Debug)]
pub(super) struct Stream {
    file: File,
    /// Whether it stays open without a writer, as a named pipe does.
    lasting: bool,
    ended: bool,
}

impl Stream {
    pub(super) fn new(file: File, lasting: bool) -> Self {
        Self { file, lasting, ended: false }
    }

    pub(super) fn poll(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> io::Result<Progress> {
        let mut more = false;
        for _ in 0..READS {
            more = !self.ended && self.has_bytes()?;
            if !more {
                break;
            }
            match self.file.read(buffer) {
                Ok(0) => {
                    self.ended = !self.lasting;
                    more = false;
                    break;
                }
                Ok(read) => sink(Piece::Bytes(buffer.get(..read).unwrap_or_default())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    more = false;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let state = if self.ended { State::Ended } else { State::Up };
        Ok(Progress { state, more, ..Progress::default() })
    }

    /// Whether a read would not block. The pipe may be shared with other processes, so it must not
    /// be set to non-blocking.
    fn has_bytes(&self) -> io::Result<bool> {
        let mut wanted = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut wanted, Some(&Timespec::default())) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
