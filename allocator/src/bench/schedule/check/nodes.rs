//! The `[[node]]`s of a schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use toml::Spanned;

use super::super::file::NodeFile;
use super::super::{Node, Problem};
use super::{Lines, check_name, quoted, value};

/// No machine has a CPU of a larger number.
const LARGEST_CPU: u32 = 8191;

pub(super) fn check(said: Vec<Spanned<NodeFile>>, lines: Lines<'_>) -> Result<Vec<Node>, Problem> {
    let mut names = BTreeSet::new();
    let mut owners: BTreeMap<u32, String> = BTreeMap::new();
    let mut nodes = Vec::new();
    for node in said {
        let NodeFile { name, cpus } = node.into_inner();
        check_name("[[node]] name", &name, lines)?;
        if !names.insert(name.get_ref().clone()) {
            let rule = "another node has that name already";
            return Err(value(lines.of(&name), "[[node]] name", &quoted(&name), rule));
        }
        let wrong = |rule: String| {
            let field = format!("node {:?}: cpus", name.get_ref());
            value(lines.of(&cpus), field, &quoted(&cpus), rule)
        };
        let Some(list) = list(cpus.get_ref()) else {
            return Err(wrong("must be CPUs as the kernel lists them, such as 0-1,3".to_owned()));
        };
        for cpu in list.into_iter().flatten() {
            if let Some(owner) = owners.insert(cpu, name.get_ref().clone()) {
                return Err(wrong(format!("CPU {cpu} is node {owner:?}'s already")));
            }
        }
        nodes.push(Node { name: name.into_inner(), cpus: cpus.into_inner() });
    }
    Ok(nodes)
}

/// The ranges of a list such as `0-1,3`.
fn list(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let number = |text: &str| text.parse().ok().filter(|cpu| *cpu <= LARGEST_CPU);
    let range = |piece: &str| {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let range = number(first)?..=number(last)?;
        (!range.is_empty()).then_some(range)
    };
    text.split(',').map(range).collect()
}
