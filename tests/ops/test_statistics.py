"""What samples cannot say of statistics, bags and searching: errors, 16-bit floats, ties, what has no derivative."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinytorch
from tests.oracle import FUSED, needs_oracle
from tests.same import compared, of_each, programs, same_as_pytorch

Program = Callable[[Any], Any]
NAN, INF = float("nan"), float("inf")


def line(torch: Any) -> Any:
    return torch.tensor([1.0, 2.0, 1.0])


def table(torch: Any) -> Any:
    return torch.arange(12.0).view(3, 4)


def bags(torch: Any, *args: Any, **kwargs: Any) -> Any:
    indices = torch.tensor([0, 1, 2])
    return torch.nn.functional.embedding_bag(indices, table(torch), *args, **kwargs)


#: Each must raise the same class with the same words as PyTorch.
ERRORS = programs("""
    # One element along a dimension.
    torch.mode(torch.zeros(0)); torch.mode(torch.zeros(0, 3), 0); torch.mode(line, 5); torch.kthvalue(line, 0)
    torch.kthvalue(line, 4); torch.kthvalue(torch.tensor(3.0), 2); torch.kthvalue(torch.zeros(0, 3), 1, 0)
    torch.kthvalue(torch.tensor([True, False]), 1)
    # Quantiles.
    torch.quantile(torch.tensor([1, 2]), 0.4); torch.quantile(torch.tensor([1.0], dtype=torch.float16), 0.4)
    torch.quantile(line, torch.tensor([0.1], dtype=torch.float64)); torch.quantile(line, 1.5)
    torch.quantile(line, torch.tensor([0.1, 1.5])); torch.quantile(line, torch.tensor([[0.1, 0.5]]))
    torch.quantile(torch.zeros(0), 0.4); torch.quantile(torch.zeros(0, 3), 0.4, dim=1)
    torch.quantile(line, 0.4, interpolation="other"); torch.quantile(line, "a"); torch.quantile(table, 0.3, 5)
    # Histograms.
    torch.histc(torch.tensor([1, 2])); torch.histc(torch.tensor([1.0, NAN])); torch.histc(torch.tensor([1.0, INF]))
    torch.histc(line, 0); torch.histc(line, 4, 3, 1); torch.histc(line, 4, 3, INF)
    torch.histogram(torch.tensor([1, 2]), 4); torch.histogram(line.half(), 4)
    torch.histogram(torch.tensor([1.0, NAN]), 4); torch.histogram(line, 4, range=(3.0, 1.0)); torch.histogram(line, 0)
    torch.histogram(line, bins=torch.tensor([1.0])); torch.histogram(line, bins=torch.tensor([[1.0, 2.0]]))
    torch.histogram(line, bins=torch.tensor([0.0, 1.0]).double()); torch.histogram(line, 4, weight=torch.tensor([1.0]))
    torch.histogram(line, 4, weight=torch.tensor([1, 2, 3]))
    torch.histogram(line.requires_grad_(), 4).hist.sum().backward(); torch.histogramdd(line, [3])
    torch.histogramdd(table, [3])
    # Differences.
    torch.diff(line, n=-1); torch.diff(torch.tensor(1.0)); torch.diff(table, prepend=torch.zeros(1, 1))
    torch.diff(table, prepend=torch.zeros(3)); torch.diff(table, dim=3); torch.gradient(table, spacing=[2.0])
    torch.gradient(table, dim=(0, 0)); torch.gradient(table, edge_order=3); torch.gradient(torch.tensor([1.0]))
    torch.gradient(torch.tensor([1.0, 2.0]), edge_order=2); torch.gradient(torch.tensor([1, 4], dtype=torch.uint8))
    torch.gradient(table, dim=5); torch.gradient(table, dim=0, spacing=(torch.zeros(1, 3),)); torch.combinations(table)
    torch.combinations(line, -1)
    # Segments, rows with rows.
    torch.segment_reduce(line, "sum", lengths=torch.tensor([1, 1]))
    torch.segment_reduce(line, "other", lengths=torch.tensor([1, 2])); torch.segment_reduce(line, "sum")
    torch.segment_reduce(table, "sum", lengths=torch.tensor([1, 3]), axis=1)
    torch.segment_reduce(torch.tensor([1]), "sum", lengths=torch.tensor([1]))
    torch.segment_reduce(line, "sum", lengths=torch.tensor([1.0, 2.0]))
    torch.segment_reduce(line, "sum", lengths=torch.tensor([-1, 4]))
    torch.segment_reduce(line, "sum", lengths=torch.tensor([3], dtype=torch.int16))
    torch.segment_reduce(line[0], "sum", lengths=torch.tensor([1]))
    torch.segment_reduce(line, "max", lengths=torch.tensor([3]), initial=float("nan")); torch.histogram(line.half(), 4)
    torch.histogram(line.half(), 4, range=(0.0, 5.0)); torch.histogram(line.bfloat16(), line.bfloat16())
    torch.histogramdd(table.half(), [2] * table.shape[1], range=[0.0, 9.0] * 3)
    torch.index_reduce(line, 0, torch.tensor([0]), torch.ones(1), "sum")
    torch.scatter_reduce(torch.tensor([True]), 0, torch.tensor([0]), torch.tensor([True]), "mean")
    torch.nonzero_static(line, size=-1)
    # Searching, counting.
    torch.searchsorted(line, line, side="other"); torch.searchsorted(line, line, side="left", right=True)
    torch.searchsorted(line, line, sorter=torch.tensor([0, 1]))
    torch.searchsorted(line, line, sorter=torch.tensor([0, 1, 5]))
    torch.searchsorted(line, line, sorter=torch.tensor([0.0, 1, 2])); torch.searchsorted(torch.tensor(1.0), line)
    torch.searchsorted(table, line); torch.searchsorted(table, 3.0); torch.bucketize(line, table); torch.isin(2, 3)
    torch.unique(torch.tensor(2), dim=0); torch.unique_consecutive(torch.tensor(2), dim=0)
    torch.unique_consecutive(torch.zeros(0, 3), dim=1); torch.unique(line.requires_grad_()).sum().backward()
    torch.unique(table.requires_grad_(), dim=0).sum().backward()
    torch.unique_consecutive(line.requires_grad_()).sum().backward()
    torch.bincount(torch.tensor([1]), torch.ones(1).requires_grad_()).sum().backward()
    # Bags.
    bags(); bags(torch.tensor([1, 2])); bags(torch.tensor([0, 4])); bags(torch.tensor([[0]]))
    bags(torch.tensor([0]), mode="other"); bags(torch.tensor([0]), per_sample_weights=torch.ones(3))
    bags(torch.tensor([0]), per_sample_weights=torch.ones(2), mode="sum")
    bags(torch.tensor([0]), mode="max", scale_grad_by_freq=True); bags(torch.tensor([0]), padding_idx=7)
    torch.nn.functional.embedding_bag(torch.tensor([[0]]), table, torch.tensor([0]))
    torch.nn.functional.embedding_bag(torch.tensor(0), table)
