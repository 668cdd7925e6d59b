"""What can be seen of results besides their values: strides, names of nodes, dtypes, and errors at the edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.oracle import FUSED
from tests.same import compared, of_each, programs, same_as_pytorch

Program = Callable[[Any], Any]


def leaf(torch: Any, *shape: int) -> Any:
    return (torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 7).requires_grad_()


def name(x: Any) -> str | None:
    return None if x.grad_fn is None else x.grad_fn.name()


NAMES = programs("""
    name(leaf(3) ** leaf(3)); name(leaf(3) ** 2); name(leaf(3) ** 2.0); name(2 ** leaf(3))
    name(torch.pow(leaf(3), torch.tensor(2))); name(leaf(3).clone().pow_(leaf(3))); name(leaf(3).clone().pow_(2))
    name(torch.float_power(leaf(3), leaf(3))); name(torch.trace(leaf(2, 3))); name(torch.dot(leaf(3), leaf(3)))
    name(torch.vdot(leaf(3), leaf(3))); name(torch.narrow_copy(leaf(4, 2), 0, 1, 2))
    name(torch.slice_copy(leaf(4, 2), 0, 1, 2)); name(torch.normal(leaf(3), torch.ones(3)))
    name(torch.normal(leaf(3), 1.0)); name(torch.normal(1.0, leaf(3))); name(leaf(3).clone().normal_())
    name(torch.polygamma(1, leaf(3))); name(leaf(3).clone().polygamma_(1))
""", {"name": name}, leaf=lambda torch: partial(leaf, torch))  # fmt: skip


test_each_overload_has_its_node = of_each(NAMES)


REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "max", "min")


@pytest.mark.parametrize("kind", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@compared
def test_scatter_reduce(torch: Any, reduce: str, include_self: bool, kind: str) -> Any:
    index = torch.tensor([0, 0, 2])
    x, src = (torch.tensor(each).to(getattr(torch, kind)) for each in ([1, 0, 3, 2], [1, 3, 2]))
    written = x.clone()
    same = written.scatter_reduce_(0, index, src, reduce, include_self=include_self) is written
    return (x.scatter_reduce(0, index, src, reduce, include_self=include_self), written, same, written._version)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS[:5])
@compared(rtol=1e-4)
def test_gradients_of_scatter_reduce_in_place(torch: Any, reduce: str, include_self: bool) -> Any:
    x, src = leaf(torch, 4, 3), (leaf(torch, 2, 3) * 3 - 1).detach().requires_grad_()
    index = torch.tensor([[0, 1, 1], [0, 2, 1]])
    out = x.clone().scatter_reduce_(0, index, src, reduce, include_self=include_self)
    first = torch.autograd.grad((out**2).sum(), (x, src), create_graph=True)
    second = torch.autograd.grad(sum((each**2).sum() for each in first), (x, src))
    return name(out), out, first, second


FORMATS: dict[str, Program] = {
    f"{label}, {arguments}": lambda torch, given=given, source=source: [
        (made.dtype, made.stride(), name(made), made is x)
        for x in [source(leaf(torch, 2, 3, 4, 5))]
        for made in [given(torch, x)]
    ]
    for label, source in {
        "contiguous": lambda x: x, "permuted": lambda x: x.permute(0, 2, 3, 1), "one pixel": lambda x: x[:, :, :1, :1],
    }.items()
    for arguments, given in {
        "channels_last": lambda torch, x: x.to(memory_format=torch.channels_last),
        "contiguous_format": lambda torch, x: x.to(memory_format=torch.contiguous_format),
        "preserve_format": lambda torch, x: x.to(memory_format=torch.preserve_format),
        "copy": lambda torch, x: x.to(copy=True, memory_format=torch.contiguous_format),
        "dtype, not asynchronous, copy": lambda torch, x: x.to(torch.float32, False, True),
        "both": lambda torch, x: x.to(torch.float64, memory_format=torch.channels_last),
        "double": lambda torch, x: x.double(memory_format=torch.channels_last),
        "again": lambda torch, x: x.to(memory_format=torch.channels_last).to(memory_format=torch.channels_last),
        "no rank": lambda torch, x: x[0].to(memory_format=torch.channels_last),
        "clone": lambda torch, x: x.clone(memory_format=torch.channels_last),
    }.items()
}  # fmt: skip


test_to_a_memory_format_is_one_copy = of_each(FORMATS)


LAYOUTS = {
    **programs("""
    torch.nonzero(torch.eye(3)).stride(); torch.nonzero(torch.zeros(3, 3)).shape
    [(each, each.stride()) for each in torch.nonzero(torch.eye(3), as_tuple=True)]
    torch.argwhere(torch.eye(3)).stride(); torch.nonzero_static(torch.eye(3), size=2).stride()
    torch.multinomial(torch.ones(3, 10), 3).stride(); torch.unravel_index(torch.zeros(0, dtype=torch.int64), (2, 0))
    torch.unravel_index(torch.tensor(3), (2, 0)); torch.unravel_index(torch.tensor(3), (2, 2.0))
    torch.trace(torch.zeros(0, 3))
