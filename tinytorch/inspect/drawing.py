"""`draw(model, input)`: the call of a model as a drawing, with modules as nested boxes, and the shapes of tensors.

A mode and hooks record the call as a tree: a module that calls other modules is a *frame* around what happens in it; a
module that calls none, and an op outside of such a module, is a box. A tensor is a *value*, a number, with the box that
produced it. `_merge` joins ops that follow each other, `_Folding` replaces repetitions by the first of them. Each frame
is laid out by itself, by the layout of `autograd.picture`, and is then one box in the layout of the frame around it;
lines enter it through its head and leave it through its foot.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinytorch.autograd.picture import XML, Arrow, Layout, lines, ports, printable, separated, text_width
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.calls import Call, ModuleTracer, call_once
from tinytorch.inspect.summary import inputs_of, is_size
from tinytorch.nn.modules.module import Module
from tinytorch.ops.random import fork_rng

__all__ = ["Drawing", "draw"]

_LIBRARY = f"{__name__.partition('.')[0]}."


@dataclass(eq=False)
class _Node:
    """A box or a frame.

    Attributes:
        kind: "input", "output", "layer", "operation", "frame", or "group" (a frame around what repeats).
        name, type: what the box says: `name: type`.
        parent: the frame in which it is; None for the outermost.
        children: what happens in a frame, in order.
        inputs: the values that a box gets.
        outputs: the values that a box has produced.
        parameters: the number of parameters.
        note: what is said of the parameters.
        module: the module of a layer or frame.
        tip: the text that is shown while the mouse is over the box.
        times: how many repetitions it stands for.
    """

    kind: str
    name: str
    type: str = ""
    parent: _Node | None = None
    children: list[_Node] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    parameters: int = 0
    note: str = ""
    module: Module | None = None
    tip: str = ""
    times: int = 1

    def boxes(self) -> Iterator[_Node]:
        """Yield the boxes in this frame, in order; a box yields itself."""
        if self.kind in ("frame", "group"):
            for child in self.children:
                yield from child.boxes()
        else:
            yield self

    def path(self) -> list[_Node]:
        """Return the frames around this node, the outermost first, and the node."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found[::-1]


class _Recorded:
    """A recorded call: the page, the boxes that produced the values, and the shapes of the values."""

    def __init__(self) -> None:
        self.page = _Node("frame", "")
        self.source: list[_Node] = []
        self.shape: list[str] = []

    def value(self, source: _Node, tensor: Tensor) -> int:
        """Return a new value."""
        self.source.append(source)
        self.shape.append(str(list(tensor.shape)))
        source.outputs.append(len(self.source) - 1)
        return len(self.source) - 1


# The call -----------------------------------------------------------------------------------------


