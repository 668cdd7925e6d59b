"""`nn.attention.flex_attention` against PyTorch's, and `flex_attention` against scaled_dot_product_attention."""

from __future__ import annotations

import importlib
import warnings

import pytest

import tinytorch
from tests.same import same_as_pytorch


def module(torch):
    return importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")


def attention(torch, *args, **kwargs):
    with warnings.catch_warnings():  # (that PyTorch's would be faster if compiled)
        warnings.simplefilter("ignore")
        return module(torch).flex_attention(*args, **kwargs)


def inputs(torch, heads=2, key_heads=2, rows=5, columns=7, dtype=None):
    def numbers(*shape):
        count = torch.Size(shape).numel()
        return ((torch.arange(count) * 37 % 23 - 11) / 7).to(dtype or torch.float32).view(shape)

    three = (numbers(2, heads, rows, 4), numbers(2, key_heads, columns, 4), numbers(2, key_heads, columns, 3))
    return list(three)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx).abs() <= 1 + h + b


def result(torch, *args, heads=2, key_heads=2, dtype=None, **kwargs):
    return attention(torch, *inputs(torch, heads, key_heads, dtype=dtype), *args, **kwargs)


def block_mask(torch, mask, *sizes, **kwargs):
    return module(torch).create_block_mask(mask, *sizes, device="cpu", **kwargs)


def bias(torch):
    return torch.arange(2 * 5 * 7).float().view(2, 5, 7).sin()


PROGRAMS = {
    "plain": lambda torch: result(torch),
    "scale": lambda torch: result(torch, scale=0.3),
    "float64": lambda torch: result(torch, dtype=torch.float64),
    "bfloat16": lambda torch: attention(torch, *inputs(torch, dtype=torch.bfloat16)).float(),
    "relative": lambda torch: result(torch, lambda s, b, h, i, j: s + 0.1 * (i - j)),
    "slope of a head": lambda torch: result(
        torch, lambda s, b, h, i, j: s - torch.tensor([0.5, 0.1])[h] * (i - j).abs()
    ),
    "bias": lambda torch: result(torch, lambda s, b, h, i, j: s + bias(torch)[h, i, j]),
    "soft cap": lambda torch: result(torch, lambda s, b, h, i, j: 2 * torch.tanh(s / 2)),
    "where": lambda torch: result(torch, lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))),
    "causal": lambda torch: result(torch, block_mask=block_mask(torch, causal, None, None, 5, 7)),
    "window": lambda torch: result(torch, block_mask=block_mask(torch, window, 2, 2, 5, 7)),
    "both": lambda torch: result(torch, lambda s, b, h, i, j: s * (b + 1), block_mask(torch, causal, None, None, 5, 7)),
    "nothing seen": lambda torch: result(
        torch, block_mask=block_mask(torch, lambda b, h, i, j: i > 2, None, None, 5, 7)
    ),
    "groups": lambda torch: result(torch, heads=4, enable_gqa=True),
    "lse": lambda torch: result(torch, return_lse=True),
    "aux, one": lambda torch: tuple(attention(torch, *inputs(torch), return_aux=module(torch).AuxRequest(lse=True))[1]),
    "create_mask": lambda torch: module(torch).create_mask(window, 2, 2, 5, 7, device="cpu"),
    "create_mask, one": lambda torch: module(torch).create_mask(causal, None, None, 3, 4, device="cpu"),
    "create_mask of scores": lambda torch: module(torch).create_mask(
        lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")), 2, None, 3, 4, device="cpu"
    ),
    "and": lambda torch: module(torch).create_mask(module(torch).and_masks(causal, window), 2, 2, 5, 7, device="cpu"),
    "or": lambda torch: module(torch).create_mask(module(torch).or_masks(causal, window), 2, 2, 5, 7, device="cpu"),
    "noop": lambda torch: module(torch).create_mask(module(torch).noop_mask, 2, None, 2, 3, device="cpu"),
    "block mask": lambda torch: [
        (m.shape, m.numel(), m.seq_lengths, m.BLOCK_SIZE, m.sparsity(), m.to_dense())
        for m in (
            block_mask(torch, causal, None, None, 256, 300),
            block_mask(torch, window, 2, 2, 256, 256, BLOCK_SIZE=64),
            block_mask(torch, causal, None, 3, 200, 100, BLOCK_SIZE=(32, 16)),
        )
    ],
    "dimensions": lambda torch: attention(torch, *[each[0] for each in inputs(torch)]),
    "embedding": lambda torch: attention(torch, torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 5), torch.ones(1, 2, 3, 4)),
    "heads": lambda torch: attention(torch, *inputs(torch, 4, 2)),
    "groups that do not fit": lambda torch: attention(torch, *inputs(torch, 3, 2), enable_gqa=True),
    "length of the mask": lambda torch: attention(
        torch, *inputs(torch), block_mask=block_mask(torch, causal, None, None, 9, 7)
    ),
    "no function": lambda torch: module(torch).and_masks(1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    same_as_pytorch(PROGRAMS[name])


def test_gradients_are_those_of_scaled_dot_product_attention():  # (PyTorch's flex_attention has none on processors)
    def gradients(function):
        three = [each.requires_grad_() for each in inputs(tinytorch, dtype=tinytorch.float64)]
        return tinytorch.autograd.grad((function(*three) ** 2).sum(), three)

    mask = block_mask(tinytorch, causal, None, None, 5, 7)
    flex = gradients(lambda q, k, v: attention(tinytorch, q, k, v, block_mask=mask))
    dense = tinytorch.ones(5, 7, dtype=tinytorch.bool).tril()
    usual = gradients(lambda q, k, v: tinytorch.nn.functional.scaled_dot_product_attention(q, k, v, dense))
    for ours, theirs in zip(flex, usual, strict=True):
        tinytorch.testing.assert_close(ours, theirs)


def test_of_indices_is_refused():
    flex = module(tinytorch)
    with pytest.raises(NotImplementedError, match="create_block_mask"):
        flex.BlockMask((1, 1), tinytorch.ones(1), tinytorch.ones(1))
    with pytest.raises(NotImplementedError, match="create_block_mask"):
        flex.BlockMask.from_kv_blocks(tinytorch.ones(1), tinytorch.ones(1))
