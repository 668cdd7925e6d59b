"""Random tensors: PyTorch's numbers, warnings and errors, and their place in the graph."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.declared import FUNCTIONS
from tests.oracle import FUSED, needs_oracle
from tests.oracle import torch as pytorch
from tests.same import expressions, refused, same_as_pytorch
from tinytorch.ops import random as module

# Each is evaluated with tinytorch and with PyTorch, from the same seed, and must give the same
# numbers or error.
NUMBERS = expressions("""
    torch.rand(2, 3); torch.rand([2, 3]); torch.rand(()); torch.rand(0, 3); torch.rand(size=(2,))
    torch.rand(torch.Size([2])); torch.rand(torch.tensor(2), 3); torch.rand(np.int64(2))
    torch.rand(3, dtype=torch.float64); torch.rand(3, dtype=torch.float16); torch.rand(3, requires_grad=True)
    torch.rand(3, device="cpu", pin_memory=False, layout=None); torch.rand(3, out=torch.empty(3))
    torch.rand(3, out=torch.empty(2, dtype=torch.float64)); torch.rand(3, generator=torch.Generator().manual_seed(3))
    torch.rand(3, generator=None); torch.randn(2, 3); torch.randn(20); torch.randn(20, dtype=torch.float64)
    torch.randn(5, 1, requires_grad=True); torch.randn(3, generator=torch.Generator())
    torch.randn(3, out=torch.empty(3)); torch.randint(10, (2, 3)); torch.randint(3, 10, (5,))
    torch.randint(low=3, high=10, size=(5,)); torch.randint(high=10, size=(5,)); torch.randint(10, size=[5])
    torch.randint(3, high=10, size=[5]); torch.randint(3, 10, [5], dtype=torch.int32)
    torch.randint(-(2**40), 2**40, (5,)); torch.randint(2, (5,), dtype=torch.bool)
    torch.randint(10, (5,), dtype=torch.float32, requires_grad=True); torch.randint(torch.tensor(10), (5,))
    torch.randint(10, (2,), out=torch.empty(2)); torch.randint(10, (2,), generator=torch.Generator())
    torch.randperm(10); torch.randperm(0); torch.randperm(n=5, dtype=torch.int32)
    torch.randperm(5, dtype=torch.float16); torch.randperm(5, dtype=torch.float32, requires_grad=True)
    torch.randperm(5, generator=torch.Generator()); torch.randperm(5, out=torch.empty(0, dtype=torch.int64))
    torch.normal(0, 1, (5,)); torch.normal(0.5, 2.0, size=(20,), dtype=torch.float64)
    torch.normal(0.0, 1.0, (5,), requires_grad=True); torch.normal(0.0, 1.0, (2,), out=torch.empty(2))
    torch.normal(torch.arange(5.0), 2.0); torch.normal(torch.arange(5.0))
    torch.normal(torch.arange(20.0), torch.arange(20.0)); torch.normal(2, torch.arange(5.0))
    torch.normal(mean=0.5, std=torch.arange(1.0, 6.0, dtype=torch.float64))
    torch.normal(torch.zeros(2, 1), torch.ones(3)); torch.normal(torch.zeros(0), 1.0)
    torch.normal(torch.zeros(2), torch.ones(2), generator=torch.Generator())
    torch.normal(torch.zeros(2), torch.ones(2), out=torch.empty(0)); torch.bernoulli(torch.tensor([0.1, 0.9, 0.5]))
    torch.bernoulli(torch.full((9,), 0.5, dtype=torch.float64)); torch.bernoulli(torch.zeros(0))
    torch.bernoulli(torch.full((9,), 0.5), out=torch.empty(0))
    torch.bernoulli(torch.full((9,), 0.5), generator=torch.Generator()); torch.full((9,), 0.5).bernoulli()
    torch.rand_like(torch.zeros(2, 3)); torch.rand_like(torch.zeros(2, 3).t())
    torch.rand_like(torch.zeros(3).expand(2, 3))
    torch.rand_like(torch.zeros(2, dtype=torch.int64), dtype=torch.float64)
    torch.rand_like(torch.zeros(2, requires_grad=True)); torch.rand_like(torch.zeros(2), requires_grad=True)
    torch.randn_like(torch.zeros(2, 3)); torch.randn_like(torch.zeros(5, 4).t())
    torch.randn_like(torch.zeros(2), generator=torch.Generator()); torch.randint_like(torch.zeros(4), 5)
    torch.randint_like(torch.zeros(4), 2, 5); torch.randint_like(torch.zeros(4), low=2, high=5)
    torch.randint_like(torch.zeros(4), 2, high=5, dtype=torch.int64); torch.zeros(4).uniform_()
    torch.zeros(4).uniform_(1); torch.zeros(4).uniform_(-1, 1); torch.zeros(4).uniform_(to=3, **{"from": 1})
    torch.zeros(4).uniform_(torch.tensor(-1), generator=torch.Generator()); torch.zeros(4, 5).t().uniform_()
    torch.zeros(4).normal_(); torch.zeros(4).normal_(1, 2); torch.zeros(4).normal_(mean=1, std=2, generator=None)
    torch.zeros(4).normal_(torch.tensor(1.0), 2); torch.zeros(0, dtype=torch.int64).normal_()
    torch.zeros(4).log_normal_(); torch.zeros(4).log_normal_(mean=0, std=1); torch.zeros(4).cauchy_()
    torch.zeros(4).cauchy_(median=1, sigma=2); torch.zeros(4).geometric_(0.3)
    torch.zeros(4, dtype=torch.int64).geometric_(p=0.3); torch.zeros(4, dtype=torch.int64).random_()
    torch.zeros(4).random_(); torch.zeros(4, dtype=torch.bool).random_(); torch.zeros(4).random_(5)
    torch.zeros(4).random_(1, 5); torch.zeros(4).random_(to=5); torch.zeros(4).random_(**{"from": 3, "to": 5})
    torch.zeros(4).random_(5, generator=torch.Generator()); torch.zeros(4).random_(torch.tensor(4))
    torch.zeros(4, dtype=torch.int32).random_(1, None); torch.zeros(4, dtype=torch.int16).random_(-5, None)
    torch.zeros(4, dtype=torch.float16).random_(1, None); torch.zeros(4, dtype=torch.float64).random_(1, None)
    torch.zeros(4, dtype=torch.int64).random_(-(2**63), None)
    torch.zeros(4, dtype=torch.float32).random_(-(2**63), None); torch.zeros(4, dtype=torch.uint8).random_(256)
    torch.zeros(40, dtype=torch.float16).random_(-2048, 2047); torch.zeros(40, dtype=torch.float16).random_(3000)
    torch.zeros(40, dtype=torch.float16).random_(-5001, -3000); torch.zeros(4, dtype=torch.float64).random_(2**53 + 5)
    torch.zeros(4).random_(2**63 - 1); torch.zeros(2, 3).bernoulli_(torch.tensor([0.1, 0.2, 0.9]))
    torch.zeros(2, 3).bernoulli_(torch.tensor(0.3))
    torch.zeros(2, 3, dtype=torch.int64).bernoulli_(p=torch.tensor(0.3, dtype=torch.float64))
    torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 20, True)
    torch.multinomial(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]), 5, replacement=True)
    torch.multinomial(torch.ones(3), 5, True, generator=torch.Generator())
    torch.multinomial(torch.ones(3), 5, True, out=torch.empty(0, dtype=torch.int64))
    torch.multinomial(torch.tensor([0.0, 1.0, 0.0], requires_grad=True), 1)
    torch.multinomial(torch.arange(1.0, 11.0).reshape(5, 2).t(), 3)
    torch.multinomial(torch.arange(1.0, 6.0).expand(3, 5), 3); torch.randint_like(torch.zeros(4), torch.tensor(5))
    torch.randint_like(torch.zeros(4), torch.tensor(2), torch.tensor(5))
    torch.poisson(torch.tensor([0.0, 0.5, 3.0, 9.9, 10.0, 500.0]))
    torch.poisson(torch.full((200,), 13.7, dtype=torch.float64))
    torch.poisson(torch.full((200,), 2.7, dtype=torch.float16)); torch.poisson(torch.arange(12.0).reshape(3, 4).t())
    torch.poisson(torch.ones(3), torch.Generator().manual_seed(3)); torch.poisson(torch.ones(0))
    torch.native_dropout(torch.arange(1.0, 21.0), 0.3, True); torch.native_dropout(torch.arange(1.0, 21.0), 1.0, True)
    torch.native_dropout(torch.arange(1.0, 4.0), 0.3, False); torch.poisson(torch.ones(2, requires_grad=True)).detach()
    torch.binomial(torch.tensor([0.0, 3.0, 20.0, 100.0]), torch.tensor([0.5, 0.5, 0.9, 0.3]))
    torch.binomial(torch.full((200,), 100.0), torch.full((200,), 0.4))
    torch.binomial(torch.full((200,), 10.0).double(), torch.full((200,), 0.4).double())
    torch.binomial(torch.ones(3, 2) * 9, torch.tensor([0.1, 0.6]), torch.Generator())
    torch.binomial(torch.tensor([5.0, 5.0, 5.0]), torch.tensor([0.0, 1.0, float("nan")]))
    torch._standard_gamma(torch.tensor([0.0, 0.01, 0.5, 1.0, 3.0, 1000.0]))
    torch._standard_gamma(torch.full((300,), 0.3, dtype=torch.float64)); torch._standard_gamma(torch.full((300,), 1.3))
    torch._standard_gamma(torch.ones(3, 2).t(), torch.Generator().manual_seed(3))
    torch._sample_dirichlet(torch.arange(1.0, 13.0).reshape(4, 3))
    torch._sample_dirichlet(torch.full((50, 2), 0.2, dtype=torch.float64))
    [torch.randn(1), torch._standard_gamma(torch.ones(5)), torch.randn(2)]
    torch.manual_seed(3), torch.rand(2), torch.initial_seed(); torch.manual_seed(-1).initial_seed()
    torch.manual_seed(2**64 - 1).initial_seed(), torch.rand(2); torch.manual_seed(1.7).initial_seed()
    torch.manual_seed(np.int64(7)).initial_seed(); torch.Generator().initial_seed(); torch.Generator("cpu").device.type
    torch.Generator(device=torch.device("cpu")).manual_seed(5).initial_seed(); torch.get_rng_state()
    torch.Generator().manual_seed(1).get_state()
