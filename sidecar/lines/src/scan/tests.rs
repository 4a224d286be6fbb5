use proptest::prelude::*;

use super::*;

#[test]
fn numbers_are_read_as_they_are_printed() {
    for (text, expected) in [
        ("1.2e-05", 1.2e-5),
        ("1e0", 1.0),
        ("4.063e-05", 4.063e-5),
        ("0.000123e+2", 0.0123),
        ("123456789e15", 123_456_789e15),
        ("7e-15", 7e-15),
        ("9.99e-21", 9.99e-21),
        ("0e300", 0.0),
        ("1E+3", 1000.0),
        (".98", 0.98),
        ("1.", 1.0),
        ("1.003123E+01", 10.031_23),
        ("2,345", 2345.0),
        ("1,234,567.5", 1_234_567.5),
        ("12.3k", 12_300.0),
        ("1.5M", 1.5e6),
        ("-0.5", -0.5),
        ("+0.5", 0.5),
        ("\u{2212}0.5", -0.5),
        ("0010", 10.0),
        ("4.19803671", 4.198_036_71),
        ("0.5023738122475573", 0.502_373_812_247_557_3),
        ("166.1289", 166.1289),
        ("12345678901234567890", 12_345_678_901_234_567_890.0),
        ("inf", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("1.#INF", f64::INFINITY),
        ("-1.#INF000", f64::NEG_INFINITY),
    ] {
        assert_eq!(whole(text), Some(expected), "{text}");
        assert_eq!(whole(&format!(" {text} ")), Some(expected), "{text}");
    }
    for text in ["nan", "NaN", "-nan", "NAN", "1.#QNAN", "1.#QNAN000", "-1.#IND00"] {
        assert!(whole(text).is_some_and(f64::is_nan), "{text}");
    }
}

#[test]
fn other_texts_are_not_numbers() {
    for text in [
        "",
        ".",
        "-",
        "e5",
        "42%",
        "0:03:45",
        "1.2.3",
        "2026-01-01",
        "10/100",
        "5s",
        "0,5",
        "1,23",
        "0x10",
        "1_000",
        "1.#",
        "1.#5",
        "2.#INF",
        "1.#INFO",
        "nano",
        "info",
        "infinite",
        "--5",
        "1 2",
        "12,3456",
        "5ms",
    ] {
        assert_eq!(whole(text), None, "{text}");
    }
}

#[test]
fn text_after_a_number_is_returned() {
    assert_eq!(value("3.12345. lr"), Some((3.12345, ". lr")));
    assert_eq!(value("0.5, next"), Some((0.5, ", next")));
    assert_eq!(value("0.5]"), Some((0.5, "]")));
    assert_eq!(number("906ms/step"), Some((906.0, "ms/step")));
    assert_eq!(number("1.5e"), Some((1.5, "e")));
    assert_eq!(count("3. Batch"), Some((3, ". Batch")));
    assert_eq!(count("2,345 x"), Some((2345, " x")));
    assert_eq!(count("1,2"), Some((1, ",2")));
    assert_eq!(count("99999999999999999999"), None);
    assert_eq!(count("x"), None);
    assert_eq!(listed("a=1, b=2,345,c, ").collect::<Vec<_>>(), ["a=1", "b=2,345,c", ""]);
    assert_eq!(listed("").collect::<Vec<_>>(), [""]);
    assert_eq!(scaled_count("1.2k/10k"), Some((1200, "/10k")));
}

proptest! {
    #[test]
    fn every_finite_number_is_read_exactly(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
        prop_assert_eq!(whole(&format!("{value}")), Some(value));
        prop_assert_eq!(whole(&format!("{value:e}")), Some(value));
        let short = format!("{:.4}", value % 1e6);
        prop_assert_eq!(whole(&short), short.parse().ok());
    }

    #[test]
    fn any_text_is_scanned_without_panic(text in "[-+,.:0-9einfa% \u{2212}é]{0,12}") {
        if let Some((_, rest)) = value(&text) {
            prop_assert!(text.ends_with(rest) && rest.len() < text.len());
        }
        let _: Option<(u64, &str)> = count(&text);
        let _: Option<(u64, &str)> = scaled_count(&text);
    }
}

#[test]
fn number_may_run_into_a_word() {
    for (text, expected) in [
        ("0.25Epoch 1/3", Some(0.25)),
        (" 1.25e-05Epoch 1/3", Some(1.25e-5)),
        ("0.6455974416passed: 2 sec", Some(0.645_597_441_6)),
        ("0.25", None),
        ("0.5Epoch 1/3", None),
        ("12Epoch", None),
        ("0.25ms", None),
        ("0.25GiB", None),
        ("0.25MB", None),
        ("0.25seconds", None),
        ("nano", None),
        ("é", None),
    ] {
        assert_eq!(run_into(text), expected, "{text}");
    }
    assert!(run_into("nanEpoch 1/3").is_some_and(f64::is_nan));
}