""", {"INF": INF, "NAN": NAN}, line=line, table=table, bags=lambda torch: partial(bags, torch))  # fmt: skip


@pytest.mark.parametrize("k", ERRORS)
@compared
def test_errors_are_those_of_pytorch(torch: Any, k: int) -> Any:
    ERRORS[k](torch)
    raise AssertionError("no error")


#: Each must give the same as PyTorch.
PROGRAMS = programs("""
    torch.mode(torch.tensor([2, 2, 1, 1, 1, 2])); torch.mode(torch.tensor([1.0, 2.0, 2.0], dtype=torch.float16)).indices
    torch.kthvalue(torch.tensor([3.0, NAN, 2.0]), 2)
    torch.quantile(torch.tensor([1.0, NAN, 3.0]), torch.tensor([0.1, 0.9]))
    torch.nanquantile(torch.tensor([NAN, NAN]), 0.5); torch.quantile(table, torch.zeros(0), dim=1, keepdim=True)
    torch.histc(torch.tensor([1.0, NAN, INF, 2.0]), 4, 0, 3); torch.gradient(torch.tensor(1.0))
    torch.gradient(table, spacing=torch.tensor(2.0)); torch.diff(torch.tensor([1.0, 3.0]), append=torch.tensor([1]))
    torch.segment_reduce(torch.tensor([NAN, 2.0, 3.0]), "max", lengths=torch.tensor([1, 2]))
    bags(torch.tensor([0, 0, 2]), mode="max"); bags(torch.tensor([0, 1]).int())
    bags(torch.tensor([0, 2]), max_norm=1.0, mode="max"); torch.embedding_renorm_(table, torch.tensor([1, 2]), 1.0, 2.0)
    torch.embedding_bag(table, torch.tensor([0, 1, 2]), torch.tensor([0, 2]), mode=1)
    torch.embedding_bag(table, torch.tensor([0, 1, 2]), torch.tensor([0, 2]), mode=2)
    torch.searchsorted(torch.tensor([1, 3, 4]), 4.5)
    torch.bincount(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]).half())
