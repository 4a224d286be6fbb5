//! Labels in other languages, and numbers with a decimal comma.
//!
//! A line with a word for a loss in another language is rewritten: its known words become English
//! ones, and every grammar can read it. To add a word, add it to `WORDS`; to add a language, add
//! its word for "loss" to the needles in `sidecar/grammar/src/detector/mention.rs`, too.

/// Words and what they mean. Longer words come before those that they begin with. A word without a
/// meaning connects others and is dropped. Latin, Cyrillic and Greek words match as a whole, other
/// scripts anywhere.
const WORDS: [(&str, &str); 185] = [
    // Chinese.
    ("损失", "loss"),
    ("損失", "loss"),
    ("训练次数", "step"),
    ("訓練次數", "step"),
    ("训练", "train"),
    ("訓練", "train"),
    ("验证", "validation"),
    ("驗證", "validation"),
    ("测试", "test"),
    ("评估", "evaluation"),
    ("評估", "evaluation"),
    ("当前", "current"),
    ("當前", "current"),
    ("完成", ""),
    ("測試", "test"),
    ("平均", "avg"),
    ("总", "total"),
    ("整体", "overall"),
    ("整體", "overall"),
    ("總", "total"),
    ("最佳", "best"),
    ("最好", "best"),
    ("最低", "best"),
    ("轮次", "epoch"),
    ("轮", "epoch"),
    ("輪", "epoch"),
    ("周期", "epoch"),
    ("批次", "batch"),
    ("批", "batch"),
    ("步数", "step"),
    ("步骤", "step"),
    ("步", "step"),
    ("迭代", "iteration"),
    ("耗时", "time"),
    ("用时", "time"),
    ("次数", ""),
    ("次", ""),
    ("函数", ""),
    ("值", ""),
    ("集", ""),
    ("上的", ""),
    ("的", ""),
    // Japanese.
    ("ロス", "loss"),
    ("学習", "train"),
    ("トレーニング", "train"),
    ("検証", "validation"),
    ("評価", "evaluation"),
    ("現在", "current"),
    ("完了", ""),
    ("テスト", "test"),
    ("バリデーション", "validation"),
    ("エポック", "epoch"),
    ("ステップ", "step"),
    ("バッチ", "batch"),
    ("反復", "iteration"),
    ("最良", "best"),
    ("合計", "total"),
    // Korean.
    ("손실", "loss"),
    ("훈련", "train"),
    ("학습", "train"),
    ("검증", "validation"),
    ("평가", "evaluation"),
    ("현재", "current"),
    ("완료", ""),
    ("테스트", "test"),
    ("에포크", "epoch"),
    ("에폭", "epoch"),
    ("스텝", "step"),
    ("단계", "step"),
    ("배치", "batch"),
    ("반복", "iteration"),
    ("평균", "avg"),
    ("최고", "best"),
    ("최저", "best"),
    // German.
    ("verlust", "loss"),
    ("trainingsverlust", "train loss"),
    ("validierungsverlust", "validation loss"),
    ("testverlust", "test loss"),
    ("gesamtverlust", "total loss"),
    ("durchschnittsverlust", "avg loss"),
    ("auswertung", "evaluation"),
    ("validierung", "validation"),
    ("epoche", "epoch"),
    ("schritt", "step"),
    ("stapel", "batch"),
    ("durchschnittlicher", "avg"),
    ("mittlerer", "avg"),
    ("beste", "best"),
    ("bester", "best"),
    ("zeit", "time"),
    ("der", ""),
    ("des", ""),
    // French.
    ("perte", "loss"),
    ("perte_val", "val_loss"),
    ("perte_train", "train_loss"),
    ("entraînement", "train"),
    ("entrainement", "train"),
    ("apprentissage", "train"),
    ("époque", "epoch"),
    ("epoque", "epoch"),
    // In another encoding the first letter is lost.
    ("poque", "epoch"),
    ("itération", "iteration"),
    ("étape", "step"),
    ("etape", "step"),
    ("lot", "batch"),
    ("moyenne", "avg"),
    ("totale", "total"),
    ("meilleure", "best"),
    ("évaluation", "evaluation"),
    ("meilleur", "best"),
    ("temps", "time"),
    ("de", ""),
    ("d", ""),
    ("la", ""),
    ("en", ""),
    // Spanish.
    ("pérdida", "loss"),
    ("perdida", "loss"),
    ("pérdida_val", "val_loss"),
    ("perdida_val", "val_loss"),
    ("pérdida_entrenamiento", "train_loss"),
    ("entrenamiento", "train"),
    ("validación", "validation"),
    ("validacion", "validation"),
    ("prueba", "test"),
    ("época", "epoch"),
    ("epoca", "epoch"),
    ("paso", "step"),
    ("iteración", "iteration"),
    ("iteracion", "iteration"),
    ("lote", "batch"),
    ("promedio", "avg"),
    ("media", "avg"),
    ("mejor", "best"),
    ("evaluación", "evaluation"),
    ("evaluacion", "evaluation"),
    ("tiempo", "time"),
    // Portuguese.
    ("perda", "loss"),
    ("perda_val", "val_loss"),
    ("perda_treino", "train_loss"),
    ("treino", "train"),
    ("treinamento", "train"),
    ("validação", "validation"),
    ("avaliação", "evaluation"),
    ("avaliacao", "evaluation"),
    ("validacao", "validation"),
    ("teste", "test"),
    ("passo", "step"),
    ("iteração", "iteration"),
    ("iteracao", "iteration"),
    ("média", "avg"),
    ("melhor", "best"),
    ("tempo", "time"),
    ("do", ""),
    ("da", ""),
    // Italian, Dutch.
    ("perdita", "loss"),
    ("addestramento", "train"),
    ("validazione", "validation"),
    ("verlies", "loss"),
    ("validatie", "validation"),
    ("di", ""),
    ("trainingsverlies", "train loss"),
    ("validatieverlies", "validation loss"),
    ("testverlies", "test loss"),
    // Russian.
    ("потери", "loss"),
    ("потеря", "loss"),
    ("потерь", "loss"),
    ("лосс", "loss"),
    ("обучение", "train"),
    ("обучения", "train"),
    ("обучении", "train"),
    ("валидация", "validation"),
    ("валидации", "validation"),
    ("тест", "test"),
    ("оценка", "evaluation"),
    ("тесте", "test"),
    ("эпоха", "epoch"),
    ("эпохи", "epoch"),
    ("шаг", "step"),
    ("итерация", "iteration"),
    ("батч", "batch"),
    ("время", "time"),
    ("средние", "avg"),
    ("лучшая", "best"),
    ("лучшие", "best"),
    ("на", ""),
];

