"""`torch.compile(mode="inference")`: each rewrite gives what the function itself gives, but for rounding."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn as nn
import tinytorch.nn.functional as F


def settled(model: nn.Module, seed: int = 0) -> nn.Module:
    """Return the model in evaluation mode, with statistics and weights of norms that are not the initial ones."""
    rng = np.random.default_rng(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
            for name, low, high in (
                ("running_mean", -1, 1),
                ("running_var", 0.3, 2),
                ("weight", -1, 1.5),
                ("bias", -1, 1),
            ):
                x = getattr(module, name)
                if x is not None:
                    with torch.no_grad():
                        x.copy_(torch.from_numpy(rng.uniform(low, high, tuple(x.shape)).astype(np.float32)))
    return model.eval()


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Check two tensors, relative to the largest number, and their layouts."""
    assert (found.shape, found.dtype, found.stride()) == (expected.shape, expected.dtype, expected.stride())
    a, b = found.numpy(), expected.numpy()
    assert np.abs(a - b).max(initial=0) <= tolerance * np.abs(b).max(initial=0)


def check(model: Any, *xs: Any, tolerance: float = 1e-5) -> str:
    """Compare two runs of the program with the function itself, and return the program's source."""
    compiled = torch.compile(model, mode="inference")
    with torch.no_grad():
        expected = model(*xs)
        before = [x.clone() for x in xs]
        compiled(*xs)
        found = compiled(*xs)
        again = compiled(*xs)
    runs = (compiled._compiled if isinstance(model, nn.Module) else compiled).variants
    assert [each.runs for each in runs] == [2]
    for a, b, c in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected, again)], strict=True):
        close(a, b, tolerance)
        assert np.array_equal(a.numpy(), c.numpy(), equal_nan=True)
        assert not np.may_share_memory(a.numpy(), c.numpy())
    for x, y in zip(xs, before, strict=True):
        assert torch.equal(x, y)
    return compiled.source


def images(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def steps(source: str) -> str:
    """Return the steps of a program: the source after `bind`."""
    return source[source.index("def step(") :]


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"stride": 2, "padding": 1}, {"padding": (2, 0), "dilation": (2, 1)}, {"groups": 2, "bias": False},
        {"groups": 4, "padding": 1}, {"kernel_size": 1}, {"kernel_size": 1, "stride": 3}, {"kernel_size": (5, 2)},
        {"stride": (1, 3), "padding": "valid"}, {"padding": "same"}, {"padding": 1, "padding_mode": "reflect"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("norm", [nn.BatchNorm2d, None])
def test_convolutions_and_norms(settings: dict[str, Any], norm: Any) -> None:
    conv = nn.Conv2d(4, 24, **{"kernel_size": 3, **settings})
    model = settled(nn.Sequential(conv, nn.Identity() if norm is None else norm(24), nn.ReLU()))
    for x in (images(2, 4, 13, 11), images(3, 4, 22, 11)[:, :, ::2], images(2, 13, 11, 4).permute(0, 3, 1, 2)):
        source = check(model, x)
    assert "convolved" in source and "by_given" not in source and "relu(" not in steps(source)


@pytest.mark.parametrize("channels", [16, 20, 33])
@pytest.mark.parametrize("settings", [{"padding": 1}, {"stride": 2}, {"dilation": 2, "padding": 3}])
def test_depthwise_convolutions(channels: int, settings: dict[str, Any]) -> None:
    model = settled(
        nn.Sequential(
            nn.Conv2d(channels, channels, 3, groups=channels, **settings), nn.BatchNorm2d(channels), nn.ReLU6()
        )
    )
    assert "'clamp', 0.0, 6.0" in check(model, images(2, channels, 12, 14))
    check(nn.Conv2d(channels, 2 * channels, 3, groups=channels, **settings).eval(), images(2, channels, 12, 14))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_norms_without_weights_and_convolutions_without_bias(affine: bool, bias: bool) -> None:
    model = settled(nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.BatchNorm2d(8, affine=affine, eps=0.1)))
    assert "by_given" not in check(model, images(2, 3, 9, 9))


