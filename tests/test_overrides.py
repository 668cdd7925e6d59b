"""`__torch_function__`, against PyTorch: classes derived from Tensor, other types, and modes.

The first class that is derived from Tensor sets wrappers around all functions, so each program runs in a process of its
own: the other tests are to see the functions as they are without.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tinytorch
import tinytorch.overrides
from tests.oracle import needs_oracle

ROOT = Path(__file__).parent.parent

BEGIN = """
import collections, copy, functools, io, pickle, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "tinytorch":
    import tinytorch as torch
else:
    import torch
    torch.backends.mkldnn.enabled = False  # its gelu, taken with AVX-512, has another last digit
F = torch.nn.functional

def show(text):
    try:
        result = eval(text, globals())
        kind = "type" if isinstance(result, type) else type(result).__name__
        line = f"{text}: {kind} {result}"
    except Exception as error:
        line = f"{text}: {type(error).__name__} {error}"
    print(line.replace("tinytorch", "torch"))

# Kept before a class is derived, so before anything asks.
TABLE = {torch.add: "sum", torch.Tensor.add: "sum", torch.matmul: "product", torch.Tensor.matmul: "product"}

class Plain(torch.Tensor):
    pass

class Logging(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ != "__repr__":
            print("  asked:", func.__name__, len(args))
        return super().__torch_function__(func, types, args, kwargs or {})

p = Plain([[1.0, 2.0], [3.0, 4.0]])
x = Logging([[1.0, 2.0], [3.0, 4.0]])
"""

OPERATORS = """
x + 1 | 1 + x | x * 2 | 2 * x | x - 1 | 1 - x | x / 2 | 2 / x | x // 2 | 2 // x | x % 2 | x ** 2 | 2 ** x | -x | abs(x)
x @ x | x == x | x != 1 | x < 1 | x >= 1 | ~(x > 1) | (x > 1) & (x > 2) | (x > 1) | (x > 2) | x[0] | x[0, 1] | len(x)
torch.ones(2, 2) + x | x + torch.ones(2, 2) | x + torch.nn.Parameter(torch.ones(2, 2)) | bool(x[0, 0] > 0)
[type(each).__name__ for each in x] | float(x[0, 0]) | f"{x[0, 0]}" | iter(x) is None
"""

MEMBERS = """
x.T | x.mT | x.shape | x.dtype | x.requires_grad | x.is_leaf | x.grad | x.grad_fn | x.ndim | x.device | x.data
x.size(0)
x.sum(dim=1) | x.mean() | x.max(dim=0) | x.max(0).values | x.view(-1) | x.clone() | x.detach() | x.to(torch.float64)
x.tolist() | x.split(1) | x.item() | x.unsqueeze(0) | x.repeat(2, 1) | x.new_ones(2) | x.masked_fill(x > 1, 0)
x.is_contiguous() | x.stride() | x.add_(1) | x.is_floating_point() | x.type() | x.unbind() | x.half() | x.int()
x.cpu()
x.nonzero() | x.unique() | x.topk(1) | x.fill_(1) | x.numel() | x.flatten() | x.requires_grad_() | hash(x) is None
"""

FUNCTIONS = """
torch.stack([x, x]) | torch.cat((x, torch.ones(1, 2))) | torch.relu(x) | F.relu(x) | F.softmax(x, dim=0) | F.gelu(x)
torch.exp(x) | torch.split(x, 1) | torch.einsum("ij->i", x) | torch.nn.Linear(2, 2, bias=False)(x).shape
torch.ones_like(x) | torch.where(x > 1, x, 0) | torch.argsort(x) | torch.linalg.norm(x) | F.mse_loss(x, x)
F.cross_entropy(x, torch.tensor([0, 1])) | F.layer_norm(x, (2,)) | F.pad(x, (1, 1)) | torch.special.expit(x)
torch.is_tensor(x) | torch.equal(x, x) | torch.allclose(x, x) | torch.chunk(x, 2) | torch.broadcast_tensors(x, x)
F.embedding(torch.tensor([0]), x) | F.conv1d(x[None], torch.ones(1, 2, 1)) | torch.var_mean(x)
torch.add(x, x, alpha=2)
torch.dropout(x, 0.5, False) | torch.kl_div(x, x) | torch.hinge_embedding_loss(x, x, reduction=1)
torch.add(input=x, other=1) | torch.is_floating_point(x) | torch.result_type(x, 1) | torch.numel(x)
"""

KINDS = """
type(p + 1) | type(torch.ones(2, 2) * p) | type(F.relu(p)) | type(p.max(0).values) | type(torch.nn.Linear(2, 2)(p))
type(torch.Tensor._make_subclass(Plain, torch.ones(2))) | type(torch.ones(2).as_subclass(Plain)) | p.tag
type(pickle.loads(pickle.dumps(p))) | pickle.loads(pickle.dumps(p)).tag | type(copy.copy(p)) | copy.copy(p).tag
type(torch.nn.Parameter(p)) | isinstance(torch.nn.Parameter(p), torch.nn.Parameter) | type(other + p)
p + Second([1.0])
type(Third(torch.ones(2)) + 1) | type(torch.nn.Parameter(torch.ones(2)) + 1) | torch.add(p, Second([1.0])) | p.T
type(PlainToo([1.0]) + Plain([1.0])) | type(Plain([1.0]) + PlainToo([1.0])) | torch.exp(Refusing([1.0]))
1 + Refusing([1])
type(Off([1.0]) + 1) | type(p.new_zeros(2))
[type(each).__name__ for each in torch.broadcast_tensors(p, torch.ones(1))]
"""

TYPES = """
torch.mean(d) | torch.add(d, d) | torch.mul(d, 3) | torch.add(torch.eye(2), d) | torch.stack([d]) | torch.ones(2) + d
torch.ones(2).add(d) | torch.mean(input=d) | torch.overrides.is_tensor_like(d) | torch.ones(2) + Reflected()
torch.overrides.has_torch_function((1, d)) | torch.overrides.has_torch_function((1, torch.ones(1)))
torch.overrides.resolve_name(torch.Tensor.add) | torch.overrides.resolve_name(F.gelu)
torch.overrides.resolve_name(len)
torch.overrides.is_tensor_method_or_property(torch.Tensor.add) | torch.overrides.is_tensor_like(1)
torch.overrides.is_tensor_method_or_property(torch.add) | double(d) | double(torch.ones(1))
"""


def each_of(table: str) -> str:
    lines = [each.strip() for line in table.strip().splitlines() for each in line.split(" | ")]
    return "".join(f"show({each!r})\n" for each in lines)


PROGRAMS = {
    "operators": each_of(OPERATORS.replace("(x > 1) | (x > 2)", "(x > 1).__or__(x > 2)")),
    "members": each_of(MEMBERS),
    "functions": each_of(FUNCTIONS),
    "kinds": """
class PlainToo(Plain): pass
class Second(torch.Tensor): pass
class Third(torch.nn.Parameter): pass
class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented
class Off(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
p.tag, other = "kept", torch.ones(2, 2)
"""
    + each_of(KINDS)
    + """
with torch._C.DisableTorchFunctionSubclass():
    show("type(p + 1)")
""",
    "types": """
HANDLED = {}
class Diagonal:
    def __init__(self, value):
        self.value = value
    def __repr__(self):
        return f"Diagonal({self.value})"
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(each, (torch.Tensor, Diagonal)) for each in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))
class Reflected(Diagonal):
    def __radd__(self, other):
        return "reflected"
