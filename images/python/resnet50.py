"""Trains ResNet-50 on images of 32 by 32 pixels, or measures its inference, by PyTorch.

The bottleneck network of He et al. (2016): 23.5 million parameters for 10 classes. SGD with
momentum 0.9 and weight decay 0.0005, batches of 128, a learning rate that falls to 0 as a cosine.
With `--inference` it does not train, but shows the latency of batches of 100 images.
"""

import itertools
import time
from argparse import Namespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

import cli
import data

# The width and the number of the blocks of each stage.
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != outputs:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, features: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(features)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + self.downsample(features))


class ResNet50(nn.Module):
    """Its layers have the names of torchvision's, so that weights fit.

    The stem of ImageNet halves the image twice: that is the network of the papers, and quick. The
    stem of CIFAR keeps its size: more accurate on small images, at 16 times the work.
    """

    def __init__(self, stem: str, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.mean, self.deviation = mean.view(3, 1, 1), deviation.view(3, 1, 1)
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(3, stride=2, padding=1)
        else:
            self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for stage, (width, blocks) in enumerate(STAGES, 1):
            layer = nn.Sequential()
            for block in range(blocks):
                layer.append(Bottleneck(inputs, width, 2 if block == 0 and stage > 1 else 1))
                inputs = 4 * width
            self.add_module(f"layer{stage}", layer)
        self.fc = nn.Linear(inputs, data.CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Bottleneck):
                # Blocks do nothing at first, and bear a high rate so (Goyal et al., 2017).
                nn.init.zeros_(module.bn3.weight)

    def forward(self, images: Tensor) -> Tensor:
        features = (images.float() / 255 - self.mean) / self.deviation
        features = self.maxpool(F.relu(self.bn1(self.conv1(features))))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            features = stage(features)
        return self.fc(features.mean((2, 3)))


def train(model: ResNet50, dataset: data.Dataset, args: Namespace, stop: cli.Stop) -> int:
    """Returns the steps taken."""
    images, labels = torch.tensor(dataset.train.images), torch.tensor(dataset.train.labels)
    test = torch.tensor(dataset.test.images), torch.tensor(dataset.test.labels)
    batches = -(-len(images) // args.batch_size)
    steps = args.steps or args.epochs * batches
    optimizer = torch.optim.SGD(
        model.parameters(), args.learning_rate, momentum=0.9, weight_decay=5e-4
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    done = 0
    for epoch in itertools.count(1):
        model.train()
        order = torch.randperm(len(images)).split(args.batch_size)[: steps - done]
        with tqdm(order, f"Epoch {epoch}", batches, miniters=args.log_interval) as bar:
            for chosen in bar:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images[chosen]), labels[chosen])
                loss.backward()
                optimizer.step()
                schedule.step()
                done += 1
                bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
                if stop.requested:
                    break
        if stop.requested or done < epoch * batches:
            return done
        loss, right = evaluate(model, *test, stop)
        print(f"Test set: Average loss: {loss:.4f}, Accuracy: {100 * right:.2f}%")
        if done == steps or stop.requested:
            return done


@torch.no_grad()
def evaluate(
    model: ResNet50, images: Tensor, labels: Tensor, stop: cli.Stop
) -> tuple[float, float]:
    """The mean loss, and the fraction classified correctly."""
    model.eval()
    loss, right, count = 0.0, 0, 0
    for part, wanted in zip(images.split(500), labels.split(500), strict=True):
        scores = model(part)
        loss += F.cross_entropy(scores, wanted, reduction="sum").item()
        right += int((scores.argmax(1) == wanted).sum())
        count += len(wanted)
        if stop.requested:
            break
    return loss / count, right / count


@torch.no_grad()
def infer(model: ResNet50, images: Tensor, args: Namespace, stop: cli.Stop) -> int:
    """Prints the latency of each batch; returns the number of batches."""
    model.eval()
    parts = images.split(args.batch_size)
    batches = args.steps or args.epochs * len(parts)
    done = 0
    # A frame for each batch: the latency of one is in no other.
    with tqdm(desc="Inference", total=batches, mininterval=0, miniters=1) as bar:
        for part in itertools.islice(itertools.cycle(parts), batches):
            began = time.perf_counter()
            model(part)
            latency = time.perf_counter() - began
            bar.set_postfix_str(f"latency={latency:.4f}s", refresh=False)
            bar.update()
            done += 1
            if stop.requested:
                break
    return done


def main() -> None:
    flags = cli.parser(__doc__, batch_size=None)
    cli.add_data(flags)
    cli.add_log_interval(flags, 1)
    add = flags.add_argument
    add("--inference", action="store_true", help="no training; batches of 100")
    add(
        "--stem",
        choices=("imagenet", "cifar"),
        default="imagenet",
        help="the first layer [imagenet]",
    )
    add("--learning-rate", type=float, default=0.1, metavar="X", help="at the start [0.1]")
    args = flags.parse_args()
    args.batch_size = args.batch_size or (100 if args.inference else 128)
    stop = cli.Stop()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    dataset = data.load(data.colour, args)
    mean, deviation = map(torch.tensor, dataset.train.mean_and_deviation())
    model = ResNet50(args.stem, mean, deviation)
    if args.inference:
        done = infer(model, torch.tensor(dataset.test.images), args, stop)
    else:
        done = train(model, dataset, args, stop)
    print(f"Ended after step {done}.")


if __name__ == "__main__":
    main()
