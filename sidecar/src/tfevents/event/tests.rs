use proptest::prelude::*;

use super::super::encode;
use super::*;

fn scalars(values: &[Vec<u8>]) -> Vec<(String, f64)> {
    let bytes = encode::event(1.7e9, 3, values);
    let event = Event::read(&bytes).unwrap();
    let pair = |scalar: Scalar| (scalar.tag, scalar.value);
    event.scalars.into_iter().map(pair).collect()
}

fn of_tensor(tensor: &[Vec<u8>]) -> Option<f64> {
    let found = scalars(&[encode::with_plugin("loss", &tensor.concat(), "scalars")]);
    found.first().map(|(_, value)| *value)
}

#[test]
fn both_encodings_of_a_scalar_are_read() {
    let found = scalars(&[encode::simple("a", 0.5), encode::tensor("b", -0.25)]);
    assert_eq!(found, [("a".to_owned(), 0.5), ("b".to_owned(), -0.25)]);
    assert!(scalars(&[encode::simple("a", f32::NAN)])[0].1.is_nan());
    assert!(scalars(&[encode::tensor("a", f32::NAN)])[0].1.is_nan());
}

#[test]
fn tensors_of_one_real_number_are_scalars() {
    let float = encode::number(1, 1);
    let double = encode::number(1, 2);
    let eight = 0.1_f64.to_le_bytes();
    assert_eq!(of_tensor(&[float.clone(), encode::float(5, 2.5)]), Some(2.5));
    assert_eq!(of_tensor(&[float.clone(), encode::bytes(5, &2.5_f32.to_le_bytes())]), Some(2.5));
    assert_eq!(of_tensor(&[double.clone(), encode::bytes(4, &eight)]), Some(0.1));
    assert_eq!(of_tensor(&[double.clone(), encode::double(6, 0.1)]), Some(0.1));
    assert_eq!(of_tensor(&[double, encode::bytes(6, &eight)]), Some(0.1));
    assert_eq!(of_tensor(&[float.clone(), encode::bytes(2, &[])]), Some(0.0));
    assert_eq!(of_tensor(&[float, encode::bytes(4, &[0; 8])]), None, "two numbers");
    assert_eq!(of_tensor(&[encode::number(1, 7), encode::bytes(8, b"text")]), None);
}

#[test]
fn other_values_than_scalars_are_ignored() {
    let one = [encode::number(1, 1), encode::float(5, 2.5)].concat();
    assert_eq!(scalars(&[encode::with_plugin("loss", &one, "mesh")]), []);
    let picture = [encode::bytes(1, b"loss"), encode::bytes(4, b"png")].concat();
    assert_eq!(scalars(&[picture]), []);
    let nameless = encode::float(2, 1.0);
    assert_eq!(scalars(&[nameless]), []);
}

#[test]
fn omitted_zeros_are_restored() {
    let bytes = encode::event(1.7e9, 0, &[encode::bytes(1, b"loss")]);
    let event = Event::read(&bytes).unwrap();
    assert_eq!(event.step, 0);
    assert_eq!(event.scalars, [Scalar { tag: "loss".to_owned(), value: 0.0 }]);
}

#[test]
fn file_version_and_session_start_are_read() {
    let version = encode::version(5.0);
    let event = Event::read(&version[12..version.len() - 4]).unwrap();
    assert_eq!((event.file_version.as_deref(), event.wall_time), (Some("brain.Event:2"), 5.0));
    let start = encode::start(5.0, 70);
    let event = Event::read(&start[12..start.len() - 4]).unwrap();
    assert_eq!((event.starts, event.step), (true, 70));
}

#[test]
fn time_that_is_not_finite_is_rejected() {
    for time in [f64::NAN, f64::INFINITY] {
        assert!(matches!(Event::read(&encode::event(time, 1, &[])), Err(Malformed::Time(_))));
    }
}

#[test]
fn negative_steps_and_long_varints_are_read() {
    let minus_one = encode::number(2, u64::MAX);
    assert_eq!(Event::read(&minus_one).unwrap().step, -1);
    let too_long = [vec![0x10], vec![0xff; 10]].concat();
    assert!(matches!(Event::read(&too_long), Err(Malformed::Message(_))));
}

proptest! {
    #[test]
    fn encoded_event_is_decoded_unchanged(
        step in 0..u64::from(u32::MAX),
        values in prop::collection::vec(("[a-z/_]{0,20}", any::<f32>(), any::<bool>()), 0..5),
    ) {
        let write = |(tag, value, old): &(String, f32, bool)| {
            if *old { encode::simple(tag, *value) } else { encode::tensor(tag, *value) }
        };
        let values_bytes: Vec<_> = values.iter().map(write).collect();
        let bytes = encode::event(1e9, step, &values_bytes);
        let event = Event::read(&bytes).unwrap();
        prop_assert_eq!(event.step.cast_unsigned(), step);
        let bits = |scalar: Scalar| (scalar.tag, scalar.value.to_bits());
        let found: Vec<_> = event.scalars.into_iter().map(bits).collect();
        let wanted = values.iter().map(|(tag, v, _)| (tag.clone(), f64::from(*v).to_bits()));
        prop_assert_eq!(found, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn random_bytes_are_read_or_rejected(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        event in prop::collection::vec(any::<f32>(), 0..4),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let values: Vec<_> = event.iter().map(|value| encode::tensor("loss", *value)).collect();
        let mut damaged = encode::event(1e9, 7, &values);
        for (at, byte) in flips {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        for bytes in [noise, damaged] {
            let count = Event::read(&bytes).map_or(0, |event| event.scalars.len());
            prop_assert!(count <= bytes.len());
        }
    }
}
