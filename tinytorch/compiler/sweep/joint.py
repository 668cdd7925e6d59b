"""Joint programs: the recorded steps of several runs of one program, computed at once on stacks of their arrays.

Runs can be joined if they recorded the same steps: the same kernels on arrays of the same shapes. A value that is the
same array in all runs, such as a data set, is shared; any other one becomes a stack, whose first dimension counts the
runs. Elementwise steps, views and products of stacks are single calls; any other kernel is called once per run, which
still saves what surrounds it. An optimizer updates the parameters of all runs that have the same options by one call.

The arrays of what changes, the parameters and the state of optimizers, move into stacks: `tensor._array` is then a
view of one. Where anybody else refers to the memory of a tensor, it is copied before and after each step instead.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tinytorch.compiler import lowering
from tinytorch.compiler.backward import marks_of, put_back
from tinytorch.compiler.fusing import function_of, is_elementwise
from tinytorch.compiler.program import Program, line_of, written
from tinytorch.compiler.recorder import WIDE, Call, Memory, Value, expression, mapped, parts_of
from tinytorch.compiler.sweep.comparison import Comparison, NotJoined, PerRun, Steps, value_of
from tinytorch.compiler.sweep.updates import Update, address, whole_of
from tinytorch.core.facts import extend, fact
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import attention, loss, native, parallel, products, programs, reduce, shape, stacked
from tinytorch.kernels.programs import Bailout
from tinytorch.kernels.random import Source


class Unable(Exception):
    """Raised where the runs cannot make a step jointly, such as where a value decides what is done; nothing is done."""


class _Leaves:
    """The tensors of all runs that are one leaf, as the function of a step that sets their gradients."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = tensors
        self.waits = False  # whether gradients are kept here, to be set later
        self._kept: tuple[Any, int] | None = None

    def set_kept(self) -> None:
        """Set the gradients that have been kept."""
        kept, self._kept, self.waits = self._kept, None, False
        if kept is not None:
            self.set_gradients(*kept)

    def set_gradients(self, stack: Any, version: int) -> None:
        """Set the gradients; None clears them."""
        if self.waits:
            self._kept = stack, version
            return
        if stack is None:
            for leaf in self.tensors:
                leaf._grad = None
        elif stack.ndim == 1 or version:
            for k, leaf in enumerate(self.tensors):
                leaf._grad = written(stack[k, ...], version)
        else:
            for leaf, array in zip(self.tensors, stack, strict=True):
                leaf._grad = wrap(array)


class _Program(Program):
    """A program of joined steps, whose inputs all exist before a step begins."""

    def _write_gradient(self, call: Call) -> None:
        value, leaves = call.args[0], call.function
        version = call.kwargs["version"] if self.final[id(leaves)] is call else 0
        shown = None if value is None else self.name(value)
        self._lines.append(f"{self._object(leaves.set_gradients, 'set_gradients')}({shown}, {version})")

    def _write_call(self, number: int, call: Call) -> None:
        if call.kind == Call.STATE and call.args:
            self._lines.append(self._call(call))
        else:
            super()._write_call(number, call)


