"""All requirements of an op, for the samples in `tests/samples`: the faces in `tests/faces`."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import tinytorch
from tests.declared import registered
from tests.faces import bits, complex_numbers, derivatives, devices, look, native, values  # noqa: F401
from tests.faces.calls import as_function
from tests.faces.outcomes import CHANGES, compare, outcome
from tests.kept import read, version
from tests.kept.of_samples import of, stale
from tests.oracle import needs_oracle, torch
from tests.samples import Sample, all_samples
from tests.turns import in_turn
from tinytorch.core.node import OpNode

SAMPLES = all_samples()
FAMILIES = sorted({each.family for each in SAMPLES})


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_values_and_gradients(sample: Sample) -> None:
    look(sample, always=True)


@pytest.mark.parametrize("sample", in_turn(SAMPLES), ids=str)
def test_further_faces(sample: Sample) -> None:
    look(sample, always=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_are_kept_of_all_samples_and_no_others(family: str) -> None:
    new = [str(each) for each in SAMPLES if each.family == family and of(each) is None]
    assert not new and not stale(family), f"run scripts/make_kept.py, which needs PyTorch: {new}"


@needs_oracle
@pytest.mark.filterwarnings("ignore:index_reduce", "ignore:torch.searchsorted")
@pytest.mark.parametrize("family", FAMILIES)
def test_kept_numbers_are_pytorchs(family: str) -> None:
    assert read(f"samples/{family}").version == version(), "run scripts/make_kept.py"
    for sample in in_turn(each for each in SAMPLES if each.family == family):
        for name, theirs in of(sample).items():
            compare(outcome(sample, torch, CHANGES[name]), theirs, sample.rtol, sample.atol)


#: Ops that only in-place writes or random functions record; tests/autograd/test_writes.py tests them.
ELSEWHERE = {
    "_bernoulli_each", "_bincount", "_fill", "_normal_each", "_scatter_multiply", "fill", "floor_divide", "heaviside",
    "_MaxUnpool3D",  # tests/nn/test_edges.py
    "_cholesky_inverse", "_cholesky_solve",  # whose gradients are not PyTorch's: in tests/samples/decompose.py
    "_triangular_solve", "old_cholesky",  # which warn: test_old_solvers in tests/ops/test_decompose.py
    "_geqrf", "_ldl", "_ldl_solve", "_only_r",  # their gradients raise an error, as PyTorch's
    "_histogram", "_unique2", "_unique_dim", "_unique_runs",  # which have no derivative
    "_amax", "_amin",  # `max` and `min` inside of `vmap`: tests/ops/test_batching.py
    "_second", "_product",  # which refuses; and of NaN and infinities: tests/ops/test_out.py and test_statistics.py
    "_clone_in",  # memory formats: tests/ops/test_shape.py
    "_grouped_mm",  # which takes no float64: tests/ops/test_grouped_mm.py
    "quantized_linear",  # tests/nn/test_quantization.py
    "_without_data",  # tests/test_meta.py
    "_vdot", "polar", "view_as_complex",  # tests/ops/test_complex.py
    "_neg_view", "conj_physical",  # tests/ops/test_bits.py
    "_entries", "_multiply", "_sampled",  # tests/sparse
    "_by_given", "_ctc_grad", "_ctc_losses",  # see tests/nn/test_norm.py and test_losses_more.py
    "_binomial", "_dirichlet", "_dirichlet_grad", "_gamma", "_poisson", "_standard_gamma_grad",  # random
}  # fmt: skip


def nodes_below(tensors: list[Any], found: list[Any]) -> None:
    """Add the nodes of the tensors' graph to `found`."""
    stack = [each.grad_fn for each in tensors if each.grad_fn is not None]
    seen = {id(node) for node in found}
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            stack += [each for each, _ in node.next_functions if each is not None]


def test_every_op_of_the_table_is_reached_by_a_sample() -> None:
    for name in ("sparse", "ops.quantized"):  # (they are loaded at their first use)
        importlib.import_module(f"tinytorch.{name}")
    seen: set[str] = set()
    for sample in [each for each in SAMPLES if each.backward]:
        run, inputs = as_function(sample)
        outputs = [each for each in (run(*inputs) if inputs else ()) if each.requires_grad]
        if not outputs:
            continue
        found: list[Any] = []
        nodes_below(outputs, found)
        ones = [tinytorch.ones_like(each).requires_grad_() for each in outputs]
        gradients = tinytorch.autograd.grad(outputs, inputs, ones, create_graph=True, allow_unused=True)
        gradients = [g for g in gradients if g is not None and g.requires_grad]
        nodes_below(gradients, found)
        if gradients:
            ones = [tinytorch.ones_like(each) for each in gradients]
            second = tinytorch.autograd.grad(gradients, inputs, ones, create_graph=True, allow_unused=True)
            nodes_below([g for g in second if g is not None], found)
        seen |= {node.op.name for node in found if isinstance(node, OpNode)}
    of_tests = {op for op in registered() if (getattr(op.kernel, "__module__", None) or "").startswith("tests.")}
    # (Of comparisons in place there are ops with gradients of zero, which have no caller.)
    known = {op.name for op in registered() - of_tests if op.wants and hasattr(op, "caller")}
    known -= {"to_copy"}  # made when a format is asked for
    missing, stale = known - seen - ELSEWHERE, ELSEWHERE - (known - seen)
    assert not missing, f"no sample reaches these ops: {sorted(missing)}"
    assert not stale, f"take these out of ELSEWHERE: {sorted(stale)}"