class _CallTracer(ModuleTracer):
    """Records the calls of modules and ops, and which tensors they exchange."""

    def __init__(self, model: Module, depth: int | None) -> None:
        super().__init__(model)
        self.model, self.depth = model, depth
        self.recorded = _Recorded()
        self.values: dict[int, int] = {}  # by the id of a tensor
        self.names = {id(p): path.rpartition(".")[2] for path, p in [*model.named_parameters(), *model.named_buffers()]}
        self.kept: list[Any] = []  # so that no id is used twice
        self.open = [self.recorded.page]
        self.counted: set[int] = set()  # ids of the parameters of the layers so far

    def _begin(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        path = self.paths[module]
        parent = self.open[-1]
        around = self.paths[parent.module] if parent.module is not None else ""
        name = path.removeprefix(f"{around}.") if around else path
        node = _Node("frame", name, type(module).__name__, parent, module=module)
        node.tip = f"{path}: " * bool(path) + _described(module)
        if len(self.open) == 1:
            for name, tensor in _arguments(module, args, kwargs):
                if id(tensor) not in self.values:
                    self._input(name, tensor)
        node.inputs = self._known((args, kwargs))
        parent.children.append(node)
        self.open.append(node)

    def _input(self, name: str, tensor: Tensor) -> None:
        node = _Node("input", name, f"{tensor.dtype.name} {list(tensor.shape)}", self.open[0])
        self.open[0].children.append(node)
        self.values[id(tensor)] = self.recorded.value(node, tensor)

    def _end(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        node = self.open.pop()
        if output is None:  # the call raised, or returned nothing
            if not node.children and len(self.open) > 1:
                self.open[-1].children.remove(node)
            return None
        calls_others = any(child.module is not None for child in node.children)
        outermost = len(self.open) == 1
        deep = self.depth is not None and len(self.open) > self.depth
        # (A model that calls no modules is opened too, unless it is a layer of the library.)
        opened = calls_others or (outermost and node.children and not module_of(type(module)).startswith(_LIBRARY))
        if deep or not opened:
            output = self._close(node, module, output)
        else:
            node.inputs = []
        node.parameters, node.note = self._count(module, node.kind == "layer")
        self.kept.append((args, kwargs, output))
        if outermost:
            for name, tensor in _tensors(output, "output"):
                result = _Node("output", name, f"{tensor.dtype.name} {list(tensor.shape)}", self.open[0])
                result.inputs = self._known(tensor)
                self.open[0].children.append(result)
        return output

    def _close(self, node: _Node, module: Module, output: Any) -> Any:
        """Make a module that calls no others, or is deep, a box; return its output."""
        source = self.recorded.source
        inside = set(node.boxes())
        # What the module reads without getting it as an argument is an input, too.
        read = [value for box in inside for value in box.inputs if source[value] not in inside]
        node.inputs = sorted({*node.inputs, *read})
        node.kind = "layer"
        given = {id(tensor) for tensor in tensors_in(output)} & self.values.keys()
        passed = {key for key in given if source[self.values[key]] not in inside}
        for box in inside:
            for value in box.outputs:
                source[value] = node
                node.outputs.append(value)
        node.children = []
        if type(output) is Tensor and id(output) in passed and not output.is_sparse:
            # (A dropout in evaluation mode: what it returns is told apart from what it got.)
            modes, local.state.modes = local.state.modes, None
            output = output.view(output.shape)
            local.state.modes = modes
        for tensor in tensors_in(output):
            if id(tensor) not in self.values or id(tensor) in passed:
                self.values[id(tensor)] = self.recorded.value(node, tensor)
        return output

    def _count(self, module: Module, layer: bool) -> tuple[int, str]:
        parameters = {id(p): p.numel() for p in module.parameters()}
        if not layer:
            return sum(parameters.values()), ""
        shared = bool(parameters) and parameters.keys() <= self.counted
        self.counted |= parameters.keys()
        return sum(parameters.values()), "shared" if shared else ""

    def listen(self, call: Call) -> Iterator[None]:
        """Record a call."""
        yield
        if len(self.open) == 1:
            return
        arguments, results = call.inputs, call.outputs
        inputs = self._known(arguments)
        fixed = list(
            dict.fromkeys(self.names[id(x)] for x in arguments if id(x) in self.names and id(x) not in self.values)
        )
        self.kept.append((arguments, results))
        if not inputs:
            if fixed:
                self.names.update((id(x), fixed[0]) for x in results)
            return
        node = _Node("operation", _op_name(call) + f"({', '.join(fixed[:2])})" * bool(fixed), parent=self.open[-1])
        node.inputs = inputs
        self.open[-1].children.append(node)
        for x in results:
            self.values[id(x)] = self.recorded.value(node, x)
            base = x._base if any(x is argument for argument in arguments) else None
            if base is not None:  # a write into a view is one into its base
                self.kept.append(base)
                self.values[id(base)] = self.recorded.value(node, base)

    def _known(self, structure: Any) -> list[int]:
        """Return the values of the tensors in a structure."""
        found = [self.values[id(x)] for x in tensors_in(structure) if id(x) in self.values]
        return list(dict.fromkeys(found))


def _op_name(call: Call) -> str:
    """Return the name of an op as users know it: of `_MaxPool2DWithIndices`, "max_pool2d"."""
    name = call.name.strip("_").removesuffix("WithIndices")
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z])_(?=$)", "_", name).lower()


def _described(module: Module) -> str:
    return f"{type(module).__name__}({' '.join(module.extra_repr().split())})"


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in nested lists, tuples and dicts, with the expression that selects each."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (list, tuple, Mapping)):
        fields = getattr(value, "_fields", None)
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _tensors(item, f"{name}.{fields[key]}" if fields else f"{name}[{key!r}]")


