"""Train a generative adversarial network on a mixture of eight Gaussians.

    python examples/gan_2d.py
    python examples/gan_2d.py --steps 5000 --out gan.png
    python examples/gan_2d.py --quick
    python examples/gan_2d.py --help

The generator maps noise to points of the plane; the critic learns to
distinguish them from points of the mixture, and the generator learns from the
critic. Such a game tends to oscillate or to miss modes. A penalty on the
gradient of the critic at true points (R1) prevents that; it is differentiated
again, by `autograd.grad(..., create_graph=True)`. Two measures are printed:
the number of Gaussians (clouds) that are covered, and the share of points that
lie in one. --out plots the points (by matplotlib, the extra `plot`). Ctrl-C
ends the training.

Sources: Goodfellow et al., Generative adversarial nets, 2014; Mescheder,
Geiger and Nowozin, Which training methods for GANs do actually converge?,
2018.
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
NOISE = 2  # the dimension of the generator's input


def centres():
    """Return the centres of the clouds, (CLOUDS, 2)."""
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
    """Return the logistic loss of the critic, whose output is positive for true points, with the penalty."""
    real = true_points(n).requires_grad_()
    with torch.no_grad():
        fake = generator(torch.randn(n, NOISE))
    score = critic(real)
    (gradient,) = torch.autograd.grad(score.sum(), real, create_graph=True)
    loss = F.softplus(-score).mean() + F.softplus(critic(fake)).mean()
    return loss + penalty / 2 * (gradient**2).sum(dim=1).mean()


def generator_loss(critic, generator, n):
    """Return the logistic loss of the generator: of its points being classified as true."""
    return F.softplus(-critic(generator(torch.randn(n, NOISE)))).mean()


def descend(loss, optimizer):
    """Take an optimizer step of one of the networks."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def improve(critic, generator, optimizers, n, penalty):
    """Take a step of each network on `n` points and return their losses as numbers."""
    loss_critic = critic_loss(critic, generator, n, penalty)
    descend(loss_critic, optimizers[0])
    loss_generator = generator_loss(critic, generator, n)
    descend(loss_generator, optimizers[1])
    return loss_critic.item(), loss_generator.item()


@torch.no_grad()
def measure(generator, n=10000):
    """Return the number of clouds that are covered, and the share of points within 3 SPREAD of a centre.

    A cloud is covered if it contains at least a fifth of its expected number of points.
    """
    points = generator(torch.randn(n, NOISE))
    distance, nearest = torch.cdist(points, centres()).min(dim=1)
    inside = distance < 3 * SPREAD
    counts = torch.bincount(nearest[inside], minlength=CLOUDS)
    return (counts >= n / CLOUDS / 5).sum().item(), inside.float().mean().item()


def train(critic, generator, args):
    """Train both networks until the last step or Ctrl-C, and return the number of steps."""
    optimizers = [torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.0, 0.99)) for model in (critic, generator)]
    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps) for optimizer in optimizers]
    take_step = torch.compile(improve) if args.compile else improve
    start = time.perf_counter()
    step = 0
    try:
        for step in range(1, args.steps + 1):
            loss_critic, loss_generator = take_step(critic, generator, optimizers, args.points, args.penalty)
            for scheduler in schedulers:
                scheduler.step()
            if step % args.log_every == 0 or step in (1, args.steps):
                clouds, inside = measure(generator)
                seconds = time.perf_counter() - start
                print(
                    f"step {step:>5d}  losses {loss_critic:.4f} {loss_generator:.4f}"
                    f"  clouds {clouds} of {CLOUDS}  inside {inside:.1%}  {seconds:>6.1f} s",
                    flush=True,
                )
    except KeyboardInterrupt:
        print(f"\nInterrupted after {step - 1} steps")
        step -= 1
    return step


def draw(path, generator):
    """Plot true and generated points into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    field = figure.add_subplot()
    with torch.no_grad():
        generated = generator(torch.randn(1000, NOISE))
    for points, label in ((true_points(1000), "true"), (generated, "generated")):
        field.scatter(points[:, 0].numpy(), points[:, 1].numpy(), s=4, alpha=0.5, label=label)
    field.set(aspect="equal", xlabel="x", ylabel="y")
    field.legend(loc="upper right")
    figure.savefig(path, format="png", dpi=120)


def parse(argv):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--steps", type=int, default=4000, help="training steps (4000)")
    option("--points", type=int, default=256, help="true points, and generated points, per step (256)")
    option("--width", type=int, default=128, help="the width of the hidden layers (128)")
    option("--lr", type=float, default=2e-3, help="the initial learning rate (0.002)")
    option("--penalty", type=float, default=0.1, help="the weight of the gradient penalty (0.1)")
    option("--seed", type=int, default=0, help="the seed of weights, noise and points (0)")
    option("--log-every", type=int, default=500, metavar="STEPS", help="steps between printed measures (500)")
    option("--compile", action="store_true", help="compile the training step (torch.compile)")
    option("--out", metavar="FILE", help="plot the points into this PNG file")
    option("--quick", action="store_true", help="40 steps of small networks, as a short test")
    args = parser.parse_args(argv)
    if args.quick:
        args.steps, args.width, args.log_every = 40, 32, 10
    for name in ("steps", "points", "width", "lr", "log_every"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    if not 0 <= args.penalty < math.inf:
        parser.error("argument --penalty: should be 0 or more, and finite")
    if args.out:  # fail now instead of after the training
        if sys.modules.get("matplotlib", ...) is None or not importlib.util.find_spec("matplotlib"):
            parser.error("--out needs matplotlib: pip install matplotlib")
        try:
            open(args.out, "ab").close()
        except OSError as error:
            parser.error(f"argument --out: {error}")
    return args


def main(argv=None):
    """Run the command line."""
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
