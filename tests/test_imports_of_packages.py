"""What packages written for PyTorch ask of it beside its operators, against PyTorch."""

from __future__ import annotations

import importlib
import sys
import warnings
from threading import Timer
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

# Assertions and sizes -----------------------------------------------------------------------------

CHECKS = [
    lambda torch: torch._check(True),
    lambda torch: torch._check(False),
    lambda torch: torch._check(False, lambda: "said so"),
    lambda torch: torch._check(1),
    lambda torch: torch._check(torch.tensor(True)),
    lambda torch: torch._check(False, "said so"),
    lambda torch: torch._check_index(False, lambda: "index"),
    lambda torch: torch._check_value(False, lambda: 3),
    lambda torch: torch._check_type(False),
    lambda torch: torch._check_not_implemented(False),
    lambda torch: torch._check_is_size(-1),
    lambda torch: torch._check_is_size(3),
    lambda torch: torch._check_with(KeyError, False, lambda: "key"),
    lambda torch: torch._check_tensor_all(torch.tensor([True, False])),
    lambda torch: torch._check_tensor_all(torch.tensor([True, True])),
    lambda torch: torch._check_tensor_all(torch.tensor([1])),
    lambda torch: torch._check_tensor_all(True),
    lambda torch: torch._assert(False, "said so"),
    lambda torch: torch._assert(torch.tensor(True), "said so"),
    lambda torch: torch._assert(torch.tensor([True, False]), "said so"),
    lambda torch: torch._assert_async(torch.tensor(0), "said so"),
    lambda torch: torch._assert_async(torch.tensor(0)),
    lambda torch: torch._assert_async(torch.tensor(1)),
    lambda torch: [torch.sym_int(-3.7), torch.sym_float(3), torch.sym_not(False)],
    lambda torch: [torch.sym_max(3, 2.0), torch.sym_min(3, 2.0), torch.sym_max(2, 3)],
    lambda torch: [torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_sqrt(4)],
    lambda torch: torch.sym_ite(1, 1, 2),
    lambda torch: [isinstance(3, (torch.SymInt, torch.SymFloat, torch.SymBool))],
]


@needs_oracle
@pytest.mark.parametrize("program", CHECKS)
def test_checks(program: Any) -> None:
    same_as_pytorch(program)


# Futures ------------------------------------------------------------------------------------------


@needs_oracle
def test_futures() -> None:
    def program(torch: Any) -> list[Any]:
        futures = importlib.import_module(f"{torch.__name__}.futures")
        out: list[Any] = []

        def note(call: Any) -> None:
            try:
                out.append(call())
            except Exception as error:
                out.append([type(error).__name__, str(error)[:55]])

        first, second = futures.Future(), futures.Future()
        seen: list[int] = []
        first.add_done_callback(lambda done: seen.append(done.value()))
        after = first.then(lambda done: done.value() + 1)
        both = futures.collect_all([first, after])
        out += [first.done(), both.done()]
        first.set_result(3)
        note(lambda: first.set_result(4))
        out += [first.value(), first.wait(), after.wait(), first.done(), seen]
        out += [[each.value() for each in both.wait()], futures.wait_all([first, after])]
        note(lambda: first.then(lambda done: 1 // 0).wait())
        note(lambda: second.set_exception(3))
        second.set_exception(ValueError("wrong"))
        note(second.wait)
        note(second.value)
        note(futures.collect_all([second]).wait)
        note(lambda: futures.wait_all([second]))
        out.append([futures.collect_all([]).wait(), isinstance(first, torch.Future)])
        return out

    same_as_pytorch(program)


def test_waiting_for_another_thread() -> None:
    future = tinytorch.futures.Future()
    timer = Timer(0.05, lambda: future.set_result(5))
    timer.start()
    assert future.wait() == 5
    timer.join()


# Types and layouts that no tensor has -------------------------------------------------------------

ABSENT = """uint16 uint32 uint64 complex32 complex64 complex128 cfloat cdouble chalf float8_e4m3fn float8_e4m3fnuz
    float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"""


@needs_oracle
@pytest.mark.parametrize("name", ABSENT.split())
def test_types(name: str) -> None:
    def program(torch: Any) -> list[Any]:
        kind = getattr(torch, name)
        facts = [kind.itemsize, kind.is_complex, kind.is_floating_point, kind.is_signed]
        return [repr(kind), *facts, torch.ones(1).dtype == kind]

    same_as_pytorch(program)
    same_as_pytorch(lambda torch: torch.iinfo(getattr(torch, name)).max)
    if "float8" in name:
        names = "max min tiny smallest_normal resolution bits dtype".split()
        names += ["eps"] * (name != "float8_e5m2fnuz")  # PyTorch's is half the distance after 1
        same_as_pytorch(
            lambda torch: [getattr(torch.finfo(getattr(torch, name)), each) for each in names]
        )


@pytest.mark.parametrize("name", ABSENT.split())
def test_no_tensor_is_made_of_them(name: str) -> None:
    kind = getattr(tinytorch, name)
    for make in (
        lambda: tinytorch.zeros(2, dtype=kind),
        lambda: tinytorch.tensor([1], dtype=kind),
        lambda: tinytorch.ones(2).to(kind),
        lambda: tinytorch.promote_types(kind, tinytorch.int8),
        lambda: tinytorch.arange(3, dtype=kind),
    ):
        with pytest.raises(NotImplementedError, match="no tensors of dtype torch"):
            make()


@needs_oracle
def test_layouts() -> None:
    names = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()
    same_as_pytorch(lambda torch: [repr(getattr(torch, name)) for name in names])
    same_as_pytorch(
        lambda torch: [
            torch.ones(1).layout is torch.strided,
            torch.nn.Parameter(torch.ones(1)).layout == torch.sparse_coo,
        ]
    )


# Spectra and processes ----------------------------------------------------------------------------


@needs_oracle
@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_frequencies(n: int) -> None:
    def program(torch: Any) -> list[Any]:
        fft = importlib.import_module(f"{torch.__name__}.fft")
        x = torch.arange(float(n * 3)).reshape(n, 3)
        out = [fft.fftshift(x), fft.ifftshift(x, 0), fft.fftshift(x, (1,)), fft.ifftshift(x)]
        if n:
            out += [fft.fftfreq(n), fft.fftfreq(n, 0.5, dtype=torch.float64), fft.rfftfreq(n, 2.0)]
            out.append(fft.rfftfreq(n, requires_grad=True))
        return out

    same_as_pytorch(program)


def test_transforms_say_that_there_are_no_complex_numbers() -> None:
    with pytest.raises(NotImplementedError, match=r"fft\.rfft: tinytorch has no complex numbers"):
        tinytorch.fft.rfft(tinytorch.ones(4))


@needs_oracle
@pytest.mark.parametrize("name", ["get_rank", "get_world_size", "barrier"])
def test_no_group(name: str) -> None:
    same_as_pytorch(
        lambda torch: getattr(importlib.import_module(f"{torch.__name__}.distributed"), name)()
    )


# Memory -------------------------------------------------------------------------------------------


@needs_oracle
@pytest.mark.parametrize(
    "op",
    [
        lambda torch, x: torch.nn.functional.pad(x, (1, 1)),
        lambda torch, x: x.roll(1, 1),
        lambda torch, x: x.roll(1),
        lambda torch, x: x.tril(),
        lambda torch, x: x.triu(),
    ],
)
@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 3, 1, 2), (3, 2, 1, 0), (0, 1, 2, 3)])
def test_layout_of_results(op: Any, order: tuple[int, ...]) -> None:
    def program(torch: Any) -> list[Any]:
        x = torch.arange(120.0).reshape(2, 3, 4, 5).permute(order)
        out = op(torch, x)
        return [list(out.stride()), out]

    same_as_pytorch(program)


