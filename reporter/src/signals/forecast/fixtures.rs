//! Loss curves of small models, trained by stochastic gradient descent on random data: other kinds
//! of curves than those of the workloads.

use crate::signals::samples::Random;

/// Least squares in many directions, each less steep than the one before.
pub(crate) fn least_squares(seed: u64, steps: u32, decay: f64, rate: f64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let scales: Vec<f64> = (1..=40).map(|at| f64::from(at).powf(-decay)).collect();
    let truth: Vec<f64> = scales.iter().map(|_| random.normal()).collect();
    let mut weights = vec![0.0; scales.len()];
    (0..steps)
        .map(|_| {
            let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
            for _ in 0..8 {
                let x: Vec<f64> = scales.iter().map(|scale| scale * random.normal()).collect();
                let off =
                    x.iter().zip(&weights).zip(&truth).map(|((x, w), t)| x * (w - t)).sum::<f64>()
                        + 0.3 * random.normal();
                loss += off * off / 8.0;
                for (g, x) in gradient.iter_mut().zip(&x) {
                    *g += off * x / 8.0;
                }
            }
            for (w, g) in weights.iter_mut().zip(&gradient) {
                *w -= rate * g;
            }
            loss
        })
        .collect()
}

/// A classifier of overlapping clusters, by the cross entropy.
pub(crate) fn classifier(seed: u64, steps: u32, distance: f64, rate: f64) -> Vec<f64> {
    const CLASSES: usize = 10;
    const INPUTS: usize = 16;
    let mut random = Random::new(seed);
    let centres: Vec<Vec<f64>> =
        (0..CLASSES).map(|_| (0..INPUTS).map(|_| distance * random.normal()).collect()).collect();
    let mut weights = vec![vec![0.0; INPUTS + 1]; CLASSES];
    (0..steps)
        .map(|_| {
            let (mut loss, mut gradient) = (0.0, vec![vec![0.0; INPUTS + 1]; CLASSES]);
            for _ in 0..16 {
                let label = pick(&mut random, CLASSES);
                let noisy = centres[label].iter().map(|c| c + random.normal());
                let x: Vec<f64> = noisy.chain([1.0]).collect();
                let scores: Vec<f64> =
                    weights.iter().map(|w| w.iter().zip(&x).map(|(w, x)| w * x).sum()).collect();
                let top = scores.iter().copied().fold(f64::MIN, f64::max);
                let total: f64 = scores.iter().map(|s| (s - top).exp()).sum();
                loss += (total.ln() + top - scores[label]) / 16.0;
                for (class, (g, s)) in gradient.iter_mut().zip(&scores).enumerate() {
                    let off = (s - top).exp() / total - if class == label { 1.0 } else { 0.0 };
                    for (g, x) in g.iter_mut().zip(&x) {
                        *g += off * x / 16.0;
                    }
                }
            }
            for (w, g) in weights.iter_mut().flatten().zip(gradient.iter().flatten()) {
                *w -= rate * g;
            }
            loss
        })
        .collect()
}

/// A network with one hidden layer that learns the outputs of another one, by the squared error and
/// momentum.
pub(crate) fn student(seed: u64, steps: u32, momentum: f64, rate: f64) -> Vec<f64> {
    const INPUTS: usize = 8;
    const HIDDEN: usize = 12;
    let mut random = Random::new(seed);
    let mut layer = |scale: f64| -> Vec<f64> {
        (0..HIDDEN * (INPUTS + 1)).map(|_| scale * random.normal()).collect()
    };
    let teacher = layer(0.8);
    let mut weights = layer(0.3);
    let mut speed = vec![0.0; weights.len()];
    // Each hidden unit has its input weights and then its output weight.
    let run = |weights: &[f64], x: &[f64]| -> (f64, Vec<f64>) {
        let units: Vec<f64> = weights
            .chunks(INPUTS + 1)
            .map(|unit| unit.iter().zip(x).map(|(w, x)| w * x).sum::<f64>().tanh())
            .collect();
        let out = units.iter().zip(weights.chunks(INPUTS + 1)).map(|(u, w)| u * w[INPUTS]).sum();
        (out, units)
    };
    (0..steps)
        .map(|_| {
            let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
            for _ in 0..16 {
                let x: Vec<f64> = (0..INPUTS).map(|_| random.normal()).collect();
                let (out, units) = run(&weights, &x);
                let off = out - run(&teacher, &x).0 - 0.1 * random.normal();
                loss += off * off / 16.0;
                for ((g, unit), w) in
                    gradient.chunks_mut(INPUTS + 1).zip(&units).zip(weights.chunks(INPUTS + 1))
                {
                    for (g, x) in g.iter_mut().zip(&x) {
                        *g += off * w[INPUTS] * (1.0 - unit * unit) * x / 8.0;
                    }
                    g[INPUTS] += off * unit / 8.0;
                }
            }
            for ((w, s), g) in weights.iter_mut().zip(&mut speed).zip(&gradient) {
                *s = momentum * *s - rate * g;
                *w += *s;
            }
            loss
        })
        .collect()
}

/// A random index below `bound`.
fn pick(random: &mut Random, bound: usize) -> usize {
    let part = random.uniform() * f64::from(u32::try_from(bound).unwrap());
    (1..bound).take_while(|at| f64::from(u32::try_from(*at).unwrap()) <= part).count()
}
