//! The policies by name.

pub mod flowcon;
mod none;
mod why;

pub use flowcon::FlowCon;
pub use none::Unlimited;
pub use why::Why;

use crate::params::{ParamError, Params};
use crate::policy::{Policy, Variant};

/// Every policy's name, in the order in which they are listed to people.
pub const NAMES: [&str; 2] = [Unlimited::NAME, FlowCon::NAME];

/// Builds the policy called `name`; parameters that are not given have their documented defaults.
pub fn build(name: &str, variant: Variant, params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    match name {
        Unlimited::NAME => Ok(Box::new(Unlimited::new(params)?)),
        FlowCon::NAME => Ok(Box::new(FlowCon::new(variant, params)?)),
        _ => {
            let known = NAMES.join(", ");
            Err(ParamError::UnknownPolicy { name: name.to_owned(), known })
        }
    }
}
