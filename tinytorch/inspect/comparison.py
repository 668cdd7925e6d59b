"""`compare`: the first layer at which two models part, by the inputs and outputs of their modules."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.layout import NoArray
from tinytorch.core.terminal import shown
from tinytorch.inspect import pages
from tinytorch.nn.modules.module import Module
from tinytorch.ops.random import fork_rng

__all__ = ["Comparison", "Layer", "compare"]


class Layer(NamedTuple):
    """A call of a module in both models.

    Attributes:
        path: its path in the first model ("" is the model itself), with `#2` for a second call, and so on.
        other: that in the second model.
        type: the name of its class.
        state: "equal", "different", "another shape", "only in the first", or "only in the second".
        difference: the largest absolute difference of an element; None if they cannot be compared.
        scale: the largest absolute value of the second model's output.
        position: the index of that element; `values` are the two elements.
        reason: what is known of the cause.
    """

    path: str
    other: str
    type: str
    state: str
    difference: float | None
    scale: float
    position: tuple[int, ...]
    values: tuple[Any, ...]
    reason: str

    def __str__(self) -> str:
        name = f"{self.path or 'the model itself'} ({self.type})"
        if self.other != self.path and self.other:
            name += f", {self.other} in the second model"
        if self.difference is None:
            return f"{name}: {self.state}" + (f": {self.reason}" if self.reason else "")
        at = f"[{', '.join(map(str, self.position))}]"
        text = f"{name}: {self.state}, by at most {self.difference:.3g} where the largest number is {self.scale:.3g}"
        if self.state != "equal":
            text += f": output{at} is {self.values[0]:.7g} and {self.values[1]:.7g}"
        return text + (f"\n  {self.reason}" if self.reason else "")


class Comparison:
    """The report of `compare`; true if the models agree.

    Attributes:
        layers: a `Layer` for each call of a module, in the order in which the calls ended.
        first: the first of them that is not equal, or None.
        notes: what else differs.
    """

    def __init__(self, layers: list[Layer], first: Layer | None, notes: list[str]) -> None:
        self.layers, self.first, self.notes = layers, first, notes

    def __bool__(self) -> bool:
        return self.first is None

    @shown
    def __str__(self) -> str:
        compared = sum(layer.state == "equal" for layer in self.layers)
        if self.first is None:
            lines = [f"the models agree: {compared} {'layer is' if compared == 1 else 'layers are'} equal"]
        else:
            lines = [f"the models part at {self.first}"]
            before = [layer.path for layer in self.layers[: self.layers.index(self.first)] if layer.state == "equal"]
            lines.append(f"  equal before: {', '.join(before[-8:])}" if before else "  nothing is equal before")
        return "\n".join([*lines, *[f"  {note}" for note in self.notes]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for layer in self.layers:
            state = layer.state if layer.state == "equal" else "different"
            difference = "" if layer.difference is None else f"{layer.difference:.3g} of {layer.scale:.3g}"
            why = layer.reason if layer is self.first else "" if layer.state in ("equal", "different") else layer.state
            cells = (pages.code(layer.path or "(model)"), pages.text(layer.type), pages.mark(state))
            rows.append((*cells, pages.text(difference), pages.sentence(why)))
        title, *rest = str(self).split("\n")
        heads = ("layer", "class", "output", "difference", "why")
        return pages.page(title, [*[pages.paragraph(line.strip()) for line in rest], pages.table(heads, rows)])


class _Call:
    """A call of a module: copies of its arrays."""

    def __init__(self, path: str, module: Any, inputs: list[Any] | None, outputs: list[Any]) -> None:
        self.path, self.module, self.inputs, self.outputs = path, module, inputs, outputs

    @property
    def kind(self) -> str:
        """The name of the module's class; empty for saved activations."""
        return "" if self.module is None else type(self.module).__name__

    def alike(self) -> tuple[Any, ...]:
        """Return what calls in models of another structure are matched by."""
        return self.kind, tuple([x.shape for x in self.outputs])


def _arrays(value: Any) -> list[Any]:
    """Return copies of the arrays of the tensors in a structure."""
    found = []
    for x in tensors_in(value):
        with contextlib.suppress(NoArray):
            found.append(np.array(x._array))
    return found


