"""`out=`: what every function that takes it does with it, against PyTorch."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.declared import FUNCTIONS
from tests.oracle import needs_oracle, torch
from tests.same import compared, expressions, of_each, programs
from tests.samples import Sample, all_samples
from tinytorch.ops import out as out_module

# PyTorch says once that it is in beta.
pytestmark = pytest.mark.filterwarnings("ignore:index_reduce")

NAMES = {name for name, function in FUNCTIONS.items() if function.rule is not None}
SAMPLES: dict[str, list[Sample]] = {}
for _sample in all_samples():
    if _sample.name in NAMES:
        SAMPLES.setdefault(_sample.name, []).append(_sample)


#: Special cases of PyTorch's that do not look at the dtype of `out`.
EXCEPTIONS = tuple(f"linalg.matrix_power(float64[2x3x3], {n})" for n in (0, 1))

#: Functions whose words depend on the way that PyTorch takes inside.
OTHER_WORDS = ("matrix_power", "norm")


def given(library: Any, value: Any, kind: str | None = None) -> Any:
    """Return an argument of a sample as a library's, floating arrays in the dtype `kind`."""
    if isinstance(value, np.ndarray):
        made = library.from_numpy(value.copy())
        return made.to(getattr(library, kind)) if kind and made.is_floating_point() else made
    if isinstance(value, (list, tuple)):
        return type(value)(given(library, each, kind) for each in value)
    return value


