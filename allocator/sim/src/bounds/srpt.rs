use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paceline_policy::unit::count;

use super::Task;
use crate::number::Key;

/// The mean completion time, in seconds, on one machine as fast as `machines` nodes. It works on
/// the job with the least remaining work, and ignores the jobs' caps.
pub fn srpt(tasks: &[Task], machines: f64) -> f64 {
    let mut arrivals: Vec<&Task> = tasks.iter().collect();
    arrivals.sort_by(|a, b| a.release.total_cmp(&b.release));
    let mut arrivals = arrivals.into_iter().peekable();
    let mut left: BinaryHeap<Reverse<(Key, Key)>> = BinaryHeap::new();
    let (mut now, mut total) = (0.0_f64, 0.0);
    loop {
        while let Some(task) = arrivals.next_if(|task| task.release <= now) {
            left.push(Reverse((Key(task.work), Key(task.release))));
        }
        let next = arrivals.peek().map(|task| task.release);
        let Some(Reverse((work, release))) = left.pop() else {
            match next {
                Some(next) => now = next,
                None => return total / count(tasks.len()),
            }
            continue;
        };
        let end = now + work.0 / machines;
        match next {
            Some(next) if next < end => {
                let rest = work.0 - (next - now) * machines;
                left.push(Reverse((Key(rest), release)));
                now = next;
            }
            Some(_) | None => {
                total += end - release.0;
                now = end;
            }
        }
    }
}
