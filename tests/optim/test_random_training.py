"""Random programs of training, run by both libraries: optimizers, schedulers, clipping, scalers, init, pruning.

A program is text, so that a failure shows one that can be run; it notes in `out` what is to be compared, errors among
it. `CALLS` has a function for each kind, which writes it; HYPOTHESIS_PROFILE=long makes 20,000 programs, from a seed
that TINYTORCH_SEED sets. What PyTorch does wrong, or leaves to rounding, is not written; comments say where.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.nn.test_random_calls import Program as Calls
from tests.nn.test_random_calls import Text
from tests.oracle import needs_oracle
from tests.programs.drawn import difference, executed, random_programs

pytestmark = needs_oracle

BEGIN = """\
import copy, io, math, pickle
import torch
import torch.nn.utils.prune as prune
from torch import nn
S, U, P = torch.optim.lr_scheduler, torch.optim.swa_utils, torch.nn.utils.parametrizations
out = []
def seen(x):
    if isinstance(x, torch.Tensor):
        return x.detach().clone()
    if isinstance(x, dict):
        return [[k, seen(v)] for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(seen, x)]
    return x if isinstance(x, (bool, int, float, str, type(None))) else type(x).__name__
def note(f):
    try:
        out.append(seen(f()))
    except Exception as error:
        out.append(error)
def numbers(k, *shape, dtype=torch.float64):
    n = torch.Size(shape).numel()
    return torch.sin(torch.arange(n, dtype=torch.float64) ** 1.5 * 1.7 + k).reshape(shape).to(dtype)