/// Translates the labels of a line. `None` if it has no word of another language for a loss.
pub fn labels(line: &str) -> Option<String> {
    rewrite(line, Runs::Any, |_, _| true)
        .filter(|(_, has_loss)| *has_loss)
        .map(|(english, _)| ordinals(&english))
}

/// Whether a line with an English word for a loss may have words of another language or wide marks, by
/// the first bytes of its characters: letters beyond ASCII and wide marks. The signs of multiplication
/// and division, most bars and emoji, and the marks that select an emoji have other ones.
fn may_be_mixed(line: &str) -> bool {
    let bytes = line.as_bytes();
    let next = |at: usize| bytes.get(at + 1).copied().unwrap_or_default();
    let may_be = |(at, byte): (usize, &u8)| match byte {
        0xC3 => !matches!(next(at), 0x97 | 0xB7),
        0xC4..=0xDF | 0xE3..=0xED => true,
        0xEF => next(at) != 0xB8,
        _ => false,
    };
    !line.is_ascii() && bytes.iter().enumerate().any(may_be)
}

/// Translates the other words of a line with an English word for a loss: `验证loss: 0.5`. `None` if
/// there is none.
#[inline]
pub fn mixed(line: &str) -> Option<String> {
    if may_be_mixed(line) { translated(line) } else { None }
}