class Joint:
    """The joint program of several runs.

    Args:
        steps: what each run recorded.
        holders: for each run, a function that returns the number of references to an array that the run's programs
            hold, and takes a new array to replace it.

    Attributes:
        count: the number of runs.
        source: the source of the program.

    Raises:
        NotJoined: the runs are too different.
    """

    def __init__(self, steps: Sequence[Steps], holders: Sequence[Any]) -> None:
        self.count, self._holders = len(steps), holders
        comparison = Comparison(steps)
        self._all, self._compared = steps, comparison
        first = steps[0]
        self._new: dict[int, Value] = {}  # by id of the first run's values, the stacks
        self._memories: dict[Memory, Memory] = {}
        self._distances: dict[Memory, int] = {}  # bytes from one run to the next in a stack
        self._keep: list[Any] = [first]
        self._numbers = {id(call): number for number, call in enumerate(first.calls)}
        self._grads: dict[int, Value | None] = {}  # by place of leaves, their current gradients
        self._written = self._find_written(first)
        self._find_stacked(first)
        self._given: Sequence[Sequence[Any]] = ()
        self._views: dict[int, tuple[int, Any]] = {}  # by place of a result, the input of which it is a view
        #: Places of inputs that are copied before each step, their stacks, and whether they are copied back; and those
        #: of which a call was given the parts of a stack, which is used as it is.
        self._copied: list[tuple[int, Any, bool]] = []
        self._whole: dict[int, Any] = {}
        inputs, arrays = self._take_inputs(first)
        self.calls: list[Call] = []
        self._updates: list[Update] = []
        leaves = {
            id(call.function): value_of(first, call.function) for call in first.calls if call.kind == Call.GRADIENT
        }
        self._leaves = {
            key: (value.place, _Leaves([v.tensor for v in comparison.values[id(value)]]))
            for key, value in leaves.items() if value is not None
        }  # fmt: skip
        for calls in zip(*[each.calls for each in steps], strict=True):
            self._step(calls)
        self._seen = any(call.kind == Call.STATE and not call.args for call in self.calls)
        if not self._seen:  # nobody sees earlier gradients
            last = {id(call.function): call for call in self.calls if call.kind == Call.GRADIENT}
            self.calls = [call for call in self.calls if call.kind != Call.GRADIENT or last[id(call.function)] is call]
        results = [self._value(value) for value in first.results]
        self._shared_results = [not self._is_stacked(value) for value in first.results]
        self.program = _Program(self.calls, inputs, list(first.bound), results, first.views)
        self._effect = self.program.effect
        sources = [x for call in self.calls for x in _sources(call)]
        checks = any(call.kind == Call.TRUTH for call in self.calls)
        self._sources = list(dict.fromkeys(sources)) if checks else []
        self.source = self.program.finish()
        self._function = self.program.binding(arrays)()

    # Inputs ---------------------------------------------------------------------------------------

    def _find_written(self, first: Steps) -> set[Memory]:
        """Return the memory that exists before the steps and is written to."""
        written = {call.args[0].memory for call in first.calls if call.kind == Call.WRITE}
        for call in first.calls:
            if call.kind == Call.STATE:
                optimizer = getattr(call.function, "__self__", None)
                for group in getattr(optimizer, "param_groups", ()):
                    for p in group["params"]:
                        value = value_of(first, p)
                        if value is not None:
                            written.add(value.memory)
        return written

    def _find_stacked(self, first: Steps) -> None:
        """Find the memory that differs between runs."""

        def differs(value: Value) -> bool:
            return any(other.array is not value.array for other in self._compared.values[id(value)])

        stacked_memory = {
            value.memory for value, stays in zip(first.inputs, first.bound, strict=True)
            if value.memory in self._written or not stays or differs(value)
        }  # fmt: skip
        while True:
            before = len(stacked_memory)
            for call in first.calls:
                for value in call.inputs():
                    if value.constant and differs(value) and not _equal(self._compared.values[id(value)]):
                        stacked_memory.add(value.memory)
                if call.kind in (Call.GRADIENT, Call.STATE, Call.TRUTH):
                    continue
                if call.random or any(value.memory in stacked_memory for value in call.inputs()) or self._varies(call):
                    made = [call.args[0]] if call.kind == Call.WRITE else [v for v in call.outputs if v is not None]
                    stacked_memory.update(value.memory for value in made)
            if len(stacked_memory) == before:
                break
        self._stacked = stacked_memory

    def _varies(self, call: Call) -> bool:
        """Return whether an argument of a step that is no array differs between runs."""
        number = self._numbers[id(call)]
        calls = [steps.calls[number] for steps in self._all]
        xs = zip(*[(*each.args, *each.kwargs.values()) for each in calls], strict=True)
        return any(type(part) is PerRun for x in xs for part in parts_of(self._compared.argument(x)))

    def _is_stacked(self, value: Value) -> bool:
        return value.memory in self._stacked

    def _take_inputs(self, first: Steps) -> tuple[list[Value], list[Any]]:
        """Return the inputs of the program, and their arrays."""
        inputs, arrays = [], []
        memories = [value.memory for value in first.inputs]
        if any(memories.count(memory) > 1 for memory in self._written):
            raise NotJoined("an input that is written to shares memory with another one")
        self._moved: list[tuple[Tensor, Any]] = []  # tensors whose arrays are in stacks
        for place, value in enumerate(first.inputs):
            inputs.append(self._value(value))
            if not self._is_stacked(value):
                arrays.append(value.tensor._array)  # type: ignore[union-attr]
                continue
            values = self._compared.values[id(value)]
            tensors: list[Any] = [v.tensor for v in values]
            own = value.tensor is not None and _are_apart([x._array for x in tensors])
            if value.memory in self._written and not own:
                raise NotJoined("a tensor that is written to belongs to several runs")
            stack = self._adopted(tensors) if first.bound[place] and own else None
            if stack is None:
                stack = stacked.stack_like(_array_like(value), self.count)
                self._copied.append((place, stack, value.memory in self._written))
                shown = [k for k in first.views if first.results[k].memory is value.memory]
                self._views.update(dict.fromkeys(shown, (place, stack)))
                if shown and stack.strides[1:] != value.strides:
                    raise NotJoined("a result is a view of an input with gaps")
            inputs[-1].strides = stack.strides
            if first.bound[place]:
                arrays.append(stack)
        return inputs, arrays

    def _adopted(self, tensors: Sequence[Any], owned: bool = False) -> Any:
        """Return the stack that holds the arrays of tensors, after moving them there; None if it is not possible.

        With `owned` it is known that nobody else refers to the arrays.
        """
        stack = existing(tensors)
        if stack is None:
            arrays = [x._array for x in tensors]
            for k in range(0 if owned else len(arrays)):
                held = self._holders[k].count(arrays[k]) + 2  # and the tensor, and this list
                if not _is_alone(arrays[k]) or _counted(arrays, k) - _UNCOUNTED > held:
                    return None
            stack = stacked.stack_like(arrays[0], self.count)
            for k, (x, array) in enumerate(zip(tensors, arrays, strict=True)):
                stack[k] = array
                x._array = stack[k, ...]
                self._holders[k].replace(array, x._array)
        self._moved += [(x, x._array) for x in tensors]
        return stack

    # Values ---------------------------------------------------------------------------------------

    def _value(self, value: Value) -> Value:
        """Return the value of the joint program that corresponds to one of the first run."""
        found = self._new.get(id(value))
        if found is None:
            found = self._new[id(value)] = self._new_value(value)
            self._keep.append(value)
        return found

    def _new_value(self, value: Value) -> Value:
        memory = self._memories.setdefault(value.memory, Memory())
        shape, strides = value.shape, value.strides
        if self._is_stacked(value):
            distance = self._distances.setdefault(value.memory, value.size * value.dtype.itemsize)
            shape, strides = (self.count, *shape), (distance, *strides)
        made = Value(shape, value.dtype, strides, memory, value.whole, None, None, value.place, value.name)
        if not self._is_stacked(value):
            made.array, made.initial, made.fills, made.tensor = value.array, value.initial, value.fills, value.tensor
        elif value.constant:
            values = self._compared.values[id(value)]
            made.array = np.stack([v.array for v in values])
            made.fills = value.fills
            if value.initial is not None:
                made.initial = np.stack([v.initial for v in values])
            if made.array.strides[1:] != value.strides:
                raise NotJoined("a constant is not contiguous")
        return made

    # Steps ----------------------------------------------------------------------------------------

    def _add(self, kind: int, function: Any, args: Sequence[Any], like: Call, name: str = "") -> Call:
        call = Call(kind, function, tuple(args), {}, name or like.name, like.line)
        self.calls.append(call)
        return call

    def _finish(self, call: Call, like: Call) -> None:
        """Give a step the results of the first run's step."""
        call.several = like.several
        for k, value in enumerate(like.outputs):
            made = None if value is None else self._value(value)
            call.outputs.append(made)
            if made is not None:
                made.source, made.output = call, (k if like.several else None)

    def _write(self, function: Any, args: Sequence[Any], like: Call, kind: int = Call.NEW) -> bool:
        """Add a step with the results of the first run's step, and return True."""
        self._finish(self._add(kind, function, args, like), like)
        return True

    def _step(self, calls: Sequence[Call]) -> None:
        call = calls[0]
        if call.kind == Call.GRADIENT:
            place, leaves = self._leaves.get(id(call.function), (None, None))
            value = None if call.args[0] is None else self._value(call.args[0])
            if place is not None:
                if value is not None and not self._is_stacked(call.args[0]):
                    raise NotJoined("a gradient is the same in all runs")
                self._grads[place] = value
                self.calls.append(Call(Call.GRADIENT, leaves, (value,), call.kwargs, "grad"))
            return
        if call.kind == Call.STATE:
            self._state(calls)
            return
        args = [self._compared.argument(x) for x in zip(*[each.args for each in calls], strict=True)]
        kwargs = {key: self._compared.argument([each.kwargs[key] for each in calls]) for key in call.kwargs}
        whole = Call(call.kind, call.function, tuple(args), kwargs, call.name)
        made = [call.args[0]] if call.kind in (Call.WRITE, Call.TRUTH) else [v for v in call.outputs if v is not None]
        if not any(self._is_stacked(value) for value in made):
            copy = self._add(call.kind, call.function, [self._replaced(x) for x in args], call)
            copy.kwargs = {key: self._replaced(x) for key, x in kwargs.items()}
            copy.counts = call.counts
            self._finish(copy, call)
        elif call.kind == Call.TRUTH:
            self._add(Call.TRUTH, stacked.all_hold, [self._value(args[0]), args[1]], call)
        elif call.kind == Call.VIEW:
            if self._view(whole, call):
                return
            self._each(stacked.views_of if call.several else stacked.view_of, whole, call)
        elif call.kind == Call.WRITE:
            if not self._elementwise(whole, call):
                self._each(stacked.on_each, whole, call)
        else:
            function, _ = function_of(call)
            rule = fact(function, "joint")
            if not (rule is not None and rule(self, whole, call)) and not self._elementwise(whole, call):
                self._each(stacked.several if call.several else stacked.each, whole, call)

    def _replaced(self, x: Any) -> Any:
        return mapped(lambda each: self._value(each) if isinstance(each, Value) else each, x)

    def _elementwise(self, whole: Call, call: Call) -> bool:
        """Write an elementwise step of stacks; return whether it is one."""
        copies = call.kind == Call.WRITE and call.function is programs.copy_into
        if not (is_elementwise(call) or copies) or call.several or call.random or _values_in(call.kwargs.values()):
            return False
        function, args = function_of(whole)
        if function is np.matmul or any(type(x) in (tuple, list) for x in args):
            return False
        if not isinstance(function, np.ufunc) and not copies:
            shapes = {x.shape for x in call.inputs()}
            if len(shapes) > 1 or not all(map(self._is_stacked, call.inputs())):
                return False  # (such a function takes arrays of one shape)
        target = call.args[0] if call.kind == Call.WRITE else call.outputs[0]
        if not self._is_stacked(target):
            return False
        ndim = len(target.shape) + 1
        operands: list[Any] = []
        for x in args:
            if type(x) is PerRun:
                dtype = next(v.dtype for v in call.inputs())
                if not isinstance(function, np.ufunc) or dtype.kind != "f":
                    return False
                array = np.array(x.values, dtype).reshape(self.count, *[1] * (ndim - 1))
                x = Value(array.shape, dtype, array.strides, Memory(), True)
                x.array = array
            elif isinstance(x, Value):
                x = self._aligned(x, ndim, call)
            operands.append(x)
        large = target.size * self.count >= parallel.LARGE and call.kind == Call.NEW and not call.kwargs
        if large and all(isinstance(x, Value) and x.shape == (self.count, *target.shape) for x in operands):
            made = self._add(call.kind, parallel.blockwise, [function, *operands], call)
        else:
            made = self._add(call.kind, function, operands, call)
        made.counts, made.kwargs = call.counts, call.kwargs
        self._finish(made, call)
        return True

    def _aligned(self, x: Value, ndim: int, like: Call) -> Value:
        """Return a value such that it broadcasts with stacks of `ndim` dimensions."""
        value = self._value(x)
        if not self._is_stacked(x) or len(value.shape) == ndim:
            return value
        view = self._add(Call.VIEW, stacked.aligned, [value, ndim], like, value.name or "aligned")
        shape = (self.count, *[1] * (ndim - len(value.shape)), *x.shape)
        made = Value(shape, x.dtype, (), value.memory, False, view)
        view.outputs.append(made)
        return made

    def _as_it_is(self, whole: Call, call: Call) -> bool:
        """Write a step whose kernel takes stacks as well."""
        return self._write(call.function, [self._replaced(x) for x in whole.args], call)

    def _loss(self, whole: Call, call: Call) -> bool:
        """Write a loss that is elementwise before it is reduced."""
        x, y, *others = whole.args
        if whole.kwargs or others[0] == "none" or x.shape != y.shape or x.dtype != y.dtype or x.dtype.itemsize < 4:
            return False
        if not (self._is_stacked(x) and self._is_stacked(y)) or not all(type(each) in (str, float) for each in others):
            return False
        return self._write(stacked.loss, [call.function, self._value(x), self._value(y), *others], call)

    def _reduction(self, whole: Call, call: Call) -> bool:
        """Write a sum or a mean."""
        x, dim, keepdim = whole.args
        if not native.instructions:  # the order of the sums depends on the shape
            return False
        if x.dtype not in WIDE or 0 in x.shape or not x.shape:
            return False
        args = [call.function, self._value(x), dim, keepdim, whole.kwargs.get("dtype")]
        return self._write(stacked.over, args, call)

    def _matrices(self, whole: Call, call: Call, a_turned: bool = False, b_turned: bool = False) -> bool:
        """Write the product of matrices."""
        a, b = call.args
        if len(a.shape) != 2 or len(b.shape) != 2 or not _are_factors(a, b):
            return False
        return self._write(stacked.matrices, [self._value(a), self._value(b), a_turned, b_turned], call)

    def _affine(self, whole: Call, call: Call) -> bool:
        """Write a product with a weight, plus a bias."""
        x, weight, bias = call.args
        if len(x.shape) < 2 or len(weight.shape) != 2 or not _are_factors(x, weight):
            return False
        if bias is not None and (len(bias.shape) != 1 or bias.dtype != x.dtype):
            return False
        if len(x.shape) > 2 and not (x.whole and self._is_stacked(x)):
            return False
        return self._write(stacked.affine, [self._replaced(each) for each in call.args], call)

    def _concatenated(self, whole: Call, call: Call) -> bool:
        """Write arrays one after another."""
        xs, dim = whole.args
        if whole.kwargs or not all(map(self._is_stacked, xs)) or len({x.dtype for x in xs}) > 1:
            return False
        if len({len(x.shape) for x in xs}) > 1:  # (an empty vector may stand among larger arrays)
            return False
        return self._write(shape.concatenated, [[self._value(x) for x in xs], _shifted(dim)], call)

    def _folded(self, whole: Call, call: Call) -> bool:
        """Write a step whose kernel treats the elements of a batch independently."""
        values = call.inputs()
        if whole.kwargs or any(len(x.shape) < 3 or x.shape[0] != values[0].shape[0] for x in values):
            return False
        if (
            not all(map(self._is_stacked, values))
            or call.random
            or (call.function is attention.attention and call.args[3])
        ):
            return False
        return self._write(stacked.folded, [call.function, *[self._replaced(x) for x in whole.args]], call)

    def _view(self, whole: Call, call: Call) -> bool:
        """Write a view whose kernel takes stacks as well."""
        x, *others = whole.args
        if call.several or whole.kwargs or not isinstance(x, Value) or _values_in(others):
            return False
        if call.function in (shape.view, shape.unsafe_view):
            args: list[Any] = [(self.count, *others[0])]
        elif call.function is shape.transpose:
            args = [_shifted(dim) for dim in others]
        elif call.function is shape.permute:
            args = [(0, *[_shifted(dim) for dim in others[0]])]
        elif call.function is shape.part:
            key = others[0]
            args = [(slice(None), *(key if type(key) is tuple else (key,)))]
        else:
            return False
        return self._write(call.function, [self._value(x), *args], call, Call.VIEW)

    def _each(self, caller: Any, whole: Call, call: Call) -> None:
        """Write a step that calls the kernel once per run."""
        values = list(dict.fromkeys(call.inputs()))
        # A view is one of the first array, a write is one into it.
        values.sort(key=lambda value: not (self._is_stacked(value) and value is _first_stacked(self, call)))
        function = self._text_of_one(whole, values)
        args = [function, self.count, *[self._value(value) for value in values]]
        if call.kind == Call.WRITE:  # (the program's first argument of a write is what it writes to)
            write = functools.partial(caller, function, self.count)
            write.sources = function.sources  # type: ignore[attr-defined]
            made = self._add(Call.WRITE, write, args[2:], call)
            made.counts = call.counts
        else:
            made = self._add(call.kind, caller, args, call)
        made.random = call.random
        self._finish(made, call)

    def _text_of_one(self, whole: Call, values: Sequence[Value]) -> Callable[..., Any]:
        """Return a function `(k, *arrays)` that calls the kernel with the arguments of run `k`."""
        scope: dict[str, Any] = {"kernel": whole.function}
        names = {id(value): f"x{j}" for j, value in enumerate(values)}

        def text(x: Any) -> str:
            if isinstance(x, Value):
                return f"{names[id(x)]}[k, ...]" if self._is_stacked(x) else names[id(x)]
            name = f"c{len(scope)}"
            scope[name] = x.values if type(x) is PerRun else x
            return f"{name}[k]" if type(x) is PerRun else name

        args = [expression(x, text) for x in whole.args]
        args += [f"{key}={expression(x, text)}" for key, x in whole.kwargs.items()]
        source = f"lambda k, {''.join([f'{name}, ' for name in names.values()])}: kernel({', '.join(args)})"
        function: Callable[..., Any] = eval(source, scope)
        function.__name__ = lowering.named(whole.function, whole.name)
        drawn = [x for x in parts_of([*scope.values()]) if isinstance(x, Source)]
        function.sources = drawn  # type: ignore[attr-defined]
        return function

    # Optimizers -----------------------------------------------------------------------------------

    def _state(self, calls: Sequence[Call]) -> None:
        call = calls[0]
        optimizers = [getattr(each.function, "__self__", None) for each in calls]
        if getattr(call.function, "__name__", "") == "step" and Update.applies(optimizers):
            first, places = self._all[0], {}
            for value in first.inputs:
                places[id(value.tensor)] = value.place
            params = [p for group in optimizers[0].param_groups for p in group["params"]]  # type: ignore[union-attr]
            if all(id(p) in places for p in params):
                grads = [self._grads.get(places[id(p)]) for p in params]  # type: ignore[arg-type]
                earlier = [k for k, p in enumerate(params) if places[id(p)] not in self._grads]
                stacks = [self._value(first.inputs[places[id(p)]]) for p in params]  # type: ignore[index]
                present = [(p._grad if k in earlier else grads[k]) is not None for k, p in enumerate(params)]
                if earlier:  # (the program may have written to these gradients)
                    self._add(Call.STATE, self._copy_back, (), call, "copy_back")
                adopted = functools.partial(self._adopted, owned=True)
                update = Update(optimizers, present, adopted, earlier, [each.function for each in calls])
                self._updates.append(update)
                self._add(Call.STATE, update, [*stacks, *[g for g in grads if g is not None]], call, "update")
                return
        functions = [each.function for each in calls]

        def step() -> None:
            self._copy_back()
            for function in functions:
                function()
            self._copy_in()

        self._add(Call.STATE, step, (), call, call.name)

    # Running --------------------------------------------------------------------------------------

    def is_valid(self) -> bool:
        """Return whether the arrays of tensors still lie in the stacks."""
        moved = all(x._array is array for x, array in self._moved)
        return moved and all(update.is_valid() for update in self._updates)

    def is_current(self) -> bool:
        """Return whether `is_valid` still holds after a step that is followed by no other Python."""
        return not any(update.stale for update in self._updates)

    def _arrays_of(self, place: int) -> list[Any]:
        """Return the arrays of an input in all runs."""
        first = self._all[0]
        if first.bound[place]:
            return [steps.inputs[place].tensor._array for steps in self._all]  # type: ignore[union-attr]
        number = place - sum(first.bound[:place])  # among those that change
        return [arrays[number] for arrays in self._given]

    def _copy_in(self) -> list[Any]:
        """Copy the inputs that are not in stacks of their own, and return the stacks of those that change."""
        self._whole, changing = {}, []
        for place, stack, _ in self._copied:
            arrays, stays = self._arrays_of(place), self._all[0].bound[place]
            whole = None if stays else whole_of(arrays, stack)
            if whole is None:
                for k, array in enumerate(arrays):
                    stack[k] = array
            else:
                self._whole[place] = whole
            if not stays:
                changing.append(stack if whole is None else whole)
        return changing

    def _copy_back(self) -> None:
        """Copy what has been written to such inputs."""
        for place, stack, changed in self._copied:
            if changed and place not in self._whole:
                for array, new in zip(self._arrays_of(place), stack, strict=True):
                    array[...] = new

    def set_gradients(self) -> None:
        """Set the gradients of the last step, if they have not been set."""
        for _, leaves in self._leaves.values():
            leaves.set_kept()

    def run(self, given: Sequence[Sequence[Any]], last: bool = True) -> list[tuple[Any, ...]]:
        """Make the step in all runs, and return the results of each.

        Args:
            given: for each run, the arrays of the inputs that change.
            last: whether the gradients are set: another step may follow before anybody sees them.

        Raises:
            Unable: the step has not been made; each run shall make its own.
        """
        if not last and not self._seen:
            for _, leaves in self._leaves.values():
                leaves.waits = True
        self._given = given
        marks, changing = marks_of(self._sources), None
        try:
            changing = self._copy_in()
            results = self._function(*changing)
        except Exception as error:
            if changing is not None and line_of(error) >= self._effect and not isinstance(error, Bailout):
                raise
            put_back(self._sources, marks)
            raise Unable from error
        self._copy_back()
        if last:
            self.set_gradients()
        return [tuple([self._of_run(k, j, x) for j, x in enumerate(results)]) for k in range(self.count)]

    def _of_run(self, k: int, j: int, x: Any) -> Any:
        """Return a run's part of a result, of which the number is given."""
        if self._shared_results[j]:
            return x if j in self._all[0].views else x.copy()
        part = x[k, ...]
        if j not in self._views or self._views[j][0] in self._whole:
            return part
        place, stack = self._views[j]
        array = self._arrays_of(place)[k]
        order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
        where = address(part) - address(stack[k, ...])
        return np.ndarray(part.shape, part.dtype, array.transpose(order), where, part.strides)


