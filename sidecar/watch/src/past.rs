//! The past of a job, as its endpoint tells it: the points of the chart of its loss.

use paceline_wire::History;

/// Beyond so many points all are read again, since the endpoint has merged its own by then.
const MAX_POINTS: usize = 3_000;

/// What was reported in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Its start, in Unix seconds.
    from: f64,
    /// Its end.
    pub(crate) to: f64,
    /// The step at its end.
    pub(crate) step: Option<u64>,
    /// Mean of the losses.
    pub(crate) loss: Option<f64>,
    /// The smoothed loss at its end.
    pub(crate) smoothed: Option<f64>,
    /// The loss on held-out data.
    pub(crate) validation: Option<f64>,
}

/// The points of a job, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    instance: String,
    /// Start of the reporting, in Unix seconds.
    pub(crate) started_at: f64,
    pub(crate) points: Vec<Point>,
}

impl Past {
    /// The path that asks for what is not known yet.
    pub(crate) fn path(&self) -> String {
        match self.points.last().filter(|_| self.points.len() <= MAX_POINTS) {
            Some(last) => format!("/v1/history?after={}", last.to),
            None => "/v1/history".to_owned(),
        }
    }

    /// Adds the answer to [`Past::path`] of a past like this one.
    pub(crate) fn take(&mut self, history: &History) {
        let is_part = self.points.len() <= MAX_POINTS && self.instance == history.instance;
        let new = points(history);
        if is_part {
            // The last point may have grown since it was read.
            let first = new.first().map_or(f64::INFINITY, |point| point.from);
            self.points.retain(|point| point.from < first);
        } else {
            self.points.clear();
        }
        self.points.extend(new);
        self.instance.clone_from(&history.instance);
        self.started_at = history.started_at;
    }

    /// At most `most` smoothed losses, each the last of as many points, oldest first.
    pub(crate) fn curve(&self, most: usize) -> Vec<f64> {
        let losses: Vec<f64> =
            self.points.iter().filter_map(|point| point.smoothed.or(point.loss)).collect();
        let per = losses.len().div_ceil(most.max(1)).max(1);
        losses.rchunks(per).filter_map(|part| part.last().copied()).rev().collect()
    }
}

/// The points of a history. Of one whose lists differ in length, those that are whole.
fn points(history: &History) -> Vec<Point> {
    let known = |list: &[Option<f64>], at: usize| {
        list.get(at).copied().flatten().filter(|value| value.is_finite())
    };
    let times = history.from.iter().zip(&history.to).take(2 * MAX_POINTS);
    let point = |(at, (from, to)): (usize, (&f64, &f64))| {
        (from.is_finite() && to.is_finite()).then(|| Point {
            from: *from,
            to: *to,
            step: history.step.get(at).copied().flatten(),
            loss: known(&history.loss, at),
            smoothed: known(&history.loss_smoothed, at),
            validation: known(&history.validation, at),
        })
    };
    times.enumerate().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(instance: &str, losses: &[(f64, f64)]) -> History {
        History {
            instance: instance.to_owned(),
            from: losses.iter().map(|(at, _)| at - 1.0).collect(),
            to: losses.iter().map(|(at, _)| *at).collect(),
            loss: losses.iter().map(|(_, loss)| Some(*loss)).collect(),
            ..History::default()
        }
    }

    fn losses(past: &Past) -> Vec<f64> {
        past.points.iter().filter_map(|point| point.loss).collect()
    }

    #[test]
    fn later_answers_continue_the_past_and_the_last_point_grows() {
        let mut past = Past::default();
        assert_eq!(past.path(), "/v1/history");
        past.take(&history("a", &[(1.0, 5.0), (2.0, 4.0)]));
        assert_eq!(past.path(), "/v1/history?after=2");
        let mut grown = history("a", &[(2.5, 3.5), (3.5, 3.0)]);
        grown.from[0] = 1.0;
        past.take(&grown);
        assert_eq!(losses(&past), [5.0, 3.5, 3.0]);
        past.take(&history("a", &[]));
        assert_eq!(losses(&past), [5.0, 3.5, 3.0]);
        past.take(&history("b", &[(9.0, 7.0)]));
        assert_eq!(losses(&past), [7.0], "a new process has its own past");
    }

    #[test]
    fn past_stays_bounded() {
        let mut past = Past::default();
        for turn in 0..5_u32 {
            let points: Vec<_> = (0..2_000).map(|at| (f64::from(turn * 2_000 + at), 1.0)).collect();
            past.take(&history("a", &points));
        }
        assert!(past.points.len() <= 3 * MAX_POINTS, "{}", past.points.len());
    }

    #[test]
    fn lists_of_different_length_are_read_as_far_as_they_go() {
        let mut odd = history("a", &[(1.0, 5.0), (2.0, 4.0)]);
        odd.loss.pop();
        odd.to.push(3.0);
        let mut past = Past::default();
        past.take(&odd);
        assert_eq!((past.points.len(), losses(&past)), (2, vec![5.0]));
    }

    #[test]
    fn curve_ends_with_the_last_loss() {
        let mut past = Past::default();
        let points: Vec<_> = (0..101).map(|at| (f64::from(at), f64::from(at))).collect();
        past.take(&history("a", &points));
        let curve = past.curve(20);
        assert!(curve.len() <= 20 && curve.last() == Some(&100.0), "{curve:?}");
        assert!(curve.is_sorted());
        assert!(Past::default().curve(20).is_empty());
    }
}
