"""The graph as a picture: in Mermaid, in DOT, and as SVG with a layout that is computed here.

The layout is Sugiyama's: each box gets a layer below those of its inputs; a line that crosses layers has a *bend* in
each, a box of width 0; boxes are ordered within layers by the mean position of their neighbours, so that few lines
cross, and are placed as close to their neighbours as their widths allow. Nothing recurses. (`inspect.drawing` uses it
for the inside of each module.)
"""

from __future__ import annotations

import functools
import itertools
import os
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tinytorch.autograd.function import FunctionNode
from tinytorch.core.graph import AccumulateGrad, Edge, Node, leaf_edge
from tinytorch.core.node import INPUT, OUTPUT, PACKED, RESIDUAL, OpNode
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

__all__ = ["Picture", "picture"]


class Box(NamedTuple):
    """A leaf, an operation or a result: the kind, and the lines of text."""

    kind: str
    lines: list[str]


class Arrow(NamedTuple):
    """A tensor: from output `output` of the box number `source` to the box number `target`."""

    source: int
    output: int
    target: int


class Look(NamedTuple):
    """How a kind of box is drawn: colours on which dark text is readable, and the text of the legend."""

    fill: str
    stroke: str
    mermaid: str
    dot: str
    meaning: str


LOOKS = {
    "leaf": Look("#cfe5ff", "#0b5cad", '(["{}"])', "box, style=\"rounded,filled\"", "leaf: gets .grad"),
    "operation": Look("#eceff1", "#5f6b76", '["{}"]', "box, style=filled", "operation: a grad_fn"),
    "result": Look("#d2f1d5", "#1b7f3b", '[["{}"]]', "box, style=filled, peripheries=2",
                   "result: backward starts here"),
}  # fmt: skip


def picture(
    tensors: Tensor | Sequence[Tensor] | Mapping[str, Tensor], params: Any = None, *, show_saved: bool = False
) -> Picture:
    """Return a picture of the graph of `tensors` (PyTorch has no such function).

    Data flows along the arrows, from the leaves at the top to the results at the bottom; gradients flow against
    them. The picture shows the graph at the time of the call, and holds no reference to it.

    Args:
        tensors: the results: a tensor, a sequence of tensors, or a dictionary of tensors by name.
        params: names of leaves and of intermediate results: a module, a dictionary from name to tensor, or pairs of
            name and tensor, such as `model.named_parameters()`.
        show_saved: also list the tensors that each operation saves for the backward pass.

    Raises:
        TypeError: `tensors` or `params` contain other objects.
        RuntimeError: a tensor does not require grad, so it has no graph.
        ValueError: there are no tensors.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> drawn = torch.autograd.picture((x * x).sum(), {"x": x})
        >>> drawn
        Picture(1 leaf, 2 operations, 1 result)
        >>> print(drawn)
        flowchart TD
            n0(["x<br/>float32 (3,)"]):::leaf
            n1["MulBackward0<br/>float32 (3,)"]:::operation
            n2["SumBackward0<br/>float32 ()"]:::operation
            n3[["result"]]:::result
            n0 --> n1
            n0 --> n1
            n1 --> n2
            n2 --> n3
            classDef leaf fill:#cfe5ff,stroke:#0b5cad,color:#111
            classDef operation fill:#eceff1,stroke:#5f6b76,color:#111
            classDef result fill:#d2f1d5,stroke:#1b7f3b,color:#111
        >>> drawn.save("graph.svg")  # doctest: +SKIP
    """
    results = _named_results(tensors)
    edges = [_edge_of(tensor) for _, tensor in results]
    names: dict[Edge, str] = {}
    for name, tensor in _named_params(params):
        if tensor.requires_grad:
            names.setdefault(_edge_of(tensor), name)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    number: dict[Node, int] = {}
    for node in _inputs_first([edge[0] for edge in edges]):
        for edge in node.edges:
            if edge is not None:
                arrows.append(Arrow(number[edge[0]], edge[1], len(boxes)))
        number[node] = len(boxes)
        boxes.append(_box_of(node, names, show_saved))
    for (name, _), (node, output) in zip(results, edges, strict=True):
        arrows.append(Arrow(number[node], output, len(boxes)))
        boxes.append(Box("result", [printable(name)]))
    multi_output = {number[node] for node in number if node.outputs > 1}
    return Picture(boxes, arrows, multi_output)


