//! A policy's parameters: given by name, checked once, trusted from then on.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Parameters by name, as a user gave them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(BTreeMap<String, f64>);

/// A parameter that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// There is no such policy.
    #[error("policy {name:?} is not known: there are {known}")]
    UnknownPolicy {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Not of the form `name=number`.
    #[error("parameter {0:?} is not of the form name=number")]
    Form(String),
    /// The policy has no such parameter.
    #[error("{policy} has no parameter {name:?}: it has {known}")]
    Unknown {
        /// The policy.
        policy: &'static str,
        /// What was given.
        name: String,
        /// What it has.
        known: String,
    },
    /// The value lies outside of what makes sense.
    #[error("{policy}: {name} is {value}, but must be {allowed}")]
    OutOfRange {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What may be.
        allowed: String,
    },
}

impl Params {
    /// Adds or replaces a parameter.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }
}

impl<'a> FromIterator<&'a Param> for Params {
    fn from_iter<I: IntoIterator<Item = &'a Param>>(params: I) -> Self {
        Self(params.into_iter().map(|Param { name, value }| (name.clone(), *value)).collect())
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

/// Takes a policy's parameters one by one, and refuses what is left over.
#[derive(Debug)]
pub(crate) struct Reader {
    policy: &'static str,
    left: BTreeMap<String, f64>,
    known: Vec<&'static str>,
}

impl Reader {
    pub(crate) fn new(policy: &'static str, params: &Params) -> Self {
        Self { policy, left: params.0.clone(), known: Vec::new() }
    }

    /// The parameter `name`, or `default`; it must be finite and at least `least`.
    pub(crate) fn at_least(
        &mut self,
        name: &'static str,
        default: f64,
        least: f64,
    ) -> Result<f64, ParamError> {
        self.checked(name, default, |x| x >= least, || format!("a number, at least {least}"))
    }

    /// The parameter `name`, or `default`; it must be finite and above 0.
    pub(crate) fn positive(&mut self, name: &'static str, default: f64) -> Result<f64, ParamError> {
        self.checked(name, default, |x| x > 0.0, || "a number above 0".to_owned())
    }

    fn checked(
        &mut self,
        name: &'static str,
        default: f64,
        holds: impl Fn(f64) -> bool,
        allowed: impl Fn() -> String,
    ) -> Result<f64, ParamError> {
        self.known.push(name);
        let value = self.left.remove(name).unwrap_or(default);
        if value.is_finite() && holds(value) {
            return Ok(value);
        }
        Err(ParamError::OutOfRange { policy: self.policy, name, value, allowed: allowed() })
    }

    /// Ends the reading: every parameter given must have been asked for.
    pub(crate) fn finish(self) -> Result<(), ParamError> {
        match self.left.into_keys().next() {
            None => Ok(()),
            Some(name) => {
                let known = self.known.join(", ");
                Err(ParamError::Unknown { policy: self.policy, name, known })
            }
        }
    }
}
