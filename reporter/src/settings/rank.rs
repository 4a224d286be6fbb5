//! The rank of this process among several processes of one job.

use paceline_wire::Rank;

/// The launchers' variables for the rank among all processes, the rank on the machine, and the number
/// of processes: torchrun, Slurm, Open MPI.
const LAUNCHERS: [[&str; 3]; 3] = [
    ["RANK", "LOCAL_RANK", "WORLD_SIZE"],
    ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"],
];

/// The rank from the first launcher whose variables are set.
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
    fn process_without_a_rank_variable_has_no_rank() {
        assert_eq!(find(|_| None), None);
        assert_eq!(find(|name| (name == "LOCAL_RANK").then_some(1)), None);
    }
}
