//! What a job's file leaves to each task: words in braces.

use paceline_policy::names::did_you_mean;

/// What the words of one task stand for.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    /// The task's number among its kind, from 0.
    pub(super) index: u32,
    /// How many of its kind there are.
    pub(super) count: u32,
    /// Where the parameter servers listen, in the order of their numbers.
    pub(super) servers: &'a str,
}

const KNOWN: [&str; 4] = ["index", "number", "count", "servers"];

impl Words<'_> {
    /// The text with every word replaced; `{{` and `}}` are braces. Or what is wrong with it.
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
                return Err(format!("{text:?}: a brace by itself is written twice: {{{{ or }}}}"));
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
                Err(format!("{{{other}}} means nothing: there are {{{known}}}{hint}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: Words<'_> = Words { index: 1, count: 3, servers: "a:1,b:2" };

    #[test]
    fn each_task_has_its_own_words() {
        for (text, filled) in [
            ("{index}/{count}", "1/3"),
            ("--seed={number}", "--seed=2"),
            ("{servers}", "a:1,b:2"),
            ("{{index}}", "{index}"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(WORDS.fill(text).as_deref(), Ok(filled));
        }
    }

    #[test]
    fn a_word_that_means_nothing_is_named_with_the_nearest() {
        let why = WORDS.fill("{indx}").unwrap_err();
        assert_eq!(
            why,
            "{indx} means nothing: there are {index}, {number}, {count}, {servers}; did you mean \
             \"index\"?"
        );
        for text in ["{", "a}b", "{index"] {
            assert!(WORDS.fill(text).unwrap_err().contains("a brace by itself"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_doubled_braces_come_back(text in ".*") {
            drop(WORDS.fill(&text));
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(WORDS.fill(&doubled), Ok(text));
        }
    }
}
