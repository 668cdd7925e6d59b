"""Features of PyTorch other than operators that third-party packages use (the names they import: `test_names.py`)."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch


def of(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


# Assertions and sizes -----------------------------------------------------------------------------


# Futures ------------------------------------------------------------------------------------------


def test_futures() -> None:
    def program(torch: Any) -> list[Any]:
        futures = of(torch, "futures")
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

WITHOUT_TENSORS = ("complex32", "chalf", "float8_e8m0fnu")
FURTHER = (
    *WITHOUT_TENSORS, "complex64", "complex128", "cfloat", "cdouble", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz",
)  # fmt: skip


@pytest.mark.parametrize("name", FURTHER)
def test_types(name: str) -> None:
    def program(torch: Any) -> list[Any]:
        kind = getattr(torch, name)
        facts = [kind.itemsize, kind.is_complex, kind.is_floating_point, kind.is_signed]
        return [repr(kind), *facts, torch.ones(1).dtype == kind]

    same_as_pytorch(program)
    same_as_pytorch(lambda torch: torch.iinfo(getattr(torch, name)).max)
    if "float8" in name:
        names = "max min tiny smallest_normal resolution bits dtype eps".split()
        same_as_pytorch(lambda torch: [getattr(torch.finfo(getattr(torch, name)), each) for each in names])


@pytest.mark.parametrize("name", WITHOUT_TENSORS)
def test_no_tensor_is_made_of_them(name: str) -> None:
    kind = getattr(tinytorch, name)
    makers = [
        lambda: tinytorch.zeros(2, dtype=kind),
        lambda: tinytorch.tensor([1], dtype=kind),
        lambda: tinytorch.ones(2).to(kind),
    ]
    if name == "float8_e8m0fnu":  # (promotions lead to the others, and PyTorch has no `arange` of them, either)
        makers += [lambda: tinytorch.promote_types(kind, tinytorch.int8), lambda: tinytorch.arange(3, dtype=kind)]
    for make in makers:
        with pytest.raises(NotImplementedError, match="no tensors of dtype torch"):
            make()


# Tensors in memory --------------------------------------------------------------------------------


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


GROUPS = """
    [[a, b, c], [None, b, c]]
    [[a, b, c], []], True
    [[a], [b]]
    [[a, b], [b, a]], False
    []
    [[]]
    [[None]]
