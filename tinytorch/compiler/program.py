"""The program: Python source generated from the recorded steps, with buffers that are allocated once.

The source is a function `bind`, which takes the arrays that stay the same (parameters, constants), allocates buffers
and views of them, and returns `step`, which takes the arrays that change from call to call and returns the results.
"""

from __future__ import annotations

import collections
import itertools
import keyword
import linecache
import re
import sys
import traceback
import weakref
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from tinytorch.compiler import cache, fusing, lowering
from tinytorch.compiler.arena import Arena
from tinytorch.compiler.recomputing import recomputed
from tinytorch.compiler.recorder import Call, Memory, NotRecorded, Value, expression, memories_written, replaced
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import elementary, parallel
from tinytorch.kernels.programs import as_array, laid_out
from tinytorch.kernels.random import Source
from tinytorch.kernels.silence import quiet

FILE = "<compiled step"  # prefix of the file names of programs
_numbers = itertools.count()
_gone: list[str] = []  # files of freed programs, deleted later since `linecache` may be iterating over its entries
LARGE = 2**16  # size in bytes from which an array is deleted after its last use
#: Names of a saved module, and the builtins that it calls, which the source of its program does not use otherwise.
RESERVED = frozenset(
    """
    Path arrays buffers checked functools gradients importlib kernel load_state_dict others package parameters path
    program state_dict sys types
    """.split()
) | {builtin.__name__ for builtin in (all, float, isinstance, iter, len, list, next, range, tuple, zip)}


#: The name of the batch size in a program for batches of any size.
BATCH = "n"


class Multiple(int):
    """A number that depends on the batch size; it equals another one with the same expression only."""

    text: str

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return type(other) is Multiple and self.text == other.text

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.text)


class Layout(NamedTuple):
    """How the source of a program is called.

    Attributes:
        inputs: the names of the inputs: arguments of `bind`, or, if they change from call to call, of `step`.
        constants: the further arguments of `bind`, by name.
        tensors: the names of the further arguments of `step`: the inputs whose tensor is needed besides the array.
        results: the names of the results.
        gradients: by index of a line of the source, the name of the tensor whose `.grad` the line sets, and the name of
            the gradient, or None.
    """

    inputs: list[str]
    constants: dict[str, Any]
    tensors: list[str]
    results: list[str]
    gradients: dict[int, tuple[str, str | None]]


