//! A policy's parameters: given by name and checked once.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::names::did_you_mean;

/// Parameters by name, as given by a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(BTreeMap<String, f64>);

/// A parameter that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// The policy is unknown.
    #[error("unknown policy {name:?}: expected one of {known}{hint}")]
    UnknownPolicy {
        /// The name that was given.
        name: String,
        /// The known policies, separated by commas.
        known: String,
        /// A suggestion, as [`did_you_mean`] writes it.
        hint: String,
    },
    /// Not of the form `name=number`.
    #[error("invalid parameter {0:?}: expected NAME=NUMBER, for example alpha=0.05")]
    Form(String),
    /// The policy has no such parameter.
    #[error("unknown parameter {name:?} of {policy}: expected {known}{hint}")]
    Unknown {
        /// The policy.
        policy: &'static str,
        /// The value or name that was given.
        name: String,
        /// Its parameters, as the message lists them.
        known: String,
        /// A suggestion, as [`did_you_mean`] writes it.
        hint: String,
    },
    /// The value is out of range.
    #[error("invalid parameter {name} \"{value}\" of {policy}: expected {allowed}")]
    OutOfRange {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The value or name that was given.
        value: f64,
        /// The allowed range, in words.
        allowed: String,
    },
}

impl Params {
    /// Every parameter, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A parameter that was given.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Adds or replaces a parameter.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }
}

/// One parameter, written `name=number`.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
}

impl FromStr for Param {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let form = || ParamError::Form(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let value = value.trim().parse().map_err(|_| form())?;
        Ok(Self { name: name.trim().to_owned(), value })
    }
}

/// A parameter that a policy has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default value.
    pub default: f64,
    /// The unit of its value.
    pub unit: &'static str,
    /// A short description for people.
    pub about: &'static str,
}

impl Parameter {
    /// Describes a parameter.
    pub(crate) const fn new(
        name: &'static str,
        default: f64,
        unit: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, default, unit, about }
    }
}

/// Reads the values of a policy's parameters, and refuses unknown names.
#[derive(Debug)]
pub(crate) struct Reader<'p> {
    policy: &'static str,
    known: &'static [Parameter],
    given: &'p Params,
}

impl<'p> Reader<'p> {
    pub(crate) fn new(
        policy: &'static str,
        known: &'static [Parameter],
        given: &'p Params,
    ) -> Result<Self, ParamError> {
        let unknown =
            given.0.keys().find(|name| known.iter().all(|parameter| parameter.name != **name));
        match unknown {
            None => Ok(Self { policy, known, given }),
            Some(name) => {
                let names: Vec<_> = known.iter().map(|parameter| parameter.name).collect();
                let hint = did_you_mean(name, names.iter().copied());
                let known = if names.is_empty() {
                    "no parameters".to_owned()
                } else {
                    format!("one of {}", names.join(", "))
                };
                Err(ParamError::Unknown { policy, name: name.clone(), known, hint })
            }
        }
    }

    /// The parameter `name`; it must be finite and at least `least`.
    pub(crate) fn at_least(&self, name: &'static str, least: f64) -> Result<f64, ParamError> {
        self.at_least_or(name, self.default(name), least)
    }

    /// The same for a parameter whose default depends on others.
    pub(crate) fn at_least_or(
        &self,
        name: &'static str,
        default: f64,
        least: f64,
    ) -> Result<f64, ParamError> {
        let allowed = || format!("a number, at least {least}");
        self.checked(name, default, |x| x >= least, allowed)
    }

    /// The parameter `name`; it must be finite and above 0.
    pub(crate) fn positive(&self, name: &'static str) -> Result<f64, ParamError> {
        self.checked(name, self.default(name), |x| x > 0.0, || "a number above 0".to_owned())
    }

    /// The parameter `name`; it must be a fraction, from 0 to 1.
    pub(crate) fn part(&self, name: &'static str) -> Result<f64, ParamError> {
        let allowed = || "a number from 0 to 1".to_owned();
        self.checked(name, self.default(name), |x| (0.0..=1.0).contains(&x), allowed)
    }

    fn default(&self, name: &str) -> f64 {
        let known = self.known.iter().find(|parameter| parameter.name == name);
        known.map_or(f64::NAN, |parameter| parameter.default)
    }

    fn checked(
        &self,
        name: &'static str,
        default: f64,
        holds: impl Fn(f64) -> bool,
        allowed: impl Fn() -> String,
    ) -> Result<f64, ParamError> {
        let value = self.given.get(name).unwrap_or(default);
        if value.is_finite() && holds(value) {
            return Ok(value);
        }
        Err(ParamError::OutOfRange { policy: self.policy, name, value, allowed: allowed() })
    }
}
