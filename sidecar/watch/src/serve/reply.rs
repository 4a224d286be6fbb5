//! The body of an answer: a text, or the events of a job for as long as the browser listens.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::client::{Answer, MAX_PROGRESS_BYTES};

/// An answer's body.
#[derive(Debug)]
pub(super) enum Reply {
    /// The whole text; `None` once it has been sent.
    Whole(Option<Bytes>),
    /// Events, passed through. They end where a line is longer than a progress may be.
    Events {
        answer: Box<Answer>,
        /// Bytes since the last end of a line.
        line: usize,
    },
}

impl Reply {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }

    pub(super) fn events(answer: Answer) -> Self {
        Self::Events { answer: Box::new(answer), line: 0 }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Whole(bytes) => bytes.take(),
            Self::Events { answer, line } => match ready!(answer.poll_next(context)) {
                // The browser connects again, and learns by then that the job is gone.
                None | Some(Err(_)) => None,
                Some(Ok(piece)) => {
                    *line = match piece.iter().rposition(|byte| *byte == b'\n') {
                        Some(end) => piece.len() - end - 1,
                        None => *line + piece.len(),
                    };
                    Some(piece).filter(|_| *line <= MAX_PROGRESS_BYTES)
                }
            },
        };
        Poll::Ready(piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Events { .. } => SizeHint::default(),
        }
    }
}
