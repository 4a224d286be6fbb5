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
    fn a_text_is_split_and_its_characters_come_back(text in "[a-dß-ü語\n]{1020,1400}") {
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
fn what_is_no_text_or_too_little_is_refused() {
    assert_eq!(Corpus::new(vec![0xff; 2000]).unwrap_err(), CorpusError::Encoding);
    let error = Corpus::new(vec![b'a'; 1019]).unwrap_err();
    assert_eq!(error, CorpusError::Short(1019));
    assert_eq!(
        error.to_string(),
        "it has 1019 characters, too few to train on: there must be 1020"
    );
    assert_eq!(corpus(&"a".repeat(1020)).validation(8).map(|it| it.count()).sum::<i64>(), 1);
}

#[test]
fn it_learns_a_text_that_repeats_itself_and_writes_it() {
    tch::manual_seed(1);
    let corpus = corpus(&"abcdefgh\n".repeat(200));
    let store = VarStore::new(Device::Cpu);
    let net = TextNet::new(&store.root(), 9);
    let parameters = Parameters::of(&store);
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
