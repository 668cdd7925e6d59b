"""Calls that give or take indices, and all samples of ops: the dtypes, shapes and integers of their results.

python -m tests.narrow.calls                   print the results, as JSON
python -m tests.narrow.calls FILE              compare them with those in FILE; the exit status is 1 if any differ
python -m tests.narrow.calls --pretend [FILE]  the same with `numpy.intp` of 32 bits
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: Expressions of `torch`, `F`, `x` (float32, 6 x 7), `i` (int64, 6 x 3), `b` (bool, 6 x 7), `e` (float32, 5).
CALLS = """
x.argmax()
x.argmax(1)
x.argmax(1, keepdim=True)
x.argmin()
x.argmin(1)
x.max(1)
x.min(1)
x.sort()
x.sort(descending=True)
x.sort(stable=True)
x.argsort()
x.topk(3)
torch.linspace(0, 1, 1000).topk(3)
x.double().topk(3, largest=False)
x.kthvalue(2)
x.median(1)
x.nanmedian(1)
x.mode()
x.cummax(0)
x.cummin(0)
b.nonzero()
b.nonzero(as_tuple=True)
torch.where(b)
torch.argwhere(b)
torch.nonzero_static(b, size=5)
torch.searchsorted(e, torch.tensor([0.5, 2.0]))
torch.searchsorted(e, torch.tensor([0.5, 2.0]), out_int32=True)
torch.bucketize(torch.tensor([0.5, 2.0]), e)
torch.bincount(i.flatten())
torch.bincount(i.flatten().int())
torch.bincount(i.flatten(), torch.ones(18))
torch.histc(x)
torch.histogram(x.flatten(), 5)
torch.unique(i, return_inverse=True, return_counts=True)
torch.unique(i, dim=0, return_inverse=True, return_counts=True)
torch.unique_consecutive(i, return_inverse=True, return_counts=True)
torch.multinomial(torch.ones(4, 5), 2)
torch.multinomial(torch.ones(4, 5), 20, True)
torch.multinomial(torch.ones(5), 1)
torch.randperm(5)
torch.randint(0, 5, (3,))
torch.randint(0, 2**40, (2,))
torch.poisson(torch.ones(3))
b.sum()
b.sum(1)
i.int().sum()
i.byte().sum(1)
i.int().prod()
i.int().cumsum(0)
b.cumsum(0)
i.short().cumprod(0)
torch.count_nonzero(x)
torch.count_nonzero(x, 1)
torch.ones(3, 3, dtype=torch.int32).trace()
torch.nansum(i.int())
torch.tril_indices(3, 3)
torch.triu_indices(3, 3)
torch.arange(3)
torch.arange(2**33, 2**33 + 3)
torch.full((2,), 3)
torch.full((2,), 2**40)
torch.tensor([1])
torch.tensor([2**40])
torch.tensor(x.shape)
torch.tensor(x.numel())
torch.as_tensor([1, 2])
torch.tensor([1e12]).long()
F.one_hot(i)
F.max_pool1d(x[None], 2, return_indices=True)
F.max_pool2d(x[None, None], 2, return_indices=True)
F.max_pool3d(x[None, None, None], (1, 2, 2), return_indices=True)
F.adaptive_max_pool2d(x[None, None], 2, return_indices=True)
F.fractional_max_pool2d(x[None, None], 2, output_size=3, return_indices=True)
F.max_unpool2d(*F.max_pool2d(x[None, None], 2, return_indices=True), 2, output_size=(6, 7))
torch.linalg.lu_factor(x[:3, :3])
torch.linalg.matrix_rank(x[:3, :3])
torch.linalg.cholesky_ex(torch.eye(3))
torch.linalg.inv_ex(torch.eye(3))
torch.linalg.lstsq(x, x[:, :1])[:3]
torch.linalg.ldl_factor(torch.eye(3))
torch.linalg.slogdet(x[:3, :3])
torch.lu(x[:3, :3], get_infos=True)
i // 2
i << 1
~i
torch.signbit(x)
torch.frexp(x)
torch.ldexp(x, i[0, 0])
torch.gcd(i, i)
torch.aminmax(i)
torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
torch.combinations(torch.arange(4))
torch.cartesian_prod(torch.arange(2), torch.arange(3))
torch.nn.utils.rnn.pad_packed_sequence(torch.nn.utils.rnn.pack_padded_sequence(x[:3, :2, None], torch.tensor([2, 1])))
torch.distributions.Categorical(x[:3].abs()).sample()
torch.distributions.Binomial(3, x[0].sigmoid()).sample()
torch.nn.EmbeddingBag(7, 2)(torch.tensor([0, 1]), torch.tensor([0]))
torch.nn.Embedding(7, 2)(i)
torch.nn.Embedding(7, 2)(i.int())
F.ctc_loss(x[:5, None, :4].log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2]))
F.cross_entropy(x, x.argmax(1))
F.nll_loss(x, x.argmax(1), weight=torch.ones(7))
F.multi_margin_loss(x, x.argmax(1))
F.gumbel_softmax(x, hard=True)
torch.cdist(x, x)
x.gather(1, i)
x.gather(1, x.argsort())
x.gather(1, i.int())
x.scatter(1, i, 1.0)
x.scatter_add(1, i, torch.ones(6, 3))
x.index_add(0, torch.tensor([0, 1]), x[:2])
x.index_select(1, i[0])
x.index_select(1, i[0].int())
x.take(i)
x.take_along_dim(x.argsort(1), 1)
x.index_put((i[0],), torch.tensor(1.0), accumulate=True)
x.repeat_interleave(torch.tensor([1, 2, 0, 1, 0, 1]), 0)
torch.repeat_interleave(torch.tensor([1, 2]))
x[x.argmax(0)]
x[b]
torch.msort(x)
x.renorm(2, 0, 1)
torch.isin(i, torch.tensor([1]))
i.diff()
torch.corrcoef(x)
x.quantile(0.3)
x.nanquantile(0.3, 1)
b.float().mean()
torch.arange(3).dot(torch.arange(3))
torch.arange(4).view(2, 2) @ torch.arange(4).view(2, 2)
torch.einsum("i,i", torch.arange(3), torch.arange(3))
i.sum()
i.cumsum(0)
x.logcumsumexp(0)
torch.tensor(2) ** 3
torch.tensor(True) + 1
b * 2
b + b.sum()
torch.where(b, 1, 0)
torch.where(b, i.sum(), 0)
b.float().to_sparse().indices()
b.float().to_sparse_csr().crow_indices()
b.float().to_sparse().coalesce().sum(0).to_dense()
torch.vmap(lambda row: row.argmax())(x)
torch.compile(lambda x: (x.argmax(1), x.sort(1), x.topk(2)))(x)
[row for batch in torch.utils.data.DataLoader(torch.arange(5), 2, shuffle=True) for row in batch]
[row for _, row in torch.utils.data.DataLoader([(0.5, 1), (0.5, 2)], 2)]
torch.tensor([1, 2]).numpy()
torch.from_numpy(np.arange(3, dtype=np.int64))
""".strip().splitlines()


def values(result: Any) -> Any:
    """Return the dtypes and shapes of a result, and its numbers where they are integers."""
    if type(result).__name__ == "PackedSequence":
        return [values(each) for each in result]
    if isinstance(result, (tuple, list)):
        return [values(each) for each in result]
    if not hasattr(result, "dtype"):
        return type(result).__name__ if isinstance(result, float) else repr(result)
    name, shape = str(result.dtype).removeprefix("torch."), list(result.shape)
    if getattr(result, "layout", None) not in (None, _strided()) or "int" not in name or not result.size:
        return [name, shape]
    return [name, shape, np.asarray(result).reshape(-1)[:50].tolist()]


def _strided() -> Any:
    import tinytorch

    return tinytorch.strided


def answer(call: Callable[[], Any]) -> Any:
    """Return `values` of a call's result, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return values(call())
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def by_call() -> dict[str, Any]:
    """Return the answers of `CALLS`."""
    import tinytorch as torch

    x = torch.tensor(np.random.default_rng(0).standard_normal((6, 7)), dtype=torch.float32)
    i = torch.tensor(np.random.default_rng(1).integers(0, 7, (6, 3)))
    names = {"torch": torch, "F": torch.nn.functional, "np": np, "x": x, "i": i, "b": x > 0, "e": torch.arange(5.0)}
    found = {}
    for text in CALLS:
        torch.manual_seed(0)
        found[text] = answer(lambda: eval(text, names))  # noqa: B023  (called at once)
    return found


