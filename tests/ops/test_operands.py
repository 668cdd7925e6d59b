"""Where functions of PyTorch take tensors alone, and other errors of its operator database, against PyTorch."""

from __future__ import annotations

import contextlib
import itertools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tinytorch
from tests.declared import registered
from tests.same import compared, expressions, of_each, programs

pytestmark = [pytest.mark.filterwarnings("ignore:index_reduce")]

Program = Callable[[Any], Any]

BOTH = """
    arctan2 atan2 fmax fmin hypot logaddexp logical_and logical_or logical_xor maximum minimum
""".split()
FIRST = """
    clamp clamp_max clamp_min copysign eq fmod ge greater greater_equal gt le less less_equal lt ne not_equal
""".split()
EITHER = """
    bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor float_power remainder xlogy
""".split()


@pytest.mark.parametrize("name", [*BOTH, *FIRST, *EITHER])
@pytest.mark.parametrize("numbers", [(True, False), (False, True), (True, True)])
@compared
def test_numbers_for_tensors(torch: Any, name: str, numbers: tuple[bool, bool]) -> Any:
    return getattr(torch, name)(*[2 if each else torch.tensor([1, 2, 3]) for each in numbers])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_kernel_gets_numbers_that_are_promoted(dtype: str) -> None:
    """A number gives the dtype that a tensor of it gives, whatever the kernel does with it."""
    x, wrong = tinytorch.tensor([1, 2], dtype=getattr(tinytorch, dtype)), []
    ops = [op for op in registered() if op.operands == 2 and op.elementwise]
    for op, value, first in itertools.product(ops, (0, 2, 0.5, True), (True, False)):
        with contextlib.suppress(NotImplementedError, RuntimeError, TypeError):
            args = [(x, each) if first else (each, x) for each in (tinytorch.tensor(value), value)]
            by_tensor, by_number = [op.caller(*each).dtype for each in args]
            wrong += [(op.name, args[1], by_number, by_tensor)] if by_number is not by_tensor else []
    assert len(ops) > 50 and not wrong, wrong


@pytest.mark.parametrize("name", ["eq", "maximum", "bitwise_and"])
@compared
def test_operands_by_name(torch: Any, name: str) -> Any:
    x, y = torch.tensor([1, 2]), torch.nn.Parameter(torch.tensor([2, 1]), requires_grad=False)
    call = getattr(torch, name)
    return [call(x, other=y), call(input=x, other=y), call(y, x), call(x, y, out=x.clone() > 9)]


test_errors = of_each(programs("""
    torch.isclose(torch.ones(2), torch.ones(2), rtol=-0.4); torch.isclose(torch.ones(2), torch.ones(2), atol=-0.4)
    torch.allclose(torch.ones(2), torch.ones(2), atol=-1); torch.clamp_min(torch.ones(2), None)
    torch.lerp(torch.ones(2), 1, 0.5); torch.ones(2).lerp_(1, 0.5)
    torch.ones(2).lerp_(torch.ones(2), torch.ones(2).double()); torch.ones(2).lerp_(torch.ones(3), 0.5)
    torch.hsplit(torch.ones(2, 2), "abc"); torch.vsplit(torch.ones(2, 2), 1.0); torch.dsplit(torch.ones(2, 2, 2), None)
    torch.hstack([]); torch.vstack(()); torch.dstack([]); torch.column_stack([]); torch.linspace(0, 3, 1.0)
    torch.logspace(torch.tensor(0), 3, 1.0); torch.gradient(torch.ones(3, 3), spacing=[0.1], dim=[1, 0])
    torch.gradient(torch.ones(3, 3), spacing=[0.1]); torch.fill(torch.ones(2), torch.ones(1))
    torch.gather(torch.ones(2, 2), 0, torch.zeros(1, dtype=torch.uint8))
    torch.take_along_dim(torch.ones(2, 2), torch.zeros(1), 0)
    torch.einsum("ij,j->", torch.ones(2, 3).int(), torch.ones(3).int())
    torch.einsum("i,i->", torch.ones(3).int(), torch.ones(3))
"""))  # fmt: skip