@pytest.mark.parametrize(
    "activation",
    [
        nn.ReLU,
        nn.ReLU6,
        nn.SiLU,
        nn.Hardswish,
        nn.Hardsigmoid,
        nn.Sigmoid,
        nn.GELU,
        lambda: nn.GELU("tanh"),
        nn.Hardtanh,
    ],
)
@pytest.mark.parametrize("of", ["convolution", "product"])
def test_activations_are_epilogues(activation: Callable[[], Any], of: str) -> None:
    layer, x = (nn.Conv2d(5, 20, 3), images(2, 5, 9, 9)) if of == "convolution" else (nn.Linear(30, 40), images(50, 30))
    source = steps(check(nn.Sequential(layer, activation()).eval(), x))
    assert (
        sum(
            line.strip().endswith(")") or "  # (" in line
            for line in source.splitlines()
            if "convolved(" in line or "projected(" in line
        )
        == 1
    )
    assert activation().__class__.__name__.lower() + "(" not in source


def test_weights_that_are_computed_from_others_are_prepared_once() -> None:
    source = steps(check(nn.Sequential(Scaled(torch.randn(40, 30)), nn.ReLU()).eval(), images(50, 30)))
    assert "projected(" in source and "multiply(" not in source


class Scaled(nn.Module):
    """A product with a weight that is made of another one in two steps."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.weight * 2 + 1)


@pytest.mark.parametrize("activation", [nn.Mish, nn.Softplus, nn.ELU, nn.LeakyReLU, nn.Tanh])
def test_other_activations_are_steps(activation: Callable[[], Any]) -> None:
    check(
        settled(nn.Sequential(nn.Conv2d(5, 20, 3), nn.BatchNorm2d(20), activation(), nn.Conv2d(20, 4, 1))),
        images(2, 5, 9, 9),
    )


def test_activations_in_place_are_not_copied() -> None:
    model = settled(
        nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(inplace=True), nn.Conv2d(8, 8, 3), nn.Mish(inplace=True)
        )
    )
    assert "copy_into" not in check(model, images(2, 3, 9, 9))


class Block(nn.Module):
    """A residual block."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = None
        if stride > 1 or channels != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        out = self.body(x)
        out += x if self.shortcut is None else self.shortcut(x)
        return F.relu(out)


def test_residual_chains() -> None:
    model = settled(
        nn.Sequential(
            nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(16, 16, 1),
            Block(16, 24, 2), Block(24, 24, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10),
        )
    )  # fmt: skip
    source = steps(check(model, images(2, 3, 41, 37)))
    assert not [name for name in ("by_given", "add(", "relu(", "copy_into", "in_order") if name in source]


def test_a_result_with_two_consumers_is_not_taken_over() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

        def forward(self, x: Any) -> Any:
            y = self.conv(x)
            return self.norm(y) + y, y

    assert "by_given" in check(settled(Two()), images(2, 3, 9, 9))


def test_a_residual_that_is_the_source_too() -> None:
    class Same(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.conv = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1)

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            return self.conv(y) + y

    check(Same().eval(), images(2, 3, 9, 9))


def test_a_layer_that_is_used_twice() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.one, self.two = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.BatchNorm2d(8)

        def forward(self, x: Any) -> Any:
            return self.two(self.conv(F.relu(self.one(self.conv(x)))))

    source = check(settled(Shared()), images(2, 8, 9, 9))
    assert source.count("prepared(") == 2


