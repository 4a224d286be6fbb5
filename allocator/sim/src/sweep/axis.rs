use std::str::FromStr;

use paceline_policy::unit::count;
use paceline_policy::{Params, Variant, policies};

use crate::number::position;
use crate::scenario::ScenarioError;

/// More values of one parameter than this are a mistake.
const MAX_VALUES: usize = 100;

/// One parameter of a policy, and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The policy.
    pub policy: String,
    /// Its parameter.
    pub parameter: String,
    /// The values, in the order in which they were given.
    pub values: Vec<f64>,
}

impl Axis {
    /// The parameter, as a user writes it.
    pub fn name(&self) -> String {
        format!("{}.{}", self.policy, self.parameter)
    }
}

impl FromStr for Axis {
    type Err = ScenarioError;

    /// Parses `POLICY.PARAMETER=VALUES`. The values are numbers and ranges `FROM..TO/STEP` with
    /// both ends, separated by commas. The policy must accept each of them.
    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let refused = |expected: &str| {
            let example = "for example flowcon.interval=5,20..60/10";
            ScenarioError::option("sweep", text, format!("{expected}, {example}"))
        };
        let form = || refused("POLICY.PARAMETER=VALUES");
        let (name, all) = text.split_once('=').ok_or_else(form)?;
        let (policy, parameter) = name.trim().split_once('.').ok_or_else(form)?;
        let mut values = Vec::new();
        for part in all.split(',') {
            values.extend(parse_values(part.trim()).map_err(refused)?);
        }
        if values.len() > MAX_VALUES {
            let expected = format!("at most {MAX_VALUES} values");
            return Err(ScenarioError::option("sweep", text, expected));
        }
        for value in &values {
            let mut params = Params::default();
            params.set(parameter, *value);
            policies::build(policy, Variant::default(), &params)?;
        }
        Ok(Self { policy: policy.to_owned(), parameter: parameter.to_owned(), values })
    }
}

/// The values of one number or range. The error is what was expected instead.
fn parse_values(text: &str) -> Result<Vec<f64>, &'static str> {
    const FORM: &str = "numbers, or ranges FROM..TO/STEP";
    let number = |text: &str| text.trim().parse().ok().filter(|x: &f64| x.is_finite()).ok_or(FORM);
    let Some((from, rest)) = text.split_once("..") else { return Ok(vec![number(text)?]) };
    let (to, step) = rest.split_once('/').ok_or(FORM)?;
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if step <= 0.0 {
        return Err("a STEP above 0 in FROM..TO/STEP");
    }
    if to < from {
        return Err("a TO of at least FROM in FROM..TO/STEP");
    }
    // A last value that rounding puts beyond the end is included.
    let last = position((to - from) / step * (1.0 + 1e-9)).min(MAX_VALUES);
    Ok((0..=last).map(|place| round_digits(from + count(place) * step)).collect())
}

/// The number without rounding errors in its last digits.
fn round_digits(x: f64) -> f64 {
    format!("{x:.12e}").parse().unwrap_or(x)
}
