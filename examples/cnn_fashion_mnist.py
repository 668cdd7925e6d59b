"""Train a convolutional network on FashionMNIST to an accuracy of 92 %.

    python examples/cnn_fashion_mnist.py
    python examples/cnn_fashion_mnist.py --epochs 3 --width 16
    python examples/cnn_fashion_mnist.py --quick
    python examples/cnn_fashion_mnist.py --help

The network has three convolutions with batch normalization, and two linear
layers. It is trained by Adam with the one-cycle learning rate schedule. Half
of the training images are flipped; in the test, the scores of each image and
of its mirror image are added. The data (30 MB) is downloaded to --data if it
is not there; if that fails, generated images are used (--dataset). Ctrl-C ends
the training.

Sources: Ioffe and Szegedy, Batch normalization, 2015; Smith and Topin,
Super-convergence, 2018.
"""

import argparse
import math
import os
import sys
import time

import tinytorch as torch
from tinytorch import nn
from tinytorch.utils.data import DataLoader, Subset


class Network(nn.Module):
    """A classifier of images of 28 x 28 pixels, which returns a score for each of ten classes."""

    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, bias=False),  # (B, width, 26, 26)
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (B, width, 13, 13)
            nn.Conv2d(width, 2 * width, 3, bias=False),  # (B, 2 width, 11, 11)
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (B, 2 width, 5, 5)
            nn.Conv2d(2 * width, 4 * width, 3, bias=False),  # (B, 4 width, 3, 3)
            nn.BatchNorm2d(4 * width),
            nn.ReLU(),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(4 * width * 3 * 3, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)
        )

    def forward(self, x):
        """Return the scores, (B, 10), of the images `x`, (B, 1, 28, 28)."""
        return self.classifier(self.features(x))


def improve(model, optimizer, scheduler, X, y):
    """Take one training step on the images `X`, (B, 1, 28, 28), of the classes `y`, and return the loss."""
    mirrored = torch.rand(len(X), 1, 1, 1) < 0.5
    loss = nn.functional.cross_entropy(model(torch.where(mirrored, X.flip(3), X)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()


def train(dataloader, step, model, optimizer, scheduler):
    """Train the model for one epoch, and return the mean of the losses."""
    model.train()
    total = 0.0
    for X, y in dataloader:
        total += step(model, optimizer, scheduler, X, y)
    return total / len(dataloader)


def test(dataloader, model):
    """Return the accuracy of the model."""
    model.eval()
    correct = 0
    with torch.no_grad():
        for X, y in dataloader:
            scores = model(X) + model(X.flip(3))
            correct += (scores.argmax(1) == y).sum().item()
    return correct / len(dataloader.dataset)


def load_data(args):
    """Return the training data, the test data, and a notice to print, or None."""
    if args.torchvision:
        from torchvision.datasets import FashionMNIST as Fashion
        from torchvision.transforms import ToTensor
    else:
        from tinytorch.data import fashion_or_drawn
        from tinytorch.data.transforms import ToTensor

        Fashion = fashion_or_drawn(args.data, args.dataset)
    data = [Fashion(root=args.data, train=train, download=True, transform=ToTensor()) for train in (True, False)]
    if args.quick:
        data = [Subset(images, range(min(2000, len(images)))) for images in data]
    return *data, getattr(Fashion, "notice", None)  # that the images are generated


def parse(argv):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--data", default=os.environ.get("TINYTORCH_DATA", "data"), help="the folder of the data")
    option("--epochs", type=int, default=5, help="the number of epochs (5)")
    option("--batch-size", type=int, default=128, help="images per step (128)")
    option("--lr", type=float, default=5e-3, help="the highest learning rate (0.005)")
    option("--width", type=int, default=32, help="the channels of the first convolution (32)")
    option("--seed", type=int, default=0, help="the seed of the initial weights and the shuffling (0)")
    option(
        "--dataset",
        choices=("auto", "fashion", "drawn"),
        default="auto",
        help="fashion: FashionMNIST; drawn: generated images; auto: generated images if "
        "FashionMNIST is not in the folder and cannot be downloaded (auto)",
    )
    option("--compile", action="store_true", help="compile the training step (torch.compile)")
    option("--torchvision", action="store_true", help="read the data through torchvision")
    option("--quick", action="store_true", help="one epoch on 2,000 images, as a short test")
    args = parser.parse_args(argv)
    if args.torchvision and args.dataset == "drawn":
        parser.error("argument --torchvision: not allowed with --dataset drawn")
    if args.quick:
        args.epochs = 1
    for name in ("epochs", "batch_size", "lr", "width"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    return args


def main(argv=None):
    """Run the command line."""
    args = parse(argv)
    try:
        training_data, test_data, notice = load_data(args)
    except (OSError, RuntimeError, ImportError) as error:
        sys.exit(f"cnn_fashion_mnist.py: cannot read the data in {args.data!r}: {getattr(error, 'brief', error)}")
    if notice:
        print(notice)
    torch.manual_seed(args.seed)
    model = Network(args.width)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    train_dataloader = DataLoader(training_data, batch_size=args.batch_size, shuffle=True)
    test_dataloader = DataLoader(test_data, batch_size=500)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, epochs=args.epochs, steps_per_epoch=len(train_dataloader)
    )
    step = torch.compile(improve) if args.compile else improve
    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        loss = train(train_dataloader, step, model, optimizer, scheduler)
        accuracy = test(test_dataloader, model)
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}  loss {loss:.4f}  test accuracy {accuracy:.2%}  {seconds:.1f} s", flush=True)
    if notice:
        print(notice)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