def by_sample() -> dict[str, Any]:
    """Return the answers of all samples, with the gradients, in double and in single precision."""
    import tinytorch as torch
    from tests.samples import all_samples

    def changed(value: Any, to: Any) -> Any:
        if isinstance(value, np.ndarray):
            # Where `intp` has 32 bits, so have NumPy's integers: the samples' mean int64.
            kind = {"float64": to, "int32": "int64"}.get(value.dtype.name, value.dtype)
            array = value.astype(kind) if value.dtype != kind else value.copy("K") if value.base is None else value
            tensor = torch.from_numpy(array)
            return tensor.requires_grad_() if array.dtype.kind in "fc" else tensor
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(changed(each, to) for each in value)
        return value

    def tensors(value: Any) -> Iterator[Any]:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for each in value:
                yield from tensors(each)

    def run(sample: Any, to: Any) -> Any:
        args = [changed(arg, to) for arg in sample.args]
        kwargs = {key: changed(arg, to) for key, arg in sample.kwargs.items()}
        function: Any = torch
        for part in sample.name.split("."):
            function = getattr(function, part)
        result = function(*args, **kwargs)
        outputs = [each for each in tensors(result) if each.requires_grad]
        if outputs and sample.backward:
            torch.autograd.backward(outputs, [torch.ones_like(each) for each in outputs])
        return [result, [each.grad for each in tensors([*args, *kwargs.values()]) if each.is_leaf]]

    found = {}
    for number, sample in enumerate(all_samples()):
        for to in ("float64", "float32"):
            torch.manual_seed(0)
            found[f"{sample.name}, sample {number} in {to}"] = answer(lambda: run(sample, to))  # noqa: B023  (called at once)
    return found


def differences(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """Return a line for each call whose answers differ."""
    return [f"{text}: {there.get(text)} instead of {here[text]}" for text in here if here[text] != there.get(text)]


def main(arguments: list[str]) -> int:
    """Run the command that is described above."""
    if "--pretend" in arguments:
        from tests.narrow import pretence

        arguments.remove("--pretend")
        pretence.install()
    found = by_call() | by_sample()
    if not arguments:
        json.dump(found, sys.stdout)
        return 0
    with open(arguments[0], encoding="utf-8") as file:
        different = differences(found, json.load(file))
    print(*different, f"{len(found) - len(different)} of {len(found)} calls agree", sep="\n")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
