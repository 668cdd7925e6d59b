"""Train an LSTM that classifies the images of FashionMNIST row by row.

    python examples/lstm_rows.py
    python examples/lstm_rows.py --epochs 5 --hidden 256
    python examples/lstm_rows.py --quick
    python examples/lstm_rows.py --help

An image is a sequence of 28 rows of 28 pixels; a linear layer classifies the
hidden state after the last row. The data (30 MB) is downloaded to --data if it
is not there; if that fails, generated images are used (--dataset). Ctrl-C ends
the training.

Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
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

    def __init__(self, hidden, layers):
        super().__init__()
        self.lstm = nn.LSTM(28, hidden, num_layers=layers, batch_first=True)
        self.classifier = nn.Linear(hidden, 10)

    def forward(self, x):
        """Return the scores, (B, 10), of the images `x`, (B, 1, 28, 28)."""
        _, (h, _) = self.lstm(x.squeeze(1))  # h: (layers, B, hidden), after the last row
        return self.classifier(h[-1])


def improve(model, optimizer, scheduler, X, y):
    """Take one training step on the images `X`, (B, 1, 28, 28), of the classes `y`, and return the loss."""
    loss = nn.functional.cross_entropy(model(X), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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
            correct += (model(X).argmax(1) == y).sum().item()
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
    option("--batch-size", type=int, default=64, help="images per step (64)")
    option("--lr", type=float, default=4e-3, help="the highest learning rate (0.004)")
    option("--hidden", type=int, default=128, help="the size of the hidden state (128)")
    option("--layers", type=int, default=1, help="the number of LSTM layers (1)")
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
    for name in ("epochs", "batch_size", "lr", "hidden", "layers"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    return args


def main(argv=None):
    """Run the command line."""
    args = parse(argv)
    try:
        training_data, test_data, notice = load_data(args)
    except (OSError, RuntimeError, ImportError) as error:
        sys.exit(f"lstm_rows.py: cannot read the data in {args.data!r}: {getattr(error, 'brief', error)}")
    if notice:
        print(notice)
    torch.manual_seed(args.seed)
    model = Network(args.hidden, args.layers)
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
