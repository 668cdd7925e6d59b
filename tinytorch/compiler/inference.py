"""Rewriting of recorded steps for inference, with `torch.compile(mode="inference")`.

Each rewrite is a method of `_Rewriter`, chosen by the kernel of a step:

- writes in place of new arrays: what a step writes over an array that the call has created is a result of its own;
- a convolution, or a product with a weight, takes over what follows it: a batch norm with given statistics and factors
  and terms per channel, which go into its weight; a residual; an activation function whose kernel has an `epilogue`;
- a convolution and a depthwise one of its result alone become one step;
- its images have their channels last: (N, H, W, C). A value that exists in another order than the recorded one is
  `held`, with the order of its dimensions. Views that exchange dimensions then cost nothing, and elementwise steps,
  means, maxima and norms follow in that order. Any other step gets the value as it was recorded, by a copy.

Weights and statistics are what exists before the call and is the same in all calls: what is computed from them alone
is computed once, in `bind`. Results agree with those of the other modes but for rounding.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinytorch.compiler.fusing import function_of, is_elementwise
from tinytorch.compiler.recorder import Call, Memory, Value, memories_written, new_value, replaced, strides_in_order
from tinytorch.core.facts import extend, fact
from tinytorch.kernels import channels_last, conv, elementary, layer_norm, norm, pool, products, programs, reduce, shape
from tinytorch.kernels.channels_last import PANEL
from tinytorch.nn.modules.module import Module

_F32 = np.dtype(np.float32)
_FEW_ROWS = 256  # up to which it takes long, beside a product, to pack its weight
_IMAGES = (0, 3, 1, 2)  # (N, C, H, W) is what (N, H, W, C) becomes by this transposition
_LAST = (0, 2, 3, 1)  # and its inverse


def applies(function: Any, calls: list[Call], inputs: list[Value]) -> bool:
    """Return whether a recorded call may be rewritten: it only computes results, by the same steps each time.

    A module must not be in training mode.
    """
    module = getattr(function, "__self__", function)  # (`Module.compile` compiles a method)
    if isinstance(module, Module) and module.training:
        return False
    outside = {value.memory for value in inputs}
    return not any(call.random or call.is_effect(outside) for call in calls)


def rewritten(
    calls: list[Call], inputs: list[Value], bound: list[bool], results: list[Value]
) -> tuple[list[Call], list[Value]]:
    """Return the steps for inference, and the values of the results; the arguments are those of a `Program`."""
    calls, results = _without_writes(calls, results)
    fixed = [value for value, stays in zip(inputs, bound, strict=True) if stays]
    rewriter = _Rewriter(calls, fixed, results)
    return rewriter.calls, results


# Writes -------------------------------------------------------------------------------------------


def _without_writes(calls: list[Call], results: list[Value]) -> tuple[list[Call], list[Value]]:
    """Return the steps and the results, with writes into arrays that the call has created replaced by new arrays."""
    made: dict[Memory, dict[int, int]] = collections.defaultdict(dict)  # by id of the values in it, the step
    last: dict[Memory, int] = {}  # the last step that writes to it
    uses: collections.Counter[int] = collections.Counter()
    for number, call in enumerate(calls):
        for value in call.inputs():
            made[value.memory].setdefault(id(value), -1)
            uses[id(value)] += 1
        for value in call.outputs:
            if value is not None:
                made[value.memory][id(value)] = number
        if call.kind == Call.WRITE:
            last[call.args[0].memory] = number
    for value in results:
        made[value.memory].setdefault(id(value), -1)
        uses[id(value)] += 1

    def alone(value: Value) -> bool:
        """Return whether a step allocates the value's memory, which has no other view while it is written to."""
        if value.source is None or value.source.kind != Call.NEW:
            return False
        end = last.get(value.memory, -1)
        return all(number > end or each == id(value) for each, number in made[value.memory].items())

    def replaceable(call: Call) -> bool:
        target = call.args[0]
        if not alone(target):
            return False
        if call.function is programs.copy_into:
            of = call.args[1]
            same = (of.shape, of.dtype, of.strides) == (target.shape, target.dtype, target.strides)
            return same and alone(of) and len(made[of.memory]) == uses[id(of)] == 1
        others = [x for x in call.inputs()[1:] if x.shape]
        like_ufuncs = isinstance(call.function, np.ufunc) or call.function in elementary.FUNCTIONS
        return like_ufuncs and all(x.strides == target.strides for x in others)

    kept = {call.args[0].memory for call in calls if call.kind == Call.WRITE and not replaceable(call)}
    current: dict[int, Value] = {}  # by id of a value that is written to, what it is now
    moved: dict[Memory, Memory] = {}  # and its memory
    found = []
    for call in calls:
        write = call.kind == Call.WRITE and call.args[0].memory not in kept
        target = call.args[0] if write else None
        call.replace(current)
        if target is None:
            found.append(call)
            for value in call.outputs:
                if value is not None:
                    value.memory = moved.get(value.memory, value.memory)
        elif call.function is programs.copy_into:
            current[id(target)] = call.args[1]
            call.args[1].name = call.args[1].name or target.name
            moved[target.memory] = call.args[1].memory
        else:
            out = Value(target.shape, target.dtype, target.strides, Memory(), target.whole, call, name=target.name)
            call.kind, current[id(target)], moved[target.memory] = Call.NEW, out, out.memory
            call.outputs.append(out)
            found.append(call)
    return found, replaced(results, current)


