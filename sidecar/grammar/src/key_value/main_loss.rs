//! Which losses of a line are the main ones.

use paceline_lines::names::{PART, is_whole_cost, rank};
use paceline_lines::observation::{Loss, Phase, Span};

use super::WEAK;
use crate::draft::Draft;

/// Removes the parts beside a cost that is their whole: `box_loss 1.5 cls_loss 0.5 total_cost 2.0`. Beside one
/// part, the cost may be that of something else.
pub(super) fn keep_whole_cost(draft: &mut Draft) {
    if !draft.found.losses.iter().any(|loss| is_whole_cost(&loss.name)) {
        return;
    }
    let trains = |loss: &&Loss| loss.phase == Phase::Train;
    let of_training = || draft.found.losses.iter().filter(trains);
    let parts = of_training().filter(|loss| (PART..WEAK).contains(&rank(&loss.name))).count();
    let has_main = of_training().any(|loss| rank(&loss.name) < PART);
    if parts > 1 && !has_main && of_training().any(|loss| is_whole_cost(&loss.name)) {
        draft.retain(|loss| loss.phase != Phase::Train || is_whole_cost(&loss.name));
    }
}

/// Keras's mean of the epoch so far is called `batch_loss` in its callbacks. Alone on a line it is the loss
/// of the batch.
pub(super) fn of_batch(losses: &mut [Loss]) {
    let is_so_far = |loss: &Loss| loss.span == Span::EpochSoFar;
    let is_other =
        |loss: &Loss| loss.phase == Phase::Train && !is_so_far(loss) && rank(&loss.name) < PART;
    if losses.iter().any(is_so_far) && !losses.iter().any(is_other) {
        losses.iter_mut().filter(|loss| is_so_far(loss)).for_each(|loss| loss.span = Span::Step);
    }
}