def test_squeeze_and_excite() -> None:
    class Excite(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(6, 32, 3, padding=1), nn.BatchNorm2d(32)
            self.fc1, self.fc2, self.last = nn.Conv2d(32, 4, 1), nn.Conv2d(4, 32, 1), nn.Conv2d(32, 6, 1)

        def forward(self, x: Any) -> Any:
            y = F.silu(self.norm(self.conv(x)))
            scale = self.fc2(F.silu(self.fc1(F.adaptive_avg_pool2d(y, 1)))).sigmoid()
            return self.last(scale * y) + x

    source = steps(check(settled(Excite()), images(2, 6, 15, 9)))
    assert "scaled(" in source and "means(" in source and "in_order" in source


@pytest.mark.parametrize(("twice", "steps_of"), [(False, ["twice", ""]), (True, ["", "", ""])])
def test_inverted_residuals(twice: bool, steps_of: list[str]) -> None:
    """A convolution and a depthwise one of its result are one step, unless the result is used elsewhere, too."""

    class Inverted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down, self.norm = nn.Conv2d(6, 32, 1), nn.Conv2d(32, 6, 1), nn.BatchNorm2d(32)
            self.conv = nn.Conv2d(32, 32, 5, padding=2, groups=32)

        def forward(self, x: Any) -> Any:
            y = F.relu6(self.up(x))
            z = F.silu(self.norm(self.conv(y)))
            return self.down(z + y if twice else z) + x

    source = steps(check(settled(Inverted()), images(2, 6, 15, 9)))
    assert re.findall(r"\bconvolved_?(\w*)\(", source) == steps_of


def test_permuted_images() -> None:
    """A ConvNeXt block: a depthwise convolution, a norm over the channels, two products and a scale per channel."""

    class Next(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 16, 4, 4)
            self.conv, self.norm = nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.LayerNorm(16)
            self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)
            self.scale = nn.Parameter(torch.full((16, 1, 1), 0.5))

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            y = self.down(F.gelu(self.up(self.norm(self.conv(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
            y = self.scale * y
            y += x
            return y.mean([-1, -2]), y

    source = steps(check(Next().eval(), images(2, 3, 44, 52)))
    assert "ascontiguousarray" not in source and "multiply(" not in source


def test_attention_and_products() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True).eval()
    source = steps(check(layer, images(3, 10, 32)))
    assert "projected(" in source
    check(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).eval(), images(40, 8))
    check(nn.Linear(8, 3).eval(), images(8))
    check(nn.Linear(5000, 3).eval(), images(40, 5000))


def test_joined_and_pooled_images() -> None:
    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(3, 10, 1), nn.Conv2d(16, 5, 1)

        def forward(self, x: Any) -> Any:
            y = torch.cat([F.relu(self.a(x)), self.b(x)], 1)
            return (
                self.c(F.max_pool2d(y, 3, 2, ceil_mode=True)),
                F.avg_pool2d(y, 2),
                F.max_pool2d(y, (2, 3), (1, 2), (1, 1)),
            )

    check(Joined().eval(), images(2, 3, 10, 12))


def test_whatever_else_follows_gets_the_recorded_layout() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)

        def forward(self, x: Any) -> Any:
            y = self.conv(x)
            z = y.clone()
            z[:, 0] = 0
            part = y[:, :4].reshape(-1)
            y = torch.exp(y.transpose(1, 2)) * torch.arange(8.0).view(8, 1)[:, :1].reshape(1, 1, 8, 1)
            return (
                F.interpolate(z, scale_factor=2),
                part,
                y,
                torch.softmax(z.flatten(2), 2),
                z.std(),
                y.contiguous().view(-1)[:3],
            )

    check(Mixed().eval(), images(2, 3, 8, 8), tolerance=3e-5)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    """Small networks of convolutions, norms, activations, sums, products and pools that are drawn at random."""

    class Random(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            rng = np.random.default_rng(seed)
            self.channels = int(rng.integers(1, 9))
            self.layers, self.plan, channels = nn.ModuleList(), [], [self.channels]
            for k in range(int(rng.integers(4, 10))):
                kind = rng.choice(["conv", "conv", "depthwise", "norm", "act", "add", "mul", "cat", "pool", "layer"])
                at, count = int(rng.integers(max(0, k - 2), k + 1)), channels[-1]
                new, source = count, len(channels) - 1
                if kind == "conv":
                    source, new = at, int(rng.integers(1, 40))
                    size = int(rng.choice([1, 3, 5]))
                    layer: Any = nn.Conv2d(channels[at], new, size, padding=size // 2, bias=bool(rng.integers(2)))
                elif kind == "depthwise":
                    layer = nn.Conv2d(count, count, 3, padding=2, dilation=2, groups=count)
                elif kind == "norm":
                    layer = nn.BatchNorm2d(count, affine=bool(rng.integers(2)))
                elif kind == "act":
                    layer = rng.choice([nn.ReLU, nn.SiLU, nn.Hardswish, nn.Tanh, nn.GELU])()
                elif kind == "pool":
                    layer = nn.MaxPool2d(3, 1, 1)
                elif kind == "layer":
                    layer = nn.LayerNorm(count)
                else:
                    layer = nn.Identity()
                    if kind == "cat":
                        new = count + channels[at]
                    elif channels[at] != count:
                        at = len(channels) - 1
                self.layers.append(layer)
                self.plan.append((str(kind), source, at))
                channels.append(new)

        def forward(self, x: Any) -> Any:
            found = [x]
            for layer, (kind, source, at) in zip(self.layers, self.plan, strict=True):
                y = found[source]
                if kind == "add":
                    y = y + found[at]
                elif kind == "mul":
                    y = y * found[at].mean((2, 3), keepdim=True)
                elif kind == "cat":
                    y = torch.cat([y, found[at]], 1)
                elif kind == "layer":
                    y = layer(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
                else:
                    y = layer(y)
                found.append(y)
            return found[-1], found[len(found) // 2]

    model = settled(Random(), seed)
    check(model, images(2, model.channels, 9, 7, seed=seed), tolerance=5e-5)


def test_double_precision_is_as_in_the_other_modes() -> None:
    model = settled(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())).double()
    x = images(2, 3, 9, 9).double()
    with torch.no_grad():
        compiled = torch.compile(model, mode="inference")
        for _ in range(2):
            assert torch.equal(compiled(x), model(x))


# When weights change ------------------------------------------------------------------------------


def network() -> Any:
    layers = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 25, 4)
    return settled(nn.Sequential(*layers))


def by_state(model: Any) -> None:
    other = settled(copy.deepcopy(model), 3)
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(0.7)
    model.load_state_dict(other.state_dict())


def by_step(model: Any) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with torch.enable_grad():
        model(images(2, 3, 7, 7, seed=4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def by_training(model: Any) -> None:
    model.train()
    model(images(5, 3, 7, 7, seed=5))
    model.eval()


def by_statistics(model: Any) -> None:
    model[1].running_var.mul_(2)


def by_write(model: Any) -> None:
    with torch.no_grad():
        model[0].weight[2] *= -2


def by_view(model: Any) -> None:
    with torch.no_grad():
        model[4].weight.view(-1)[:7].add_(1)


def by_data(model: Any) -> None:
    model[0].weight.data = model[0].weight.data * 2


def by_data_in_place(model: Any) -> None:
    model[0].weight.data.mul_(-2)


def by_parameter(model: Any) -> None:
    model[0].weight = nn.Parameter(model[0].weight.detach() * 3)


def by_set_data(model: Any) -> None:
    model[1].weight.data = torch.ones(8)


@pytest.mark.parametrize(
    "change",
    [
        by_state,
        by_step,
        by_training,
        by_statistics,
        by_write,
        by_view,
        by_data,
        by_data_in_place,
        by_parameter,
        by_set_data,
    ],
)
def test_weights_that_change_are_read_again(change: Callable[[Any], None]) -> None:
    model, x = network(), images(2, 3, 7, 7)
    compiled = torch.compile(model, mode="inference")
    with torch.no_grad():
        for _ in range(3):
            close(compiled(x), model(x))
    for _ in range(2):
        with torch.no_grad():
            before = model(x)
        change(model)
        with torch.no_grad():
            assert not torch.allclose(before, model(x), rtol=1e-3) or change is by_set_data
            for _ in range(2):
                close(compiled(x), model(x))
    assert all("by_given" not in variant.source for variant in compiled._compiled.variants)


def test_a_model_that_is_trained_in_between() -> None:
    model, x = network(), images(2, 3, 7, 7)
    compiled = torch.compile(model, mode="inference")
    with torch.no_grad():
        close(compiled(x), model(x))
        compiled(x)
        model.train()
        twin = copy.deepcopy(model)
        for _ in range(3):
            assert torch.equal(compiled(x), twin(x))
        assert torch.equal(model[1].running_mean, twin[1].running_mean)
        model.eval()
        for _ in range(2):
            close(compiled(x), model(x))


def test_a_module_that_is_compiled_in_place() -> None:
    model, x = network(), images(2, 3, 7, 7)
    plain = copy.deepcopy(model)
    model.compile(mode="inference")
    with torch.no_grad():
        for _ in range(2):
            close(model(x), plain(x))
        assert "convolved" in model.forward.source
        model.train(), plain.train()
        for _ in range(2):
            assert torch.equal(model(x), plain(x))


def test_gradients_are_as_in_the_other_modes() -> None:
    model, x = network(), images(2, 3, 7, 7)
    other = copy.deepcopy(model)
    compiled, plain = torch.compile(model, mode="inference"), torch.compile(other)
    for _ in range(3):
        for a, b in ((compiled, model), (plain, other)):
            a(x).square().sum().backward()
            assert b[0].weight.grad is not None
        assert torch.equal(compiled(x), plain(x))
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)
    assert "convolved" not in compiled.source
    for p in model.parameters():
        p.requires_grad_(False)
    close(compiled(x), plain(x).detach())
    assert "convolved" in compiled.source


def test_the_default_mode_is_unchanged() -> None:
    model, x = network(), images(2, 3, 7, 7)
    for mode in (None, "default", "reduce-overhead"):
        compiled = torch.compile(model, mode=mode)
        with torch.no_grad():
            for _ in range(2):
                assert torch.equal(compiled(x), model(x))
        assert "convolved" not in compiled.source and "by_given" in compiled.source


def test_a_function_that_writes_to_its_argument_is_compiled_as_usual() -> None:
    conv = nn.Conv2d(3, 3, 3, padding=1).eval()

    def f(x: Any) -> Any:
        x.add_(1)
        return conv(x)

    compiled = torch.compile(f, mode="inference")
    with torch.no_grad():
        x, y = images(1, 3, 5, 5), images(1, 3, 5, 5)
        for _ in range(3):
            assert torch.equal(compiled(x), f(y)) and torch.equal(x, y)
    assert "convolved" not in compiled.source


def test_results_of_earlier_calls_stay() -> None:
    model = settled(nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU()))
    compiled = torch.compile(model, mode="inference")
    with torch.no_grad():
        compiled(images(2, 3, 7, 7))
        first = compiled(images(2, 3, 7, 7))
        kept = first.clone()
        compiled(images(2, 3, 7, 7, seed=1))
    assert torch.equal(first, kept)


def test_buffers_share_one_block_of_memory() -> None:
    layers = [nn.Conv2d(16, 16, 3, padding=1) for _ in range(10)]
    model = nn.Sequential(
        *[each for k, conv in enumerate(layers) for each in (conv, nn.MaxPool2d(1 + k % 2), nn.ReLU())]
    )
    compiled = torch.compile(model.eval(), mode="inference")
    with torch.no_grad():
        for _ in range(2):
            compiled(images(1, 16, 64, 64))
    assert compiled.source.count("np.empty(") == 1
    assert compiled._compiled.variants[0].programs[0].bytes <= 3 * 16 * 64 * 64 * 4


def test_a_saved_program_gives_the_same(tmp_path: Path) -> None:
    model, x = network(), images(2, 3, 7, 7)
    compiled = torch.compile(model, mode="inference")
    with torch.no_grad():
        compiled(x)
        expected = compiled(x).numpy()
    compiled.save(tmp_path / "net.py")
    np.savez(tmp_path / "given.npz", x=x.numpy(), y=expected)
    program = """
import numpy as np, sys, net
given = np.load("given.npz")
y = net.step(given["x"])
assert np.abs(y - given["y"]).max() < 1e-5 * np.abs(given["y"]).max()
assert "tinytorch" not in sys.modules
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_mode_is_kept_by_copies_and_decorators() -> None:
    @torch.compile(mode="inference")
    def f(x: Any) -> Any:
        return F.conv2d(x, layer.weight)

    layer = nn.Conv2d(3, 4, 3)
    with torch.no_grad():
        for _ in range(2):
            close(f(images(2, 3, 8, 8)), F.conv2d(images(2, 3, 8, 8), layer.weight))
    assert "convolved" in f.source
    model = copy.deepcopy(torch.compile(network(), mode="inference"))
    with torch.no_grad():
        model(images(2, 3, 7, 7))
    assert "convolved" in model.source