""")

ERRORS = expressions("""
    torch.rand(-1); torch.rand(2.0); torch.rand("a"); torch.rand((2, "a")); torch.rand(2, dtype=torch.int64)
    torch.rand(3, out=torch.empty(3, dtype=torch.float64), dtype=torch.float32); torch.randn(2, dtype=torch.int64)
    torch.randn(2, dtype=torch.bool); torch.rand(2**31, 2**40); torch.randint(0, (2,)); torch.randint(5, 5, (2,))
    torch.randint(3, (2,), dtype=torch.bool); torch.randint(300, (2,), dtype=torch.uint8); torch.randint(10, 2)
    torch.randint(10); torch.randint(1.5, (2,)); torch.randint(2**63, (2,))
    torch.randint(10, (2,), requires_grad=True); torch.randperm(-1); torch.randperm(2.5)
    torch.randperm(300, dtype=torch.uint8); torch.randperm(3, dtype=torch.bool)
    torch.randperm(3000, dtype=torch.float16); torch.randperm(3, requires_grad=True); torch.normal(0.0, -1.0, (2,))
    torch.normal(torch.zeros(2), -1.0); torch.normal(torch.zeros(2), torch.tensor([1.0, -1.0])); torch.normal(0.0, 1.0)
    torch.normal(torch.zeros(2), torch.ones(3)); torch.normal(torch.zeros(2, dtype=torch.int64), 1.0)
    torch.normal(torch.zeros(2), torch.ones(2), (2,)); torch.bernoulli([0.5])
    torch.bernoulli(torch.tensor([0.5, 1.5])); torch.bernoulli(torch.tensor(float("nan")))
    torch.bernoulli(torch.tensor([1, 0])); torch.bernoulli(torch.ones(2), p=1.5); torch.rand_like([1])
    torch.rand_like(torch.zeros(2, dtype=torch.int64)); torch.zeros(2).bernoulli_(1.5)
    torch.zeros(2).bernoulli_(torch.tensor([0.5, 0.5, 0.5])); torch.zeros(2).bernoulli_(torch.tensor([1, 0]))
    torch.zeros(2).bernoulli_(torch.tensor([-0.5, 0.5])); torch.zeros(2).uniform_(1, 0)
    torch.zeros(2).uniform_(0, float("inf")); torch.zeros(2).uniform_(0, float("nan"))
    torch.zeros(2).uniform_(-3e38, 3e38); torch.zeros(2).uniform_("a"); torch.zeros(2, dtype=torch.int64).uniform_()
    torch.zeros(0, dtype=torch.int64).uniform_(); torch.zeros(2, dtype=torch.float16).uniform_(0, 1e6)
    torch.zeros(2, dtype=torch.int64).normal_(); torch.zeros(2).normal_(0, -1); torch.zeros(2).normal_(0, float("nan"))
    torch.zeros(2).normal_("a"); torch.zeros(2).log_normal_(0, 0); torch.zeros(2, dtype=torch.int64).log_normal_()
    torch.zeros(2).exponential_(0); torch.zeros(2).exponential_(-1); torch.zeros(2, dtype=torch.int64).exponential_()
    torch.zeros(2).cauchy_(0, -1); torch.zeros(2, dtype=torch.int64).cauchy_(); torch.zeros(2).geometric_(0)
    torch.zeros(2, dtype=torch.bool).geometric_(0.5); torch.zeros(2).random_(0); torch.zeros(2).random_(3, 1)
    torch.zeros(2).random_(2**70); torch.zeros(2, dtype=torch.uint8).random_(257)
    torch.zeros(2, dtype=torch.uint8).random_(-1, 2); torch.zeros(2, dtype=torch.float16).random_(70000)
    torch.zeros(2, dtype=torch.float16).random_(4097, 4098); torch.zeros(2, dtype=torch.int32).random_(-(2**63), None)
    torch.zeros(2, requires_grad=True).uniform_(); torch.zeros(2, requires_grad=True)[:1].normal_()
    torch.zeros(2, requires_grad=True).bernoulli_(torch.tensor(0.5)); torch.zeros(1).expand(3).uniform_()
    torch.zeros(1).expand(20).normal_(); torch.zeros(1).expand(3).random_(); torch.multinomial([1.0], 1)
    torch.multinomial(torch.ones(3), 4); torch.multinomial(torch.ones(3), 0); torch.multinomial(torch.ones(3), 1.5)
    torch.multinomial(torch.tensor([1.0, -1.0]), 1); torch.multinomial(torch.tensor([1.0, float("inf")]), 1, True)
    torch.multinomial(torch.zeros(2), 1); torch.multinomial(torch.ones(2, dtype=torch.int64), 1)
    torch.multinomial(torch.ones(2, 2, 2), 1); torch.multinomial(torch.tensor(1.0), 1)
    torch.multinomial(torch.ones(2), 1, out=torch.empty(1))
    torch.native_dropout(torch.ones(3, dtype=torch.int64), 0.5, True); torch.native_dropout(torch.ones(3), 1.5, True)
    torch.poisson(torch.tensor([-1.0])); torch.poisson(torch.tensor([float("nan")])); torch.poisson(torch.tensor([1]))
    torch.poisson(1.0); torch.binomial(torch.tensor([3]), torch.tensor([0.5]))
    torch.binomial(torch.tensor([3.0]), torch.tensor([0.5]).double())
    torch.binomial(torch.tensor([3.0]).half(), torch.tensor([0.5]).half()); torch.binomial(3.0, torch.tensor([0.5]))
    torch.binomial(torch.ones(2, requires_grad=True), torch.ones(2)).sum().backward()
    torch._standard_gamma(torch.tensor([1])); torch._standard_gamma(torch.tensor([1.0]).half())
    torch._sample_dirichlet(torch.ones(2, requires_grad=True)).sum().backward()
    torch.randint_like(torch.zeros(3), torch.tensor([4, 5])); torch.Generator().get_offset()
    torch.Generator().set_offset(0); torch.random.fork_rng([0]).__enter__(); torch.manual_seed(2**64)
    torch.manual_seed(-(2**63) - 1); torch.manual_seed("a"); torch.Generator().manual_seed(2**64)
    torch.Generator().manual_seed(1.5); torch.Generator("nowhere"); torch.set_rng_state(torch.zeros(3))
    torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)); torch.set_rng_state(torch.zeros(5056, dtype=torch.uint8))
    torch.set_rng_state([1])