def _shared(torch: Any, count: int, **kwargs: Any) -> Any:
    return torch.empty(1, **kwargs).expand(count)


test_out_that_shares_memory = of_each(programs("""
    torch.gather(torch.arange(3), 0, (i := torch.tensor([0, 1, 1]))[1:], out=i[:2])
    torch.kthvalue(x := torch.ones(10), 5, out=(x, torch.tensor(0)))
    torch.index_select(torch.ones(3, 6), 1, torch.tensor([0, 1]), out=_shared(torch, 6))
    torch.masked_select(torch.ones(3), torch.ones(3) > 0, out=_shared(torch, 6))
    torch.take(torch.ones(3), torch.tensor([0]), out=_shared(torch, 6))
    torch.nonzero(torch.ones(3), out=_shared(torch, 6, dtype=torch.int64))
    torch.scatter(torch.ones(3), 0, torch.tensor([0]), 1.0, out=_shared(torch, 6))
    torch.exp(torch.ones(3), out=_shared(torch, 6))
""", {"_shared": _shared}))  # fmt: skip


test_values = of_each(
    {
        **programs("""
    torch.diff(torch.arange(4), 0, 0, torch.arange(2), torch.arange(3))
    torch.logspace(0, 62, 5, 2.0, dtype=torch.int64); torch.gather(torch.ones(2, 2), 0, torch.zeros(1, 0)).shape
    torch.tensor(True).index_add(0, torch.tensor([0]), torch.tensor(True), alpha=True)
    [torch.einsum(each, torch.ones(2, 3).int(), torch.arange(3).int()) for each in ('ij,k->k', 'ij,k->ij', 'ij,j->i')]
    [torch.einsum("i->", torch.arange(3).to(kind)) for kind in (torch.uint8, torch.bool)]
    torch.einsum("i,i->i", torch.ones(3), torch.arange(3))
    torch.rsub(torch.full((2,), 1 + 1j), 3, alpha=torch.tensor(2)); torch.pow(torch.ones(2, dtype=torch.int8), 300)
    torch.ones(2, dtype=torch.int8).masked_fill(torch.tensor([True, False]), torch.tensor(300))
    torch.conv2d(torch.ones(1, 1, 5, 5), torch.ones(1, 1, 2, 2), None, (1, torch.tensor(2)), (1, torch.tensor(0)))
    torch.scatter_add(torch.ones(4), 0, torch.tensor(0), torch.ones(5))
    torch.linalg.slogdet(torch.full((2, 2), torch.nan)); torch.linalg.cond(torch.full((2, 2), torch.inf), "fro")
    torch.ones(5, 2).chunk(torch.tensor(2, dtype=torch.uint8)); torch.topk(torch.tensor(3.0), 0).values.shape
    torch.nn.functional.cross_entropy(torch.ones(2, 0), torch.tensor([-100, -100]), reduction="none")
    torch.nn.functional.threshold(torch.tensor([0, 1, -1]), -0.5, 5)
    torch.func.vmap(torch.conj)(torch.ones(2, 3, dtype=torch.complex64).requires_grad_()).resolve_conj().detach()
    torch.func.vmap(torch.hypot, (0, None))(torch.ones(2, 3).bfloat16(), torch.tensor(1.0)).float()
    torch.logcumsumexp(torch.linspace(-3, 3, 30).bfloat16(), 0).float()
    [torch.fill(torch.ones(2).int(), value) for value in (3, 2.5, True, torch.tensor(4))]; torch.tensor([2]).__rdiv__(3)
"""),
        "0": lambda torch: [
            torch.logspace(*ends, dtype=torch.int32)
            for ends in ((0, 1.2, 4, 3.0), (0.5, 2.7, 5, 3.0), (3, 0, 7, 2.0), (-2.5, 3.5, 8, 2.0), (4, 9, 1, 2.0))
        ],
        "1": lambda torch: [
            call(torch.ones(2, 2), 0, torch.zeros(0, dtype=torch.uint8), torch.ones(2, 2))
            for call in (torch.scatter, torch.scatter_add)
        ],
        "2": lambda torch: torch.index_add(
            torch.tensor([5], dtype=torch.uint8), 0, torch.tensor([0]), torch.tensor([1], dtype=torch.uint8), alpha=-1
        ),
        "3": lambda torch: [
            torch.histc(torch.linspace(-9.3, 9.1, 40).to(kind), 25, -10, 10).float()
            for kind in (torch.float16, torch.bfloat16, torch.float32)
        ],
        "4": lambda torch: torch.autograd.grad(
            torch.fill(torch.ones(2, requires_grad=True), value := torch.tensor(2.0, requires_grad=True)).sum(), value
        ),
    }
)


