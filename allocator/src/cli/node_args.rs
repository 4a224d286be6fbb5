//! Several nodes on one machine, on the command line.

use clap::Args;

use crate::migrate;
use crate::nodes::Node;

/// What the machine's CPUs are split into, and how jobs go from one part to the other.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct NodeArgs {
    /// Make a node of some of this machine's CPUs, such as a=0-3; given for each of several. A
    /// container is on the node whose CPUs are just its own (`docker run --cpuset-cpus`)
    #[arg(long = "node", value_name = "NAME=CPUS")]
    pub(super) nodes: Vec<Node>,

    /// How jobs move between nodes: by a checkpoint and a new container (restart), or, at no cost, by
    /// changing the container's CPUs while it runs (cpuset) [default: restart]
    #[arg(long, value_enum, value_name = "MEANS")]
    pub(super) migration: Option<migrate::Means>,

    /// Give a job so long to save its checkpoint, and as long to report from its new node; it stays
    /// where it is otherwise [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(super) move_within: Option<f64>,

    /// Move one job at most so often [default: 2]
    #[arg(long, value_name = "N")]
    pub(super) moves: Option<u32>,
}

impl NodeArgs {
    /// The same settings with the words of a file under them.
    pub(super) fn settings(&self, file: migrate::Settings) -> migrate::Settings {
        migrate::Settings {
            by: self.migration.unwrap_or(file.by),
            within: self.move_within.unwrap_or(file.within),
            most: self.moves.unwrap_or(file.most),
        }
    }

    /// The same arguments in words.
    pub(super) fn words(&self) -> Vec<String> {
        let nodes = self.nodes.iter().map(|node| format!("--node={node}"));
        let means = self.migration.map(|means| format!("--migration={means}"));
        let within = self.move_within.map(|within| format!("--move-within={within}"));
        let moves = self.moves.map(|moves| format!("--moves={moves}"));
        nodes.chain(means).chain(within).chain(moves).collect()
    }
}
