use super::Task;

/// No schedule on `machines` nodes is done sooner, counted from the first arrival: no job is done
/// before its arrival and its time alone, and what arrives from some moment on is not done before
/// all nodes together have worked on it since then. On one node that every job can fill, this is
/// exact: whoever never idles gets there.
pub fn makespan(tasks: &[Task], machines: f64) -> f64 {
    let mut late: Vec<&Task> = tasks.iter().collect();
    late.sort_by(|a, b| b.release.total_cmp(&a.release));
    let (mut work, mut end, mut first) = (0.0, 0.0_f64, f64::INFINITY);
    for task in late {
        work += task.work;
        first = task.release;
        end = end.max(task.release + task.alone()).max(task.release + work / machines);
    }
    end - first
}
