//! The same work for many things, on all CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each of `all`, in their order, whichever is done first.
pub(super) fn map<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(number) else { return done };
            done.push((number, work(one)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(all.len());
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for other in others {
            match other.join() {
                Ok(its) => done.extend(its),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn the_order_is_that_of_the_things_whichever_is_done_first() {
        let all: Vec<u64> = (0..200).collect();
        // Some take much longer than others.
        let slow =
            |n: &u64| (0..if n.is_multiple_of(7) { 100_000 } else { 1 }).fold(*n, |n, _| n ^ 1);
        assert_eq!(map(&all, slow), all.iter().map(slow).collect::<Vec<_>>());
        assert_eq!(map(&[], slow), Vec::<u64>::new());
    }
}