"""),
    "nonzero of a number": lambda torch: [
        torch.nonzero(torch.tensor(1)),
        torch.nonzero(torch.tensor(1), as_tuple=True),
        torch.nonzero(torch.tensor(0), as_tuple=True),
    ],
    "quantile": lambda torch: [
        (each, each.stride())
        for each in (
            torch.quantile(leaf(torch, 3, 4, 5).detach(), torch.tensor([0.3, 0.6]), dim, keepdim)
            for dim in (0, 1, 2, None)
            for keepdim in (True, False)
        )
    ],
    "unravel_index": lambda torch: [
        (each, each.stride())
        for kind in (torch.uint8, torch.int32, torch.int64)
        for each in torch.unravel_index(torch.tensor([[5, 3], [1, 255]], dtype=kind), (4, 5, 600))
    ],
    "unique_consecutive of nothing": lambda torch: [
        torch.unique_consecutive(torch.zeros(5, 0, 5), True, True, dim=1),
        torch.unique_consecutive(torch.zeros(0, 5), True, dim=0),
        # (With the flag by position PyTorch takes another way, on which the inverse loses its shape.)
        torch.unique_consecutive(torch.zeros(5, 0, 5), return_inverse=True),
    ],
    "nan_to_num": lambda torch: [
        torch.nan_to_num(torch.tensor([1.0, torch.nan, torch.inf, -torch.inf]).to(kind), **given).float()
        for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        for given in ({}, {"nan": 2.0}, {"posinf": 7.0, "neginf": -3}, {"nan": torch.inf, "posinf": 1e9})
    ],
    "two large operands": lambda torch: [
        (torch.equal(f(x, y), f(x.contiguous(), y.contiguous())), f(x, y).stride())
        for a in (torch.arange(300000.0).reshape(50, 40, 150) % 7, torch.arange(300000).reshape(50, 40, 150) % 5)
        for x, y in ((a, a.mT.contiguous().mT), (a.permute(1, 2, 0), a.reshape(40, 150, 50) + 1.5), (a.mT, a.mT[:1]))
        for f in (torch.add, torch.lt, torch.maximum, torch.div)
    ],
    "trace": lambda torch: [
        torch.trace(leaf(torch, 2, 3).detach().to(kind))
        for kind in (torch.float16, torch.float32, torch.float64, torch.uint8, torch.int64)
    ],
}


test_layouts = of_each(LAYOUTS)


def turned(torch: Any) -> list[Any]:
    """Return views of four dimensions whose elements are in another order in memory, or expanded."""
    x = torch.arange(120.0).reshape(2, 3, 4, 5) / 60 - 1
    views = [x, x.permute(2, 0, 3, 1), x[:, 1:, ::2].permute(3, 0, 2, 1), x[:, :, :1].expand(2, 3, 4, 5)]
    return [*views, x[:1, :, :1].expand(2, 3, 4, 5).permute(1, 3, 0, 2), x.to(memory_format=torch.channels_last)]


def longer(x: Any) -> list[int]:
    """Return the strides of the dimensions that are longer than 1."""
    return [step for step, length in zip(x.stride(), x.shape, strict=True) if length > 1]


LAID_OUT: dict[str, Program] = {
    text: lambda torch, f=f: [(y, longer(y)) for x in turned(torch) for y in f(torch, x)]
    for text, f in {
        "one operand": lambda torch, x: (x.exp(), x.clone(), x.double(), x.int().exp(), torch.ones_like(x), x.flip(1)),
        "kept dimensions": lambda torch, x: (x.sum(1, True), x.amax(2, True), x.var(0, keepdim=True), x.max(3, True)[0],
            x.norm(2, 1, True), x.logsumexp((0, 2), True), (x > 0).any(1, True), x.prod(2, True)),
        "sorted": lambda torch, x: (*x.sort(dim=1, stable=True), x.argsort(dim=2, stable=True)),
        "losses": lambda torch, x: [getattr(torch.nn.functional, f"{loss}_loss")(x, y, reduction="none")
            for loss in ("mse", "l1", "smooth_l1", "huber", "soft_margin")
            for y in (x.mT.contiguous().mT, x.contiguous())],
        "random numbers": lambda torch, x: (torch.rand_like(x),
            *((x.clone().normal_(), torch.normal(x, 1.0)) if FUSED else ()),
            *torch.native_dropout(x, 0.5, True), torch.rrelu(x, training=True), torch.randint_like(x, 9)),
        "dropout": lambda torch, x: [getattr(torch.nn.functional, name)(x, 0.4, True)
            for name in ("dropout", "alpha_dropout", "dropout2d", "feature_alpha_dropout")],
        "two operands": lambda torch, x: [f(x.contiguous().view(y.shape), y) for y in turned(torch)
            for f in (torch.add, torch.complex, torch.eq, torch.hypot, torch.rsub, torch.isclose)],
        "two other operands": lambda torch, x: [f(y, x.contiguous().view(y.shape).mT.contiguous().mT)
            for y in turned(torch) for f in (torch.mul, torch.polar, torch.maximum)],
        "elements at indices": lambda torch, x: [x[index] for i in [torch.tensor([[0, 1, 1], [1, 0, 1]])]
            for index in (i[0], i.t(), (slice(None), i), (slice(None), i.t(), slice(None), i.t()), (..., i[0], i),
            torch.arange(len(x)) > 0, x > 0, (0, slice(None), i[1]))],
        "resized": lambda torch, x: (torch.exp(x, out=torch.ones(0)), *torch.sort(x, 1, out=(torch.ones(0),
            torch.ones(0, dtype=torch.int64))), torch.add(x[:1], x, out=torch.ones(0)), 2**x, torch.all(x, dim=[]),
            torch.fft.fft(x, dim=1, out=torch.ones(0, dtype=torch.complex64)).abs()),
        "three operands": lambda torch, x: (torch.where(x > 0, x.contiguous(), x), torch.addcmul(x.contiguous(), x, x),
            torch.lerp(x, x.contiguous(), 0.5), torch.clamp(x.contiguous(), x, x)),
    }.items()
}  # fmt: skip


test_results_have_the_order_of_the_first_operand = of_each(LAID_OUT)


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "masked_fill": lambda torch, x, value: x.masked_fill(torch.tensor([True, False]), value),
    "masked_fill_": lambda torch, x, value: x.masked_fill_(torch.tensor([True, False]), value),
    "index_fill": lambda torch, x, value: x.index_fill(0, torch.tensor([1]), value),
    "scatter": lambda torch, x, value: x.scatter(0, torch.tensor([1]), value),
    "fill_": lambda torch, x, value: x.fill_(value),
    "x[0] =": lambda torch, x, value: x.__setitem__(0, value) or x,
    "x[mask] =": lambda torch, x, value: x.__setitem__(torch.tensor([True, False]), value) or x,
}


@pytest.mark.parametrize("value", [1e9, -1e9, 65504.0, 65510.0, float("inf"), 1e39, 1e300, 10**6])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("write", WRITES)
def test_numbers_that_a_dtype_cannot_hold(write: str, kind: str, value: float) -> None:
    same_as_pytorch(lambda torch: WRITES[write](torch, torch.ones(2, dtype=getattr(torch, kind)), value).double())


ERRORS = {
    **programs("""
    torch.ones(5).narrow(0, torch.tensor([1]), 2); torch.ones(5).narrow(0, torch.tensor(True), 2)
    torch.ones(5).narrow(0, torch.tensor(1.0), 2); torch.ones(5).narrow(0, torch.tensor(1), 2)
    torch.narrow_copy(torch.ones(5), 1, 0, 0); torch.narrow_copy(torch.ones(5), -2, 0, 0)
    torch.narrow_copy(torch.ones(5), 0, 0, -1); torch.narrow_copy(torch.ones(5), 0, 6, 0); torch.trace(torch.ones(3))
    torch.trace(3); torch.vdot(torch.ones(3), 2); torch.multinomial(torch.tensor([1.0, -1.0]), 2, True)
    torch.multinomial(torch.tensor([1.0, torch.inf]), 2, True)
    torch.multinomial(torch.tensor([1.0, torch.nan]), 2, True)
    torch.multinomial(torch.tensor([1.0, torch.nan]), 1, True); torch.multinomial(torch.ones(1).expand(2**24 + 1), 3)
    torch.ones(3).scatter_reduce(0, torch.tensor([0]), torch.ones(1), "maximum")
    torch.ones(3).scatter_reduce(0, torch.tensor([0]), 2.0, "sum")
    torch.ones(3).scatter_reduce(0, torch.tensor([0]), torch.ones(1, dtype=torch.int64), 'sum')
    (lambda x: x.scatter_reduce_(0, torch.tensor([0, 0, 1]), x, 'sum'))(torch.ones(3))
