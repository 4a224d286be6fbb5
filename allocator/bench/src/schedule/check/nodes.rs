//! The `[[node]]`s of a schedule.

use paceline_api::nodes::{Cpuset, Node};
use toml::Spanned;

use super::super::Problem;
use super::super::file::NodeFile;
use super::{Lines, check_name, quoted, value};

pub(super) fn check(given: Vec<Spanned<NodeFile>>, lines: Lines<'_>) -> Result<Vec<Node>, Problem> {
    let alone = given.first().filter(|_| given.len() == 1).map(|node| lines.of(node));
    let mut nodes: Vec<Node> = Vec::new();
    for node in given {
        let NodeFile { name, cpus } = node.into_inner();
        check_name("[[node]] name", &name, lines)?;
        if nodes.iter().any(|other| other.name == *name.get_ref()) {
            let rule = "another node has that name already";
            return Err(value(lines.of(&name), "[[node]] name", &quoted(&name), rule));
        }
        let wrong = |rule: String| {
            let field = format!("node {:?}: cpus", name.get_ref());
            value(lines.of(&cpus), field, &quoted(&cpus), rule)
        };
        let Ok(set) = cpus.get_ref().parse::<Cpuset>() else {
            return Err(wrong("must be CPUs as the kernel lists them, such as 0-1,3".to_owned()));
        };
        for Node { name: owner, cpus } in &nodes {
            if let Some(cpu) = cpus.overlap(&set) {
                return Err(wrong(format!("CPU {cpu} already belongs to node {owner:?}")));
            }
        }
        if let Some(line) = alone {
            let rule = "it is the only one: there must be at least two nodes, or none";
            return Err(value(line, "[[node]] name", &quoted(&name), rule));
        }
        nodes.push(Node { name: name.into_inner(), cpus: set });
    }
    Ok(nodes)
}
