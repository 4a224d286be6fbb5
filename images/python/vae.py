"""Trains a variational autoencoder on images, by PyTorch.

784-400-20; binary cross entropy of all pixels plus the KL divergence (Kingma and Welling, 2014);
Adam at 0.001, batches of 128. The losses that it prints are those of one image.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import cli
import data


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        hidden = F.relu(self.fc1(images))
        return self.fc21(hidden), self.fc22(hidden)

    def decode(self, code: Tensor) -> Tensor:
        return torch.sigmoid(self.fc4(F.relu(self.fc3(code))))

    def loss(self, images: Tensor) -> Tensor:
        """The sum over a batch."""
        mean, log_variance = self.encode(images)
        deviation = torch.exp(0.5 * log_variance)
        code = mean + torch.randn_like(deviation) * deviation
        error = F.binary_cross_entropy(self.decode(code), images, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.square() - log_variance.exp())
        return error + divergence


def pixels(images: Tensor) -> Tensor:
    return images.flatten(1).float() / 255


def main() -> None:
    flags = cli.parser(__doc__, batch_size=128)
    cli.add_data(flags)
    cli.add_log_interval(flags)
    args = flags.parse_args()
    stop = cli.Stop()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    dataset = data.load(data.grey, args)
    train, test = torch.tensor(dataset.train.images), torch.tensor(dataset.test.images)

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = -(-len(train) // args.batch_size)
    steps = args.steps or args.epochs * batches
    done = epoch = 0
    while done < steps and not stop.requested:
        epoch += 1
        total, seen = 0.0, 0
        for batch, chosen in enumerate(torch.randperm(len(train)).split(args.batch_size)):
            images = pixels(train[chosen])
            optimizer.zero_grad()
            loss = model.loss(images)
            loss.backward()
            optimizer.step()
            total += loss.item()
            seen += len(images)
            done += 1
            if batch % args.log_interval == 0:
                print(
                    f"Train Epoch: {epoch} [{batch * args.batch_size}/{len(train)} "
                    f"({100 * batch / batches:.0f}%)]\tLoss: {loss.item() / len(images):.6f}"
                )
            if done == steps or stop.requested:
                break
        if seen < len(train):
            break
        print(f"====> Epoch: {epoch} Average loss: {total / seen:.4f}")
        with torch.no_grad():
            total = sum(model.loss(pixels(part)).item() for part in test.split(1000))
        print(f"====> Test set loss: {total / len(test):.4f}")
    print(f"Ended after step {done}.")


if __name__ == "__main__":
    main()