extend(products.mm, joint=Joint._matrices)
extend(products.mm_nt, joint=functools.partial(Joint._matrices, b_turned=True))
extend(products.mm_tn, joint=functools.partial(Joint._matrices, a_turned=True))
extend(products.affine, joint=Joint._affine)
extend(programs.laid_out, shape.contiguous, shape.clone, joint=Joint._as_it_is)
extend(shape.concatenated, joint=Joint._concatenated)
extend(attention.attention, attention.attention_grad, joint=Joint._folded)
extend(reduce.sum_over, reduce.mean_over, joint=Joint._reduction)
extend(loss.mse_loss, loss.huber_loss, loss.smooth_l1_loss, loss.soft_margin_loss, joint=Joint._loss)


def _counted(arrays: Sequence[Any], k: int) -> int:
    """Return the number of references to an array of a list, of which `_UNCOUNTED` are those of this call."""
    return sys.getrefcount(arrays[k])


def _counted_of_base(view: Any) -> int:
    """Return the same of the array of which an array is a view."""
    return sys.getrefcount(view.base)


# Whether variables and arguments own references depends on the version of Python.
_UNCOUNTED = _counted([np.empty(1)], 0) - 1
_UNCOUNTED_OF_BASE = _counted_of_base(np.empty(2)[:1]) - 1
if not getattr(sys, "_is_gil_enabled", lambda: True)():  # other threads may change a count while it is read
    _UNCOUNTED = _UNCOUNTED_OF_BASE = -(1 << 62)


