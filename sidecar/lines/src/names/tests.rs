use proptest::prelude::*;

use super::*;

fn loss(phase: impl Into<Option<Phase>>, span: impl Into<Option<Span>>) -> Meaning {
    Meaning::Loss { phase: phase.into(), span: span.into() }
}

#[test]
fn losses_are_distinguished_by_their_names() {
    let train = Phase::Train;
    let validation = loss(Phase::Validation, Span::Epoch);
    for (name, expected) in [
        ("loss", loss(None, None)),
        ("loss1", loss(None, None)),
        ("lossvalue", loss(None, None)),
        ("Loss_D", loss(None, None)),
        ("lm loss", loss(None, None)),
        ("epoch_loss", loss(None, Span::Epoch)),
        ("batch_loss", loss(None, Span::EpochSoFar)),
        ("evaluation_loss_vs_iterations", validation),
        ("train/loss", loss(train, Span::Interval)),
        ("train/train_loss", loss(train, Span::Run)),
        ("eval/loss", validation),
        ("eval_loss", validation),
        ("eval/wiki_loss", validation),
        ("test/loss", loss(Phase::Test, Span::Epoch)),
        ("train_loss", loss(train, None)),
        ("train_loss_step", loss(train, Span::Step)),
        ("train_loss_epoch", loss(train, Span::Epoch)),
        ("val_loss", validation),
        ("val_loss/dataloader_idx_0", validation),
        ("valid_loss", validation),
        ("valLoss", validation),
        ("TrainLoss", loss(train, None)),
        ("trainloss", loss(train, None)),
        ("NLLLoss/val", validation),
        ("Loss/train", loss(train, None)),
        ("loss/val", validation),
        ("loss_metrics/global_avg_loss", loss(None, None)),
        ("running_loss", loss(None, Span::Interval)),
        ("train/val_loss", validation),
        ("Train/Samples/train_loss", loss(train, None)),
        ("closs", loss(None, None)),
        ("cv_loss", validation),
        ("metrics/eval/LanguageCrossEntropy", validation),
        ("xent", loss(None, None)),
        ("cost", loss(None, None)),
        ("train cost", loss(train, None)),
        ("valid_nll", validation),
        ("clip_val_loss", validation),
        ("loss_last_100_steps", loss(None, None)),
        ("loss_per_steps", loss(None, None)),
    ] {
        assert_eq!(meaning(name), Some(expected), "{name}");
    }
}

#[test]
fn names_that_resemble_a_loss_are_ignored() {
    for name in [
        "loss_scale",
        "loss-scale vs samples",
        "lm loss vs samples",
        "lossless",
        "glossary",
        "grad_norm",
        "loss/grad_norm",
        "best_val_loss",
        "loss_metrics/global_max_loss",
        "loss_weight/kl",
        "hparam/loss",
        "accuracy",
        "lr-SGD",
        "packet_loss",
        "train_loss_std",
        "epoch_learning_rate",
        "time_step",
        "data_time",
        "epoch_time",
        "train/train_steps_per_second",
        "eval_steps_per_second",
        "time_metrics/data_loading(s)",
        "throughput(tps)",
        "data_cost",
        "reader_cost",
        "time cost",
        "lambda_loss",
        "train.loss_log_interval",
        "train_loss_steps",
        "loss_begin_epoch",
        "aux_loss_ramp_epochs",
        "val_loss_interval",
        "loss_queue_len",
        "use_loss_v2",
        "loss_dtype",
        "clip_loss_max",
        "entropy_loss",
        "cross",
        "objective weight",
        "eval_it/s",
        "warmup_epochs",
        "num_warmup_steps",
        "eval_steps",
        "",
        "///",
    ] {
        assert_eq!(meaning(name), None, "{name}");
    }
}

#[test]
fn times_of_batches_come_with_their_unit() {
    for (name, per_second) in [
        ("time_metrics/end_to_end(s)", 1.0),
        ("batch_latency_ms", 1e3),
        ("batch_time", 1.0),
        ("train/step_time", 1.0),
        ("iteration-time", 1.0),
        ("timing_s/step", 1.0),
        ("step_us/time", 1e6),
        ("ms_per_step", 1e3),
        ("batch_cost", 1.0),
        ("avg_batch_cost", 1.0),
        ("iter_time", 1.0),
        ("train_step_timing in s", 1.0),
        ("elapsed time per iteration (ms)", 1e3),
    ] {
        assert_eq!(meaning(name), Some(Meaning::BatchTime { per_second }), "{name}");
    }
    for name in [
        "batch_steps_per_second",
        "epoch_steps_per_second",
        "train|device/batches_per_sec",
        "It/sec",
        "train_speed(iter/s)",
        "global_step/sec",
        "ups",
        "interval_steps_per_second",
    ] {
        assert_eq!(meaning(name), Some(Meaning::BatchRate), "{name}");
    }
}

