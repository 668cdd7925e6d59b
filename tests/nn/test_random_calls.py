"""Random calls of layers and functions of `torch.nn` with random options, run by both libraries.

A call is the text of a small program, so that a failure shows one that can be run. `CALLS` has a function for each kind
of call, which writes it; HYPOTHESIS_PROFILE=long makes 20,000 calls, from a seed that TINYTORCH_SEED sets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.oracle import needs_oracle
from tests.programs.drawn import RANDOMS, difference, executed, random_programs

pytestmark = needs_oracle

#: What a program begins with: numbers that differ from each other, and the same in both libraries.
BEGIN = """\
import torch
from torch import nn
F = nn.functional
def numbers(k, *shape):
    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 1.7 + k).reshape(shape)
torch.manual_seed(0)
"""


class Program:
    """A call that is being written: lines that make tensors, then an expression."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.leaves: list[str] = []

    # Choices ------------------------------------------------------------------------------------

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def often(self, usual: Any, *others: Any) -> Any:
        """Return the usual choice in half of the cases."""
        return usual if self.rng.random() < 0.5 else self.rng.choice(others)

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def size(self, low: int = 1, high: int = 5) -> int:
        return self.rng.randint(low, high)

    def sizes(self, count: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
        return tuple(self.size(low, high) for _ in range(count))

    def per_dim(self, count: int, low: int, high: int) -> Any:
        """Return one number for all dimensions, or one for each."""
        return self.size(low, high) if self.flag() else self.sizes(count, low, high)

    # Tensors ------------------------------------------------------------------------------------

    def tensor(self, shape: Sequence[int], change: str = "", grad: bool = True) -> str:
        """Write a line that makes a tensor, and return its name; `change` makes other numbers or another layout."""
        name = f"t{len(self.lines)}"
        shown = ", ".join(map(str, (len(self.lines), *shape)))
        end = ".requires_grad_()" if grad else ""
        self.lines.append(f"{name} = numbers({shown}){change}{end}")
        if grad:
            self.leaves.append(name)
        return name

    def whole(self, shape: Sequence[int], end: int) -> str:
        """Return integers from 0 to `end`."""
        name = self.tensor(shape, f".mul(97).long().abs().remainder({end})", grad=False)
        return name

    def image(self, shape: Sequence[int]) -> str:
        """Return a tensor, at times not contiguous."""
        name = self.tensor(shape)
        if len(shape) == 4 and self.rng.random() < 0.2:
            return f"{name}.to(memory_format=torch.channels_last)"
        if len(shape) > 2 and self.rng.random() < 0.1:
            return f"{name}.transpose(-1, -2)"
        return name

    def module(self, text: str) -> str:
        """Write a line that makes a layer, and return its name; its parameters are leaves."""
        name = f"m{len(self.lines)}"
        self.lines.append(f"{name} = {text}.double()")
        self.leaves.append(f"*{name}.parameters()")
        return name

    def options(self, **given: Any) -> str:
        """Return arguments by name, each left out at times."""
        return "".join(f", {name}={value!r}" for name, value in given.items() if self.rng.random() < 0.6)


class Text(str):
    """A text that is written as it is: a tensor's name among options."""

    def __repr__(self) -> str:
        return str(self)


def conv(p: Program) -> str:
    n = p.size(1, 3)
    groups = p.often(1, 2, 3)
    kernel = p.sizes(n, 1, 3)
    inputs, outputs = groups * p.size(1, 3), groups * p.size(1, 3)
    x = p.image((*p.one((2,), (1,), (3,), ()), inputs, *p.sizes(n, 2, 7)))
    w = p.tensor((outputs, inputs // groups, *kernel))
    b = p.tensor((outputs,)) if p.flag() else "None"
    padding = p.often(p.per_dim(n, 0, 3), "same", "valid")
    given = p.options(stride=p.often(1, p.per_dim(n, 1, 3)), padding=padding, dilation=p.per_dim(n, 1, 2))
    return f"F.conv{n}d({x}, {w}, {b}{given}, groups={groups})"


def conv_layer(p: Program) -> str:
    n = p.size(1, 3)
    kernel = p.per_dim(n, 1, 3)
    x = p.image((p.size(1, 3), 4, *p.sizes(n, 3, 6)))
    mode = p.one("zeros", "reflect", "replicate", "circular")
    given = p.options(
        stride=p.per_dim(n, 1, 2), padding=p.often(p.per_dim(n, 0, 2), "same"), dilation=p.per_dim(n, 1, 2),
        groups=p.one(1, 2, 4), bias=p.flag(), padding_mode=mode,
    )  # fmt: skip
    layer = p.module(f"nn.Conv{n}d(4, {p.one(4, 8)}, {kernel}{given})")
    return f"{layer}({x})"


def conv_transpose(p: Program) -> str:
    n = p.size(1, 3)
    groups = p.often(1, 2)
    inputs, outputs = groups * p.size(1, 3), p.size(1, 3)
    x = p.image((*p.one((2,), (1,), ()), inputs, *p.sizes(n, 1, 5)))
    w = p.tensor((inputs, outputs, *p.sizes(n, 1, 3)))
    b = p.tensor((outputs * groups,)) if p.flag() else "None"
    given = p.options(
        stride=p.per_dim(n, 1, 3), padding=p.per_dim(n, 0, 2), output_padding=p.per_dim(n, 0, 1),
        dilation=p.per_dim(n, 1, 2),
    )  # fmt: skip
    return f"F.conv_transpose{n}d({x}, {w}, {b}{given}, groups={groups})"


def pool(p: Program) -> str:
    n = p.size(1, 3)
    shape = (*p.one((2,), (1,), ()), p.size(1, 3), *p.sizes(n, 2, 7))
    x = p.image(shape) if n < 3 else p.tensor(shape)
    kernel = p.per_dim(n, 1, 3)
    shared = {"stride": p.per_dim(n, 1, 3), "padding": p.per_dim(n, 0, 1), "ceil_mode": p.flag()}
    if p.flag():
        given = p.options(**shared, dilation=p.per_dim(n, 1, 2), return_indices=p.flag())
        return f"F.max_pool{n}d({x}, {kernel}{given})"
    extra = {"divisor_override": p.one(1, 2, 5)} if n > 1 else {}
    given = p.options(**shared, count_include_pad=p.flag(), **extra)
    return f"F.avg_pool{n}d({x}, {kernel}{given})"


def adaptive_pool(p: Program) -> str:
    n = p.size(1, 3)
    x = p.image((*p.one((2,), (1,), ()), p.size(1, 3), *p.sizes(n, 1, 7)))
    size: Any = p.per_dim(n, 1, 7)
    if n > 1 and p.flag():
        size = tuple(p.often(k, None) for k in p.sizes(n, 1, 5))
    if p.flag():
        return f"F.adaptive_avg_pool{n}d({x}, {size})"
    return f"F.adaptive_max_pool{n}d({x}, {size}, return_indices={p.flag()})"


def lp_pool(p: Program) -> str:
    n = p.size(1, 3)
    x = p.image((2, p.size(1, 3), *p.sizes(n, 3, 6)))
    given = p.options(stride=p.per_dim(n, 1, 2), ceil_mode=p.flag())
    kernel = p.size(1, 3) if n == 1 else p.per_dim(n, 1, 3)
    return f"F.lp_pool{n}d({x}.abs(), {p.one(1, 2, 3.0, 1.5)}, {kernel}{given})"


def unpool(p: Program) -> str:
    n = p.size(1, 3)
    x = p.tensor((2, p.size(1, 2), *p.sizes(n, 4, 7)))
    kernel, stride = p.size(2, 3), p.size(1, 3)
    p.lines.append(f"y, i = F.max_pool{n}d({x}, {kernel}, {stride}, return_indices=True)")
    size = f", output_size={x}.shape" if p.flag() else ""
    return f"F.max_unpool{n}d(y, i, {kernel}, {stride}{size})"


def fractional(p: Program) -> str:
    n = p.size(2, 3)
    channels = p.size(1, 3)
    x = p.image((2, channels, *p.sizes(n, 4, 7)))
    samples = p.tensor((2, channels, n), ".abs().clamp(max=0.99)", grad=False)
    ratio = tuple(p.one(0.5, 0.6, 0.3) for _ in range(n))
    which = p.one(f"output_size={p.per_dim(n, 1, 3)}", f"output_ratio={ratio}")
    return (
        f"F.fractional_max_pool{n}d({x}, {p.per_dim(n, 1, 2)}, {which}, _random_samples={samples}, "
        f"return_indices={p.flag()})"
    )


def interpolate(p: Program) -> str:
    n = p.size(1, 3)
    antialias = n == 2 and p.rng.random() < 0.3  # (wrong in PyTorch where a width is 1)
    x = p.image((p.size(1, 2), p.size(1, 3), *p.sizes(n, 4 if antialias else 2, 6)))
    modes = {1: ("linear",), 2: ("bilinear", "bicubic"), 3: ("trilinear",)}[n]
    mode = p.one("nearest", "nearest-exact", "area", *modes, *modes)
    if p.flag():
        text = f"size={p.per_dim(n, 2 if antialias else 1, 9)}"
    else:
        factor = p.one(0.5, 2, 1.5, 0.7, 3.3)
        text = f"scale_factor={p.often(factor, tuple(p.one(0.6, 1.5, 2.7) for _ in range(n)))}"
        text += p.options(recompute_scale_factor=p.flag())
    if mode in modes:
        text += p.options(align_corners=p.flag())
    if antialias:
        text += f", antialias={p.flag()}"
    return f"F.interpolate({x}, {text}, mode={mode!r})"


def pad(p: Program) -> str:
    dims = p.size(1, 3)
    x = p.image((*p.one((2, 3), (3,), (2, 2, 2), ()), *p.sizes(dims, 1, 6)))
    mode = p.one("constant", "reflect", "replicate", "circular")
    low = -2 if mode != "circular" and p.rng.random() < 0.2 else 0
    amounts = tuple(p.size(low, 3) for _ in range(2 * p.often(dims, p.size(1, 3))))
    value = f", {p.one(0, 1.5, -2)}" if mode == "constant" and p.flag() else ""
    return f"F.pad({x}, {amounts}, {mode!r}{value})"


def grid(p: Program) -> str:
    n = p.size(2, 3)
    out = p.sizes(n, 1, 4)
    x = p.image((2, p.size(1, 2), *p.sizes(n, 1, 5)))
    given = p.options(
        mode=p.one("bilinear", "nearest", "bicubic"), padding_mode=p.one("zeros", "border", "reflection"),
        align_corners=p.flag(),
    )  # fmt: skip
    if p.flag():
        g = p.tensor((2, *out, n), ".mul(1.3)")
    else:
        theta = p.tensor((2, n, n + 1))
        size = (2, 1, *out)
        g = f"F.affine_grid({theta}, {size}{p.options(align_corners=p.flag())})"
    return f"F.grid_sample({x}, {g}{given})"


def unfold(p: Program) -> str:
    given = p.options(dilation=p.per_dim(2, 1, 2), padding=p.per_dim(2, 0, 2), stride=p.per_dim(2, 1, 3))
    kernel = p.per_dim(2, 1, 3)
    x = p.image((*p.often((2,), ()), p.size(1, 3), *p.sizes(2, 2, 6)))
    if p.flag():
        return f"F.unfold({x}, {kernel}{given})"
    p.lines.append(f"columns = F.unfold({x}, {kernel}{given})")
    return f"F.fold(columns, {x}.shape[-2:], {kernel}{given})"


def shuffle(p: Program) -> str:
    r = p.size(1, 3)
    kind = p.one("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
    sizes = p.sizes(2, 1, 3)
    if kind == "pixel_unshuffle":
        return f"F.{kind}({p.image((2, 2, sizes[0] * r, sizes[1] * p.often(r, 2)))}, {r})"
    channels = p.size(1, 2) * (r * r if kind == "pixel_shuffle" else r)
    return f"F.{kind}({p.image((*p.often((2,), ()), p.often(channels, 5), *sizes))}, {r})"


def norm(p: Program) -> str:
    channels = p.one(2, 4, 6)
    x = p.image((p.size(1, 3), channels, *p.sizes(p.size(0, 3), 1, 4)))
    w, b = (Text(p.tensor((channels,))) for _ in range(2))
    kind = p.one("batch", "group", "instance")
    if kind == "group":
        both = f", {w}, {b}" if p.flag() else ""
        return f"F.group_norm({x}, {p.one(1, 2, 3)}{both}{p.options(eps=0.1)})"
    mean = Text(p.tensor((channels,), grad=False))
    variance = Text(p.tensor((channels,), ".abs()", grad=False))
    if kind == "batch":
        given = p.options(weight=w, bias=b, training=p.flag(), momentum=p.one(0.0, 0.3), eps=0.01)
        return f"[F.batch_norm({x}, {mean}, {variance}{given}), {mean}, {variance}]"
    stats = p.flag()
    running = f", {mean}, {variance}" if p.flag() or not stats else ""
    given = p.options(weight=w, bias=b, momentum=0.3, eps=0.01)
    return f"[F.instance_norm({x}{running}, use_input_stats={stats}{given}), {mean}, {variance}]"


def norm_layer(p: Program) -> str:
    n = p.size(1, 3)
    kind = p.one("Batch", "Instance")
    given = p.options(
        momentum=p.one(None, 0.2) if kind == "Batch" else 0.2, affine=p.flag(), track_running_stats=p.flag(), eps=0.01
    )
    layer = p.module(f"nn.{kind}Norm{n}d(3{given})")
    x = p.image((*p.often((2,), ()), 3, *p.sizes(n, 1, 4)))
    p.lines.append(f"{layer}({x}); {layer}.train({p.flag()})")
    return f"[{layer}({x}), *{layer}.buffers()]"


def shape_norm(p: Program) -> str:
    shape = p.sizes(p.size(1, 2), 1, 5)
    x = p.image((*p.sizes(p.size(0, 2), 1, 4), *shape))
    w, b = (Text(p.tensor(shape)) for _ in range(2))
    if p.flag():
        return f"F.rms_norm({x}, {shape}{p.options(weight=w, eps=p.one(0.1, None))})"
    return f"F.layer_norm({x}, {shape}{p.options(weight=w, bias=b, eps=0.1)})"


def other_norm(p: Program) -> str:
    x = p.image(p.sizes(p.size(2, 4), 1, 5))
    if p.flag():
        return f"F.normalize({x}{p.options(p=p.one(1, 2, 3.0), dim=p.one(0, 1, -1), eps=0.1)})"
    given = p.options(alpha=0.1, beta=p.one(0.5, 0.75), k=p.one(1.0, 2.0))
    return f"F.local_response_norm({x}, {p.size(1, 4)}{given})"


def activation(p: Program) -> str:
    x = p.image(p.sizes(p.size(1, 4), 1, 5))
    a, b = p.one(0.1, 0.5, 1.5, -0.3), p.one(0.2, 1.0, 2.5)
    return str(p.one(
        f"F.elu({x}{p.options(alpha=a)})", f"F.celu({x}{p.options(alpha=p.one(0.5, 2.0))})", f"F.selu({x})",
        f"F.gelu({x}{p.options(approximate=p.one('none', 'tanh'))})", f"F.leaky_relu({x}{p.options(negative_slope=a)})",
        f"F.hardtanh({x}{p.options(min_val=-b, max_val=b)})", f"F.softplus({x}{p.options(beta=b, threshold=1)})",
        f"F.threshold({x}, {a}, {b})", f"F.hardshrink({x}{p.options(lambd=abs(a))})", f"F.relu6({x} * 9)",
        f"F.softshrink({x}{p.options(lambd=abs(a))})", f"F.silu({x})", f"F.mish({x})", f"F.hardswish({x} * 4)",
f"F.logsigmoid({x})", f"F.softsign({x})", f"F.tanhshrink({x})",
        f"F.rrelu({x}{p.options(lower=0.1, upper=0.3)})", f"F.glu({x}{p.options(dim=p.one(0, -1))})",
        f"F.softmax({x}, {p.one(0, -1, 1)})", f"F.log_softmax({x}, {p.one(0, -1, 1)})", f"F.softmin({x}, 0)",
        f"F.prelu({x}, {p.tensor((p.one(1, 2, 3),))})", f"F.dropout({x}, {p.one(0.0, 0.5, 1.0)}, {p.flag()})",
        f"F.alpha_dropout({x}, 0.3, {p.flag()})", f"F.feature_alpha_dropout({x}, 0.3, {p.flag()})",
        f"F.dropout1d({x}, 0.3)", f"F.dropout2d({x}, 0.3)", f"F.dropout3d({x}, 0.3)",
        f"F.gumbel_softmax({x}{p.options(tau=b, hard=p.flag(), dim=p.one(0, -1))})",
    ))  # fmt: skip


def elementwise_loss(p: Program) -> str:
    shape = p.sizes(p.size(0, 3), 1, 4)
    x, y = p.image(shape), p.tensor(shape)
    w = Text(p.tensor(shape, ".abs()", grad=False))
    how = p.options(reduction=p.one("none", "mean", "sum"))
    legacy = p.options(size_average=p.flag(), reduce=p.flag()) if p.rng.random() < 0.1 else ""
    unit = f"{y}.sigmoid()"
    return str(p.one(
        f"F.mse_loss({x}, {y}{how}{legacy})", f"F.l1_loss({x}, {y}{how}{legacy})",
        f"F.smooth_l1_loss({x}, {y}{how}{p.options(beta=p.one(0.0, 0.5, 2.0))})",
        f"F.huber_loss({x}, {y}{how}{p.options(delta=p.one(0.3, 2.0))})",
        f"F.mse_loss({x}, {y}{p.options(weight=w)}{how})",
        f"F.l1_loss({x}, {y}{p.options(weight=w)}{how})",
        f"F.binary_cross_entropy({x}.sigmoid(), {unit}{p.options(weight=w)}{how})",
        f"F.binary_cross_entropy_with_logits({x}, {unit}{p.options(weight=w, pos_weight=w)}{how})",
        f"F.poisson_nll_loss({x}, {y}.abs(){p.options(log_input=p.flag(), full=p.flag(), eps=0.1)}{how})",
        f"F.gaussian_nll_loss({x}, {y}, {w}{p.options(full=p.flag(), eps=0.1)}{how})",
        f"F.kl_div({x}, {y}{p.options(log_target=p.flag())}{how})",
        f"F.kl_div({x}, {unit}{p.options(reduction=p.one('batchmean', 'sum'))})",
        f"F.hinge_embedding_loss({x}, {y}.sign(){p.options(margin=p.one(0.3, 1.0))}{how})",
        f"F.soft_margin_loss({x}, {y}.sign(){how}{legacy})",
    ))  # fmt: skip


def class_loss(p: Program) -> str:
    classes = p.size(2, 5)
    places = p.sizes(p.often(0, 1, 2), 1, 3)
    batch = p.often((p.size(1, 4),), ()) if not places else (p.size(1, 3),)
    x = p.tensor((*batch, classes, *places))
    w = Text(p.tensor((classes,), ".abs()", grad=False))
    ignored = p.one(-100, 0, 1)
    target = p.whole((*batch, *places), classes)
    given = p.options(weight=w, reduction=p.one("none", "mean", "sum"))
    if p.flag():
        return f"F.nll_loss({x}{given.join((f', {target}', p.options(ignore_index=ignored)))})"
    smooth = p.options(label_smoothing=p.one(0.0, 0.1, 0.5))
    if p.rng.random() < 0.3:
        soft = f"{p.tensor((*batch, classes, *places))}.softmax({0 if not batch else 1})"
        return f"F.cross_entropy({x}, {soft}{given}{smooth})"
    return f"F.cross_entropy({x}, {target}{given}{smooth}{p.options(ignore_index=ignored)})"


def margin_loss(p: Program) -> str:
    n, classes = p.size(1, 4), p.size(2, 5)
    x, y, z = (p.image((n, classes)) for _ in range(3))
    how = p.options(reduction=p.one("none", "mean", "sum"))
    margin = p.options(margin=p.one(0.2, 1.0))
    sign = f"{p.tensor((n,), grad=False)}.sign()"
    label = p.whole((n,), classes)
    several = p.whole((n, classes), 2)
    w = Text(p.tensor((classes,), ".abs()", grad=False))
    return str(p.one(
        f"F.cosine_embedding_loss({x}, {y}, {sign}{margin}{how})",
        f"F.margin_ranking_loss({x}[:, 0], {y}[:, 1], {sign}{margin}{how})",
        f"F.triplet_margin_loss({x}, {y}, {z}{margin}{p.options(p=p.one(1, 2, 3.0), swap=p.flag(), eps=1e-3)}{how})",
        f"F.triplet_margin_with_distance_loss({x}, {y}, {z}{margin}{p.options(swap=p.flag())}{how})",
        f"F.multi_margin_loss({x}, {label}{p.options(p=p.one(1, 2), weight=w)}{margin}{how})",
        f"F.multilabel_margin_loss({x}, {several}{how})",
        f"F.multilabel_soft_margin_loss({x}, {several}.double(){p.options(weight=w)}{how})",
        f"F.cosine_similarity({x}, {y}{p.options(dim=p.one(0, 1, -1), eps=0.1)})",
        f"F.pairwise_distance({x}, {y}{p.options(p=p.one(1, 2, 3.0, 0.5), eps=0.01, keepdim=p.flag())})",
        f"torch.cdist({x}, {y}{p.options(p=p.one(0.0, 1.0, 2.0, 3.0, Text('torch.inf')))})",
        f"F.pdist({x})",
    ))  # fmt: skip


def ctc(p: Program) -> str:
    steps, n, classes, length = p.size(4, 8), p.size(1, 3), p.size(3, 5), p.size(1, 3)
    x = p.tensor((steps, n, classes), ".mul(3)")
    blank = p.one(0, classes - 1)
    labels = f"({p.whole((n, length), classes - 1)} + {int(blank == 0)})"
    lengths = [p.size(0, length) for _ in range(n)]
    inputs = [p.size(2, steps) for _ in range(n)]
    given = p.options(reduction=p.one("none", "mean", "sum"), zero_infinity=p.flag())
    return f"F.ctc_loss({x}.log_softmax(2), {labels}, {inputs}, {lengths}, {blank}{given})"


def embedding(p: Program) -> str:
    rows, width = p.size(2, 6), p.size(1, 4)
    w = p.tensor((rows, width))
    given = p.options(padding_idx=p.one(0, -1, 1))
    if p.flag():
        given += p.options(scale_grad_by_freq=p.flag())
        return f"F.embedding({p.whole(p.sizes(p.size(0, 3), 1, 4), rows)}, {w}{given})"
    mode = p.one("sum", "mean", "max")
    if p.flag():
        shape = p.sizes(2, 1, 4)
        index, where = p.whole(shape, rows), ""
    else:
        shape = (p.size(1, 7),)
        starts = sorted(p.size(0, shape[0]) for _ in range(p.size(0, 3)))
        index = p.whole(shape, rows)
        last = p.flag()
        starts += shape if last else ()
        where = f", offsets=torch.tensor({[0, *starts]}), include_last_offset={last}"
    if mode == "sum" and p.flag():
        where += f", per_sample_weights={p.tensor(shape)}"
    return f"F.embedding_bag({index}, {w}{where}, mode={mode!r}{given})"


def recurrent(p: Program) -> str:
    kind = p.one("LSTM", "GRU", "RNN")
    layers, both, first = p.size(1, 2), p.flag(), p.flag()
    given = {"num_layers": layers, "bidirectional": both, "batch_first": first}
    text = ", ".join(f"{name}={value}" for name, value in given.items())
    text += p.options(bias=p.flag())
    projected = kind == "LSTM" and p.rng.random() < 0.3
    if projected:
        text += ", proj_size=2"
    if kind == "RNN":
        text += p.options(nonlinearity=p.one("tanh", "relu"))
    layer = p.module(f"nn.{kind}(3, 4, {text})")
    n, steps = p.size(1, 3), p.size(1, 4)
    way = p.one("batched", "plain", "packed")
    lead = () if way == "plain" else (n,)
    shape = (steps, 3) if way == "plain" else ((n, steps, 3) if first else (steps, n, 3))
    x = p.tensor(shape)
    state = ""
    if p.flag():
        count = layers * (1 + both)
        h = p.tensor((count, *lead, 2 if projected else 4))
        state = f", ({h}, {p.tensor((count, *lead, 4))})" if kind == "LSTM" else f", {h}"
    if way == "packed":
        lengths = [p.size(1, steps) for _ in range(n)]
        p.lines.append(
            f"packed = nn.utils.rnn.pack_padded_sequence({x}, {lengths}, batch_first={first}, enforce_sorted=False)"
        )
        p.lines.append(f"y, last = {layer}(packed{state})")
        given_back = p.options(batch_first=first, padding_value=p.one(0.0, 2.5), total_length=steps)
        return f"[*nn.utils.rnn.pad_packed_sequence(y{given_back}), last]"
    return f"{layer}({x}{state})"


def cell(p: Program) -> str:
    kind = p.one("LSTM", "GRU", "RNN")
    layer = p.module(f"nn.{kind}Cell(3, 4{p.options(bias=p.flag())})")
    lead = p.often((p.size(1, 3),), ())
    x, h = p.tensor((*lead, 3)), p.tensor((*lead, 4))
    state = f"({h}, {p.tensor((*lead, 4))})" if kind == "LSTM" else h
    return f"{layer}({x}{p.often(f', {state}', '')})"


def attention(p: Program) -> str:
    heads = p.one(1, 2, 4)
    lead = p.often((2, heads), (heads,), (), (2, 1, heads))
    rows, columns, width = p.size(1, 5), p.size(1, 5), p.size(1, 4)
    q, k = p.image((*lead, rows, width)), p.image((*lead, columns, width))
    v = p.image((*lead, columns, p.often(width, 3)))
    mask = Text(p.one(
        f"({p.tensor((rows, columns), grad=False)} > -0.5)", p.tensor((rows, columns)),
        f"({p.tensor((*lead, 1, columns), grad=False)} > 0)",
    ))  # fmt: skip
    causal = p.rng.random() < 0.3
    given = p.options(scale=p.one(0.3, 1.0), dropout_p=0.0) + (
        ", is_causal=True" if causal else p.options(attn_mask=mask)
    )
    return f"F.scaled_dot_product_attention({q}, {k}, {v}{given})"


def heads(p: Program) -> str:
    first, width, keys, values = p.flag(), p.one(4, 8), p.often(None, 3), p.often(None, 5)
    n, rows, columns = p.size(1, 3), p.size(1, 4), p.size(1, 4)
    given = p.options(bias=p.flag(), add_bias_kv=p.flag(), add_zero_attn=p.flag())
    layer = p.module(
        f"nn.MultiheadAttention({width}, {p.one(1, 2, 4)}, kdim={keys}, vdim={values}, batch_first={first}{given})"
    )
    batched = p.rng.random() < 0.8

    def of(length: int, size: int) -> str:
        if not batched:
            return p.tensor((length, size))
        return p.tensor((n, length, size) if first else (length, n, size))

    q, k, v = of(rows, width), of(columns, keys or width), of(columns, values or width)
    padding = Text(f"({p.tensor(((n,) if batched else ()) + (columns,), grad=False)} > 0.5)")
    mask = Text(p.one(f"({p.tensor((rows, columns), grad=False)} > 0.7)", p.tensor((rows, columns), grad=False)))
    call = p.options(key_padding_mask=padding, attn_mask=mask, need_weights=p.flag(), average_attn_weights=p.flag())
    p.lines.append(f"{layer}.train({p.flag()})")
    return f"{layer}({q}, {k}, {v}{call})"


def transformer(p: Program) -> str:
    first = p.flag()
    given = p.options(
        dim_feedforward=6, activation=p.one("relu", "gelu"), norm_first=p.flag(), bias=p.flag(), batch_first=first
    )
    if "batch_first" not in given:
        first = False
    n, rows, columns = p.size(1, 2), p.size(1, 4), p.size(1, 4)

    def of(length: int) -> str:
        return p.tensor((n, length, 4) if first else (length, n, 4))

    x = of(rows)
    padding = Text(f"({p.tensor((n, rows), grad=False)} > 0.5)")
    causal = Text(f"nn.Transformer.generate_square_subsequent_mask({rows}, dtype=torch.float64)")
    kind = p.one("Encoder", "Decoder", "layers", "Both")
    p.lines.append("torch.manual_seed(1)")
    if kind == "Both":
        layer = p.module(f"nn.Transformer(4, 2, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0{given})")
        call = p.options(tgt_mask=causal, tgt_key_padding_mask=padding)
        return f"{layer}({of(columns)}, {x}{call})"
    if kind == "Decoder":
        layer = p.module(f"nn.TransformerDecoderLayer(4, 2, dropout=0.0{given})")
        call = p.options(tgt_mask=causal, tgt_key_padding_mask=padding)
        return f"{layer}({x}, {of(columns)}{call})"
    text = f"nn.TransformerEncoderLayer(4, 2, dropout=0.0{given})"
    if kind == "layers":
        text = f"nn.TransformerEncoder({text}, 2, enable_nested_tensor=False)"
        call = p.options(mask=causal, src_key_padding_mask=padding)
    else:
        call = p.options(src_mask=causal, src_key_padding_mask=padding)
    layer = p.module(text)
    p.lines.append(f"{layer}.train({p.flag()})")
    return f"{layer}({x}{call})"


def linear(p: Program) -> str:
    a, b, out = p.size(1, 4), p.size(1, 4), p.size(1, 4)
    lead = p.sizes(p.size(0, 3), 1, 4)
    bias = p.options(bias=Text(p.tensor((out,))))
    if p.flag():
        return f"F.linear({p.image((*lead, a))}, {p.tensor((out, a))}{bias})"
    return f"F.bilinear({p.image((*lead, a))}, {p.image((*lead, b))}, {p.tensor((out, a, b))}{bias})"


CALLS: list[Callable[[Program], str]] = [
    activation, adaptive_pool, attention, cell, class_loss, conv, conv_layer, conv_transpose, ctc, elementwise_loss,
    embedding, fractional, grid, heads, interpolate, linear, lp_pool, margin_loss, norm, norm_layer, other_norm, pad,
    pool, recurrent, shape_norm, shuffle, transformer, unfold, unpool,
]  # fmt: skip

END = """
def tensors(x):
    if isinstance(x, (list, tuple)):
        return [t for each in x for t in tensors(each)]
    return [x] if isinstance(x, torch.Tensor) else []
out = tensors(out)
loss = sum((t * numbers(0, *t.shape)).sum() for t in out if t.requires_grad)
leaves = [{leaves}]
grads = torch.autograd.grad(loss, leaves, allow_unused=True) if out[0].requires_grad else []
"""


def text_of(call: Callable[[Program], str], rng: random.Random) -> str:
    p = Program(rng)
    result = call(p)
    lines = "\n".join(p.lines)
    return f"{BEGIN}{lines}\nout = {result}{END.replace('{leaves}', ', '.join(p.leaves))}"


#: Words of PyTorch's errors for calls that tinytorch has an answer for.
ANSWERED = ("Expected grad_output to have non-zero size",)


def outcome(text: str, library: str) -> Any:
    """Return the results and gradients of a program, or its error."""
    names, error = executed(text, library)
    return error or [*names["out"], *names["grads"]]


def agree(text: str) -> None:
    """Assert that both libraries give the same results and gradients, or errors of one class."""
    ours, theirs = outcome(text, "tinytorch"), outcome(text, "torch")
    if isinstance(theirs, Exception):
        answered = any(words in str(theirs) for words in ANSWERED)
        found = None if answered or type(ours) is type(theirs) else f"{ours!r} against {theirs!r}"
    else:
        found = difference(ours, theirs)
    assert found is None, f"{found}\n\n{text}"


@random_programs(500, st.sampled_from(CALLS), RANDOMS)
def test_random_calls_agree(call: Callable[[Program], str], rng: random.Random) -> None:
    agree(text_of(call, rng))
