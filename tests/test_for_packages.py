"""What packages written for PyTorch take from its less known corners: each a program that both libraries run."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

pytestmark = needs_oracle

#: Modules, and the names that packages import from them (pyro, gpytorch, Lightning, ignite, pytorch_optimizer, zuko).
NAMES = """
    _C: _TensorMeta _nn
    _dynamo: OptimizedModule
    _dynamo.eval_frame: OptimizedModule
    distributions: Wishart
    nn.utils.stateless: _reparametrize_module
    serialization: MAP_LOCATION
    utils._foreach_utils: _group_tensors_by_device_and_dtype _has_foreach_support _device_has_foreach_support
    utils._pytree: SUPPORTED_NODES LeafSpec PyTree _get_node_type
    utils.data.dataloader: _BaseDataLoaderIter _SingleProcessDataLoaderIter _MultiProcessingDataLoaderIter
    utils.flop_counter: FlopCounterMode
"""


def of(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


@pytest.mark.parametrize("line", [each.strip() for each in NAMES.strip().splitlines()])
def test_names(line: str) -> None:
    path, names = line.split(": ")
    for library in ("tinytorch", "torch"):
        module = importlib.import_module(f"{library}.{path}")
        for name in names.split():
            assert getattr(module, name) is not None


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
        groups = eval(
            f"f({line})", {"f": foreach._group_tensors_by_device_and_dtype, "a": a, "b": b, "c": c}
        )
        by_name = {(str(where), str(kind)): group for (where, kind), group in groups.items()}
        return [by_name[key] for key in sorted(by_name)]

    same_as_pytorch(program)


def test_an_optimizer_around_another_need_not_call_init() -> None:
    """Lookahead and its kin: `step` works, with and without `_patch_step_function`."""

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


def test_a_tensors_identity() -> None:
    def program(torch: Any) -> Any:
        x, y = torch.ones(1), torch.ones(1)
        return [x._cdata == x._cdata, x._cdata == y._cdata, isinstance(x._cdata, int)]

    same_as_pytorch(program)


def test_types_of_trees() -> None:
    """How Lightning takes trees apart."""

    def program(torch: Any) -> Any:
        tree = of(torch, "utils._pytree")
        kind = tree._get_node_type({"a": 1})
        items, keys = tree.SUPPORTED_NODES[kind].flatten_fn({"a": [1, 2], "b": 3})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's LeafSpec is an old name
            spec = tree.TreeSpec(dict, ["x", "y"], [tree.LeafSpec(), tree.LeafSpec()])
        return [
            kind is dict, tree._get_node_type(torch.ones(1)) is torch.Tensor, items, list(keys),
            tree.tree_unflatten([1, 2], spec), tree.LeafSpec in type(spec).__mro__,
            int not in tree.SUPPORTED_NODES,
        ]  # fmt: skip

    same_as_pytorch(program)


PARSED = """
    f()
    f("cpu")
    f(torch.float64)
    f("cpu", torch.float16, True)
    f(device="cpu", dtype=torch.int64)
    f(torch.ones(1))
    f(memory_format=torch.channels_last)
    f(torch.device("cpu"), non_blocking=True)
"""


@pytest.mark.parametrize("line", [each.strip() for each in PARSED.strip().splitlines()])
def test_arguments_of_to(line: str) -> None:
    def program(torch: Any) -> Any:
        found = eval(line, {"torch": torch, "f": of(torch, "_C")._nn._parse_to})
        return [str(each).replace("tinytorch", "torch") for each in found]

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


def test_what_is_not_done_says_so() -> None:
    import tinytorch as torch
    from tinytorch.distributed.optim import ZeroRedundancyOptimizer
    from tinytorch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    groups = of(torch, "utils._foreach_utils")._group_tensors_by_device_and_dtype
    with pytest.raises(RuntimeError, match="length of the first"):  # PyTorch's words are C++
        groups([[torch.ones(1)], [torch.ones(1), torch.ones(1)]])
    assert counter.get_total_flops() == 0 and counter.get_flop_counts() == {}
    with pytest.raises(NotImplementedError, match="does not count"):
        counter.__enter__()
    with pytest.raises(NotImplementedError, match="no processes"):
        ZeroRedundancyOptimizer([torch.ones(1)], torch.optim.SGD)
