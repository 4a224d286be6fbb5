//! Selects the job's loss among those of a source.

use paceline_lines::names;
use paceline_lines::observation::{Loss, Observation, Phase, Span};

/// The selection so far.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// The finest span so far: coarser losses repeat the same values.
    span: Option<Span>,
    /// The lowest rank that has reported a training loss. Other ranks report the same loss, or only
    /// their part of it.
    rank: Option<u32>,
    /// The lowest rank that has reported any loss.
    lowest: Option<u32>,
    /// The name of the last loss, and its kind.
    name: String,
    kind: Kind,
    /// The best kind so far, and how many losses of worse kinds have come since.
    best: Option<Kind>,
    worse: u32,
}

/// Whether a loss is the one that the training minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It is, as far as its name shows.
    #[default]
    Main,
    /// It is a part of another one.
    Part,
    /// It has another name, such as `cost`.
    Other,
}

/// Losses of worse kinds in a row after which they are taken: the better one has ended.
const MAX_WORSE: u32 = 32;

impl Choice {
    /// Whether the observation belongs to the leading rank.
    pub(super) fn leads(&mut self, observation: &Observation) -> bool {
        let Some(rank) = observation.rank else { return true };
        let trains = observation.losses.iter().any(|loss| loss.phase == Phase::Train);
        if trains && self.rank.is_none_or(|leading| rank < leading) {
            self.rank = Some(rank);
        }
        if !observation.losses.is_empty() {
            self.lowest = Some(self.lowest.map_or(rank, |lowest| lowest.min(rank)));
        }
        self.rank.or(self.lowest).is_none_or(|leading| rank == leading)
    }

    /// The training loss to report, if there is one; `named` is the name that the user chose.
    pub(super) fn train<'o>(
        &mut self,
        observation: &'o Observation,
        named: Option<&str>,
    ) -> Option<&'o Loss> {
        let wanted = |loss: &&Loss| match named {
            Some(name) => loss.name == name,
            None => loss.phase == Phase::Train && loss.span != Span::Run,
        };
        // The finest, and among several the main one. A mean of the last steps is the main one beside parts.
        let mut losses = observation.losses.iter().filter(wanted);
        let first = losses.next()?;
        let better = |loss: &Loss, than: &Loss| {
            if loss.span == than.span {
                return names::rank(&loss.name) < names::rank(&than.name);
            }
            let is_main = |loss: &Loss| kind(&loss.name) == Kind::Main;
            let are_of_steps = loss.span.max(than.span) < Span::Epoch;
            if are_of_steps && is_main(loss) != is_main(than) {
                is_main(loss)
            } else {
                loss.span < than.span
            }
        };
        let loss = losses.fold(first, |best, loss| if better(loss, best) { loss } else { best });
        let finest = self.span.map_or(loss.span, |finest| finest.min(loss.span));
        self.span = Some(finest);
        (loss.span == finest && (named.is_some() || self.is_main(loss))).then_some(loss)
    }

    /// Whether no better kind of loss is reported.
    fn is_main(&mut self, loss: &Loss) -> bool {
        if self.name != loss.name {
            self.name.clone_from(&loss.name);
            self.kind = kind(&loss.name);
        }
        if self.best.is_some_and(|best| self.kind > best) && self.worse < MAX_WORSE {
            self.worse += 1;
            return false;
        }
        (self.best, self.worse) = (Some(self.kind), 0);
        true
    }

    /// Whether all training losses of `observation` are only parts, and no whole one is known.
    pub(super) fn is_partial(&self, observation: &Observation) -> bool {
        let mut losses = observation.losses.iter().filter(|loss| loss.phase == Phase::Train);
        let partial = |loss: &Loss| kind(&loss.name) == Kind::Part;
        self.best.is_none() && losses.clone().next().is_some() && losses.all(partial)
    }

    /// Whether all losses of `observation` are of the training, and one has the name of the last one.
    pub(super) fn goes_on(&self, observation: &Observation) -> bool {
        let losses = &observation.losses;
        losses.iter().all(|loss| loss.phase == Phase::Train)
            && losses.iter().any(|loss| loss.name == self.name)
    }

    /// Whether the losses so far have come without a rank, and `observation` has a rank and no loss.
    pub(super) fn names_no_rank(&self, observation: &Observation) -> bool {
        observation.losses.is_empty() && self.span.is_some() && self.lowest.is_none()
    }

    /// The steps over which the losses are averaged.
    pub(super) fn span(&self) -> Option<Span> {
        self.span
    }

    /// The leading rank, if the source reports ranks.
    pub(super) fn rank(&self) -> Option<u32> {
        self.rank
    }
}

fn kind(name: &str) -> Kind {
    match names::rank(name) {
        0 | 1 => Kind::Main,
        2 | 3 => Kind::Part,
        _ => Kind::Other,
    }
}
