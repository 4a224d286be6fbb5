//! Reads Prometheus' text format 0.0.4, as our own writers produce it.

/// What a family's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that rises and falls.
    Gauge,
    /// A number that only grows.
    Counter,
    /// Counts below bounds.
    Histogram,
}

/// A metric with all of its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its help text.
    pub help: String,
    /// What its values are.
    pub kind: Kind,
    /// Its samples, in order.
    pub samples: Vec<Sample<'t>>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample<'t> {
    /// The name: that of the family, with an ending in a histogram.
    pub name: &'t str,
    /// The labels, in order.
    pub labels: Vec<(&'t str, String)>,
    /// The number as text.
    pub value: &'t str,
}

/// The families of a text that have samples. What is not of the format is left out, and so are summaries
/// and samples without a type.
pub fn families(text: &str) -> Vec<Family<'_>> {
    let mut families = Vec::new();
    let mut help = ("", String::new());
    let mut open: Option<Family<'_>> = None;
    for line in text.lines() {
        if let Some((name, words)) = after(line, "# HELP ") {
            families.extend(open.take());
            help = (name, unescaped(words));
        } else if let Some((name, kind)) = after(line, "# TYPE ") {
            families.extend(open.take());
            let help = if help.0 == name { std::mem::take(&mut help.1) } else { String::new() };
            open = kind_of(kind).map(|kind| Family { name, help, kind, samples: Vec::new() });
        } else if let Some(family) = &mut open
            && let Some(sample) = sample(line)
            && is_of(family, sample.name)
        {
            family.samples.push(sample);
        }
    }
    families.extend(open);
    families.retain(|family| !family.samples.is_empty());
    families
}

/// The name and the rest of a line that begins so.
fn after<'t>(line: &'t str, start: &str) -> Option<(&'t str, &'t str)> {
    let rest = line.strip_prefix(start)?;
    Some(rest.split_once(' ').unwrap_or((rest, "")))
}

fn kind_of(word: &str) -> Option<Kind> {
    match word.trim() {
        "gauge" => Some(Kind::Gauge),
        "counter" => Some(Kind::Counter),
        "histogram" => Some(Kind::Histogram),
        _ => None,
    }
}

fn is_of(family: &Family<'_>, name: &str) -> bool {
    let ending = name.strip_prefix(family.name);
    match family.kind {
        Kind::Gauge | Kind::Counter => ending == Some(""),
        Kind::Histogram => matches!(ending, Some("_bucket" | "_sum" | "_count")),
    }
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at_checked(end)?;
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_ascii_whitespace().next()?;
    value.parse::<f64>().ok()?;
    Some(Sample { name, labels, value })
}

/// A sample's labels.
type Labels<'t> = Vec<(&'t str, String)>;

/// The labels after the opening brace, and what follows the closing one.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut is_escaped = false;
        let end = quoted.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        })?;
        let (value, after) = quoted.split_at_checked(end)?;
        labels.push((name.trim(), unescaped(value)));
        rest = after.strip_prefix('"')?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// A text in which `\\`, `\"` and `\n` stand for themselves.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            (other, false) => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
# HELP paceline_loss Mean of the last \\\\ reported losses.
# TYPE paceline_loss gauge
paceline_loss 118.5
# HELP paceline_epoch Epoch.
# TYPE paceline_epoch gauge

# HELP paceline_state State.
# TYPE paceline_state gauge
paceline_state{state=\"a \\\"b\\\"\\\\c\\nd\",x=\"\"} 1
not_of_it 3
paceline_state{state=\"open} 1
# HELP d_seconds How long.
# TYPE d_seconds histogram
d_seconds_bucket{le=\"0.1\"} 2
d_seconds_bucket{le=\"+Inf\"} 3
d_seconds_sum 1.5
d_seconds_count 3
";

    #[test]
    fn families_have_their_samples_in_order() {
        let families = families(TEXT);
        let names: Vec<_> = families.iter().map(|family| (family.name, family.kind)).collect();
        let expected = [
            ("paceline_loss", Kind::Gauge),
            ("paceline_state", Kind::Gauge),
            ("d_seconds", Kind::Histogram),
        ];
        assert_eq!(names, expected);
        assert_eq!(families[0].help, "Mean of the last \\ reported losses.");
        assert_eq!(families[0].samples[0].value, "118.5");
        assert_eq!(families[1].samples.len(), 1);
        let labels = [("state", "a \"b\"\\c\nd".to_owned()), ("x", String::new())];
        assert_eq!(families[1].samples[0].labels, labels);
        assert_eq!(families[2].samples.len(), 4);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in any::<String>()) {
            families(&text);
            families(&format!("# TYPE a gauge\na{text}"));
        }

        #[test]
        fn any_label_is_read_back(value in any::<String>()) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let text = format!("# TYPE a gauge\na{{b=\"{escaped}\"}} 1\n");
            // A carriage return at the end of a line is none of the value.
            prop_assume!(!value.contains('\r'));
            prop_assert_eq!(&families(&text)[0].samples[0].labels, &[("b", value)]);
        }
    }
}