/// The translation of a line that has one. Words of ASCII letters alone may be English, so they are
/// translated only beside other ones. A letter that only connects words may be a name: `d loss`.
#[inline(never)]
fn translated(line: &str) -> Option<String> {
    let says = |word: &str, meaning: &str| {
        !meaning.is_empty() || !word.starts_with(is_whole) || word.len() > 1
    };
    let mut is_foreign = false;
    let (mut english, _) = rewrite(line, Runs::Known, |word, meaning| {
        let is_taken = !word.is_ascii() && says(word, meaning);
        is_foreign |= is_taken;
        is_taken
    })?;
    if is_foreign {
        (english, _) = rewrite(line, Runs::Known, says)?;
    }
    (english != line).then(|| ordinals(&english))
}

/// Which runs of letters are translated, in scripts without spaces between words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The known words of any.
    Any,
    /// Those of known words alone. Others are names, such as that of an experiment.
    Known,
}

/// A line with English words, and whether one of them is that of a loss. `takes`: whether to translate a
/// word with this meaning.
fn rewrite(
    line: &str,
    runs: Runs,
    mut takes: impl FnMut(&str, &str) -> bool,
) -> Option<(String, bool)> {
    let mut out = String::with_capacity(line.len() + 16);
    let mut has_loss = false;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length =
            if first.is_alphabetic() { word_len(rest, is_whole(first)) } else { first.len_utf8() };
        let (word, after) = rest.split_at_checked(length.max(1))?;
        rest = after;
        let is_run = first.is_alphabetic() && !is_whole(first);
        if runs == Runs::Known && is_run && !has_only_known(word) {
            out.push_str(word);
            continue;
        }
        let known = if first.is_alphabetic() { meaning(word) } else { None };
        let known = known.filter(|(meaning, _)| takes(word, meaning));
        match known {
            Some(("", length)) => {
                rest = line.get(line.len() - rest.len() - word.len() + length..)?;
                rest = rest.strip_prefix([' ', '\'', '\u{2019}']).unwrap_or(rest);
            }
            Some((meaning, length)) => {
                has_loss |= meaning.contains("loss");
                // Scripts without spaces put words side by side.
                if !is_whole(first) && out.ends_with(|c: char| c.is_alphanumeric()) {
                    out.push(' ');
                }
                out.push_str(meaning);
                rest = line.get(line.len() - rest.len() - word.len() + length..)?;
                if !is_whole(first) && rest.starts_with(|c: char| c.is_alphanumeric()) {
                    out.push(' ');
                }
            }
            // Unknown characters before a known word are another word.
            None if first.is_alphabetic() && !is_whole(first) => {
                out.push(first);
                rest = line.get(line.len() - rest.len() - word.len() + first.len_utf8()..)?;
            }
            None => out.push_str(narrow(first).unwrap_or(word)),
        }
    }
    Some((out, has_loss))
}

/// Whether a run of letters consists of known words.
fn has_only_known(mut run: &str) -> bool {
    while !run.is_empty() {
        let rest = meaning(run).and_then(|(_, length)| run.get(length..));
        match rest {
            Some(rest) => run = rest,
            None => return false,
        }
    }
    true
}

/// A line that may begin with the word for an epoch in another language, in English.
pub fn heading(line: &str) -> Option<String> {
    // Most lines are in English.
    let first = line.chars().find(|c| c.is_alphanumeric())?;
    if first.is_ascii() && !matches!(first, 'e' | 'E' | 'p') {
        return None;
    }
    let english = rewrite(line, Runs::Any, |_, _| true)?.0;
    english.contains("epoch").then(|| ordinals(&english))
}

/// A mark as wide as a Chinese character, as the one that programs print elsewhere.
fn narrow(mark: char) -> Option<&'static str> {
    Some(match mark {
        '\u{ff1a}' => ": ",
        '\u{ff0c}' | '\u{3001}' | '\u{3002}' => ", ",
        '\u{ff1b}' => "; ",
        '\u{ff08}' => " (",
        '\u{ff09}' => ") ",
        '\u{ff0f}' => "/",
        '\u{ff1d}' => "=",
        '\u{ff05}' => "%",
        '\u{ff5c}' => " | ",
        '\u{3010}' => "[",
        '\u{3011}' => "] ",
        _ => return None,
    })
}