@needs_oracle
def test_sizes_of_storages() -> None:
    def program(torch: Any) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            large, none = torch.ones(1000), torch.ones(0)
            return [
                sys.getsizeof(large.storage()) - sys.getsizeof(none.storage()),
                sys.getsizeof(large.untyped_storage()) - sys.getsizeof(none.untyped_storage()),
            ]

    same_as_pytorch(program)


# Others -------------------------------------------------------------------------------------------


@needs_oracle
def test_numbers_of_steps_as_tensors() -> None:
    same_as_pytorch(lambda torch: torch.linspace(-0.5, 0.5, torch.tensor(5)))
    same_as_pytorch(lambda torch: torch.logspace(0, 2, torch.tensor(3)))


@needs_oracle
def test_the_processors_vector_instructions() -> None:
    same_as_pytorch(lambda torch: torch.backends.cpu.get_cpu_capability())


def test_what_is_not_traced() -> None:
    fx = tinytorch.fx
    assert fx.wrap(len) is len and fx.wrap("len") == "len"
    assert not isinstance(tinytorch.nn.ReLU(), fx.GraphModule)
    for call in (lambda: fx.symbolic_trace(tinytorch.nn.ReLU()), fx.Graph, fx.Proxy, fx.Node):
        with pytest.raises(NotImplementedError, match="traces no programs"):
            call()
    with pytest.raises(RuntimeError, match="callable or string name"):
        fx.wrap(3)
    with pytest.raises(NotImplementedError, match="no ONNX"):
        tinytorch.onnx.export()
    assert not tinytorch.onnx.is_in_onnx_export()


def test_attributes_are_copied_by_dotted_names() -> None:
    from tinytorch.fx.graph_module import _copy_attr

    source, target = tinytorch.nn.Sequential(tinytorch.nn.BatchNorm1d(2)), tinytorch.nn.Module()
    _copy_attr(source, target, "0.weight")
    _copy_attr(source, target, "0.running_mean")
    _copy_attr(source, target, "1.weight")
    assert list(target.state_dict()) == ["0.weight", "0.running_mean"]
    assert getattr(target, "0").weight is source[0].weight


@needs_oracle
def test_how_elements_are_printed() -> None:
    def program(torch: Any) -> list[Any]:
        printing = importlib.import_module(f"{torch.__name__}._tensor_str")
        x = torch.tensor(np.arange(6.0).reshape(2, 3))
        return [
            printing._tensor_str(x, 0),
            printing._tensor_str(x, 4),
            printing.PRINT_OPTS.threshold,
        ]

    same_as_pytorch(program)


@needs_oracle
def test_stubs_of_quantised_models() -> None:
    def program(torch: Any) -> list[Any]:
        quantization = importlib.import_module(f"{torch.__name__}.ao.quantization")
        x = torch.tensor(np.arange(3.0))
        return [quantization.QuantStub()(x), quantization.DeQuantStub()(x)]

    same_as_pytorch(program)


@needs_oracle
def test_dictionaries_as_trees() -> None:
    def program(torch: Any) -> list[Any]:
        trees = importlib.import_module(f"{torch.__name__}.utils._pytree")
        d = {"b": 1, "a": [2]}
        values, keys = trees._dict_flatten(d)
        pairs, context = trees._dict_flatten_with_keys(d)
        shown = [[str(key), value] for key, value in pairs]
        return [values, keys, shown, context, trees._dict_unflatten([3, 4], keys)]

    same_as_pytorch(program)
