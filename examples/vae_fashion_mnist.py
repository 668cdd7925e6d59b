"""Train a variational autoencoder on FashionMNIST, and generate images.

    python examples/vae_fashion_mnist.py
    python examples/vae_fashion_mnist.py --epochs 20 --latent 32 --out new.png
    python examples/vae_fashion_mnist.py --quick --no-plot
    python examples/vae_fashion_mnist.py --help

The encoder maps an image to the mean and the variance of a normal distribution
of latent points; the decoder maps a latent point to an image. The loss is the
negative evidence lower bound (ELBO) in nats per image: the reconstruction
error plus the KL divergence of the latent distribution from the standard
normal distribution. At the end 64 random points are decoded into a PNG file
(by Pillow, the extra `vision`). The data (30 MB) is downloaded to --data if it
is not there; if that fails, generated images are used (--dataset). Ctrl-C ends
the training.

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
    """A variational autoencoder of images of 28 x 28 pixels, with a latent space of `latent` dimensions."""

    def __init__(self, latent, hidden):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 28 * 28))

    def forward(self, x):
        """Return the logits of the decoded images, (B, 784), and the means and log variances of their points."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        points = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        return self.decoder(points), mean, log_variance

    def draw(self, count):
        """Return the images, (count, 28, 28), of random latent points."""
        return torch.sigmoid(self.decoder(torch.randn(count, self.latent))).view(count, 28, 28)


def loss_of(model, x):
    """Return the reconstruction error and the KL divergence of images `x`, (B, 1, 28, 28), in nats per image."""
    logits, mean, log_variance = model(x)
    error = F.binary_cross_entropy_with_logits(logits, x.flatten(1), reduction="sum") / len(x)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(x)
    return error, divergence


def improve(model, optimizer, X):
    """Take one training step on the images `X`, (B, 1, 28, 28), and return the loss."""
    loss = sum(loss_of(model, X))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(dataloader, step, model, optimizer):
    """Train the model for one epoch, and return the mean of the losses."""
    model.train()
    total = 0.0
    for X, _ in dataloader:
        total += step(model, optimizer, X) * len(X)
    return total / len(dataloader.dataset)


def test(dataloader, model):
    """Return the two parts of the loss on the test images."""
    model.eval()
    error, divergence = 0.0, 0.0
    with torch.no_grad():
        for X, _ in dataloader:
            parts = loss_of(model, X)
            error += parts[0].item() * len(X)
            divergence += parts[1].item() * len(X)
    return error / len(dataloader.dataset), divergence / len(dataloader.dataset)


def save_grid(path, images, columns):
    """Save images, (N, 28, 28) between 0 and 1, as a grid in a PNG file."""
    from PIL import Image

    rows = len(images) // columns
    grid = images.reshape(rows, columns, 28, 28).transpose(1, 2).reshape(rows * 28, columns * 28)
    image = Image.fromarray((grid * 255).to(torch.uint8).numpy())
    image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST).save(path, "PNG")


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
    option("--epochs", type=int, default=10, help="the number of epochs (10)")
    option("--batch-size", type=int, default=128, help="images per step (128)")
    option("--lr", type=float, default=1e-3, help="learning rate (0.001)")
    option("--latent", type=int, default=20, help="dimensions of the latent space (20)")
    option("--hidden", type=int, default=400, help="the width of the hidden layers (400)")
    option("--seed", type=int, default=0, help="the seed of weights, shuffling and points (0)")
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
    option("--out", default="vae.png", metavar="FILE", help="the PNG file of the generated images (vae.png)")
    option("--no-plot", action="store_true", help="generate no images")
    args = parser.parse_args(argv)
    if args.torchvision and args.dataset == "drawn":
        parser.error("argument --torchvision: not allowed with --dataset drawn")
    if args.quick:
        args.epochs = 1
    for name in ("epochs", "batch_size", "lr", "latent", "hidden"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    if not args.no_plot:  # fail now instead of after the training
        if sys.modules.get("PIL", ...) is None or importlib.util.find_spec("PIL") is None:
            parser.error("the images need Pillow: pip install pillow; or --no-plot")
        try:
            open(args.out, "ab").close()
        except OSError as error:
            parser.error(f"argument --out: {error}")
    return args


def main(argv=None):
    """Run the command line."""
    args = parse(argv)
    try:
        training_data, test_data, notice = load_data(args)
    except (OSError, RuntimeError, ImportError) as error:
        sys.exit(f"vae_fashion_mnist.py: cannot read the data in {args.data!r}: {getattr(error, 'brief', error)}")
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
            error, divergence = test(test_dataloader, model)
            seconds = time.perf_counter() - start
            print(
                f"epoch {epoch}  loss {loss:.2f}  test loss {error + divergence:.2f}"
                f" ({error:.2f} + {divergence:.2f})  {seconds:.1f} s",
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
