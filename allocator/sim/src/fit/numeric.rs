//! Numerical methods for fitting: weighted least squares, linear in up to two parameters, and the
//! minimum of a function of one.

/// One equation `first·a + second·b = target`, with its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equation {
    pub(super) first: f64,
    pub(super) second: f64,
    pub(super) target: f64,
    pub(super) weight: f64,
}

/// Parameters that were fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Solution {
    pub(super) first: f64,
    pub(super) second: f64,
    /// The weighted sum of the remaining squares.
    pub(super) squares: f64,
}

impl Equation {
    fn square(&self, first: f64, second: f64) -> f64 {
        self.weight * (self.first * first + self.second * second - self.target).powi(2)
    }
}

impl Solution {
    fn new(equations: &[Equation], first: f64, second: f64) -> Self {
        let squares = equations.iter().map(|equation| equation.square(first, second)).sum();
        Self { first, second, squares }
    }
}

/// The parameters with the least squares, by the normal equations; `None` if the equations do not
/// determine them, for example if all are alike.
pub(super) fn least_squares(equations: &[Equation]) -> Option<Solution> {
    let sum = |term: fn(&Equation) -> f64| -> f64 {
        equations.iter().map(|equation| equation.weight * term(equation)).sum()
    };
    let (aa, bb, ab) =
        (sum(|e| e.first.powi(2)), sum(|e| e.second.powi(2)), sum(|e| e.first * e.second));
    let (at, bt) = (sum(|e| e.first * e.target), sum(|e| e.second * e.target));
    let determinant = aa * bb - ab * ab;
    (determinant > SINGULAR * aa * bb).then(|| {
        let (first, second) =
            ((at * bb - bt * ab) / determinant, (bt * aa - at * ab) / determinant);
        Solution::new(equations, first, second)
    })
}

/// A determinant this small relative to its terms is a rounding error.
const SINGULAR: f64 = 1e-12;

/// The parameters of least squares, neither below 0: the best of the free solution and of those on
/// the edges.
pub(super) fn not_negative(equations: &[Equation]) -> Solution {
    let along = |term: fn(&Equation) -> f64| -> f64 {
        let (mut square, mut product) = (0.0, 0.0);
        for equation in equations {
            square += equation.weight * term(equation).powi(2);
            product += equation.weight * term(equation) * equation.target;
        }
        if square > 0.0 { (product / square).max(0.0) } else { 0.0 }
    };
    let edges = [(along(|e| e.first), 0.0), (0.0, along(|e| e.second))];
    let edges = edges.map(|(first, second)| Solution::new(equations, first, second));
    let free = least_squares(equations).filter(|free| free.first >= 0.0 && free.second >= 0.0);
    edges.into_iter().chain(free).min_by(|a, b| a.squares.total_cmp(&b.squares)).unwrap_or_default()
}

/// The minimum of a function between two bounds, and where it is: the best point of a grid, refined
/// by golden-section search.
pub(super) fn least_point(low: f64, high: f64, mut value: impl FnMut(f64) -> f64) -> (f64, f64) {
    let step = (high - low) / f64::from(GRID);
    let on_grid = (0..=GRID).map(|at| low + step * f64::from(at));
    let values: Vec<(f64, f64)> = on_grid.map(|x| (x, value(x))).collect();
    let best =
        values.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((low, f64::INFINITY));
    let (mut from, mut to) = ((best.0 - step).max(low), (best.0 + step).min(high));
    let mut best = best;
    let inner = |from: f64, to: f64| (to - GOLDEN * (to - from), from + GOLDEN * (to - from));
    let (left, right) = inner(from, to);
    let (mut left, mut right) = ((left, value(left)), (right, value(right)));
    for _ in 0..SECTIONS {
        if left.1 <= right.1 {
            to = right.0;
            right = left;
            let x = inner(from, to).0;
            left = (x, value(x));
        } else {
            from = left.0;
            left = right;
            let x = inner(from, to).1;
            right = (x, value(x));
        }
    }
    for point in [left, right] {
        if point.1 < best.1 {
            best = point;
        }
    }
    best
}

/// Steps of the grid: a valley that is narrower is missed.
const GRID: u32 = 24;
/// Each section leaves 0.618 of the valley; all together a hundred-thousandth of a step.
const SECTIONS: u32 = 24;
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Schwarz's criterion for a model of `parameters` on `points`, with the mean square `square`. Of
/// two models the one with the smaller figure is worth its parameters (Ann. Statist. 6, 1978).
pub(super) fn criterion(square: f64, points: usize, parameters: usize) -> f64 {
    let points = paceline_policy::unit::count(points);
    points * (square + ROUNDING).ln() + paceline_policy::unit::count(parameters) * points.ln()
}

/// Relative squares below this are rounding errors.
const ROUNDING: f64 = 1e-14;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equations(a: f64, b: f64) -> Vec<Equation> {
        let row = |at: i32| {
            let (first, second) = (1.0, 1.0 / f64::from(at));
            Equation { first, second, target: a * first + b * second, weight: f64::from(at) }
        };
        (1..6).map(row).collect()
    }

    #[test]
    fn negative_solution_moves_to_the_edge() {
        let found = not_negative(&equations(-1.0, 3.0));
        assert!(found.first <= 0.0 && found.second > 0.0 && found.squares > 0.0, "{found:?}");
        assert_eq!(not_negative(&[]), Solution::default());
        let alike = [Equation { first: 1.0, second: 2.0, target: 4.0, weight: 1.0 }; 3];
        assert_eq!(least_squares(&alike), None);
        assert!(not_negative(&alike).squares < 1e-12);
    }

    #[test]
    fn of_several_valleys_the_deepest_is_found() {
        let (x, value) = least_point(-3.0, 4.0, |x| (x - 2.5).abs().min((x + 2.0).abs() + 0.1));
        assert!((x - 2.5).abs() < 1e-5 && value < 1e-5, "{x} {value}");
        let (edge, _) = least_point(0.0, 1.0, |x| x);
        assert!(edge < 1e-5, "{edge}");
    }

    proptest! {
        #[test]
        fn exact_equations_are_solved(a in 0.0..100.0_f64, b in 0.0..100.0_f64) {
            let found = not_negative(&equations(a, b));
            prop_assert!((found.first - a).abs() < 1e-6 && (found.second - b).abs() < 1e-6);
        }
    }
}