class Picture:
    """The result of `picture`: the graph as `mermaid`, `dot` and `svg`; notebooks display it.

    `print` shows the Mermaid text, which GitHub and many editors draw (up to about 500 arrows).
    """

    def __init__(self, boxes: list[Box], arrows: list[Arrow], multi_output: set[int]) -> None:
        self._boxes, self._arrows = boxes, arrows
        self._multi_output = multi_output  # boxes with several outputs: the arrows show the number of the output

    @functools.cached_property
    def mermaid(self) -> str:
        """The picture as a Mermaid flowchart.

        Example:
            >>> x = torch.ones(1, requires_grad=True)
            >>> print(torch.autograd.picture((x * 2).sum()).mermaid[:12])
            flowchart TD
        """
        text = ["flowchart TD"]
        for k, box in enumerate(self._boxes):
            label = "<br/>".join(line.translate(_MERMAID) for line in box.lines)
            text.append(f"    n{k}{LOOKS[box.kind].mermaid.format(label)}:::{box.kind}")
        for source, output, target in self._arrows:
            which = f'|"[{output}]"|' if source in self._multi_output else ""
            text.append(f"    n{source} -->{which} n{target}")
        for kind in self._kinds():
            look = LOOKS[kind]
            text.append(f"    classDef {kind} fill:{look.fill},stroke:{look.stroke},color:#111")
        return "\n".join(text)

    @functools.cached_property
    def dot(self) -> str:
        """The picture in Graphviz's DOT language.

        Example:
            >>> x = torch.ones(1, requires_grad=True)
            >>> print(torch.autograd.picture((x * 2).sum()).dot[:9])
            digraph {
        """
        text = ["digraph {", '    bgcolor=transparent; node [fontname="monospace", fontsize=10];',
                '    edge [color="#767676", fontcolor="#767676", fontname="monospace", fontsize=9];']  # fmt: skip
        for k, box in enumerate(self._boxes):
            label = "\\n".join(line.translate(_DOT) for line in box.lines)
            look = LOOKS[box.kind]
            text.append(
                f'    n{k} [label="{label}", shape={look.dot}, fillcolor="{look.fill}", color="{look.stroke}"];'
            )
        for source, output, target in self._arrows:
            which = f' [label="[{output}]"]' if source in self._multi_output else ""
            text.append(f"    n{source} -> n{target}{which};")
        return "\n".join([*text, "}"])

    @functools.cached_property
    def svg(self) -> str:
        """The picture as SVG, which browsers show.

        Example:
            >>> x = torch.ones(1, requires_grad=True)
            >>> print(torch.autograd.picture((x * 2).sum()).svg[:4])
            <svg
        """
        return _draw_svg(self._boxes, self._arrows, self._multi_output, self._kinds())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file: .svg, .dot or .gv, .mmd, or .md (Mermaid in a Markdown block).

        Raises:
            ValueError: the name has another extension.
        """
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        languages = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".md": "mermaid"}
        if suffix not in languages:
            raise ValueError(f"a picture is saved as .svg, .dot, .gv, .mmd or .md, not as '{suffix}'")
        text: str = getattr(self, languages[suffix])
        with open(path, "w", encoding="utf-8") as file:
            file.write((f"```mermaid\n{text}\n```" if suffix == ".md" else text) + "\n")

    def _kinds(self) -> list[str]:
        present = {box.kind for box in self._boxes}
        return [kind for kind in LOOKS if kind in present]

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.mermaid

    def __repr__(self) -> str:
        counts = []
        for kind, plural in (("leaf", "leaves"), ("operation", "operations"), ("result", "results")):
            count = sum(box.kind == kind for box in self._boxes)
            counts.append(f"{count} {kind if count == 1 else plural}")
        return f"Picture({', '.join(counts)})"


# Boxes and arrows ---------------------------------------------------------------------------------


def _named_results(tensors: Any) -> list[tuple[str, Tensor]]:
    """Return the pairs of name and tensor of the results, checked."""
    if isinstance(tensors, Tensor):
        named = [("result", tensors)]
    elif isinstance(tensors, Mapping):
        named = list(tensors.items())
    else:
        named = [(f"result {k}", tensor) for k, tensor in enumerate(tensors)]
    if not named:
        raise ValueError("there is nothing to draw: no tensors")
    for k, (name, tensor) in enumerate(named):
        _check(name, tensor)
        if not tensor.requires_grad:
            raise RuntimeError(
                f"element {k} of tensors does not require grad and does not have a grad_fn: there is no graph to draw"
            )
    return named


def _named_params(params: Any) -> Iterable[tuple[str, Tensor]]:
    """Return the pairs of name and tensor of the argument `params`, checked."""
    if params is None:
        return []
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    pairs = list(params.items() if isinstance(params, Mapping) else params)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"params: expected pairs of name and tensor, not {type(pair).__name__}")
        _check(*pair)
    return pairs


def _check(name: Any, tensor: Any) -> None:
    if not isinstance(name, str) or not isinstance(tensor, Tensor):
        raise TypeError(f"expected a name and a Tensor, not {type(name).__name__} and {type(tensor).__name__}")


def _edge_of(tensor: Tensor) -> Edge:
    return tensor._current()._edge or leaf_edge(tensor)


def _inputs_first(roots: Iterable[Node]) -> list[Node]:
    """Return `roots` and the nodes before them in post-order: the inputs of a node in order, then the node."""
    ordered: dict[Node, None] = {}
    stack = list(roots)[::-1]
    while stack:
        node = stack[-1]
        missing = [edge[0] for edge in reversed(node.edges) if edge and edge[0] not in ordered]
        if missing and node not in ordered:
            stack += missing
        else:
            ordered[stack.pop()] = None
    return list(ordered)


def _box_of(node: Node, names: dict[Edge, str], show_saved: bool) -> Box:
    if isinstance(node, AccumulateGrad):
        title = names.get((node, 0), type(node.variable).__name__)
        return Box("leaf", [printable(title), _dtype_and_shape(node.dtype, node.shape)])
    shapes, dtypes = (node.shape, node.dtype) if node.outputs > 1 else ((node.shape,), (node.dtype,))
    lines = [printable(node.name().rpartition("::")[2])]
    for k in range(min(len(shapes), _MAX_OUTPUTS)):
        name = f"{printable(names[node, k])}: " if (node, k) in names else ""
        lines.append(name + _dtype_and_shape(dtypes[k], shapes[k]))
    if len(shapes) > _MAX_OUTPUTS:
        lines.append(f"… {len(shapes)} outputs")
    return Box("operation", lines + (_saved_lines(node) if show_saved else []))


_MAX_OUTPUTS = 4  # the outputs of a node that get a line each


def _saved_lines(node: Node) -> list[str]:
    """Return a line for each tensor that a node has saved for its backward."""
    if node.saved is None:
        return ["freed by backward"]
    saved: list[tuple[str, Any]] = []  # (name, tensor or array; None if packed by a hook)
    if isinstance(node, OpNode):
        names = {INPUT: node.op.arguments, RESIDUAL: node.op.residuals}
        for source, item in zip(node.plan.sources, node.saved, strict=True):
            packed = source[0] == PACKED
            kind, position = source[1] if packed else source
            if kind in (INPUT, OUTPUT, RESIDUAL):
                name = "out" if kind == OUTPUT else names[kind][position]
                saved.append((name, None if packed else item[0]))
    elif isinstance(node, FunctionNode):
        for k, item in enumerate(node.saved):
            if item is not None:
                saved.append((f"[{k}]", item[0] if len(item) == 4 else None))
    arrays = [(name, getattr(value, "_array", value)) for name, value in saved]
    return [
        f"keeps {name}: " + ("packed by a hook" if array is None else _dtype_and_shape(array.dtype, array.shape))
        for name, array in arrays
    ]


def _dtype_and_shape(dtype: Any, shape: Any) -> str:
    return "no tensor" if dtype is None else f"{dtypes.from_numpy_dtype(dtype).name} {tuple(shape)}"


def printable(text: str) -> str:
    """Return text with unprintable characters (control characters, lone surrogates) replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_MERMAID = str.maketrans(
    {"#": "#35;", "&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "\\": "#92;", "`": "#96;"}
)
_DOT = str.maketrans({"\\": "\\\\", '"': '\\"'})


# The layout ---------------------------------------------------------------------------------------

# In pixels.
_FONT_SIZE, _LINE_HEIGHT = 12, 16
_PADDING, _BOX_GAP, _LAYER_GAP, _BEND_GAP = 9, 18, 38, 10
_SWEEPS = 8


class Layout:
    """The positions of boxes and lines.

    A *port* is a pair (box, output). All lines from one port that cross layers share one chain of bends.

    Args:
        sizes: the width and height of each box; inputs come before the boxes that use them.
        arrows: the lines, in the order of their targets.
        first, last: a box that has the top layer to itself, and one that has the bottom layer.
        gap: the distance between layers.

    Attributes:
        layer, width, height, x: per item (the boxes, then the bends); `x` is the centre.
        layers: per layer its items from left to right.
        top: per layer its y coordinate and its height.
        bends: per port its bends, from the first layer that its lines cross.
        size: the width and height of the drawing.
    """

    def __init__(
        self,
        sizes: list[tuple[int, int]],
        arrows: list[Arrow],
        *,
        first: int | None = None,
        last: int | None = None,
        gap: int = _LAYER_GAP,
    ) -> None:
        self.width = [width for width, _ in sizes]
        self.height = [height for _, height in sizes]
        self.layer = _layers(len(sizes), arrows, first, last)
        self.bends = self._bend(arrows)
        self.up: list[list[int]] = [[] for _ in self.layer]
        self.down: list[list[int]] = [[] for _ in self.layer]
        for (source, _), bends in self.bends.items():
            for upper, lower in itertools.pairwise([source, *bends]):
                self._join(upper, lower)
        for arrow in arrows:
            self._join(self.last_above(arrow), arrow.target)
        self.layers = self._order(len(sizes))
        self.x = self._place()
        self.top: list[tuple[int, int]] = []
        y = 0
        for items in self.layers:
            height = max(self.height[item] for item in items)
            self.top.append((y, height))
            y += height + gap
        right = max(x + width / 2 for x, width in zip(self.x, self.width, strict=True))
        self.size = (round(right), y - gap)

    def last_above(self, arrow: Arrow) -> int:
        """Return the item just before the target of a line: the last bend, or the source."""
        crossed = self.layer[arrow.target] - self.layer[arrow.source] - 1
        bends = self.bends.get((arrow.source, arrow.output), ())
        return bends[crossed - 1] if 0 < crossed <= len(bends) else arrow.source

    def _join(self, upper: int, lower: int) -> None:
        # (A line without bends between layers that are not adjacent does not affect the order.)
        if self.layer[lower] - self.layer[upper] == 1:
            self.down[upper].append(lower)
            self.up[lower].append(upper)

    def _bend(self, arrows: list[Arrow]) -> dict[tuple[int, int], list[int]]:
        """Return the bends of each port; if there would be too many, the longest lines get none."""
        longest: dict[tuple[int, int], int] = {}
        for source, output, target in arrows:
            count = self.layer[target] - self.layer[source] - 1
            longest[source, output] = max(count, longest.get((source, output), 0))
        budget = 1000 + 4 * (len(self.width) + len(arrows))
        bends: dict[tuple[int, int], list[int]] = {}
        for port, count in sorted(longest.items(), key=lambda item: (item[1], item[0])):
            budget -= count
            if budget < 0:
                break
            first = len(self.layer)
            bends[port] = list(range(first, first + count))
            above = self.layer[port[0]]
            self.layer += range(above + 1, above + 1 + count)
            self.width += [0] * count
            self.height += [0] * count
        return bends

    def _order(self, boxes: int) -> list[list[int]]:
        """Return the items of each layer in an order with few crossings."""
        start = list(range(boxes)) + [0] * (len(self.layer) - boxes)
        for (source, _), bends in self.bends.items():
            for bend in bends:
                start[bend] = source
        layers: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for item in sorted(range(len(start)), key=lambda item: start[item]):
            layers[self.layer[item]].append(item)
        place = [0] * len(start)
        for items in layers:
            for k, item in enumerate(items):
                place[item] = k
        best, fewest = [list(items) for items in layers], self._crossings(layers, place)
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            neighbours = self.down if sweep % 2 else self.up
            for items in reversed(layers) if sweep % 2 else layers:
                key = {item: _mean([place[neighbour] for neighbour in neighbours[item]], place[item]) for item in items}
                items.sort(key=key.__getitem__)
                for k, item in enumerate(items):
                    place[item] = k
            crossings = self._crossings(layers, place)
            if crossings < fewest:
                best, fewest = [list(items) for items in layers], crossings
        return best

    def _crossings(self, layers: list[list[int]], place: list[int]) -> int:
        count = 0
        for items in layers:
            seen: list[int] = []  # the lower ends of the lines so far, sorted
            for item in items:
                ends = sorted(place[neighbour] for neighbour in self.down[item])
                count += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return count

    def _place(self) -> list[int]:
        """Return the centres: as close to those of the neighbours as the widths of the boxes allow."""
        x = [0.0] * len(self.layer)
        for items in self.layers:
            for k, item in enumerate(items[1:], 1):
                x[item] = x[items[k - 1]] + self._distance(items[k - 1], item)
        # Operations are aligned with the operations before and after them rather than with leaves.
        computed = [[neighbour for neighbour in up if self.up[neighbour]] or up for up in self.up]
        both = [up + down for up, down in zip(computed, self.down, strict=True)]
        weights = [8.0 if not width else 1.0 if up else 0.02 for width, up in zip(self.width, self.up, strict=True)]
        # Last, an item with a single input, whose only user it is, is placed directly below that.
        straight = [up if len(up) == 1 == len(self.down[up[0]]) else [] for up in computed]
        sweeps = [computed, self.down] * (_SWEEPS // 2) + [both] * _SWEEPS + [straight]
        for sweep, neighbours in enumerate(sweeps):
            if neighbours is straight:  # boxes make room for long lines
                weights = [1000.0 if not width else weight for width, weight in zip(self.width, weights, strict=True)]
            for items in reversed(self.layers) if sweep % 2 else self.layers:
                wanted = [_mean([x[neighbour] for neighbour in neighbours[item]], x[item]) for item in items]
                gaps = [self._distance(a, b) for a, b in itertools.pairwise(items)]
                places = separated(wanted, [weights[item] for item in items], gaps)
                for item, place in zip(items, places, strict=True):
                    x[item] = place
        left = min(place - width / 2 for place, width in zip(x, self.width, strict=True))
        return [round(place - left) for place in x]

    def _distance(self, a: int, b: int) -> float:
        room = _BOX_GAP if self.width[a] or self.width[b] else _BEND_GAP
        return (self.width[a] + self.width[b]) / 2 + room


def text_width(line: str, font_size: int = _FONT_SIZE) -> float:
    """Return the width of a line of text."""
    # The font is monospaced; characters of other scripts are up to twice as wide.
    return sum(1 if character < "\u1100" else 1.7 for character in line) * 0.62 * font_size


def _width(box: Box) -> int:
    """Return the width of a box, an even number, from its longest line."""
    return 2 * round((max(map(text_width, box.lines)) + 2 * _PADDING) / 2)


def _layers(count: int, arrows: list[Arrow], first: int | None, last: int | None) -> list[int]:
    """Return the layer of each box: below its inputs; with at most one input, just above the first box that uses it."""
    layer, inputs = [0 if first in (None, k) else 1 for k in range(count)], [0] * count
    users: list[list[int]] = [[] for _ in range(count)]
    for source, _, target in arrows:  # in the order of their targets, inputs first
        layer[target] = max(layer[target], layer[source] + 1)
        inputs[target] += 1
        users[source].append(target)
    if last is not None:
        layer[last] = max([0, *[layer[k] + 1 for k in range(count) if k != last]])
    for k in reversed(range(count)):
        if inputs[k] <= 1 and users[k] and k != first:
            layer[k] = min(layer[user] for user in users[k]) - 1
    return layer


def _mean(values: list[Any], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def separated(wanted: list[float], weights: list[float], gaps: list[float]) -> list[float]:
    """Return the positions nearest to `wanted` (weighted least squares) with at least `gaps` between neighbours.

    After subtracting the gaps this is isotonic regression: neighbours that do not ascend are pooled at their mean.
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, count)
    for place, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, count = place - offset, 1
        while pools and pools[-1][0] > mean:
            pooled_mean, pooled_weight, pooled_count = pools.pop()
            mean = (mean * weight + pooled_mean * pooled_weight) / (weight + pooled_weight)
            weight, count = weight + pooled_weight, count + pooled_count
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


# The drawing --------------------------------------------------------------------------------------


def _draw_svg(boxes: list[Box], arrows: list[Arrow], multi_output: set[int], kinds: list[str]) -> str:
    layout = Layout([(_width(box), _LINE_HEIGHT * len(box.lines) + 2 * _PADDING - 4) for box in boxes], arrows)
    legend = [Box(kind, [LOOKS[kind].meaning]) for kind in kinds]
    legend_width = sum(_width(box) + _BOX_GAP for box in legend) - _BOX_GAP
    width, height = layout.size
    width, bottom = max(width, legend_width), height + _LAYER_GAP
    height = bottom + _LINE_HEIGHT + 2 * _PADDING - 4
    margin = 10
    view_box = f"{-margin} {-margin} {width + 2 * margin} {height + 2 * margin}"
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view_box}" '
        f'width="{width + 2 * margin}" height="{height + 2 * margin}" role="img" '
        f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{_FONT_SIZE}">',
        "<title>Graph of the computation, from its leaves (top) to its results (bottom)</title>",
        '<g fill="none" stroke="#767676" stroke-width="1.3">',
        *[f'<path d="{line}"/>' for line in lines(layout, arrows)],
        "</g>",
    ]
    tops = [_top(layout, k) for k in range(len(boxes))]
    text += [_rectangle(box, layout.x[k], tops[k], layout.width[k], layout.height[k]) for k, box in enumerate(boxes)]
    for (source, output), x in sorted(ports(layout, arrows).items()):
        if source in multi_output:
            y = tops[source] + layout.height[source] + 12
            text.append(f'<text x="{x + 4}" y="{y}" fill="#767676" font-size="10">[{output}]</text>')
    x = 0
    for box in legend:
        text.append(_rectangle(box, x + _width(box) / 2, bottom, _width(box), height - bottom))
        x += _width(box) + _BOX_GAP
    return "\n".join([*text, "</svg>"])


def _rectangle(box: Box, x: float, y: int, width: int, height: int) -> str:
    look = LOOKS[box.kind]
    corner = {"leaf": min(height, 40) // 2, "operation": 3, "result": 0}[box.kind]
    stroke_width = 3 if box.kind == "result" else 1.3
    lines = [
        f'<text x="{round(x)}" y="{y + _PADDING + 9 + k * _LINE_HEIGHT}">{line.translate(XML)}</text>'
        for k, line in enumerate(box.lines)
    ]
    return (
        f'<rect x="{round(x - width / 2)}" y="{y}" width="{width}" height="{height}" rx="{corner}" '
        f'fill="{look.fill}" stroke="{look.stroke}" stroke-width="{stroke_width}"/>'
        f'<g text-anchor="middle" fill="#111">{"".join(lines)}</g>'
    )


def ports(layout: Layout, arrows: list[Arrow]) -> dict[tuple[int, int], int]:
    """Return the x coordinates at which lines leave the lower side of their box: one per output that is used."""
    next_x: dict[tuple[int, int], int] = {}
    for arrow in arrows:
        port = arrow[:2]
        bends = layout.bends.get(port)
        next_x.setdefault(port, layout.x[bends[0] if bends else arrow.target])
    outputs: dict[int, list[int]] = {}
    for box, output in sorted(next_x, key=lambda port: (next_x[port], port)):
        outputs.setdefault(box, []).append(output)
    return {
        (box, output): place
        for box, used in outputs.items()
        for output, place in zip(used, points_along_side(layout, box, len(used), 40), strict=True)
    }


def points_along_side(layout: Layout, box: int, count: int, most: int) -> list[int]:
    """Return `count` x coordinates along a side of a box, at most `most` apart."""
    step = min(most, layout.width[box] / (count + 1))
    return [round(layout.x[box] + (k - (count - 1) / 2) * step) for k in range(count)]


def lines(
    layout: Layout,
    arrows: list[Arrow],
    starts_at: Mapping[tuple[int, int], int] | None = None,
    ends_at: Mapping[Arrow, int] | None = None,
) -> list[str]:
    """Return an SVG path per port: through its bends, and from these to its targets.

    Args:
        starts_at: the x coordinates of the ports, by default those of `ports`.
        ends_at: the x coordinates at which lines arrive, for those that do not arrive side by side.
    """
    starts_at, ends_at = starts_at or ports(layout, arrows), ends_at or {}
    paths: dict[tuple[int, int], list[str]] = {port: [] for port in starts_at}
    for port, bends in layout.bends.items():
        x, above = starts_at[port], layout.layer[port[0]]
        for bend in bends:
            start = f"M{x} {_bottom(layout, port[0])}" if bend == bends[0] else ""
            paths[port].append(start + _curve(layout, above, x, above + 1, layout.x[bend]))
            x, above = layout.x[bend], above + 1
    arriving: dict[int, list[Arrow]] = {}
    for arrow in arrows:
        arriving.setdefault(arrow.target, []).append(arrow)
    for target, here in arriving.items():
        starts = []
        for arrow in here:
            item = layout.last_above(arrow)
            above = layout.layer[item]
            if item == arrow.source:
                starts.append((starts_at[arrow[:2]], _bottom(layout, item), above, arrow))
            else:
                starts.append((layout.x[item], layout.top[above][0], above, arrow))
        starts.sort()  # from left to right, so that they do not cross in front of the target
        ends = points_along_side(layout, target, len(here), 24)
        for (x, y, above, arrow), end in zip(starts, ends, strict=True):
            end = ends_at.get(arrow, end)
            curve = _curve(layout, above, x, layout.layer[target], end)
            head = f"V{_top(layout, target)}m-3-6l3 6 3-6"
            paths[arrow[:2]].append(f"M{x} {y}{curve}{head}")
    return ["".join(path) for path in paths.values()]


def _curve(layout: Layout, above: int, x: int, below: int, end: int) -> str:
    """Return the curve from the lower edge of a layer to the upper edge of one below, vertical at both ends."""
    upper, lower = sum(layout.top[above]), layout.top[below][0]
    middle = (upper + lower) // 2
    return f"V{upper}C{x} {middle} {end} {middle} {end} {lower}"


def _top(layout: Layout, box: int) -> int:
    """Return the y coordinate of the top of a box, which is centred in its layer."""
    top, height = layout.top[layout.layer[box]]
    return top + (height - layout.height[box]) // 2


def _bottom(layout: Layout, box: int) -> int:
    return _top(layout, box) + layout.height[box]
