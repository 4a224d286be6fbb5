//! Which of a source's losses is the job's.

use crate::observation::{Loss, Observation, Phase, Span};

/// What has been chosen so far.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// The finest that it has told: coarser ones tell the same again.
    span: Option<Span>,
    /// The lowest rank that has told a training loss: the others tell the same, or their part.
    rank: Option<u32>,
}

impl Choice {
    /// Whether the observation is the leading rank's.
    pub(super) fn leads(&mut self, observation: &Observation) -> bool {
        let Some(rank) = observation.rank else { return true };
        let trains = observation.losses.iter().any(|loss| loss.phase == Phase::Train);
        if trains && self.rank.is_none_or(|leading| rank < leading) {
            self.rank = Some(rank);
        }
        self.rank.is_none_or(|leading| rank == leading)
    }

    /// The training loss to take, if there is one; `named` is the one that a person wants.
    pub(super) fn train<'o>(
        &mut self,
        observation: &'o Observation,
        named: Option<&str>,
    ) -> Option<&'o Loss> {
        let wanted = |loss: &&Loss| match named {
            Some(name) => loss.name == name,
            None => loss.phase == Phase::Train && loss.span != Span::Run,
        };
        // The first of the finest.
        let loss = observation.losses.iter().filter(wanted).min_by_key(|loss| loss.span)?;
        let finest = self.span.map_or(loss.span, |finest| finest.min(loss.span));
        self.span = Some(finest);
        (loss.span == finest).then_some(loss)
    }

    /// What the losses are the mean of.
    pub(super) fn span(&self) -> Option<Span> {
        self.span
    }

    /// The leading rank, if ranks are told.
    pub(super) fn rank(&self) -> Option<u32> {
        self.rank
    }
}
