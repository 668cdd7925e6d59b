"""`torch.library`: custom operators, against PyTorch."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch


def _sine(torch: Any, name: str) -> Any:
    def sine(x: torch.Tensor, k: float = 1.0) -> torch.Tensor:  # type: ignore[name-defined]
        return torch.from_numpy(np.sin(k * x.numpy()))

    sine.__annotations__ = {"x": torch.Tensor, "k": float, "return": torch.Tensor}
    return torch.library.custom_op(f"tests_library::{name}", sine, mutates_args=())


def test_an_operator_and_its_gradient() -> None:
    def program(torch: Any) -> list[Any]:
        sine = _sine(torch, "sine")
        sine.register_fake(lambda x, k=1.0: torch.empty_like(x))

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.k = inputs
            ctx.save_for_backward(x)

        def back(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * ctx.k * (ctx.k * x).cos(), None

        sine.register_autograd(back, setup_context=setup)
        x = torch.arange(3.0).requires_grad_()
        y = sine(x, k=2.0)
        y.sum().backward()
        named = torch.ops.tests_library.sine
        node = type(y.grad_fn).__name__
        return [y, x.grad, named(x), named.default(x, 3.0), node, repr(sine)]

    same_as_pytorch(program)


def test_errors() -> None:
    def no_gradient(torch: Any) -> None:
        x = torch.ones(2, requires_grad=True)
        _sine(torch, "without_gradient")(x).sum().backward()

    same_as_pytorch(no_gradient)
    same_as_pytorch(lambda torch: _sine(torch, "without_arguments")())
    same_as_pytorch(lambda torch: torch.ops.tests_library.not_there)
    same_as_pytorch(lambda torch: torch.library.custom_op("tests_library::f", lambda x: x, mutates_args=()))
    with pytest.raises(RuntimeError, match="no::such does not exist"):
        tinytorch.library.register_autograd("no::such", lambda ctx, g: g)


def test_lists_several_results_and_arguments_by_name() -> None:
    def program(torch: Any) -> list[Any]:
        def joined(xs: Any, dim: int, *, scale: float = 1.0) -> Any:
            return torch.cat(xs, dim) * scale, xs[0].clone()

        joined.__annotations__ = {
            "xs": list[torch.Tensor],
            "dim": int,
            "scale": float,
            "return": tuple[torch.Tensor, torch.Tensor],
        }
        op = torch.library.custom_op("tests_library::joined", joined, mutates_args=())

        def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
            xs, ctx.dim = inputs
            ctx.lengths = [x.shape[ctx.dim] for x in xs]
            ctx.scale = keyword_only_inputs["scale"]

        def back(ctx: Any, g: Any, h: Any) -> Any:
            parts = [part * ctx.scale for part in g.split(ctx.lengths, ctx.dim)]
            return [parts[0] + h, *parts[1:]], None

        op.register_autograd(back, setup_context=setup)
        p, q = torch.ones(2, requires_grad=True), torch.zeros(3, requires_grad=True)
        u, v = op([p, q], 0, scale=3.0)
        (u.sum() + v.sum()).backward()
        return [u, v, p.grad, q.grad]

    same_as_pytorch(program)


def test_an_operator_that_writes() -> None:
    def program(torch: Any) -> Any:
        def add_to(x: Any, y: Any) -> None:
            x.add_(y)

        add_to.__annotations__ = {"x": torch.Tensor, "y": torch.Tensor, "return": None}
        op = torch.library.custom_op("tests_library::add_to", add_to, mutates_args={"x"})
        x = torch.zeros(2)
        op(x, torch.ones(2))
        return x

    same_as_pytorch(program)


def test_a_library() -> None:
    def program(torch: Any) -> list[Any]:
        out: list[Any] = []
        library = torch.library.Library("tests_library_b", "DEF")
        out.append(library.define("f(Tensor x, int n) -> Tensor"))
        try:
            torch.ops.tests_library_b.f(torch.ones(1), 2)
        except NotImplementedError as error:
            out.append(type(error).__name__)
        library.impl("f", lambda x, n: x * n, "CPU")
        out.append(torch.ops.tests_library_b.f(torch.ones(1), 2))
        library.define("g(Tensor x) -> Tensor")
        library.impl("g", lambda x: x * 2, "CompositeImplicitAutograd")
        x = torch.ones(2, requires_grad=True)
        torch.ops.tests_library_b.g(x).sum().backward()
        out.append(x.grad)
        torch.library.define("tests_library_b::h", "(Tensor x) -> Tensor")
        torch.library.impl("tests_library_b::h", "default")(lambda x: x + 1)
        out.append(torch.ops.tests_library_b.h(torch.ones(1)))
        with contextlib.suppress(AttributeError):
            library._destroy()  # PyTorch's
        return out

    same_as_pytorch(program)


def test_pytorchs_own_operators() -> None:
    def program(torch: Any) -> list[Any]:
        x = torch.arange(4.0) - 1
        aten = torch.ops.aten
        return [aten.relu(x), aten.add.Tensor(x, x), aten.sum.default(x), aten.softmax.int(x, 0)]

    same_as_pytorch(program)


def test_what_is_compiled_for_pytorch_is_not_loaded() -> None:
    with pytest.raises(OSError, match="compiled for PyTorch"):
        tinytorch.ops.load_library("_C.so")
    assert tinytorch.library.register_fake("torchvision::nms")(len) is len
    with pytest.raises(NotImplementedError, match="no operator aten::nothing"):
        tinytorch.ops.aten.nothing.default()


def test_a_kernel_for_autocasting() -> None:
    def program(torch: Any) -> list[Any]:
        library = torch.library.Library("tests_autocast", "DEF")
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x * 2, "CPU")
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

        def autocast(x: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(keys):
                return torch.ops.tests_autocast.double(x.double()).float()

        library.impl("double", autocast, "AutocastCPU")
        with torch.autocast("cpu", torch.bfloat16):
            inside = torch.ops.tests_autocast.double(torch.ones(2, dtype=torch.int64))
        return [inside, torch.ops.tests_autocast.double(torch.ones(2, dtype=torch.int64))]

    same_as_pytorch(program)
