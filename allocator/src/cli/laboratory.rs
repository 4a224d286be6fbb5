//! The commands that compare policies. In a build without the feature `bench`, such as the daemon's
//! image, they only print an error.

#[cfg(not(feature = "bench"))]
mod absent;
#[cfg(feature = "bench")]
mod present;

#[cfg(not(feature = "bench"))]
pub(super) use absent::Laboratory;
#[cfg(feature = "bench")]
pub(super) use present::Laboratory;
