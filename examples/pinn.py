"""Solve Burgers' equation by a physics-informed neural network.

    python examples/pinn.py
    python examples/pinn.py --steps 3000 --no-plot
    python examples/pinn.py --help

It is the simplest equation in which a smooth initial state develops a steep
front:

    u_t + u u_x = (0.01 / pi) u_xx,    0 <= t <= 1,  -1 <= x <= 1,
    u(0, x) = -sin(pi x),  u(t, -1) = u(t, 1) = 0.

A network u(t, x) is trained to satisfy both lines at random points. Its
derivatives are computed by `autograd.grad(..., create_graph=True)`, so that a
loss with derivatives can be differentiated again. The training uses no
solution; at the end the network is compared with the exact solution and
plotted (by matplotlib, the extra `plot`). Ctrl-C ends the training and
continues with that comparison.

Source: Raissi, Perdikaris and Karniadakis, Physics-informed neural networks,
2019.
"""

import argparse
import importlib.util
import math
import sys
import time

import numpy as np

import tinytorch as torch
from tinytorch import nn

NU = 0.01 / math.pi  # viscosity: the smaller, the steeper the front
WEIGHT = 20  # of the initial and boundary values in the loss, which determine the solution


class Network(nn.Module):
    """A smooth function u of t and x: `depth` hidden layers of `width` units each."""

    def __init__(self, width, depth):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, t, x):
        """Return u, (N, 1), at times `t` and positions `x`, (N, 1)."""
        return self.layers(torch.cat([t, x], dim=1))


