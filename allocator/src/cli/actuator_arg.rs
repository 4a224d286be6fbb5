//! How limits are written, on the command line.

use clap::{Args, ValueEnum};

use crate::actuate::fence::Owner;
use crate::actuate::{Means, OnDrift};

/// What limits are written by, and what is done about others who write them.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct ActuatorArgs {
    /// What limits are written by
    #[arg(long, value_enum, default_value_t, value_name = "MEANS")]
    pub(super) actuator: Means,

    /// What to do where somebody else has changed a limit, or a restart has lost it
    #[arg(long, value_enum, default_value_t, value_name = "RESPONSE")]
    pub(super) on_drift: OnDrift,

    /// Manage containers that these look after, too: they are left alone otherwise
    #[arg(long, value_enum, value_delimiter = ',', value_name = "OWNERS")]
    pub(super) adopt: Vec<Owner>,
}

impl ActuatorArgs {
    /// The same arguments in words.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words =
            vec![format!("--actuator={}", self.actuator), format!("--on-drift={}", self.on_drift)];
        let names = self.adopt.iter().filter_map(Owner::to_possible_value);
        words.extend(names.map(|owner| format!("--adopt={}", owner.get_name())));
        words
    }
}