"""),
    **{
        f"{path} of numbers": lambda torch, path=path: (
            getattr(torch.special if path.startswith("special") else torch, path.split(".")[-1])(2, 3)
        )
        for path in (
            "pow", "rsub", "special.zeta", "special.xlog1py", "special.legendre_polynomial_p",
            "special.chebyshev_polynomial_t",
        )
    },
}  # fmt: skip


test_errors = of_each(ERRORS)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e5, 1e-8, 7])
@pytest.mark.parametrize("compute", [
    lambda x, number: x * number, lambda x, number: number * x, lambda x, number: x / number,
    lambda x, number: number / (x + 4), lambda x, number: x.clone().mul_(number),
    lambda x, number: x.clone().div_(number),
])  # fmt: skip
@compared
def test_a_number_is_not_rounded_to_sixteen_bits_first(torch, compute, number, dtype):
    x = ((torch.arange(101) - 50) * 0.06).to(getattr(torch, dtype))
    return compute(x, number).float(), compute(x, torch.tensor(number)).float()


# How a tensor may lie in memory that is not in rows, and what ops make of it.

PLACES = programs("""
    numbers(2, 4, 3, 5).permute(0, 2, 1, 3); numbers(2, 4, 5, 3).permute(0, 3, 1, 2)
    numbers(5, 4, 3, 2).permute(3, 2, 1, 0); numbers(4, 3).t(); numbers(6, 8)[:, ::2]; numbers(6, 8)[:, ::2].t()
    numbers(2, 4, 3, 5)[:, 1:].transpose(1, 2); numbers(4).expand(3, 4); numbers(4, 1).expand(4, 3); numbers(2, 3, 4, 5)