""")

# (PyTorch's words are a list of its signatures here: expression, and words of the message.)
WRONG_CALLS = [
    ("torch.rand()", "missing 1 required"),
    ("torch.rand(2, foo=1)", "unexpected keyword argument 'foo'"),
    ("torch.rand(2, generator=3)", "'generator' must be torch.Generator, not int"),
    ('torch.zeros(2).bernoulli_("a")', "argument 'p' .position 1. must be float, not str"),
    ("torch.zeros(2).uniform_(0, 1, 2)", "invalid combination of arguments - got .int, int, int."),
    ("torch.zeros(2).uniform_(0, foo=1)", "invalid combination of arguments - got .int, foo=int."),
    ("torch.zeros(2).random_(0.5)", "argument 'to' .position 2. must be int, not float"),
]


def evaluate(expression: str, torch: Any) -> Any:
    result = eval(expression.strip(), {"torch": torch, "np": np})
    # A generator is compared by its state; and afterwards all generators must be in the same state.
    if isinstance(result, tuple):
        result = [each.get_state() if isinstance(each, torch.Generator) else each for each in result]
    return [result, torch.get_rng_state()]


@pytest.mark.parametrize("expression", NUMBERS)
def test_same_numbers(expression: str) -> None:
    last = 0 if FUSED else 1e-6
    same_as_pytorch(lambda torch: evaluate(expression, torch), rtol=last, atol=last)


@pytest.mark.parametrize("expression", ERRORS)
def test_same_errors(expression: str) -> None:
    with pytest.raises(Exception):  # noqa: B017  (which one, PyTorch says)
        evaluate(expression, tinytorch)
    same_as_pytorch(lambda torch: evaluate(expression, torch))


@pytest.mark.parametrize(("expression", "words"), WRONG_CALLS)
def test_wrong_calls(expression: str, words: str) -> None:
    refused(TypeError, words, evaluate, expression, tinytorch)
    if pytorch is not None:
        with pytest.raises(TypeError):
            evaluate(expression, pytorch)


@needs_oracle
def test_bernoulli_with_a_number() -> None:
    """Made of uniforms: on Intel processors PyTorch's own bernoulli_(p) draws elsewhere."""
    for fill in (lambda t: t.bernoulli_(0.3), lambda t: tinytorch.bernoulli(t, 0.3), lambda t: t.bernoulli(p=0.3)):
        tinytorch.manual_seed(1)
        pytorch.manual_seed(1)
        theirs = pytorch.rand(50, dtype=pytorch.float64) < 0.3
        np.testing.assert_array_equal(fill(tinytorch.empty(50)).numpy(), theirs.numpy())


