//! A machine's speed over time.

use std::sync::Arc;

/// A machine's speed over time, relative to its usual speed: at 0.5 any work takes twice as long.
///
/// It is piecewise constant, and the last speed holds indefinitely. An empty profile means the
/// usual speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpeedProfile {
    pieces: Arc<[Piece]>,
}

/// A period of constant speed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// When it begins, in seconds, and the seconds at the usual speed of the work before it.
    from: f64,
    before: f64,
    speed: f64,
}

impl SpeedProfile {
    /// A profile of start times, in seconds and in order, with the speed from then on. The first
    /// speed holds from the beginning. Speeds that are not above 0 are ignored.
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

    /// The work done between two moments, as seconds at the usual speed.
    pub fn between(&self, from: f64, to: f64) -> f64 {
        if self.pieces.is_empty() { to - from } else { self.until(to) - self.until(from) }
    }

    /// The same from time 0.
    fn until(&self, t: f64) -> f64 {
        self.last(|piece| piece.from <= t).map_or(t, |piece| piece.usual(t))
    }

    /// When work of `usual` seconds at the usual speed ends, if it begins at `t`.
    pub fn end(&self, t: f64, usual: f64) -> f64 {
        if self.pieces.is_empty() {
            return t + usual;
        }
        let all = self.until(t) + usual;
        let piece = self.last(|piece| piece.before <= all);
        piece.map_or(t, |piece| (piece.from + (all - piece.before) / piece.speed).max(t))
    }

    /// The last piece that satisfies `is`, or the first piece.
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
    fn profile_without_valid_speeds_is_the_usual_speed() {
        for profile in [
            SpeedProfile::default(),
            SpeedProfile::new([(0.0, f64::NAN), (f64::NAN, 2.0), (3.0, 0.0)]),
        ] {
            let (speed, done) = (profile.at(7.0), profile.between(2.0, 7.0));
            assert_eq!((speed, done, profile.end(7.0, 5.0)), (1.0, 5.0, 12.0));
            assert!(profile.end(7.0, f64::INFINITY).is_infinite());
        }
    }

    #[test]
    fn each_speed_holds_until_the_next() {
        let profile = SpeedProfile::new([(5.0, 0.5), (10.0, 2.0), (12.0, 1.0)]);
        for (t, speed) in
            [(0.0, 0.5), (9.9, 0.5), (10.0, 2.0), (11.9, 2.0), (12.0, 1.0), (1e6, 1.0)]
        {
            assert!(near(profile.at(t), speed), "{t}: {}", profile.at(t));
        }
        for (t, done) in [(0.0, 0.0), (10.0, 5.0), (12.0, 9.0), (13.0, 10.0)] {
            assert!(near(profile.between(0.0, t), done), "{t}: {}", profile.between(0.0, t));
        }
        for (t, usual, end) in
            [(8.0, 2.0, 10.5), (0.0, 10.0, 13.0), (3.0, f64::INFINITY, f64::INFINITY)]
        {
            assert!(near(profile.end(t, usual), end), "{t}, {usual}: {}", profile.end(t, usual));
        }
    }

    proptest! {
        #[test]
        fn end_is_the_inverse_of_between(
            speeds in prop::collection::vec((0.0..20.0_f64, 0.1..10.0_f64), 0..8),
            t in 0.0..30.0_f64, usual in 0.0..50.0_f64,
        ) {
            let profile = SpeedProfile::new(speeds);
            let end = profile.end(t, usual);
            prop_assert!(end >= t);
            prop_assert!(near(profile.between(t, end), usual), "{profile:?}: {end}");
        }
    }
}
