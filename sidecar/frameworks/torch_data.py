"""Generated data for the scripts that train with PyTorch."""

from __future__ import annotations

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Clusters(Dataset):
    """Points around ten centres. Reading one takes `pace` seconds, as from a slow disk."""

    def __init__(self, samples: int, features: int = 64, seed: int = 0, pace: float = 0.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        centres = torch.randn(10, features, generator=torch.Generator().manual_seed(1))
        self.labels = torch.randint(0, 10, (samples,), generator=generator)
        noise = torch.randn(samples, features, generator=generator)
        self.points = centres[self.labels] + 1.5 * noise
        self.pace = pace

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.pace:
            time.sleep(self.pace)
        return self.points[at], self.labels[at]


def loaders(samples: int, batch: int, pace: float) -> tuple[DataLoader, DataLoader]:
    """Loaders of training and validation data; a training batch takes `pace` seconds to read."""
    training = Clusters(samples, seed=2, pace=pace / batch)
    return DataLoader(training, batch), DataLoader(Clusters(samples // 4, seed=3), batch)


def classifier(features: int = 64) -> torch.nn.Module:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(features, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)]
    return torch.nn.Sequential(*layers)
