"""What modules, functions and gradients are taken for, and are not: facts that hold in every healthy run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.autograd import api
from tinytorch.autograd.function import FunctionNode
from tinytorch.autograd.grad_mode import enable_grad, no_grad
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import Place, frame_here, here
from tinytorch.inspect.doctor.source import assigned_at, line_with, option_at, return_of, tree_of, variable_at
from tinytorch.inspect.doctor.watch import array_of
from tinytorch.inspect.places import is_library
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import tensor
from tinytorch.ops.random import manual_seed

__all__ = ["Attributes", "Constants", "Derivatives", "Same", "Statistics", "Weights"]


class Attributes(Check):
    """`requires_grad` set on a module rather than on its parameters, which do not have it."""

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                value = vars(module).get("requires_grad")
                others = [p for p in module.parameters() if p.requires_grad is not value]
                if not isinstance(value, bool) or not others or assigned_at(module, "requires_grad"):
                    continue
                last = re.escape(path.rpartition(".")[2] or "model")
                written = rf"\.requires_grad\s*=\s*{value}\b"
                place = line_with(info.place, rf"\b{last}\b.*{written}") or line_with(info.place, written)
                yield found("attribute-of-module", place or info.place, value=value, other=not value, count=len(others),
                            name=".".join([info.name, *[path] * bool(path)]))  # fmt: skip
                break


def _averaged_at(place: Place) -> Place:
    """Return the line of a file that goes through the parameters of two models together and writes, else `place`."""
    for node in ast.walk(tree_of(place.file)):
        if isinstance(node, ast.For):
            names = [each.attr for each in ast.walk(node.iter) if isinstance(each, ast.Attribute)]
            if sum(name in ("parameters", "named_parameters") for name in names) == 2:
                return place._replace(number=node.body[-1].lineno)
    return place


class Statistics(Check):
    """Batch norm that evaluates with the statistics that it was made with, although its weights are learned ones."""

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        trained: set[int] = set().union(*[each.ids for each in self.watch.optimizers.values()])
        for info in self.watch.models.values():
            if not info.calls.get((False, False), 0) + info.calls.get((False, True), 0):
                continue
            untouched = [path for path, each in info.module.named_modules() if self._is_untouched(each, trained)]
            if untouched:
                yield found("running-statistics/first", _averaged_at(info.place), model=info.name,
                            layers=", ".join(untouched[:3]))  # fmt: skip

    @staticmethod
    def _is_untouched(module: Module, trained: set[int]) -> bool:
        if not isinstance(module, _BatchNorm) or module.training or not module.affine or id(module.weight) in trained:
            return False
        arrays = [array_of(each) for each in (module.running_mean, module.running_var, module.weight, module.bias)]
        if any(each is None for each in arrays) or int(module.num_batches_tracked or 0):
            return False
        mean, variance, weight, bias = arrays
        return bool(not mean.any() and (variance == 1).all() and ((weight != 1).any() and bias.any()))


class Constants(Check):
    """Terms of a loss that were computed from a gradient that has no graph, and have none themselves."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.gradients: list[tuple[Tensor, Place]] = []  # since the last backward pass
        self.seen: dict[Place, list[int]] = {}  # by line: steps, lines that add the term

    def differentiated(self, gradients: Any) -> None:  # noqa: D102
        if self.watch.tracer.on and len(self.gradients) < 50:
            self.gradients += [(x, here()) for x in tensors_in(gradients) if not x.requires_grad]

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for call in trace.calls if self.gradients else ():
            if call.name not in ("add", "sub") or not isinstance(call.out, Tensor) or call.out.ndim:
                continue
            if not call.out.requires_grad or not any(x.requires_grad for x in call.inputs):
                continue
            for x in call.inputs:
                made = next((line for g, line in self.gradients if not x.requires_grad and trace.leads(g, x, 8)), None)
                if made is not None:
                    self.seen.setdefault(made, [0, call.place.number])[0] += 1

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.gradients.clear()

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for place, (count, line) in self.seen.items():
            if count > 1:
                yield found("graph-cut/gradient", place, line=line)