@pytest.mark.parametrize("program", programs("""
    x.clamp_min(torch.zeros(3)); x.clamp_max(0.5); x.clone().clamp_min_(torch.zeros(3)); x.clone().clamp_max_(0.5)
    x.lerp(torch.ones(3), 0.3); x.lerp(torch.ones(3), torch.tensor(0.3))
    x.clone().lerp_(torch.ones(3), torch.tensor(0.3)); torch.dist(x, torch.zeros(3))
    torch.cdist(x[None], torch.zeros(2, 3), 1.0); torch.cumulative_trapezoid(x)
    torch.index_reduce(x, 0, torch.tensor([0, 0]), torch.ones(2), "mean")
    torch.index_reduce(x, 0, torch.tensor([0, 0]), torch.ones(2), "amax")
    x.clone().index_reduce_(0, torch.tensor([1]), torch.ones(1), "prod"); torch.aminmax(x)[0]
    torch.aminmax(x, dim=0)[1]; torch.fill(x, 3); torch.fill(x, torch.tensor(3))
""", {}, "x").values())  # fmt: skip
@compared
def test_names_of_nodes(torch: Any, program: Callable[[Any, Any], Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's index_reduce is in beta
        name: str = program(torch, torch.ones(3, requires_grad=True)).grad_fn.name()
    return name


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
@compared
def test_distances_that_tie(torch: Any, p: float) -> Any:
    x = torch.tensor([[0.0, 0.0, 3.0], [1.0, 2.0, 2.0]], requires_grad=True)
    y = torch.tensor([[1.0, 1.0, 3.0], [1.0, 2.0, 2.0], [0.0, 1.0, 1.0]], requires_grad=True)
    out = torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist")
    return out, torch.autograd.grad(out, (x, y), torch.arange(6.0).reshape(2, 3) - 1)


test_distances_and_integrals = of_each(programs("""
    torch.cdist(torch.ones(2, 3, 4), torch.ones(3, 3, 4), 1.0)
    torch.cdist(torch.ones(3, 4), torch.ones(3, 4), float("nan")); torch.dist(torch.ones(3), 1)
    torch.dist(torch.ones(3).int(), torch.ones(3).int()); torch.dist(torch.ones(3).half(), torch.zeros(3), 3)
    torch.dist(torch.ones(0), torch.zeros(0), float("inf")); torch.cdist(torch.ones(0, 4), torch.ones(3, 4), 1.0)
    torch.cdist(torch.ones(2, 0), torch.ones(3, 0), 0.5)
    torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]), dx=0.3)
    torch.cumulative_trapezoid(torch.tensor([1, 5, 10]))
    torch.cumulative_trapezoid(torch.tensor([1.0, 5.0]), torch.tensor([0.0, 3.0]))
"""))  # fmt: skip


@compared(rtol=1e-5, atol=1e-6)
def test_gradient_of_logcumsumexp_is_exact_in_float32(torch: Any) -> Any:
    """Its sums are taken in float64, as PyTorch's: values far apart lose nothing."""
    x = (torch.arange(60.0) * 7 % 19 - 9).reshape(5, 12).requires_grad_()
    out = torch.logcumsumexp(x, 1)
    return torch.autograd.grad(out, x, torch.sin(torch.arange(60.0)).reshape(5, 12) * 3)


@pytest.mark.parametrize("value", [7e4, -1e9, float("inf"), float("-inf"), 2.0])
@pytest.mark.parametrize("name", ["clamp_min", "clamp_max", "clamp", "pad", "threshold", "hardtanh"])
@compared
def test_numbers_that_float16_cannot_hold(torch: Any, name: str, value: float) -> Any:
    x, functional = torch.tensor([0.5, -3.0]).half(), torch.nn.functional
    if name == "pad":
        return functional.pad(x, (1, 1), value=value).float()
    if name == "threshold":
        return functional.threshold(x, 0.1, value).float()
    if name == "hardtanh":
        return functional.hardtanh(x, -abs(value), abs(value)).float()
    if name == "clamp":
        return x.clamp(-abs(value), abs(value)).float()
    return getattr(x, name)(value).float()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("program", programs("""
    torch.addcmul(x, x, x, value=0.1); torch.addcdiv(x, x, x * 3, value=0.1); torch.lerp(x, x * 2, 0.3)
    torch.lerp(x, x * 2, 0.7); x.pow(1.1); torch.nn.functional.leaky_relu(x, 0.1); torch.nn.functional.softplus(x, 0.1)
""", {}, "x").values())  # fmt: skip
@compared(rtol=0, atol=0)
def test_numbers_of_16_bits(torch: Any, program: Any, dtype: str) -> Any:
    """They are rounded as PyTorch rounds them: mostly, the result alone."""
    x = torch.tensor([0.1, 0.3, 1.7, 2.3, 3.9, -0.7, 300.0]).to(getattr(torch, dtype))
    return program(torch, x).float().nan_to_num(-1)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 2, 3)])
