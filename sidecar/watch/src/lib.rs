//! Shows the training jobs of one machine: in a terminal, as text or JSON, and on a page.
//!
//! [`watch()`] and [`serve()`] share what lies below them. `discover` knows where endpoints may be, and
//! `client` asks them within bounds of time and size: any process may listen there. `watcher` asks
//! again and again, and keeps the answers in `jobs`. `facts` puts them into words, which `snapshot`,
//! `view` and `listing` show.
//!
//! [`FullScreen`] has the terminal; the allocator's `top` draws on it, too.
//!
//! Everything here only reads. A job answers a few small requests, and is never waited for.

mod address;
mod args;
mod clean;
mod client;
mod clock;
mod discover;
mod error;
mod facts;
mod figures;
mod full_screen;
mod jobs;
mod listing;
mod past;
mod serve;
mod snapshot;
mod terminal;
mod view;
mod watch;
mod watcher;

pub use address::{Address, InvalidAddress};
pub use args::{SearchArgs, ServeArgs, WatchArgs};
pub use error::{Ending, Error};
pub use full_screen::{FullScreen, events};
pub use serve::serve;
pub use watch::watch;

#[cfg(test)]
mod tests;