@contextlib.contextmanager
def _unchanged(model: Module) -> Iterator[None]:
    """Restore the buffers of a model after the block, which normalization layers change."""
    before = [(buffer, buffer._array.copy()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for buffer, array in before:
            if buffer._array.tobytes() != array.tobytes():
                buffer._array[...] = array
                buffer._bump()


def _run(model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Call]:
    """Return the calls of the modules of a model, in the order in which they ended."""
    calls: list[_Call] = []
    counts: dict[str, int] = {}
    open_inputs: list[list[Any]] = []
    handles = []

    def begin(module: Module, given: Any, named: Any) -> None:
        open_inputs.append(_arrays([given, named]))

    def end(path: str, module: Module, output: Any) -> None:
        counts[path] = counts.get(path, 0) + 1
        name = path if counts[path] == 1 else f"{path}#{counts[path]}"
        calls.append(_Call(name, module, open_inputs.pop(), _arrays(output)))

    for path, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(begin, prepend=True, with_kwargs=True))
        handles.append(module.register_forward_hook(lambda module, given, output, path=path: end(path, module, output)))
    try:
        with no_grad(), fork_rng(), _unchanged(model):
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _saved(file: Any) -> list[_Call]:
    """Return the calls whose outputs were saved in a file.

    Raises:
        ValueError: the file has other contents.
    """
    calls: list[_Call] = []
    counts: dict[str, int] = {}
    with np.load(file, allow_pickle=False) as saved:
        numbered = []
        for key in saved.files:
            number, colon, path = key.partition(":")
            if not (colon and number.isdigit()):
                raise ValueError(f"compare(): {file} has the entry '{key}', but names should be like '12:encoder.0'")
            numbered.append((int(number), path, key))
        last: tuple[int, str] | None = None
        for number, path, key in sorted(numbered):
            name, plus, _ = path.partition("+")  # a further output of the same call
            if plus and last is not None and calls:
                calls[-1].outputs.append(saved[key])
                continue
            counts[name] = counts.get(name, 0) + 1
            calls.append(_Call(name if counts[name] == 1 else f"{name}#{counts[name]}", None, None, [saved[key]]))
            last = (number, name)
    return calls


def _pairs(first: list[_Call], second: list[_Call]) -> list[tuple[_Call | None, _Call | None]]:
    """Return the calls that belong together: those of one path; of those left, those alike in the same order."""
    by_path = {call.path: call for call in second}
    partner: dict[int, _Call] = {id(call): by_path[call.path] for call in first if call.path in by_path}
    taken = {id(call) for call in partner.values()}
    left = [call for call in first if id(call) not in partner]
    free = [call for call in second if id(call) not in taken]
    matcher = difflib.SequenceMatcher(None, [c.alike() for c in left], [c.alike() for c in free], autojunk=False)
    for block in matcher.get_matching_blocks():
        for k in range(block.size):
            partner[id(left[block.a + k])] = free[block.b + k]
    taken = {id(call) for call in partner.values()}
    pairs: list[tuple[_Call | None, _Call | None]] = [(call, partner.get(id(call))) for call in first]
    return pairs + [(None, call) for call in second if id(call) not in taken]


def _tolerance(a: Any, b: Any) -> float:
    """Return the tolerance for two arrays, as a share of the largest number: that of the narrower dtype."""
    size = min(
        [x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) for x in (a, b) if x.dtype.kind not in "iub"] or [8]
    )
    return {1: 0.1, 2: 1e-2, 4: 1e-4}.get(size, 1e-8)


class _Difference(NamedTuple):
    equal: bool
    difference: float
    scale: float
    position: tuple[int, ...]
    values: tuple[Any, ...]


def _difference(a: Any, b: Any, rtol: float | None, atol: float) -> _Difference:
    """Return the difference of two arrays of one shape; NaN equals NaN."""
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    x, y = a.astype(wide), b.astype(wide)
    if not x.size:
        return _Difference(True, 0.0, 0.0, (), ())
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(x - y))
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.abs(y)[np.isfinite(y)]
    scale = float(finite.max()) if finite.size else 0.0
    limit = atol + (_tolerance(a, b) if rtol is None else rtol) * scale
    place = tuple([int(i) for i in np.unravel_index(int(apart.argmax()), apart.shape)])
    largest = float(apart[place])
    return _Difference(largest <= limit, largest, scale, place, (x[place].item(), y[place].item()))