def _arguments(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in the arguments of a call, with their names in the signature of `forward`."""
    code = getattr(getattr(type(module).forward, "__wrapped__", type(module).forward), "__code__", None)
    known = list(code.co_varnames[1 : code.co_argcount]) if code else []
    for k, value in enumerate(args):
        yield from _tensors(value, known[k] if k < len(known) else "input" if len(args) == 1 else f"input {k}")
    for name, value in kwargs.items():
        yield from _tensors(value, name)


# Fewer boxes --------------------------------------------------------------------------------------


def _merge(recorded: _Recorded) -> None:
    """Join each op with the op before it in the same frame, if it has no other input, and no other uses its output."""
    users: dict[_Node, set[_Node]] = {}
    for box in recorded.page.boxes():
        for value in box.inputs:
            users.setdefault(recorded.source[value], set()).add(box)
    gone = set()
    for box in list(recorded.page.boxes()):
        sources = {recorded.source[value] for value in box.inputs}
        if box.kind != "operation" or len(sources) != 1:
            continue
        (before,) = sources
        if before.kind == "operation" and before.parent is box.parent and users[before] == {box}:
            before.name += f"\n{box.name}"
            for value in box.outputs:
                recorded.source[value] = before
            before.outputs = box.outputs
            users[before] = users.pop(box, set())
            gone.add(box)
    for frame in _frames(recorded.page):
        frame.children = [child for child in frame.children if child not in gone]
    # Ops whose results nobody uses are not drawn.
    kept = [box for box in recorded.page.boxes() if box.kind != "operation"]
    needed = set(kept)
    while kept:
        for value in kept.pop().inputs:
            source = recorded.source[value]
            if source not in needed:
                needed.add(source)
                kept.append(source)
    for frame in _frames(recorded.page):
        frame.children = [child for child in frame.children if child.kind != "operation" or child in needed]


def _frames(page: _Node) -> list[_Node]:
    """Return the frames, a frame after those in it."""
    found = [page]
    for frame in found:
        found += [child for child in frame.children if child.kind in ("frame", "group")]
    return found[::-1]


_LONGEST = 8  # how many boxes are looked at as what repeats


class _Folding:
    """Replaces repetitions in a frame by the first of them."""

    def __init__(self, recorded: _Recorded) -> None:
        self.recorded = recorded
        self.users: dict[int, list[_Node]] = {}
        for box in recorded.page.boxes():
            for value in box.inputs:
                self.users.setdefault(value, []).append(box)

    def fold(self, frame: _Node) -> None:
        """Replace the repetitions in a frame, in which there are none any more in the frames inside."""
        items = frame.children
        labels = [self._label(item) for item in items]
        folded: list[_Node] = []
        k = 0
        while k < len(items):
            length, times = self._repetition(items, labels, k)
            if times > 1:
                folded.append(self._folded(items[k : k + length * times], length, times, frame))
            else:
                folded.append(items[k])
            k += length * times
        frame.children = folded

    def _label(self, item: _Node) -> tuple[Any, ...]:
        """Return what items that repeat have in common, of the boxes in them and their shapes."""
        found: list[Any] = []
        for box in item.boxes():
            inside = tuple(
                (each.type, each.times, "" if each is item else each.name)
                for each in box.path()[len(item.path()) - 1 :]
            )
            name = box.name if box.kind == "operation" else ""
            found.append((inside if box.kind != "operation" else inside[:-1], name, box.parameters,
                          tuple(self.recorded.shape[value] for value in box.outputs), box.times))  # fmt: skip
        return (item.kind, item.type, item.times, *found)

    def _repetition(self, items: list[_Node], labels: list[tuple[Any, ...]], start: int) -> tuple[int, int]:
        """Return the length and the number of the repetitions that start at an item; (1, 1) if there are none."""
        for length in range(1, min(_LONGEST, (len(items) - start) // 2) + 1):
            first = labels[start : start + length]
            if any(item.kind in ("input", "output") for item in items[start : start + length]):
                break
            times = 1
            while labels[start + length * times : start + length * (times + 1)] == first:
                times += 1
            frames = length == 1 and items[start].kind in ("frame", "group")
            groups = [items[start + length * k : start + length * (k + 1)] for k in range(times)]
            least = 2 if frames else 3
            if times < least or not self._is_chain(groups[:least]):
                continue
            while least < times:  # (the beginning of a chain is a chain)
                middle = (least + times + 1) // 2
                if self._is_chain(groups[:middle]):
                    least = middle
                else:
                    times = middle - 1
            return length, times
        return 1, 1

    def _is_chain(self, groups: list[list[_Node]]) -> bool:
        """Return whether each group gets its inputs from the one before it, and from the same boxes outside."""
        boxes = [[box for item in group for box in item.boxes()] for group in groups]
        if len({len(each) for each in boxes}) > 1:
            return False
        same = [all(a.module is b.module for a, b in zip(boxes[0], each, strict=True)) for each in boxes[1:]]
        notes = [[box.note for box in each] for each in boxes]
        if any(same) != all(same) or (not any(same) and any(note != notes[0] for note in notes)):
            return False
        places = [{box: k for k, box in enumerate(each)} for each in boxes]
        came = [self._incoming(k, boxes, places) for k in range(len(boxes))]
        left = [self._outgoing(k, boxes, places) for k in range(len(boxes))]
        if any(each != came[1] for each in came[2:]) or any(each != left[0] for each in left[1:-1]):
            return False
        if not left[0] <= left[-1] or not any(what == "before" for each in came[1] for what, *_ in each):
            return False
        # The first one gets from elsewhere what the others get from the one before.
        return len(came[0]) == len(came[1]) and all(
            len(a) == len(b) and all(x == y or (y[0], x[0]) == ("before", "outside") for x, y in zip(a, b, strict=True))
            for a, b in zip(came[0], came[1], strict=True)
        )

    def _incoming(self, k: int, boxes: Any, places: Any) -> list[list[tuple[Any, ...]]]:
        found = []
        for box in boxes[k]:
            row: list[tuple[Any, ...]] = []
            for value in box.inputs:
                source = self.recorded.source[value]
                if source in places[k]:
                    row.append(("inside", places[k][source], source.outputs.index(value)))
                elif k and source in places[k - 1]:
                    row.append(("before", places[k - 1][source], source.outputs.index(value)))
                else:
                    row.append(("outside", value))
            found.append(row)
        return found

    def _outgoing(self, k: int, boxes: Any, places: Any) -> set[tuple[Any, ...]]:
        """Return what leaves a group for boxes other than those of the next group."""
        following = places[k + 1] if k + 1 < len(places) else {}
        return {
            (place, number, user)
            for box, place in places[k].items()
            for number, value in enumerate(box.outputs)
            for user in self.users.get(value, ())
            if user not in places[k] and user not in following
        }

    def _folded(self, items: list[_Node], length: int, times: int, frame: _Node) -> _Node:
        first = [box for item in items[:length] for box in item.boxes()]
        source = self.recorded.source
        # What used the last one's results, or the same of each, uses those of the one that is drawn.
        stands_for: dict[int, int] = {}
        for k in range(length, len(items), length):
            for box, drawn in zip([b for item in items[k : k + length] for b in item.boxes()], first, strict=True):
                stands_for.update(zip(box.outputs, drawn.outputs, strict=True))
        for user in self.recorded.page.boxes():
            user.inputs = list(dict.fromkeys(stands_for.get(value, value) for value in user.inputs))
        for value, drawn_value in stands_for.items():
            source[value] = source[drawn_value]
            self.users.setdefault(drawn_value, []).extend(self.users.get(value, ()))
        again = len(items) > length and items[0].module is not None and items[0].module is items[length].module
        if length == 1:
            drawn = items[0]
            if not again:
                drawn.name = _range(items)
        else:
            drawn = _Node("group", _range(items) if not again else "", parent=frame, children=items[:length])
            for item in drawn.children:
                item.parent = drawn
        drawn.times = times
        drawn.note = "shared" if again else ""
        return drawn


def _range(items: list[_Node]) -> str:
    """Return "h.0 … 11", the names of the first and the last of several modules; "" if they have none."""
    names = [items[0].name, items[-1].name.rpartition(".")[2]]
    named = items[0].module is not None and items[-1].module is not None
    return (", " if len(items) == 2 else " … ").join(names) if named else ""


# The drawing --------------------------------------------------------------------------------------

# In pixels.
_HEAD, _FOOT, _BOX, _LINE, _GAP, _SIDE, _PAD, _LABEL, _CARDS = 24, 6, 26, 15, 26, 14, 10, 15, 6

#: The colours of each kind of box, for light and dark pages: fill and stroke.
_COLOURS = {
    "page": ("#ffffff", "none", "#14181d", "none"),
    "input": ("#cfe5ff", "#0b5cad", "#12304f", "#62aaf0"),
    "weights": ("#fdf0d5", "#a2711a", "#3b2e14", "#d3a24a"),
    "layer": ("#eceff1", "#5f6b76", "#262d34", "#8b98a5"),
    "operation": ("#ffffff", "#8b98a5", "#14181d", "#75818d"),
    "output": ("#d2f1d5", "#1b7f3b", "#153a20", "#5cc47c"),
    "frame": ("#f6f8fa", "#b3bdc7", "#1a2027", "#4b5763"),
    "odd": ("#ffffff", "#b3bdc7", "#14181d", "#4b5763"),
    "head": ("#e3e8ed", "#b3bdc7", "#2a323b", "#4b5763"),
}
_TEXT = {"ink": ("#14181d", "#e6eaee"), "quiet": ("#59636e", "#9aa6b2"), "line": ("#767676", "#8b98a5")}


@dataclass
class _Drawn:
    """A box or a frame as SVG, at the origin.

    Attributes:
        size: its width and height.
        svg: its elements.
        enters, leaves: per value, the x coordinate at which its line arrives or starts, for frames.
    """

    size: tuple[int, int]
    svg: list[str]
    enters: dict[int, int] = field(default_factory=dict)
    leaves: dict[int, int] = field(default_factory=dict)


def _style() -> str:
    """Return the style sheet: the colours of dark pages; those of light pages are attributes of the elements."""
    dark = [f".tt-{kind}{{fill:{fill};stroke:{stroke}}}" for kind, (_, _, fill, stroke) in _COLOURS.items()]
    dark += [f".tt-{kind}{{{'stroke' if kind == 'line' else 'fill'}:{colour}}}" for kind, (_, colour) in _TEXT.items()]
    return f"@media (prefers-color-scheme:dark){{{''.join(f'.tt-drawing {rule}' for rule in dark)}}}"


def _rectangle(kind: str, x: float, y: float, width: float, height: float, radius: float, more: str = "") -> str:
    fill, stroke, _, _ = _COLOURS[kind]
    return (
        f'<rect class="tt-{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
        f'fill="{fill}" stroke="{stroke}"{more}/>'
    )


def _words(x: float, y: float, words: Sequence[tuple[str, str]], anchor: str = "start", size: int = 12) -> str:
    """Return a line of text: pairs of kind ("ink", "quiet") and text."""
    parts = [
        f'<tspan class="tt-{kind}" fill="{_TEXT[kind][0]}">{printable(text).translate(XML)}</tspan>'
        for kind, text in words
        if text
    ]
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    sized = f' font-size="{size}"' if size != 12 else ""
    return f'<text x="{x:g}" y="{y:g}"{where}{sized} xml:space="preserve">{"".join(parts)}</text>'


def _title(node: _Node) -> list[tuple[str, str]]:
    """Return the text of a box, or of the head of a frame."""
    if node.kind == "group":
        return [("ink", f"{node.name}  " * bool(node.name) + f"× {node.times}")]
    words = [("ink", f"{node.name}: " * bool(node.name) + node.type)]
    if node.times > 1:
        words.append(("ink", f"  × {node.times}"))
    if node.parameters:
        each = " each" if node.times > 1 and node.note != "shared" else ""
        unit = " parameters" if node.parent is not None and node.parent.parent is None else ""
        words.append(("quiet", f"  {node.parameters:,}{unit}{each}{f' {node.note}' if node.note else ''}"))
    return words


def _width_of(words: Sequence[tuple[str, str]], size: int = 12) -> float:
    return sum(text_width(text, size) for _, text in words)


class _Drawer:
    """Draws a recorded call."""

    def __init__(self, recorded: _Recorded) -> None:
        self.recorded = recorded
        self.arrows: dict[_Node, list[tuple[_Node, int, _Node]]] = {}
        for box in recorded.page.boxes():
            for value in box.inputs:
                self._connect(value, box)

    def _connect(self, value: int, target: _Node) -> None:
        """Add the lines of a value to a box: out of the frames around its source, and into those around the box."""
        out, into = self.recorded.source[value].path(), target.path()
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], zip(out, into, strict=False)))
        for inner, frame in zip(out[common + 1 :], out[common:], strict=False):
            self._add(frame, inner, value, frame)
        self._add(out[common - 1], out[common], value, into[common])
        for frame, inner in zip(into[common:], into[common + 1 :], strict=False):
            self._add(frame, frame, value, inner)

    def _add(self, frame: _Node, source: _Node, value: int, target: _Node) -> None:
        line = (source, value, target)
        known = self.arrows.setdefault(frame, [])
        if line not in known:
            known.append(line)

    def draw(self, node: _Node, depth: int, least: float) -> _Drawn:
        """Return a frame, or a box with at least a certain width."""
        return self.frame(node, depth) if node.kind in ("frame", "group") else self.box(node, least)

    def box(self, node: _Node, least: float) -> _Drawn:
        """Return a box with at least a certain width."""
        if node.kind == "operation":
            names = [name for name, _ in itertools.groupby(node.name.split("\n"))]
            if len(names) > _MOST_OPS:
                names = [*names[: _MOST_OPS - 2], f"… {len(names) - _MOST_OPS + 1} more", names[-1]]
            rows = [[("ink", name)] for name in names]
        elif node.kind in ("input", "output"):
            rows = [[("ink", node.name), ("quiet", f"  {node.type}")]]
        else:
            rows = [_title(node)]
        width = 2 * round(max(least, max(map(_width_of, rows)) + 2 * _PAD) / 2)
        height = _BOX + _LINE * (len(rows) - 1)
        kind = "weights" if node.kind == "layer" and node.parameters else node.kind
        radius = {"layer": 4, "operation": 13}.get(node.kind, 4 if node.kind == "output" else 13)
        svg = self._stack(node, kind, width, height, radius)
        svg.append(_rectangle(kind, 0, 0, width, height, radius, ' stroke-width="2"' * (node.kind == "output")))
        for k, row in enumerate(rows):
            svg.append(_words(width / 2, 17 + k * _LINE, row, "middle"))
        return _Drawn((width, height), [f"<g>{_tip(node)}", *svg, "</g>"])

    def _stack(self, node: _Node, kind: str, width: int, height: int, radius: int) -> list[str]:
        """Return the cards behind what stands for several repetitions."""
        offsets = (_CARDS, _CARDS // 2) if node.times > 1 else ()
        return [_rectangle(kind, offset, offset, width, height, radius) for offset in offsets]

    def frame(self, node: _Node, depth: int, page: bool = False) -> _Drawn:
        """Return a frame, whose head is the first item of its layout, and whose foot is the last."""
        recorded = self.recorded
        number = {child: k for k, child in enumerate(node.children, 0 if page else 1)}
        head, foot = (None, None) if page else (0, len(number) + 1)
        arrows = []
        for source, value, target in self.arrows.get(node, ()):
            start, end = (head if source is node else number[source]), (foot if target is node else number[target])
            assert start is not None and end is not None
            arrows.append(Arrow(start, value, end))
        arrows.sort(key=lambda arrow: arrow.target)
        has_foot = any(arrow.target == foot for arrow in arrows)
        labels = self._labels(number, arrows, foot)
        drawn: list[_Drawn] = []
        starts: dict[tuple[int, int], float] = {}  # from the middle of the item
        sizes: list[tuple[int, int]] = [] if page else [(2, _HEAD)]
        for child, k in number.items():
            used = sorted({arrow.output for arrow in arrows if arrow.source == k})
            reach = {value: text_width(labels[k, value], 10) if (k, value) in labels else 0 for value in used}
            step = max([24, *[width + 16 for width in reach.values()]])
            span = (len(used) - 1) * step
            drawn.append(self.draw(child, depth + 1, span + 16))
            width, height = drawn[-1].size
            if drawn[-1].leaves:
                starts.update({(k, value): drawn[-1].leaves[value] - width / 2 for value in used})
            else:
                starts.update({(k, value): n * step - span / 2 for n, value in enumerate(used)})
            extra = _CARDS if child.times > 1 else 0
            strip = _LABEL if any(reach.values()) else 0
            room = max(
                [width + 2 * extra, *[2 * (starts[k, value] + 8 + reach[value]) for value in used if reach[value]]]
            )
            sizes.append((2 * round(room / 2), height + strip + extra))
        if has_foot:
            sizes.append((2, _FOOT))
        if not sizes:
            return _Drawn((0, 0), [])
        layout = Layout(sizes, arrows, first=head, last=foot if has_foot else None, gap=_GAP)
        return self._compose(node, depth, page, layout, arrows, drawn, starts, labels, recorded)

    def _labels(self, number: dict[_Node, int], arrows: list[Arrow], foot: int | None) -> dict[tuple[int, int], str]:
        """Return the shapes to write below boxes, by port; not of inputs, nor of what only leaves the frame."""
        quiet = {k for child, k in number.items() if child.kind == "output"} | ({foot} if foot is not None else set())
        inputs = {k for child, k in number.items() if child.kind == "input"}
        return {
            (arrow.source, arrow.output): self.recorded.shape[arrow.output]
            for arrow in arrows
            if arrow.target not in quiet and arrow.source not in inputs and (arrow.source or foot is None)
        }

    def _compose(
        self,
        node: _Node,
        depth: int,
        page: bool,
        layout: Layout,
        arrows: list[Arrow],
        drawn: list[_Drawn],
        starts: dict[tuple[int, int], float],
        labels: dict[tuple[int, int], str],
        recorded: _Recorded,
    ) -> _Drawn:
        offset = 0 if page else 1
        foot = len(drawn) + 1
        starts_at = {(k, value): round(layout.x[k] + x) for (k, value), x in starts.items()}
        ends_at: dict[Arrow, int] = {}
        for k, each in enumerate(drawn, offset):
            for arrow in arrows:
                if arrow.target == k and each.enters:
                    ends_at[arrow] = round(layout.x[k] - each.size[0] / 2 + each.enters[arrow.output])
        if page:  # inputs stand above the places where their lines enter, outputs below the places where they leave
            kinds = [child.kind for child in node.children]
            _align(layout, {arrow.source: x for arrow, x in ends_at.items() if kinds[arrow.source] == "input"})
            leaving = [arrow for arrow in arrows if kinds[arrow.target] == "output"]
            _align(layout, {arrow.target: starts_at[arrow[:2]] for arrow in leaving})
            starts_at = {(k, value): round(layout.x[k] + x) for (k, value), x in starts.items()}
        # Lines from the head start above the box that they go to, those to the foot end below the box they come from.
        if not page:
            for (k, value), x in ports(layout, arrows).items():
                if k == 0:
                    below = [arrow for arrow in arrows if arrow[:2] == (0, value) and layout.layer[arrow.target] == 1]
                    goal = ends_at.get(below[0], layout.x[below[0].target]) if below else None
                    bends = layout.bends.get((0, value))
                    starts_at[0, value] = goal if goal is not None else layout.x[bends[0]] if bends else x
            _spread([key for key in starts_at if key[0] == 0], starts_at, {}, 18)
            last: dict[tuple[int, int], int] = {}
            into_foot = [arrow for arrow in arrows if arrow.target == foot]
            for arrow in into_foot:
                item = layout.last_above(arrow)
                last[arrow[:2]] = starts_at[arrow[:2]] if item == arrow.source else layout.x[item]
            reach = {key: text_width(recorded.shape[key[1]], 10) + 14 for key in last}
            _spread(list(last), last, reach, 18)
            ends_at.update({arrow: last[arrow[:2]] for arrow in into_foot})
        pad = 0 if page else _SIDE
        title = [] if page else _title(node)
        xs = [x for key, x in starts_at.items() if key[0] == 0 and not page] + [ends_at[a] for a in ends_at]
        sides = [(x - width / 2, x + width / 2) for x, width in zip(layout.x, layout.width, strict=True)]
        left = min([0, *[x - 8 for x in xs], *[x for x, _ in sides]])
        right = max([layout.size[0], *[x + 8 for x in xs], *[x for _, x in sides]])
        width = 2 * round(max(right - left + 2 * pad, _width_of(title) + 2 * _PAD) / 2)
        shift = round((width - (right - left)) / 2 - left)
        bottom = layout.size[1] + (0 if page or any(a.target == foot for a in arrows) else _SIDE)
        svg: list[str] = []
        if not page:
            kind = "odd" if depth % 2 else "frame"
            more = ' stroke-dasharray="4 3"' if node.kind == "group" else ""
            svg += self._stack(node, kind, width, bottom, 5)
            svg.append(_rectangle(kind, 0, 0, width, bottom, 5, more))
            svg += [f"<g>{_tip(node)}", _rectangle("head", 0, 0, width, _HEAD, 5), _words(_PAD, 16, title), "</g>"]
            if any(arrow.target == foot for arrow in arrows):
                svg.append(_rectangle("head", 0, bottom - _FOOT, width, _FOOT, 3))
        inner: list[str] = []
        stroke = _TEXT["line"][0]
        paths = lines(layout, arrows, starts_at, ends_at) if arrows else []
        stems, boxes, shapes = [], [], []
        for k, each in enumerate(drawn, offset):
            top = layout.top[layout.layer[k]][0] + (layout.top[layout.layer[k]][1] - layout.height[k]) // 2
            x = round(layout.x[k] - each.size[0] / 2)
            boxes += [f'<g transform="translate({x} {top})">', *each.svg, "</g>"]
            under = top + each.size[1]
            for port in dict.fromkeys(arrow[:2] for arrow in arrows if arrow.source == k):
                stems.append(f"M{starts_at[port]} {under}V{top + layout.height[k]}")
                if port in labels:
                    extra = _CARDS if node.children[k - offset].times > 1 else 0
                    text = [("quiet", labels[port])]
                    shapes.append(_words(starts_at[port] + 6, under + extra + 12, text, size=10))
        if paths:
            inner.append(
                f'<path class="tt-line" fill="none" stroke="{stroke}" stroke-width="1.2" d="{"".join(stems + paths)}"/>'
            )
        svg += [f'<g transform="translate({shift} 0)">', *inner, *boxes, *shapes, "</g>"]
        enters = {value: shift + x for (k, value), x in starts_at.items() if k == 0 and not page}
        leaves = {arrow.output: shift + x for arrow, x in ends_at.items() if arrow.target == foot and not page}
        return _Drawn((width, bottom), svg, enters, leaves)


_MOST_OPS = 5  # how many merged ops a box lists


def _spread(keys: list[Any], x: dict[Any, int], reach: Mapping[Any, float], least: float) -> None:
    """Move coordinates to the right until neighbours are apart: by `least`, or by the `reach` of one's text."""
    ordered = sorted(keys, key=lambda key: x[key])
    for before, key in itertools.pairwise(ordered):
        x[key] = max(x[key], round(x[before] + max(least, reach.get(before, 0))))


def _align(layout: Layout, goals: Mapping[int, int]) -> None:
    """Move the boxes of a layer to the given places, as near as their widths allow, if it has no others."""
    items = sorted(goals, key=lambda item: goals[item])
    if items and sorted(items) == sorted(layout.layers[layout.layer[items[0]]]):
        gaps = [(layout.width[a] + layout.width[b]) / 2 + _GAP for a, b in itertools.pairwise(items)]
        places = separated([float(goals[item]) for item in items], [1.0] * len(items), gaps)
        for item, place in zip(items, places, strict=True):
            layout.x[item] = round(place)


def _tip(node: _Node) -> str:
    return f"<title>{printable(node.tip).translate(XML)}</title>" if node.tip else ""


class Drawing:
    """The result of `draw`; notebooks display it, and `save` writes it to a file."""

    def __init__(self, recorded: _Recorded) -> None:
        page = recorded.page
        boxes = list(page.boxes())
        models = [child for child in page.children if child.module is not None]
        self._name = models[0].type if models else ""
        self._boxes = len(boxes)
        drawer = _Drawer(recorded)
        drawn = drawer.frame(page, 0, page=True)
        legend = self._legend({_kind(box) for box in boxes}, max(drawn.size[0], _NARROW))
        margin = 14
        width = max(drawn.size[0], legend.size[0]) + 2 * margin
        height = drawn.size[1] + legend.size[1] + 2 * margin
        x = margin + (width - 2 * margin - drawn.size[0]) // 2
        #: The drawing as SVG.
        self.svg = "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tt-drawing" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" '
            'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12">',
            f"<title>The call of {self._name.translate(XML)}: data flows from top to bottom</title>",
            f"<style>{_style()}</style>",
            _rectangle("page", 0, 0, width, height, 6),
            f'<g transform="translate({x} {margin})">', *drawn.svg, "</g>",
            f'<g transform="translate({margin} {margin + drawn.size[1]})">', *legend.svg, "</g>",
            "</svg>",
        ])  # fmt: skip

    def _legend(self, kinds: set[str], room: int) -> _Drawn:
        """Return what the colours mean, in lines of a certain width."""
        svg, x, y, widest = [], 0.0, 24, 0.0
        for kind, meaning in _MEANING.items():
            if kind in kinds:
                if x and x + 17 + text_width(meaning, 10) > room:
                    x, y = 0.0, y + 18
                svg += [_rectangle(kind, x, y, 12, 12, 3), _words(x + 17, y + 10, [("quiet", meaning)], size=10)]
                x += 17 + text_width(meaning, 10) + 14
                widest = max(widest, x - 14)
        return _Drawn((round(widest), y + 14), svg)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file: .svg, or .html.

        Raises:
            ValueError: the name has another extension.
        """
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        if suffix not in (".svg", ".html"):
            raise ValueError(f"a drawing is saved as .svg or .html, not as '{suffix}'")
        head = f'<!doctype html><meta charset="utf-8"><title>{self._name.translate(XML)}</title>'
        view = '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}</style>'
        with open(path, "w", encoding="utf-8") as file:
            file.write((head + view + self._repr_html_() if suffix == ".html" else self.svg) + "\n")

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto">{self.svg}</div>'

    def __repr__(self) -> str:
        return f"Drawing({self._name}, {self._boxes} boxes)"


_NARROW = 320  # the width that a legend may always have

#: What the legend says.
_MEANING = {
    "input": "input",
    "weights": "layer with parameters (their number)",
    "layer": "layer without",
    "operation": "operation",
    "output": "output",
}


def _kind(box: _Node) -> str:
    return "weights" if box.kind == "layer" and box.parameters else box.kind


def draw(model: Module, input: Any = None, *, depth: int | None = None, fold: bool = True, **kwargs: Any) -> Drawing:
    """Return a drawing of a call of a model: its modules as nested boxes, and the shapes of the tensors between them.

    Data flows from top to bottom. A module that calls other modules is a frame around them; a module that calls none is
    a box, with its number of parameters; operations between modules are boxes with round ends. The shape of a tensor
    stands below the box that produced it. Blocks that repeat, each on the output of the one before, are drawn once
    ("× 12"). A module that is called again is drawn again, and its parameters are marked as shared.

    The model is called once, in evaluation mode and without gradients; its modes, its buffers and the state of the
    random generator are then restored.

    Args:
        input: the input: a tensor, a list or tuple of arguments, or a dict of keyword arguments; or the size of the
            input, such as (1, 3, 32, 32), or a list of sizes, of which random inputs are made.
        depth: the number of nested frames that are opened; modules below are drawn as boxes. By default all are opened.
        fold: whether blocks that repeat are drawn once.
        **kwargs: further keyword arguments of the model.

    Returns:
        a `Drawing`, which notebooks display: SVG in the attribute `svg`, for files in `save("model.svg")`.

    Raises:
        TypeError: the model is not a Module, or a size is not valid.
        ValueError: `depth` is negative.

    Example:
        >>> from tinytorch import inspect, nn
        >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> drawn = inspect.draw(model, torch.rand(1, 8))
        >>> drawn
        Drawing(Sequential, 5 boxes)
        >>> drawn.save("model.svg")  # doctest: +SKIP
    """
    if not isinstance(model, Module):
        raise TypeError(f"draw(): model should be a Module, but got {type(model).__name__}")
    if depth is not None and (not isinstance(depth, int) or depth < 0):
        raise ValueError(f"draw(): depth should be None or a number from 0, but got {depth!r:.60}")
    tracer = _CallTracer(model, depth)
    with fork_rng():
        args: Sequence[Any] = ()
        if isinstance(input, Mapping):
            kwargs = {**input, **kwargs}
        elif isinstance(input, (list, tuple)) and input:
            sized = is_size(input) or all(map(is_size, input))
            args = inputs_of(input, None, model, "draw()") if sized else input
        elif input is not None:
            args = (input,)
        call_once(model, tracer, args, kwargs)
    recorded = tracer.recorded
    _merge(recorded)
    if fold:
        folding = _Folding(recorded)
        for frame in _frames(recorded.page):
            folding.fold(frame)
    return Drawing(recorded)
