//! Prefixes that name the process: of torchrun, MPI, Horovod, Slurm, pdsh, Ray, compose, syslog.

use std::net::Ipv4Addr;

use super::{Before, MAX_LEN, Stripped, number, numbered_word, separator};
use crate::terminal::stamp::stamp;

/// Words before the number of a process.
const RANKS: [&str; 12] = [
    "local_rank",
    "global_rank",
    "local rank",
    "global rank",
    "mpirank",
    "rank",
    "worker",
    "process",
    "proc",
    "device",
    "cuda",
    "gpu",
];

/// `[default0]:`, `[rank0]`, `[GPU 3]`, `[node0:rank1]`, `[gpu01:0/2]`, `[1,0]<stdout>:`, `[0]<stderr>:`.
pub(super) fn bracketed<'a>(found: &mut Stripped<'a>) -> Option<&'a str> {
    let (inside, rest) = found.text.strip_prefix('[')?.split_once(']')?;
    if inside.len() > MAX_LEN {
        return None;
    }
    let after_stream = rest.strip_prefix("<stdout>:").or_else(|| rest.strip_prefix("<stderr>:"));
    if let Some(after) = after_stream {
        found.see_rank(mpi(inside));
        return Some(after);
    }
    if let Some(rank) = all_rank(inside) {
        found.see_rank(Some(rank));
        return Some(separator(rest));
    }
    if let Some(pod) = inside.strip_prefix("pod/") {
        found.process = Some(pod);
        return Some(separator(rest));
    }
    let letters = inside.trim_end_matches(|c: char| c.is_ascii_digit());
    if let Some(after) = rest.strip_prefix(':')
        && letters.starts_with(|c: char| c.is_alphabetic())
        && is_host(letters)
        && let Some(rank) = inside.strip_prefix(letters).and_then(|digits| digits.parse().ok())
    {
        found.see_rank(Some(rank));
        return Some(after);
    }
    // A host, and its process of so many.
    let (host, of) = inside.split_once(':')?;
    let (rank, of) = number(of)?;
    let (processes, "") = number(of.strip_prefix('/')?)? else { return None };
    if !is_host(host) || rank >= processes {
        return None;
    }
    found.see_rank(Some(rank));
    Some(separator(rest))
}

/// Whether `text` begins with the process and the stream of a line of MPI: `[1,0]<stdout>:`.
pub(super) fn is_stream(text: &str) -> bool {
    let after = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    after.is_some_and(|(_, rest)| rest.starts_with("<stdout>:") || rest.starts_with("<stderr>:"))
}

/// The rank from the inside of MPI's brackets: the last of its numbers, or the one with a name.
fn mpi(inside: &str) -> Option<u32> {
    let named = inside.split(',').find_map(all_rank);
    named.or_else(|| inside.rsplit(',').find_map(|part| part.trim().parse().ok()))
}

/// `(RayTrainWorker pid=1234, ip=10.0.0.1)`, `(rank 0)`. Ray may end a line in `[repeated 3x across
/// cluster]`.
pub(super) fn parenthesised<'a>(found: &mut Stripped<'a>, before: Before) -> Option<&'a str> {
    let (inside, rest) = found.text.strip_prefix('(')?.split_once(')')?;
    // icefall's `(1/4)` after the place in the code. Elsewhere it counts epochs.
    if before.place
        && let Some((rank, of)) = number(inside)
        && let Some((processes, "")) = of.strip_prefix('/').and_then(number)
        && rank < processes
    {
        found.see_rank(Some(rank));
        return Some(separator(rest));
    }
    if let Some(rank) = all_rank(inside) {
        found.see_rank(Some(rank));
        return Some(separator(rest));
    }
    // The worker's name may have the form `RayTrainWorker(rank=3)`.
    let (inside, rest) = match inside.split_once('(') {
        Some((_, arguments)) => {
            found.see_rank(rank(arguments).map(|(rank, _)| rank));
            rest.split_once(')')?
        }
        None => (inside, rest),
    };
    let (_, process) = inside.split_once("pid=").filter(|_| inside.len() <= MAX_LEN)?;
    found.process = Some(process);
    let repeated = rest.ends_with("across cluster]").then(|| rest.rsplit_once("[repeated "));
    Some(repeated.flatten().map_or(rest, |(text, _)| text.trim_end()))
}

/// `3: `, as `srun --label` numbers the processes. The text after it shows that this is not a step.
pub(super) fn labelled<'a>(found: &mut Stripped<'a>) -> Option<&'a str> {
    let (rank, rest) = number(found.text)?;
    let after = rest.strip_prefix(": ")?.trim_ascii_start();
    let has_prefix =
        after.starts_with(['[', '{']) || after.starts_with(":::") || stamp(after).is_some();
    if (!has_prefix && !counts(after)) || has_loss(after) {
        return None;
    }
    found.see_rank(Some(rank));
    Some(after)
}

/// Whether `text` begins with a loss in brackets, not with a prefix: `[D loss: 0.5]`.
fn has_loss(text: &str) -> bool {
    let inside = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    inside.is_some_and(|(inside, _)| inside.contains("loss") && inside.contains([':', '=']))
}