def compare(
    model_a: Module,
    model_b: Module | str | os.PathLike[str],
    input: Any,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
) -> Comparison:
    """Run two models on one input, and name the first layer at which they part.

    Both run without gradients, in the modes that they are in, from the same state of the random generator; their
    buffers are restored. Outputs are compared by the paths of the modules, in the order in which the calls end. Modules
    of models with different structures are matched by class and shape where their paths differ. Two outputs are equal
    if no element differs by more than `atol + rtol * max|b|`.

    The second model may be a file with the activations of a model in PyTorch, which these lines save there::

        saved = {}
        def note(path):
            def hook(module, args, output):
                outputs = output if isinstance(output, tuple) else (output,)
                for k, x in enumerate(x for x in outputs if torch.is_tensor(x)):
                    saved[f"{len(saved)}:{path}{'+' * k}"] = x.numpy(force=True).copy()
            return hook
        for path, module in model.named_modules():
            module.register_forward_hook(note(path))
        with torch.no_grad():
            model(input)
        numpy.savez("activations.npz", **saved)

    So a file has an array per output, named by a counter, a colon and the path of the module; a further output of the
    same call has a plus sign after the path.

    Args:
        model_a: the first model.
        model_b: the second one, or the name of a file of activations.
        input: a tensor, a tuple of arguments, or a dictionary of keyword arguments.
        rtol: by default 1e-4 for float32, 1e-2 for numbers of 16 bits, and 1e-8 for float64.
        atol: an absolute tolerance.

    Returns:
        a `Comparison`, which is true if the models agree; else its `first` names the layer, the elements, and what is
        known of the cause: a parameter that differs, or the code between two layers.

    Raises:
        TypeError: a model is no Module.
        ValueError: the file has other contents.

    Example:
        >>> from tinytorch import inspect, nn
        >>> a = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        >>> b = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        >>> _ = b.load_state_dict(a.state_dict())
        >>> bool(inspect.compare(a, b, torch.ones(1, 2)))
        True
        >>> with torch.no_grad():
        ...     b[2].bias += 1
        >>> report = inspect.compare(a, b, torch.ones(1, 2))
        >>> report.first.path, report.first.reason
        ('2', 'its inputs are equal; parameter bias differs by 1')
    """
    for name, model in (("model_a", model_a), ("model_b", model_b)):
        if not isinstance(model, Module) and not (name == "model_b" and isinstance(model, (str, os.PathLike))):
            raise TypeError(f"compare(): {name} should be a Module, but got {type(model).__name__}")
    args: tuple[Any, ...] = () if isinstance(input, Mapping) else tuple(input) if type(input) is tuple else (input,)
    kwargs = dict(input) if isinstance(input, Mapping) else {}
    first = _run(model_a, args, kwargs)
    second = _run(model_b, args, kwargs) if isinstance(model_b, Module) else _saved(model_b)
    pairs = _pairs(first, second)
    layers: list[Layer] = []
    parting: Layer | None = None
    equal_before: list[str] = []
    for a, b in pairs:
        layer = _compared(a, b, rtol, atol)
        if parting is None and layer.state in ("different", "another shape"):
            assert a is not None and b is not None
            lonely = [x or y for x, y in pairs if x is None or y is None]
            inside = [c.path for c in lonely if c is not None and (not a.path or c.path.startswith(f"{a.path}."))]
            layer = layer._replace(reason=_reason(a, b, rtol, atol, equal_before, inside))
            parting = layer
        if layer.state == "equal":
            equal_before.append(layer.path)
        layers.append(layer)
    if parting is None:  # (a layer that only one model has is a difference if nothing else is)
        alone = [layer for layer in layers if layer.state.startswith("only")]
        compared = [layer for layer in layers if not layer.state.startswith("only")]
        parting = alone[0] if alone and not compared else None
    return Comparison(layers, parting, _notes(model_a, model_b, layers))


