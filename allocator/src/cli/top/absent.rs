//! The replacement in a build without screens, such as the daemon's image: plain lines.

use std::convert::Infallible;
use std::io;

use paceline_api::live::snapshot::Snapshot;
use paceline_api::signals::Ending;

/// Never made.
#[derive(Debug)]
pub(super) struct Screen(Infallible);

impl Screen {
    #[expect(clippy::unnecessary_wraps, reason = "it replaces a function that can fail")]
    pub(super) fn open() -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) fn show(&mut self, _seen: &anyhow::Result<Snapshot>) -> io::Result<()> {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "it replaces an async function")]
    pub(super) async fn ended(&mut self) -> io::Result<Ending> {
        match self.0 {}
    }
}
