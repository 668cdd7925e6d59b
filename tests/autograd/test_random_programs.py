"""Random programs of views, writes in place, reads and backward calls, run by both libraries: all that can be seen.

HYPOTHESIS_PROFILE=long runs 20,000 of them, from a seed that TINYTORCH_SEED sets (see `conftest.py`).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from hypothesis import strategies as st

import tinytorch
from tests.programs.drawn import random_programs
from tests.same import compare, torch

Op = Callable[[Any, Any, Any, int], Any]


class Step(NamedTuple):
    """One step of a program: an op on two of the tensors so far (0 is the latest) and a number, in a mode."""

    op: str
    x: int
    y: int
    n: int
    mode: str


def dim(x: Any, n: int) -> int:
    return n % max(x.dim(), 1)


def length(x: Any, n: int) -> int:
    return x.shape[dim(x, n)] if x.dim() else 1


def fit(x: Any, y: Any) -> Any:
    """Return `y`, or its sum if it does not broadcast to the shape of `x`."""
    shapes = zip(reversed(y.shape), reversed(x.shape), strict=False)
    return y if y.dim() <= x.dim() and all(have in (1, want) for have, want in shapes) else y.sum()


def first(lib: Any) -> Any:
    return lib.tensor([0])


def like_rows(lib: Any, x: Any, y: Any, n: int) -> Any:
    """Return the sum of `y` in the shape of one row of `x`."""
    shape = list(x.shape)
    if shape:
        shape[dim(x, n)] = 1
    return y.sum().expand(shape)


# Ops that return views of `x` (one, or several of which the first and last are kept), or `x` itself.
VIEWS: dict[str, Op] = {
    "index": lambda lib, x, y, n: x[n % (x.shape[0] if x.dim() else 1)],
    "slice": lambda lib, x, y, n: x[n % 2 :],
    "slice all": lambda lib, x, y, n: x[:],
    "ellipsis": lambda lib, x, y, n: x[...],
    "every other": lambda lib, x, y, n: x[..., n % 2 :: 2],
    "none": lambda lib, x, y, n: x[None],
    "none last": lambda lib, x, y, n: x[..., None],
    "index and slice": lambda lib, x, y, n: x[0, ..., 1:],
    "index and none": lambda lib, x, y, n: x[..., 0, None],
    "select": lambda lib, x, y, n: x.select(dim(x, n), n % length(x, n)),
    "narrow": lambda lib, x, y, n: x.narrow(dim(x, n), n % length(x, n), 1),
    "view": lambda lib, x, y, n: x.view(-1),
    "view rows": lambda lib, x, y, n: x.view(2, -1),
    "view_as": lambda lib, x, y, n: x.view_as(y),
    "view dtype": lambda lib, x, y, n: x.view(lib.int64),
    "reshape": lambda lib, x, y, n: x.reshape(-1),
    "reshape rows": lambda lib, x, y, n: x.reshape(2, -1),
    "flatten": lambda lib, x, y, n: x.flatten(),
    "flatten last": lambda lib, x, y, n: x.flatten(-2),
    "unflatten": lambda lib, x, y, n: x.unflatten(dim(x, n), (-1, 2)),
    "ravel": lambda lib, x, y, n: x.ravel(),
    "squeeze": lambda lib, x, y, n: x.squeeze(),
    "squeeze dim": lambda lib, x, y, n: x.squeeze(dim(x, n)),
    "squeeze dims": lambda lib, x, y, n: x.squeeze((0, -1)),
    "unsqueeze": lambda lib, x, y, n: x.unsqueeze(dim(x, n)),
    "transpose": lambda lib, x, y, n: x.transpose(0, dim(x, n)),
    "swapaxes": lambda lib, x, y, n: x.swapaxes(dim(x, n), -1),
    "t": lambda lib, x, y, n: x.t(),
    "T": lambda lib, x, y, n: x.T,
    "mT": lambda lib, x, y, n: x.mT,
    "H": lambda lib, x, y, n: x.H,
    "adjoint": lambda lib, x, y, n: x.adjoint(),
    "permute": lambda lib, x, y, n: x.permute(*range(1, x.dim()), 0),
    "movedim": lambda lib, x, y, n: x.movedim(0, -1),
    "diagonal": lambda lib, x, y, n: x.diagonal(n % 3 - 1),
    "expand": lambda lib, x, y, n: x.expand(2, *x.shape),
    "expand_as": lambda lib, x, y, n: x.expand_as(y),
    "broadcast_to": lambda lib, x, y, n: x.narrow(dim(x, n), 0, 1).broadcast_to(x.shape),
    "unfold": lambda lib, x, y, n: x.unfold(dim(x, n), 2, 1 + n % 2),
    "as_strided": lambda lib, x, y, n: x.as_strided((2, 2), (1 + n % 3, 1)),
    "as_strided at": lambda lib, x, y, n: x.as_strided((2,), (2,), n % 3),
    # (What PyTorch detaches of an inference tensor is one too, but with a version.)
    "detach": lambda lib, x, y, n: None if x.is_inference() else x.detach(),
    "data": lambda lib, x, y, n: None if x.is_inference() else x.data,
    "real": lambda lib, x, y, n: x.real,
    "positive": lambda lib, x, y, n: lib.positive(x),
    "contiguous": lambda lib, x, y, n: x.contiguous(),
    "unbind": lambda lib, x, y, n: x.unbind(dim(x, n)),
    "split": lambda lib, x, y, n: x.split(1 + n % 2, dim(x, n)),
    "split sizes": lambda lib, x, y, n: x.split([1, length(x, n) - 1], dim(x, n)),
    "chunk": lambda lib, x, y, n: x.chunk(2, dim(x, n)),
    "tensor_split": lambda lib, x, y, n: x.tensor_split(2, dim(x, n)),
    "hsplit": lambda lib, x, y, n: x.hsplit([1]),
    "vsplit": lambda lib, x, y, n: x.vsplit([1]),
    "dsplit": lambda lib, x, y, n: x.dsplit([1]),
}

# Ops that write into `x`. (Numbers to multiply by are tensors: PyTorch saves numbers too, and misses them at a second
# backward.)
WRITES: dict[str, Op] = {
    "add_": lambda lib, x, y, n: x.add_(fit(x, y)),
    "add_ number": lambda lib, x, y, n: x.add_(0.5),
    "add_ alpha": lambda lib, x, y, n: x.add_(fit(x, y), alpha=2),
    "sub_": lambda lib, x, y, n: x.sub_(fit(x, y)),
    "mul_": lambda lib, x, y, n: x.mul_(fit(x, y)),
    "mul_ scalar": lambda lib, x, y, n: x.mul_(lib.tensor(0.5)),
    "mul_ itself": lambda lib, x, y, n: x.mul_(x),
    "div_": lambda lib, x, y, n: x.div_(lib.tensor(n + 2.0)),
    "div_ tensor": lambda lib, x, y, n: x.div_(fit(x, y).detach().abs() + 1),
    "neg_": lambda lib, x, y, n: x.neg_(),
    "sin_": lambda lib, x, y, n: x.sin_(),
    "tanh_": lambda lib, x, y, n: x.tanh_(),
    "sigmoid_": lambda lib, x, y, n: x.sigmoid_(),
    "exp_": lambda lib, x, y, n: x.exp_(),
    "relu_": lambda lib, x, y, n: x.relu_(),
    "pow_": lambda lib, x, y, n: x.pow_(2),
    "clamp_": lambda lib, x, y, n: x.clamp_(-0.9, 0.9),
    "copy_": lambda lib, x, y, n: x.copy_(fit(x, y)),
    "zero_": lambda lib, x, y, n: x.zero_(),
    "fill_": lambda lib, x, y, n: x.fill_(n),
    "fill_ tensor": lambda lib, x, y, n: x.fill_(y.sum()),
    "fill_ own": lambda lib, x, y, n: x.fill_(y.view(-1)[0]),
    "masked_fill_": lambda lib, x, y, n: x.masked_fill_(x > n / 4, 0.5),
    "masked_fill_ tensor": lambda lib, x, y, n: x.masked_fill_(x < n / 4, y.sum()),
    "masked_scatter_": lambda lib, x, y, n: x.masked_scatter_(x > n / 4, y.sum().expand(x.shape)),
    "index_fill_": lambda lib, x, y, n: x.index_fill_(dim(x, n), first(lib), 0.5),
    "index_fill_ tensor": lambda lib, x, y, n: x.index_fill_(dim(x, n), first(lib), y.sum()),
    "index_copy_": lambda lib, x, y, n: x.index_copy_(dim(x, n), first(lib), like_rows(lib, x, y, n)),
    "index_copy_ other": lambda lib, x, y, n: x.index_copy_(dim(x, n), first(lib), y.clone()),
    "index_add_": lambda lib, x, y, n: x.index_add_(dim(x, n), first(lib), like_rows(lib, x, y, n), alpha=2),
    "index_put_": lambda lib, x, y, n: (x if x.dim() else x.view(1)).index_put_((first(lib),), y.sum(), n % 2 == 1),
    "scatter_": lambda lib, x, y, n: x.scatter_(
        0, lib.zeros(1, *x.shape[1:], dtype=lib.int64), like_rows(lib, x, y, 0)
    ),
    "scatter_ number": lambda lib, x, y, n: x.scatter_(0, lib.zeros(*x.shape, dtype=lib.int64), 0.25),
    "scatter_add_": lambda lib, x, y, n: x.scatter_add_(
        0, lib.zeros(1, *x.shape[1:], dtype=lib.int64), like_rows(lib, x, y, 0)
    ),
    "set": lambda lib, x, y, n: x.__setitem__(n % (x.shape[0] if x.dim() else 1), fit(x[0], y)),
    "set misfit": lambda lib, x, y, n: x.__setitem__(n % (x.shape[0] if x.dim() else 1), y),
    "set number": lambda lib, x, y, n: x.__setitem__(0, 0.5),
    "set all": lambda lib, x, y, n: x.__setitem__(slice(None), fit(x, y)),
    "set ellipsis": lambda lib, x, y, n: x.__setitem__(..., fit(x, y)),
    "set ellipsis number": lambda lib, x, y, n: x.__setitem__(..., 0.75),
    "set none": lambda lib, x, y, n: x.__setitem__(None, fit(x, y)),
    "set last": lambda lib, x, y, n: x.__setitem__((..., -1), y.sum()),
    "set every other": lambda lib, x, y, n: x.__setitem__((..., slice(n % 2, None, 2)), 1.5),
    "set own row": lambda lib, x, y, n: x.__setitem__(0, x[-1]),
    "set mask": lambda lib, x, y, n: x.__setitem__(x > n / 4, 0.5),
    "set mask tensor": lambda lib, x, y, n: x.__setitem__(x > n / 4, y.sum()),
    "set mask tensors": lambda lib, x, y, n: x.__setitem__(x > -99, y.expand(x.shape).reshape(-1)),
    "set mask own": lambda lib, x, y, n: x.__setitem__(x > n / 4, x.view(-1)[-1]),
    "set rows": lambda lib, x, y, n: x.__setitem__(lib.tensor([0, -1]), fit(x[:1], y)),
    "set rows number": lambda lib, x, y, n: x.__setitem__(lib.tensor([0, -1]), 0.5),
    "set rows tensor": lambda lib, x, y, n: x.__setitem__([0], y.sum()),
    "set columns": lambda lib, x, y, n: x.__setitem__((..., first(lib)), y.sum()),
    "set part of row": lambda lib, x, y, n: x.__setitem__((0, first(lib)), y.sum()),
    "set true": lambda lib, x, y, n: x.__setitem__(True, fit(x, y)),
}

# Ops that read, and make a new tensor.
READS: dict[str, Op] = {
    "mul": lambda lib, x, y, n: x * y,
    "add": lambda lib, x, y, n: x + y,
    "clone": lambda lib, x, y, n: x.clone(),
    "sin": lambda lib, x, y, n: x.sin(),
    "exp": lambda lib, x, y, n: x.exp(),
    "pow": lambda lib, x, y, n: x**2,
    "sum": lambda lib, x, y, n: x.contiguous().sum(dim(x, n)),
    "zeros_like": lambda lib, x, y, n: lib.zeros_like(x.contiguous()),
}

# Ops that make numbers grow; they are left out where numbers are large already.
INDEXED = {name for name in WRITES if name.split()[0] in ("index_put_", "set")} | {"add_ alpha"}
GROWING = {"add_ alpha", "mul", "mul_", "mul_ itself", "exp", "exp_", "pow", "pow_"}


def grad(lib: Any, x: Any, y: Any, n: int) -> Any:
    _ = y.is_leaf  # (brings a view up to date)
    (g,) = lib.autograd.grad((x * x).sum(), y, retain_graph=True, allow_unused=True)
    return None if g is None else g.contiguous().clone()  # (how often it was added to differs)


def grad_of_grad(lib: Any, x: Any, y: Any, n: int) -> Any:
    _ = y.is_leaf
    (g,) = lib.autograd.grad(x.sin().sum(), y, create_graph=True)
    return g.contiguous().clone()


# Ops that change what is recorded, or use it.
OTHERS: dict[str, Op] = {
    "requires_grad_": lambda lib, x, y, n: None if x.is_inference() else x.requires_grad_(),
    "requires_grad_ not": lambda lib, x, y, n: x.requires_grad_(False),
    "detach_": lambda lib, x, y, n: x.detach_(),
    "retain_grad": lambda lib, x, y, n: x.retain_grad(),
    "is_leaf": lambda lib, x, y, n: x if x.is_leaf else None,
    "grad": grad,
    "grad of grad": grad_of_grad,
}

OPS = VIEWS | WRITES | READS | OTHERS
STEP = st.builds(
    Step,
    st.one_of(*[st.sampled_from(list(kind)) for kind in (VIEWS, WRITES, WRITES, READS, OTHERS, ["backward", "hook"])]),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(0, 5),
    st.sampled_from(["record", "record", "record", "no_grad", "enable_grad", "inference_mode"]),
)
STEPS = st.integers(1, 14).flatmap(lambda count: st.lists(STEP, min_size=count, max_size=count))


def places(x: Any) -> list[int]:
    """Return the addresses of all elements, in units of one."""
    steps = [range(0, n * step, step) if step else [0] * n for n, step in zip(x.shape, x.stride(), strict=True)]
    start = x.data_ptr() // x.element_size()
    return [start + sum(each) for each in itertools.product(*steps)]


def overlaps(x: Any) -> bool:
    """Return whether elements share a place in memory otherwise than by `expand`."""
    found = places(x)
    repeated = 1
    for n, step in zip(x.shape, x.stride(), strict=True):
        repeated *= 1 if step else n
    return len(set(found)) * repeated < len(found)


def is_dense(x: Any) -> bool:
    found = set(places(x))
    return not found or len(found) == x.numel() == max(found) - min(found) + 1


def solid(x: Any) -> Any:
    """Return `x`, copied if it is expanded: of that the libraries' results lie in memory in another order."""
    repeated = any(step == 0 and n > 1 for step, n in zip(x.stride(), x.shape, strict=True))
    return x.contiguous() if repeated else x


