//! How limits are written, on the command line.

use clap::{Args, ValueEnum};

use crate::actuate::fence::Owner;
use crate::actuate::{Means, OnDrift};

/// What limits are written by, and what is done about others who write them.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct ActuatorArgs {
    /// What limits are written by [default: engine]
    #[arg(long, value_enum, value_name = "MEANS")]
    pub(super) actuator: Option<Means>,

    /// What to do where somebody else has changed a limit, or a restart has lost it
    /// [default: reassert]
    #[arg(long, value_enum, value_name = "RESPONSE")]
    pub(super) on_drift: Option<OnDrift>,

    /// Manage containers that these look after, too: they are left alone otherwise
    #[arg(long, value_enum, value_delimiter = ',', value_name = "OWNERS")]
    pub(super) adopt: Vec<Owner>,
}

impl ActuatorArgs {
    /// The same arguments in words.
    pub(super) fn words(&self) -> Vec<String> {
        let actuator = self.actuator.map(|means| format!("--actuator={means}"));
        let on_drift = self.on_drift.map(|response| format!("--on-drift={response}"));
        let names = self.adopt.iter().filter_map(Owner::to_possible_value);
        let adopt = names.map(|owner| format!("--adopt={}", owner.get_name()));
        actuator.into_iter().chain(on_drift).chain(adopt).collect()
    }
}
