//! Options for several nodes on one machine.

use clap::Args;
use paceline_api::nodes::Node;
use paceline_api::usage::whole_number;
use paceline_node::migration;

/// The nodes into which the machine's CPUs are split, and how jobs move between them.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct NodeArgs {
    /// Make a node of some of this machine's CPUs, for example a=0-3. Repeat the option for
    /// each
    /// node. A container is on the node with exactly its CPUs (`docker run --cpuset-cpus`)
    #[arg(long = "node", value_name = "NAME=CPUS")]
    pub(super) nodes: Vec<Node>,

    /// How jobs move between nodes: by a checkpoint and a new container (restart), or by
    /// changing
    /// the CPUs of the running container, at no cost (cpuset) [default: restart]
    #[arg(long, value_enum, value_name = "METHOD")]
    pub(super) migration: Option<migration::MigrationMethod>,

    /// Time limit for a job to save its checkpoint, and again to report from its new node.
    /// After it
    /// the job stays on its old node [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) move_within: Option<f64>,

    /// The largest number of moves for one job [default: 2]
    #[arg(long, value_name = "N", value_parser = whole_number(0, u32::MAX))]
    pub(super) moves: Option<u32>,
}

/// A time limit. Its bounds are checked with those of a file.
pub(super) fn seconds(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| "expected a number of seconds, for example 60")
}

impl NodeArgs {
    /// The settings, with the values of a file as defaults.
    pub(super) fn settings(&self, file: migration::Settings) -> migration::Settings {
        migration::Settings {
            by: self.migration.unwrap_or(file.by),
            within: self.move_within.unwrap_or(file.within),
            most: self.moves.unwrap_or(file.most),
        }
    }

    /// The same arguments as a command line.
    pub(super) fn arguments(&self) -> Vec<String> {
        let nodes = self.nodes.iter().map(|node| format!("--node={node}"));
        let means = self.migration.map(|means| format!("--migration={means}"));
        let within = self.move_within.map(|within| format!("--move-within={within}"));
        let moves = self.moves.map(|moves| format!("--moves={moves}"));
        nodes.chain(means).chain(within).chain(moves).collect()
    }
}
