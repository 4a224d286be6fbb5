//! The settings from environment variables.

use std::ffi::OsString;

use crate::address;
use crate::settings::{EXPECTED_STEPS, Settings, Shown, is_latency, rank, refused};
use crate::start_error::StartError;

/// Overrides the settings by the variables. An empty variable counts as unset, since compose files
/// and shells pass one for an omitted value.
pub(crate) fn apply(
    settings: &mut Settings,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), StartError> {
    let read = |name: &'static str| match variable(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(Err(raw)) => Err(refused(name, &raw.to_string_lossy(), "UTF-8 text")),
    };
    let number = |name, allowed, is_allowed: fn(f64) -> bool| {
        let parse = |text: String| match text.parse().ok().filter(|number| is_allowed(*number)) {
            Some(number) => Ok(number),
            None => Err(refused(name, &text, allowed)),
        };
        read(name)?.map(parse).transpose()
    };

    let switch = |name: &'static str| match read(name)?.as_deref() {
        None => Ok(None),
        Some("1" | "true") => Ok(Some(true)),
        Some("0" | "false") => Ok(Some(false)),
        Some(text) => Err(refused(name, text, "`1`, `true`, `0` or `false`")),
    };
    settings.disabled = switch("PACELINE_DISABLED")?.unwrap_or(settings.disabled);
    // A disabled reporter must not fail because of other variables.
    if settings.disabled {
        return Ok(());
    }
    if let Some(hidden) = switch("PACELINE_HIDE_ADDRESS")? {
        settings.address_shown = if hidden { Shown::No } else { Shown::Yes };
    }
    if let Some(text) = read("PACELINE_LISTEN")? {
        let parsed = text.parse();
        let refuse = |_| refused("PACELINE_LISTEN", &text, address::ALLOWED);
        settings.listen = Some(parsed.map_err(refuse)?);
    }
    if let Some(job) = read("PACELINE_JOB")? {
        settings.job = job;
    }
    if let Some(path) = read("PACELINE_STATUS_FILE")? {
        settings.status_file = Some(path.into());
    }
    if let Some(path) = read("PACELINE_TERMINATION_LOG")? {
        settings.termination_log = Some(path.into());
    }
    #[cfg(feature = "tensorboard")]
    if let Some(path) = read("PACELINE_TENSORBOARD")? {
        settings.tensorboard = Some(path.into());
    }
    // Launchers set these for many programs, so an invalid one is not the user's mistake.
    let count = |name: &str| variable(name)?.into_string().ok()?.trim().parse().ok();
    settings.rank = rank::find(count).or(settings.rank);
    let targets = &mut settings.targets;
    for (name, target) in [
        ("PACELINE_ACCEPTABLE", &mut targets.acceptable),
        ("PACELINE_OBJECTIVE", &mut targets.objective),
    ] {
        *target = number(name, "a finite number", f64::is_finite)?.or(*target);
    }
    let latency =
        number("PACELINE_BATCH_LATENCY", "a finite number of seconds above 0", is_latency)?;
    targets.batch_latency = latency.or(targets.batch_latency);
    let name = "PACELINE_EXPECTED_STEPS";
    if let Some(text) = read(name)? {
        let steps = text.parse().ok().filter(|steps| *steps > 0);
        let refuse = || refused(name, &text, EXPECTED_STEPS);
        settings.expected_steps = Some(steps.ok_or_else(refuse)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use paceline_wire::Rank;

    use proptest::prelude::*;

    use super::*;

    fn applied(variables: &[(&str, &str)]) -> Result<Settings, StartError> {
        let mut settings = Settings::new("vae".to_owned());
        settings.targets.objective = Some(1.0);
        apply(&mut settings, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })?;
        Ok(settings)
    }

    #[test]
    fn variable_takes_precedence_and_unset_value_stays() {
        let settings = applied(&[
            ("PACELINE_JOB", "mnist"),
            ("PACELINE_LISTEN", "unix:/run/job.sock"),
            ("PACELINE_ACCEPTABLE", " 2.5e1 "),
            ("PACELINE_OBJECTIVE", ""),
            ("PACELINE_BATCH_LATENCY", "0.25"),
            ("PACELINE_EXPECTED_STEPS", "12000 "),
        ])
        .unwrap();
        assert_eq!(settings.job, "mnist");
        assert_eq!(settings.listen.unwrap().to_string(), "unix:/run/job.sock");
        assert_eq!(settings.targets.acceptable, Some(25.0));
        assert_eq!(settings.targets.objective, Some(1.0));
        assert_eq!(settings.targets.batch_latency, Some(0.25));
        assert_eq!(settings.expected_steps, Some(12_000));
    }

    #[test]
    fn rank_is_read_from_launcher_and_invalid_one_ignored() {
        let rank = |variables: &[(&str, &str)]| applied(variables).unwrap().rank;
        assert_eq!(
            rank(&[("RANK", "5"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "8")]),
            Some(Rank { global: 5, local: Some(1), world: Some(8) })
        );
        assert_eq!(rank(&[("RANK", "first")]), None);
        assert_eq!(rank(&[]), None);
    }

    #[test]
    fn bad_value_is_named_with_variable_and_allowed_values() {
        for (name, value, allowed) in [
            ("PACELINE_ACCEPTABLE", "12O", "a finite number"),
            ("PACELINE_OBJECTIVE", "inf", "a finite number"),
            ("PACELINE_BATCH_LATENCY", "0", "a finite number of seconds above 0"),
            ("PACELINE_EXPECTED_STEPS", "0", EXPECTED_STEPS),
            ("PACELINE_EXPECTED_STEPS", "1.5", EXPECTED_STEPS),
            ("PACELINE_EXPECTED_STEPS", "-3", EXPECTED_STEPS),
            ("PACELINE_LISTEN", "7223", address::ALLOWED),
            ("PACELINE_DISABLED", "yes", "`1`, `true`, `0` or `false`"),
            ("PACELINE_HIDE_ADDRESS", "no", "`1`, `true`, `0` or `false`"),
        ] {
            let error = applied(&[(name, value)]).unwrap_err().to_string();
            assert_eq!(error, format!("invalid {name} {value:?}: expected {allowed}"));
        }
    }

    #[test]
    fn address_is_hidden_only_where_that_is_set() {
        let shown = |variables: &[(&str, &str)]| applied(variables).unwrap().address_shown;
        assert_eq!(shown(&[("PACELINE_HIDE_ADDRESS", "1")]), Shown::No);
        assert_eq!(shown(&[("PACELINE_HIDE_ADDRESS", "0")]), Shown::Yes);
        assert_eq!(shown(&[]), Shown::Yes);
    }

    #[test]
    fn disabled_reporter_ignores_other_variables() {
        let settings = applied(&[("PACELINE_DISABLED", "1"), ("PACELINE_LISTEN", "?")]).unwrap();
        assert!(settings.disabled);
        assert!(!applied(&[("PACELINE_DISABLED", "0")]).unwrap().disabled);
    }

    proptest! {
        #[test]
        fn any_value_is_parsed_without_panic(bytes in any::<Vec<u8>>()) {
            let mut settings = Settings::new("vae".to_owned());
            let result = apply(&mut settings, |_| Some(OsString::from_vec(bytes.clone())));
            prop_assert!(result.is_ok() || settings.listen.is_none());
        }
    }
}
