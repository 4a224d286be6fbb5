//! Options for writing limits.

use clap::{Args, ValueEnum};
use paceline_node::limits::ownership::Owner;
use paceline_node::limits::{ActuatorBackend, OnDrift};

/// How limits are written, and what happens when other programs change them.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct ActuatorArgs {
    /// How limits are written [default: auto]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(super) actuator: Option<ActuatorBackend>,

    /// What to do when another program changes a limit or a restart loses it [default:
    /// reassert]
    #[arg(long, value_enum, value_name = "RESPONSE")]
    pub(super) on_drift: Option<OnDrift>,

    /// Also manage containers that these orchestrators started. By default they are left alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "OWNERS")]
    pub(super) adopt: Vec<Owner>,
}

impl ActuatorArgs {
    /// The same arguments as a command line.
    pub(super) fn arguments(&self) -> Vec<String> {
        let actuator = self.actuator.map(|means| format!("--actuator={means}"));
        let on_drift = self.on_drift.map(|response| format!("--on-drift={response}"));
        let names = self.adopt.iter().filter_map(Owner::to_possible_value);
        let adopt = names.map(|owner| format!("--adopt={}", owner.get_name()));
        actuator.into_iter().chain(on_drift).chain(adopt).collect()
    }
}