@compared
def test_attention_lies_in_memory_as_its_query(torch: Any, order: tuple[int, ...]) -> Any:
    sizes = [0] * 4
    for place, size in zip(order, (2, 3, 4, 8), strict=True):
        sizes[place] = size
    query, key = torch.ones(sizes).permute(*order), torch.ones(2, 3, 6, 8)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, key)
    return out.stride(), tuple(out.shape)


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@compared
def test_moments_with_the_mean_are_one_node(torch: Any, name: str) -> Any:
    x = torch.tensor([[1.0, 2.0, 4.0], [0.5, 3.0, 5.0]], requires_grad=True)
    made = getattr(torch, name)(x, dim=1)
    (only_mean,) = torch.autograd.grad(made[1].sum(), x, retain_graph=True)
    (both,) = torch.autograd.grad((made[0] * made[1]).sum(), x)
    return made[0].grad_fn.name(), made[0].grad_fn is made[1].grad_fn, only_mean, both


class Quantity:
    """What is no tensor and no number, and knows what to do with tensors."""

    __array_ufunc__ = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


for _name in "radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift lt gt".split():
    setattr(Quantity, f"__{_name}__", lambda self, other, _name=_name: (_name, list(other.shape)))


class Nothing:
    """What knows nothing of tensors."""


OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt gt iadd isub imul itruediv
    ifloordiv imod ipow iand ior ixor ilshift irshift
