//! How fast a machine is over time.

use std::sync::Arc;

/// A machine's speed over time, as a part of its usual one: at half of that any work takes twice as long.
///
/// It goes from one speed to the next at once, and has the last of them for ever. One that was told of no
/// speed always has its usual one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tempo {
    pieces: Arc<[Piece]>,
}

/// A time of one speed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// When it begins, and how many seconds the work of all the time before takes at the usual speed.
    from: f64,
    before: f64,
    speed: f64,
}

impl Tempo {
    /// Of speeds, and the seconds from which on the machine has them, in their order; the first has been
    /// there all the time. A speed that is no number above 0 tells nothing.
    pub fn new(speeds: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        for (from, speed) in speeds {
            if from.is_finite() && speed.is_finite() && speed > 0.0 {
                let piece = match pieces.last() {
                    None => Piece { from: 0.0, before: 0.0, speed },
                    Some(last) => {
                        let from = from.max(last.from);
                        Piece { from, before: last.usual(from), speed }
                    }
                };
                pieces.push(piece);
            }
        }
        Self { pieces: pieces.into() }
    }

    /// The speed at `t` seconds.
    pub fn at(&self, t: f64) -> f64 {
        self.last(|piece| piece.from <= t).map_or(1.0, |piece| piece.speed)
    }

    /// How many seconds at the usual speed the work takes that is done between two moments.
    pub fn between(&self, from: f64, to: f64) -> f64 {
        if self.pieces.is_empty() { to - from } else { self.until(to) - self.until(from) }
    }

    /// The same from the first moment on.
    fn until(&self, t: f64) -> f64 {
        self.last(|piece| piece.from <= t).map_or(t, |piece| piece.usual(t))
    }

    /// When what takes so many seconds at the usual speed is done that begins at `t`.
    pub fn end(&self, t: f64, usual: f64) -> f64 {
        if self.pieces.is_empty() {
            return t + usual;
        }
        let all = self.until(t) + usual;
        let piece = self.last(|piece| piece.before <= all);
        piece.map_or(t, |piece| (piece.from + (all - piece.before) / piece.speed).max(t))
    }

    /// The last piece of which this is so, or the first.
    fn last(&self, is: impl Fn(&Piece) -> bool) -> Option<&Piece> {
        let those = self.pieces.partition_point(is);
        self.pieces.get(those.saturating_sub(1))
    }
}

impl Piece {
    fn usual(&self, t: f64) -> f64 {
        self.before + (t - self.from) * self.speed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(a: f64, b: f64) -> bool {
        a.total_cmp(&b).is_eq() || (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
    }

    #[test]
    fn a_machine_of_which_nothing_is_told_has_its_usual_speed() {
        for tempo in [Tempo::default(), Tempo::new([(0.0, f64::NAN), (f64::NAN, 2.0), (3.0, 0.0)])]
        {
            let (speed, done) = (tempo.at(7.0), tempo.between(2.0, 7.0));
            assert_eq!((speed, done, tempo.end(7.0, 5.0)), (1.0, 5.0, 12.0));
            assert!(tempo.end(7.0, f64::INFINITY).is_infinite());
        }
    }

    #[test]
    fn its_speed_is_the_last_one_that_was_told() {
        let tempo = Tempo::new([(5.0, 0.5), (10.0, 2.0), (12.0, 1.0)]);
        for (t, speed) in
            [(0.0, 0.5), (9.9, 0.5), (10.0, 2.0), (11.9, 2.0), (12.0, 1.0), (1e6, 1.0)]
        {
            assert!(near(tempo.at(t), speed), "{t}: {}", tempo.at(t));
        }
        for (t, done) in [(0.0, 0.0), (10.0, 5.0), (12.0, 9.0), (13.0, 10.0)] {
            assert!(near(tempo.between(0.0, t), done), "{t}: {}", tempo.between(0.0, t));
        }
        for (t, usual, end) in
            [(8.0, 2.0, 10.5), (0.0, 10.0, 13.0), (3.0, f64::INFINITY, f64::INFINITY)]
        {
            assert!(near(tempo.end(t, usual), end), "{t}, {usual}: {}", tempo.end(t, usual));
        }
    }

    proptest! {
        #[test]
        fn what_ends_then_takes_so_long(
            speeds in prop::collection::vec((0.0..20.0_f64, 0.1..10.0_f64), 0..8),
            t in 0.0..30.0_f64, usual in 0.0..50.0_f64,
        ) {
            let tempo = Tempo::new(speeds);
            let end = tempo.end(t, usual);
            prop_assert!(end >= t);
            prop_assert!(near(tempo.between(t, end), usual), "{tempo:?}: {end}");
        }
    }
}