def _compared(a: _Call | None, b: _Call | None, rtol: float | None, atol: float) -> Layer:
    call = a or b
    assert call is not None
    if a is None or b is None:
        where = "only in the second" if a is None else "only in the first"
        return Layer(call.path, "", call.kind, where, None, 0.0, (), (), "")
    kind = a.kind or b.kind
    mine = a.outputs if b.module is not None else a.outputs[: len(b.outputs)]  # (nested ones are not saved)
    shapes = [[x.shape for x in outputs] for outputs in (mine, b.outputs)]
    if shapes[0] != shapes[1]:
        reason = f"output {shapes[0]} and {shapes[1]}"
        return Layer(a.path, b.path, kind, "another shape", None, 0.0, (), (), reason)
    found = [_difference(x, y, rtol, atol) for x, y in zip(mine, b.outputs, strict=True)]
    if not found:
        return Layer(a.path, b.path, kind, "equal", 0.0, 0.0, (), (), "")
    worst = min(found, key=lambda each: (each.equal, -each.difference))
    state = "equal" if worst.equal else "different"
    return Layer(a.path, b.path, kind, state, worst.difference, worst.scale, worst.position, worst.values, "")


def _reason(a: _Call, b: _Call, rtol: float | None, atol: float, before: Sequence[str], alone: Sequence[str]) -> str:
    """Return what is known of the cause that two calls are the first whose outputs differ.

    Args:
        a, b: the calls.
        rtol, atol: the tolerances.
        before: the paths of the calls before whose outputs are equal.
        alone: the paths of the modules in them that only one model has.
    """
    after = f", after {before[-1] or 'the model'}" if before else ""
    inner = [path for path in before if a.path and path.startswith(f"{a.path.partition('#')[0]}.")]
    if not a.path:
        inner = list(before)
    if b.module is None:
        if inner:
            return f"its layers are equal: the code of its `forward`{after} differs"
        return "the saved activations have no inputs: its weights or its settings differ, or the code before it"
    given_a, given_b = a.inputs or [], b.inputs or []
    alike = len(given_a) == len(given_b) and all(
        x.shape == y.shape and _difference(x, y, rtol, atol).equal for x, y in zip(given_a, given_b, strict=True)
    )
    if not alike:
        shapes = [[x.shape for x in given] for given in (given_a, given_b)]
        how = f" ({shapes[0]} and {shapes[1]})" if shapes[0] != shapes[1] else ""
        return f"its inputs differ already{how}, and all layers before are equal: look at the code{after}"
    found = _different_members(a.module, b.module)
    if alone:
        return f"its inputs are equal, but only one of the models has {', '.join(alone)}"
    if inner and not found:
        return f"its inputs and its layers are equal: the code of its `forward`{after} differs"
    return "its inputs are equal" + (f"; {', '.join(found)}" if found else ", and so are its parameters")


def _different_members(a: Module, b: Module) -> list[str]:
    """Return what differs between two modules: parameters, buffers, settings, modes."""
    found = []
    for what, mine, theirs in (
        ("parameter", dict(a.named_parameters()), dict(b.named_parameters())),
        ("buffer", dict(a.named_buffers()), dict(b.named_buffers())),
    ):
        for name in [*mine, *[name for name in theirs if name not in mine]]:
            if name not in mine or name not in theirs:
                found.append(f"{what} {name} is only in the {'first' if name in mine else 'second'}")
            elif mine[name].shape != theirs[name].shape:
                found.append(f"{what} {name} is {tuple(mine[name].shape)} and {tuple(theirs[name].shape)}")
            else:
                apart = _difference(mine[name]._array, theirs[name]._array, 0.0, 0.0)
                if not apart.equal:
                    found.append(f"{what} {name} differs by {apart.difference:.3g}")
    if a.training != b.training:
        found.append(f"one is in {'training' if a.training else 'evaluation'} mode, and the other is not")
    if type(a) is not type(b):
        found.append(f"the classes are {type(a).__name__} and {type(b).__name__}")
    elif a.extra_repr() != b.extra_repr():
        found.append(f"the settings are ({a.extra_repr()}) and ({b.extra_repr()})")
    return found


def _notes(a: Module, b: Any, layers: list[Layer]) -> list[str]:
    notes = []
    for state in ("only in the first", "only in the second"):
        paths = [layer.path for layer in layers if layer.state == state]
        if paths:
            notes.append(f"{state} model: {', '.join(paths[:8])}{' …' if len(paths) > 8 else ''}")
    if isinstance(b, Module) and a.training != b.training:
        notes.append(f"the first model is in {'training' if a.training else 'evaluation'} mode, the second is not")
    return notes
