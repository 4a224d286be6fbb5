//! A machine's CPUs split into several nodes. Each node is a set of CPUs, and a container is on the
//! node whose set equals its own (`docker run --cpuset-cpus`).

mod cpuset;

use std::fmt;
use std::str::FromStr;

use paceline_policy::NodeSpec;

pub use cpuset::{Cpuset, CpusetError};

/// A set of CPUs with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its CPUs.
    pub cpus: Cpuset,
}

/// The nodes of a machine; empty if the machine is not split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes(Vec<Node>);

/// Why sets of CPUs cannot be nodes.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NodeError {
    /// Not `NAME=CPUS`.
    #[error("invalid node {0:?}: expected NAME=CPUS, for example a=0-3")]
    Form(String),
    /// A name with other characters than those allowed.
    #[error("invalid node name {0:?}: expected letters, digits, '-', '_' or '.'")]
    Name(String),
    /// A text that is not a set of CPUs.
    #[error("node {0}: {1}")]
    Cpus(String, #[source] CpusetError),
    /// A single node.
    #[error("invalid nodes: {0} is the only one; expected at least two, or none")]
    Single(String),
    /// Two nodes with the same name.
    #[error("invalid nodes: two of them are called {0}; expected different names")]
    Twice(String),
    /// A CPU that belongs to two nodes.
    #[error("invalid nodes: CPU {cpu} is on {one} and on {other}; expected it on one of them")]
    Overlap {
        /// The CPU.
        cpu: u32,
        /// One node.
        one: String,
        /// The other.
        other: String,
    },
    /// A CPU that the machine does not have.
    #[error(
        "invalid node {node}: it has CPU {cpu}, but the machine has {cpus} CPUs, numbered from 0"
    )]
    Missing {
        /// The node.
        node: String,
        /// The CPU.
        cpu: u32,
        /// How many CPUs the machine has.
        cpus: f64,
    },
}

impl Node {
    fn check(&self) -> Result<(), NodeError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let fits = !self.name.is_empty() && self.name.chars().all(plain);
        if fits { Ok(()) } else { Err(NodeError::Name(self.name.clone())) }
    }
}

impl FromStr for Node {
    type Err = NodeError;

    fn from_str(text: &str) -> Result<Self, NodeError> {
        let (name, cpus) = text.split_once('=').ok_or_else(|| NodeError::Form(text.to_owned()))?;
        let cpus = cpus.parse().map_err(|error| NodeError::Cpus(name.to_owned(), error))?;
        let node = Self { name: name.to_owned(), cpus };
        node.check().map(|()| node)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.cpus)
    }
}

impl Nodes {
    /// Checks that there are none or several, and that no two share a name or a CPU.
    pub fn new(nodes: Vec<Node>) -> Result<Self, NodeError> {
        if let [single] = nodes.as_slice() {
            return Err(NodeError::Single(single.name.clone()));
        }
        for (at, one) in nodes.iter().enumerate() {
            one.check()?;
            for other in nodes.iter().skip(at + 1) {
                if one.name == other.name {
                    return Err(NodeError::Twice(one.name.clone()));
                }
                if let Some(cpu) = one.cpus.overlap(&other.cpus) {
                    let (one, other) = (one.name.clone(), other.name.clone());
                    return Err(NodeError::Overlap { cpu, one, other });
                }
            }
        }
        Ok(Self(nodes))
    }

    /// Checks that a machine with `cpus` CPUs has all of these.
    pub fn check_against(&self, cpus: f64) -> Result<(), NodeError> {
        for Node { name, cpus: own } in &self.0 {
            if let Some(cpu) = own.last().filter(|cpu| f64::from(*cpu) >= cpus) {
                return Err(NodeError::Missing { node: name.clone(), cpu, cpus });
            }
        }
        Ok(())
    }

    /// Whether the machine is not split into nodes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All nodes, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.0.iter()
    }

    /// The node of this name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|node| node.name == name)
    }

    /// The node with exactly the CPUs `cpuset_cpus`, as the container engine writes them.
    pub fn of(&self, cpuset_cpus: &str) -> Option<&Node> {
        let cpus: Cpuset = cpuset_cpus.parse().ok()?;
        self.0.iter().find(|node| node.cpus == cpus)
    }

    /// The nodes as the decision engine of a cluster knows them.
    pub fn specs(&self) -> impl Iterator<Item = NodeSpec> {
        self.0.iter().map(|node| NodeSpec { name: node.name.clone(), cpus: node.cpus.count() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(given: &[&str]) -> Result<Nodes, NodeError> {
        Nodes::new(given.iter().map(|node| node.parse()).collect::<Result<_, _>>()?)
    }

    #[test]
    fn container_is_on_the_node_with_the_same_cpus() {
        let nodes = nodes(&["a=0-1", "b=2,3"]).unwrap();
        let of = |cpus| nodes.of(cpus).map(|node| node.name.as_str());
        assert_eq!(
            (of("0,1"), of("2-3"), of("0"), of(""), of("0-3")),
            (Some("a"), Some("b"), None, None, None)
        );
        assert!(nodes.check_against(4.0).is_ok());
        assert_eq!(Nodes::default().of("0"), None);
    }

    #[test]
    fn invalid_nodes_are_refused_with_the_reason() {
        for (given, words) in [
            (&["a"][..], "invalid node \"a\": expected NAME=CPUS"),
            (&["=0", "b=1"], "invalid node name \"\""),
            (&["a b=0", "b=1"], "invalid node name \"a b\""),
            (&["a=x", "b=1"], "node a: invalid set of CPUs \"x\""),
            (&["a=0"], "invalid nodes: a is the only one"),
            (&["a=0", "a=1"], "invalid nodes: two of them are called a"),
            (&["a=0-2", "b=2"], "invalid nodes: CPU 2 is on a and on b"),
        ] {
            let error = nodes(given).unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
        let error = nodes(&["a=0", "b=1-2"]).unwrap().check_against(2.0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid node b: it has CPU 2, but the machine has 2 CPUs, numbered from 0"
        );
    }
}
