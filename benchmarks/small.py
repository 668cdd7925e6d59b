"""The time of calls on small tensors, as users write them.

python -m benchmarks small                    all calls
python -m benchmarks small losses policies     calls of some kinds
python -m benchmarks small "x * y" "x.sum()"  some calls
python -m benchmarks small "x * y" --size 1000

Each library has a process of its own. They take turns, and the minimum of all turns counts. The table begins with the
call that takes longest next to PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import sys
import timeit
from collections.abc import Sequence
from typing import Any

from benchmarks import models, page
from benchmarks.measure import peak_memory
from benchmarks.side import Side

__all__ = ["CALLS", "main", "names"]

#: By kind, the calls, with what `names` returns: those of `x`, `y` and `v` are recorded, and those of `a` and `b` not.
CALLS = {
    kind: [call.strip() for call in calls.split(";")]
    for kind, calls in {
        "arithmetic": """
            a + b; a * b; a - 1.5; 1 / a; a**2; a > b; a < 0.5; k == 3; i // 2; ~m; c.mul_(1.0); c.add_(a, alpha=0.0);
            x + y; x - y; x * y; x / y; -x; x**2; x**0.5; 2 * x; x + 1.5; x * v; x.mul(y); torch.mul(x, y);
            torch.add(x, y, alpha=2); with torch.no_grad(): x * y""",
        "functions": """
            torch.exp(x); x.log(); x.sqrt(); torch.sin(x); x.abs(); x.square(); x.clamp(0.2, 0.8); x.clamp(min=0.5);
            torch.maximum(x, y); torch.min(x, y); torch.where(m, x, y); torch.where(a > 0.5, a, 0.0);
            torch.lerp(x, y, 0.1); torch.addcmul(x, y, y); torch.logaddexp(x, y); torch.atan2(x, y); torch.erf(x);
            torch.lgamma(x); torch.digamma(a); a.sign(); a.round(); torch.isfinite(a).all(); torch.allclose(a, a)""",
        "reductions": """
            x.sum(); x.sum(1); x.sum(dim=0, keepdim=True); x.mean(); x.mean(-1); x.max(); x.max(1); x.min(dim=0).values;
            x.amax(1); a.argmax(1); a.argmin(); x.var(1); x.std(); x.norm(); x.norm(dim=1); x.prod(); x.cumsum(1);
            x.logsumexp(1); m.any(); m.all(1); (k == 3).sum(); a.median(); a.median(1); torch.trace(a);
            torch.quantile(a, 0.5); torch.bincount(k)""",
        "views": """
            x.view(-1); x.reshape(-1, 2); x.t(); x.T; x.transpose(0, 1); x.permute(1, 0); x.unsqueeze(0);
            x[None].squeeze(0); x[0]; x[:, 0]; x[1:, :4]; x[0, 1]; x[..., None]; x.flatten(); v.expand(8, -1);
            x.detach(); x.clone(); x.contiguous(); torch.diag(a); torch.tril(a); x.repeat(2, 1); x.flip(0);
            torch.roll(x, 1, 0); a.double(); i.float(); a.to("cpu")""",
        "properties": """
            x.shape; x.size(0); x.dim(); x.dtype; x.device; x.requires_grad; len(x); s.item(); a.tolist(); a.numpy();
            bool(m[0, 0])""",
        "creation": """
            torch.zeros(8, 8); torch.ones(8); torch.full((8, 8), 0.5); torch.empty(8, 8); torch.eye(8); torch.arange(8);
            torch.arange(0.0, 1.0, 0.1); torch.linspace(0, 1, 8); torch.tensor(1.0); torch.tensor([1.0, 2.0, 3.0]);
            torch.tensor([[1, 2], [3, 4]]); torch.zeros_like(a); torch.full_like(a, 2.0); a.new_zeros(8);
            torch.from_numpy(array); torch.as_tensor(array)""",
        "random": """
            torch.rand(8, 8); torch.randn(8, 8); torch.randint(0, 10, (8,)); torch.randperm(8); torch.bernoulli(a);
            torch.multinomial(a, 1); torch.normal(0.0, 1.0, (8,)); torch.rand_like(a); torch.randn_like(a);
            c.uniform_(); F.dropout(x, 0.5); nn.init.xavier_uniform_(c)""",
        "joins": """
            torch.cat([x, y]); torch.cat((a, b), dim=1); torch.stack([x, y]); torch.stack([s, s, s, s]);
            torch.hstack([x, y]); x.split(4); x.chunk(2); x.unbind(); torch.meshgrid(u, u, indexing="ij")""",
        "products": """
            x @ y; a @ b; a @ u; torch.mm(x, y); torch.bmm(batch, batch); batch @ x; F.linear(x, y, v); F.linear(a, b);
            torch.dot(v, v); torch.outer(v, v); torch.addmm(v, x, y); torch.einsum("ij,jk->ik", x, y);
            torch.einsum("bij,bjk->bik", batch, batch); torch.cross(x[:, :3], y[:, :3], dim=1); torch.cdist(x, y);
            F.scaled_dot_product_attention(batch, batch, batch)""",
        "activations": """
            F.relu(x); F.leaky_relu(x, 0.1); F.elu(x); F.gelu(x); F.silu(x); F.softplus(x); torch.sigmoid(x); x.tanh();
            F.softmax(x, dim=1); x.softmax(-1); F.log_softmax(x, dim=1); F.glu(x); F.normalize(x, dim=1);
            F.one_hot(k, 8); F.pad(x, (1, 1))""",
        "losses": """
            F.mse_loss(x, b); F.l1_loss(x, b); F.smooth_l1_loss(x, b); F.cross_entropy(x, k); F.nll_loss(x, k);
            F.cross_entropy(x, k, label_smoothing=0.1); F.binary_cross_entropy(x, b);
            F.binary_cross_entropy_with_logits(x, b); F.kl_div(x, b, reduction="batchmean"); F.cosine_similarity(x, y);
            F.multi_margin_loss(x, k); F.triplet_margin_loss(x, y, a); F.gaussian_nll_loss(x, b, a)""",
        "layers": """
            F.layer_norm(x, v.shape); F.group_norm(image, 2); F.conv2d(image, kernel, padding=1);
            F.conv1d(rows, kernel[..., 0], padding=1); F.max_pool2d(image, 2); F.avg_pool2d(image, 2);
            F.adaptive_avg_pool2d(image, 1); F.interpolate(image, scale_factor=2);
            F.grid_sample(image, grid, align_corners=False); F.embedding(k, y); linear(a); norm(a); batch_norm(a);
            conv(image); dropout(x); cell(a); attention(batch, batch, batch); mlp(points); nn.Linear(8, 8)""",
        "linalg": """
            torch.linalg.solve(positive, a); torch.linalg.inv(positive); torch.linalg.det(positive);
            torch.logdet(positive); torch.linalg.cholesky(positive); torch.linalg.qr(positive);
            torch.linalg.eigvalsh(positive); torch.linalg.svdvals(a); torch.linalg.norm(x)""",
        "sorting": """
            a.sort(1); torch.sort(u, descending=True); a.argsort(1); a.topk(2); torch.unique(k);
            torch.searchsorted(edges, a); a.nonzero()""",
        "indices": """
            x[k]; x[m]; x[j, k]; x.gather(1, i); x.index_select(0, k); x.masked_fill(m, 0.0); x.scatter(1, i, y);
            a.scatter_add(1, i, b); a.index_add(0, k, b); c[0] = 1.0; c[m] = 0.5; c[:, 1] = u""",
        "policies": """
            Categorical(logits=x).log_prob(k); Categorical(logits=a).sample(); policy.log_prob(k); policy.entropy();
            Normal(x, a).log_prob(b); Normal(a, b).sample(); normal.rsample(); normal.log_prob(b); normal.entropy();
            kl_divergence(normal, normal); Bernoulli(logits=a).sample(); Beta(a, b).log_prob(b)""",
        "backward": """
            (s * 2).backward(); (p * q).sum().backward(); hundred.backward(retain_graph=True);
            (p @ q).tanh().mean().backward(); torch.autograd.grad(p * q, p, g);
            F.cross_entropy(linear(a), k).backward(); mlp(points).square().mean().backward()""",
        "steps": """
            sgd.step(); momentum.step(); adam.step(); adamw.step(); rmsprop.step();
            nn.utils.clip_grad_norm_(parameters, 1.0); train()""",
    }.items()
}
#: A turn is some blocks of calls, which take so many seconds each; the shortest one counts.
BLOCKS, BLOCK = 5, 1e-3


def names(torch: Any, size: int = 8) -> dict[str, Any]:
    """Return what the calls use, of one of the libraries; `a`, `b`, `x` and `y` are matrices of `size` x `size`."""
    nn, F, distributions = torch.nn, torch.nn.functional, importlib.import_module(f"{torch.__name__}.distributions")
    Bernoulli, Beta, Categorical = distributions.Bernoulli, distributions.Beta, distributions.Categorical
    Normal, kl_divergence = distributions.Normal, distributions.kl_divergence
    torch.manual_seed(0)
    square = (size, size)
    p, q, w = (torch.rand(shape).requires_grad_() for shape in (square, square, size))
    # Results of ops, as the inputs of most ops are in a model.
    x, y, v = (each * 0.9 + 0.05 for each in (p, q, w))
    a, b, c, u = (torch.rand(shape) * 0.9 + 0.05 for shape in (square, square, square, size))
    s, g, m, array = torch.tensor(2.0, requires_grad=True), torch.ones(square), b > 0.5, a.numpy()
    i, j, k, edges = torch.randint(size, square), torch.arange(size), torch.randint(size, (size,)), u.sort().values
    positive = a @ a.T + size * torch.eye(size)
    batch, rows, grid = torch.rand(4, size, size), torch.rand(2, 4, 16), torch.rand(2, 8, 8, 2) * 2 - 1
    image, kernel = torch.rand(2, 4, 8, 8).requires_grad_() * 1, torch.rand(4, 4, 3, 3).requires_grad_()
    hundred = p  # a graph of a hundred nodes
    for _ in range(99):
        hundred = hundred * q
    hundred = hundred.sum()
    linear, norm, batch_norm = nn.Linear(size, size), nn.LayerNorm(size), nn.BatchNorm1d(size)
    conv, dropout, cell = nn.Conv2d(4, 4, 3), nn.Dropout(), nn.LSTMCell(size, size)
    attention = nn.MultiheadAttention(size, 2, batch_first=True)
    policy, normal = Categorical(logits=a), Normal(a, b)

    mlp, points = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)), torch.rand(100, 2)
    parameters = [torch.rand(shape).requires_grad_() for shape in ((16, 2), 16, (16, 16), 16, (1, 16), 1)]
    torch.stack([each.square().sum() for each in parameters]).sum().backward()
    optim, rate = torch.optim, 1e-6
    sgd, momentum = optim.SGD(parameters, rate), optim.SGD(parameters, rate, momentum=0.9)
    adam, adamw, rmsprop = (each(parameters, rate) for each in (optim.Adam, optim.AdamW, optim.RMSprop))
    train = models.micro_mlp(torch)
    return locals()


def serve(library: str, size: str) -> None:
    """Measure on request, which is a call, and print the seconds that it takes, until the request "end"."""
    torch = importlib.import_module(library)
    if library == "torch":
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    given = names(torch, int(size))
    timers: dict[str, tuple[timeit.Timer, int]] = {}
    for line in sys.stdin:
        call = line.rstrip("\n")
        if call == "end":
            print(peak_memory(), flush=True)
            break
        if call not in timers:
            timer = timeit.Timer(call, "import gc; gc.enable()", globals=given)  # as in a program
            timers[call] = timer, max(1, round(BLOCK / min(timer.repeat(9, 1))))
        timer, times = timers[call]
        print(min(timer.repeat(BLOCKS, times)) / times, flush=True)


def summary(ratios: Sequence[float]) -> str:
    over = ", ".join(f"{sum(ratio > limit for ratio in ratios):3} over {limit}" for limit in (1, 1.5, 2))
    return f"geometric mean of {len(ratios):3} ratios {statistics.geometric_mean(ratios):.2f}, {over}"


def main(arguments: Sequence[str]) -> int:
    """Print the table of calls, and what it amounts to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks small", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("calls", nargs="*", metavar="CALL", help=f"calls, or kinds: {', '.join(CALLS)} (all)")
    parser.add_argument("--turns", type=int, default=20, help="turns of each library (20)")
    parser.add_argument("--size", type=int, default=8, help="rows and columns of the matrices (8)")
    # By default one: a second thread would have nothing to do but wait, as long as others use its processor.
    parser.add_argument("--threads", type=int, default=1, help="threads of each library (1)")
    options = parser.parse_args(arguments)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    kinds = {call: kind for kind, calls in CALLS.items() for call in calls}
    unknown = set(options.calls) - set(kinds) - set(CALLS)
    if unknown:
        parser.error(f"no such call or kind: {'; '.join(sorted(unknown))}")
    chosen = {call: kind for call, kind in kinds.items() if not options.calls or {call, kind} & set(options.calls)}

    libraries = ["tinytorch", "torch"] if importlib.util.find_spec("torch") else ["tinytorch"]
    sides = [Side(library, str(options.size), module=["benchmarks.small"]) for library in libraries]
    times = {call: [float("inf")] * len(sides) for call in chosen}
    before = page.now()["load"]
    for _ in range(options.turns):
        for call, least in times.items():
            for number, side in enumerate(sides):
                least[number] = min(least[number], float(side.ask(call)))
    for side in sides:
        side.end()

    ratios = {call: ours / (theirs[0] if theirs else 1) for call, (ours, *theirs) in times.items()}
    print(f"{'us':<62} {'ours':>8} {'PyTorch':>8} {'ratio':>6}  kind")
    for call in sorted(times, key=lambda call: -ratios[call]):
        ours, *theirs = (page.number(each * 1e6) for each in times[call])
        ratio = page.ratio(ratios[call]) if theirs else "-"
        print(f"{call:<62} {ours:>8} {(theirs or ['-'])[0]:>8} {ratio:>6}  {chosen[call]}")
    if len(sides) > 1:
        print()
        for kind in dict.fromkeys(chosen.values()):
            print(f"{kind:<12} {summary([ratio for call, ratio in ratios.items() if chosen[call] == kind])}")
        print(f"{'all':<12} {summary(list(ratios.values()))}")
    load = " to ".join(f"{each}" for each in (*before, *page.now()["load"]))
    print(f"{page.processor()}, {os.cpu_count()} cores, threads {options.threads}, load {load}")
    return 0


if __name__ == "__main__":
    serve(*sys.argv[1:])