#[test]
fn counters_are_known() {
    for (name, expected) in [
        ("epoch", Meaning::Epoch),
        ("train/epoch", Meaning::Epoch),
        ("step", Meaning::Step),
        ("trainer/global_step", Meaning::Step),
        ("batch", Meaning::Batch),
        ("batch_idx", Meaning::Batch),
        ("wall_time", Meaning::WallTime),
        ("ite", Meaning::Step),
        ("num_updates", Meaning::Step),
        ("GLOBAL_STEP", Meaning::Step),
        ("global_batch_idx", Meaning::Step),
        ("mini-batch", Meaning::Batch),
        ("total_steps", Meaning::TotalSteps),
        ("max_iters", Meaning::TotalSteps),
        ("numTrainingSteps", Meaning::TotalSteps),
        ("Total optimization steps", Meaning::TotalSteps),
        ("max_epochs", Meaning::TotalEpochs),
        ("Num Epochs", Meaning::TotalEpochs),
        ("num_train_epochs", Meaning::TotalEpochs),
    ] {
        assert_eq!(meaning(name), Some(expected), "{name}");
    }
}

#[test]
fn main_loss_has_the_lowest_rank() {
    for (name, expected) in [
        ("loss", 0),
        ("train/total_loss", 0),
        ("lm loss", 1),
        ("Avg. Loss", 1),
        ("loss_box", 2),
        ("Loss_D", 2),
        ("nll_loss", 2),
        ("kl_loss", 3),
        ("total_cost", 4),
        ("train/total_cost", 4),
        ("box_cost", 5),
        ("cost", 4),
        ("cross_entropy", 4),
        ("mask_loss", 2),
        ("Loss/tok", 0),
        ("train loss per token", 0),
        ("box loss/word", 2),
        ("token_loss", 2),
    ] {
        assert_eq!(rank(name), expected, "{name}");
    }
}

#[test]
fn steps_may_count_something_else() {
    assert_eq!(axis("epoch_loss"), Axis::Epochs);
    assert_eq!(axis("Train/Samples/train_loss"), Axis::Samples);
    for name in ["epoch", "loss", "train_loss_epoch"] {
        assert_eq!(axis(name), Axis::Steps, "{name}");
    }
}

#[test]
fn folder_gives_the_phase_only_with_all_of_its_name() {
    assert_eq!(phase_of_folder("validation"), Some(Phase::Validation));
    assert_eq!(phase_of_folder("Loss_test"), Some(Phase::Test));
    for name in ["test_run_3", "version_0", ""] {
        assert_eq!(phase_of_folder(name), None, "{name}");
    }
}

proptest! {
    #[test]
    fn any_name_is_accepted(name in "\\PC*") {
        let _: Option<Meaning> = meaning(&name);
        prop_assert!(words(&name).len() <= 32);
    }
}

#[test]
fn short_texts_say_which_data_values_are_of() {
    for (text, phase) in [
        ("val", Some(Phase::Validation)),
        ("validation_epoch_end", Some(Phase::Validation)),
        ("evalStep", Some(Phase::Validation)),
        ("test", Some(Phase::Test)),
        ("train", None),
        ("train_and_eval", None),
        ("the model was saved before eval", None),
        ("min", None),
        ("", None),
    ] {
        assert_eq!(held_out_by(text), phase, "{text}");
    }
}

#[test]
fn word_of_a_setting_before_loss_may_name_a_part() {
    for name in ["mask_loss", "Mask_Loss", "train/margin_loss", "val_mask_loss"] {
        assert!(matches!(meaning(name), Some(Meaning::Loss { .. })), "{name}");
    }
    for name in ["loss_mask", "mask_loss_weight", "use_mask_loss", "loss_margin", "min_loss"] {
        assert_eq!(meaning(name), None, "{name}");
    }
}

#[test]
fn measures_in_a_group_of_losses_are_none() {
    for name in ["loss/policy", "loss/policy_loss", "losses/kl", "Loss/train"] {
        assert!(matches!(meaning(name), Some(Meaning::Loss { .. })), "{name}");
    }
    for name in ["loss/approxkl", "losses/clipfrac", "losses/approx_kl", "loss/fps"] {
        assert!(!matches!(meaning(name), Some(Meaning::Loss { .. })), "{name}");
    }
}

#[test]
fn whole_cost_is_no_part() {
    for (name, whole) in
        [("total_cost", true), ("train/total_cost", true), ("cost", false), ("box_cost", false)]
    {
        assert_eq!(is_whole_cost(name), whole, "{name}");
    }
}
