//! Which container somebody means.

use crate::live::Refusal;

/// What one container goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) id: &'a str,
    /// Its name.
    pub(super) name: &'a str,
    /// Its job's name, which no other job has.
    pub(super) job: &'a str,
}

/// The id of the container that `wanted` means: a job's name, a container's name, an id or its
/// beginning, whichever of these comes first.
pub(super) fn resolve<'a>(wanted: &str, known: &[Named<'a>]) -> Result<&'a str, Refusal> {
    let plain = wanted.strip_prefix('/').unwrap_or(wanted);
    if plain.is_empty() {
        return Err(Refusal::Unknown(wanted.to_owned()));
    }
    let by = |fits: &dyn Fn(&Named<'_>) -> bool| known.iter().find(|one| fits(one));
    let exact = by(&|one| one.job == wanted)
        .or_else(|| by(&|one| one.name == plain))
        .or_else(|| by(&|one| one.id == wanted));
    if let Some(one) = exact {
        return Ok(one.id);
    }
    let mut begin = known.iter().filter(|one| one.id.starts_with(wanted));
    match (begin.next(), begin.next()) {
        (Some(one), None) => Ok(one.id),
        (Some(_), Some(_)) => Err(Refusal::Ambiguous(wanted.to_owned())),
        (None, _) => Err(Refusal::Unknown(wanted.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KNOWN: [Named<'_>; 3] = [
        Named { id: "abc1", name: "one", job: "vae" },
        Named { id: "abd2", name: "vae", job: "gru" },
        Named { id: "one3", name: "three", job: "three" },
    ];

    #[test]
    fn a_jobs_name_comes_before_a_containers_and_that_before_an_id() {
        for (wanted, id) in [
            ("vae", "abc1"),
            ("gru", "abd2"),
            ("one", "abc1"),
            ("/one", "abc1"),
            ("abd2", "abd2"),
            ("abd", "abd2"),
            ("one3", "one3"),
        ] {
            assert_eq!(resolve(wanted, &KNOWN), Ok(id), "{wanted}");
        }
    }

    #[test]
    fn a_name_of_several_or_of_none_is_refused() {
        assert_eq!(resolve("ab", &KNOWN), Err(Refusal::Ambiguous("ab".to_owned())));
        for wanted in ["", "x", "/"] {
            assert_eq!(resolve(wanted, &KNOWN), Err(Refusal::Unknown(wanted.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn every_container_is_found_by_its_id_unless_that_is_anothers_name(wanted in "[a-z0-9]{4}") {
            let known = [Named { id: &wanted, name: "name", job: "job" }];
            prop_assume!(wanted != "name");
            prop_assert_eq!(resolve(&wanted, &known), Ok(wanted.as_str()));
        }
    }
}