"""


@pytest.mark.parametrize("line", [each.strip() for each in GROUPS.strip().splitlines()])
def test_groups_of_tensors(line: str) -> None:
    def program(torch: Any) -> Any:
        foreach = of(torch, "utils._foreach_utils")
        a, b, c = torch.ones(2), torch.ones(3, dtype=torch.float64), torch.zeros(1)
        groups = eval(f"f({line})", {"f": foreach._group_tensors_by_device_and_dtype, "a": a, "b": b, "c": c})
        by_name = {(str(where), str(kind)): group for (where, kind), group in groups.items()}
        return [by_name[key] for key in sorted(by_name)]

    same_as_pytorch(program)


# Trees --------------------------------------------------------------------------------------------


def test_types_of_trees() -> None:
    """Flatten trees as Lightning does."""

    def program(torch: Any) -> Any:
        tree = of(torch, "utils._pytree")
        kind = tree._get_node_type({"a": 1})
        items, keys = tree.SUPPORTED_NODES[kind].flatten_fn({"a": [1, 2], "b": 3})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's LeafSpec is deprecated
            spec = tree.TreeSpec(dict, ["x", "y"], [tree.LeafSpec(), tree.LeafSpec()])
        return [
            kind is dict, tree._get_node_type(torch.ones(1)) is torch.Tensor, items, list(keys),
            tree.tree_unflatten([1, 2], spec), tree.LeafSpec in type(spec).__mro__,
            int not in tree.SUPPORTED_NODES,
        ]  # fmt: skip

    same_as_pytorch(program)


def test_dictionaries_as_trees() -> None:
    def program(torch: Any) -> list[Any]:
        trees = of(torch, "utils._pytree")
        d = {"b": 1, "a": [2]}
        values, keys = trees._dict_flatten(d)
        pairs, context = trees._dict_flatten_with_keys(d)
        shown = [[str(key), value] for key, value in pairs]
        return [values, keys, shown, context, trees._dict_unflatten([3, 4], keys)]

    same_as_pytorch(program)


# Layers, optimizers, loaders, files ---------------------------------------------------------------


def test_reparametrized_module() -> None:
    def program(torch: Any) -> Any:
        context = of(torch, "nn.utils.stateless")._reparametrize_module
        layer = torch.nn.Linear(2, 1)
        own = layer.weight
        weight = torch.ones(1, 2, requires_grad=True)
        with context(layer, {"weight": weight}):
            inside = layer.weight is weight
            layer(torch.tensor([1.0, 2.0])).sum().backward()
        try:
            with context(layer, {"other": weight}, strict=True):
                pass
        except RuntimeError as error:
            return [inside, layer.weight is own, weight.grad, own.grad, str(error)[:60]]

    same_as_pytorch(program)


NAMED = """
    home.swap_tensor(net[0], "weight", x) is not x and net[0].weight is x
    [home.swap_tensor(net[1], "running_mean", None) is None, list(net[1]._buffers)]
    [home.swap_tensor(net, "other", x, allow_missing=True) is x, net.other is x] || home.swap_tensor(net, "other", x)
    home.swap_tensor(net, "training", x) || home.swap_tensor(net, "0.weight", x) || home.swap_tensor(net, "", x)
    home.swap_tensor(net, "weight", 3) || home.swap_tensor(3, "weight", x)
    [home.set_tensor(net[0], "bias", None), net[0].bias] || [home.set_tensor(net, "training", x), net.training is x]
    home.set_tensor(net[0], "bias", 3) || [type(home.swap_submodule(net, "0", net[1])).__name__, net[0] is net[1]]
    home.swap_submodule(net, "7", net[1]) || home.swap_submodule(net, "0.1", net[1]) || home.swap_submodule(net, "0", x)
    at.swap_tensor("0.weight", x) is not x and net[0].weight is x
    [at.get_submodule("") is net, at.get_submodule("2.0") is net[2][0], sorted(at.memo)] || at.get_submodule("2.1")
    at.get_submodule("2.training") || [type(at.swap_submodule("2.0", net[1])).__name__, net[2][0] is net[1]]
    [at.get_tensor("2.0.bias") is net[2][0].bias, at.get_tensors(["0.bias"])[0].shape] || at.get_tensor("2.bias")
    at.get_tensor("2.training")
    [at.set_tensors(["0.weight", "2.0.bias"], iter([x, None])), net[0].weight is x, net[2][0].bias]
    at.set_tensors(["0.weight"], []) || [at.set_tensors_dict({"0.bias": x}), net[0].bias is x]
    [at.del_tensors(["0.bias"]), hasattr(net[0], "bias")] || at.del_tensor("0.scale")
    [len(at.swap_tensors(["0.bias", "0.weight"], [x, x])), net[0].bias is x]
    [list(at.swap_tensors_dict({"0.bias": x})[0]), net[0].bias is x]
    at.swap_tensors_dict({"0.bias": x, "scale": x, "0.scale": x})
    at.swap_tensors_dict({"0.bias": x, "0.scale": x}, allow_missing=True)[1]
    at.swap_tensors_dict(at.swap_tensors_dict({"a": x}, allow_missing=True)[0], True)[0]["a"] is x
    at.swap_tensors_dict({"0.bias": x, "0.weight": 3}) || at.check_keys(["0.bias", "0.scale"])
    [[name for name, _ in at.named_tensors()], [name for name, _ in at.named_modules()]]
    [[name for name, _ in at.named_parameters(False)], [name for name, _ in at.named_buffers()]]
