use proptest::prelude::*;

use super::End::{Flush, Newline, Return};
use super::*;

fn lines(pieces: &[&[u8]]) -> Vec<(String, End)> {
    let mut found = Vec::new();
    let mut splitter = LineSplitter::new();
    for piece in pieces {
        splitter.feed(piece, &mut |line| found.push((line.text.to_owned(), line.end)));
    }
    splitter.flush(&mut |line| found.push((line.text.to_owned(), line.end)));
    found
}

#[test]
fn lines_and_frames_end_where_a_terminal_ends_them() {
    for (bytes, expected) in [
        (&b"one\ntwo\n"[..], &[("one", Newline), ("two", Newline)][..]),
        (b"one\r\ntwo\r\r\n", &[("one", Newline), ("two", Newline)]),
        (b"\n\n\r\n\r", &[]),
        (b"1/8\r2/8\r3/8", &[("1/8", Return), ("2/8", Return), ("3/8", Flush)]),
        (b"\r1/8\r2/8\r", &[("1/8", Return), ("2/8", Return)]),
        (b"a\tb\n", &[("a\tb", Newline)]),
        (b"  \r", &[("  ", Return)]),
    ] {
        let expected: Vec<_> =
            expected.iter().map(|(text, end)| ((*text).to_owned(), *end)).collect();
        assert_eq!(lines(&[bytes]), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn control_bytes_and_sequences_are_dropped() {
    for (bytes, expected) in [
        (&b"\x1b[1m3/8\x1b[0m \x1b[32mx\x1b[37m\x1b[0m\n"[..], &["3/8 x"][..]),
        (b"\x1b]0;a title\x07text\x1b(B\x1b=\n", &["text"]),
        (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n", &["link"]),
        (b"inner\x1b[A\n\router\n", &["inner", "outer"]),
        (b"inner\x1b[Aouter\n", &["inner", "outer"]),
        (b"one\x1b[2K\x1b[1Gtwo\n", &["one", "two"]),
        (b"a\x1b[20Gb\n", &["ab"]),
        (b"cut \x1b[3\nnext\x1b\n", &["cut ", "next"]),
        (b"a\0b\x01\x0bc\n", &["abc"]),
        (b"caf\xe9\xff!\n", &["caf\u{fffd}\u{fffd}!"]),
    ] {
        let found: Vec<_> = lines(&[bytes]).into_iter().map(|(text, _)| text).collect();
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn backspaces_move_the_cursor() {
    for (bytes, expected) in [
        (&b"loss: 0.5\x08\x08\x08\x08\x08\x08\x08\x08\x08\r2/8\n"[..], &["loss: 0.5", "2/8"][..]),
        (b"1/8\x08\x08\x082/8\n", &["1/8", "2/8"]),
        (b"1/8\x08\x08\x08\x08\x08\n", &["1/8"]),
        (b"wait |\x08/\x08-\n", &["wait -"]),
        ("a━━\u{8}b\n".as_bytes(), &["a━b"]),
        (
            b"[....] loss: 0.5\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08 1/8\n",
            &["[. 1/8 loss: 0.5"],
        ),
        (b"10%\x08\x08\x0899\n", &["10%", "99"]),
        (b"at 10%\x08\x08\x0899\n", &["at 99%"]),
        (b"at 10%\x08 \x08\n", &["at 10 "]),
        ("a━━━c\u{8}\u{8}\u{8}é\u{8}ü\n".as_bytes(), &["a━ü━c"]),
    ] {
        let found: Vec<_> = lines(&[bytes]).into_iter().map(|(text, _)| text).collect();
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn flush_emits_the_incomplete_line() {
    let mut splitter = LineSplitter::new();
    let mut found = Vec::new();
    let mut sink = |line: Line<'_>| found.push((line.text.to_owned(), line.end));
    splitter.feed("1/8 ━".as_bytes().split_at(6).0, &mut sink);
    splitter.flush(&mut sink);
    splitter.flush(&mut sink);
    splitter.feed(&"━".as_bytes()[2..], &mut sink);
    splitter.flush(&mut sink);
    splitter.feed(b" end\nlast", &mut sink);
    splitter.finish(&mut sink);
    splitter.flush(&mut sink);
    let expected = [("1/8 ", Flush), ("1/8 ━", Flush), ("1/8 ━ end", Newline), ("last", Newline)];
    assert_eq!(found, expected.map(|(text, end)| (text.to_owned(), end)));
}

#[test]
fn endless_line_is_held_in_bounded_memory() {
    let mut splitter = LineSplitter::new();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        splitter.feed(&block, &mut |_| panic!("it has no end"));
    }
    assert!(splitter.line.capacity() <= 2 * MAX_LINE_LEN);
    let mut seen = Vec::new();
    splitter.feed(b"\nnext\n", &mut |line| seen.push((line.text.len(), line.cut)));
    let cut = (64 << 20) - u64::try_from(MAX_LINE_LEN).unwrap();
    assert_eq!((seen, splitter.cut()), (vec![(MAX_LINE_LEN, cut), (4, 0)], cut));
}

#[test]
fn only_the_line_around_missing_bytes_is_cut() {
    for (before, after, expected) in [
        (&b"one\ntw"[..], &b"o\nthree\n"[..], &[("one", 0), ("two", 9), ("three", 0)][..]),
        (b"one\n", b"ne\nfour\n", &[("one", 0), ("ne", 9), ("four", 0)]),
        (b"one\n", b"\nfour\n", &[("one", 0), ("four", 0)]),
        (b"1/8\r2/8\r", b"8/8\rend\r", &[("1/8", 0), ("2/88/8", 9), ("end", 0)]),
        (b"\x1b[3", b"1m x\ny\n", &[("1m x", 9), ("y", 0)]),
    ] {
        let (mut splitter, mut seen) = (LineSplitter::new(), Vec::new());
        let mut take = |line: Line<'_>| seen.push((line.text.to_owned(), line.cut));
        splitter.feed(before, &mut take);
        splitter.gap(9);
        splitter.feed(after, &mut take);
        splitter.finish(&mut take);
        let expected: Vec<_> =
            expected.iter().map(|(text, cut)| ((*text).to_owned(), *cut)).collect();
        assert_eq!(seen, expected, "{:?}", String::from_utf8_lossy(before));
    }
}

#[test]
fn long_line_is_cut_the_same_for_any_split() {
    let mut whole = vec![b'y'; MAX_LINE_LEN + 5];
    whole.push(b'\n');
    let mut seen = Vec::new();
    let mut splitter = LineSplitter::new();
    splitter.feed(&whole, &mut |line| seen.push((line.text.len(), line.cut)));
    splitter.feed(&whole[..9], &mut |_| {});
    splitter.feed(&whole[9..], &mut |line| seen.push((line.text.len(), line.cut)));
    assert_eq!((seen, splitter.cut()), (vec![(MAX_LINE_LEN, 5), (MAX_LINE_LEN, 5)], 10));
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let tokens: [&[u8]; 22] = [
        b"\r",
        b"\n",
        b"\r\n",
        b"\x08",
        b"\x08\x08\x08",
        b"\x1b",
        b"[",
        b"1m",
        b"A",
        b"]0;",
        b"\x07",
        b"\\",
        b"\0",
        b"\t",
        b" ",
        b"ab",
        b"5G",
        b"\xe2",
        b"\x94",
        b"\x81",
        b"\xff",
        "1/8 ━━ loss: 0.5".as_bytes(),
    ];
    let token = prop::sample::select(tokens.to_vec()).prop_map(<[u8]>::to_vec);
    let any = prop::collection::vec(any::<u8>(), 0..4);
    prop::collection::vec(prop_oneof![8 => token, 1 => any], 0..40).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn splitting_the_stream_changes_nothing(bytes in noise(), cuts in prop::collection::vec(0..200_usize, 0..9)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
        let whole = lines(&[&bytes]);
        prop_assert_eq!(&whole, &lines(&pieces));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &lines(&single));
        prop_assert!(whole.iter().all(|(text, _)| !text.is_empty()));
    }
}