""", {}, numbers=lambda torch: partial(numbers, torch))  # fmt: skip


def numbers(torch: Any, *shape: int) -> Any:
    return (torch.arange(float(torch.Size(shape).numel())) / 7 - 3).reshape(shape)


LAID_OUT = {
    **programs("""
    x.long().cumsum(1); torch.norm(x, dim=-1); torch.linalg.vector_norm(x, torch.inf, -1); torch.aminmax(x, dim=0)
    torch.std_mean(x, -1); x / x.sum(-1, keepdim=True); x - x.mean(0, keepdim=True)
    torch.nn.functional.normalize(x, dim=-1); x.topk(2); x.sort(0, descending=True)
    x.index_put((torch.tensor([0]),), torch.tensor(1.0)); x.index_fill(0, torch.tensor([0]), 2.0)
    x.put(torch.tensor([1]), torch.tensor([2.0])); x[0:0]; x.narrow(1, 1, 0)
    torch.nn.functional.rms_norm(x, x.shape[-1:])
    torch.nn.functional.rms_norm(x, x.shape[-1:], torch.ones(x.shape[-1]))
    torch.nn.functional.one_hot(x.long().abs() % 4, 4); x.clone().relu_().cumsum_(-1).add_(1)
    x.clone().copy_(x.softmax(-1))
