"""Train a generative adversarial network on eight clouds of points on a circle.

    python examples/gan_2d.py
    python examples/gan_2d.py --steps 5000 --out gan.png
    python examples/gan_2d.py --quick
    python examples/gan_2d.py --help

One network turns noise into points of the plane, another learns to tell them from points of the
clouds, and the first one learns from the second. Such a game tends to circle, or to leave out clouds;
what helps is a penalty on the gradient of the second network at true points (R1), which has to be
differentiated again: `autograd.grad(..., create_graph=True)`. At the end come two measures: how many
of the clouds are hit, and what share of the points lies in a cloud. --out draws the points (with the
extra `plot`, which is matplotlib). Ctrl-C ends the training.

Sources: Goodfellow et al., Generative adversarial nets, 2014; Mescheder, Geiger and Nowozin, Which
training methods for GANs do actually converge?, 2018.
"""

import argparse
import importlib.util
import math
import sys
import time

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

CLOUDS = 8
RADIUS = 2.0
SPREAD = 0.1  # the standard deviation of a cloud
NOISE = 2  # numbers that the generator makes a point of


def centres():
    """Return the middles of the clouds, (CLOUDS, 2)."""
    angle = 2 * math.pi / CLOUDS * torch.arange(CLOUDS)
    return RADIUS * torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)


def true_points(n):
    """Return `n` points of the clouds, (n, 2)."""
    return centres()[torch.randint(CLOUDS, (n,))] + SPREAD * torch.randn(n, 2)


def network(inputs, width, outputs):
    """Return a network with two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


def critic_loss(critic, generator, n, penalty):
    """Return how badly the critic tells points apart (positive is true), and the penalty."""
    real = true_points(n).requires_grad_()
    with torch.no_grad():
        fake = generator(torch.randn(n, NOISE))
    verdict = critic(real)
    (slope,) = torch.autograd.grad(verdict.sum(), real, create_graph=True)
    loss = F.softplus(-verdict).mean() + F.softplus(critic(fake)).mean()
    return loss + penalty / 2 * (slope**2).sum(dim=1).mean()


def generator_loss(critic, generator, n):
    """Return how badly the generator's points pass for true ones."""
    return F.softplus(-critic(generator(torch.randn(n, NOISE)))).mean()


def descend(loss, optimizer):
    """Take a step of one of the networks."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def improve(critic, generator, optimizers, n, penalty):
    """Take a step of each network on `n` points and return their losses as numbers."""
    critics = critic_loss(critic, generator, n, penalty)
    descend(critics, optimizers[0])
    generators = generator_loss(critic, generator, n)
    descend(generators, optimizers[1])
    return critics.item(), generators.item()


@torch.no_grad()
def measure(generator, n=10000):
    """Return how many clouds are hit, and the share of points within 3 SPREAD of a middle.

    A cloud is hit if a fifth or more of its due share of the points lies in it.
    """
    points = generator(torch.randn(n, NOISE))
    distance, nearest = torch.cdist(points, centres()).min(dim=1)
    inside = distance < 3 * SPREAD
    counts = torch.bincount(nearest[inside], minlength=CLOUDS)
    return (counts >= n / CLOUDS / 5).sum().item(), inside.float().mean().item()


def train(critic, generator, args):
    """Train both networks, to the last step or to Ctrl-C, and return the number of steps."""
    optimizers = [torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.0, 0.99)) for model in (critic, generator)]
    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps) for optimizer in optimizers]
    take_step = torch.compile(improve) if args.compile else improve
    start = time.perf_counter()
    step = 0
    try:
        for step in range(1, args.steps + 1):
            critics, generators = take_step(critic, generator, optimizers, args.points, args.penalty)
            for scheduler in schedulers:
                scheduler.step()
            if step % args.log_every == 0 or step in (1, args.steps):
                clouds, inside = measure(generator)
                seconds = time.perf_counter() - start
                print(
                    f"step {step:>5d}  losses {critics:.4f} {generators:.4f}"
                    f"  clouds {clouds} of {CLOUDS}  inside {inside:.1%}  {seconds:>6.1f} s",
                    flush=True,
                )
    except KeyboardInterrupt:
        print(f"\nInterrupted after {step - 1} steps")
        step -= 1
    return step


def draw(path, generator):
    """Draw true points and generated ones into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    field = figure.add_subplot()
    with torch.no_grad():
        made = generator(torch.randn(1000, NOISE))
    for points, label in ((true_points(1000), "true"), (made, "generated")):
        field.scatter(points[:, 0].numpy(), points[:, 1].numpy(), s=4, alpha=0.5, label=label)
    field.set(aspect="equal", xlabel="x", ylabel="y")
    field.legend(loc="upper right")
    figure.savefig(path, format="png", dpi=120)


def parse(argv):
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--steps", type=int, default=4000, help="of each network (4000)")
    option("--points", type=int, default=256, help="true ones and others in a step (256)")
    option("--width", type=int, default=128, help="of the hidden layers (128)")
    option("--lr", type=float, default=2e-3, help="learning rate in the beginning (0.002)")
    option("--penalty", type=float, default=0.1, help="weight of the gradient's square (0.1)")
    option("--seed", type=int, default=0, help="of weights, noise and points (0)")
    option("--log-every", type=int, default=500, metavar="STEPS", help="print measures (500)")
    option("--compile", action="store_true", help="run a step as one program (torch.compile)")
    option("--out", metavar="FILE", help="draw the points into this PNG")
    option("--quick", action="store_true", help="40 steps of small networks, to see it run")
    args = parser.parse_args(argv)
    if args.quick:
        args.steps, args.width, args.log_every = 40, 32, 10
    for name in ("steps", "points", "width", "lr", "log_every"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    if not 0 <= args.penalty < math.inf:
        parser.error("argument --penalty: should be 0 or more, and finite")
    if args.out:  # better now than after the training
        if sys.modules.get("matplotlib", ...) is None or not importlib.util.find_spec("matplotlib"):
            parser.error("--out needs matplotlib: pip install matplotlib")
        try:
            open(args.out, "ab").close()
        except OSError as error:
            parser.error(f"argument --out: {error}")
    return args


def main(argv=None):
    """Do what the command line asks for."""
    args = parse(argv)
    torch.manual_seed(args.seed)
    generator = network(NOISE, args.width, 2)
    critic = network(2, args.width, 1)
    steps = train(critic, generator, args)
    if args.out:
        draw(args.out, generator)
        print(f"Drew {args.out}")
    if steps < args.steps:
        sys.exit(130)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