class Program:
    """The source of a recorded call, and the objects that it refers to.

    Args:
        calls: the steps.
        inputs: the values that exist before the call; `bound` says for each whether it is the same in all calls.
        results: the values to return.
        views: indices of results that are meant to be views of an input.
        restores: whether the caller restores the sources of random numbers after an error.
        frozen: whether what depends on bound inputs alone is computed once, in `bind`, which the caller calls again
            when one of them has been written to; buffers then share one block of memory.

    Attributes:
        source: the Python source.
        file: the file name under which tracebacks find it.
        bytes: the size of the buffers.
        peak: the largest size of the buffers and of arrays allocated in a call.
        batch: the batch size with which it was recorded, if it is for batches of any size.
        lends: whether gradients that are replaced before the end lie in buffers: after an error the user may hold them.
        scope: the globals of the source, by name.
        layout: how the source is called.
    """

    def __init__(
        self, calls: list[Call], inputs: list[Value], bound: list[bool], results: list[Value],
        views: Collection[int] = (), restores: bool = False, frozen: bool = False,
    ) -> None:  # fmt: skip
        self._frozen = frozen
        self.inputs, self.bound, self.results, self.views = inputs, bound, results, views
        self._restores = restores
        self.calls = self._all = lowering.lowered(calls)
        self.count = len(self.calls)
        self.scope: dict[str, Any] = {"as_array": as_array, "wrap": wrap, "written": written, "np": np}
        self.scope["__name__"] = __name__  # NumPy's warnings are off in the package
        self._names: dict[int, str] = {}  # by id of values, or of other objects
        self.batch = _batch_of(inputs)
        self._taken: set[str] = {*keyword.kwlist, *RESERVED, "bind", "slice", "step", *self.scope}
        self._taken |= {BATCH} if self.batch else set()
        self._counts: collections.Counter[str] = collections.Counter()  # suffixes in use, by name
        self._held: list[Any] = []
        self.bytes = self.peak = 0
        self.lends = False
        self.leaves: list[Value] = []  # inputs whose tensor is needed besides the array
        self.constants: list[Value] = []
        self._find_constants()
        self._drop_unused()
        self._keep_gradients()
        if any(x is not None and x.size >= parallel.LARGE for call in self.calls for x in call.outputs):
            self._treat_large()
        self._group()
        self.source = "\n".join(self._write())
        self.peak += self.bytes
        self.file = f"{FILE} {next(_numbers)}>"
        show_source(self, self.file, self.source)

    # Dependencies ---------------------------------------------------------------------------------

    def _find_constants(self) -> None:
        read = [*[value for call in self.calls for value in call.inputs()], *self.results]
        self.constants = [*dict.fromkeys([value for value in read if value.constant and value not in self.inputs])]

    def _drop_unused(self) -> None:
        """Remove calls whose results are not used, unless they may raise an error or draw random numbers."""
        used = {id(value) for value in self.results}
        kept = []
        for call in reversed(self.calls):
            if lowering.is_pure(call) and used.isdisjoint(map(id, call.outputs)):
                continue
            used.update(map(id, call.inputs()))
            kept.append(call)
        self.calls = kept[::-1]

    def _keep_gradients(self) -> None:
        """Assign gradients that are used nowhere else to leaves without a copy."""
        copies = [call for call in self.calls if call.function is laid_out]
        if not copies:
            return
        read = [*self.results, *[value for call in self.calls for value in call.inputs()]]
        uses = collections.Counter([value.memory for value in read])
        same: dict[int, Value] = {}
        for call in copies:
            g, out = call.args[0], call.outputs[0]
            made = g.source is not None and g.source.kind == Call.NEW
            if made and g.whole and uses[g.memory] == 1 and g.strides == out.strides:
                same[id(out)] = g
                g.name = g.name or out.name
        for call in self.calls:
            call.replace(same)
        self.calls = [call for call in self.calls if not (call.outputs and id(call.outputs[0]) in same)]
        self.results = replaced(self.results, same)

    def _treat_large(self) -> None:
        """Fuse elementwise steps on large arrays, and recompute some instead of keeping their results."""
        gradients = [call.args[0] for call in self.calls if call.kind == Call.GRADIENT and call.args[0] is not None]
        stay = [*self.results, *gradients]
        if not self._frozen:  # (there is no backward pass)
            self.calls = recomputed(self.calls, {value.memory for value in [*stay, *self.inputs, *self.constants]})
        self.calls = fusing.fused(self.calls, stay)

    def _group(self) -> None:
        """Find the last use of each block of memory, and the memory that is visible after the call."""
        self._last: dict[Memory, int] = {}  # the index of the last step that uses a block of memory
        for number, call in enumerate(self.calls):
            for value in [*call.inputs(), *[value for value in call.outputs if value is not None]]:
                self._last[value.memory] = number
        held: dict[int, Memory] = {}  # by leaf, the memory of its current gradient
        for number, call in enumerate(self.calls):
            if call.kind == Call.GRADIENT:
                before = held.pop(id(call.function), None)
                if before is not None:
                    self._last[before] = max(self._last[before], number)
                if call.args[0] is not None:
                    held[id(call.function)] = call.args[0].memory
        for memory in held.values():
            self._last[memory] = len(self.calls)
        self._outside = {value.memory for value in self.inputs}
        self._leaving = {value.memory for k, value in enumerate(self.results) if k not in self.views}
        self._written = memories_written(self.calls)
        # The last gradients of leaves stay alive after the call.
        self.final = {id(call.function): call for call in self.calls if call.kind == Call.GRADIENT}
        for call in self.final.values():
            if call.args[0] is not None:
                self._leaving.add(call.args[0].memory)
        fixed = {v.memory for v in self.constants if v.memory not in self._written}
        fixed |= {v.memory for v, stays in zip(self.inputs, self.bound, strict=True) if stays}
        self._fixed = fixed - self._leaving  # memory that exists before a step begins
        if set(held.values()) & {value.memory for value in self.results}:
            raise NotRecorded("a gradient is returned that is also the `.grad` of a leaf")
        if self._leaving & self._outside:
            raise NotRecorded("a result shares memory with an input")

    def is_fixed(self, value: Value) -> bool:
        """Return whether a value's memory exists before a step begins."""
        return value.memory in self._fixed

    # Writing --------------------------------------------------------------------------------------

    def name(self, value: Value) -> str:
        """Return the name of a value."""
        found = self._names.get(id(value))
        if found is None:
            source = value.source
            wish = value.name or (source.name if source is not None else "constant")
            found = self._names[id(value)] = self._new_name(wish)
            self._held.append(value)
        return found

    def _new_name(self, wish: str) -> str:
        if not wish.isidentifier():
            wish = re.sub(r"\W", "_", wish)
        wish = wish.strip("_") or "x"
        if wish[0].isdigit():
            wish = f"x{wish}"
        name = wish
        while name in self._taken:
            self._counts[wish] += 1
            name = f"{wish}_{self._counts[wish] + 1}"  # (the second one gets the suffix _2)
        self._taken.add(name)
        return name

    def _object(self, x: Any, wish: str) -> str:
        """Return the name, among the globals of the source, of an object that is not an array."""
        found = self._names.get(id(x))
        if found is None:
            found = self._names[id(x)] = self._new_name(wish)
            self.scope[found] = x
            self._held.append(x)
        return found

    def _shown(self, x: Any) -> str:
        return self._part(x) if isinstance(x, Value) else expression(x, self._part)

    def _part(self, x: Any) -> str:
        if isinstance(x, Value):
            return self._names.get(id(x)) or self.name(x)
        if type(x) is Multiple:
            return repr(x)
        return self._object(x, getattr(x, "__name__", "") or type(x).__name__.lower())

    def _call(self, call: Call, out: str | None = None) -> str:
        function = call.function
        if isinstance(function, fusing.Fused):
            return self._fused(call, function.steps)
        kwargs = [f"{key}={self._shown(x)}" for key, x in call.kwargs.items()] if call.kwargs else []
        template = lowering.TEXTS.get(function)
        if template is not None and not kwargs:
            text = template.format(*[self._shown(x) for x in call.args])
            return text if out is None else text[:-1] + f", {out})"
        args = [self._shown(x) for x in call.args] + kwargs
        if out is not None:
            args.insert(len(call.args), _out(function, out))
        name = self._names.get(id(function)) or self._object(function, lowering.named(function, call.name))
        return f"{name}({', '.join(args)})"

    def _fused(self, call: Call, steps: list[Call]) -> str:
        """Write the function that computes fused steps for a block, and return the text of its call."""
        last = {value.memory: number for number, step in enumerate(steps) for value in step.inputs()}
        given = [value for value in call.args if value.shape]
        stays = {id(value) for value in call.outputs}
        free: dict[Any, list[str]] = {}  # names of intermediate results that are not used any more, by dtype
        within: dict[str, Any] = {}
        lines: list[str] = []
        line = call.line
        for number, step in enumerate(steps):
            if step.line is not None and step.line != line:
                line = step.line
                lines.append(f"# {linecache.getline(*line).strip()}")
            function, args = fusing.function_of(step)
            text = self._object(function, lowering.named(function, step.name))
            shown = [self._shown(x) for x in args] + [f"{key}={self._shown(x)}" for key, x in step.kwargs.items()]
            for value in step.inputs():
                if last.get(value.memory) == number and self.name(value) in within:
                    free.setdefault(value.dtype, []).append(self.name(value))
                    del last[value.memory]
            out = step.outputs[0]
            if id(out) not in stays and free.get(out.dtype) and lowering.may_overwrite(function):
                self._names[id(out)] = free[out.dtype].pop()
            elif id(out) not in stays:
                within[self.name(out)] = out.dtype
            name = self.name(out)
            if parallel.has_out(function):
                lines.append(f"{text}({', '.join([*shown, _out(function, name)])})")
            else:
                lines.append(f"{name}[...] = {text}({', '.join(shown)})")
        block = self._new_name("block")
        taken = [self.name(value) for value in (*given, *call.outputs)] + [*within]
        self._definitions += [f"def {block}({', '.join(taken)}):", *[f"    {text_line}" for text_line in lines]]
        texts = [
            [self.name(value) for value in given],
            [self._object(value.dtype, value.dtype.name) for value in call.outputs],
            [self._object(dtype, dtype.name) for dtype in within.values()],
        ]
        shown = [f"({', '.join(names)}{',' if len(names) == 1 else ''})" for names in texts]
        return f"{self._object(parallel.in_blocks, 'in_blocks')}({block}, {', '.join(shown)})"

    def _write(self) -> list[str]:
        """Return the lines of the source."""
        for value in self.inputs:
            self.name(value)
        self._before: list[str] = []  # lines of `bind`
        self._lines: list[str] = []  # lines of `step`
        self._definitions: list[str] = []  # lines of functions for fused steps
        self._ends: dict[int, list[Memory]] = collections.defaultdict(list)  # by step, the memory that it uses last
        for memory, number in self._last.items():
            self._ends[number].append(memory)
        self._there = set(self._fixed)  # memory that exists after `bind`
        #: Ids of values that are the same in every step.
        self._folded = {id(v) for v in self.constants if self.is_fixed(v)}
        self._arena = Arena() if self._frozen else None
        if self._frozen:
            self._folded |= {id(v) for v in self.inputs if self.is_fixed(v) and v.memory not in self._written}
        self._free: dict[Any, list[str]] = {}  # unused buffers, by shape and dtype
        self._buffers: dict[Memory, tuple[Any, str]] = {}  # buffers in use, by memory: shape and dtype, and name
        self._made: dict[Memory, int] = {}  # live memory that calls have allocated, with its size
        self._alive = 0  # running total of these sizes
        self._large: dict[Memory, list[str]] = {}  # names of large arrays and their views, by memory
        self._gradients: dict[int, tuple[str, str | None]] = {}  # as in `Layout`, by index in `_lines`
        effect: int | None = None
        #: Sources of random numbers drawn before the last check of a truth value, or all (`restores`).
        self.sources: list[Source] = []
        drawing: list[Source] = []
        #: By memory, the indices of the lines of `step` that write to it.
        writes: dict[Memory, list[int]] = {}
        for value in self.constants:
            if not self.is_fixed(value):
                self._make_anew(value)
        line, done = None, False
        for number, call in enumerate(self.calls):
            if call.line is not None and call.line != line:
                line = call.line
                text = linecache.getline(*line).strip()
                if text:
                    self._lines.append(f"# {text}")
            if effect is None and ((call.random and not self._restores) or call.is_effect(self._outside)):
                effect = len(self._lines)
            done = done or call.is_effect(self._outside)
            drawing += call.sources()
            if call.kind == Call.TRUTH and id(call.args[0]) not in self._folded:
                if done:
                    where = "{}:{}: ".format(*call.line) if call.line is not None else ""
                    raise NotRecorded(f"{where}a tensor's value decides what is done after something was written")
                self.sources = list(dict.fromkeys(drawing))
            if call.kind == Call.WRITE and call.counts:
                writes.setdefault(call.args[0].memory, []).append(len(self._lines))
            self._write_call(number, call)
        if self._restores:
            self.sources = list(dict.fromkeys(drawing))
        if self._arena is not None:
            self.bytes, lines = self._arena.planned(self._new_name("arena"))
            self._before = lines + self._before
        inputs, results = [self.name(v) for v in self.inputs], [self.name(v) for v in self.results]
        self._lines.append(f"return ({', '.join(results)}{',' if len(results) == 1 else ''})")
        constants = {self.name(v): v.array for v in self.constants if self.is_fixed(v)}
        tensors = [f"{self.name(value)}_tensor" for value in self.leaves]
        bound = [name for name, stays in zip(inputs, self.bound, strict=True) if stays] + [*constants]
        given = [name for name, stays in zip(inputs, self.bound, strict=True) if not stays] + tensors
        first = len(self._before) + 4  # line of `step`, from 1
        gradients = {first - 1 + line: names for line, names in self._gradients.items()}
        self.layout = Layout(inputs, constants, tensors, results, gradients)
        #: The first line of the source with an effect that is visible from outside.
        self.effect = first + (len(self._lines) if effect is None else effect)
        #: By memory, the lines that write to it.
        self.writes = {memory: [first + line for line in lines] for memory, lines in writes.items()}
        return [
            f"def bind({', '.join([*bound, BATCH] if self.batch else bound)}):",
            *[f"    {line}" for line in self._before],
            "",
            f"    def step({', '.join(given)}):",
            *[f"        {line}" for line in self._lines],
            "",
            "    return step",
        ]

    def _make_anew(self, value: Value) -> None:
        """Write how a constant that is written to, or returned, is created in each step."""
        name, array = self.name(value), value.array
        initial = array if value.initial is None else value.initial
        if not value.fills and np.empty_like(initial).strides == array.strides:
            self._lines.append(f"{name} = {self._object(initial, 'initial')}.copy('K')")
            return
        dtype = self._object(array.dtype, array.dtype.name)
        made = f"np.empty({array.shape}, {dtype})"
        if array.strides != np.empty(array.shape, array.dtype).strides:  # (also in dimensions of size 1)
            made = f"np.ndarray({array.shape}, {dtype}, strides={array.strides})"
        if not value.fills:
            self._lines += [f"{name} = {made}", f"{name}[...] = {self._object(initial, 'initial')}"]
        elif value.memory in self._leaving:
            self._lines.append(f"{name} = {made}")
        else:  # (a random fill comes first, so its content does not matter)
            self._before.append(f"{name} = {made}")
            self._there.add(value.memory)

    def _write_call(self, number: int, call: Call) -> None:
        """Write a step: into `bind` if its result is the same in all calls, else into `step`."""
        if call.kind == Call.GRADIENT:
            self._write_gradient(call)
        elif call.kind == Call.STATE:
            self._lines.append(f"{self._object(call.function, call.name)}()")
        elif call.kind == Call.WRITE:
            # (An elementwise function overwrites its first operand.)
            over = lowering.may_overwrite(call.function)
            self._lines.append(self._call(call, self.name(call.args[0]) if over else None))
        elif call.kind == Call.TRUTH:
            if id(call.args[0]) not in self._folded:
                self._lines.append(self._call(call))
        elif self._is_made_once(call):
            text = self._assigned(call) + _shapes(call)
            self._before += [*self._taken_definitions(), text]
        else:
            out = self._target(number, call)
            text = (self._assigned(call) if out is None else self._call(call, out)) + _shapes(call)
            self._lines += [*self._taken_definitions(), text]
            for value in call.outputs if out is None else ():
                if value is not None:
                    self._note_made(value)
        names: list[str] = []
        for memory in self._ends[number]:
            if memory in self._buffers:
                key, name = self._buffers.pop(memory)
                if self._arena is not None:
                    self._arena.end(name, number)
                else:
                    self._free.setdefault(key, []).append(name)
            if memory in self._made and memory not in self._leaving:
                self._alive -= self._made.pop(memory)
                names += self._large.pop(memory, ())
        if names:
            self._lines.append(f"del {', '.join(names)}")

    def _taken_definitions(self) -> list[str]:
        """Return the lines of the functions that the next call needs, and clear the list."""
        found, self._definitions = self._definitions, []
        return found

    def _note_made(self, value: Value) -> None:
        """Register an array that a call allocates, or another view of that array."""
        if value.memory not in self._outside and value.memory not in self._there:
            if value.memory not in self._made:
                self._made[value.memory] = value.size * value.dtype.itemsize
                self._alive += self._made[value.memory]
                self.peak = max(self.peak, self._alive)
            if self._made[value.memory] >= LARGE:
                self._large.setdefault(value.memory, []).append(self.name(value))

    def _is_made_once(self, call: Call) -> bool:
        """Return whether the result of a call is the same in every step, since it depends on constants alone."""
        folded = not call.random and self._folded.issuperset(map(id, call.inputs()))
        made = [v for v in call.outputs if v is not None] if folded else []
        if call.kind == Call.VIEW:
            self._folded.update(map(id, made))
            return all([v.memory in self._there for v in call.inputs()])
        memories = {v.memory for v in made}
        if not folded or memories & self._written:
            return False
        self._folded.update(map(id, made))
        if memories & self._leaving or not all([v.memory in self._there for v in call.inputs()]):
            return False  # (each step returns it, or something that it is made of, as new memory)
        self._there.update(memories)
        return True

    def _target(self, number: int, call: Call) -> str | None:
        """Return the name of the array that a call writes its result into, or None if it allocates one."""
        if call.kind != Call.NEW or call.several or not (lowering.has_out(call) or lowering.shared_may_overwrite(call)):
            return None
        value = call.outputs[0]
        name = self._operand(number, call, value) or self._buffer(number, call, value)
        if name is not None:
            self._names[id(value)] = name
            self._held.append(value)
        return name

    def _operand(self, number: int, call: Call, value: Value) -> str | None:
        """Return the name of an operand that a call may overwrite, or None."""
        for x in lowering.overwritable(call) if value.whole else ():
            alike = x.whole and x.shape == value.shape and x.dtype == value.dtype
            if not alike or self._last[x.memory] != number or x.memory in self._leaving:
                continue
            if x.memory in self._large:
                self._large[value.memory] = self._large.pop(x.memory)
                self._made[value.memory] = self._made.pop(x.memory)
                return self.name(x)
            key, _ = self._buffers.get(x.memory, (None, ""))
            if key == (x.shape, x.dtype) and value.memory not in self._leaving:
                self._buffers[value.memory] = self._buffers.pop(x.memory)
                self._there.add(value.memory)
                return self._buffers[value.memory][1]
        return None

    def _buffer(self, number: int, call: Call, value: Value) -> str | None:
        """Return the name of a buffer for the result of a call, or None if the result must not lie in a buffer."""
        if value.memory in self._leaving or not value.whole or not lowering.has_out(call):
            return None
        key = value.shape, value.dtype
        if self._free.get(key):
            name = self._free[key].pop()
        else:
            name = self._new_name(value.name or call.name)
            dtype = self._object(value.dtype, value.dtype.name)
            if self._arena is not None:
                self._arena.begin(name, value, dtype, number)
            else:
                self.bytes += value.size * value.dtype.itemsize
                self._before.append(f"{name} = np.empty({value.shape}, {dtype})")
        self._buffers[value.memory] = key, name
        self._there.add(value.memory)
        return name

    def _assigned(self, call: Call) -> str:
        text = self._call(call)
        if call.several:
            names = [("_" if v is None else self.name(v)) for v in call.outputs]
            numbers = [self.name(v) for v in call.outputs if v is not None and not v.shape and call.kind == Call.NEW]
            left = f"{', '.join(names)}{',' if len(names) == 1 else ''} = " if names else ""  # (it may raise an error)
            return "; ".join([left + text, *[f"{name} = as_array({name})" for name in numbers]])
        value = call.outputs[0]
        if not value.shape and call.kind == Call.NEW:
            text = f"as_array({text})"
        return f"{self.name(value)} = {text}"

    def _leaf(self, leaf: Tensor) -> str | None:
        """Return the name of the tensor of a leaf that is an input, or None."""
        for value, stays in zip(self.inputs, self.bound, strict=True):
            if value.tensor is leaf:
                if stays:
                    return self._object(leaf, f"{self.name(value)}_tensor")
                if value not in self.leaves:
                    self.leaves.append(value)
                return f"{self.name(value)}_tensor"
        return None

    def _write_gradient(self, call: Call) -> None:
        """Write the assignment of a leaf's `.grad`; of a leaf that is not an input nobody sees it."""
        leaf = self._leaf(call.function)
        if leaf is None:
            return
        value = call.args[0]
        made = "None"
        if value is not None:
            final = self.final[id(call.function)] is call
            self.lends = self.lends or not final
            version = call.function._grad._cell[0] if final else 0
            made = f"written({self.name(value)}, {version})" if version else f"wrap({self.name(value)})"
        self._gradients[len(self._lines)] = leaf, None if value is None else self.name(value)
        self._lines.append(f"{leaf}._grad = {made}")

    def summary(self) -> str:
        """Return a line about the program's size."""
        return f"{self.count} calls, {self.bytes:,} bytes of buffers, {self.peak:,} bytes at most"

    def finish(self) -> str:
        """Drop all data besides the source and its objects, and return the source."""
        for call in self._all:
            call.clear()
        for name in vars(self).keys() - {"source", "file", "count", "bytes", "peak", "scope", "layout", "batch"}:
            delattr(self, name)
        return self.source

    def binding(self, arrays: list[Any]) -> Callable[[], Callable[..., Any]]:
        """Return a function that compiles the source, binds arrays to it, and returns `step` (if that is needed)."""
        source, file, scope = self.source, self.file, self.scope
        arrays = [*arrays, *self.layout.constants.values(), *[self.batch] * bool(self.batch)]

        def bind() -> Any:
            exec(cache.compiled(source, file), scope)
            return quiet(quiet(scope["bind"])(*arrays))

        return bind


