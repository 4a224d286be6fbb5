use super::Task;
use super::deadlines::{Due, least_postponement};

/// A lower bound of the makespan on `machines` nodes, in seconds from the first arrival. All jobs
/// have one deadline, and this is the earliest that can be kept.
pub fn makespan(tasks: &[Task], machines: f64) -> f64 {
    let first = tasks.iter().map(|task| task.release).fold(f64::INFINITY, f64::min);
    let due = |task: &Task| Due { task: *task, base: first, pace: 1.0 };
    let jobs: Vec<Due> = tasks.iter().map(due).collect();
    least_postponement(&jobs, machines).max(since_arrivals(tasks, machines) - first)
}

/// The latest bound over all moments: the earliest end of all work that arrives from a moment on.
/// It is cheap for any number of jobs.
fn since_arrivals(tasks: &[Task], machines: f64) -> f64 {
    let mut late: Vec<&Task> = tasks.iter().collect();
    late.sort_by(|a, b| b.release.total_cmp(&a.release));
    let (mut work, mut end) = (0.0, 0.0_f64);
    for task in late {
        work += task.work;
        end = end.max(task.release + work / machines);
    }
    end
}