HANDLED[torch.mean] = lambda input: input.value
HANDLED[torch.add] = lambda a, b: Diagonal(getattr(a, "value", 0) + b.value)
d = Diagonal(3)
@torch.overrides.wrap_torch_function(lambda a: (a,))
def double(a):
    return a * 2
HANDLED[double] = lambda a: Diagonal(a.value * 2)
"""
    + each_of(TYPES),
    "gradients": """
y = Logging([1.0, 2.0])
y.requires_grad = True
(y * y).sum().backward()
show("type(y.grad).__name__")
show("y.grad")
show("[type(each).__name__ for each in torch.autograd.grad((y * y).sum(), y)]")
linear = torch.nn.Linear(2, 1, bias=False)
linear.weight = torch.nn.Parameter(Plain([[1.0, 2.0]]))
optimizer = torch.optim.SGD(linear.parameters(), 0.1)
linear(torch.ones(2)).sum().backward()
optimizer.step()
show("type(linear.weight).__name__")
show("linear.weight.tolist()")
""",
    "kept before": """
class Distance:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return TABLE[func] if func in TABLE else NotImplemented
show("torch.Tensor.add in TABLE, torch.Tensor.matmul in TABLE, torch.Tensor.exp in TABLE")
class Derived(torch.Tensor):
    pass