def _is_alone(array: Any) -> bool:
    """Return whether an array owns its memory, or nobody else refers to the array of which it is a view."""
    base = array.base
    if base is None:
        return True
    plain = type(base) is np.ndarray and base.base is None
    del base
    return plain and _counted_of_base(array) - _UNCOUNTED_OF_BASE == 1


def _are_apart(arrays: Sequence[Any]) -> bool:
    """Return whether no two arrays overlap in memory."""
    ends = sorted(map(byte_bounds, arrays))
    return all(high <= low for (_, high), (low, _) in itertools.pairwise(ends))


def _array_like(value: Value) -> Any:
    """Return an array laid out as a value."""
    if value.array is not None:
        return value.array
    try:
        return np.ndarray(value.shape, value.dtype, strides=value.strides)
    except ValueError:  # it has gaps
        return np.empty(value.shape, value.dtype)


def existing(tensors: Sequence[Any]) -> Any:
    """Return the stack whose elements are the arrays of tensors, or None."""
    base = tensors[0]._array.base
    if type(base) is not np.ndarray or base.shape != (len(tensors), *tensors[0]._array.shape):
        return None
    at = address(base)
    for k, x in enumerate(tensors):
        array = x._array
        if array.base is not base or address(array) != at + k * base.strides[0] or array.strides != base.strides[1:]:
            return None
    return base


def _are_factors(a: Value, b: Value) -> bool:
    """Return whether arrays are floats of one dtype, of more than one element each."""
    return a.dtype in WIDE and a.dtype == b.dtype and a.size > 1 and b.size > 1


def _shifted(dim: int) -> int:
    """Return the place of a dimension in a stack."""
    return dim if dim < 0 else dim + 1


def _values_in(xs: Any) -> bool:
    """Return whether there are arrays among arguments."""
    return any(type(x) is Value for x in parts_of([*xs]))


def _first_stacked(joint: Joint, call: Call) -> Value:
    return next(value for value in call.inputs() if joint._is_stacked(value))


def _equal(values: Sequence[Value]) -> bool:
    """Return whether a small constant has the same elements in all runs."""
    first = values[0].array if values[0].initial is None else values[0].initial
    others = [v.array if v.initial is None else v.initial for v in values[1:]]
    return first.size < 1024 and all(first.tobytes() == other.tobytes() for other in others)


def _sources(call: Call) -> list[Source]:
    """Return the sources of random numbers that a step draws from."""
    return [x for each in (call.function, *call.args) for x in getattr(each, "sources", [])] if call.random else []


__all__ = ["Joint", "Unable", "existing"]