@needs_oracle
def test_states_go_from_one_library_to_the_other() -> None:
    def numbers(torch: Any, generator: Any) -> list[Any]:
        return [
            torch.randn(3, generator=generator).tolist(),
            torch.rand(700, generator=generator).tolist(),
            torch.randperm(9, generator=generator).tolist(),
            torch.poisson(torch.full((9,), 20.0), generator=generator).tolist(),
        ]

    for draws in (0, 1, 623, 624, 625, 5000):
        ours = tinytorch.Generator().manual_seed(-7)
        theirs = pytorch.Generator().manual_seed(8)
        tinytorch.rand(draws, generator=ours)
        tinytorch.randn(3, generator=ours)  # one normal is waiting
        theirs.set_state(pytorch.from_numpy(ours.get_state().numpy()))
        assert theirs.initial_seed() == ours.initial_seed()
        assert numbers(tinytorch, ours) == numbers(pytorch, theirs)
        pytorch.randn(5, generator=theirs)
        ours = tinytorch.Generator()
        ours.set_state(tinytorch.from_numpy(theirs.get_state().numpy()))
        assert numbers(tinytorch, ours) == numbers(pytorch, theirs)


def test_threads_share_a_generator() -> None:
    """Each fill takes one stretch of the stream: together they are the fills of one thread, in some order."""
    generator = tinytorch.Generator().manual_seed(3)
    expected = {tuple(tinytorch.rand(5000, generator=generator).tolist()) for _ in range(40)}
    generator.manual_seed(3)
    found = []

    def work() -> None:
        for _ in range(10):
            found.append(tuple(tinytorch.rand(5000, generator=generator).tolist()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == expected


@needs_oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_of_gamma_numbers(dtype: str) -> None:
    """PyTorch's is an approximation; this one agrees with differences of the distribution function."""
    kind = getattr(tinytorch, dtype)
    alpha = tinytorch.tensor([0.05, 0.7, 1.0, 3.0, 9.0, 50.0, 5000.0], dtype=kind).repeat(40)
    x = tinytorch._standard_gamma(alpha)
    ours = tinytorch._standard_gamma_grad(alpha, x)
    theirs = pytorch._standard_gamma_grad(pytorch.from_numpy(alpha.numpy()), pytorch.from_numpy(x.numpy()))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=5e-3)
    assert ours.dtype is kind


@needs_oracle
def test_gradient_of_gamma_numbers_is_exact() -> None:
    gammainc = pytorch.special.gammainc
    for a, x in [(0.5, 0.3), (1.0, 2.0), (3.0, 9.0), (8.0, 5.0), (0.1, 3.0), (15.0, 16.0)]:
        step = 1e-5 * a
        up, down = (
            gammainc(*(pytorch.tensor(each, dtype=pytorch.float64) for each in (alpha, x))).item()
            for alpha in (a + step, a - step)
        )
        density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
        alpha, value = (tinytorch.tensor(each, dtype=tinytorch.float64) for each in (a, x))
        found = tinytorch._standard_gamma_grad(alpha, value).item()
        assert found == pytest.approx(-(up - down) / (2 * step) / density, rel=1e-6)


@needs_oracle
def test_gradient_of_beta_numbers() -> None:
    values = [0.2, 1.0, 4.0, 60.0]
    alpha, beta = (each.ravel() for each in np.meshgrid(values, values))
    x = np.random.default_rng(0).beta(np.tile(alpha, 30), np.tile(beta, 30)).clip(1e-30, 1 - 1e-12)
    alpha, total = np.tile(alpha, 30), np.tile(alpha + beta, 30)
    ours, theirs = (
        torch._dirichlet_grad(*(torch.from_numpy(each) for each in (x, alpha, total))) for torch in (tinytorch, pytorch)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-2)
    # PyTorch's series for small and large x, and where a parameter is one, are exact too.
    assert np.median(np.abs(ours.numpy() / theirs.numpy() - 1)) < 1e-6


def test_gamma_numbers_have_a_gradient() -> None:
    alpha = tinytorch.tensor([0.5, 2.0], dtype=tinytorch.float64, requires_grad=True)
    x = tinytorch._standard_gamma(alpha)
    (gradient,) = tinytorch.autograd.grad(x.sum(), alpha, create_graph=True)
    assert tinytorch.equal(gradient, tinytorch._standard_gamma_grad(alpha, x))
    refused(NotImplementedError, "_standard_gamma_grad", gradient.sum().backward)


@needs_oracle
def test_exponential() -> None:
    tinytorch.manual_seed(1)
    pytorch.manual_seed(1)
    theirs = -pytorch.log1p(-pytorch.rand(50, dtype=pytorch.float64)) / 2
    np.testing.assert_allclose(tinytorch.empty(50).exponential_(2).numpy(), theirs.numpy(), rtol=1e-6)


FILLS = ["uniform_()", "normal_()", "random_()", "exponential_()", "cauchy_()", "log_normal_()", "geometric_(0.5)"]


@pytest.mark.parametrize("fill", [*FILLS, "bernoulli_(0.5)", "bernoulli_(torch.tensor(0.5))"])
def test_a_fill_cuts_off_what_was_there(fill: str) -> None:
    x = tinytorch.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    result = eval(f"y.{fill}", {"y": y, "torch": tinytorch})
    assert result is y and y._version == version + 1 and y.requires_grad
    assert type(y.grad_fn).__name__.startswith(fill.split("_(")[0].title().replace("_", ""))
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_fills_and_the_graph() -> None:
    x = tinytorch.ones(4, requires_grad=True)
    y = x * 2
    y[:2].normal_()  # enters the base
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 2]
    w = tinytorch.ones(4)
    loss = (x * w).sum()
    w.normal_()
    refused(RuntimeError, "modified by an inplace operation", loss.backward)
    with tinytorch.no_grad():
        x.uniform_()
    assert x.is_leaf and x._version == 1
    for drawn in (tinytorch.rand_like(x), tinytorch.randn_like(x), tinytorch.multinomial(x, 2)):
        assert not drawn.requires_grad
    with tinytorch.inference_mode():
        assert tinytorch.rand(2).is_inference()