class Derivatives(Check):
    """Functions of the program whose backward is not the derivative of their forward."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.compared: dict[Any, Any] = {}  # by function: two numbers that should be equal, or None

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for call in trace.calls:
            node = next(iter(call.args), None)
            if not isinstance(node, FunctionNode) or type(node).function in self.compared or len(self.compared) > 8:
                continue
            function, args = type(node).function, call.args[1]
            rule = function.backward
            small = all(x.numel() <= 100_000 and type(x) in (Tensor, Parameter) for x in tensors_in(args))
            if small and not module_of(function).startswith("tinytorch.") and not is_library(rule.__code__):
                self.compared[function] = self.doctor.replay.probe(
                    lambda function=function, args=args: _compared(self.watch, function, args), 5.0)  # fmt: skip

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for function, numbers in self.compared.items():
            if numbers:
                yield found("backward-wrong", return_of(function.backward), name=function.__name__, got=numbers[0],
                            exact=numbers[1])  # fmt: skip


def _compared(watch: Any, function: Any, args: Any) -> tuple[float, float] | None:
    """Return a derivative as `backward` gives it and by differences, if they differ; called in a copy of the process.

    Functions may differ on purpose: a straight-through estimator has differences of zero, a reversal or a scaling a
    constant ratio, clipping no effect on small gradients.
    """
    watch.silence()
    values = [x.detach().double().requires_grad_(x.requires_grad) if isinstance(x, Tensor)
              and x.dtype.is_floating_point else x for x in args]  # fmt: skip
    random = np.random.default_rng(0)
    weights: list[Any] = []

    def total() -> Any:
        manual_seed(0)
        outs = [x for x in tensors_in(function.apply(*values)) if x.dtype.is_floating_point]
        if not weights:
            weights.extend(tensor(1e-3 * (0.5 + random.random(tuple(x.shape)))) for x in outs)
            same = any(x.shape == y.shape and np.array_equal(x._array, y._array)
                       for x in outs for y in values if isinstance(y, Tensor))  # fmt: skip
            if same or any(x._array.dtype != np.float64 for x in outs):
                return None
        return sum((x * w).sum() for x, w in zip(outs, weights, strict=True))

    inputs = [x for x in values if isinstance(x, Tensor) and x.requires_grad]
    with enable_grad():
        loss = total()
        gradients = api.grad(loss, inputs, allow_unused=True) if loss is not None and inputs else ()
    for x, gradient in zip(inputs, gradients, strict=False):
        if gradient is None:
            continue
        flat = x._array.reshape(-1)
        exact, got = [], []
        for k in random.permutation(flat.size)[:24]:
            before, step = flat[k], 1e-5 * max(abs(flat[k]), 1e-2)
            sums = []
            for flat[k] in (before + step, before - step):
                with no_grad():
                    sums.append(float(total()))
            flat[k] = before
            exact.append((sums[0] - sums[1]) / (2 * step))
            got.append(float(gradient._array.reshape(-1)[k]))
        numbers, others = np.array(exact), np.array(got)
        large = np.abs(numbers) > 0.05 * np.abs(numbers).max()
        if large.sum() < 4:
            continue
        ratios = others[large] / numbers[large]
        limit = LIMITS["derivatives apart"]
        if np.median(np.abs(ratios - 1)) > limit and np.ptp(ratios) > limit * np.abs(ratios).max():
            worst = int(np.abs(ratios - 1).argmax())
            return float(1e3 * others[large][worst]), float(1e3 * numbers[large][worst])
    return None


class Same(Check):
    """A list of modules that are one, all called with the same input: their results are equal."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.last: Any = None  # the last call: what identifies it, its input and result
        self.tries = 0
        self.seen: dict[Any, tuple[int, str]] = {}

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        given, result = next(tensors_in(args), None), array_of(next(tensors_in(out), None))
        call = (id(info), id(given), here(), self.watch.backwards)
        again = self.last is not None and self.last[0] == call and self.last[1] is given
        if again and result is not None and self.tries < 10 and np.array_equal(result, self.last[2]):
            self.tries += 1
            entries = _list_of(info.module)
            if entries is not None:
                count = sum(each is info.module for each in entries)
                self.seen.setdefault(variable_at(entries) or here(), (count, info.name))
        self.last = (call, given, result)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for place, (count, name) in self.seen.items():
            yield found("module-shared/list", place, count=count, name=name)


def _list_of(module: Module) -> Any:
    """Return a list or tuple of a running function, or of an object of the program, that has a module several times."""
    frame: Any = frame_here()
    while frame is not None and frame.f_globals.get("__name__") == "__main__":
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            own = vars(value).values() if module_of(type(value)) == "__main__" and hasattr(value, "__dict__") else ()
            for each in (value, *own):
                if type(each) in (list, tuple) and sum(x is module for x in each[:1000]) > 1:
                    return each
        frame = frame.f_back
    return None


class Weights(Check):
    """Weights of classes that are in proportion to how often each class occurs."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.counts: dict[Place, Any] = {}  # by line: labels of each class, weights

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses:
            weights = array_of(each.call.args[2]) if each.call.name == "_cross_entropy" else None
            labels = array_of(each.target)
            if weights is None or labels is None or labels.dtype.kind not in "iu" or not labels.size:
                continue
            labels = labels[(labels >= 0) & (labels < len(weights))]
            made = option_at(self.watch.made_at.get(id(each.call.criterion)), "weight", 0)
            line = made or option_at(each.call.place, "weight", 2) or each.call.place
            counts, _ = self.counts.get(line, (0, None))
            self.counts[line] = counts + np.bincount(labels.reshape(-1), minlength=len(weights)), weights

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for place, (counts, weights) in self.counts.items():
            if (counts < 5).any() or (weights <= 0).any():
                continue
            often, ratios = np.log(counts), np.log(weights / counts)
            if np.ptp(often) > np.log(3) and np.ptp(ratios) < 0.25 * np.ptp(often):
                most = int(counts.argmax())
                yield found("class-weights-inverted", place, most=most, weight=weights[most],
                            share=counts[most] / counts.sum(), least=weights.min())  # fmt: skip