""", {}, "x"),
    **{
        f"{name} over {dim}": lambda torch, x, name=name, dim=dim: getattr(torch, name)(x, dim)
        for name in (
            "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "argsort",
            "argmax", "sum", "mean", "amax", "amin", "prod", "max", "min", "all", "any", "std", "var",
            "logsumexp", "nansum", "count_nonzero", "mode",
        )
        for dim in (-1, 1, 0)
    },
    **{
        f"{name} over {dim}": lambda torch, x, name=name, dim=dim: getattr(torch, name)([x, x], dim)
        for name in ("cat", "stack")
        for dim in (-1, 1, 0)
    },
    **{
        name: lambda torch, x, name=name: getattr(torch.nn.functional, name)(x)
        for name in ("relu", "relu6", "silu", "elu", "leaky_relu", "softplus", "logsigmoid")
    },
    **{
        name: lambda torch, x, name=name: getattr(torch, name)(x)
        for name in ("exp", "sigmoid", "digamma", "lgamma", "erfinv", "i0", "isnan", "clone")
    },
}  # fmt: skip


def laid_out(made: Any) -> Any:
    """Return results with their strides, but for dimensions of length 1, where strides say nothing."""
    if isinstance(made, tuple):
        return [laid_out(each) for each in made]
    strides = [
        step if length > 1 or not made.numel() else 0 for step, length in zip(made.stride(), made.shape, strict=True)
    ]
    return made, strides


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", LAID_OUT)
def test_results_lie_in_memory_as_pytorchs(op: str, place: str) -> None:
    same_as_pytorch(lambda torch: laid_out(LAID_OUT[op](torch, PLACES[place](torch))), 1e-4, 1e-5)


@pytest.mark.parametrize(
    "equation",
    "i,j->ji ab,bc->ca ab,bc->ac abc,cd->dab abc,cd->adb bij,jk->bki bij,bjk->bki bij,bjk->kbi bij,bjk->ikb "
    "ab,cd->cdab ab,cd->acbd ab,cd->dcab abc,dc->bda abc,bcd->da ab,ab->ba abcd,ad->bca abc,abd->dca "
    "abc,abd->cda abc,abd->bdc bhid,bhjd->bhij bhij,bjhd->bihd bihd,bjhd->bhij bhij,bhjd->bihd abc,c->ba a,bca->cb "
    "ab,a->b abc,bd->cda nchw,oc->nohw bnd,bmd->bmn".split(),
)
def test_einsum_lies_in_memory_as_pytorchs(equation: str) -> None:
    def program(torch: Any) -> Any:
        terms = equation.partition("->")[0].split(",")
        letters = sorted(set("".join(terms)))
        operands = [numbers(torch, *[letters.index(each) + 2 for each in term]) for term in terms]
        return laid_out(torch.einsum(equation, *operands))

    same_as_pytorch(program, 1e-4, 1e-4)


CALLS = {
    **programs("""
    torch.nn.functional.leaky_relu(torch.ones(2), torch.ones(2)); torch.nn.functional.leaky_relu(torch.ones(2), "a")
    torch.nn.functional.elu(torch.ones(2), None); torch.ones(2).softmax(); torch.cat([torch.ones(2, 2)], True)
    torch.ones(3).topk(True); torch.ones(3).kthvalue(True); torch.nn.functional.linear(torch.ones(2, 2), 3)
    torch.nn.functional.linear(torch.ones(2, 2), None)
    torch.nn.functional.linear(torch.ones(2, 2), torch.ones(2, 2), 3); torch.nn.PReLU()((torch.ones(2),))
    (lambda x: x[1:].masked_fill_(x[:-1], False))(torch.ones(4, dtype=torch.bool))
    (lambda x: x.masked_fill_(x, False))(torch.tensor([True, False]))
    (lambda x: x.masked_fill_(torch.tensor([True, False]), x[1]))(torch.tensor([1.0, 2.0]))
    (lambda x: x.index_fill_(0, x, 5))(torch.tensor([0, 1]))
    (lambda x: x.index_fill_(0, torch.tensor([1]), x[0]))(torch.tensor([7, 1]))