def residual(model, t, x):
    """Return u_t + u u_x - NU u_xx at `t` and `x`, which is 0 where the model satisfies the equation."""
    t.requires_grad_()
    x.requires_grad_()
    u = model(t, x)
    ones = torch.ones_like(u)  # the gradient of the sum over points: each u depends on its own point only
    u_t, u_x = torch.autograd.grad(u, (t, x), ones, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
    return u_t + u * u_x - NU * u_xx


def random_points(n):
    """Return `n` random times and positions, (n, 1) each."""
    return torch.rand(n, 1), 2 * torch.rand(n, 1) - 1


def given_points(n):
    """Return `n` times, positions and values of u, half of them initial values and half boundary values."""
    t, x = random_points(n)
    t[: n // 2] = 0
    x[n // 2 :] = x[n // 2 :].sign()  # on the boundary
    return t, x, -torch.sin(math.pi * x)  # 0 on the boundary


def improve(model, optimizer, points, given):
    """Take one training step on new points and return the loss."""
    equation = residual(model, *random_points(points))
    t, x, u = given_points(given)
    loss = (equation**2).mean() + WEIGHT * ((model(t, x) - u) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, args):
    """Train the model until the last step or Ctrl-C, and return the losses."""
    optimizer = torch.optim.Adam(model.parameters())
    take_step = torch.compile(improve) if args.compile else improve
    losses = []
    start = time.perf_counter()
    try:
        for step in range(args.steps):
            for group in optimizer.param_groups:  # cosine decay to a thousandth of lr
                group["lr"] = args.lr * (0.5005 + 0.4995 * math.cos(math.pi * step / args.steps))
            losses.append(take_step(model, optimizer, args.points, args.given))
            if step % args.log_every == 0 or step == args.steps - 1:
                seconds = time.perf_counter() - start
                print(f"step {step:>6d}  loss {losses[-1]:.4e}  {seconds:>6.1f} s", flush=True)
    except KeyboardInterrupt:
        print(f"\nInterrupted after {len(losses)} steps")
    return losses


def exact(t, x):
    """Return the exact solution at times `t` and positions `x`, NumPy arrays of the same shape.

    By the Cole-Hopf transformation u = -2 NU v_x / v, where v satisfies the heat equation v_t = NU v_xx. So v and
    v_x at t are those at 0 convolved with a Gaussian, which Gauss-Hermite quadrature integrates.
    """
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - np.sqrt(4 * NU * t)[..., None] * nodes
    log_v = -np.cos(np.pi * y) / (2 * np.pi * NU)
    v = weights * np.exp(log_v - log_v.max(axis=-1, keepdims=True))  # the factor cancels
    return -(np.sin(np.pi * y) * v).sum(axis=-1) / v.sum(axis=-1)


def compare(model, times):
    """Return times, positions, the u of the model and the exact u, on a grid (number of times, 256)."""
    t, x = np.meshgrid(times, np.linspace(-1, 1, 256), indexing="ij")
    with torch.no_grad():
        u = model(*(torch.from_numpy(a).float().reshape(-1, 1) for a in (t, x)))
    return t, x, u.numpy().reshape(t.shape), exact(t, x)


def relative_error(model):
    """Return the L2 norm of the error of the model, divided by that of the solution."""
    _, _, u, truth = compare(model, np.linspace(0, 1, 100))
    return np.linalg.norm(u - truth) / np.linalg.norm(truth)


def draw(path, model, losses):
    """Plot the u of the model, its profile at three times, and the losses, into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6), layout="constrained")
    grid = figure.add_gridspec(2, 4)

    field = figure.add_subplot(grid[0, :])
    t, x, u, _ = compare(model, np.linspace(0, 1, 100))
    figure.colorbar(field.pcolormesh(t, x, u, cmap="RdBu_r", vmin=-1, vmax=1))
    field.set(title="u(t, x)", xlabel="t", ylabel="x")

    for k, moment in enumerate((0.25, 0.5, 0.75)):
        _, x, u, truth = compare(model, moment)
        profile = figure.add_subplot(grid[1, k])
        profile.plot(x[0], truth[0], linewidth=4, alpha=0.4, label="exact")
        profile.plot(x[0], u[0], "k--", label="network")
        profile.set(title=f"t = {moment}", xlabel="x", ylabel="u", ylim=(-1.1, 1.1))
        profile.legend(loc="upper right")

    curve = figure.add_subplot(grid[1, 3])
    curve.plot(losses, linewidth=0.5)
    curve.set(title="loss", xlabel="step", yscale="log")

    figure.savefig(path, format="png", dpi=120)


def parse(argv):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--seed", type=int, default=0, help="the seed of the initial weights and the points (0)")
    option("--steps", type=int, default=15000, help="training steps (15000)")
    option("--lr", type=float, default=5e-3, help="the initial learning rate (0.005)")
    option("--points", type=int, default=2000, help="points per step for the equation (2000)")
    option("--given", type=int, default=200, help="points per step for initial and boundary values (200)")
    option("--width", type=int, default=20, help="units per hidden layer (20)")
    option("--depth", type=int, default=4, help="the number of hidden layers (4)")
    option("--log-every", type=int, default=1000, metavar="STEPS", help="steps between printed losses (1000)")
    option("--compile", action="store_true", help="compile the training step (torch.compile)")
    option("--out", default="pinn.png", metavar="FILE", help="the PNG file of the plot (pinn.png)")
    option("--no-plot", action="store_true", help="do not plot")
    args = parser.parse_args(argv)
    for name in ("steps", "lr", "points", "given", "width", "depth", "log_every"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    if not 0 <= args.seed < 2**64:
        parser.error("argument --seed: should be from 0 to 2**64 - 1")
    if not args.no_plot:  # fail now instead of after the training
        if importlib.util.find_spec("matplotlib") is None:
            parser.error("the picture needs matplotlib: pip install matplotlib; or --no-plot")
        try:
            open(args.out, "ab").close()
        except OSError as error:
            parser.error(f"argument --out: {error}")
    return args


def main(argv=None):
    """Run the command line."""
    args = parse(argv)
    torch.manual_seed(args.seed)
    model = Network(args.width, args.depth)
    losses = train(model, args)
    print(f"Relative L2 error: {relative_error(model):.4f}")
    if not args.no_plot:
        draw(args.out, model, losses)
        print(f"Drew {args.out}")
    if len(losses) < args.steps:
        sys.exit(130)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
