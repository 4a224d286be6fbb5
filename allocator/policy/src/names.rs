//! Suggestions for mistyped names.

/// The least Jaro-Winkler similarity of two names for a suggestion: one or two typos, not another word.
const ALIKE: f64 = 0.75;

/// A suggestion for the unknown `name`, to append to an error message: the most similar of `known`, or
/// an empty text if none is similar.
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
    fn typo_is_recognised_and_another_word_is_not() {
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