@pytest.mark.parametrize("expression", [
    "torch.bernoulli(p)", "torch.normal(p, p)", "torch.normal(p, 1.0)", "torch.normal(0.0, p)",
    "torch.zeros(2, 3).bernoulli_(p)",
])  # fmt: skip
def test_parameters_get_zero_gradients(expression: str) -> None:
    p = tinytorch.full((3,), 0.5, requires_grad=True)
    drawn = eval(expression, {"p": p, "torch": tinytorch})
    assert drawn.requires_grad
    drawn.sum().backward()
    assert p.grad.tolist() == [0, 0, 0]


def test_a_generator_is_independent_of_the_default_one() -> None:
    generator = tinytorch.Generator().manual_seed(5)
    before = tinytorch.get_rng_state()
    first = tinytorch.rand(3, generator=generator).tolist()
    assert tinytorch.get_rng_state().tolist() == before.tolist()
    assert tinytorch.rand(3, generator=generator.manual_seed(5)).tolist() == first


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, copy.copy, lambda g: pickle.loads(pickle.dumps(g)), lambda g: g.clone_state()]
)
def test_copies_of_a_generator_go_on_by_themselves(duplicate: Any) -> None:
    generator = tinytorch.Generator().manual_seed(5)
    tinytorch.randn(3, generator=generator)  # one normal is waiting
    second = duplicate(generator)
    assert second.initial_seed() == 5 and second.device == generator.device
    expected = tinytorch.randn(4, generator=generator).tolist()
    assert tinytorch.randn(4, generator=second).tolist() == expected
    assert second.get_state().tolist() == generator.get_state().tolist()


