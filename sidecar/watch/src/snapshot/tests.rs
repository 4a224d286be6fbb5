use proptest::prelude::*;

use super::*;
use crate::address::Address;
use crate::jobs::tests::one;

#[test]
fn one_job_is_printed_in_100_columns() {
    let (jobs, now) = one(|_| ());
    let text = job(&jobs.groups()[0], now);
    assert!(text.starts_with("vae: Training, the loss is sound, last report just now\n"), "{text}");
    assert!(text.contains("  Curve       █▄▃") && text.contains("▁\n"), "{text}");
    assert!(text.ends_with("  Address     http://127.0.0.1:7223/\n"), "{text}");
    assert!(text.lines().all(|line| line.width() <= COLUMNS), "{text}");
}

#[test]
fn list_has_a_line_for_each_job() {
    let (jobs, _) = one(|progress| progress.job = "a name that is too long".to_owned());
    assert_eq!(
        list(&jobs, &Search::default()),
        "\
job            state      loss               done    left       batch     throttled address
a name that i… Training   118.6     █▃▂▁▁▁▁▁ 30.0 %  23 min 20… 30.00 ms  12.0 %    127.0.0.1:7223
"
    );
}

#[test]
fn long_addresses_and_names_keep_to_100_columns() {
    let (mut jobs, now) = one(|progress| progress.job = "n".repeat(60));
    let path = format!("/run/{}/{}.sock", "paceline".repeat(9), "a job ".repeat(9));
    let mut other = jobs.iter().next().unwrap().progress.clone();
    other.instance = "01K".to_owned();
    jobs.take(&Address::Unix(path.clone().into()), Ok(other), now);
    let listed = list(&jobs, &Search::default());
    let alone: String = jobs.groups().iter().map(|group| job(group, now)).collect();
    for text in [listed, alone] {
        assert!(text.lines().all(|line| line.width() <= COLUMNS), "{text}");
        let joined: String = text.split_whitespace().collect();
        assert!(joined.contains(&path.replace(' ', "")), "{text}");
    }
}

#[test]
fn empty_list_says_where_was_looked_and_what_to_do() {
    let said = list(&Jobs::default(), &Search::of_machine(&["/tmp/jobs".into()], &[]));
    let words = said.replace('\n', " ");
    for part in ["ports 7223 and 7230 to 7299", "/tmp/jobs", "paceline-sidecar exec --"] {
        assert!(words.contains(part), "{said}");
    }
    assert!(said.lines().all(|line| line.width() <= COLUMNS), "{said}");
}

#[test]
fn curve_reaches_from_bottom_to_top() {
    assert_eq!(curve(&[3.0, 2.0, 1.0]), "█▄▁");
    assert_eq!(curve(&[1.0, 1.0]), "▁▁");
    assert_eq!(curve(&[10_000.0, 100.0, 1.0]), "█▄▁", "of wide ranges by logarithm");
    assert_eq!(curve(&[f64::MAX, f64::MIN]), "█▁");
    assert_eq!(curve(&[]), "");
}

#[test]
fn text_is_wrapped_between_words_and_within_long_ones() {
    assert_eq!(wrap("one two three", 8), ["one two", "three"]);
    assert_eq!(wrap("/a/very/long/path", 8), ["/a/very/", "long/pat", "h"]);
    assert_eq!(wrap("学学学学学", 8), ["学学学学", "学"]);
    assert_eq!(fit("学学学", 4), "学… ");
    assert_eq!(
        (fit("abc", 5), fit("abc", 2), fit("abc", 0)),
        ("abc  ".into(), "a…".into(), String::new())
    );
}

proptest! {
    #[test]
    fn any_text_fits(text in any::<String>(), columns in 0..60_usize) {
        let text = crate::clean::text(&text, 200);
        prop_assert_eq!(fit(&text, columns).width(), columns);
        for line in wrap(&text, columns) {
            prop_assert!(line.width() <= columns.max(8), "{}", line);
        }
    }
}
