"""`nn.init`: the numbers that PyTorch draws from the same seed, and its errors."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from tests.same import same_to_the_word as check


def drawn(name: str, *shape: int, **options: Any) -> Any:
    """Return a program: what the function makes of a parameter, and the next random number."""

    def program(torch: Any) -> Any:
        torch.manual_seed(7)
        w = torch.nn.Parameter(torch.zeros(shape))
        out = getattr(torch.nn.init, name)(w, **options)
        return [out is w, w, w.grad_fn is None, torch.rand(1)]

    return program


def with_generator(name: str, *shape: int, **options: Any) -> Any:
    def program(torch: Any) -> Any:
        torch.manual_seed(7)
        generator = torch.Generator()
        generator.manual_seed(11)
        w = getattr(torch.nn.init, name)(torch.zeros(shape), generator=generator, **options)
        return [w, torch.rand(1), torch.rand(1, generator=generator)]

    return program


def gain(*args: Any) -> Any:
    return lambda torch: torch.nn.init.calculate_gain(*args)


def transposed(torch: Any) -> Any:
    """Fill a view: the numbers go where PyTorch puts them."""
    torch.manual_seed(7)
    w = torch.zeros(20, 3)
    torch.nn.init.constant_(w.t()[0], 5.0)
    torch.nn.init.eye_(w[:3])
    return w


GAINS = {
    f"gain of {args}": gain(*args)
    for args in [
        ("linear",), ("conv1d",), ("conv2d",), ("conv3d",), ("conv_transpose1d",),
        ("conv_transpose2d",),
        ("conv_transpose3d",), ("sigmoid",), ("tanh",), ("relu",), ("leaky_relu",),
        ("leaky_relu", 0.2),
        ("leaky_relu", 1), ("leaky_relu", True), ("leaky_relu", "x"), ("selu",), ("gelu",),
    ]
}  # fmt: skip

PROGRAMS = {
    "uniform_": drawn("uniform_", 3, 4, a=-2, b=5),
    "uniform_, many": drawn("uniform_", 30, 40),
    "normal_, few": drawn("normal_", 3, 4, mean=1, std=2),
    "normal_, many": drawn("normal_", 30, 41, std=0.02),
    "constant_": drawn("constant_", 3, val=0.3),
    "ones_": drawn("ones_", 3),
    "zeros_": drawn("zeros_", 3),
    "eye_": drawn("eye_", 3, 5),
    "eye_ of a vector": drawn("eye_", 3),
    "dirac_": drawn("dirac_", 4, 2, 3),
    "dirac_, images": drawn("dirac_", 2, 4, 3, 2),
    "dirac_, volumes": drawn("dirac_", 2, 2, 2, 3, 1),
    "dirac_, groups": drawn("dirac_", 6, 2, 3, groups=3),
    "dirac_, groups that do not divide": drawn("dirac_", 4, 2, 3, groups=3),
    "dirac_ of a matrix": drawn("dirac_", 3, 3),
    "xavier_uniform_": drawn("xavier_uniform_", 6, 4),
    "xavier_uniform_, kernel": drawn("xavier_uniform_", 6, 4, 3, 3, gain=2.0),
    "xavier_uniform_ of a vector": drawn("xavier_uniform_", 6),
    "xavier_normal_": drawn("xavier_normal_", 6, 4, gain=0.5),
    "kaiming_uniform_": drawn("kaiming_uniform_", 6, 4, a=0.1),
    "kaiming_uniform_, fan_out": drawn("kaiming_uniform_", 6, 4, 5, mode="fan_out", nonlinearity="relu"),
    "kaiming_uniform_, mode in capitals": drawn("kaiming_uniform_", 6, 4, mode="FAN_OUT"),
    "kaiming_uniform_, unknown mode": drawn("kaiming_uniform_", 6, 4, mode="fan"),
    "kaiming_uniform_, unknown function": drawn("kaiming_uniform_", 6, 4, nonlinearity="gelu"),
    "kaiming_uniform_ of nothing": drawn("kaiming_uniform_", 0, 4),
    "kaiming_uniform_ of a vector": drawn("kaiming_uniform_", 6),
    "kaiming_normal_": drawn("kaiming_normal_", 6, 4, nonlinearity="relu"),
    "kaiming_normal_ of nothing": drawn("kaiming_normal_", 0, 4),
    "trunc_normal_": drawn("trunc_normal_", 30, 4),
    "trunc_normal_, wide": drawn("trunc_normal_", 50, 4, mean=1.0, std=3.0, a=-2.0, b=4.0),
    "trunc_normal_, tail": drawn("trunc_normal_", 30, 4, mean=0.0, std=1.0, a=1.0, b=2.0),
    "trunc_normal_, narrow": drawn("trunc_normal_", 30, 4, std=1.0, a=-0.1, b=0.1),
    "trunc_normal_, far away": drawn("trunc_normal_", 5, 4, mean=0.0, std=1.0, a=3.0, b=4.0),
    "orthogonal_, square": drawn("orthogonal_", 5, 5),
    "orthogonal_, tall": drawn("orthogonal_", 7, 4, gain=2.0),
    "orthogonal_, wide": drawn("orthogonal_", 4, 7),
    "orthogonal_, kernel": drawn("orthogonal_", 4, 2, 3),
    "orthogonal_ of a vector": drawn("orthogonal_", 4),
    "orthogonal_ of nothing": drawn("orthogonal_", 0, 4),
    "sparse_": drawn("sparse_", 8, 5, sparsity=0.3),
    "sparse_, all": drawn("sparse_", 3, 2, sparsity=1.0, std=1.0),
    "sparse_ of a vector": drawn("sparse_", 8, sparsity=0.3),
    "old name": drawn("xavier_uniform", 3, 4),
    "old name of uniform_": drawn("uniform", 3, 4),
    "uniform_ from a generator": with_generator("uniform_", 4, 5),
    "normal_ from a generator": with_generator("normal_", 4, 5),
    "trunc_normal_ from a generator": with_generator("trunc_normal_", 4, 5),
    "trunc_normal_'s tail from a generator": with_generator("trunc_normal_", 4, 5, a=1.0, b=2.0),
    "xavier_uniform_ from a generator": with_generator("xavier_uniform_", 4, 5),
    "xavier_normal_ from a generator": with_generator("xavier_normal_", 4, 5),
    "kaiming_uniform_ from a generator": with_generator("kaiming_uniform_", 4, 5),
    "kaiming_normal_ from a generator": with_generator("kaiming_normal_", 4, 5),
    "orthogonal_ from a generator": with_generator("orthogonal_", 4, 5),
    "sparse_ from a generator": with_generator("sparse_", 4, 5, sparsity=0.5),
    "views": transposed,
    **GAINS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])


OLD_NAMES = [
    "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal",
    "sparse", "uniform", "xavier_normal", "xavier_uniform",
]  # fmt: skip


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_names_warn_and_do_the_same(old: str) -> None:
    shape = (2, 2, 3) if old == "dirac" else (4, 3)
    options = {"constant": {"val": 2.0}, "sparse": {"sparsity": 0.5}}.get(old, {})
    init = tinytorch.nn.init
    tinytorch.manual_seed(0)
    expected = getattr(init, f"{old}_")(tinytorch.zeros(shape), **options)
    tinytorch.manual_seed(0)
    with pytest.warns(FutureWarning, match=f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`"):
        w = getattr(init, old)(tinytorch.zeros(shape), **options)
    assert w.tolist() == expected.tolist()
    assert getattr(init, old).__name__ == old


def test_layouts_that_are_not_contiguous():
    def program(torch):
        a, b = torch.zeros(9, 5).t(), torch.zeros(20, 8)[:, ::2]
        torch.nn.init.orthogonal_(a)
        torch.nn.init.trunc_normal_(b, a=-1.0)
        return a, b, torch.rand(2)

    check(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_orthogonal_in_16_bits(dtype):
    check(lambda torch: torch.nn.init.orthogonal_(torch.zeros(3, 4, dtype=getattr(torch, dtype))))