show("torch.add(Distance(), 1), torch.ones(1) + Distance(), torch.ones(1).add(Distance())")
show("torch.matmul(torch.ones(1), Distance()), torch.ones(1) @ Distance()")
show("torch.ones(1).exp()")
""",
    "pickled": """
show("pickle.loads(pickle.dumps(torch.exp))(torch.ones(1))")
show("pickle.loads(pickle.dumps(F.relu))(torch.ones(1))")
show("copy.deepcopy(F.gelu)(torch.ones(1))")
show("pickle.loads(pickle.dumps(torch.Tensor.add))(torch.ones(1), 1)")
show("copy.deepcopy(torch.nn.TransformerEncoderLayer(2, 1, 2)).activation(torch.ones(1))")
show("type(copy.deepcopy(torch.nn.Linear(1, 1))).__name__")
""",
    "modes": """
class Names(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
with Names() as names:
    model(torch.ones(1, 2)).sum().backward()
show("names.names")
with Names() as outer, Names() as inner:
    torch.ones(1) + 1
    with torch._C.DisableTorchFunction():
        torch.zeros(1)
show("outer.names, inner.names")
class Zero(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return 0 if func is torch.exp else func(*args, **(kwargs or {}))
with Zero():
    show("torch.exp(torch.ones(2))")
    show("torch.exp(p)")
show("torch.exp(torch.ones(2))")
""",
}


#: Runs the programs of standard input, each with names of its own, and writes what each printed.
RUNNER = """
import contextlib, io, json, sys
printed = []
for program in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, {"__name__": "__main__"})
    printed.append(out.getvalue().splitlines())
json.dump(printed, sys.stdout)
"""


def printed(programs: list[str], library: str) -> list[list[str]]:
    """Return the lines that each program prints with a library; all run in one process."""
    run = subprocess.run(
        [sys.executable, "-c", RUNNER, library],
        input=json.dumps([BEGIN + program for program in programs]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert not run.returncode, run.stderr
    lines: list[list[str]] = json.loads(run.stdout)
    return lines


@pytest.fixture(scope="module")
def pytorchs() -> dict[str, list[str]]:
    """What PyTorch prints: its functions ask from the beginning, so one process does for all."""
    return dict(zip(PROGRAMS, printed(list(PROGRAMS.values()), "torch"), strict=True))


@needs_oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_asked_and_what_comes_of_it(name: str, pytorchs: dict[str, list[str]]) -> None:
    assert printed([PROGRAMS[name]], "tinytorch") == [pytorchs[name]]


def test_without_derived_classes_no_method_is_wrapped() -> None:
    program = """
import tinytorch as torch
import tinytorch.overrides
class Kind(torch.nn.Parameter):
    pass
exp = torch.exp
print(type(torch.Tensor.exp).__name__)
class Plain(torch.Tensor):
    pass
print(type(torch.Tensor.exp).__name__, torch.exp is exp)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert run.stdout.split() == ["function", "_Member", "True"]


FUNCTIONS_TAKEN_BEFORE = """
import numpy as np
from tinytorch import add, linalg
from tinytorch.nn.functional import gelu
import tinytorch as torch
inv, kept = linalg.inv, torch.exp
class Mine(torch.Tensor):
    pass
x = torch.eye(2).as_subclass(Mine)
print(*[type(each).__name__ for each in (add(x, 1), gelu(x), inv(x), kept(x), add(torch.ones(2, 2), x))])
class Stranger:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
print(add(Stranger(), 1), gelu(Stranger()), inv(Stranger()), kept(input=Stranger()))
"""


def test_functions_that_were_imported_before_the_first_class_ask_it() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FUNCTIONS_TAKEN_BEFORE], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert run.stdout.splitlines() == ["Mine Mine Mine Mine Mine", "add gelu linalg_inv exp"]


def test_all_that_can_be_overridden_is_listed_in_a_program_that_asked_for_nothing_else() -> None:
    code = """
from tinytorch import overrides
for functions in overrides.get_overridable_functions().values():
    print(*[each.name for each in functions if hasattr(each, "asks")])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = tinytorch.overrides.get_overridable_functions().values()
    assert set(run.stdout.split()) == {each.name for found in listed for each in found if hasattr(each, "asks")}
    assert len(run.stdout.split()) > 600
