//! Randomness that depends only on a run's seed and the step.

/// The seed of the randomness in a step. It is well mixed, since neighbouring seeds of a generator may
/// give similar numbers. The mixing is that of `SplitMix64` (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub fn seed_of_step(seed: u64, step: u64) -> u64 {
    mix(mix(seed).wrapping_add(step))
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn neighbouring_seeds_and_steps_have_different_seeds() {
        let pairs = (0..100).flat_map(|seed| (0..100).map(move |step| (seed, step)));
        let seeds: BTreeSet<u64> = pairs.map(|(seed, step)| seed_of_step(seed, step)).collect();
        assert_eq!(seeds.len(), 100 * 100);
    }

    #[test]
    fn mixing_matches_splitmix() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }
}
