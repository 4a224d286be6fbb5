//! A model of the characters of a text: after each one, how likely is each to be the next?

use std::collections::BTreeSet;

use paceline_torch::{Gru, States, linear};
use tch::nn::{self, Embedding, EmbeddingConfig, Linear, Module, Path};
use tch::{Device, Kind, Tensor};

use crate::length;

/// The number of characters predicted in a row: errors are traced back no further.
pub const WINDOW: i64 = 100;
/// The numbers that represent a character.
const EMBEDDING: i32 = 64;
/// The hidden units.
const HIDDEN: i32 = 256;

/// A text, of which the last tenth is kept for validation.
#[derive(Debug)]
pub struct Corpus {
    characters: Vec<char>,
    train: Tensor,
    validation: Tensor,
}

/// The reason why a text cannot be used for training.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CorpusError {
    /// The bytes are not valid UTF-8.
    #[error("not a text in UTF-8")]
    Encoding,
    /// The text is too short.
    #[error("{0} characters are too few to train on: expected at least {least}", least = Corpus::MIN)]
    Short(usize),
}

/// An embedding, a layer of gated recurrent units, and a linear one.
#[derive(Debug)]
pub struct TextNet {
    embedding: Embedding,
    gru: Gru,
    fc: Linear,
}

/// Characters, and those that come after each of them.
#[derive(Debug)]
pub struct Windows {
    /// The codes of the characters, a row for each window.
    pub inputs: Tensor,
    /// The codes of those that follow them.
    pub targets: Tensor,
}

impl Corpus {
    /// The number of characters that fills one window of the validation part.
    const MIN: usize = 1020;

    /// Reads a text.
    pub fn new(text: Vec<u8>) -> Result<Self, CorpusError> {
        let text = String::from_utf8(text).map_err(|_| CorpusError::Encoding)?;
        let characters: BTreeSet<char> = text.chars().collect();
        let characters: Vec<char> = characters.into_iter().collect();
        let codes: Vec<i64> = text.chars().map(|it| code(&characters, it)).collect();
        if codes.len() < Self::MIN {
            return Err(CorpusError::Short(codes.len()));
        }
        let (train, validation) = codes.split_at(codes.len() * 9 / 10);
        let [train, validation] = [train, validation].map(Tensor::from_slice);
        Ok(Self { characters, train, validation })
    }

    /// The distinct characters.
    pub fn alphabet(&self) -> &[char] {
        &self.characters
    }

    /// The number of characters to train on.
    pub fn len(&self) -> usize {
        self.train.numel()
    }

    /// Whether the training part is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Windows to train on, at places from libtorch's generator.
    pub fn draw(&self, count: i64) -> Windows {
        let places = length(&self.train) - WINDOW;
        Windows::at(&self.train, &Tensor::randint(places, [count], (Kind::Int64, Device::Cpu)))
    }

    /// Windows for validation, side by side, in batches of this many.
    pub fn validation(&self, count: i64) -> impl Iterator<Item = Windows> {
        let places = length(&self.validation) - WINDOW;
        let places = Tensor::arange_start_step(0, places, WINDOW, (Kind::Int64, Device::Cpu));
        places.split(count, 0).into_iter().map(|places| Windows::at(&self.validation, &places))
    }

    /// The characters that have these codes.
    fn text(&self, codes: &[i64]) -> String {
        let character = |code: &i64| self.characters.get(usize::try_from(*code).ok()?);
        codes.iter().filter_map(character).collect()
    }
}

/// The position of a character among all, in their order.
fn code(characters: &[char], character: char) -> i64 {
    let (Ok(position) | Err(position)) = characters.binary_search(&character);
    i64::try_from(position).unwrap_or_default()
}

impl Windows {
    fn at(text: &Tensor, places: &Tensor) -> Self {
        let offsets = Tensor::arange(WINDOW, (Kind::Int64, Device::Cpu));
        let positions = places.unsqueeze(1) + offsets.unsqueeze(0);
        let [inputs, targets] = [0, 1].map(|ahead| text.take(&(&positions + ahead)));
        Self { inputs, targets }
    }

    /// Splits the batch into at most this many parts, each with its number of items.
    pub fn split(&self, parts: i64) -> Vec<(Self, u32)> {
        let inputs = self.inputs.chunk(parts, 0).into_iter();
        let parts = inputs.zip(self.targets.chunk(parts, 0));
        let parts = parts.map(|(inputs, targets)| Self { inputs, targets });
        let counted = parts.map(|part| {
            let count = part.count().try_into().unwrap_or(u32::MAX);
            (part, count)
        });
        counted.collect()
    }

    /// The number of windows.
    pub fn count(&self) -> i64 {
        length(&self.inputs)
    }
}

impl TextNet {
    /// A network for this many distinct characters, with PyTorch's initial weights.
    pub fn new(path: &Path<'_>, characters: i32) -> Self {
        let config = EmbeddingConfig::default();
        Self {
            embedding: nn::embedding(
                path / "embedding",
                characters.into(),
                EMBEDDING.into(),
                config,
            ),
            gru: Gru::new(&(path / "gru"), EMBEDDING, HIDDEN),
            fc: linear(&(path / "fc"), HIDDEN, characters),
        }
    }

    /// The scores of each character to be the next, after each of the inputs.
    pub fn scores(&self, inputs: &Tensor) -> Tensor {
        self.gru.states(&self.embedding.forward(inputs), States::All).apply(&self.fc)
    }

    /// The mean cross entropy of a next character, in nats.
    pub fn loss(&self, Windows { inputs, targets }: &Windows) -> Tensor {
        self.gru.loss(&self.embedding.forward(inputs), States::All, |states| {
            let scores = states.apply(&self.fc).flatten(0, 1);
            scores.cross_entropy_for_logits(&targets.flatten(0, 1))
        })
    }

    /// This many characters that the network generates, drawn by libtorch's generator.
    pub fn write(&self, corpus: &Corpus, count: usize) -> String {
        // A text begins as if after the end of a line.
        let first = code(&corpus.characters, '\n').min(length(&self.embedding.ws) - 1);
        let mut last = Tensor::from_slice(&[first]);
        let mut state = self.gru.no_state(1);
        let mut codes = Vec::new();
        for _ in 0..count {
            state = self.gru.step(&self.embedding.forward(&last), &state);
            let scores = state.apply(&self.fc);
            last = scores.softmax(-1, Kind::Float).multinomial(1, true).squeeze_dim(1);
            codes.push(last.int64_value(&[0]));
        }
        corpus.text(&codes)
    }
}

#[cfg(test)]
mod tests;