torch.manual_seed(3)
"""


class Program(Calls):
    """A program that is being written."""

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def k(self) -> int:
        return self.rng.randint(0, 99)

    def write(self, *lines: str) -> None:
        self.lines += lines

    def note(self, text: str) -> None:
        """Write that the value of an expression, or its error, is noted."""
        self.lines.append(f"note(lambda: {text})")

    def some(self, **given: Any) -> dict[str, Any]:
        return {name: value for name, value in given.items() if self.chance(0.5)}


def written(options: dict[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items())


def rate(p: Program, wrong: bool) -> Any:
    if wrong and p.chance(0.05):
        return p.one(-1.0, Text("math.nan"), Text("torch.tensor([0.1, 0.2])"), None)
    lr = p.one(0.1, 0.01, 0.5, 1, 0.0)
    if wrong and p.chance(0.2):
        return Text(p.one(f"torch.tensor({lr}, dtype=torch.float64)", f"torch.tensor([{lr}])"))
    return lr


def options_of(p: Program, kind: str, inner: bool = False) -> dict[str, Any]:
    """Return random options of an optimizer, some wrong; `inner` those of a group or of a later change."""
    wrong = not inner and p.chance(0.05)
    lr, decay, eps = rate(p, not inner), p.one(0, 0.1, 0.5), p.one(1e-8, 1e-3, 0.1)
    betas: Any = p.one((0.9, 0.99), (0.5, 0.9), (0.0, 0.5), (0.9, 0.0), [0.8, 0.9])
    if wrong:
        decay, eps = p.one(-0.1, decay), p.one(-1e-3, Text("math.nan"), eps)
        betas = p.one((1.0, 0.9), (0.9, -0.1), betas)
    how: dict[str, Any] = {"weight_decay": decay, "maximize": p.flag()}
    if not inner:
        how["foreach"] = p.one(None, True, False)
    capturable = {"capturable": True} if wrong else {}
    if kind == "SGD":
        # Not written: PyTorch's foreach changes the gradients by nesterov, its fused step needs all buffers or none.
        momentum = p.one(0, 0.9, 0.5, -1 if wrong else 1)
        if inner:
            return p.some(lr=lr, **how)
        nesterov = p.chance(0.3)
        if nesterov:
            how.pop("foreach")
        elif not momentum and p.flag():
            how["fused"] = True
        return {"momentum": momentum, "nesterov": nesterov} | p.some(
            lr=lr, dampening=0 if nesterov and p.flag() else 0.3, **how
        )
    if kind == "LBFGS":  # few iterations: it goes far from a difference in the last bit
        search = p.one(None, "strong_wolfe", "other" if wrong else None)
        return {"lr": p.one(1, 0.5, 0.3), "max_iter": p.size(1, 4), "line_search_fn": search} | p.some(
            max_eval=p.one(None, 2, 3), tolerance_grad=p.one(1e-7, 0.5), tolerance_change=0.1, history_size=p.size(1, 3)
        )
    if kind == "Muon":
        decay = {"weight_decay": decay}
        steps, adjust = (p.one(5, 1, 2, 100 if wrong else 3), p.one(None, "match_rms_adamw", "x" if wrong else None))
        return p.some(lr=lr, momentum=p.one(0.95, 0.5, 0), nesterov=p.flag(), ns_steps=steps, adjust_lr_fn=adjust, **decay)  # fmt: skip  # noqa: E501
    if kind == "Adafactor":
        first, d = (p.one((None, 1e-3), (1e-6, 0.1), (-1.0, 0.1) if wrong else (1e-3, 0.1)), 0.5 if wrong else 2.0)
        return p.some(lr=lr, beta2_decay=p.one(-0.8, -0.5, 0.1 if wrong else -1.0), eps=first, d=d, **how)
    own: dict[str, dict[str, Any]] = {
        "Adadelta": {"rho": p.one(0.5, 0.9, 0.0, 1.5 if wrong else 1.0), "eps": eps},
        "Adagrad": {"lr_decay": p.one(0, 0.1), "initial_accumulator_value": p.one(0, 0.5), "eps": eps},
        "Adam": {"betas": betas, "eps": eps, "amsgrad": p.flag(), "decoupled_weight_decay": p.flag()},
        "AdamW": {"betas": betas, "eps": eps, "amsgrad": p.flag()}, "Adamax": {"betas": betas, "eps": eps},
        "ASGD": {"lambd": p.one(1e-4, 0.1), "alpha": p.one(0.75, 0, 2), "t0": p.one(1e6, 0, 1, 2.5)},
        "NAdam": {"betas": betas, "eps": eps, "momentum_decay": p.one(0.004, 0.1), "decoupled_weight_decay": p.flag()},
        "RAdam": {"betas": betas, "eps": eps, "decoupled_weight_decay": p.flag()},
        "RMSprop": {"alpha": p.one(0.99, 0.5), "eps": p.one(1e-3, 0.1), "momentum": p.one(0, 0.9), "centered": p.flag()},  # noqa: E501
        "Rprop": {"etas": p.one((0.5, 1.2), (0.3, 1.5)), "step_sizes": p.one((1e-6, 50), (0.01, 0.05))},
    }  # fmt: skip
    if kind == "Rprop":
        how.pop("weight_decay")
    if kind in ("Adam", "AdamW", "Adagrad") and not inner and p.chance(0.2):
        how = {"fused": True, "weight_decay": decay} | ({"foreach": True} if wrong else {})
    if kind == "Adagrad":
        capturable = {}
    return p.some(lr=lr, **own[kind], **how, **capturable)


OPTIMIZERS = [
    "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam",
    "RMSprop", "Rprop", "SGD",
]  # fmt: skip


def optimizer(p: Program) -> None:
    """Steps of an optimizer, between them what programs do to it: groups, loading, copies, other options …"""
    kind = p.one(*OPTIMIZERS)
    dtype = "float64" if kind == "LBFGS" else p.often("float64", "float32", "bfloat16")
    if dtype == "bfloat16" and kind in ("Muon", "RMSprop", "NAdam"):  # PyTorch's Muon changes its buffers then
        dtype = "float32"
    named, params = p.chance(0.1), []

    def group() -> str:
        names = []
        for _ in range(p.size(1, 3)):
            shape = p.often((p.size(1, 4), p.size(1, 4)), (), (5,), (p.size(0, 2),), (2, p.size(0, 2), 2))
            if kind == "Muon" or (kind in ("LBFGS", "Adafactor") and 0 in shape):  # PyTorch's divides by the size
                shape = (3, 2)
            name = f"w{len(params)}"
            shown = ", ".join(map(str, (p.k(), *shape)))
            p.write(f"{name} = numbers({shown}, dtype=torch.{dtype}).requires_grad_({p.chance(0.9)})")
            params.append(name)
            names.append(f"({name!r}, {name})" if named else name)
        return f"[{', '.join(names)}]"

    def described() -> str:
        shown = "".join(f", {k!r}: {v!r}" for k, v in options_of(p, kind, True).items())
        return f"{{'params': {group()}{shown if kind != 'LBFGS' else ''}}}"

    start = group() if kind == "LBFGS" or p.flag() else f"[{described()}, {described()}]"
    p.write("def every(): return [w for g in o.param_groups for w in g['params']]")
    p.write(f"o = torch.optim.{kind}({start}{written(options_of(p, kind))})")
    for _ in range(p.size(1, 4)):
        if kind == "LBFGS" or p.chance(0.2):
            p.write(
                "def closure():", "    o.zero_grad()",
                f"    loss = sum(((w - numbers({p.k()}, *w.shape)) ** 2).sum() for w in every())",
                "    loss.backward()", "    return loss", "out.append(seen(o.step(closure)))",
            )  # fmt: skip
        else:
            if p.flag():
                p.write(*(f"{n}.grad = numbers({p.k()}, *{n}.shape, dtype={n}.dtype)" for n in params if p.chance(0.8)))
            else:
                p.note(f"sum((w.sin() * numbers({p.k()}, *w.shape)).sum() for w in every()).backward()")
            p.write("o.step()")
        for _ in range(p.size(0, 2)):
            one, later = p.one(*params), list(options_of(p, kind, True).items())[:1]
            other = f"torch.optim.{kind}([{{'params': g['params']}} for g in o.param_groups]{written(options_of(p, kind, True))})"  # noqa: E501
            p.write(p.one(
                f"note(lambda: o.zero_grad({p.one('', 'set_to_none=False', 'True')}))", "note(lambda: o.state_dict())",
                f"saved = o.state_dict(); o = {other}; o.load_state_dict(saved)", "note(lambda: repr(o))",
                "saved = copy.deepcopy(o.state_dict()); o.load_state_dict(saved)", f"{one}.requires_grad_({p.flag()})",
                f"note(lambda: {one}.data.mul_(0.5))", f"{one}.grad = None", f"o.state.pop({one}, None)",
                f"o.register_step_{p.one('pre', 'post')}_hook(lambda o, a, k: out.append([len(a), sorted(k)]))",
                "o.register_state_dict_post_hook(lambda o, d: {**d, 'more': 1})",
                "b = io.BytesIO(); torch.save(o.state_dict(), b); b.seek(0); o.load_state_dict(torch.load(b))",
            ))  # fmt: skip
            if kind != "LBFGS":  # PyTorch's copies of it cannot step, and it takes one group
                p.write(
                    *(f"o.param_groups[{p.one(0, -1)}][{k!r}] = {v!r}" for k, v in later if k in ("lr", "eps", "betas"))
                )
                if p.chance(0.3):
                    more = f"o.add_param_group({described()})"
                    p.write(p.one("o = copy.deepcopy(o)", "o = pickle.loads(pickle.dumps(o))", more))
    p.note("[every(), [w.grad for w in every()], [w.requires_grad for w in every()], o.state_dict()]")


FUNCTIONS = ("lambda e: 0.95 ** e", "lambda e: 1 / (e + 1)", "lambda e: 0.5 if e < 3 else 0.1")
SCHEDULERS = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR",
    "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "SWALR", "CyclicLR", "OneCycleLR", "ReduceLROnPlateau",
]  # fmt: skip


def scheduler_of(p: Program, kind: str, groups: int, wrong: bool = False) -> str:
    wrong = wrong and p.chance(0.1)
    if kind in ("LambdaLR", "MultiplicativeLR"):
        several = [Text(p.one(*FUNCTIONS)) for _ in range(groups + wrong)]
        given = f", {several if wrong or p.flag() else several[0]}"
    elif kind == "CyclicLR":
        given = f", {p.one(0.1, [0.05] * groups)}, 0.5, {p.size(1, 3)}" + p.options(
            step_size_down=p.size(1, 3), mode=p.one("triangular", "triangular2", "x" if wrong else "exp_range"),
            gamma=0.9, scale_fn=Text(FUNCTIONS[0]), scale_mode=p.one("cycle", "iterations"), cycle_momentum=p.flag(),
        )  # fmt: skip
    elif kind == "OneCycleLR":
        length = p.one(
            f"total_steps={p.size(2, 9)}",
            f"epochs={p.size(1, 3)}, steps_per_epoch=3",
            "epochs=2" if wrong else "total_steps=5",
        )
        given = f", {p.one(0.5, [0.5] * groups)}, {length}" + p.options(
            pct_start=p.one(0.3, 0.5, 2.0 if wrong else 0.1), anneal_strategy=p.one("cos", "x" if wrong else "linear"),
            cycle_momentum=p.flag(), div_factor=p.one(10, 2), final_div_factor=10, three_phase=p.flag(),
        )  # fmt: skip
    elif kind == "ReduceLROnPlateau":
        given = p.options(
            mode=p.one("min", "max"), factor=1.0 if wrong else 0.5, patience=p.size(0, 2), threshold=p.one(1e-4, 0.5),
            threshold_mode=p.one("rel", "abs"), cooldown=p.size(0, 2), min_lr=p.one(0.01, [0.01] * (groups + wrong)),
        )  # fmt: skip
    else:
        given = {
            "StepLR": lambda: f", {p.size(1, 4)}" + p.options(gamma=p.one(0.5, 2)),
            "MultiStepLR": lambda: f", {[p.size(0, 8) for _ in range(3)]}" + p.options(gamma=0.5),
            "ConstantLR": lambda: p.options(factor=-0.1 if wrong else 0.5, total_iters=p.size(0, 4)),
            "LinearLR": lambda: p.options(start_factor=0 if wrong else 0.5, end_factor=p.one(0, 0.1), total_iters=p.size(1, 5)),  # noqa: E501
            "ExponentialLR": lambda: f", {p.one(0.9, 0.5, 1.1)}",
            "PolynomialLR": lambda: p.options(total_iters=p.size(1, 5), power=p.one(0.5, 2, 3)),
            "CosineAnnealingLR": lambda: f", {p.size(1, 5)}" + p.options(eta_min=0.01),
            "CosineAnnealingWarmRestarts": lambda: f", {0 if wrong else p.size(1, 3)}" + p.options(T_mult=p.size(1, 3), eta_min=0.01),  # noqa: E501
            "SWALR": lambda: f", {p.one(0.05, [0.3] * groups)}" + p.options(anneal_epochs=-1 if wrong else p.size(0, 3), anneal_strategy=p.one("cos", "linear")),  # noqa: E501
        }[kind]()  # fmt: skip
    return f"{'U' if kind == 'SWALR' else 'S'}.{kind}(o{given})"


def scheduler(p: Program) -> None:
    """One scheduler, a chain or a sequence of some, or two; now and then saved, loaded, or told an epoch."""
    groups = p.size(1, 3)
    lr = Text(f"torch.tensor({p.one(0.1, 0.5)}, dtype=torch.float64)") if p.chance(0.2) else p.one(0.1, 1, 0.0)
    parts = ", ".join(
        f"{{'params': [numbers({k}, 2).requires_grad_()], 'lr': {p.one(lr, lr, 0.3)}}}" for k in range(groups)
    )
    fresh = f"o = torch.optim.{p.one('SGD', 'Adam', 'RMSprop', 'Adagrad')}([{parts}])"
    way, kind, several = p.one("one", "one", "chain", "sequence"), p.one(*SCHEDULERS), []
    made = scheduler_of(p, kind, groups, True)
    if way != "one":
        several = [scheduler_of(p, p.one(*SCHEDULERS[:11]), groups) for _ in range(p.size(1, 3))]
        miles = sorted(p.rng.sample(range(1, 7), len(several) - 1))
        inner = ", ".join(several)
        made = f"S.ChainedScheduler([{inner}])" if way == "chain" else f"S.SequentialLR(o, [{inner}], {miles})"
    plateau = way == "one" and kind == "ReduceLROnPlateau"
    p.write(fresh, f"s = {made}")
    rates = "[[g.get(k) for k in ('lr', 'initial_lr', 'momentum', 'betas', 'max_lr', 'min_lr', 'swa_lr')] for g in o.param_groups]"  # noqa: E501
    for _ in range(p.size(1, 9)):
        p.write("o.step()")
        p.note(f"s.step({p.one(1.0, 0.5, 0.2) if plateau else p.size(0, 9) if p.chance(0.1) else ''})")
        p.note(f"[{rates}, s.get_last_lr()]")
        if p.chance(0.1):
            p.write(f"saved = copy.deepcopy((o.state_dict(), s.state_dict())); {fresh}", f"s = {made}")
            p.write("o.load_state_dict(saved[0]); s.load_state_dict(saved[1])")
    p.note("[s.state_dict(), o.state_dict()['param_groups']]")


def clip(p: Program) -> None:
    names = [f"w{k}" for k in range(p.size(1, 4))]
    dtype = p.one("float32", "float64", "bfloat16")
    for name in names:
        shape = p.often((2, 3), (), (p.size(0, 3),))
        p.write(f"{name} = numbers({', '.join(map(str, (p.k(), *shape)))}, dtype=torch.{dtype}).requires_grad_()")
    # PyTorch's clip_grad_value_ raises where there is no gradient at all.
    change = p.often("", ".mul(100)", ".mul(0)", ".fill_(math.nan)", ".fill_(math.inf)")
    p.write(
        *(
            f"{n}.grad = numbers({p.k()}, *{n}.shape, dtype={n}.dtype){change}"
            for n in names
            if n == "w0" or p.chance(0.7)
        )
    )
    given, all_of = p.options(foreach=p.one(None, False, True)), f"[{', '.join(names)}]"
    most = p.one(1.0, 0.1, 0, Text("torch.tensor(0.5)"))
    norm = given + p.options(
        norm_type=p.one(1, 3, 0, 0.5, Text("math.inf"), Text("-math.inf")), error_if_nonfinite=p.flag()
    )
    p.note(p.one(
        f"nn.utils.clip_grad_norm_({all_of}, {most}{norm})", f"nn.utils.clip_grad_value_({all_of}, {p.one(0.5, 0, 1)}{given})",  # noqa: E501
        f"nn.utils.get_total_norm([w.grad for w in {all_of} if w.grad is not None]{norm})",
        f"nn.utils.parameters_to_vector({all_of})",
        f"nn.utils.vector_to_parameters(numbers(5, sum(w.numel() for w in {all_of})), {all_of})",
    ))  # fmt: skip
    p.note(f"[[w, w.grad] for w in {all_of}]")


def init(p: Program) -> None:
    """A function of `nn.init`: the same seed gives the same numbers, and leaves the generator at the same place."""
    shape = p.sizes(p.often(2, 0, 1, 3, 4), 1, 6) if p.chance(0.9) else (p.size(16, 20), p.size(3, 20))
    dtype = p.often("float32", "float64", "bfloat16", "float16")
    layout = p.often("", ".t()", ".requires_grad_()") if len(shape) == 2 else ""
    p.write(f"w = torch.zeros({tuple(shape)}, dtype=torch.{dtype}){layout}")
    source, gain = (p.options(generator=Text("torch.Generator().manual_seed(7)")), p.options(gain=p.one(0.5, 2)))
    kind = p.one("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "gelu")
    scaled = p.options(a=p.one(0.2, 1), mode=p.one("fan_in", "fan_out", "x"), nonlinearity=kind) + source
    within = p.options(mean=p.one(0.5, 3), std=p.one(0.02, 2), a=p.one(-0.5, 0), b=p.one(0.5, 1)) + source
    p.note("nn.init." + p.one(
        f"uniform_(w{p.options(a=p.one(-1, 0.2), b=p.one(0.5, 3))}{source})", f"xavier_uniform_(w{gain}{source})",
        f"normal_(w{p.options(mean=0.5, std=p.one(0, 3, -1))}{source})", f"xavier_normal_(w{gain}{source})",
        f"constant_(w, {p.one(0.3, 1)})", "eye_(w)", f"dirac_(w{p.options(groups=p.size(1, 3))})",
        f"kaiming_uniform_(w{scaled})", f"kaiming_normal_(w{scaled})", f"trunc_normal_(w{within})",
        f"orthogonal_(w{gain}{source})", f"sparse_(w, {p.one(0.1, 0.5, 0.9)}{source})",
        f"calculate_gain({kind!r}{p.one('', ', 0.3', ', True')})",
    ))  # fmt: skip
    p.note("[w, w.requires_grad, torch.rand(3)]")


LAYERS = {
    "nn.Linear(3, 4)": "2, 3", "nn.Linear(4, 2, bias=False)": "2, 4", "nn.Conv1d(2, 3, 2)": "2, 2, 5",
    "nn.Conv2d(2, 4, 2)": "1, 2, 4, 4", "nn.ConvTranspose1d(2, 3, 2)": "2, 2, 3", "nn.Conv2d(4, 4, 2, groups=2)": "1, 4, 3, 3",  # noqa: E501
}  # fmt: skip


def layer_of(p: Program) -> None:
    text = p.one(*LAYERS)
    p.write(
        f"m = {text}.double()",
        "def call():",
        f"    m.zero_grad(); y = m(numbers(1, {LAYERS[text]})); (y * numbers(4, *y.shape)).sum().backward()",
        "    return [y, [(n, w.grad) for n, w in m.named_parameters()]]",
    )


def parametrized(p: Program) -> None:
    """Norms, orthogonal weights; the older functions of the same names, alone."""
    layer_of(p)
    old = p.chance(0.2)
    dim = p.options(dim=p.one(0, 1, -1, None))
    spectral = f"spectral_norm(m{p.options(n_power_iterations=p.size(1, 3), eps=1e-3, dim=p.one(0, 1, None))})"
    ways = [f"{'nn.utils' if old else 'P'}.{each}" for each in (f"weight_norm(m{dim})", spectral)]
    if not old:  # of two orthogonal ones PyTorch's second has no base
        how = p.options(orthogonal_map=p.one("matrix_exp", "cayley", "householder", "x"), use_trivialization=p.flag())
        ways[:0] = [f"P.orthogonal(m{how})"]
    first = p.one(*ways)
    p.note(f"type({first}).__name__")
    if not old and p.flag():
        second = ways[1:] if "spectral" not in first else ways[2:]  # each asking for the weight changes it
        p.note(f"type({p.one(*second)}).__name__")
    for _ in range(p.size(1, 3)):
        p.note(p.one(
            "call()", "m.weight", "call()", f"type(m.train({p.flag()})).__name__", "dict(m.state_dict())", "str(m)",
            "setattr(m, 'weight', numbers(6, *m.weight.shape))" if not old else "call()",
            f"type(nn.utils.parametrize.remove_parametrizations(m, 'weight'{p.options(leave_parametrized=p.flag())})).__name__",  # noqa: E501
        ))  # fmt: skip
    p.note("[call(), m.weight, dict(m.state_dict()), torch.rand(2)]")


def pruned(p: Program) -> None:
    """Prunings after each other; the first error ends the program."""
    layer_of(p)
    for _ in range(p.size(1, 3)):
        amount, dim = (p.one(0.3, 0.5, 1, 0.0, 100 if p.chance(0.1) else 2), p.one(0, 1, -1, 5 if p.chance(0.1) else 0))
        scores = p.options(importance_scores=Text(f"numbers({p.k()}, *m.weight.shape)"))
        p.write("out.append(type(prune." + p.one(
            f"random_unstructured(m, 'weight', {amount})", f"random_structured(m, 'weight', {amount}, {dim})",
            "identity(m, 'weight')", f"l1_unstructured(m, 'weight', {amount}, numbers({p.k()}, *m.weight.shape))",
            f"ln_structured(m, 'weight', {amount}, n={p.one(1, 2, 'math.inf')}, dim={dim}{scores})",
            f"custom_from_mask(m, 'weight', numbers({p.k()}, *m.weight.shape) > 0)",
            "remove(m, 'weight')" if p.chance(0.3) else "identity(m, 'weight')",
        ) + ").__name__)")  # fmt: skip
        p.note("[call(), m.weight, dict(m.state_dict()), prune.is_pruned(m)]")
    p.note("torch.rand(2)")


def averaged(p: Program) -> None:
    how = p.one(
        "", f", multi_avg_fn=U.get_ema_multi_avg_fn({p.one(0.9, 0.5)})", f", avg_fn=U.get_ema_avg_fn({p.one(0.9, 1.5)})",  # noqa: E501
        ", avg_fn=U.get_swa_avg_fn()", ", avg_fn=lambda a, b, n: a + (b - a) / (n + 2)",
    )  # fmt: skip
    # PyTorch's default average raises for the counter among the buffers.
    buffers = p.options(use_buffers=p.flag()) if how else ""
    norm = p.options(momentum=p.one(None, 0.5), track_running_stats=p.flag())
    p.write(f"m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4{norm}), nn.Linear(4, 2)).double()")
    p.write("data = [numbers(k, 5, 3) for k in range(3)]", f"a = U.AveragedModel(m{how}{buffers})")
    p.write("o = torch.optim.SGD(m.parameters(), lr=0.1)")
    for k in range(p.size(1, 4)):
        p.write(f"y = m(data[{k % 3}]); o.zero_grad(); (y * numbers(2, *y.shape)).sum().backward(); o.step()")
        p.note("a.update_parameters(m)")
        if p.chance(0.2):
            p.write("a = copy.deepcopy(a)")
    if p.flag():
        p.note(f"U.update_bn({p.one('data', '[[x, 1] for x in data]', '[]')}, a)")
    p.note("[a(data[0]), dict(a.state_dict()), a.training]")


def scaled(p: Program) -> None:
    """Steps under autocast with a scaler, some with gradients that are infinite."""
    dtype, middle = p.one("bfloat16", "float16"), p.one("ReLU()", "LayerNorm(4)", "Tanh()")
    p.write(
        f"m = nn.Sequential(nn.Linear(3, 4), nn.{middle}, nn.Linear(4, 2))",
        "o = torch.optim.SGD(m.parameters(), lr=0.1)",
    )
    given = p.options(
        init_scale=p.one(4.0, 64.0), growth_factor=p.one(4.0, 1.0 if p.chance(0.1) else 3.0), backoff_factor=0.25,
        growth_interval=p.size(1, 3), enabled=p.chance(0.8),
    )  # fmt: skip
    p.write(f"c = torch.amp.GradScaler('cpu'{given})")
    for k in range(p.size(1, 4)):
        p.write(
            f"with torch.autocast('cpu', dtype=torch.{dtype}{p.options(enabled=p.flag(), cache_enabled=p.flag())}):"
        )
        p.write(f"    y = m(numbers({k}, 4, 3, dtype=torch.float32))")
        p.write(f"    loss = {p.one('y.sum()', '(y.float() ** 2).mean()', 'y.float().mean() * math.inf')}")
        p.write("o.zero_grad(); c.scale(loss).backward()")
        if p.flag():
            p.note("[c.unscale_(o), nn.utils.clip_grad_norm_(m.parameters(), 1.0)]")
        p.write(
            *(
                f"note(lambda: {each})"
                for each in ("c.unscale_(o)", "c.step(o)", f"c.update({p.one('', '', '8.0')})")
                if p.chance(0.9)
            )
        )
        p.note("[y, loss, c.state_dict(), c.get_scale(), [w.grad for w in m.parameters()]]")
    p.note("[c.scale([torch.ones(2), (numbers(1, 2),)]), dict(m.state_dict())]")


CALLS = [optimizer, optimizer, optimizer, scheduler, clip, init, parametrized, pruned, averaged, scaled]


def text_of(call: Callable[[Program], None], rng: random.Random) -> str:
    p = Program(rng)
    call(p)
    return "\n".join([BEGIN, *p.lines])


def outcome(text: str, library: str) -> list[Any]:
    """Return what a program noted, and last the error that ended it."""
    names, error = executed(text, library)
    return [*names["out"], *([] if error is None else [error])]


def flat(x: Any) -> list[Any]:
    return [leaf for each in x for leaf in flat(each)] if isinstance(x, list) else [x]


def different(ours: Any, theirs: Any, coarse: float) -> str | None:
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        return None if type(ours).__name__ == type(theirs).__name__ else f"{ours!r} against {theirs!r}"
    if isinstance(theirs, float) and isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=max(coarse, 1e-6)):
        return None
    ours = ours.replace("tinytorch", "torch") if isinstance(ours, str) else ours
    return difference(ours, theirs, coarse=coarse)


@random_programs(200, st.sampled_from(CALLS), st.integers(0, 2**32 - 1))
def test_random_training_agrees(call: Callable[[Program], None], number: int) -> None:
    # A generator of Hypothesis's own notes each of the many draws, which takes longer than the programs.
    text = text_of(call, random.Random(number))
    ours, theirs = flat(outcome(text, "tinytorch")), flat(outcome(text, "torch"))
    words = text[len(BEGIN) :]
    # Muon computes in bfloat16; some optimizers keep numbers as float32, whatever the parameters are.
    coarse = (
        2e-2
        if re.search("bfloat16|Muon", words)
        else 5e-3
        if "float16" in words
        else 2e-4
        if "float32" in words
        else 2e-5
    )
    assert len(ours) == len(theirs), f"{ours} against {theirs}\n\n{words}"
    found = next((each for pair in zip(ours, theirs, strict=True) if (each := different(*pair, coarse))), None)
    assert found is None, f"{found}\n\n{words}"