/// `第3轮`, here already `第3 epoch`: the number before the word.
fn ordinals(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('第') {
        out.push_str(before);
        let number = after.trim_start();
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let (count, word) = number.split_at_checked(digits).unwrap_or((number, ""));
        let name = ["epoch", "step", "batch", "iteration"]
            .into_iter()
            .find_map(|name| Some((name, word.trim_start().strip_prefix(name)?)));
        match name.filter(|_| digits > 0) {
            Some((name, after)) => {
                out.push_str(name);
                out.push(' ');
                out.push_str(count);
                rest = after;
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    out
}

/// Whether words of this script have spaces between them.
fn is_whole(first: char) -> bool {
    first < '\u{1100}'
}

/// Maximum length of a word of a script without spaces, in characters.
const MAX_WORD: usize = 16;

/// The length of the word at the start of `text`.
fn word_len(text: &str, whole: bool) -> usize {
    let end = if whole { None } else { text.char_indices().nth(MAX_WORD) };
    let text = end.and_then(|(end, _)| text.get(..end)).unwrap_or(text);
    let is_part = |c: char| {
        c.is_alphanumeric() && is_whole(c) == whole || (whole && c == '_') || c == '\u{301}'
    };
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// The meaning of a word, or of its start in a script without spaces, and the length of that.
fn meaning(word: &str) -> Option<(&'static str, usize)> {
    let whole = word.chars().next().is_some_and(is_whole);
    if !whole {
        let found = WORDS.iter().find(|(known, _)| word.starts_with(known));
        return found.map(|(known, meaning)| (*meaning, known.len()));
    }
    let small = word.to_lowercase();
    let found = WORDS.iter().find(|(known, _)| *known == small);
    found.map(|(_, meaning)| (*meaning, word.len()))
}

/// Rewrites decimal commas as points: `0,5321`. `None` if the line has none for certain; `known`: other
/// lines of the program have had some.
pub fn commas(line: &str, known: bool) -> Option<String> {
    let bytes = line.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_decimal_point = |(at, byte): (usize, &u8)| {
        *byte == b'.' && at.checked_sub(1).is_some_and(digit) && digit(at + 1)
    };
    if bytes.iter().enumerate().any(is_decimal_point) {
        return None;
    }
    let mut certain = false;
    let mut commas = Vec::new();
    for at in memchr::memchr_iter(b',', bytes) {
        let whole = bytes.get(..at)?.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let fraction = bytes.get(at + 1..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let before = (at - whole).checked_sub(1).and_then(|at| bytes.get(at));
        let is_value = before.is_none_or(|byte| matches!(byte, b' ' | b'=' | b':' | b'-' | b'\t'));
        let after = bytes.get(at + 1 + fraction);
        let ends = after.is_none_or(|byte| *byte != b',' && !byte.is_ascii_digit());
        // A comma and a space part two values.
        let parted = || bytes.get(at + 1 + fraction..at + 3 + fraction) == Some(b", ");
        if whole == 0 || fraction == 0 || !is_value || !(ends || parted()) {
            continue;
        }
        let zero = bytes.get(at - whole) == Some(&b'0');
        certain |= fraction != 3 || (zero && whole == 1);
        commas.push(at);
    }
    if commas.is_empty() || !(certain || known) {
        return None;
    }
    let mut out = line.to_owned().into_bytes();
    for at in commas {
        if let Some(byte) = out.get_mut(at) {
            *byte = b'.';
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_english() {
        for (line, english) in [
            ("第2轮 训练损失: 0.5 验证损失: 0.6", "epoch 2 train loss: 0.5 validation loss: 0.6"),
            ("エポック 1/3 学習損失: 0.5", "epoch 1/3 train loss: 0.5"),
            ("에포크 1/3 손실: 0.5, 검증 손실: 0.6", "epoch 1/3 loss: 0.5, validation loss: 0.6"),
            ("Epoche 1 Trainingsverlust: 0.5", "epoch 1 train loss: 0.5"),
            ("Époque 1/3 - perte: 0.5", "epoch 1/3 - loss: 0.5"),
            ("Época 1, pérdida_val: 0.5", "epoch 1, val_loss: 0.5"),
            ("Época 1, perda de validação: 0.5", "epoch 1, loss validation: 0.5"),
            ("Эпоха 1 потери на обучении: 0.5", "epoch 1 loss train: 0.5"),
            ("最佳验证损失: 0.5", "best validation loss: 0.5"),
            ("第3批，训练损失：0.5", "batch 3, train loss: 0.5"),
            ("第40次迭代（损失：0.5）", "iteration 40 (loss: 0.5) "),
        ] {
            assert_eq!(labels(line).as_deref(), Some(english), "{line}");
        }
        for line in ["", "loss: 0.5", "轮 5", "la 5", "第"] {
            assert_eq!(labels(line), None, "{line}");
        }
    }

    #[test]
    fn words_beside_english_ones_become_english() {
        for (line, english) in [
            ("验证Loss: 0.5", "validation Loss: 0.5"),
            ("第2轮 train loss：0.5", "epoch 2 train loss: 0.5"),
            ("Validación: loss 0.5", "validation: loss 0.5"),
            ("验证集loss: 0.5", "validation loss: 0.5"),
            ("Época 1, passo 2, d loss: 0.5", "epoch 1, step 2, d loss: 0.5"),
            ("en loss：0.5，media loss：0.6", "en loss: 0.5, media loss: 0.6"),
        ] {
            assert_eq!(mixed(line).as_deref(), Some(english), "{line}");
        }
        for line in [
            "validation loss: 0.5",
            "la loss: 0.5",
            "50%|█████| loss=0.5",
            "step 1 g loss: 0.9, d loss: 0.8 ⚡\u{fe0f}",
            "en loss: 0.9, fr loss: 0.8, loss: 0.85 ✔\u{fe0f}",
            "naïve media loss: 0.5, d loss: 0.6",
        ] {
            assert_eq!(mixed(line), None, "{line}");
        }
    }

    #[test]
    fn words_without_spaces_are_short_enough() {
        let long = WORDS.iter().filter(|(word, _)| !is_whole(word.chars().next().unwrap()));
        assert!(long.into_iter().all(|(word, _)| word.chars().count() <= MAX_WORD));
        let line = format!("损失 0.5 {}轮 5", "字".repeat(40));
        let english = format!("loss 0.5 {} epoch 5", "字".repeat(40));
        assert_eq!(labels(&line), Some(english));
    }

    #[test]
    fn headings_become_english() {
        for (line, english) in [
            ("Epoche 3/10", "epoch 3/10"),
            ("=== Époque 3 ===", "=== epoch 3 ==="),
            ("エポック 3/10", "epoch 3/10"),
            ("Эпоха: 3/10, время: 5", "epoch: 3/10, time: 5"),
            ("第3轮训练", "epoch 3 train"),
        ] {
            assert_eq!(heading(line).as_deref(), Some(english), "{line}");
        }
        for line in ["", "Schritt 3", "Epochs", "第3批", "第", "schritt 3", "3"] {
            assert_eq!(heading(line), None, "{line}");
        }
    }

    #[test]
    fn decimal_commas_become_points() {
        for (line, points) in [
            ("Loss: 0,5321; Val Loss: 12,25", "Loss: 0.5321; Val Loss: 12.25"),
            ("loss=0,351 lr=0,1", "loss=0.351 lr=0.1"),
            ("loss: 0,351, lr: 0,1", "loss: 0.351, lr: 0.1"),
        ] {
            assert_eq!(commas(line, false).as_deref(), Some(points), "{line}");
        }
        for line in [
            "loss: 1,234",
            "[1,2] loss: 5",
            "loss: 1,234, lr: 1",
            "sizes 1,2,3, loss: 5",
            "loss: 0.5, lr: 1",
            "step 1,000 loss: 0.5",
            "a,b",
        ] {
            assert_eq!(commas(line, false), None, "{line}");
        }
        assert_eq!(commas("loss: 1,234", true).as_deref(), Some("loss: 1.234"));
    }
}
