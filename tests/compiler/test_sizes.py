"""Compiled functions that are called with tensors of many sizes: one program for any size, with the eager numbers."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.compiler.general import General
from tinytorch.nn import functional as F

SIZES = [(3, 5), (8, 2), (4, 9), (7, 7), (1, 6), (12, 1), (1, 1), (2, 17), (5, 3), (9, 9), (6, 4), (16, 8), (11, 33)]


def cases() -> dict[str, Callable[..., Any]]:
    """Return functions of a tensor of two dimensions, by name."""
    torch.manual_seed(1)
    linear = nn.Linear(6, 4)
    conv = nn.Conv1d(1, 3, 3, stride=2, padding=1)
    norm = nn.BatchNorm1d(3)
    table = torch.randn(64, 6)

    @dataclasses.dataclass
    class Output:
        value: Any
        length: int

    def shapes(x: Any) -> Any:
        n, m = x.shape
        return x.reshape(m, n), x.view(-1), x.unsqueeze(1).expand(n, 3, m), x.new_zeros(n, 2 * m + 1), x.numel()

    def chunks(x: Any) -> Any:
        return [part * k for k, part in enumerate(x.chunk(4))]

    def splits(x: Any) -> Any:
        return torch.cat([part.sum(0, keepdim=True) for part in x.split(3)])

    def padded(x: Any) -> Any:
        n = x.shape[0]
        return F.pad(x, (0, 0, 0, (n + 7) // 8 * 8 - n))

    def halves(x: Any) -> Any:
        middle = x.size(1) // 2
        a, b = x[:, :middle], x[:, middle:]
        return torch.cat([b, a], 1), len(x) % 3

    def branches(x: Any) -> Any:
        if x.shape[0] > 6:
            return x * 2
        return x + x.shape[1]

    def limited(x: Any) -> Any:
        return x[: min(x.shape[0], 5)].sum(0)

    def mean(x: Any) -> Any:
        return x.sum() / x.shape[0], x.sum() * (1.0 / math.sqrt(x.shape[1]))

    def positions(x: Any) -> Any:
        return torch.arange(x.shape[0]).unsqueeze(1) + torch.ones(x.shape[1]) + table[: x.shape[0], :1]

    def masks(x: Any) -> Any:
        n = x.shape[0]
        square = x @ x.T
        return square.masked_fill(torch.triu(torch.ones(n, n, dtype=torch.bool), 1), -math.inf).softmax(-1)

    def loops(x: Any) -> Any:
        total = x[0] * 0
        for k in range(x.shape[0]):
            total = total + x[k] * k
        return total

    def rows(x: Any) -> Any:
        return torch.stack([row * row.numel() for row in x])

    def written(x: Any) -> Any:
        y = x.clone()
        y[:, 0] = 1
        y += x.size(0)
        y[1:] *= 2
        return y

    def layers(x: Any) -> Any:
        return linear(x.repeat(1, 6)[:, :6]).relu(), conv(x.unsqueeze(1))

    def statistics(x: Any) -> Any:
        return norm(conv(torch.cat([x, x], 1).unsqueeze(1).repeat(2, 1, 1)))

    def dropped(x: Any) -> Any:
        return F.dropout(x, 0.5), torch.rand(x.shape[1]), torch.randn_like(x)

    def output(x: Any) -> Any:
        return Output(x.sin(), x.shape[1]), {"length": x.size(0), "parts": [x.cos(), (x.shape, f"{x.dim()}d")]}

    def messages(x: Any) -> Any:
        torch._assert(x.dim() == 2, f"expected 2 dimensions, got {x.shape}")
        assert x.shape[1] < 100, f"{x.shape[1]} columns"
        name = f"{x.shape[0]} rows" if x.shape[1] == 5 else ""
        return x * 2, name, [f"{x.dim()} x {len(x)}"]

    def named(x: Any) -> Any:
        found = x.max(1)
        return found.values, found.indices, x.sort(1)[0], torch.var_mean(x, correction=0)

    def without_graph(x: Any) -> Any:
        with torch.no_grad():
            scale = x.abs().amax() / x.shape[0]
        return x * scale

    def interpolated(x: Any) -> Any:
        return F.interpolate(x[None, None], scale_factor=2), F.adaptive_avg_pool1d(x[None], 2)

    def same(x: Any) -> Any:
        return x.contiguous().t().contiguous(), x.float().view(x.shape).flatten()

    def compared(x: Any) -> Any:
        y = torch.ones(x.shape)
        return x == y if x.shape == y.shape else None, -x, x.shape[0] == x.shape[1]

    def einsum(x: Any) -> Any:
        return torch.einsum("ij,kj->ik", x, x), torch.outer(x[0], x[:, 0])

    def attended(x: Any) -> Any:
        y = x[None, None].expand(2, 1, *x.shape)
        return F.scaled_dot_product_attention(y, y, y, is_causal=True)

    made = dict(locals())
    return {name: made[name] for name in made if isinstance(made[name], type(shapes))}


def plain(x: Any) -> Any:
    """Return a result as something that can be compared, with the classes of the numbers."""
    if isinstance(x, torch.Tensor):
        return x.shape, x.dtype, x.requires_grad, x.detach().numpy().tobytes()
    if dataclasses.is_dataclass(x):
        return plain(vars(x))
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (tuple, list)):
        return type(x), [plain(each) for each in x]
    return type(x), x


def tensors(x: Any) -> list[Any]:
    if isinstance(x, torch.Tensor):
        return [x] if x.requires_grad else []
    parts = vars(x) if dataclasses.is_dataclass(x) else x
    if isinstance(parts, dict):
        parts = list(parts.values())
    return [tensor for each in parts for tensor in tensors(each)] if isinstance(parts, (list, tuple)) else []


def run(function: Callable[..., Any], n: int, m: int, differentiable: bool) -> Any:
    torch.manual_seed(100 * n + m)
    x = torch.randn(n, m, requires_grad=differentiable)
    result = function(x)
    roots = tensors(result)
    grads = (
        torch.autograd.grad([y.sum() * 3 for y in roots], [x], allow_unused=True) if roots and differentiable else ()
    )
    return plain(result), plain(grads)


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("name", cases())
def test_results_of_any_size(name: str, differentiable: bool) -> None:
    function, again = cases()[name], cases()[name]  # (each has layers of its own)
    compiled = torch.compile(again)
    for n, m in SIZES * 2:
        assert run(compiled, n, m, differentiable) == run(function, n, m, differentiable), (name, n, m)
    assert any(isinstance(variant, General) for variant in compiled.variants) or name in ("loops", "rows"), name


def test_few_programs_are_enough() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    compiled = torch.compile(model)
    order = [random.Random(k).randint(1, 33) for k in range(200)]
    for size in order:
        x = torch.randn(size, 3, 4)
        assert torch.equal(compiled(x), model(x))
    assert len(compiled._compiled.variants) <= 3
    assert compiled._compiled.recorded <= 4 and compiled._compiled.plain == 0


def test_a_training_step_of_any_batch_size() -> None:
    def trained(wrap: Callable[..., Any]) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        loss_fn = nn.CrossEntropyLoss()

        def step(x: Any, y: Any) -> Any:
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        step = wrap(step)
        losses = []
        for k in range(30):
            size = random.Random(k).randint(2, 20)
            losses.append(step(torch.randn(size, 5), torch.randint(0, 3, (size,))).item())
        return step, losses, [plain(value) for value in model.state_dict().values()]

    step, losses, state = trained(torch.compile)
    _, losses_eager, state_eager = trained(lambda function: function)
    assert losses == losses_eager and state == state_eager
    assert len(step.variants) <= 3 and step.recorded <= 4 and step.plain == 0


def test_dynamic_says_for_which_sizes() -> None:
    any_size, one_size = torch.compile(torch.sin, dynamic=True), torch.compile(lambda x: x.sin(), dynamic=False)
    for size in (2, 3, 4, 5):
        x = torch.arange(float(size))
        assert torch.equal(any_size(x), x.sin()) and torch.equal(one_size(x), x.sin())
    assert not any(isinstance(variant, General) for variant in one_size.variants)
    assert len(one_size.variants) == 4


def test_frequent_sizes_get_a_program_of_their_own() -> None:
    compiled = torch.compile(lambda x: (x * 2 + 1).relu())
    for size in [2, 3, 4, 5] + [6] * 50:
        x = torch.arange(float(size))
        assert torch.equal(compiled(x), (x * 2 + 1).relu())
    latest = next(variant for variant in reversed(compiled.variants) if not isinstance(variant, General))
    assert latest.inputs[0].shape == (6,) and latest.runs >= 15


def test_sizes_that_fit_two_shapes_keep_their_programs() -> None:
    compiled = torch.compile(lambda x: x * 2)
    for size in [8] * 20 + [3] + [8] * 20 + [3, 5]:
        compiled(torch.ones(size))
    first, *_, last = compiled.variants
    assert first.inputs[0].shape == (8,) and isinstance(last, General)


def test_errors_are_those_of_the_function() -> None:
    def f(x: Any) -> Any:
        assert x.shape[0] < 10, f"{x.shape[0]} rows"
        return x.view(x.shape[0], 2, 3) @ torch.ones(3, 2)

    compiled = torch.compile(f)
    for size in (2, 3, 4, 5, 6):
        assert compiled(torch.ones(size, 6)).shape == (size, 2, 2)
    with pytest.raises(AssertionError, match="10 rows"):
        compiled(torch.ones(10, 6))
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        compiled(torch.ones(3, 7))
    assert compiled(torch.ones(7, 6)).shape == (7, 2, 2)


def test_an_error_after_a_write_does_not_repeat_the_write() -> None:
    def f(x: Any, count: Any) -> Any:
        count.add_(1)
        return torch.linalg.cholesky(x @ x.T + torch.eye(len(x)) * x[0, 0]) + 1

    compiled, count = torch.compile(f, dynamic=True), torch.zeros(())
    for n in range(3, 7):
        compiled(torch.ones(n, 2), count)
    assert isinstance(compiled.variants[-1], General)
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(-9 * torch.ones(8, 2), count)
    assert count.item() == 5


def test_a_function_that_does_not_take_the_sizes_for_numbers() -> None:
    def f(x: Any) -> Any:
        if type(x.shape[0]) is not int:
            raise TypeError("a number is expected")
        return x * 2

    compiled = torch.compile(f)
    for size in (2, 3, 4, 5, 6):
        assert compiled(torch.ones(size)).tolist() == [2.0] * size


def test_random_functions_of_random_sizes() -> None:
    """Compositions of steps that use sizes, each with the eager results for all sizes."""
    steps: list[Callable[[Any, int], Any]] = [
        lambda x, k: x * (x.shape[0] + k),
        lambda x, k: x[:, : max(1, x.shape[1] - k)],
        lambda x, k: torch.cat([x, x[: x.shape[0] // 2 + 1]]),
        lambda x, k: x.reshape(-1, x.shape[0]).t().contiguous().t(),
        lambda x, k: x - x.mean(dim=k % 2, keepdim=True),
        lambda x, k: F.pad(x, (0, x.shape[1] % (k + 2), 0, 1)),
        lambda x, k: x.roll(x.size(0) // 2, 0),
        lambda x, k: torch.arange(x.size(1)) * x,
        lambda x, k: x.new_ones(x.size(0), k + 1) @ x.new_ones(k + 1, x.size(1)) + x,
        lambda x, k: x if x.shape[0] % 3 else x.flip(0),
        lambda x, k: torch.stack(x.chunk(k + 1)[:1], 0).sum(0),
        lambda x, k: x.narrow(0, x.shape[0] // 3, x.shape[0] - x.shape[0] // 3),
        lambda x, k: (x.unsqueeze(-1) * x.new_full((x.shape[-1], 2), 0.5)).flatten(1),
        lambda x, k: x / x.numel(),
        lambda x, k: x.index_select(0, torch.arange(0, len(x), k + 1)),
    ]
    for seed in range(60):
        choose = random.Random(seed)
        chosen = [(choose.choice(steps), choose.randint(0, 3)) for _ in range(choose.randint(2, 5))]

        def f(x: Any, chosen: Any = chosen) -> Any:
            for step, k in chosen:
                x = step(x, k)
            return x, x.shape[0]

        compiled = torch.compile(f)
        for _ in range(14):
            n, m = choose.randint(1, 12), choose.randint(1, 12)
            torch.manual_seed(n)
            x = torch.randn(n, m)
            assert plain(compiled(x)) == plain(f(x)), (seed, n, m)


def test_a_cache_that_grows() -> None:
    class Cache:
        def __init__(self) -> None:
            self.filled = False

        def update(self, keys: Any) -> Any:
            if not self.filled:
                self.dtype, self.device = keys.dtype, keys.device
                self.keys, self.filled = torch.zeros(1, 0, 4), True
            self.keys = torch.cat([self.keys, keys], 1)
            return self.keys

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.keys = nn.Linear(4, 4)
            self.total = torch.zeros(4)

        def forward(self, x: Any, cache: Any) -> Any:
            keys = cache.update(self.keys(x))
            self.total = self.total + keys.sum((0, 1))
            return (x @ keys.transpose(1, 2)).softmax(-1) @ keys, cache

    torch.manual_seed(0)
    module = Attention()
    compiled = torch.compile(module)

    def generated(function: Any) -> Any:
        module.total = torch.zeros(4)
        cache, results = Cache(), []
        with torch.no_grad():
            for k in range(10):
                result, returned = function(torch.full((1, 1, 4), float(k)), cache)
                assert returned is cache
                results.append(result)
        return plain([*results, cache.keys, cache.filled, cache.dtype, module.total])

    for _ in range(3):
        assert generated(compiled) == generated(module)
    assert compiled._compiled.plain == 0 and compiled._compiled.recorded <= 6


def test_attributes_that_are_set_are_tensors_of_each_call() -> None:
    class Noted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = None

        def forward(self, x: Any) -> Any:
            y = x * 2
            self.last = y
            return y + 1

    module = Noted()
    compiled = torch.compile(module)
    found = []
    for k in range(4):
        compiled(torch.full((2,), float(k)))
        found.append(module.last)
    assert [x.tolist() for x in found] == [[2.0 * k, 2.0 * k] for k in range(4)]
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        y = compiled(x)
        (module.last.sum() + y.sum()).backward()
    assert x.grad.tolist() == [12.0, 12.0]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_a_function_of_ones_own_without_gradients() -> None:
    compiled = torch.compile(lambda x: Doubled.apply(x).sum(0) + x.shape[0])
    with torch.no_grad():
        for size in (2, 3, 4, 5, 6, 7):
            x = torch.arange(2.0 * size).reshape(size, 2)
            assert torch.equal(compiled(x), (x * 2).sum(0) + size)
    assert compiled.recorded == 3