def is_defined(x: Any, y: Any) -> bool:
    """Return whether it is defined what memory holds after `x` was written to, given `y`."""
    if not x.is_floating_point() and y.is_floating_point():
        return False  # (rounding decides; and PyTorch's fill_ makes integers require grad)
    if overlaps(x) or (x._base is not None and overlaps(x._base)):
        return False
    mine, other = places(x), places(y)
    if mine == other:
        return 1 not in x.shape  # (PyTorch compares strides where they have no meaning)
    if not set(mine) & set(other):
        return True
    return is_dense(x) and is_dense(y)  # an error


def inherits(x: Any) -> bool:
    """Return whether a view requires grad only because its base does: PyTorch saves less for it."""
    return x._is_view() and x.requires_grad and x.is_leaf


def frees_a_leaf(op: str, x: Any) -> bool:
    """Return whether after `op` a leaf that a graph leads to may be written to, itself or through its base."""
    if op == "requires_grad_":
        return x._is_view()
    return op in ("detach_", "requires_grad_ not") and not x._is_view() and x.requires_grad and x.is_leaf


def is_large(x: Any) -> bool:
    return x.numel() > 0 and float(x.detach().abs().max()) > 50


def mode(lib: Any, name: str) -> ExitStack:
    stack = ExitStack()
    if name == "inference_mode":
        stack.enter_context(lib.inference_mode())
    elif name != "record":
        stack.enter_context(lib.no_grad())
        if name == "enable_grad":
            stack.enter_context(lib.enable_grad())
    return stack


