//! TensorBoard event files, read while they are written.
//!
//! [`record`] finds the records in the bytes, [`event`] decodes one, and [`tags`] gives the meaning
//! of its values. [`folder::Folder`] combines them for all files below a folder.

mod emitter;
pub mod event;
mod facts;
mod file;
pub mod folder;
mod proto;
pub mod record;
mod run;
mod scan;
pub mod tags;

#[cfg(test)]
mod encode;