def show_source(owner: Any, file: str, source: str) -> None:
    """Let tracebacks show the source of a program, as long as an object lives."""
    while _gone:
        linecache.cache.pop(_gone.pop(), None)
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    weakref.finalize(owner, _gone.append, file).atexit = False


def line_of(error: Exception) -> int:
    """Return the line of a program where an error was raised."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(FILE):
            return line
    return sys.maxsize


def _batch_of(inputs: list[Value]) -> int | None:
    """Return the batch size with which a program for batches of any size was recorded; None for another program."""
    sizes = [int.__index__(n) for value in inputs for n in value.shape if type(n) is Multiple and n.text == BATCH]
    return sizes[0] if sizes else None


def _out(function: Any, name: str) -> str:
    """Return the argument `out` of a call."""
    like_ufuncs = isinstance(function, np.ufunc) or function in elementary.FUNCTIONS
    by_place = like_ufuncs and function not in (np.maximum, np.minimum)  # (they warn of that)
    return name if by_place else f"out={name}"


def _shapes(call: Call) -> str:
    """Return a comment with the shapes of a call's results."""
    shapes = [str(value.shape) for value in call.outputs if value is not None and value.shape]
    return f"  # {', '.join(shapes)}" if shapes else ""


def written(array: Any, version: int) -> Tensor:
    """Return an array as a tensor with a version."""
    made: Tensor = wrap(array)
    if made._cell is not None:
        made._cell[0] = version
    return made


__all__ = ["BATCH", "FILE", "Multiple", "Program", "line_of", "show_source", "written"]
