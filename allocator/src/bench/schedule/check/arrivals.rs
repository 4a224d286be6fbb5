//! The `[arrivals]` of a schedule.

use toml::Spanned;

use super::super::file::ArrivalsFile;
use super::super::{Arrivals, Problem};
use super::{Lines, check_time, quoted, value};

pub(super) fn check(
    said: Option<&Spanned<ArrivalsFile>>,
    lines: Lines<'_>,
) -> Result<Arrivals, Problem> {
    let Some(said) = said else { return Ok(Arrivals::Fixed) };
    let table = lines.of(said);
    let ArrivalsFile { kind, gap, within, mean_gap } = said.get_ref();
    let known = match kind.get_ref().as_str() {
        "burst" => None,
        "every" => Some("gap"),
        "uniform" => Some("within"),
        "poisson" => Some("mean-gap"),
        _ => {
            let rule = "must be burst, every, uniform or poisson";
            return Err(value(lines.of(kind), "[arrivals] kind", &quoted(kind), rule));
        }
    };
    let given = [("gap", gap), ("within", within), ("mean-gap", mean_gap)];
    for (name, said) in given {
        let Some(said) = said.as_ref().filter(|_| known != Some(name)) else { continue };
        let rule = match known {
            Some(known) => format!("arrivals of kind {} have {known}", kind.get_ref()),
            None => "a burst has no time".to_owned(),
        };
        let field = format!("[arrivals] {name}");
        return Err(value(lines.of(said), field, said.get_ref(), rule));
    }
    let time = match given.into_iter().find(|(name, _)| known == Some(*name)) {
        None => 0.0,
        Some((name, Some(said))) => check_time(&format!("[arrivals] {name}"), said, lines)?,
        Some((name, None)) => {
            let rule = format!("arrivals of kind {} need it, in seconds", kind.get_ref());
            return Err(value(table, format!("[arrivals] {name}"), &"missing", rule));
        }
    };
    Ok(match known {
        None => Arrivals::Burst,
        Some("gap") => Arrivals::Every { gap: time },
        Some("within") => Arrivals::Uniform { within: time },
        Some(_) => Arrivals::Poisson { mean_gap: time },
    })
}
