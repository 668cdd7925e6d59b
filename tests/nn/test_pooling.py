"""Pooling and padding layers against PyTorch: results, gradients, representations, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.same import compared, same_as_pytorch

RNG = np.random.default_rng(0)
INPUTS = {
    1: RNG.standard_normal((2, 3, 9)),
    2: RNG.standard_normal((2, 3, 8, 7)),
    3: RNG.standard_normal((2, 2, 5, 6, 4)),
}


def run(torch: Any, layer: Any, x: Any) -> list[Any]:
    """Return a layer's representation, outputs and the input's gradient."""
    given = torch.tensor(x, requires_grad=x.dtype.kind == "f")
    out = layer(given)
    first = out[0] if isinstance(out, tuple) else out
    if first.requires_grad:
        (first * first).sum().backward()
    return [repr(layer), list(layer.state_dict()), out, given.grad]


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("MaxPool{}d", (2,), {}),
        ("MaxPool{}d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}),
        ("MaxPool{}d", (2, 1), {"dilation": 2, "return_indices": True}),
        ("AvgPool{}d", (2,), {}),
        ("AvgPool{}d", (3, 2, 1), {"count_include_pad": False, "ceil_mode": True}),
        ("LPPool{}d", (2, 2), {}),
        ("AdaptiveMaxPool{}d", (3,), {"return_indices": True}),
        ("AdaptiveAvgPool{}d", (3,), {}),
        ("AdaptiveAvgPool{}d", (1,), {}),
        ("ConstantPad{}d", (1, 2.5), {}),
        ("ZeroPad{}d", (2,), {}),
        ("ReflectionPad{}d", (1,), {}),
        ("ReplicationPad{}d", (2,), {}),
        ("CircularPad{}d", (1,), {}),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_layers(name: str, args: Any, kwargs: Any, n: int) -> None:
    for x in (INPUTS[n], INPUTS[n][0], INPUTS[n].astype(np.float32)):
        same_as_pytorch(lambda torch, x=x: run(torch, getattr(torch.nn, name.format(n))(*args, **kwargs), x))


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_windows_are_drawn_as_pytorch_does(n: int) -> None:
    def program(torch: Any, **kwargs: Any) -> Any:
        torch.manual_seed(3)
        layer = getattr(torch.nn, f"FractionalMaxPool{n}d")(2, return_indices=True, **kwargs)
        return run(torch, layer, INPUTS[n]), run(torch, layer, INPUTS[n].astype(np.float32))

    same_as_pytorch(lambda torch: program(torch, output_size=2))
    same_as_pytorch(lambda torch: program(torch, output_size=3))
    same_as_pytorch(lambda torch: program(torch, output_ratio=0.5))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling(n: int) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(INPUTS[n], requires_grad=True)
        pool = getattr(torch.nn, f"MaxPool{n}d")(2, return_indices=True)
        unpool = getattr(torch.nn, f"MaxUnpool{n}d")(2)
        values, indices = pool(x)
        back = unpool(values, indices, output_size=x.shape)
        (back * back).sum().backward()
        return repr(unpool), back, x.grad

    same_as_pytorch(program)


@compared
def test_unpooling_of_windows_with_padding(torch: Any) -> Any:
    x, given = torch.tensor(INPUTS[2]), {"kernel_size": 4, "stride": 2, "padding": 1}
    values, indices = torch.nn.functional.max_pool2d(x, **given, return_indices=True)
    return torch.nn.functional.max_unpool2d(values, indices, **given)


@pytest.mark.parametrize("kind", ["ties", "nan", "minus infinity"])
def test_which_of_equal_elements_is_the_maximum(kind: str) -> None:
    x = np.round(INPUTS[2])
    if kind == "nan":
        x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    elif kind == "minus infinity":
        x[...] = -np.inf
    for args in ((2,), (3, 2, 1), (2, 1), (3, 3, 1, 2)):
        for indices in (False, True):
            same_as_pytorch(
                lambda torch, args=args, indices=indices: run(
                    torch, torch.nn.MaxPool2d(*args, return_indices=indices), x
                )
            )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(INPUTS[2][:, :, :6, :6]).to(getattr(torch, dtype)).requires_grad_()
        F = torch.nn.functional
        outs = [F.max_pool2d(x, 2), F.max_pool2d(x, 3, 1, 1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 4)]
        sum(out.float().sum() for out in outs).backward()
        return [out.float() for out in outs], x.grad.float()

    same_as_pytorch(program, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("kernel", [2, 3])
def test_second_derivatives_of_powers(kernel: int) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(INPUTS[2], requires_grad=True)
        out = torch.nn.functional.max_pool2d(x, kernel) ** 3
        (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), x)[0]

    same_as_pytorch(program)


@pytest.mark.parametrize(
    "call",
    [
        lambda F, x: F.max_pool2d(x, 3, padding=2),
        lambda F, x: F.max_pool2d(x, 3, padding=-1),
        lambda F, x: F.max_pool2d(x, 3, 0),
        lambda F, x: F.max_pool2d(x, (1, 2, 3)),
        lambda F, x: F.max_pool2d(x, 9),
        lambda F, x: F.max_pool2d(x[0, 0], 2),
        lambda F, x: F.max_pool2d(x[:, :0], 2),
        lambda F, x: F.max_pool2d(x > 0, 2),
        lambda F, x: F.max_pool1d(x[0], 9),
        lambda F, x: F.max_pool1d(x[0].long(), 2),
        lambda F, x: F.max_pool1d(x[0, 0, 0], 2),
        lambda F, x: F.avg_pool2d(x, 2, divisor_override=0),
        lambda F, x: F.avg_pool2d(x.int(), 2),
        lambda F, x: F.avg_pool3d(x, 9),
        lambda F, x: F.adaptive_avg_pool2d(x, (-1, 2)),
        lambda F, x: F.adaptive_avg_pool2d(x, (1, 2, 3)),
        lambda F, x: F.adaptive_avg_pool2d(x.long(), 3),
        lambda F, x: F.adaptive_max_pool2d(x[:, :, :0], 3),
        lambda F, x: F.adaptive_max_pool2d(x.long(), 3),
        lambda F, x: F.max_unpool2d(x, x.long() * 0 + 5000, 2),
        lambda F, x: F.max_unpool2d(x, x.int(), 2),
        lambda F, x: F.max_unpool2d(x, x.long(), 2, output_size=(30, 14)),
        lambda F, x: F.fractional_max_pool2d(x, 2),
        lambda F, x: F.fractional_max_pool2d(x, 9, 3),
        lambda F, x: F.pad(x, (1, 1), mode="reflect"),
        lambda F, x: F.pad(x, (8, 1, 1, 1), mode="reflect"),
        lambda F, x: F.pad(x, (9, 1, 1, 1), mode="circular"),
        lambda F, x: F.pad(x, (1, 1, 1), mode="reflect"),
        lambda F, x: F.pad(x, (1, 1, 1, 1), mode="oblique"),
        lambda F, x: F.pad(x, (1, 1, 1, 1), mode="reflect", value=1),
        lambda F, x: F.pad(x > 0, (1, 1, 1, 1), mode="reflect"),
        lambda F, x: F.pad(x[:, :, :0], (1, 1, 1, 1), mode="replicate"),
    ],
)
def test_errors(call: Any) -> None:
    same_as_pytorch(lambda torch: call(torch.nn.functional, torch.tensor(INPUTS[2])))


def test_errors_of_layers() -> None:
    for make in (
        lambda nn: nn.FractionalMaxPool2d(2),
        lambda nn: nn.FractionalMaxPool2d(2, 3, 0.5),
        lambda nn: nn.FractionalMaxPool2d(2, output_ratio=1.5),
        lambda nn: nn.FractionalMaxPool3d(0, 2),
    ):
        same_as_pytorch(lambda torch, make=make: make(torch.nn))
    same_as_pytorch(lambda torch: torch.nn.CircularPad2d(1)(torch.ones(3, 3)))
