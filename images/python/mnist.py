"""Trains a convolutional classifier on images, by PyTorch.

Two convolutions, max pooling, dropout, two fully connected layers; cross entropy, Adam at 0.001,
batches of 64. The pixels are normalised by the data's own mean and deviation.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import cli
import data


class Net(nn.Module):
    def __init__(self, mean: float, deviation: float) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(64 * 12 * 12, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        features = (images.float() / 255 - self.mean) / self.deviation
        features = F.relu(self.conv2(F.relu(self.conv1(features))))
        features = F.dropout(F.max_pool2d(features, 2), 0.25, self.training).flatten(1)
        hidden = F.dropout(F.relu(self.fc1(features)), 0.5, self.training)
        return self.fc2(hidden)


@torch.no_grad()
def evaluate(model: Net, test: tuple[Tensor, Tensor], stop: cli.Stop) -> tuple[float, int, int]:
    """The mean loss, the number of correctly classified images, and the number of all."""
    model.eval()
    loss, right, count = 0.0, 0, 0
    for images, labels in zip(*(part.split(500) for part in test), strict=True):
        scores = model(images)
        loss += F.cross_entropy(scores, labels, reduction="sum").item()
        right += int((scores.argmax(1) == labels).sum())
        count += len(labels)
        if stop.requested:
            break
    return loss / count, right, count


def main() -> None:
    flags = cli.parser(__doc__, batch_size=64)
    cli.add_data(flags)
    cli.add_log_interval(flags)
    args = flags.parse_args()
    stop = cli.Stop()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    dataset = data.load(data.grey, args)
    images, labels = torch.tensor(dataset.train.images), torch.tensor(dataset.train.labels)
    test = torch.tensor(dataset.test.images), torch.tensor(dataset.test.labels)

    mean, deviation = dataset.train.mean_and_deviation()
    model = Net(mean.item(), deviation.item())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = -(-len(images) // args.batch_size)
    steps = args.steps or args.epochs * batches
    done = epoch = 0
    while done < steps and not stop.requested:
        epoch += 1
        model.train()
        for batch, chosen in enumerate(torch.randperm(len(images)).split(args.batch_size)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            done += 1
            if batch % args.log_interval == 0:
                print(
                    f"Train Epoch: {epoch} [{batch * args.batch_size}/{len(images)} "
                    f"({100 * batch / batches:.0f}%)]\tLoss: {loss.item():.6f}"
                )
            if done == steps or stop.requested:
                break
        if done < epoch * batches or stop.requested:
            break
        average, right, count = evaluate(model, test, stop)
        print(
            f"\nTest set: Average loss: {average:.4f}, "
            f"Accuracy: {right}/{count} ({100 * right / count:.0f}%)\n"
        )
    print(f"Ended after step {done}.")


if __name__ == "__main__":
    main()