/// Whether a counter is at the start of `text`.
pub(super) fn counts(text: &str) -> bool {
    let may_count = |first: &u8| b"esibtgESIBTG".contains(first);
    let first = text.as_bytes().first();
    if first.is_some_and(|first| first.is_ascii_alphabetic() && !may_count(first)) {
        return false;
    }
    let start = text.trim_start_matches(|c: char| !c.is_alphabetic());
    let length = start.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, after) = start.split_at_checked(length).unwrap_or_default();
    // `train.py:` is the place in the code.
    if after.starts_with(".py") {
        return false;
    }
    ["epoch", "step", "iter", "iteration", "batch", "train", "training", "global"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// `rank0: `, `Rank 2: `, `GPU 0 | `, `trainer/0 `.
pub(super) fn worded<'a>(found: &mut Stripped<'a>) -> Option<&'a str> {
    if let Some((rank, rest)) = rank(found.text) {
        // In `gpu-11:0` it is the number of a machine.
        let name = found.text.get(..found.text.len() - rest.len()).unwrap_or_default();
        let is_machine =
            |text: &str| name.contains('-') && text.starts_with(|c: char| c.is_ascii_digit());
        let after_colon = rest.strip_prefix(':').filter(|text| !is_machine(text));
        let rest = after_colon.or_else(|| rest.trim_start().strip_prefix(['|', ']']))?;
        found.see_rank(Some(rank));
        return Some(rest);
    }
    let (name, rest) = numbered_word(found.text)?;
    let (role, rank) = name.split_once('/')?;
    let is_role = role.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = rest.strip_prefix(' ').filter(|rest| is_role && starts_text(rest))?;
    found.see_rank(Some(rank.parse().ok()?));
    Some(rest)
}

/// `trainer-1  | ` of compose, `worker-0: ` and `node01: ` of pdsh, `name[12345]: ` of syslog.
pub(super) fn host<'a>(found: &mut Stripped<'a>) -> Option<&'a str> {
    let (name, rest) = numbered_word(found.text)?;
    if let Some((_, pid)) = name.strip_suffix(']').and_then(|name| name.split_once('['))
        && pid.bytes().all(|byte| byte.is_ascii_digit())
        && let Some(rest) = rest.strip_prefix(": ")
    {
        found.process = Some(pid);
        return Some(rest);
    }
    if !is_host(name) {
        return None;
    }
    let number = name.rsplit(['-', '_']).next().unwrap_or_default();
    let is_numbered = number.len() < name.len() && number.bytes().all(|byte| byte.is_ascii_digit());
    let rest = match rest.trim_start_matches(' ').strip_prefix("| ") {
        Some(rest) if is_numbered => rest,
        _ => rest
            .strip_prefix(": ")
            .filter(|rest| (is_parted(name) || is_node(name)) && starts_text(rest))?,
    };
    found.process = Some(name);
    Some(rest)
}

fn is_parted(name: &str) -> bool {
    name.contains(['-', '.'])
}

/// Whether `name` is a word for a machine and its number.
fn is_node(name: &str) -> bool {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let known = ["node", "host", "compute", "machine", "server", "nid", "cn"];
    word.len() < name.len() && known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// `10.0.0.1: `, the address of a machine.
pub(super) fn address<'a>(found: &mut Stripped<'a>) -> Option<&'a str> {
    let (name, rest) = numbered_word(found.text)?;
    let rest = rest.strip_prefix(": ").filter(|rest| starts_text(rest))?;
    name.parse::<Ipv4Addr>().ok()?;
    found.process = Some(name);
    Some(rest)
}

/// Whether `text` does not begin with a value.
fn starts_text(text: &str) -> bool {
    let unsigned = text.trim_ascii_start().trim_start_matches(['-', '+', '.']);
    let word = unsigned.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit())
        || ["nan", "inf", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name));
    !unsigned.is_empty() && !is_number
}

fn is_host(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// The rank, if all of `text` is one: `rank0`, `GPU 3`, `node0:rank1`. `Process 1/8` may be progress.
fn all_rank(text: &str) -> Option<u32> {
    let text = text.trim_ascii();
    let text = text
        .rsplit_once(':')
        .map_or(text, |(node, rank)| if node.starts_with("node") { rank } else { text });
    rank(text).filter(|(_, rest)| rest.is_empty()).map(|(rank, _)| rank)
}

/// Whether `text` begins with the first letters of one of `RANKS`.
#[inline]
pub(super) fn may_be_rank(text: &[u8]) -> bool {
    let [first, second, third, ..] = text else { return false };
    // In lower case, if they are letters.
    matches!(
        &[first | 0x20, second | 0x20, third | 0x20],
        b"loc" | b"glo" | b"mpi" | b"ran" | b"wor" | b"pro" | b"dev" | b"cud" | b"gpu"
    )
}

/// A rank at the start of `text`, as in `rank0` and `Rank 3`, and the text after it.
fn rank(text: &str) -> Option<(u32, &str)> {
    if !may_be_rank(text.as_bytes()) {
        return None;
    }
    let first = text.as_bytes().first()?.to_ascii_lowercase();
    let mut alike = RANKS.iter().filter(|word| word.as_bytes().first() == Some(&first));
    let rest = alike.find_map(|word| {
        let (start, rest) = text.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some(rest)
    })?;
    number(rest.trim_start_matches([' ', '=', ':', '_', '#', '-']))
}
