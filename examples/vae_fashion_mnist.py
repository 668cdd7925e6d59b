"""Train a variational autoencoder on FashionMNIST, and let it draw pictures of its own.

    python examples/vae_fashion_mnist.py
    python examples/vae_fashion_mnist.py --epochs 20 --latent 32 --out pictures.png
    python examples/vae_fashion_mnist.py --quick --no-plot
    python examples/vae_fashion_mnist.py --help

The encoder says for a picture where, among normally distributed points, it lies, and how sure that
is; the decoder turns a point into a picture. The loss bounds how unlikely the pictures are (the
ELBO, in nats per picture): what the decoder gets wrong, and how far the encoder's points are from
the normal distribution. At the end 64 random points are decoded, into a PNG file (with Pillow, which
the extra `vision` brings). The data is downloaded (30 MB) to --data if it is not there; if it cannot
be, drawn pictures take its place (--dataset). Ctrl-C ends the training.

Source: Kingma and Welling, Auto-encoding variational Bayes, 2013.
"""

import argparse
import importlib.util
import math
import os
import sys
import time

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F
from tinytorch.utils.data import DataLoader, Subset


class VAE(nn.Module):
    """Pictures of 28 x 28 pixels to points of `latent` coordinates and back."""

    def __init__(self, latent, hidden):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 28 * 28))

    def forward(self, x):
        """Return the logits of decoded pictures, (B, 784), and mean and log variance of their points."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        points = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        return self.decoder(points), mean, log_variance

    def draw(self, count):
        """Return pictures, (count, 28, 28), of random points."""
        return torch.sigmoid(self.decoder(torch.randn(count, self.latent))).view(count, 28, 28)


def loss_of(model, x):
    """Return the two parts of the negative ELBO of pictures `x`, (B, 1, 28, 28), in nats per picture."""
    logits, mean, log_variance = model(x)
    wrong = F.binary_cross_entropy_with_logits(logits, x.flatten(1), reduction="sum") / len(x)
    far = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(x)
    return wrong, far


def improve(model, optimizer, X):
    """Take one step of training on the pictures `X`, (B, 1, 28, 28), and return the loss."""
    loss = sum(loss_of(model, X))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(dataloader, step, model, optimizer):
    """Show the model every picture once, and return the mean of the losses."""
    model.train()
    total = 0.0
    for X, _ in dataloader:
        total += step(model, optimizer, X) * len(X)
    return total / len(dataloader.dataset)


def test(dataloader, model):
    """Return the two parts of the loss on pictures that the model has never seen."""
    model.eval()
    wrong, far = 0.0, 0.0
    with torch.no_grad():
        for X, _ in dataloader:
            parts = loss_of(model, X)
            wrong += parts[0].item() * len(X)
            far += parts[1].item() * len(X)
    return wrong / len(dataloader.dataset), far / len(dataloader.dataset)


def save_grid(path, pictures, columns):
    """Save pictures, (N, 28, 28) between 0 and 1, side by side as a PNG file."""
    from PIL import Image

    rows = len(pictures) // columns
    grid = pictures.reshape(rows, columns, 28, 28).transpose(1, 2).reshape(rows * 28, columns * 28)
    image = Image.fromarray((grid * 255).to(torch.uint8).numpy())
    image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST).save(path, "PNG")


def load_data(args):
    """Return the pictures to learn from, those to test with, and what is to be said of them."""
    if args.torchvision:
        from torchvision.datasets import FashionMNIST as Fashion
        from torchvision.transforms import ToTensor
    else:
        from tinytorch.data import fashion_or_drawn
        from tinytorch.data.transforms import ToTensor

        Fashion = fashion_or_drawn(args.data, args.dataset)
    data = [Fashion(root=args.data, train=train, download=True, transform=ToTensor()) for train in (True, False)]
    if args.quick:
        data = [Subset(each, range(min(2000, len(each)))) for each in data]
    return *data, getattr(Fashion, "notice", None)  # drawn pictures say that they are


def parse(argv):
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--data", default=os.environ.get("TINYTORCH_DATA", "data"), help="folder of the data")
    option("--epochs", type=int, default=10, help="how often to show every picture (10)")
    option("--batch-size", type=int, default=128, help="pictures per step (128)")
    option("--lr", type=float, default=1e-3, help="learning rate (0.001)")
    option("--latent", type=int, default=20, help="coordinates of a point (20)")
    option("--hidden", type=int, default=400, help="width of the hidden layers (400)")
    option("--seed", type=int, default=0, help="of weights, order, and points (0)")
    option(
        "--dataset",
        choices=("auto", "fashion", "drawn"),
        default="auto",
        help="fashion: FashionMNIST; drawn: pictures drawn here and now; auto: drawn ones if "
        "FashionMNIST is not there and cannot be downloaded (auto)",
    )
    option("--compile", action="store_true", help="run a step as one program (torch.compile)")
    option("--torchvision", action="store_true", help="read the data through torchvision")
    option("--quick", action="store_true", help="one epoch of 2,000 pictures, to see it run")
    option("--out", default="vae.png", metavar="FILE", help="the pictures, a PNG (vae.png)")
    option("--no-plot", action="store_true", help="save no pictures")
    args = parser.parse_args(argv)
    if args.torchvision and args.dataset == "drawn":
        parser.error("argument --torchvision: not allowed with --dataset drawn")
    if args.quick:
        args.epochs = 1
    for name in ("epochs", "batch_size", "lr", "latent", "hidden"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    if not args.no_plot:  # better now than after the training
        if sys.modules.get("PIL", ...) is None or importlib.util.find_spec("PIL") is None:
            parser.error("the pictures need Pillow: pip install pillow; or --no-plot")
        try:
            open(args.out, "ab").close()
        except OSError as error:
            parser.error(f"argument --out: {error}")
    return args


def main(argv=None):
    """Do what the command line asks for."""
    args = parse(argv)
    try:
        training_data, test_data, notice = load_data(args)
    except (OSError, RuntimeError, ImportError) as error:
        sys.exit(f"vae_fashion_mnist.py: cannot read the data in {args.data!r}: {error}")
    if notice:
        print(notice)
    torch.manual_seed(args.seed)
    model = VAE(args.latent, args.hidden)
    train_dataloader = DataLoader(training_data, batch_size=args.batch_size, shuffle=True)
    test_dataloader = DataLoader(test_data, batch_size=500)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    step = torch.compile(improve) if args.compile else improve
    start = time.perf_counter()
    interrupted = False
    try:
        for epoch in range(1, args.epochs + 1):
            loss = train(train_dataloader, step, model, optimizer)
            wrong, far = test(test_dataloader, model)
            seconds = time.perf_counter() - start
            print(
                f"epoch {epoch}  loss {loss:.2f}  test loss {wrong + far:.2f}"
                f" ({wrong:.2f} + {far:.2f})  {seconds:.1f} s",
                flush=True,
            )
    except KeyboardInterrupt:
        print("\nInterrupted")
        interrupted = True
    if not args.no_plot:
        model.eval()
        with torch.no_grad():
            save_grid(args.out, model.draw(64), columns=8)
        print(f"Drew {args.out}")
    if notice:
        print(notice)
    if interrupted:
        sys.exit(130)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