""".split()


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@compared
def test_operators_leave_it_to_the_other_operand(torch: Any, name: str, dtype: str) -> list[Any]:
    apply = getattr(operator, name)
    x = torch.ones(2, dtype=getattr(torch, dtype))

    def outcome(*operands: Any) -> Any:
        try:
            result = apply(*operands)
        except TypeError as error:
            return str(error).replace("tinytorch.", "").replace("torch.", "")
        return result if isinstance(result, (bool, str, tuple)) else result.tolist()

    found = [outcome(x.clone(), other) for other in (None, "a", [1, 2], Nothing())]
    if not name.startswith("i"):  # (a list takes what it can iterate over)
        found += [outcome(other, x) for other in (None, "a", [1, 2], Nothing())]
    if name not in ("eq", "ne"):
        found.append(outcome(x.clone(), Quantity()))
    return found


@compared
def test_other_quantities_divided_by_tensors_are_multiplied(torch: Any) -> Any:
    class Length(Quantity):
        def __rmul__(self, other: Any) -> Any:
            return other.tolist()

    return Length() / torch.tensor([2.0])


#: Numbers beyond the dtype of the integers `a` (int8), `b` (uint8), `i` (int64), and integers where floats are due.
OF_INTEGERS = """
    a.clamp(max=200); a.clamp(-200, 5); a.clamp(-2, 0); a.clip_(max=500); torch.clamp_min(a, -500); b.clamp(-1)
    b.clamp(-1, 300); b.clamp(min=-1.5); a.int().clamp(max=2**40); torch.add(a, a, alpha=300)
    torch.add(b, b, alpha=-1); torch.sub(b, b, alpha=-300); torch.addcmul(a, a, a, value=300)
    torch.where(a > 0, a, 300); torch.where(b > 1, b, -1); torch.where(a > 0, a.half(), 1e6)
    torch.tensor([-0.5], dtype=torch.uint8); torch.full((2,), -0.5, dtype=torch.uint8)
    torch.nn.functional.pad(b, (1, 1), value=-1); torch.nn.functional.pad(a.int(), (1, 1), value=2**40)
    torch.nn.functional.pad(i, (1, 1), value=1.5); torch.constant_pad_nd(b, (1, 1), -1)
    torch.nn.utils.rnn.pad_sequence([b, b[:1]], padding_value=-1)
    torch.nn.utils.rnn.pad_sequence([i, i[:1]], padding_value=2.5); a ** torch.tensor([-(2**63), -3, 3])
    torch.all(a, out=torch.empty(0, dtype=torch.uint8)); torch.any(a, 0, out=torch.empty(0, dtype=torch.int16))
    torch.equal(a, a.int()); torch.take_along_dim(i[:1], torch.tensor([0], dtype=torch.int32)); torch.softmax(i[:0], 0)
    torch.nn.functional.kl_div(i, i, reduction="sum")
    torch.nn.functional.kl_div(i.float(), i, reduction="sum", log_target=True)
    torch.nn.functional.binary_cross_entropy(i, i); torch.nn.functional.rms_norm(i, (3,))
    torch.nn.functional.hinge_embedding_loss(i, i); torch.nn.functional.hinge_embedding_loss(i, i, reduction="none")
    torch.nn.functional.nll_loss(i[None], i[:1].int())
    torch.nn.functional.nll_loss(torch.ones(1, 3, 1, dtype=torch.int64), torch.tensor([[0]]))
    torch.nn.functional.grid_sample(torch.ones(1, 1, 1, 1, 1).long(), torch.zeros(1, 1, 1, 1, 3))
    torch.ormqr(i[:, None], i[:1], i[:, None])
"""


@pytest.mark.parametrize("line", expressions(OF_INTEGERS))
@compared
def test_integers(torch: Any, line: str) -> Any:
    a, b = torch.tensor([1, -3, 127], dtype=torch.int8), torch.tensor([1, 3, 255], dtype=torch.uint8)
    return eval(line, {"torch": torch, "a": a, "b": b, "i": torch.tensor([1, -2, 7])})


#: Arrays in the place of tensors: an array of some dimensions has a tensor's part in the choice of the dtype.
OF_ARRAYS = """
    d + numpy.ones(2, numpy.float32); i * numpy.ones(2, numpy.int8); d * numpy.arange(2); i - numpy.float32(1.5)
"""


@pytest.mark.parametrize("line", expressions(OF_ARRAYS))
@compared
def test_arrays_for_tensors(torch: Any, line: str) -> Any:
    d, i = torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(line, {"numpy": numpy, "d": d, "i": i})
