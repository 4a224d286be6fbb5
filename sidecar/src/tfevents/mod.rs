//! TensorBoard event files, read while they are written.
//!
//! [`record`] finds the records in the bytes, [`event`] decodes one, [`tags`] says what its values
//! mean, and [`folder::Folder`] does all of it for the files below a folder.

pub mod event;
mod facts;
mod file;
pub mod folder;
pub mod record;
mod run;
mod scan;
pub mod tags;
mod teller;
mod wire;

#[cfg(test)]
mod encode;
