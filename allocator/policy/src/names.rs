//! Names that a user got wrong.

/// How alike two names must be for one to be taken for the other, by Jaro and Winkler: a slip or
/// two in a word, not another word.
const ALIKE: f64 = 0.75;

/// What to tell somebody who gave `name`, of which there is no such thing in `known`: the nearest
/// of them as a question where one is near, and nothing otherwise.
///
/// ```
/// use paceline_policy::names::did_you_mean;
///
/// assert_eq!(did_you_mean("alhpa", ["alpha", "beta"]), r#"; did you mean "alpha"?"#);
/// assert_eq!(did_you_mean("speed", ["alpha", "beta"]), "");
/// ```
pub fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let near = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, known)) if likeness > ALIKE => format!("; did you mean {known:?}?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["max_decrease", "max_increase", "enforcement", "starve_after"];
        for (slip, meant) in [
            ("max_decrase", "max_decrease"),
            ("max-increase", "max_increase"),
            ("enforcment", "enforcement"),
            ("starveafter", "starve_after"),
        ] {
            assert_eq!(did_you_mean(slip, known), format!("; did you mean {meant:?}?"));
        }
        assert_eq!(did_you_mean("speed", known), "");
        assert_eq!(did_you_mean("", known), "");
        assert_eq!(did_you_mean("speed", []), "");
    }
}