class Run:
    """A run of a program with one of the libraries."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        x = lib.arange(24.0).reshape(2, 3, 4).div(10).clone().requires_grad_()
        w = lib.linspace(-1, 1, 4).requires_grad_()
        s = lib.tensor(0.5, requires_grad=True)
        self.tensors = [lib.arange(4), s, w, lib.ones(3, 4), w[:2].clone(), x, x * lib.tensor(2.0)]
        self.seen: list[Any] = []
        self.hooked: list[list[Any]] = []  # per hook what it was given; the order of hooks differs
        self.saved: list[Any] = []  # what ops may have saved
        self.indexed = False  # indices were saved: PyTorch misses them at a second backward
        self.broken = False  # a graph was freed by halves

    def see(self, look: Callable[[], Any]) -> None:
        """Note what a function returns, or the class of what it raises."""
        try:
            value = look()
        except Exception as error:  # every class: it is compared
            value = type(error).__name__
        self.seen.append(value)

    def take(self, step: Step) -> None:
        lib, tensors = self.lib, self.tensors
        x, y = tensors[-1 - step.x % len(tensors)], tensors[-1 - step.y % len(tensors)]
        if step.op == "hook":
            self.hook(x)
            return
        if step.op == "backward":
            self.backward(lambda: (x * x).sum(), retain_graph=step.n % 3 > 0 or self.indexed)
            return
        if step.op in READS:
            x, y = solid(x), solid(y)
        if x.dim() == 0:
            _ = x.is_leaf  # of a dimension out of range and a forbidden write either may be told first
        if self.leaves_out(step.op, x, y):
            return
        if step.op not in VIEWS:
            self.saved += [x, y]
        self.indexed |= step.op in INDEXED
        with mode(lib, step.mode):
            result = OPS[step.op](lib, x, y, step.n)
        if step.op in WRITES or result is None or any(each is result for each in tensors):
            return
        results = [result[0], result[-1]] if isinstance(result, (tuple, list)) else [result]
        if x.is_inference() and not results[0].is_inference():
            return  # PyTorch may have counted a write to it
        tensors += results

    def leaves_out(self, op: str, x: Any, y: Any) -> bool:
        """Return whether a step is left out: PyTorch does not define it, or the libraries differ for a known reason."""
        if op in WRITES and not is_defined(x, y):
            return True
        if op.startswith(("index_", "scatter_")) and not x.numel():
            return True  # the errors are arbitrary
        if op in ("mul", "mul_") and (inherits(x) or inherits(y)):
            return True  # PyTorch does not save the other factor, so it may be written to
        if op == "detach_" and any(each is x for each in self.saved):
            return True  # in backward PyTorch refuses what it has saved
        if frees_a_leaf(op, x):
            return True  # in backward PyTorch refuses a leaf that has become the result of something
        if op in GROWING and (is_large(x) or is_large(y)):
            return True
        return op not in WRITES and max(x.numel(), y.numel()) > 100

    def hook(self, x: Any) -> None:
        """Note the gradients of `x`."""
        _ = x.is_leaf  # PyTorch crashes where it finds only now that the memory was written to
        gradients: list[Any] = []
        # (Of several outputs PyTorch tells those without a gradient too.)
        x.register_hook(lambda g: None if g is None else gradients.append(g.detach().clone()))
        self.hooked.append(gradients)

    def backward(self, root: Callable[[], Any], retain_graph: bool) -> None:
        """Run backward. Where it fails nothing has happened: what had, by then, depends on the order of the steps."""
        before = [None if x.grad is None else x.grad.clone() for x in self.tensors]
        counts = [len(each) for each in self.hooked]
        try:
            root().backward(retain_graph=retain_graph)
        except Exception:
            for x, g in zip(self.tensors, before, strict=True):
                x.grad = g
            for each, count in zip(self.hooked, counts, strict=True):
                del each[count:]
            self.broken |= not retain_graph
            raise

    def look(self) -> None:
        """Note all that can be seen of the tensors."""
        for x in self.tensors:
            self.see(lambda x=x: x._version)
            self.see(lambda x=x: (x.requires_grad, x.is_inference(), x._is_view(), x.output_nr))
            self.see(lambda x=x: self.number(x._base))
            self.see(lambda x=x: [step for step, n in zip(x.stride(), x.shape, strict=True) if n > 1 and x.numel()])
        for x in self.tensors:  # this brings the views up to date
            self.see(lambda x=x: x.is_leaf)
            self.see(lambda x=x: x.grad_fn and x.grad_fn.name())
            self.see(lambda x=x: (x.requires_grad, x.output_nr, x.retains_grad and not x.is_leaf))

    def number(self, x: Any) -> int:
        """Return which of the tensors `x` is, -1 for None, -2 where it is none of them."""
        return -1 if x is None else next((k for k, each in enumerate(self.tensors) if each is x), -2)

    def results(self, steps: list[Step]) -> Any:
        """Return what can be seen of a program while it runs and after it."""
        for step in steps:
            self.see(lambda step=step: self.take(step))
        values = [x.detach().clone() for x in self.tensors]
        self.look()
        for x in self.tensors if not self.broken else ():
            self.see(lambda x=x: self.backward(lambda: (x * x).sum(), retain_graph=True))
        if not self.broken:
            self.see(lambda: self.backward(lambda: sum((x * x).sum() for x in self.tensors), retain_graph=False))
        grads = [None if x.grad is None else x.grad.detach().clone() for x in self.tensors]
        return self.seen, self.hooked, values, grads


def run(lib: Any, steps: list[Step]) -> Any:
    before = lib.get_default_dtype()
    lib.set_default_dtype(lib.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Run(lib).results(steps)
    finally:
        lib.set_default_dtype(before)


@random_programs(300, STEPS)
def test_random_programs_agree(steps: list[Step]) -> None:
    compare(run(tinytorch, steps), run(torch, steps), 1e-8, 1e-8)
