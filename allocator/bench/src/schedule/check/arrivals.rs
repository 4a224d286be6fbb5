//! The `[arrivals]` of a schedule.

use toml::Spanned;

use super::super::file::ArrivalsFile;
use super::super::{Arrivals, Problem};
use super::{Lines, check_time, quoted, value};

pub(super) fn check(
    given: Option<&Spanned<ArrivalsFile>>,
    lines: Lines<'_>,
) -> Result<Arrivals, Problem> {
    let Some(given) = given else { return Ok(Arrivals::Fixed) };
    let table = lines.of(given);
    let ArrivalsFile { kind, gap, within, mean_gap } = given.get_ref();
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
    let times = [("gap", gap), ("within", within), ("mean-gap", mean_gap)];
    for (name, given) in times {
        let Some(given) = given.as_ref().filter(|_| known != Some(name)) else { continue };
        let rule = match known {
            Some(known) => format!("arrivals of kind {} take {known} instead", kind.get_ref()),
            None => "arrivals of kind burst take no time".to_owned(),
        };
        let field = format!("[arrivals] {name}");
        return Err(value(lines.of(given), field, given.get_ref(), rule));
    }
    let time = match times.into_iter().find(|(name, _)| known == Some(*name)) {
        None => 0.0,
        Some((name, Some(given))) => check_time(&format!("[arrivals] {name}"), given, lines)?,
        Some((name, None)) => {
            let rule = format!("arrivals of kind {} require it, in seconds", kind.get_ref());
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
