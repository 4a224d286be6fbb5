//! The allocator's own turn on a machine whose cores are all taken.

use rustix::process::setpriority_process;
use tracing::debug;

/// How nice it is: it needs little, and at once. Between a job's word and the new limit it has to
/// run some ten times, each time behind jobs that never pause.
const NICE: i32 = -10;

/// Has the kernel run this process soon after it wakes, where it may ask for that.
pub(super) fn raise() {
    if let Err(error) = setpriority_process(None, NICE) {
        debug!("no higher priority than other processes: {error}");
    }
}
