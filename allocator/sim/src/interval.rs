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
/// The same for more degrees of freedom.
const NORMAL: f64 = 1.960;

impl Interval {
    /// The interval of one figure for each seed or repeat; `None` if there are none.
    pub fn from_values(figures: &[f64]) -> Option<Self> {
        let middle = mean(figures)?;
        let freedom = figures.len() - 1;
        let half = (freedom > 0).then(|| {
            let squares: f64 = figures.iter().map(|figure| (figure - middle).powi(2)).sum();
            let t = STUDENT.get(freedom - 1).copied().unwrap_or(NORMAL);
            t * (squares / count(freedom) / count(figures.len())).sqrt()
        });
        Some(Self { mean: middle, half })
    }
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
}