# Layouts ------------------------------------------------------------------------------------------


class _Held(NamedTuple):
    """How a value exists: as `value.transpose(dims)`, where `value` is contiguous."""

    value: Value
    dims: tuple[int, ...]


def _is_contiguous(x: Value) -> bool:
    wanted = strides_in_order(x.shape, x.dtype.itemsize)
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.strides, wanted, strict=True))


def _permuted(x: Sequence[int], dims: Iterable[int]) -> tuple[int, ...]:
    return tuple([x[d] for d in dims])


def _inverse(dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


class _Chain:
    """A convolution or a product, and the steps that it takes over.

    Attributes:
        call: the step of the convolution.
        weight, bias, groups: its weight, whose rows are its outputs.
        source: its input.
        changes: changes of weight and bias, as `channels_last.prepared` takes them.
        residual: the value that is added, and the order of its dimensions as in `dims`.
        epilogue: the last arguments of the kernel.
        result: the last value, which is the stored array with its dimensions in the order `dims`.
        name: of the result.
    """

    def __init__(self, call: Call, source: Value, weight: Value, bias: Value | None, groups: int, dims: Any) -> None:
        self.call, self.source, self.groups, self.dims = call, source, groups, dims
        self.weight, self.bias = weight, bias
        self.changes: list[tuple[Any, ...]] = []
        self.residual: tuple[Value, tuple[int, ...]] | None = None
        self.epilogue: tuple[Any, ...] | None = None
        self.result: Value = call.outputs[0]
        self.name = call.name

    @property
    def axis(self) -> int:
        """The dimension of the result that the outputs are."""
        return self.dims.index(len(self.dims) - 1)


class _Rewriter:
    """The rewriting of steps; `calls` are the new ones."""

    def __init__(self, calls: list[Call], fixed: list[Value], results: list[Value]) -> None:
        self.calls: list[Call] = []
        self._held: dict[int, list[_Held]] = {}  # by id of values
        self._there: dict[int, Value] = {}  # by id, values that exist as they were recorded
        self._keep: list[Value] = []
        self._written = memories_written(calls)
        self._fixed = {id(value) for value in fixed if value.memory not in self._written}
        self._uses = collections.Counter([id(value) for call in calls for value in call.inputs()])
        self._uses.update([id(value) for value in results])
        self._reader = {id(value): call for call in calls for value in call.inputs()}
        self._taken: set[int] = set()  # ids of steps that chains take over
        self._ends: dict[int, _Chain] = {}  # by id of their last steps
        self._made: set[int] = {id(value) for call in calls for value in call.outputs if value is not None}
        self._prepared: dict[tuple[Any, ...], list[Value]] = {}
        self._chains: dict[int, _Chain] = {}  # by id of the steps that compute them
        for call in calls:
            self._step(call)
        for value in results:
            self._plain(value)

    # Steps ----------------------------------------------------------------------------------------

    def _step(self, call: Call) -> None:
        inputs = call.inputs()
        if not call.random and all(self._is_fixed(value) for value in inputs) and (inputs or call.kind == Call.NEW):
            self._fixed.update([id(value) for value in call.outputs if value is not None])
            self._as_recorded(call)
            return
        if id(call) in self._taken:
            if id(call) in self._ends:
                self._write_chain(self._ends[id(call)])
            return
        function, _ = function_of(call)
        rule = fact(function, "inference")
        if call.kind in (Call.NEW, Call.VIEW) and rule is not None and rule(self, call):
            return
        if call.kind == Call.NEW and is_elementwise(call) and self._elementwise(call):
            return
        self._as_recorded(call)

    def _is_fixed(self, value: Value) -> bool:
        return id(value) in self._fixed or (value.constant and value.memory not in self._written)

    def _as_recorded(self, call: Call) -> None:
        for value in call.inputs():
            self._plain(value)
        self.calls.append(call)
        for value in call.outputs:
            if value is not None:
                self._there[id(value)] = value

    def _add(self, kind: int, function: Any, args: tuple[Any, ...], sizes: tuple[int, ...], like: Call) -> Value:
        """Add a step that returns one contiguous array, and return its value."""
        call = Call(kind, function, args, {}, like.name, like.line)
        return self._enter(call, new_value(sizes, call.inputs()[0].dtype, call, name=like.name))

    def _enter(self, call: Call, out: Value) -> Value:
        call.outputs.append(out)
        self.calls.append(call)
        self._there[id(out)] = out
        return out

    def _view(self, x: Value, dims: tuple[int, ...], like: Call | None = None) -> Value:
        """Return a value transposed, by a view."""
        if dims == tuple(range(len(dims))):
            return x
        call = Call(Call.VIEW, shape.permute, (x, dims), {}, "permuted", like.line if like is not None else None)
        out = Value(_permuted(x.shape, dims), x.dtype, _permuted(x.strides, dims), x.memory, False, call)
        return self._enter(call, out)

    # Values ---------------------------------------------------------------------------------------

    def _hold(self, value: Value, stored: Value, dims: tuple[int, ...]) -> None:
        """Note that a value exists as a contiguous array, transposed."""
        self._held.setdefault(id(value), []).append(_Held(stored, dims))
        self._keep.append(value)
        if stored is value:
            self._there[id(value)] = value

    def _holds(self, value: Value) -> list[_Held]:
        found = self._held.get(id(value), [])
        if not found and self._exists(value) and _is_contiguous(value) and value.memory not in self._written:
            return [_Held(value, tuple(range(len(value.shape))))]
        return found

    def _exists(self, value: Value) -> bool:
        return id(value) in self._there or id(value) not in self._made

    def _as(self, value: Value, dims: tuple[int, ...], like: Call) -> Value:
        """Return a contiguous value that, transposed by `dims`, is `value`."""
        held = self._holds(value)
        for each in held:
            if each.dims == dims:
                return each.value
        if held:
            stored, at = held[0]
            view = self._view(stored, _permuted(at, _inverse(dims)), like)
            alone = sum(n > 1 for n in stored.shape) <= 1
        else:
            view = self._view(self._plain(value), _inverse(dims), like)
            alone = False
        if not (alone or _is_contiguous(view)):
            view = self._add(Call.NEW, np.ascontiguousarray, (view,), view.shape, like)
        self._hold(value, view, dims)
        return view

    def _plain(self, value: Value) -> Value:
        """Make sure that a value exists as it was recorded, and return it."""
        if self._exists(value):
            return value
        source = value.source
        assert source is not None
        if source.kind == Call.VIEW:
            self._as_recorded(source)
            return value
        stored, dims = self._held[id(value)][0]
        kept = [d for d in dims if stored.shape[d] > 1]
        order = tuple(sorted(range(len(dims)), key=lambda d: -value.strides[d]))
        kind, function, args = Call.VIEW, shape.permute, (stored, dims)  # type: int, Any, tuple[Any, ...]
        if kept == sorted(kept) and value.strides == strides_in_order(value.shape, value.dtype.itemsize):
            function, args = shape.view, (stored, value.shape)
        elif _permuted(stored.strides, dims) != value.strides:
            kind, function, args = Call.NEW, channels_last.in_order, (stored, dims, order)
        if kind == Call.VIEW:
            value.memory, value.whole = stored.memory, False
        call = Call(kind, function, args, {}, source.name, source.line)
        value.source, value.output = call, None
        self._enter(call, value)
        return value

    def _store(
        self, made: Call, value: Value, sizes: tuple[int, ...], dims: tuple[int, ...], output: int | None = None
    ) -> None:
        """Add a step whose result, a contiguous array of these sizes, is a value when it is transposed by `dims`."""
        out = value
        trivial = dims == tuple(range(len(dims))) and value.whole and value.shape == sizes
        if trivial and _is_contiguous(value):  # it is the value as it was recorded
            value.source, value.output = made, output
        else:
            out = new_value(sizes, value.dtype, made, output, value.name)
        self._enter(made, out)
        self._hold(value, out, dims)

    # Chains ---------------------------------------------------------------------------------------

    def _follow(self, chain: _Chain) -> None:
        """Let a chain take over the steps that follow it."""
        last = chain.call
        while self._uses[id(chain.result)] == 1:
            call = self._reader.get(id(chain.result))
            if call is None or id(call) in self._taken or len(call.outputs) != 1 or call.several:
                break
            if not self._take(chain, call):
                break
            chain.result, chain.name, last = call.outputs[0], call.name, call
            self._taken.add(id(call))
        self._taken.add(id(chain.call))
        self._ends[id(last)] = chain
        if last is chain.call:
            self._write_chain(chain)

    def _take(self, chain: _Chain, call: Call) -> bool:
        """Take over a step if that is possible."""
        function, args = function_of(call)
        dims = _turned(call)
        if dims is not None:
            chain.dims = _permuted(chain.dims, dims)
            return True
        if call.kind != Call.NEW or call.outputs[0].dtype != _F32 or call.outputs[0].shape != chain.result.shape:
            return False
        if function is norm.by_given:
            _, *values, eps = args
            free = chain.residual is None and chain.epilogue is None and args[0] is chain.result
            if not free or chain.axis != 1 or not all(x is None or self._is_fixed(x) for x in values):
                return False
            chain.changes.append((channels_last.with_norm, *values, eps))
            return True
        if function in (np.add, np.multiply) and len(args) == 2 and not call.kwargs and chain.epilogue is None:
            other = args[1] if args[0] is chain.result else args[0]
            if not isinstance(other, Value) or other.dtype != _F32 or other is chain.result:
                return False
            if self._is_fixed(other) and self._is_per_output(chain, other):
                if chain.residual is not None:
                    return False
                change = channels_last.with_shift if function is np.add else channels_last.with_scale
                chain.changes.append((change, other))
                return True
            if function is np.add and chain.residual is None and other.shape == chain.result.shape:
                if other.memory in self._written:
                    return False
                chain.residual = other, chain.dims
                return True
            return False
        form = getattr(function, "epilogue", None)
        if form is None or chain.epilogue is not None or args[0] is not chain.result:
            return False
        chain.epilogue = form(*args[1:], **call.kwargs)
        return True

    def _is_per_output(self, chain: _Chain, x: Value) -> bool:
        """Return whether an operand has one number per output, or one for all."""
        sizes = (1,) * (len(chain.dims) - len(x.shape)) + x.shape
        return len(sizes) == len(chain.dims) and all(n == 1 or d == chain.axis for d, n in enumerate(sizes))

    def _write_chain(self, chain: _Chain) -> None:
        call, outputs = chain.call, chain.weight.shape[0]
        like = Call(Call.NEW, None, (), {}, chain.name, call.line)
        weight, bias = self._ready(chain, like)
        activation = chain.epilogue or ()
        if chain.residual is not None:
            other, dims = chain.residual
            at: Any = self._as(other, dims, like)
        else:
            at = None
        if call.function is products.affine:
            x = self._rows(chain.source, like)
            sizes = (*x.shape[:-1], outputs)
            function: Any = channels_last.projected
            args: tuple[Any, ...] = (x, weight, bias, at, *activation)
        else:
            _, w, _, stride, padding, dilation, groups, _ = call.args
            x = self._images(chain.source, groups == 1, like)
            rows, columns = conv.conv_size(x.shape[1:3], w.shape[2:], stride, padding, dilation)
            sizes = x.shape[0], rows, columns, outputs
            function = channels_last.convolved
            args = (x, weight, bias, at, w.shape[2:], stride, padding, dilation, groups, outputs, *activation)
            before = self._before(chain, x)
            if before is not None and groups == outputs == x.shape[3]:
                self.calls = [each for each in self.calls if each is not before]
                function = channels_last.convolved_twice
                args = before.args[0], channels_last.whole(before.args), channels_last.whole(args)
        made = Call(Call.NEW, function, args, {}, chain.name, call.line)
        self._store(made, chain.result, sizes, chain.dims)
        self._chains[id(made)] = chain

    def _before(self, chain: _Chain, x: Value) -> Call | None:
        """Return the convolution, with one group and no residual, whose result is the source of a chain alone."""
        before = self._chains.get(id(x.source))
        if before is None or before.result is not chain.source or self._uses[id(chain.source)] != 1:
            return None
        call = x.source
        assert call is not None
        return (
            call
            if call.function is channels_last.convolved and before.groups == 1 and before.residual is None
            else None
        )

    def _ready(self, chain: _Chain, like: Call) -> tuple[Value, Value | None]:
        """Return weight and bias with the changes: of a convolution packed and padded."""
        rows = chain.source.size // chain.source.shape[-1]
        packs = chain.call.function is not products.affine or 1 < rows <= _FEW_ROWS
        changes = tuple(chain.changes)
        if not packs and not changes:
            return chain.weight, chain.bias
        parts = [x for change in changes for x in change]
        key = (
            packs,
            id(chain.weight),
            id(chain.bias),
            chain.groups,
            *[id(x) if isinstance(x, Value) else x for x in parts],
        )
        if key not in self._prepared:
            outputs, name = chain.weight.shape[0], chain.weight.name or "weight"
            args = chain.weight, chain.bias, changes
            call = Call(Call.NEW, channels_last.changed, args, {}, "changed", like.line)
            sizes = [(f"{name}_changed", chain.weight.shape), (f"{name}_bias", (outputs,))]
            if packs:
                call.function, call.args = channels_last.prepared, (chain.weight, chain.bias, chain.groups, changes)
                shape_of = channels_last.packed_shape(chain.weight.shape, chain.groups)
                sizes = [(f"{name}_packed", shape_of), (f"{name}_bias", (outputs + PANEL,))]
            call.several = True
            for value in call.inputs():
                self._plain(value)
            for k, (each, of) in enumerate(sizes):
                made = new_value(of, _F32, call, k, each)
                call.outputs.append(made)
                self._there[id(made)] = made
            self.calls.append(call)
            self._prepared[key] = call.outputs
        weight, bias = self._prepared[key]
        return weight, bias

    def _images(self, x: Value, any_strides: bool, like: Call) -> Value:
        """Return images with their channels last; with `any_strides`, few channels need not lie side by side."""
        for each in self._holds(x):
            if each.dims == _IMAGES:
                return each.value
        if any_strides and x.shape[1] <= 4 and self._exists(x):
            return self._view(x, _LAST, like)
        return self._as(x, _IMAGES, like)

    def _rows(self, x: Value, like: Call) -> Value:
        """Return a value whose last dimension is contiguous."""
        if self._exists(x):
            return x
        for stored, dims in self._holds(x):
            if dims[-1] == len(dims) - 1:
                return self._view(stored, dims, like)
        return self._as(x, tuple(range(len(x.shape))), like)

    # Rules ----------------------------------------------------------------------------------------

    def convolution(self, call: Call) -> bool:
        """A convolution in two dimensions, with a weight that is the same in all calls."""
        x, w, b, *_, groups, size = call.args
        if size is not None or call.kwargs or len(w.shape) != 4:
            return False
        if not self._may_follow(x, w, b) or len(x.shape) != 4 or not call.outputs[0].size or w.shape[0] % groups:
            return False
        self._follow(_Chain(call, x, w, b, groups, _IMAGES))
        return True

    def _may_follow(self, x: Value, w: Value, b: Value | None) -> bool:
        """Return whether a product or a convolution has operands for which the kernels are written."""
        given = [each for each in (w, b) if each is not None]
        plain = all(each.dtype == _F32 for each in (x, *given)) and x.memory not in self._written
        return plain and x.size > 0 and w.size > 0 and all(map(self._is_fixed, given))

    def affine(self, call: Call) -> bool:
        """A product with a weight that is the same in all calls."""
        x, w, *rest = call.args
        b = rest[0] if rest else None
        if call.kwargs or len(w.shape) != 2 or not 2 <= len(x.shape) <= 4 or not self._may_follow(x, w, b):
            return False
        if (b is not None and b.shape != w.shape[:1]) or (self._exists(x) and x.strides[-1] != 4):
            return False
        self._follow(_Chain(call, x, w, b, 1, tuple(range(len(x.shape)))))
        return True

    def turned(self, call: Call) -> bool:
        """A view that exchanges dimensions."""
        dims = _turned(call)
        x = call.args[0]
        if dims is None or x.memory in self._written:
            return False
        if self._exists(x):
            self._as_recorded(call)
        for stored, at in self._holds(x):
            self._hold(call.outputs[0], stored, _permuted(at, dims))
        return True

    def view(self, call: Call) -> bool:
        """A view that drops or adds dimensions of size 1, or joins or splits dimensions that are contiguous."""
        x, out = call.args[0], call.outputs[0]
        if self._exists(x) or x.memory in self._written:
            return False
        for stored, dims in self._holds(x):
            kept = [d for d in dims if stored.shape[d] > 1]
            if kept == sorted(kept):  # in the order of memory
                call.replace({id(x): stored})
                out.memory, out.whole = stored.memory, False
                self.calls.append(call)
                self._there[id(out)] = out
                return True
        return False

    def mean(self, call: Call) -> bool:
        """The mean of each channel."""
        x, dim, keepdim = call.args
        wanted = call.kwargs.get("dtype") is None and type(dim) is tuple and len(x.shape) == 4 and x.dtype == _F32
        if not wanted or sorted([d % 4 for d in dim]) != [2, 3] or not self._is_last(x):
            return False
        stored = self._as(x, _IMAGES, call)
        made = self._add(Call.NEW, channels_last.means, (stored,), (x.shape[0], 1, 1, x.shape[1]), call)
        if keepdim:
            self._hold(call.outputs[0], made, _IMAGES)
        else:
            out = call.outputs[0]
            flat = Call(Call.VIEW, shape.view, (made, out.shape), {}, call.name, call.line)
            out.source, out.memory, out.whole = flat, made.memory, False
            self._enter(flat, out)
        return True

    def maximum(self, call: Call) -> bool:
        """Maxima of windows, without their indices."""
        x, windows, *_ = call.args
        plain = len(windows) == 2 and all(w.dilation and w.parts for w in windows)
        unused = len(call.outputs) == 2 and call.outputs[1] is not None and not self._uses[id(call.outputs[1])]
        if not plain or not unused or x.dtype != _F32 or len(x.shape) != 4 or not self._is_last(x):
            return False
        steps = [int(w.start[1] - w.start[0]) if w.many > 1 else 1 for w in windows]
        kernel, counts = tuple([len(w.parts) for w in windows]), tuple([w.many for w in windows])
        args = kernel, tuple(steps), tuple([-int(w.start[0]) for w in windows]), tuple([w.dilation for w in windows])
        even = [w.start[0] + s * np.arange(w.many) for w, s in zip(windows, steps, strict=True)]
        if not all(np.array_equal(w.start, each) for w, each in zip(windows, even, strict=True)):
            return False
        stored = self._as(x, _IMAGES, call)
        made = self._add(
            Call.NEW, channels_last.maxima_of, (stored, *args, counts), (x.shape[0], *counts, x.shape[1]), call
        )
        self._hold(call.outputs[0], made, _IMAGES)
        return True

    def joined(self, call: Call) -> bool:
        """Images side by side."""
        xs, dim = call.args
        if call.kwargs or any(len(x.shape) != 4 or x.dtype != _F32 for x in xs) or not all(map(self._is_last, xs)):
            return False
        stored = [self._as(x, _IMAGES, call) for x in xs]
        sizes = _permuted(call.outputs[0].shape, _LAST)
        made = self._add(Call.NEW, shape.concatenated, (stored, _LAST.index(dim % 4)), sizes, call)
        self._hold(call.outputs[0], made, _IMAGES)
        return True

    def layer_norm(self, call: Call) -> bool:
        """A norm over the last dimension."""
        x, sizes, *rest = call.args
        used = [value is not None and self._uses[id(value)] > 0 for value in call.outputs[1:]]
        if self._exists(x) and _is_contiguous(x):
            return False
        if call.kwargs or len(sizes) != 1 or any(used) or x.memory in self._written:
            return False
        for stored, dims in self._holds(x):
            if dims[-1] == len(dims) - 1:
                made = Call(Call.NEW, call.function, (stored, sizes, *rest), {}, call.name, call.line)
                made.several = True
                self._store(made, call.outputs[0], stored.shape, dims, 0)
                made.outputs += [None] * len(call.outputs[1:])
                return True
        return False

    def _is_last(self, x: Value) -> bool:
        """Return whether images exist with their channels last, and not otherwise."""
        return x.memory not in self._written and any(each.dims == _IMAGES for each in self._held.get(id(x), ()))

    def _elementwise(self, call: Call) -> bool:
        """An elementwise step, of arrays in the order in which the first one exists."""
        if call.several or len(call.outputs) != 1 or call.outputs[0].dtype != _F32:
            return False
        out, inputs = call.outputs[0], call.inputs()
        first = next((x for x in inputs if x.shape == out.shape and not self._exists(x)), None)
        if first is None or any(x.memory in self._written for x in inputs):
            return False
        dims = self._holds(first)[0].dims
        rank = len(dims)
        if any(len(x.shape) not in (0, rank) for x in inputs):
            return False
        by = {id(x): self._as(x, dims, call) for x in inputs if x.shape}
        function, args = function_of(call)
        args, sizes = replaced(args, by), _permuted(out.shape, _inverse(dims))
        if function is np.multiply and len(inputs) == len(args) == 2 and rank == 4 and not call.kwargs:
            x, factors = sorted(args, key=lambda each: -each.size)
            if factors.shape == (sizes[0], 1, 1, sizes[3]) != sizes == x.shape:
                made = self._add(Call.NEW, channels_last.scaled, (x, factors), sizes, call)
                self._hold(out, made, dims)
                return True
        step = Call(Call.NEW, call.function, replaced(call.args, by), call.kwargs, call.name, call.line)
        self._hold(out, self._enter(step, new_value(sizes, out.dtype, step, name=out.name)), dims)
        return True


def _turned(call: Call) -> tuple[int, ...] | None:
    """Return the order of dimensions of a view that exchanges them, else None."""
    if call.kind != Call.VIEW or call.kwargs or not call.args or not isinstance(call.args[0], Value):
        return None
    rank = len(call.args[0].shape)
    if call.function is shape.permute:
        dims = call.args[1]
        return tuple([d % rank for d in dims]) if type(dims) is tuple and len(dims) == rank else None
    if call.function is shape.transpose and rank:
        order = list(range(rank))
        a, b = call.args[1] % rank, call.args[2] % rank
        order[a], order[b] = b, a
        return tuple(order)
    return None


extend(conv.convolution, inference=_Rewriter.convolution)
extend(products.affine, inference=_Rewriter.affine)
extend(shape.permute, shape.transpose, inference=_Rewriter.turned)
extend(shape.view, inference=_Rewriter.view)
extend(reduce.mean_over, inference=_Rewriter.mean)
extend(pool.max_pool, inference=_Rewriter.maximum)
extend(shape.concatenated, inference=_Rewriter.joined)
extend(layer_norm.layer_norm_over, inference=_Rewriter.layer_norm)


__all__ = ["applies", "rewritten"]
