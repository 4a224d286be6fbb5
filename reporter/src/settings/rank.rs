//! Which of several processes of one job this is.

use paceline_wire::Rank;

/// What launchers call the rank among all processes, among those of the machine, and the number of
/// processes: torchrun, Slurm, Open MPI.
const LAUNCHERS: [[&str; 3]; 3] = [
    ["RANK", "LOCAL_RANK", "WORLD_SIZE"],
    ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"],
];

/// The rank that the first launcher tells which has numbered this process.
pub(super) fn find(variable: impl Fn(&str) -> Option<u32>) -> Option<Rank> {
    LAUNCHERS.iter().find_map(|[global, local, world]| {
        let global = variable(global)?;
        Some(Rank { global, local: variable(local), world: variable(world) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_nearest_to_the_job_counts() {
        let slurm_below_torchrun = |name: &str| match name {
            "SLURM_PROCID" => Some(1),
            "RANK" => Some(3),
            "LOCAL_RANK" => Some(0),
            _ => None,
        };
        let rank = Rank { global: 3, local: Some(0), world: None };
        assert_eq!(find(slurm_below_torchrun), Some(rank));
    }

    #[test]
    fn a_process_that_nobody_numbered_has_none() {
        assert_eq!(find(|_| None), None);
        assert_eq!(find(|name| (name == "LOCAL_RANK").then_some(1)), None);
    }
}
