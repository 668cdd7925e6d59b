"""Attention: values, random numbers, masks, derivatives and errors against PyTorch."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch


def matrices(torch: Any, *shapes: tuple[int, ...], grad: bool = True) -> list[Any]:
    """Return float32 tensors that are the same with both libraries."""
    source = np.random.default_rng(sum(map(len, shapes)))
    return [torch.tensor(source.standard_normal(shape).astype(np.float32)).requires_grad_(grad) for shape in shapes]


def with_gradients(torch: Any, out: Any, *inputs: Any) -> Any:
    """Return an output and the gradients of a sum with changing factors."""
    factors = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out.dtype)
    return out.detach(), torch.autograd.grad((out * factors).sum(), inputs)


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (3, 20, 4), (17, 8)])
def test_dropout_draws_the_numbers_of_pytorch(p: float, causal: bool, shape: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        q, k, v = matrices(torch, shape, shape, shape)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=causal)
        return with_gradients(torch, out, q, k, v), torch.rand(3)

    same_as_pytorch(program, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
def test_narrow_numbers(dtype: str, causal: bool) -> None:
    def program(torch: Any) -> Any:
        q, k, v = (x.detach().to(getattr(torch, dtype)) for x in matrices(torch, *[(2, 2, 5, 4)] * 3))
        q.requires_grad_()
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return str(out.dtype), [x.float() for x in (out.detach(), *torch.autograd.grad(out.sum(), q))]

    same_as_pytorch(program, 2e-2, 2e-2)


def test_a_large_batch_is_shared_out() -> None:
    def program(torch: Any) -> Any:
        x = matrices(torch, (12, 64, 3 * 32))[0]
        q, k, v = (each.view(12, 64, 4, 8).transpose(1, 2) for each in x.split(32, 2))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return with_gradients(torch, out.transpose(1, 2).reshape(12, 64, 32), x)

    same_as_pytorch(program, 1e-3, 1e-5)


def test_queries_that_attend_to_nothing_get_zeros_and_no_nan() -> None:
    def program(torch: Any) -> Any:
        q, k, v = matrices(torch, (2, 3, 4), (2, 5, 4), (2, 5, 4))
        seen = torch.ones(3, 5).bool()
        seen[1] = False
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen)
        return with_gradients(torch, out, q, k, v)

    same_as_pytorch(program, 1e-4, 1e-6)


def test_of_no_keys_at_all() -> None:
    out = tinytorch.nn.functional.scaled_dot_product_attention(
        tinytorch.ones(2, 3, 4), tinytorch.ones(2, 0, 4), tinytorch.ones(2, 0, 5)
    )
    assert out.tolist() == np.zeros((2, 3, 5)).tolist()


def test_by_hand_and_at_once_agree_in_second_order() -> None:
    torch = tinytorch
    q, k, v = (x.double().detach().requires_grad_() for x in matrices(torch, *[(2, 4, 3)] * 3))
    hidden = torch.ones(4, 4).tril() == 0

    def by_hand(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.transpose(-2, -1) / math.sqrt(3)).masked_fill(hidden, -math.inf)
        return torch.softmax(scores, -1) @ v

    def at_once(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    found = []
    for attend in (by_hand, at_once):
        first = torch.autograd.grad(attend(q, k, v).pow(3).sum(), (q, k, v), create_graph=True)
        found.append([*first, *torch.autograd.grad(sum(x.sin().sum() for x in first), (q, k, v))])
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), 1e-9, 1e-11)


ERRORS = {
    "a vector": lambda F, q, k, v: F(q[0, 0], k, v),
    "no tensor": lambda F, q, k, v: F([1.0], k, v),
    "dtypes": lambda F, q, k, v: F(q.double(), k, v),
    "integers": lambda F, q, k, v: F(q.long(), k.long(), v.long()),
    "features": lambda F, q, k, v: F(q[..., :2], k, v),
    "keys": lambda F, q, k, v: F(q, k, v[:, :2]),
    "batches": lambda F, q, k, v: F(q[[0, 0, 0]], k, v),
    "batches of values": lambda F, q, k, v: F(q, k, v[[0, 0, 0]]),
    "mask of integers": lambda F, q, k, v: F(q, k, v, (q @ k.mT).long()),
    "mask of doubles": lambda F, q, k, v: F(q, k, v, (q @ k.mT).double()),
    "mask's shape": lambda F, q, k, v: F(q, k, v, q @ q.mT),
    "mask of one dimension": lambda F, q, k, v: F(q, k, v, q[0, 0]),
    "mask of too many": lambda F, q, k, v: F(q, k, v, (q @ k.mT)[None, None].expand(2, 2, 2, 3, 5)),
    "mask and causal": lambda F, q, k, v: F(q, k, v, q @ k.mT, is_causal=True),
    "p": lambda F, q, k, v: F(q, k, v, None, 1.5),
    "scale by position": lambda F, q, k, v: F(q, k, v, None, 0.0, False, 0.5),
    "groups without heads": lambda F, q, k, v: F(q[0], k[0], v[0], enable_gqa=True),
    "groups that do not divide": lambda F, q, k, v: F(q[[0, 0, 0]], k, v, enable_gqa=True),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    def program(torch: Any) -> Any:
        q, k, v = matrices(torch, (2, 3, 4), (2, 5, 4), (2, 5, 4), grad=False)
        return ERRORS[name](torch.nn.functional.scaled_dot_product_attention, q, k, v)

    same_as_pytorch(program)


# MultiheadAttention -------------------------------------------------------------------------------

MODULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no bias": {"bias": False},
    "learnt key": {"add_bias_kv": True},
    "zeros": {"add_zero_attn": True, "add_bias_kv": True},
    "other lengths": {"kdim": 3, "vdim": 5},
    "batch first": {"batch_first": True},
    "dropout": {"dropout": 0.3},
    "dropout, batch first": {"dropout": 0.3, "batch_first": True},
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str, weights: bool, training: bool) -> None:
    options = MODULES[name]

    def program(torch: Any) -> Any:
        module = torch.nn.MultiheadAttention(8, 2, **options).train(training)
        shapes = [(4, 2, 8), (6, 2, options.get("kdim", 8)), (6, 2, options.get("vdim", 8))]
        if options.get("batch_first"):
            shapes = [(n, length, features) for length, n, features in shapes]
        query, key, value = matrices(torch, *shapes)
        out, found = module(query, key, value, need_weights=weights)
        own = with_gradients(torch, out, query, key, value, *module.parameters())
        state = {key: value.detach() for key, value in module.state_dict().items()}
        shown = None if found is None else found.detach()
        return repr(module), state, own, shown, torch.rand(2)

    same_as_pytorch(program, 1e-4, 1e-5)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("which", ["bool", "float", "both", "three dimensions", "causal"])
@pytest.mark.parametrize("weights", [True, False])
def test_masks(which: str, batched: bool, average: bool, weights: bool) -> None:
    def program(torch: Any) -> Any:
        module = torch.nn.MultiheadAttention(8, 2)
        x = matrices(torch, (4, 2, 8) if batched else (4, 8))[0]
        hidden = torch.ones(4, 4).triu(1).bool()
        padding = torch.tensor([[False, False, False, True], [False, False, True, True]])
        padding = padding if batched else padding[0]
        masks: dict[str, Any] = {
            "bool": {"attn_mask": hidden},
            "float": {"attn_mask": torch.linspace(-1, 1, 16).reshape(4, 4)},
            "both": {"attn_mask": hidden, "key_padding_mask": padding},
            "three dimensions": {"attn_mask": hidden.expand(4 if batched else 2, 4, 4)},
            "causal": {"attn_mask": hidden, "is_causal": True},
        }
        out, found = module(x, x, x, need_weights=weights, average_attn_weights=average, **masks[which])
        return with_gradients(torch, out, x), None if found is None else found.detach()

    same_as_pytorch(program, 1e-4, 1e-5)


@pytest.mark.parametrize("grad", [True, False])
def test_evaluation_with_a_mask(grad: bool) -> None:
    """PyTorch takes a path of its own without gradients: it may differ by rounding only."""

    def program(torch: Any) -> Any:
        module = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x = matrices(torch, (3, 4, 8), grad=False)[0]
        padding = torch.tensor([[False] * 4, [False] * 3 + [True], [False, False, True, True]])
        with torch.set_grad_enabled(grad):
            out, found = module(x, x, x, key_padding_mask=padding)
        return out.detach()[~padding], found.detach()

    same_as_pytorch(program, 1e-4, 1e-5)


MODULE_ERRORS = {
    "heads": lambda nn, x: nn.MultiheadAttention(8, 3),
    "no heads": lambda nn, x: nn.MultiheadAttention(8, 0),
    "features": lambda nn, x: nn.MultiheadAttention(4, 2)(x, x, x),
    "four dimensions": lambda nn, x: nn.MultiheadAttention(8, 2)(x[None], x, x),
    "batch of queries only": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x[0], x[0]),
    "batch of keys only": lambda nn, x: nn.MultiheadAttention(8, 2)(x[0], x, x),
    "keys and values": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x[:2]),
    "mask's shape": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, attn_mask=x[0, 0] > 0),
    "mask's size": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, attn_mask=x[0] > 0),
    "mask's size, 3-D": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, attn_mask=x > 0),
    "mask of integers": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, attn_mask=x[0].long()),
    "padding": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, key_padding_mask=x > 0),
    "padding's batch": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, key_padding_mask=x[:3, 0, :4] > 0),
    "padding's keys": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, key_padding_mask=x[:2, 0, :3] > 0),
    "causal without a mask": lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x, is_causal=True),
    "masks of two kinds": lambda nn, x: nn.MultiheadAttention(8, 2)(
        x, x, x, key_padding_mask=x[:2, 0, :4] > 9, attn_mask=x[:4, 0, :4]
    )[0].detach(),
}


@pytest.mark.parametrize("name", MODULE_ERRORS)
def test_errors_of_the_module(name: str) -> None:
    def program(torch: Any) -> Any:
        x = matrices(torch, (4, 2, 8), grad=False)[0]
        return MODULE_ERRORS[name](torch.nn, x)

    same_as_pytorch(program, 1e-4, 1e-5)


def test_the_choice_of_a_kernel_changes_nothing() -> None:
    def program(torch: Any) -> Any:
        from importlib import import_module

        attention = import_module(f"{torch.__name__}.nn.attention")
        x = matrices(torch, (2, 2, 3, 4), grad=False)[0]
        kinds = attention.SDPBackend
        out = []
        for chosen in (kinds.MATH, [kinds.FLASH_ATTENTION, kinds.MATH]):
            with attention.sdpa_kernel(chosen):
                out.append(torch.nn.functional.scaled_dot_product_attention(x, x, x))
        numbers = [(name, int(getattr(kinds, name))) for name in ("MATH", "ERROR", "CUDNN_ATTENTION")]
        return out, numbers

    same_as_pytorch(program, 1e-5, 1e-6)
    with pytest.raises(AssertionError, match="Backend must be an instance"):
        tinytorch.nn.attention.sdpa_kernel("math").__enter__()


@pytest.mark.parametrize("lengths", [(0, 3, 2), (3, 0, 2), (3, 2, 0)], ids=["no query", "no key", "no batch"])
@pytest.mark.parametrize("training", [True, False])
def test_attention_over_nothing(lengths: tuple[int, int, int], training: bool) -> None:
    length, keys, batch = lengths

    def program(torch: Any) -> Any:
        x, y = matrices(torch, (length, batch, 4), (keys, batch, 4))
        attention = torch.nn.MultiheadAttention(4, 2).train(training)
        out, weights = attention(x, y, y)
        return out, weights, torch.autograd.grad(out.sum(), [x, y, *attention.parameters()])

    same_as_pytorch(program, 1e-5, 1e-6)


def test_a_mask_of_one_dimension() -> None:
    def program(torch: Any) -> Any:
        x = matrices(torch, (2, 3, 4))[0]
        attend = torch.nn.functional.scaled_dot_product_attention
        mask = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        seen = attend(x, x, x, torch.tensor([True, False, True])), attend(x, x, x, torch.tensor([False]))
        return seen, with_gradients(torch, attend(x, x, x, mask), x, mask)

    same_as_pytorch(program, 1e-5, 1e-6)


MASKS = {
    "all padding": lambda torch: (None, torch.tensor([[True] * 3, [False, False, True]])),
    "a row of the mask": lambda torch: (torch.tensor([[True] * 3, [False] * 3, [False, True, True]]), None),
    "both": lambda torch: (
        torch.tensor([[False, True, True], [False] * 3, [True, False, True]]),
        torch.tensor([[True, False, False], [False] * 3]),
    ),
    "numbers": lambda torch: (None, torch.tensor([[-np.inf] * 3, [0.0, 0.0, -np.inf]])),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_queries_that_see_nothing(name: str, need_weights: bool, training: bool) -> None:
    """PyTorch's fused kernel and its softmax make NaN of them, `scaled_dot_product_attention` zeros."""

    def program(torch: Any) -> Any:
        x = matrices(torch, (2, 3, 4), grad=False)[0]
        attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).train(training)
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True).train(training)
        encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
        mask, padding = MASKS[name](torch)
        recorded = attention(x, x, x, padding, need_weights, mask)
        with torch.no_grad():
            return recorded, attention(x, x, x, padding, need_weights, mask), encoder(x, mask, padding)

    same_as_pytorch(program, 1e-5, 1e-5)


def test_an_encoder_that_leaves_out_all() -> None:
    def program(torch: Any) -> Any:
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 1).eval()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (PyTorch's, that nested tensors are new)
            return encoder(torch.ones(2, 3, 4), src_key_padding_mask=torch.ones(2, 3, dtype=torch.bool))

    same_as_pytorch(program)
