"""What samples cannot say of statistics, bags and searching: errors, 16-bit floats, ties, what has no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinytorch
from tests.oracle import needs_oracle
from tests.same import compared, same_as_pytorch

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
ERRORS: list[Program] = [
    # One element along a dimension.
    lambda torch: torch.mode(torch.zeros(0)), lambda torch: torch.mode(torch.zeros(0, 3), 0),
    lambda torch: torch.mode(line(torch), 5), lambda torch: torch.kthvalue(line(torch), 0),
    lambda torch: torch.kthvalue(line(torch), 4), lambda torch: torch.kthvalue(torch.tensor(3.0), 2),
    lambda torch: torch.kthvalue(torch.zeros(0, 3), 1, 0), lambda torch: torch.kthvalue(torch.tensor([True, False]), 1),
    # Quantiles.
    lambda torch: torch.quantile(torch.tensor([1, 2]), 0.4),
    lambda torch: torch.quantile(torch.tensor([1.0], dtype=torch.float16), 0.4),
    lambda torch: torch.quantile(line(torch), torch.tensor([0.1], dtype=torch.float64)),
    lambda torch: torch.quantile(line(torch), 1.5), lambda torch: torch.quantile(line(torch), torch.tensor([0.1, 1.5])),
    lambda torch: torch.quantile(line(torch), torch.tensor([[0.1, 0.5]])),
    lambda torch: torch.quantile(torch.zeros(0), 0.4), lambda torch: torch.quantile(torch.zeros(0, 3), 0.4, dim=1),
    lambda torch: torch.quantile(line(torch), 0.4, interpolation="other"),
    lambda torch: torch.quantile(line(torch), "a"), lambda torch: torch.quantile(table(torch), 0.3, 5),
    # Histograms.
    lambda torch: torch.histc(torch.tensor([1, 2])), lambda torch: torch.histc(torch.tensor([1.0, NAN])),
    lambda torch: torch.histc(torch.tensor([1.0, INF])), lambda torch: torch.histc(line(torch), 0),
    lambda torch: torch.histc(line(torch), 4, 3, 1), lambda torch: torch.histc(line(torch), 4, 3, INF),
    lambda torch: torch.histogram(torch.tensor([1, 2]), 4), lambda torch: torch.histogram(line(torch).half(), 4),
    lambda torch: torch.histogram(torch.tensor([1.0, NAN]), 4),
    lambda torch: torch.histogram(line(torch), 4, range=(3.0, 1.0)), lambda torch: torch.histogram(line(torch), 0),
    lambda torch: torch.histogram(line(torch), bins=torch.tensor([1.0])),
    lambda torch: torch.histogram(line(torch), bins=torch.tensor([[1.0, 2.0]])),
    lambda torch: torch.histogram(line(torch), bins=torch.tensor([0.0, 1.0]).double()),
    lambda torch: torch.histogram(line(torch), 4, weight=torch.tensor([1.0])),
    lambda torch: torch.histogram(line(torch), 4, weight=torch.tensor([1, 2, 3])),
    lambda torch: torch.histogram(line(torch).requires_grad_(), 4).hist.sum().backward(),
    lambda torch: torch.histogramdd(line(torch), [3]), lambda torch: torch.histogramdd(table(torch), [3]),
    # Differences.
    lambda torch: torch.diff(line(torch), n=-1), lambda torch: torch.diff(torch.tensor(1.0)),
    lambda torch: torch.diff(table(torch), prepend=torch.zeros(1, 1)),
    lambda torch: torch.diff(table(torch), prepend=torch.zeros(3)), lambda torch: torch.diff(table(torch), dim=3),
    lambda torch: torch.gradient(table(torch), spacing=[2.0]), lambda torch: torch.gradient(table(torch), dim=(0, 0)),
    lambda torch: torch.gradient(table(torch), edge_order=3), lambda torch: torch.gradient(torch.tensor([1.0])),
    lambda torch: torch.gradient(torch.tensor([1.0, 2.0]), edge_order=2),
    lambda torch: torch.gradient(torch.tensor([1, 4], dtype=torch.uint8)),
    lambda torch: torch.gradient(table(torch), dim=5),
    lambda torch: torch.gradient(table(torch), dim=0, spacing=(torch.zeros(1, 3),)),
    lambda torch: torch.combinations(table(torch)), lambda torch: torch.combinations(line(torch), -1),
    # Segments, rows with rows.
    lambda torch: torch.segment_reduce(line(torch), "sum", lengths=torch.tensor([1, 1])),
    lambda torch: torch.segment_reduce(line(torch), "other", lengths=torch.tensor([1, 2])),
    lambda torch: torch.segment_reduce(line(torch), "sum"),
    lambda torch: torch.segment_reduce(table(torch), "sum", lengths=torch.tensor([1, 3]), axis=1),
    lambda torch: torch.segment_reduce(torch.tensor([1]), "sum", lengths=torch.tensor([1])),
    lambda torch: torch.segment_reduce(line(torch), "sum", lengths=torch.tensor([1.0, 2.0])),
    lambda torch: torch.segment_reduce(line(torch), "sum", lengths=torch.tensor([-1, 4])),
    lambda torch: torch.segment_reduce(line(torch), "sum", lengths=torch.tensor([3], dtype=torch.int16)),
    lambda torch: torch.segment_reduce(line(torch)[0], "sum", lengths=torch.tensor([1])),
    lambda torch: torch.segment_reduce(line(torch), "max", lengths=torch.tensor([3]), initial=float("nan")),
    lambda torch: torch.histogram(line(torch).half(), 4),
    lambda torch: torch.histogram(line(torch).half(), 4, range=(0.0, 5.0)),
    lambda torch: torch.histogram(line(torch).bfloat16(), line(torch).bfloat16()),
    lambda torch: torch.histogramdd(table(torch).half(), [2] * table(torch).shape[1], range=[0.0, 9.0] * 3),
    lambda torch: torch.index_reduce(line(torch), 0, torch.tensor([0]), torch.ones(1), "sum"),
    lambda torch: torch.scatter_reduce(torch.tensor([True]), 0, torch.tensor([0]), torch.tensor([True]), "mean"),
    lambda torch: torch.nonzero_static(line(torch), size=-1),
    # Searching, counting.
    lambda torch: torch.searchsorted(line(torch), line(torch), side="other"),
    lambda torch: torch.searchsorted(line(torch), line(torch), side="left", right=True),
    lambda torch: torch.searchsorted(line(torch), line(torch), sorter=torch.tensor([0, 1])),
    lambda torch: torch.searchsorted(line(torch), line(torch), sorter=torch.tensor([0, 1, 5])),
    lambda torch: torch.searchsorted(line(torch), line(torch), sorter=torch.tensor([0.0, 1, 2])),
    lambda torch: torch.searchsorted(torch.tensor(1.0), line(torch)),
    lambda torch: torch.searchsorted(table(torch), line(torch)), lambda torch: torch.searchsorted(table(torch), 3.0),
    lambda torch: torch.bucketize(line(torch), table(torch)), lambda torch: torch.isin(2, 3),
    lambda torch: torch.unique(torch.tensor(2), dim=0), lambda torch: torch.unique_consecutive(torch.tensor(2), dim=0),
    lambda torch: torch.unique_consecutive(torch.zeros(0, 3), dim=1),
    lambda torch: torch.unique(line(torch).requires_grad_()).sum().backward(),
    lambda torch: torch.unique(table(torch).requires_grad_(), dim=0).sum().backward(),
    lambda torch: torch.unique_consecutive(line(torch).requires_grad_()).sum().backward(),
    lambda torch: torch.bincount(torch.tensor([1]), torch.ones(1).requires_grad_()).sum().backward(),
    # Bags.
    lambda torch: bags(torch), lambda torch: bags(torch, torch.tensor([1, 2])),
    lambda torch: bags(torch, torch.tensor([0, 4])), lambda torch: bags(torch, torch.tensor([[0]])),
    lambda torch: bags(torch, torch.tensor([0]), mode="other"),
    lambda torch: bags(torch, torch.tensor([0]), per_sample_weights=torch.ones(3)),
    lambda torch: bags(torch, torch.tensor([0]), per_sample_weights=torch.ones(2), mode="sum"),
    lambda torch: bags(torch, torch.tensor([0]), mode="max", scale_grad_by_freq=True),
    lambda torch: bags(torch, torch.tensor([0]), padding_idx=7),
    lambda torch: torch.nn.functional.embedding_bag(torch.tensor([[0]]), table(torch), torch.tensor([0])),
    lambda torch: torch.nn.functional.embedding_bag(torch.tensor(0), table(torch)),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(ERRORS)))
@compared
def test_errors_are_those_of_pytorch(torch: Any, k: int) -> Any:
    ERRORS[k](torch)
    raise AssertionError("no error")


#: Each must give the same as PyTorch.
PROGRAMS: list[Program] = [
    lambda torch: torch.mode(torch.tensor([2, 2, 1, 1, 1, 2])),
    lambda torch: torch.mode(torch.tensor([1.0, 2.0, 2.0], dtype=torch.float16)).indices,
    lambda torch: torch.kthvalue(torch.tensor([3.0, NAN, 2.0]), 2),
    lambda torch: torch.quantile(torch.tensor([1.0, NAN, 3.0]), torch.tensor([0.1, 0.9])),
    lambda torch: torch.nanquantile(torch.tensor([NAN, NAN]), 0.5),
    lambda torch: torch.quantile(table(torch), torch.zeros(0), dim=1, keepdim=True),
    lambda torch: torch.histc(torch.tensor([1.0, NAN, INF, 2.0]), 4, 0, 3),
    lambda torch: torch.gradient(torch.tensor(1.0)),
    lambda torch: torch.gradient(table(torch), spacing=torch.tensor(2.0)),
    lambda torch: torch.diff(torch.tensor([1.0, 3.0]), append=torch.tensor([1])),
    lambda torch: torch.segment_reduce(torch.tensor([NAN, 2.0, 3.0]), "max", lengths=torch.tensor([1, 2])),
    lambda torch: bags(torch, torch.tensor([0, 0, 2]), mode="max"),
    lambda torch: bags(torch, torch.tensor([0, 1]).int()),
    lambda torch: bags(torch, torch.tensor([0, 2]), max_norm=1.0, mode="max"),
    lambda torch: torch.embedding_renorm_(table(torch), torch.tensor([1, 2]), 1.0, 2.0),
    lambda torch: torch.embedding_bag(table(torch), torch.tensor([0, 1, 2]), torch.tensor([0, 2]), mode=1),
    lambda torch: torch.embedding_bag(table(torch), torch.tensor([0, 1, 2]), torch.tensor([0, 2]), mode=2),
    lambda torch: torch.searchsorted(torch.tensor([1, 3, 4]), 4.5),
    lambda torch: torch.bincount(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]).half()),
]


@needs_oracle
@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_special_cases_are_those_of_pytorch(k: int) -> None:
    same_as_pytorch(PROGRAMS[k])


SIXTEEN_BITS: list[Callable[[Any, Any], Any]] = [
    lambda torch, x: torch.mode(x), lambda torch, x: torch.kthvalue(x, 2)[0], lambda torch, x: torch.histc(x, 4, -2, 3),
    lambda torch, x: torch.diff(x), lambda torch, x: torch.unique(x, return_counts=True),
    lambda torch, x: torch.sort(x)[0], lambda torch, x: torch.topk(x, 2)[0],
    lambda torch, x: torch.searchsorted(torch.sort(x)[0], x), lambda torch, x: torch.aminmax(x),
    lambda torch, x: torch.nanmedian(x, 0)[0], lambda torch, x: x.masked_fill(x > 1, 2.5),
    lambda torch, x: x.index_add(0, torch.tensor([1, 1]), x[:2]),
    lambda torch, x: x.scatter_reduce(0, torch.tensor([0, 0, 2]), x[:3], "prod"),
    lambda torch, x: x.scatter_reduce(0, torch.tensor([0, 0, 2]), x[:3], "amin"),
    lambda torch, x: x[torch.tensor([0, -1])], lambda torch, x: x.take(torch.tensor([0, -1])),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("k", range(len(SIXTEEN_BITS)))
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
    counted = torch.histc(x.float() * 3, bins)
    return found.hist, found.bin_edges, counted


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