def test_seed_draws_a_new_one() -> None:
    seeds = {tinytorch.seed() for _ in range(3)} | {tinytorch.Generator().seed() for _ in range(3)}
    assert len(seeds) == 6
    assert tinytorch.seed() == tinytorch.initial_seed() == tinytorch.default_generator.initial_seed()


def test_states_go_back() -> None:
    tinytorch.manual_seed(0)
    with module.fork_rng():
        tinytorch.rand(5)
    state, after = tinytorch.get_rng_state(), tinytorch.rand(2).tolist()
    for back in (lambda: tinytorch.manual_seed(0), lambda: tinytorch.set_rng_state(state)):
        back()
        assert tinytorch.rand(2).tolist() == after
    with module.fork_rng(enabled=False):
        tinytorch.rand(5)
    assert tinytorch.rand(2).tolist() != after


def test_numpys_generators_are_imported_with_the_first_number() -> None:
    code = (
        "import sys, tinytorch\n"
        "tinytorch.manual_seed(0)\n"
        "assert 'numpy.random' not in sys.modules\n"
        "tinytorch.rand(1)\n"
        "assert 'numpy.random' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_declared_is_public() -> None:
    declared = {name for name, made in FUNCTIONS.items() if made.raw.__module__ == module.__name__ and "." not in name}
    assert {"rand", "randn", "randint", "manual_seed", "multinomial"} <= declared
    assert all(getattr(tinytorch, name) is FUNCTIONS[name] for name in declared)
