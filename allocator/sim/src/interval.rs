use paceline_policy::unit::count;

use crate::stats::mean;

/// A mean over seeds, or over repeats.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval that holds the true mean with 95 % probability, by Student's
    /// t; `None` for a single figure.
    pub half: Option<f64>,
}

/// t with 95 % between −t and t, for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for a normal distribution: the limit for many degrees of freedom.
const NORMAL: f64 = 1.959_964;

impl Interval {
    /// The interval of one figure for each seed or repeat; `None` if there are none.
    pub fn from_values(figures: &[f64]) -> Option<Self> {
        let middle = mean(figures)?;
        let freedom = figures.len() - 1;
        let half = (freedom > 0).then(|| {
            let squares: f64 = figures.iter().map(|figure| (figure - middle).powi(2)).sum();
            let t =
                STUDENT.get(freedom - 1).copied().unwrap_or_else(|| beyond_table(count(freedom)));
            t * (squares / count(freedom) / count(figures.len())).sqrt()
        });
        Some(Self { mean: middle, half })
    }
}

/// Student's t for more degrees of freedom than the table has: Fisher's expansion around the normal
/// distribution, here exact to four digits.
fn beyond_table(freedom: f64) -> f64 {
    let z = NORMAL;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / freedom + second / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_uses_students_t() {
        let interval = Interval::from_values(&[1.0, 2.0, 3.0]).unwrap();
        assert!((interval.mean - 2.0).abs() < 1e-12);
        assert!((interval.half.unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Interval::from_values(&[5.0]).unwrap().half, None);
        assert_eq!(Interval::from_values(&[]), None);
    }

    #[test]
    fn interval_of_many_values_uses_students_t_too() {
        for (freedom, t) in [(31_u32, 2.0395), (60, 2.0003), (100, 1.9840)] {
            let figures: Vec<f64> = (0..=freedom).map(f64::from).collect();
            let number = f64::from(freedom) + 1.0;
            let spread = (number * (number + 1.0) / 12.0).sqrt();
            let half = Interval::from_values(&figures).unwrap().half.unwrap();
            let found = half * number.sqrt() / spread;
            assert!((found - t).abs() < 2e-4, "{freedom} degrees of freedom: {found}");
        }
    }
}
