"""Convolutional layers and their functions: numbers, reprs, errors as PyTorch's; lazy layers."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch
from tests.same import same_to_the_word as check
from tinytorch import nn
from tinytorch.kernels import conv as kernels

parametrize = pytest.mark.parametrize


# Layers -------------------------------------------------------------------------------------------


def ran(make: Any, *shape: int, **more: Any) -> Any:
    """Return a program: the layer's repr, its output, the gradients of input and parameters, and a second order."""

    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = make(torch.nn)
        x = torch.randn(*shape, requires_grad=True)
        out = layer(x, **more)
        weights = torch.linspace(-1, 2, out.numel()).reshape(out.shape)
        (first,) = torch.autograd.grad((out**2 * weights).sum(), x, create_graph=True)
        first.square().mean().backward()
        parameters = [(name, p, p.grad) for name, p in layer.named_parameters()]
        return [layer, out, first, x.grad, parameters, list(layer.state_dict())]

    return program


LAYERS = {
    "Conv1d": ran(lambda nn: nn.Conv1d(3, 4, 3), 2, 3, 8),
    "Conv1d, all settings": ran(lambda nn: nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False, "circular"), 2, 4, 9),
    "Conv1d by tuple": ran(lambda nn: nn.Conv1d(3, 4, (2,), stride=(2,)), 2, 3, 8),
    "Conv2d": ran(lambda nn: nn.Conv2d(3, 4, 3), 2, 3, 6, 7),
    "Conv2d, unbatched": ran(lambda nn: nn.Conv2d(3, 4, 3, padding=1), 3, 6, 7),
    "Conv2d, settings by tuple": ran(lambda nn: nn.Conv2d(3, 4, (3, 2), (2, 1), (1, 2), (1, 2)), 2, 3, 6, 7),
    "Conv2d by list": ran(lambda nn: nn.Conv2d(3, 4, [3, 2], padding=[1, 0]), 2, 3, 6, 7),
    "Conv2d without bias": ran(lambda nn: nn.Conv2d(3, 4, 3, bias=False), 2, 3, 6, 7),
    "Conv2d, groups": ran(lambda nn: nn.Conv2d(4, 6, 3, groups=2), 2, 4, 6, 7),
    "Conv2d, depthwise": ran(lambda nn: nn.Conv2d(4, 4, 3, 1, 1, groups=4), 2, 4, 6, 7),
    "Conv2d, depthwise, several": ran(lambda nn: nn.Conv2d(4, 8, 3, 2, groups=4), 2, 4, 6, 7),
    "Conv2d, 1x1": ran(lambda nn: nn.Conv2d(3, 4, 1), 2, 3, 9, 8),
    "Conv2d, patches": ran(lambda nn: nn.Conv2d(3, 5, 4, 4), 2, 3, 8, 8),
    "Conv2d, same": ran(lambda nn: nn.Conv2d(3, 4, (3, 5), padding="same"), 2, 3, 6, 7),
    "Conv2d, valid": ran(lambda nn: nn.Conv2d(3, 4, 3, padding="valid"), 2, 3, 6, 7),
    "Conv3d": ran(lambda nn: nn.Conv3d(2, 3, 2), 2, 2, 4, 3, 5),
    "Conv3d, all settings": ran(lambda nn: nn.Conv3d(2, 4, (2, 3, 1), (1, 2, 1), 1, 1, 2, False), 2, 2, 4, 5, 3),
    "ConvTranspose1d": ran(lambda nn: nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), 2, 3, 8),
    "ConvTranspose2d": ran(lambda nn: nn.ConvTranspose2d(3, 4, 3), 2, 3, 4, 5),
    "ConvTranspose2d, all settings": ran(lambda nn: nn.ConvTranspose2d(4, 6, 3, (2, 3), 1, 1, 2, False, 2), 2, 4, 4, 5),
    "ConvTranspose2d to a size": ran(lambda nn: nn.ConvTranspose2d(3, 4, 3, 2), 1, 3, 5, 5, output_size=(12, 11)),
    "ConvTranspose2d to a whole size": ran(
        lambda nn: nn.ConvTranspose2d(3, 4, 3, 2), 1, 3, 5, 5, output_size=[1, 4, 12, 12]
    ),
    "ConvTranspose2d, unbatched, to a size": ran(
        lambda nn: nn.ConvTranspose2d(3, 4, 3, 2), 3, 5, 5, output_size=(12, 11)
    ),
    "ConvTranspose2d, no such size": ran(lambda nn: nn.ConvTranspose2d(3, 4, 3, 2), 1, 3, 5, 5, output_size=(13, 11)),
    "ConvTranspose2d, a wrong size": ran(
        lambda nn: nn.ConvTranspose2d(3, 4, 3, 2), 1, 3, 5, 5, output_size=(1, 12, 11)
    ),
    "ConvTranspose3d": ran(lambda nn: nn.ConvTranspose3d(2, 3, 2, 2), 1, 2, 3, 2, 3),
    "Fold": lambda t: [t.nn.Fold((4, 5), 2), t.nn.Fold((4, 5), 2)(t.ones(2, 12, 12))],
    "Unfold": lambda t: [t.nn.Unfold((2, 3), 1, 1), t.nn.Unfold(2)(t.arange(24.0).reshape(2, 3, 4))],
    "no channels": lambda t: t.nn.Conv2d(0, 4, 3).weight,
    "groups that do not divide the input": lambda t: t.nn.Conv2d(4, 6, 3, groups=3),
    "groups that do not divide the output": lambda t: t.nn.Conv2d(3, 4, 3, groups=3),
    "no groups": lambda t: t.nn.Conv2d(3, 4, 3, groups=0),
    "same with a stride": lambda t: t.nn.Conv2d(3, 4, 3, 2, padding="same"),
    "reflection of a transposed": lambda t: t.nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"),
    "double": lambda t: t.nn.Conv2d(3, 4, 3, dtype=t.float64, device="cpu").weight.dtype,
    "borders": lambda t: [
        list(layer._reversed_padding_repeated_twice)
        for layer in (
            t.nn.Conv2d(1, 1, 3, padding=(1, 2)),
            t.nn.Conv2d(1, 1, (2, 4), padding="same", dilation=3),
            t.nn.Conv3d(1, 1, 3, padding="valid"),
        )
    ],
    "names": lambda t: [
        t.nn.modules.conv.Conv2d is t.nn.Conv2d,
        t.nn.modules.utils._pair(3),
        t.nn.modules.utils._triple((1, 2, 3)),
        t.nn.modules.utils._reverse_repeat_tuple((1, 2), 2),
        t.nn.modules.utils._list_with_default([3, None], [1, 2, 3]),
        t.nn.Conv2d.__constants__,
    ],
}
for mode in ("reflect", "replicate", "circular"):
    LAYERS[f"Conv2d, {mode}"] = ran(
        lambda nn, mode=mode: nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode=mode), 2, 3, 6, 7
    )
    LAYERS[f"Conv2d, {mode}, same"] = ran(
        lambda nn, mode=mode: nn.Conv2d(3, 4, (3, 2), padding="same", padding_mode=mode), 2, 3, 6, 7
    )
    LAYERS[f"Conv1d, {mode}"] = ran(lambda nn, mode=mode: nn.Conv1d(3, 4, 3, padding=2, padding_mode=mode), 2, 3, 8)


@parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    check(LAYERS[name])


def trained(torch: Any) -> list[float]:
    """Return the losses of 20 steps."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, groups=8),
        nn.Conv2d(8, 6, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(6, 4, 3, stride=2),
        nn.Flatten(),
        nn.Linear(4 * 11 * 11, 5),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(16, 1, 12, 12), torch.arange(16) % 5
    losses = []
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_trajectory() -> None:
    same_as_pytorch(trained, rtol=1e-3, atol=1e-4)


# Functions ----------------------------------------------------------------------------------------


def of(name: str, x: tuple[int, ...], w: tuple[int, ...], *args: Any, **kwargs: Any) -> Any:
    """Return a program that calls a function of `nn.functional` with ones of these shapes."""
    return lambda t: getattr(t.nn.functional, name)(t.ones(x), t.ones(w), *args, **kwargs)


IMAGE, KERNEL = (1, 3, 5, 5), (2, 3, 3, 3)
UP = (3, 4, 3, 3)

WRONG = {
    "channels": of("conv2d", IMAGE, (2, 4, 3, 3)),
    "bias": lambda t: t.conv2d(t.ones(IMAGE), t.ones(KERNEL), t.ones(3)),
    "bias of a matrix": lambda t: t.conv2d(t.ones(IMAGE), t.ones(KERNEL), t.ones(2, 1)),
    "weight of less dimensions": of("conv2d", IMAGE, (2, 3, 3)),
    "input of less dimensions": of("conv2d", (3, 5), KERNEL),
    "input of more dimensions": of("conv2d", (1, 1, 3, 5, 5), KERNEL),
    "a vector": of("conv1d", (5,), (2, 3, 3)),
    "an image for volumes": of("conv3d", (3, 5, 5), (2, 3, 3, 3, 3)),
    "kernel too large": of("conv2d", (1, 3, 2, 2), KERNEL),
    "dilated kernel too large": of("conv2d", IMAGE, KERNEL, dilation=3),
    "stride 0": of("conv2d", IMAGE, KERNEL, stride=0),
    "negative padding": of("conv2d", IMAGE, KERNEL, padding=-1),
    "dilation 0": of("conv2d", IMAGE, KERNEL, dilation=0),
    "groups 0": of("conv2d", IMAGE, KERNEL, groups=0),
    "groups and input": of("conv2d", IMAGE, KERNEL, groups=2),
    "groups and weight": of("conv2d", (1, 4, 5, 5), (3, 2, 3, 3), groups=2),
    "too many settings": of("conv2d", IMAGE, KERNEL, stride=(1, 2, 3)),
    "same with a stride": of("conv2d", IMAGE, KERNEL, padding="same", stride=2),
    "no such padding": of("conv2d", IMAGE, KERNEL, padding="full"),
    "stride of a float": of("conv2d", IMAGE, KERNEL, stride=2.0),
    "no tensor": lambda t: t.conv2d([1], t.ones(KERNEL)),
    "no weight": lambda t: t.conv2d(t.ones(IMAGE), None),
    "bias of a number": lambda t: t.conv2d(t.ones(IMAGE), t.ones(KERNEL), 1),
    "dtypes": lambda t: t.conv2d(t.ones(IMAGE), t.ones(KERNEL).double()),
    "dtype of the bias": lambda t: t.conv2d(t.ones(IMAGE), t.ones(KERNEL), t.ones(2).double()),
    "integers with floats": lambda t: t.nn.Conv2d(3, 2, 3)(t.ones(IMAGE).long()),
    "truth values": lambda t: t.conv2d(t.ones(IMAGE).bool(), t.ones(KERNEL).bool()),
    "no channels": of("conv2d", (2, 0, 5, 5), (4, 0, 3, 3), stride=2),
    "no channels, no kernel": lambda t: t.conv1d(t.ones(2, 0, 5), t.ones(4, 0, 0), t.ones(4)),
    "no kernel": of("conv2d", IMAGE, (2, 3, 0, 3)),
    "no outputs": of("conv2d", IMAGE, (0, 3, 3, 3)),
    "empty image": of("conv2d", (1, 3, 0, 5), KERNEL, padding=2),
    "transposed: channels": of("conv_transpose2d", IMAGE, (2, 4, 3, 3)),
    "transposed: bias": lambda t: t.conv_transpose2d(t.ones(IMAGE), t.ones(UP), t.ones(3)),
    "transposed: output padding": of("conv_transpose2d", IMAGE, UP, output_padding=1),
    "transposed: negative": of("conv_transpose2d", IMAGE, UP, output_padding=-1, stride=2),
    "transposed: nothing left": of("conv_transpose2d", (1, 3, 1, 1), UP, padding=3),
    "transposed: same": of("conv_transpose2d", IMAGE, UP, padding="same"),
    "transposed: dimensions": of("conv_transpose2d", (5, 5), UP),
    "tbc: channels": lambda t: t.conv_tbc(t.ones(5, 2, 3), t.ones(3, 2, 4), t.ones(4)),
    "tbc: input": lambda t: t.conv_tbc(t.ones(5, 3), t.ones(3, 3, 4), t.ones(4)),
    "tbc: weight": lambda t: t.conv_tbc(t.ones(5, 2, 3), t.ones(3, 3), t.ones(4)),
    "tbc: bias": lambda t: t.conv_tbc(t.ones(5, 2, 3), t.ones(3, 3, 4), t.ones(5)),
    "convolution: dimensions": lambda t: t.convolution(
        t.ones(3, 5, 5), t.ones(KERNEL), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    ),
    "unfold: three sizes": lambda t: t.nn.functional.unfold(t.ones(IMAGE), (3, 3, 3)),
    "unfold: too large": lambda t: t.nn.functional.unfold(t.ones(IMAGE), 6),
    "unfold: stride": lambda t: t.nn.functional.unfold(t.ones(IMAGE), 3, stride=0),
    "unfold: kernel": lambda t: t.nn.functional.unfold(t.ones(IMAGE), 0),
    "unfold: dilation": lambda t: t.nn.functional.unfold(t.ones(IMAGE), 3, dilation=0),
    "unfold: padding": lambda t: t.nn.functional.unfold(t.ones(IMAGE), 3, padding=-1),
    "unfold: empty": lambda t: t.nn.functional.unfold(t.ones(1, 0, 5, 5), 3),
    "unfold: integers": lambda t: t.nn.functional.unfold(t.ones(IMAGE).long(), 3),
    "fold: blocks": lambda t: t.nn.functional.fold(t.ones(1, 27, 8), 5, 3),
    "fold: channels": lambda t: t.nn.functional.fold(t.ones(1, 26, 9), 5, 3),
    "fold: dimensions": lambda t: t.nn.functional.fold(t.ones(9), 5, 3),
    "fold: too small": lambda t: t.nn.functional.fold(t.ones(1, 27, 9), 2, 3),
    "fold: integers": lambda t: t.nn.functional.fold(t.ones(1, 27, 9).long(), 5, 3),
}


@parametrize("name", WRONG)
def test_errors(name: str) -> None:
    same_as_pytorch(WRONG[name])


@parametrize("dtype", ["float16", "bfloat16"])
@parametrize(
    "call",
    [
        lambda t, x: t.conv2d(x, x[:2, :, :3, :3], x[0, 0, 0, :2], 1, 1),
        lambda t, x: t.conv2d(x, x[:, :1, :3, :3].reshape(4, 1, 3, 3), groups=4),
        lambda t, x: t.conv_transpose2d(x, x[:, :2, :3, :3], None, 2),
        lambda t, x: t.nn.functional.fold(t.nn.functional.unfold(x, 3), 8, 3),
    ],
)
def test_small_floats(call: Any, dtype: str) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        x = torch.randn(4, 4, 8, 8).to(getattr(torch, dtype)).requires_grad_()
        out = call(torch, x)
        out.float().sum().backward()
        return [str(out.dtype), out.float(), x.grad.float()]

    same_as_pytorch(program, rtol=3e-2, atol=0.15)


@parametrize("pad", [0, 2])
def test_conv_tbc(pad: int) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        leaves = [torch.randn(*s, requires_grad=True) for s in ((6, 2, 3), (3, 3, 4), (4,))]
        out = torch.conv_tbc(*leaves, pad)
        (out**2).sum().backward()
        return [out, [leaf.grad for leaf in leaves]]

    same_as_pytorch(program, rtol=1e-4, atol=1e-5)


def test_same_padding_of_an_even_kernel_warns() -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        with warnings.catch_warnings(action="ignore"):
            return torch.conv2d(torch.randn(2, 3, 5, 6), torch.randn(2, 3, 2, 4), padding="same")

    same_as_pytorch(program, rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="even kernel lengths"):
        tinytorch.conv1d(tinytorch.ones(1, 1, 4), tinytorch.ones(1, 1, 2), padding="same")


def test_channels_last_and_gradients_contiguous() -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        x = torch.randn(2, 6, 5, 3).permute(0, 3, 1, 2)
        layer = torch.nn.Conv2d(3, 4, 3)
        layer(x).square().sum().backward()
        return [layer(x), layer.weight.grad, layer.weight.grad.is_contiguous()]

    same_as_pytorch(program, rtol=1e-4, atol=1e-4)


def test_name_of_the_node() -> None:
    out = tinytorch.conv2d(tinytorch.ones(IMAGE), tinytorch.ones(KERNEL, requires_grad=True))
    assert out.grad_fn.name() == "ConvolutionBackward0"


@parametrize("columns", [1, 200, 700])
def test_pieces_of_the_batch_make_no_difference(columns: int, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    for groups, outputs, size in ((1, 6, (7, 9)), (1, 2, (11, 4)), (2, 6, (7, 9)), (4, 4, (7, 9)), (1, 2, (4, 5, 3))):
        dims = len(size)
        settings = ((2, 1, 1)[:dims], (1, 2, 0)[:dims], (1, 2, 1)[:dims], groups)
        x = rng.standard_normal((3, 4, *size))
        w = rng.standard_normal((outputs, 4 // groups, *(3, 2, 2)[:dims]))

        def all_three(x: Any = x, w: Any = w, settings: Any = settings, size: Any = size) -> list[Any]:
            y = kernels.conv(x, w, None, *settings)
            return [y, kernels.conv_input(y, w, size, *settings), kernels.conv_weight(x, y, w.shape[2:], *settings)]

        expected = all_three()
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "_COLUMNS", columns)
            for found, wanted in zip(all_three(), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


# Lazy layers --------------------------------------------------------------------------------------


def lazily(make: Any, *shape: int) -> Any:
    """Return a program: a lazy layer before and after its first call."""

    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = make(torch.nn)
        before = [repr(layer), repr(layer.state_dict()), layer.has_uninitialized_params()]
        out = layer(torch.randn(*shape))
        out.sum().backward()
        parameters = [(name, p, p.grad) for name, p in layer.named_parameters()]
        return [before, repr(layer), type(layer).__name__, out, parameters, layer(torch.randn(*shape))]

    return program


LAZY = {
    "LazyLinear": lazily(lambda nn: nn.LazyLinear(3), 4, 5),
    "LazyLinear without bias": lazily(lambda nn: nn.LazyLinear(3, bias=False), 4, 5),
    "LazyConv1d": lazily(lambda nn: nn.LazyConv1d(4, 3), 2, 3, 8),
    "LazyConv2d": lazily(lambda nn: nn.LazyConv2d(4, 3, padding=1, groups=2), 2, 4, 5, 6),
    "LazyConv2d without bias": lazily(lambda nn: nn.LazyConv2d(4, 3, bias=False), 2, 4, 5, 6),
    "LazyConv2d, unbatched": lazily(lambda nn: nn.LazyConv2d(4, 3), 4, 5, 6),
    "LazyConv3d": lazily(lambda nn: nn.LazyConv3d(4, 2), 1, 2, 3, 4, 5),
    "LazyConvTranspose1d": lazily(lambda nn: nn.LazyConvTranspose1d(4, 3, 2), 2, 3, 8),
    "LazyConvTranspose2d": lazily(lambda nn: nn.LazyConvTranspose2d(4, 3, 2, groups=2), 2, 2, 4, 4),
    "LazyConvTranspose3d": lazily(lambda nn: nn.LazyConvTranspose3d(4, 2), 1, 2, 3, 2, 2),
    "LazyConv2d, groups": lazily(lambda nn: nn.LazyConv2d(4, 3, groups=2), 2, 3, 5, 6),
    "LazyConv2d, dimensions": lazily(lambda nn: nn.LazyConv2d(4, 3), 5, 6),
}


@parametrize("name", LAZY)
def test_lazy_layers(name: str) -> None:
    check(LAZY[name])


def lazy(torch: Any, make: Any = lambda nn: nn.LazyConv2d(4, 3)) -> Any:
    return make(torch.nn)


LAZY_PROGRAMS = {
    "shape": lambda t: lazy(t).weight.shape,
    "operation": lambda t: lazy(t).weight + 1,
    "method": lambda t: lazy(t).weight.sum(),
    "what is known": lambda t: [
        lazy(t).double().weight.dtype,
        lazy(t).weight.requires_grad,
        lazy(t).weight.device,
        lazy(t).weight.data.shape,
    ],
    "load into it": lambda t: loaded(t, lazy(t), t.nn.Conv2d(5, 4, 3)),
    "load from it": lambda t: loaded(t, t.nn.Conv2d(5, 4, 3), lazy(t)),
    "load from lazy into lazy": lambda t: loaded(t, lazy(t), lazy(t)),
    "double": lambda t: lazy(t).double()(t.ones(1, 3, 4, 4).double()).dtype,
    "materialize": lambda t: materialized(t),
    "buffer": lambda t: repr(t.nn.parameter.UninitializedBuffer()),
    "repr": lambda t: repr(t.nn.LazyLinear(3)),
}


def loaded(torch: Any, into: Any, source: Any) -> Any:
    torch.manual_seed(1)
    return [repr(into.load_state_dict(source.state_dict())), repr(into), next(iter(into.parameters()))]


def materialized(torch: Any) -> Any:
    weight = torch.nn.parameter.UninitializedParameter(dtype=torch.float64)
    weight.materialize((2, 3))
    return [type(weight).__name__, weight.shape, weight.dtype, weight.requires_grad]


@parametrize("name", [name for name in LAZY_PROGRAMS if not name.startswith("load")])
def test_lazy_parameters(name: str) -> None:
    same_as_pytorch(LAZY_PROGRAMS[name])


def test_loading_into_lazy_layers() -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        source = torch.nn.Conv2d(5, 4, 3)
        layer = lazy(torch)
        keys = layer.load_state_dict(source.state_dict())
        out = layer(torch.ones(1, 5, 4, 4))
        return [repr(keys), layer.weight, repr(layer), out]

    check(program)
    same_as_pytorch(lambda t: loaded(t, t.nn.Conv2d(5, 4, 3), lazy(t)))
    assert repr(lazy(tinytorch).load_state_dict(lazy(tinytorch).state_dict())).startswith("<All")


@parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_of_lazy_layers_are_lazy_by_themselves(copied: Any) -> None:
    first = lazy(tinytorch)
    second = copied(first)
    second(tinytorch.ones(1, 3, 4, 4))
    assert type(second) is nn.Conv2d and second.in_channels == 3
    assert type(first) is nn.LazyConv2d and first.has_uninitialized_params()
    first(tinytorch.ones(1, 7, 4, 4))
    assert first.in_channels == 7
    assert not second._forward_pre_hooks and not first._forward_pre_hooks


def test_a_lazy_layer_must_initialize_all() -> None:
    class Forgetful(nn.LazyConv2d):
        def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
            pass

    layer = Forgetful(3, 2)
    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        layer(tinytorch.ones(1, 2, 3, 3))
