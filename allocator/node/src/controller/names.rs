//! Finds the container that a name in an order refers to.

use paceline_api::live::Refusal;
use paceline_runtime::short;

/// The most containers that a refusal names.
const MAX_SHOWN: usize = 8;

/// The names of one container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) id: &'a str,
    /// The container's name.
    pub(super) name: &'a str,
    /// Its job's name, which is unique.
    pub(super) job: &'a str,
}

/// The id of the container that `wanted` refers to: a full id, a job's or container's name, or else the
/// beginning of an id. A name that fits several containers is refused with their ids, because a label
/// can give a job the name of another container.
pub(super) fn resolve<'a>(wanted: &str, known: &[Named<'a>]) -> Result<&'a str, Refusal> {
    let plain = wanted.strip_prefix('/').unwrap_or(wanted);
    if plain.is_empty() {
        return Err(Refusal::Unknown(wanted.to_owned()));
    }
    let by = |fits: &dyn Fn(&&Named<'a>) -> bool| -> Vec<&Named<'a>> {
        known.iter().filter(fits).collect()
    };
    let mut found = by(&|one| one.id == wanted);
    if found.is_empty() {
        found = by(&|one| one.job == wanted || one.name == plain);
    }
    if found.is_empty() {
        found = by(&|one| one.id.starts_with(wanted));
    }
    match found.as_slice() {
        [] => Err(Refusal::Unknown(wanted.to_owned())),
        [one] => Ok(one.id),
        several => Err(Refusal::Ambiguous(ambiguous(wanted, several))),
    }
}

/// Names the containers that a name fits.
fn ambiguous(wanted: &str, several: &[&Named<'_>]) -> String {
    let shown = several.iter().take(MAX_SHOWN);
    let mut ids: Vec<&str> = shown.map(|one| short(one.id)).collect();
    if several.len() > ids.len() {
        ids.push("…");
    }
    format!("{wanted:?} names the containers {}", ids.join(", "))
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
    fn container_is_found_by_any_of_its_names() {
        for (wanted, id) in [
            ("gru", "abd2"),
            ("one", "abc1"),
            ("/one", "abc1"),
            ("abd2", "abd2"),
            ("abd", "abd2"),
            ("one3", "one3"),
            ("three", "one3"),
        ] {
            assert_eq!(resolve(wanted, &KNOWN), Ok(id), "{wanted}");
        }
    }

    #[test]
    fn name_of_several_containers_is_refused_with_their_ids() {
        for wanted in ["vae", "ab"] {
            let Err(refusal @ Refusal::Ambiguous(_)) = resolve(wanted, &KNOWN) else {
                panic!("{wanted} is accepted")
            };
            assert_eq!(
                refusal.to_string(),
                format!("{wanted:?} names the containers abc1, abd2; give an id instead")
            );
        }
        let many: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
        let named = |id| Named { id, name: "", job: "job" };
        let known: Vec<Named<'_>> = many.iter().map(|id| named(id.as_str())).collect();
        assert!(resolve("job", &known).unwrap_err().to_string().len() < 100);
    }

    #[test]
    fn label_cannot_take_a_full_id() {
        let known = [
            Named { id: "abc1", name: "victim", job: "victim" },
            Named { id: "abd2", name: "hostile", job: "abc1" },
        ];
        assert_eq!(resolve("abc1", &known), Ok("abc1"));
    }

    #[test]
    fn unknown_name_is_refused() {
        for wanted in ["", "x", "/"] {
            assert_eq!(resolve(wanted, &KNOWN), Err(Refusal::Unknown(wanted.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn container_is_found_by_its_id(wanted in "[a-z0-9]{4}") {
            let known = [Named { id: &wanted, name: "name", job: "job" }];
            prop_assume!(wanted != "name");
            prop_assert_eq!(resolve(&wanted, &known), Ok(wanted.as_str()));
        }
    }
}
