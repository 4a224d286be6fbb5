//! Placeholders in braces, which have another value in each task of a job.

use paceline_policy::names::did_you_mean;

/// The values of one task's placeholders.
#[derive(Clone, Debug)]
pub(super) struct Placeholders<'a> {
    /// The task's index among those of its role, from 0.
    pub(super) index: u32,
    /// How many tasks of its role there are.
    pub(super) count: u32,
    /// The addresses of the parameter servers, ordered by index.
    pub(super) servers: &'a str,
}

const KNOWN: [&str; 4] = ["index", "number", "count", "servers"];

impl Placeholders<'_> {
    /// Replaces every placeholder; `{{` and `}}` are literal braces. The error is a sentence.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            if let Some(after) = from.strip_prefix("{{") {
                filled.push('{');
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                filled.push('}');
                rest = after;
            } else if let Some((word, after)) =
                from.strip_prefix('{').and_then(|inside| inside.split_once('}'))
            {
                filled.push_str(&self.value(word)?);
                rest = after;
            } else {
                return Err(format!(
                    "{text:?}: unmatched brace; write a literal brace as {{{{ or }}}}"
                ));
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, word: &str) -> Result<String, String> {
        match word {
            "index" => Ok(self.index.to_string()),
            "number" => Ok((u64::from(self.index) + 1).to_string()),
            "count" => Ok(self.count.to_string()),
            "servers" => Ok(self.servers.to_owned()),
            other => {
                let (known, hint) = (KNOWN.join("}, {"), did_you_mean(other, KNOWN));
                Err(format!("unknown placeholder {{{other}}}: expected one of {{{known}}}{hint}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACEHOLDERS: Placeholders<'_> = Placeholders { index: 1, count: 3, servers: "a:1,b:2" };

    #[test]
    fn placeholders_are_replaced_by_the_tasks_values() {
        for (text, filled) in [
            ("{index}/{count}", "1/3"),
            ("--seed={number}", "--seed=2"),
            ("{servers}", "a:1,b:2"),
            ("{{index}}", "{index}"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(PLACEHOLDERS.fill(text).as_deref(), Ok(filled));
        }
    }

    #[test]
    fn unknown_placeholder_is_reported_with_a_suggestion() {
        let why = PLACEHOLDERS.fill("{indx}").unwrap_err();
        assert_eq!(
            why,
            "unknown placeholder {indx}: expected one of {index}, {number}, {count}, {servers}; \
             did you mean \"index\"?"
        );
        for text in ["{", "a}b", "{index"] {
            assert!(PLACEHOLDERS.fill(text).unwrap_err().contains("unmatched brace"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_safe_and_doubled_braces_are_literal(text in ".*") {
            drop(PLACEHOLDERS.fill(&text));
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(PLACEHOLDERS.fill(&doubled), Ok(text));
        }
    }
}