def found(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


def call(library: Any, sample: Sample, out: Any = None, kind: str | None = None) -> Any:
    args = given(library, sample.args, kind)
    kwargs = {key: given(library, each, kind) for key, each in sample.kwargs.items()}
    return found(library, sample.name)(*args, **kwargs, **({} if out is None else {"out": out}))


def blanks(library: Any, results: Any, kind: Any = None) -> Any:
    """Return empty tensors for the results of a call, of their dtypes or of one given (pieces: of their shapes)."""
    if type(results) is tuple:
        kinds = [each.dtype if kind is None else getattr(library, kind) for each in results]
        return tuple(library.empty(a.shape, dtype=b) for a, b in zip(results, kinds, strict=True))
    if isinstance(results, library.Tensor):
        return library.empty(0, dtype=results.dtype if kind is None else getattr(library, kind))
    return tuple(blanks(library, each, kind) for each in results)


def test_every_rule_applies_to_something() -> None:
    assert {function.rule for function in FUNCTIONS.values()} - {None} == out_module.RULES.keys()


@needs_oracle
@pytest.mark.parametrize("name", sorted(NAMES))
def test_pytorch_takes_out_where_we_do(name: str) -> None:
    theirs = found(torch, name)
    x = torch.zeros(2, 2)
    for args in ((x,), (x, x), (x, x, x), ([x],)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs(*args, out=x)
        except TypeError as error:
            assert "unexpected keyword argument 'out'" not in str(error)
        except (RuntimeError, IndexError, NotImplementedError):
            return
        else:
            return


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_result_is_written(name: str) -> None:
    for sample in SAMPLES[name]:
        expected = call(tinytorch, sample)
        if type(expected) is tuple and not name.endswith("_copy"):
            continue  # this overload has no out=
        out = blanks(tinytorch, expected)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            result = call(tinytorch, sample, out)
        outs: Any = out
        if isinstance(expected, tinytorch.Tensor):
            assert result is out
            expected, outs = (expected,), (out,)
        elif result is not None:
            assert all(a is b for a, b in zip(result, out, strict=True))
        for made, each in zip(expected, outs, strict=True):
            assert made.shape == each.shape and made.dtype == each.dtype and each._version == 1
            np.testing.assert_array_equal(each.numpy(), made.resolve_conj().numpy())


@needs_oracle
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_another_dtype_than_the_results(name: str) -> None:
    compared = 0
    for sample in SAMPLES[name]:
        try:
            expected = call(torch, sample, kind="float32")
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # not for float32
        if str(sample) in EXCEPTIONS:
            continue
        for kind in ("float64", "int64", "bool"):
            compared += _compare_into(sample, expected, kind)
        if compared > 3:
            return


def _compare_into(sample: Sample, expected: Any, kind: str) -> bool:
    """Compare a call into `out` of a dtype; return whether there was something to compare."""
    outs = blanks(torch, expected, kind), blanks(tinytorch, call(tinytorch, sample), kind)
    errors: list[Any] = [None, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, library in enumerate((torch, tinytorch)):
            try:
                call(library, sample, outs[k], "float32")
            except Exception as error:  # every class: it is compared
                errors[k] = error
    theirs, ours = errors
    if isinstance(theirs, TypeError) and "can't be cast" not in str(theirs):
        return False  # this overload has no out= in PyTorch
    where = f"{sample} into {kind}: {ours!r} against {theirs!r}"
    assert (theirs is None) == (ours is None), where
    if theirs is not None:
        assert type(ours) is type(theirs), where
        same_words = str(ours).split()[:2] == str(theirs).split()[:2]
        assert (
            same_words
            or sample.name.rpartition(".")[2] in OTHER_WORDS
            or ("can't be cast" in str(ours) and "can't be cast" in str(theirs))
        ), where
    elif isinstance(outs[0], torch.Tensor):
        mine, other = outs[1].double().numpy(), outs[0].double().numpy()
        np.testing.assert_allclose(mine, other, 1e-4, 1e-5, err_msg=where)
    return True


def _resized(torch: Any) -> Any:
    out = torch.zeros(5)
    return torch.add(torch.arange(3.0), 1, out=out), out


def _resized_view(torch: Any) -> Any:
    base = torch.arange(10.0)
    view = base[2:7]
    torch.add(torch.arange(3.0), 100, out=view)
    return base, view, view.storage_offset(), view.stride(), view._base is base, view._version


def _resized_matrix(torch: Any) -> Any:
    base = torch.arange(12.0)
    view = base[4:]
    torch.mul(torch.arange(6.0).view(2, 3), 2, out=view)
    return base, view, view.stride(), base._version


def _into_a_transpose(torch: Any) -> Any:
    out = torch.empty(3, 2).t()
    torch.mm(torch.arange(4.0).view(2, 2), torch.ones(2, 3), out=out)
    return out, out.stride()


def _versions(torch: Any) -> Any:
    x, out = torch.arange(3.0), torch.empty(3)
    torch.exp(x, out=out)
    torch.add(x, x, out=out)
    view = out[:2]
    torch.mul(x[:2], 2, out=view)
    return out, out._version, view._version


def _saved(torch: Any) -> Any:
    p, out = torch.ones(3, requires_grad=True), torch.ones(3)
    y = p * out
    torch.exp(torch.zeros(3), out=out)
    y.sum().backward()


def _under_no_grad(torch: Any) -> Any:
    p = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        torch.mul(p, 2, out=p)
    return p, p._version


def _inference(torch: Any) -> Any:
    with torch.inference_mode():
        out = torch.empty(3)
    torch.exp(torch.zeros(3), out=out)


def _with_a_tangent(torch: Any) -> Any:
    with warnings.catch_warnings(), torch.autograd.forward_ad.dual_level():
        warnings.simplefilter("ignore")  # PyTorch's of its own scripts
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        return torch.exp(dual, out=torch.empty(2))


def _overlap(name: str, *args: Any) -> Any:
    def program(torch: Any) -> Any:
        b = torch.arange(4.0).view(2, 2)
        given = [b if each == "b" else torch.zeros(2, 2).long() if each == "i" else each for each in args]
        given = [b > 0 if each == "m" else torch.tensor([0, 1]) if each == "v" else each for each in given]
        return getattr(torch, name)(*given, out=b)

    return program


def _int64(torch: Any) -> Any:
    return torch.empty(0, dtype=torch.int64)


PROGRAMS = {
    **programs("""
    torch.exp(torch.zeros(3), out=torch.empty(4, 0)); torch.exp(torch.ones(2, requires_grad=True), out=torch.empty(0))
    torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=torch.ones(2, 2, requires_grad=True))
    torch.cat([torch.ones(2), torch.ones(2, requires_grad=True)], out=torch.empty(0))
    torch.gt(torch.ones(2, requires_grad=True), 0, out=torch.empty(0, dtype=torch.bool))
    torch.exp(torch.ones(2), out=3); torch.exp(torch.ones(2), out=[torch.empty(0)])
    torch.sort(torch.ones(2), out=(torch.empty(0),)); torch.sort(torch.ones(2), out=torch.empty(0))
    torch.sort(torch.arange(3.0), 0, True, out=(torch.empty(0), _int64(torch)))
    repr(torch.sort(torch.arange(3.0), out=(torch.empty(0), _int64(torch)))).split("=")[0]
    torch.max(torch.eye(2), 0, out=(torch.empty(0), _int64(torch))).values; torch.max(torch.eye(2), out=torch.empty(0))
    torch.nonzero(torch.eye(2), out=_int64(torch)); torch.sum(torch.tensor([1, 2]), 0, out=torch.empty(0))
    torch.cumsum(torch.ones(2), 0, dtype=torch.float64, out=torch.empty(0, dtype=torch.float64))
    torch.exp(torch.zeros(3), out=torch.zeros(1).expand(3)); (lambda b: torch.add(b[:-1], 1, out=b[1:]))(torch.ones(4))
    (lambda b: torch.add(b, 1, out=b))(torch.ones(4)); torch.add(torch.ones(2, 1), torch.ones(3), out=torch.empty(2, 3))
    torch.mul(torch.ones(2), 3, out=torch.empty(2))
    torch.div(torch.tensor([7.0, -7.0]), 2, rounding_mode="floor", out=torch.empty(2))
    torch.exp(torch.zeros(2), out=None); torch.add(input=torch.ones(2), other=torch.ones(2), out=torch.empty(2))
    torch.mul(input=torch.ones(2), other=torch.exp(input=torch.ones(2))); torch.exp(torch.ones(2), foo=1)
    (torch.exp.__name__, torch.concat.__name__, torch.nn.functional.linear.__name__)
""", {"_int64": _int64}),
    "resized": _resized, "resized view": _resized_view, "resized matrix": _resized_matrix,
    "into a transpose": _into_a_transpose, "versions": _versions, "saved": _saved, "under no_grad": _under_no_grad,
    "inference": _inference, "tangent": _with_a_tangent,
    **{
        f"{name} over its input": _overlap(name, *args)
        for name, *args in (
            ("gather", "b", 0, "i"), ("take", "b", "i"), ("index_select", "b", 0, "v"), ("where", "m", "b", "b"),
            ("masked_select", "b", "m"), ("scatter", "b", 0, "i", "b"), ("tril", "b"), ("cumsum", "b", 0),
        )
    },
}  # fmt: skip


test_as_pytorch = of_each(PROGRAMS)


COPIED = """
    linalg.norm(x, out=o); linalg.norm(x, "nuc", out=o); linalg.norm(x, 1, 0, out=o); linalg.cond(x, out=o)
    linalg.matrix_norm(x, out=o); nuclear_norm(x, out=o); quantile(x, 0.5, out=o); nanquantile(x, 0.5, out=o)
    tensordot(x, x, 1, out=o); inner(x, x, out=o); linalg.tensorsolve(x, x[0], out=o)
    linalg.tensorinv(x, ind=1, out=o); softmax(x, 0, out=o); softmax(x, 1, dtype=torch.float64, out=o.double())
    log_softmax(x, 0, out=o); softmax(x.detach(), 0, out=x + 1); softmax(x.detach(), 0, out=x)
    quantile(x, 0.5, 0, out=x[0]); special.logsumexp(x, 0, out=o)
"""


@pytest.mark.filterwarnings("ignore:.*(nuclear_norm|deprecated)")
@pytest.mark.parametrize("line", expressions(COPIED))
@compared(rtol=1e-4)
def test_gradients_where_pytorch_copies_into_out(torch: Any, line: str) -> Any:
    x = torch.tensor([[3.0, 1.0], [-1.0, 2.0]], requires_grad=True)
    o = torch.empty(0)
    made = eval(f"torch.{line}", {"torch": torch, "x": x, "o": o})
    try:
        made.sum().backward()
    except RuntimeError as error:
        return made.requires_grad, made.detach(), str(error)
    return made.requires_grad, made.detach(), x.grad, type(made.grad_fn).__name__


def test_the_result_of_a_product_may_replace_its_factor() -> None:
    b = tinytorch.ones(2, 2)
    tinytorch.mm(b, b, out=b)  # (PyTorch's kernel reads what it has written)
    assert b.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_public_function_can_be_pickled() -> None:
    for function in (tinytorch.exp, tinytorch.concat, tinytorch.linalg.vector_norm):
        assert pickle.loads(pickle.dumps(function)) is function


def test_the_memory_is_written_directly() -> None:
    x, out = tinytorch.ones(4), tinytorch.empty(4)
    array = out.numpy()
    for result in (tinytorch.exp(x, out=out), tinytorch.add(x, x, out=out)):
        assert result is out and result.numpy() is array
    assert array.tolist() == [2.0] * 4
