use crate::testing::check;

#[test]
fn xgboost() {
    let table = [
        ("[5]\ttrain-merror:0.25\teval-merror:0.375", ""),
        ("[6]\ttrain-error@0.7:0.25\ttrain-logloss:0.5", "step 6, train-logloss=0.5 Step"),
        (
            "[0]\ttrain-logloss:0.61\teval-logloss:0.52",
            "step 0, train-logloss=0.61 Step, eval-logloss=0.52 Validation Epoch",
        ),
        (
            "[10]\tvalidation_0-rmse:0.5\tvalidation_0-auc:0.9",
            "step 10, validation_0-rmse=0.5 Validation Epoch",
        ),
        (
            "[11]\ttrain-mae:0.5+0.01\ttest-mae:0.6+0.02",
            "step 11, train-mae=0.5 Step, test-mae=0.6 Test Epoch",
        ),
        ("[12]\ttrain-auc:0.9", ""),
        ("[14] train-mae:0.5 and more", ""),
        ("[16] disk-util:85 eval-util:20", ""),
    ];
    check("xgboost", true, &table);
}

#[test]
fn pairs_of_other_names_after_spaces_are_no_round() {
    use paceline_lines::terminal::End;

    use super::XgBoost;
    use crate::draft::Draft;
    use crate::{Grammar, Reading};
    for line in [
        "[15] ce-loss:0.5 kl-loss:0.25",
        "[16] disk-util:85 eval-util:20",
        "[17] policy-loss:0.5",
        "[18] train-speed:100.5",
        "[19] train-rmse:0.5 gpu-mem:80.5",
    ] {
        let mut draft = Draft::default();
        assert_eq!(XgBoost.read(line, End::Newline, &mut draft), Reading::Foreign, "{line}");
    }
}

#[test]
fn lightgbm() {
    let table = [
        ("[10]\tvalid_0's l2: 0.2", "step 10, valid_0's l2=0.2 Validation Epoch"),
        (
            "[20]\ttraining's binary_logloss: 0.5\ttraining's auc: 0.9\tvalid_1's binary_logloss: 0.6",
            "step 20, training's binary_logloss=0.5 Step, valid_1's binary_logloss=0.6 Validation Epoch",
        ),
        ("[30]\tvalid_0's binary_error: 0.25", ""),
        ("[LightGBM] [Info] Total Bins 255", ""),
    ];
    check("lightgbm", true, &table);
}

#[test]
fn catboost() {
    let table = [
        (
            "100:\tlearn: 0.25\ttest: 0.5\tbest: 0.5 (90)\ttotal: 1.5s\tremaining: 9s",
            "step 100, learn=0.25 Step, test=0.5 Validation Epoch",
        ),
        ("7:\tlearn: 0.75\ttotal: 58.2ms\tremaining: 58.1s", "step 7, learn=0.75 Step"),
    ];
    check("catboost", true, &table);
}

#[test]
fn lightgbm_in_r() {
    use paceline_lines::terminal::End;

    use crate::Reading;
    use crate::draft::Draft;
    let table = [
        (
            "[3]:  train's l2:0.25  test's l2:0.5",
            "step 3, train's l2=0.25 Step, test's l2=0.5 Test Epoch",
        ),
        ("[1] \"[4]:  train's l2:0.125\"", "step 4, train's l2=0.125 Step"),
        ("[5]:  valid's auc:0.75", ""),
    ];
    check("lightgbm", true, &table);
    for line in ["[6]:  ce-loss:0.5  kl-loss:0.25", "[7]:  it's late: 5pm"] {
        for mut grammar in super::grammars() {
            let reading = grammar.read(line, End::Newline, &mut Draft::default());
            assert_eq!(reading, Reading::Foreign, "{line}");
        }
    }
}

#[test]
fn catboost_before_version_1() {
    let table = [
        ("0:\tlearn 0.75passed: 2.5 sec\ttotal: 3s", "step 0, 2.5 s, learn=0.75 Step"),
        (
            "7:      learn 0.5125  test 0.625     bestTest 0.625 (7)   passed: 250 ms   total: 9s",
            "step 7, 0.25 s, learn=0.5125 Step, test=0.625 Validation Epoch",
        ),
        ("8:      learn 0.5     passed: 1m 2s", "step 8, learn=0.5 Step"),
        ("9:      learn 0.5     total: 2", ""),
        ("10:     learn 0.5passed: 2 sec", ""),
        ("11:     learner 3 passed: 2 sec", ""),
    ];
    check("catboost", true, &table);
}
