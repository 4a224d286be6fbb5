use paceline_torch::{Adam, Optimizer, Parameters};
use proptest::prelude::*;
use tch::nn::VarStore;
use tch::no_grad;

use super::*;

fn corpus(text: &str) -> Corpus {
    Corpus::new(text.into()).unwrap()
}

fn codes(tensor: &Tensor) -> Vec<i64> {
    Vec::try_from(tensor.flatten(0, -1)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn text_is_split_and_characters_round_trip(text in "[a-dß-ü語\n]{1020,1400}") {
        let corpus = corpus(&text);
        let (train, validation) = (codes(&corpus.train), codes(&corpus.validation));
        prop_assert_eq!(corpus.text(&train) + &corpus.text(&validation), text);
        prop_assert_eq!(train.len(), (train.len() + validation.len()) * 9 / 10);
    }

    #[test]
    fn a_window_is_followed_by_its_targets(seed: i64, text in "[a-z]{1020,1100}") {
        let corpus = corpus(&text);
        tch::manual_seed(seed);
        for windows in [corpus.draw(3)].into_iter().chain(corpus.validation(2)) {
            prop_assert_eq!(windows.inputs.size(), [windows.count(), WINDOW]);
            let (inputs, targets) = (windows.inputs.select(0, 0), windows.targets.select(0, 0));
            let row = corpus.text(&codes(&inputs)) + &corpus.text(&codes(&targets))[99..];
            prop_assert!(text.contains(&row));
        }
    }
}

#[test]
fn invalid_or_short_text_is_refused() {
    assert_eq!(Corpus::new(vec![0xff; 2000]).unwrap_err(), CorpusError::Encoding);
    let error = Corpus::new(vec![b'a'; 1019]).unwrap_err();
    assert_eq!(error, CorpusError::Short(1019));
    assert_eq!(
        error.to_string(),
        "1019 characters are too few to train on: expected at least 1020"
    );
    assert_eq!(corpus(&"a".repeat(1020)).validation(8).map(|it| it.count()).sum::<i64>(), 1);
}

#[test]
fn repetitive_text_is_learned_and_written() {
    tch::manual_seed(1);
    let corpus = corpus(&"abcdefgh\n".repeat(200));
    let store = VarStore::new(Device::Cpu);
    let net = TextNet::new(&store.root(), 9);
    let parameters = Parameters::from_store(&store);
    let mut optimizer = Adam::new(&parameters, 1e-2).unwrap();
    let mut loss = || {
        let loss = net.loss(&corpus.draw(2));
        optimizer.step(&parameters.gradients(&loss).unwrap()).unwrap();
        loss.double_value(&[])
    };
    // A guess among nine characters costs ln 9 = 2.2.
    let first = loss();
    assert!((first - 2.2).abs() < 0.3, "{first}");
    let last = (0..40).fold(first, |_, _| loss());
    assert!(last < 0.2, "{last}");
    let written = no_grad(|| net.write(&corpus, 18));
    assert_eq!(written, "abcdefgh\n".repeat(2));
}