"""


@pytest.mark.parametrize("text", NAMED.strip().replace("\n", " || ").split(" || "))
def test_named_members(text: str) -> None:
    def program(torch: Any) -> Any:
        nn = torch.nn
        net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1, affine=False), nn.Sequential(nn.Linear(1, 1)))
        net[1].running_mean = None
        home = of(torch, "nn.utils._named_member_accessor")
        at, bias, x = home.NamedMemberAccessor(net), net[0].bias, torch.ones(1, 2)
        try:
            return [eval(text.strip(), {"home": home, "at": at, "net": net, "x": x})]
        except Exception as error:
            return [type(error).__name__, str(error)[:60], getattr(net[0], "bias", None) is bias, hasattr(net, "scale")]

    same_as_pytorch(program)


def test_operators_are_known_by_class() -> None:
    torch = tinytorch
    assert isinstance(torch.ops.aten.add.Tensor, torch._ops.OpOverload)
    assert torch._utils._get_device_module("cpu") is torch.cpu
    assert isinstance(torch.ones(1).untyped_storage(), torch.StorageBase)
    assert not isinstance(torch.FloatStorage(1), torch.StorageBase)


def test_mapped_collections() -> None:
    """An object with PyTorch's hook for `vmap`, such as TensorDict, is mapped as a whole; each run gets its own one."""

    class Pair:
        def __init__(self, first: Any, second: Any) -> None:
            self.both, self.shape, self.ndim = [first, second], first.shape[:1], 1

        def _add_batch_dim(self, **options: Any) -> None:
            """PyTorch's hook."""

        def unbind(self, dim: int) -> list[Any]:
            return [Pair(*each) for each in zip(*[x.unbind(dim) for x in self.both], strict=True)]

        def clone(self, deep: bool) -> Any:
            return Pair(*self.both)

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            pairs, dim = args
            return cls(*[function(list(column), dim) for column in zip(*[each.both for each in pairs], strict=True)])

    def add(pair: Pair, whole: Pair, x: Any) -> Pair:
        assert len(whole.both) == 2  # not shared
        whole.both.append(pair.both[0] + x)
        return Pair(whole.both[2], pair.both[1] * 2)

    torch = tinytorch
    pair = Pair(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))
    out = torch.vmap(add, (0, None, 0))(pair, pair, torch.tensor([10.0, 20.0]))
    assert out.both[0].tolist() == [[10, 11, 12], [23, 24, 25]] and out.both[1].tolist() == [[2.0] * 3] * 2
    with pytest.raises(ValueError, match="dimensionality 1"):
        torch.vmap(len, 1)(pair)


def test_an_optimizer_around_another_need_not_call_init() -> None:
    """Wrappers of optimizers such as Lookahead: `step` works, with and without `_patch_step_function`."""

    def program(torch: Any) -> Any:
        class Around(torch.optim.Optimizer):
            def __init__(self, inner: Any, patched: bool) -> None:
                self.inner = inner
                if patched:
                    self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
                    self._patch_step_function()

            def step(self, closure: Any = None) -> Any:
                return self.inner.step(closure)

        found = []
        for patched in (False, True):
            p = torch.ones(2, requires_grad=True)
            p.grad = torch.ones(2)
            Around(torch.optim.SGD([p], lr=0.5), patched).step()
            found.append(p.detach())
        return found

    same_as_pytorch(program)


def test_iterators_of_loaders() -> None:
    def program(torch: Any) -> Any:
        loader = of(torch, "utils.data.dataloader")
        iterator = iter(loader.DataLoader([1, 2]))
        return [
            isinstance(iterator, loader._BaseDataLoaderIter),
            isinstance(iterator, loader._SingleProcessDataLoaderIter),
            isinstance(iterator, loader._MultiProcessingDataLoaderIter),
        ]

    same_as_pytorch(program)


def test_records_of_a_checkpoint(tmp_path: Path) -> None:
    def program(torch: Any) -> Any:
        path = str(tmp_path / "x.pt")
        torch.save({"a": torch.arange(3.0), "b": torch.ones(2)}, path)
        reader = torch.PyTorchFileReader(path)
        names = {"data.pkl", "data/0", "data/1", "byteorder", "version", ".data/serialization_id"}
        found = [
            names <= set(reader.get_all_records()), reader.has_record("data/1"), reader.has_record("data/2"),
            reader.get_record("data/0"), reader.get_record_size("data/1"), len(reader.serialization_id()) > 0,
        ]  # fmt: skip
        with open(path, "rb") as file:
            file.seek(reader.get_record_offset("data/0"))
            found.append(file.read(12))
        for wrong in (lambda: reader.get_record("x"), lambda: torch.PyTorchFileReader("/no/such")):
            try:
                wrong()
            except RuntimeError as error:
                found.append(str(error)[:60])
        return found

    same_as_pytorch(program)


