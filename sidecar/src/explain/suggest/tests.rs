use proptest::prelude::*;

use super::*;

fn of(log: &str) -> Vec<String> {
    suggest(log.lines()).into_iter().map(|suggestion| suggestion.pattern).collect()
}

#[test]
fn repeated_lines_with_an_objective_get_a_pattern() {
    let log = (1..=9)
        .map(|step| format!("it={step}/500 obj=1.{} lr=0.{step} took {step}.5ms\n", 90 - step))
        .collect::<Vec<_>>()
        .concat();
    let suggestions = suggest(log.lines());
    let [only] = &suggestions[..] else { panic!("{suggestions:?}") };
    assert_eq!(only.reads, 9);
    assert!(only.losses.0 > only.losses.1, "{only:?}");
    assert_eq!(only.pattern, r"^it=(?P<step>\d+)/(?P<total_steps>\d+)\s*obj=(?P<loss>[-+.\w]+)");
    assert!(only.option().starts_with("--pattern '^it="));
}

#[test]
fn forms_that_need_one_pattern_are_one_suggestion_in_the_order_of_the_log() {
    let ends = ["sound", "late", "a new best"];
    let line = |step: usize| format!("it {step} obj 0.{} {}\n", 900 - step, ends[step % 3]);
    let log: String = (1..=12).map(line).collect();
    let suggestions = suggest(log.lines());
    let [only] = &suggestions[..] else { panic!("{suggestions:?}") };
    assert_eq!((only.reads, only.losses), (12, (0.899, 0.888)));
    assert_eq!(only.example, "it 1 obj 0.899 late");
}

#[test]
fn held_out_data_get_a_group_of_their_own() {
    let log = (1..=9)
        .map(|step| format!("[eval] round {step} | criterion 0.{}\n", 90 - step))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(
        of(&log),
        [r"^\[eval\]\s*round\s*(?P<step>\d+)\s*\|\s*criterion\s*(?P<val_loss>[-+.\w]+)"]
    );
}

#[test]
fn lines_without_a_report_get_none() {
    for log in [
        "",
        "loaded 5 files\nloaded 6 files\nloaded 7 files\n",
        "lr 0.1\nlr 0.2\nlr 0.3\n",
        "elapsed 1.5 s\nelapsed 2.5 s\nelapsed 3.5 s\n",
        "a 0.5\nb 0.25\n",
        "x 0.5\nx 0.5\nx 0.5\n",
    ] {
        assert_eq!(of(log), [""; 0], "{log}");
    }
}

#[test]
fn quotes_are_escaped_for_a_shell() {
    let log =
        (1..=5).map(|step| format!("it's {step} J 0.{}\n", 90 - step)).collect::<Vec<_>>().concat();
    let suggestions = suggest(log.lines());
    assert!(suggestions[0].option().contains(r"it'\''s"), "{suggestions:?}");
}

proptest! {
    #[test]
    fn suggestion_reads_the_lines_that_it_was_made_from(
        words in prop::collection::vec("[a-zA-Z(){}|*+?.$^#-]{1,8}", 3),
        losses in prop::collection::vec(1_u32..999, 4..40),
    ) {
        let [a, b, c] = &words[..] else { unreachable!() };
        let line = |(step, loss): (usize, &u32)| format!("{a} {step} {b} 1.{loss:03} {c} 7\n");
        let log: String = losses.iter().enumerate().map(line).collect();
        for suggestion in suggest(log.lines()) {
            prop_assert!(suggestion.reads * 10 >= losses.len() * 9, "{suggestion:?}");
        }
    }
}
