"""Compares the workloads' models with PyTorch's: same weights, same inputs, and then outputs,
losses and gradients, which may differ by 1e-4 of the largest number of a tensor.

Usage: compare.py LIBRARIES PROGRAM TWINS: the folder of libtorch's libraries, the program
`compare-models`, and the folder of the workloads' Python twins.
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

TOLERANCE = 1e-4
Tensors = dict[str, Tensor]
# A model, its inputs, and a function for the compared values: the loss, and outputs by name.
Case = tuple[nn.Module, Tensors, Callable[[], tuple[Tensor, Tensors]]]


class AddingNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(2, 128, batch_first=True)
        self.fc = nn.Linear(128, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.fc(self.gru(inputs)[1].squeeze(0)).squeeze(1)


class TextNet(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, 64)
        self.gru = nn.GRU(64, 256, batch_first=True)
        self.fc = nn.Linear(256, characters)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.fc(self.gru(self.embedding(inputs))[0])


def resnet50(stem: str) -> Case:
    from resnet50 import ResNet50

    # The twin takes bytes, and converts them to the same numbers as the Rust program.
    model = ResNet50(stem, torch.zeros(3), torch.ones(3))
    for name, tensor in model.state_dict().items():
        # Not the initial values, with which every block adds nothing to its input.
        if name.endswith(("bn3.weight", "running_var")):
            tensor.uniform_(0.5, 1.5)
        elif name.endswith("running_mean"):
            tensor.normal_()
    pixels, labels = torch.randint(256, (8, 3, 32, 32)), torch.arange(8)

    def outcome() -> tuple[Tensor, Tensors]:
        tested = model.eval()(pixels)
        trained = model.train()(pixels)
        running = {name: it for name, it in model.state_dict().items() if ".running_" in name}
        outputs = {"scores.test": tested, "scores.train": trained, **running}
        return F.cross_entropy(trained, labels), outputs

    return model, {"images": pixels.float() / 255, "labels": labels}, outcome


def adding() -> Case:
    model = AddingNet()
    inputs, sums = torch.rand(16, 100, 2), torch.rand(16) * 2

    def outcome() -> tuple[Tensor, Tensors]:
        answers = model(inputs)
        return F.mse_loss(answers, sums), {"answers": answers}

    return model, {"inputs": inputs, "sums": sums}, outcome


def text() -> Case:
    model = TextNet(65)
    inputs, targets = torch.randint(65, (8, 100)), torch.randint(65, (8, 100))
    # The other program takes the number of characters from here.
    targets[0, 0] = 64

    def outcome() -> tuple[Tensor, Tensors]:
        scores = model(inputs)
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten()), {"scores": scores}

    return model, {"inputs": inputs, "targets": targets}, outcome


def vae() -> Case:
    from vae import VAE

    model = VAE()
    images, noise = torch.rand(32, 784), torch.randn(32, 20)

    def outcome() -> tuple[Tensor, Tensors]:
        with mock.patch("torch.randn_like", return_value=noise):
            return model.loss(images), {}

    return model, {"images": images, "noise": noise}, outcome


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, as a fraction of the largest number."""
    if ours.shape != theirs.shape:
        return float("inf")
    apart = (ours.double() - theirs.double()).abs().max() / theirs.double().abs().max()
    return apart.item()


def compare(name: str, case: Callable[[], Case], program: list[str], folder: Path) -> bool:
    torch.manual_seed(1)
    model, inputs, outcome = case()
    weights = {key: it.clone() for key, it in model.state_dict().items()}
    before, after = folder / "before.safetensors", folder / "after.safetensors"
    save_file({**weights, **inputs}, before)
    subprocess.run([*program, name, before, after], check=True)
    ours = load_file(after)

    loss, outputs = outcome()
    loss.backward()
    theirs = {"loss": loss, **outputs}
    theirs |= {f"gradient.{key}": it.grad for key, it in model.named_parameters()}
    if missing := ours.keys() ^ theirs.keys():
        print(f"{name}: only one of the two has {', '.join(sorted(missing))}")
        return False
    apart = {key: difference(ours[key], it.detach()) for key, it in theirs.items()}
    # NaN sorts as the largest difference.
    worst = max(apart, key=lambda key: (math.isnan(apart[key]), apart[key]))
    fine = apart[worst] <= TOLERANCE
    print(
        f"{name:18} {'agrees' if fine else 'DIFFERS'}: loss {loss.item():.6f}, "
        f"{len(apart)} tensors, at most {apart[worst]:.1e} apart ({worst})"
    )
    return fine


def main() -> int:
    libraries, compare_models, twins = sys.argv[1:]
    # Only for the other program: this one has its own libraries.
    program = ["env", f"LD_LIBRARY_PATH={libraries}", compare_models]
    sys.path.insert(0, twins)
    torch.set_num_threads(1)
    cases = {
        "resnet50-cifar": lambda: resnet50("cifar"),
        "resnet50-imagenet": lambda: resnet50("imagenet"),
        "gru-adding": adding,
        "gru-text": text,
        "vae": vae,
    }
    with tempfile.TemporaryDirectory() as folder:
        fine = [compare(*it, program, Path(folder)) for it in cases.items()]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