""", {"INF": INF, "NAN": NAN}, table=table, bags=lambda torch: partial(bags, torch))  # fmt: skip


test_special_cases_are_those_of_pytorch = of_each(PROGRAMS)


SIXTEEN_BITS = programs("""
    torch.mode(x); torch.kthvalue(x, 2)[0]; torch.histc(x, 4, -2, 3); torch.diff(x); torch.unique(x, return_counts=True)
    torch.sort(x)[0]; torch.topk(x, 2)[0]; torch.searchsorted(torch.sort(x)[0], x); torch.aminmax(x)
    torch.nanmedian(x, 0)[0]; x.masked_fill(x > 1, 2.5); x.index_add(0, torch.tensor([1, 1]), x[:2])
    x.scatter_reduce(0, torch.tensor([0, 0, 2]), x[:3], "prod")
    x.scatter_reduce(0, torch.tensor([0, 0, 2]), x[:3], "amin"); x[torch.tensor([0, -1])]; x.take(torch.tensor([0, -1]))
""", {}, "x")  # fmt: skip


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("k", SIXTEEN_BITS)
@compared
def test_floats_of_sixteen_bits(torch: Any, k: int, kind: str) -> Any:
    x = torch.tensor([0.5, -1.25, 2.0, 0.5, 3.0]).to(getattr(torch, kind))
    found = SIXTEEN_BITS[k](torch, x)
    parts = found if isinstance(found, tuple) else (found,)
    return [(str(each.dtype), each.float()) for each in parts]


def test_topk_and_sort_put_nan_first_among_the_largest() -> None:
    x = tinytorch.tensor([NAN, 1.0, 5.0, NAN])
    assert tinytorch.topk(x, 3).values[:2].isnan().all()
    assert tinytorch.sort(x, descending=True).indices.tolist() == [0, 3, 2, 1]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.integers(1, 6), st.booleans())
@compared
def test_random_histograms(torch: Any, values: list[int], bins: int, density: bool) -> Any:
    x = torch.tensor(values, dtype=torch.float64) / 3
    found = torch.histogram(x, bins, density=density)
    if not FUSED:  # the edges of the bins differ in the last bit, and a value on an edge is in the bin beside it
        return found.bin_edges
    return found.hist, found.bin_edges, torch.histc(x.float() * 3, bins)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.lists(st.integers(0, 2)))
def test_gradient_of_products_that_meet_zeros(start: list[int], more: list[int]) -> None:
    """Against products written out."""
    rng = np.random.default_rng(len(more))
    places = rng.integers(0, len(start), len(more))
    x = tinytorch.tensor(start, dtype=tinytorch.float64, requires_grad=True)
    y = tinytorch.tensor(more, dtype=tinytorch.float64, requires_grad=True)
    out = tinytorch.scatter_reduce(x, 0, tinytorch.from_numpy(places), y, "prod")
    found = tinytorch.autograd.grad(out.sum(), (x, y))
    for at in range(len(start)):
        others = [more[k] for k in range(len(more)) if places[k] == at]
        assert found[0][at].item() == np.prod(others)
    for k, at in enumerate(places):
        others = [more[i] for i in range(len(more)) if places[i] == at and i != k]
        assert found[1][k].item() == start[at] * np.prod(others)


@needs_oracle
@given(st.data())
def test_gradients_of_segments_with_zeros_and_nan(data: Any) -> None:
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4), label="lengths")
    numbers = st.sampled_from([NAN, INF, -INF, 0.0, 0.5, 1.0, -1.0, 2.0])
    values = data.draw(st.lists(numbers, min_size=2 * sum(lengths), max_size=2 * sum(lengths)), label="values")
    how = data.draw(st.sampled_from(["max", "min", "prod"]), label="how")
    initial = data.draw(st.sampled_from([None, 0.0, 1.0, INF, NAN]), label="initial")

    def program(torch: Any) -> Any:
        x = torch.tensor(values, dtype=torch.float64).reshape(-1, 2).requires_grad_()
        out = torch.segment_reduce(x, how, lengths=torch.tensor(lengths), initial=initial)
        out.backward(torch.arange(1.0, out.numel() + 1, dtype=torch.float64).reshape(out.shape))
        return out, x.grad

    same_as_pytorch(program)