"""),
    **{
        f"{name}: {words}": lambda torch, name=name, call=call: call(
            torch, name, numbers(torch, *CHANGED[name][0]), [numbers(torch, *each) for each in CHANGED[name][1:]]
        )
        for name in ("addmm", "addmv", "addr", "addbmm", "baddbmm")
        for words, call in {
            "factors first": lambda torch, name, x, factors: getattr(torch, name)(2, x, 3, *factors),
            "beta first": lambda torch, name, x, factors: getattr(torch, name)(2, x, *factors),
            "a method": lambda torch, name, x, factors: getattr(x, name)(2, 3, *factors),
            "a method with beta": lambda torch, name, x, factors: getattr(x, name)(2, *factors),
            "in place": lambda torch, name, x, factors: getattr(x, f"{name}_")(2, 3, *factors),
            "a tensor for alpha": lambda torch, name, x, factors: getattr(torch, name)(
                x, *factors, alpha=torch.tensor(2.0), beta=torch.tensor(3)
            ),
        }.items()
    },
    **{
        f"{name} of tensors": lambda torch, name=name, given=given: (
            lambda x: (
                lambda made: (made, torch.autograd.grad(made.sum(), x))
            )(getattr(torch.nn.functional, name)(x, *[torch.tensor(each) for each in given]))
        )(leaf(torch, 4) - 0.3)
        for name, given in {
            "leaky_relu": (0.1,), "elu": (0.5,), "celu": (0.5,), "softplus": (2.0, 0.3), "threshold": (0.1, 3.0),
            "hardtanh": (-0.1, 0.2),
        }.items()
    },
    **{
        f"{words}, axis": lambda torch, call=call: call(torch, numbers(torch, 3, 3))
        for words, call in {
            "softmax": lambda torch, x: x.softmax(axis=0), "log_softmax": lambda torch, x: torch.log_softmax(x, axis=0),
            "logcumsumexp": lambda torch, x: x.logcumsumexp(axis=0),
            "tensor_split": lambda torch, x: torch.tensor_split(x, 2, axis=1),
            "linalg.norm": lambda torch, x: torch.linalg.norm(x, axis=0, keepdims=True),
            "linalg.vector_norm": lambda torch, x: torch.linalg.vector_norm(x, axis=0),
            "linalg.matrix_norm": lambda torch, x: torch.linalg.matrix_norm(x, axis=(0, 1)),
            "cross": lambda torch, x: torch.cross(x, x + 1, axis=0),
            "renorm": lambda torch, x: x.renorm(p=2, axis=0, maxnorm=1),
        }.items()
    },
    **{
        f"{name}, a bool for the dimension": lambda torch, name=name: getattr(torch.ones(2, 2), name)(True)
        for name in ("cumsum", "cummax", "unbind", "argmax")
    },
}  # fmt: skip

CHANGED = {
    "addmm": ((2, 2), (2, 3), (3, 2)), "addmv": ((2,), (2, 3), (3,)), "addr": ((2, 3), (2,), (3,)),
    "addbmm": ((2, 2), (4, 2, 3), (4, 3, 2)), "baddbmm": ((4, 2, 2), (4, 2, 3), (4, 3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_calls(case: str) -> None:
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():  # of an old order, which is warned of once for all ops
            warnings.simplefilter("ignore")
            return CALLS[case](torch)

    same_as_pytorch(program, 1e-4, 1e-4)