# Others -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_frequencies(n: int) -> None:
    def program(torch: Any) -> list[Any]:
        fft = of(torch, "fft")
        x = torch.arange(float(n * 3)).reshape(n, 3)
        out = [fft.fftshift(x), fft.ifftshift(x, 0), fft.fftshift(x, (1,)), fft.ifftshift(x)]
        if n:
            out += [fft.fftfreq(n), fft.fftfreq(n, 0.5, dtype=torch.float64), fft.rfftfreq(n, 2.0)]
            out.append(fft.rfftfreq(n, requires_grad=True))
        return out

    same_as_pytorch(program)


def test_attributes_are_copied_by_dotted_names() -> None:
    from tinytorch.fx.graph_module import _copy_attr

    source, target = tinytorch.nn.Sequential(tinytorch.nn.BatchNorm1d(2)), tinytorch.nn.Module()
    _copy_attr(source, target, "0.weight")
    _copy_attr(source, target, "0.running_mean")
    with pytest.raises(AttributeError, match="has no attribute '1'"):
        _copy_attr(source, target, "1.weight")
    assert list(target.state_dict()) == ["0.weight", "0.running_mean"]
    assert getattr(target, "0").weight is source[0].weight


def test_how_elements_are_printed() -> None:
    def program(torch: Any) -> list[Any]:
        printing = of(torch, "_tensor_str")
        x = torch.tensor(np.arange(6.0).reshape(2, 3))
        return [printing._tensor_str(x, 0), printing._tensor_str(x, 4), printing.PRINT_OPTS.threshold]

    same_as_pytorch(program)


def test_stubs_of_quantised_models() -> None:
    def program(torch: Any) -> list[Any]:
        quantization = of(torch, "ao.quantization")
        x = torch.tensor(np.arange(3.0))
        return [quantization.QuantStub()(x), quantization.DeQuantStub()(x)]

    same_as_pytorch(program)


def test_floating_point_operations() -> None:
    def program(torch: Any) -> Any:
        nn, ones = torch.nn, torch.ones
        layers = nn.Conv2d(2, 4, 3, groups=2), nn.ReLU(), nn.ConvTranspose2d(4, 2, 2), nn.Flatten()
        model = nn.Sequential(*layers, nn.Sequential(nn.Linear(98, 8), nn.Linear(8, 2, bias=False)))
        attention = nn.MultiheadAttention(4, 2)
        x = ones(2, 3, 4, requires_grad=True)

        def count() -> None:
            model(ones(2, 2, 8, 8)).sum().backward()
            attention(x, x, x)[0].sum().backward()
            (torch.einsum("bij,bkj->bik", x, x) + x @ x.mT).sum().backward()
            torch.baddbmm(x, x, ones(2, 4, 4)) + torch.addmm(ones(4), x[0], ones(4, 4))

        counter = of(torch, "utils.flop_counter").FlopCounterMode(display=False)
        with counter:
            count()
        counts = counter.get_flop_counts()  # (PyTorch's are in the order of a set)
        return {path: {str(name): n for name, n in counts[path].items()} for path in sorted(counts)}

    same_as_pytorch(program)
    from tinytorch.utils.flop_counter import FlopCounterMode

    with pytest.raises(NotImplementedError, match="custom_mapping"):
        FlopCounterMode(custom_mapping={tinytorch.ops.aten.mm: abs})


# Features that are not implemented raise an error -------------------------------------------------


def test_parts_that_are_not_done() -> None:
    import tinytorch as torch
    from tinytorch.distributed.optim import PostLocalSGDOptimizer

    groups = of(torch, "utils._foreach_utils")._group_tensors_by_device_and_dtype
    with pytest.raises(RuntimeError, match="length of the first"):  # PyTorch's message is a C++ expression
        groups([[torch.ones(1)], [torch.ones(1), torch.ones(1)]])
    with pytest.raises(NotImplementedError, match="spreads no tensors"):
        PostLocalSGDOptimizer(torch.optim.SGD([torch.ones(1)], lr=0.1), None)


def test_classes_of_storages_by_name() -> None:
    assert tinytorch.serialization.normalize_storage_type(tinytorch.LongStorage) is tinytorch.LongStorage


def test_processes_are_found_without_an_import() -> None:
    same = tinytorch.multiprocessing.connection is importlib.import_module("multiprocessing.connection")
    assert same and tinytorch._disable_dynamo(len) is len
