"""`explain`: what a loss is made of, and why a parameter has no gradient; which parameters a model or optimizer trains.

What a graph knows is read from the graph. What it cannot know, since a cut leaves no trace in it, is known if the step
was watched (`watching.py`); if it was not, the source of the program suggests it (`why.py`), and is said to.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.function import FunctionNode
from tinytorch.autograd.picture import Picture, picture
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.engine import shape_and_kind
from tinytorch.core.graph import AccumulateGrad, Node, leaf_edge
from tinytorch.core.node import INPUT, PACKED, TENSORS, OpNode
from tinytorch.core.tensor import Tensor
from tinytorch.core.terminal import shown
from tinytorch.inspect import pages
from tinytorch.inspect.calls import name_of_op, nodes_behind
from tinytorch.inspect.finite import is_finite
from tinytorch.inspect.notebook import size_text
from tinytorch.inspect.places import Line, modules_in, name_of, users_frames
from tinytorch.inspect.source import attribute_line, is_mentioned
from tinytorch.inspect.watching import watch
from tinytorch.inspect.why import Cause, Suspect, after_backward, cause_of, suspects, zeros
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.kernels.places import storage
from tinytorch.nn.modules.module import Module

__all__ = ["Explanation", "ModelExplanation", "OptimizerExplanation", "Story", "explain"]


class Story(NamedTuple):
    """What is known of the gradient of a parameter, or of another tensor.

    Attributes:
        name: its name in the model, or that of a variable.
        shape, dtype: as of the tensor.
        gradient: "none", "zero", "finite" or "not finite".
        norm: the Euclidean norm of the gradient; None if there is none.
        reached: whether the loss depends on it through the graph.
        cause: why the gradient is none or zero: `code` (see `explain`), `reason`, `line`, `certain`.
        possible: where nothing was watched, lines that may have cut it off.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    gradient: str
    norm: float | None
    reached: bool
    cause: Cause
    possible: tuple[Suspect, ...]

    def word(self) -> str:
        """Return the word for the gradient: "none yet" before the backward pass."""
        return "none yet" if self.gradient == "none" and self.cause.code == "no backward" else self.gradient

    def __str__(self) -> str:
        text = self.word() if self.gradient != "finite" else ""
        if self.gradient in ("finite", "not finite"):
            text = f"{text + ', ' if text else ''}norm {self.norm:.4g}"
        if self.cause.reason:
            text += f": {self.cause.reason}" if self.cause.certain else f": probably {self.cause.reason}"
        for each in self.possible[:3]:
            text += f"\n      possible: `{each.what}` at {each.line.shown()}"
        return text


class Held(NamedTuple):
    """Memory that a node of the graph keeps for backward.

    Attributes:
        node: the name of the node; `line` is that of the forward pass, if it was watched.
        bytes: what it keeps; what several nodes keep is counted at the first of them, parameters are not counted.
    """

    node: str
    line: Line | None
    bytes: int


class Explanation:
    """What a loss is made of; `print` shows it, and notebooks show it with a picture of the graph.

    Attributes:
        title: what the loss is.
        modules: the paths of the modules whose parameters the loss depends on.
        parameters: a `Story` for each parameter, and for other leaves of the graph.
        operations: the number of nodes of the graph; `leaves` is that of its leaves.
        held: the memory that the graph keeps, the largest first; `bytes` is the sum, and `parameter_bytes` that of the
            parameters to which it refers.
        broadcasts, casts: sentences about operands of several shapes, and about changes of the dtype.
        notes: what else is to be said.
        watched: whether the step was watched; `freed` is whether backward has freed what the graph kept.
        picture: the `Picture` of the graph; None if there is no graph or it is large.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.modules: list[str] = []
        self.parameters: list[Story] = []
        self.operations = self.leaves = self.bytes = self.parameter_bytes = 0
        self.held: list[Held] = []
        self.broadcasts: list[str] = []
        self.casts: list[str] = []
        self.notes: list[str] = []
        self.watched = self.freed = False
        self.picture: Picture | None = None

    def __getitem__(self, name: str) -> Story:
        """Return the story of a parameter.

        Raises:
            KeyError: there is none of this name.
        """
        for story in self.parameters:
            if story.name == name:
                return story
        raise KeyError(name)

    @shown
    def __str__(self) -> str:
        lines = [self.title, *[f"  {note}" for note in self.notes]]
        if self.modules:
            lines.append(f"  goes through {', '.join(self.modules[:20])}{' …' if len(self.modules) > 20 else ''}")
        if self.parameters:
            wide = max(len(story.name) for story in self.parameters)
            deep = max(len(str(story.shape)) for story in self.parameters)
            lines.append("gradients")
            lines += [f"  {s.name:{wide}}  {s.shape!s:{deep}}  {s}" for s in self.parameters]
        if self.operations:
            lines.append(self._memory())
            for each in self.held[:5]:
                lines.append(f"  {size_text(each.bytes):>9}  {each.node}" + (f" at {each.line}" if each.line else ""))
        for heading, sentences in (("broadcasts", self.broadcasts), ("changes of the dtype", self.casts)):
            if sentences:
                lines += [heading, *[f"  {sentence}" for sentence in sentences[:10]]]
        return "\n".join(lines)

    __repr__ = __str__

    def _memory(self) -> str:
        if self.freed:
            return "backward has freed what the graph kept"
        also = f", besides {size_text(self.parameter_bytes)} of parameters" if self.parameter_bytes else ""
        return f"memory that the graph keeps: {size_text(self.bytes)}{also}"

    def _repr_html_(self) -> str:
        rows = []
        for story in self.parameters:
            reason = pages.sentence(story.cause.reason, story.cause.certain)
            reason += "".join(
                pages.sentence(f"possible: `{each.what}` at {each.line.shown()}") for each in story.possible[:3]
            )
            norm = "" if story.norm is None else f"{story.norm:.4g}"
            rows.append(
                (
                    pages.code(story.name), pages.text(str(story.shape)), pages.mark(story.word()), pages.text(norm),
                    reason,
                )
            )  # fmt: skip
        parts = [pages.paragraph(note) for note in self.notes]
        if self.modules:
            parts.append(pages.paragraph(f"Goes through {', '.join(self.modules)}."))
        parts.append(pages.table(("parameter", "shape", "gradient", "norm", "why"), rows))
        if self.operations:
            held = [
                (pages.text(size_text(each.bytes)), pages.code(each.node), pages.text(str(each.line or "")))
                for each in self.held[:20]
            ]
            parts.append(pages.folded(self._memory(), pages.table(("memory", "node", "line"), held)))
        for heading, sentences in (("Broadcasts", self.broadcasts), ("Changes of the dtype", self.casts)):
            if sentences:
                parts.append(pages.folded(heading, "".join(map(pages.paragraph, sentences[:20]))))
        if self.picture is not None:
            parts.append(pages.folded("The graph", f'<div class="scroll">{self.picture.svg}</div>'))
        return pages.page(self.title, parts)


class Row(NamedTuple):
    """A parameter of a model.

    Attributes:
        name: its path; a parameter that is used several times has its first one.
        shape: its shape.
        state: "trained", "frozen", "forgotten" (`reason` says by whom), "shared" (the same as another parameter), or
            "foreign" (in the optimizer, but not in the model).
        reason: what is to be said.
        line: the line that it is about, or None.
    """

    name: str
    shape: tuple[int, ...]
    state: str
    reason: str
    line: Line | None = None


class ModelExplanation:
    """Which parameters of a model are trained, frozen, shared or forgotten; `print` shows it.

    Attributes:
        title: the model.
        rows: a `Row` for each parameter.
        notes: what else is to be said.
    """

    def __init__(self, title: str, rows: list[Row], notes: list[str]) -> None:
        self.title, self.rows, self.notes = title, rows, notes

    def of(self, state: str) -> list[Row]:
        """Return the rows of a state."""
        return [row for row in self.rows if row.state == state]

    @shown
    def __str__(self) -> str:
        lines = [self.title, *[f"  {note}" for note in self.notes]]
        wide = max([len(row.name) for row in self.rows], default=0)
        deep = max([len(str(row.shape)) for row in self.rows], default=0)
        for row in self.rows:
            reason = f": {row.reason}" if row.reason else ""
            lines.append(f"  {row.name:{wide}}  {row.shape!s:{deep}}  {row.state}{reason}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (pages.code(row.name), pages.text(str(row.shape)), pages.mark(row.state), pages.sentence(row.reason))
            for row in self.rows
        ]
        notes = [pages.paragraph(note) for note in self.notes]
        return pages.page(self.title, [*notes, pages.table(("parameter", "shape", "state", "why"), rows)])


class OptimizerExplanation(ModelExplanation):
    """Which parameters of a model an optimizer trains; as `ModelExplanation`."""


def explain(what: Any, model: Any = None, *, seen: watch | None = None) -> Any:
    """Return what a loss is made of and why gradients are None or 0; or which parameters a model or optimizer trains.

    Of a loss, the graph tells which parameters it depends on, what it keeps, and which gradients there are. That a
    parameter was cut off leaves no trace in a graph: call `explain` with a function that computes the loss, which is
    then called once and watched, or use `watch`, and the line of the cut is known. Otherwise the sources of the model's
    `forward` and of the calling functions suggest lines, and `cause.certain` is False.

    The codes of causes:

    ====================  ==========================================================================================
    "frozen"              `requires_grad` is False
    "integer"             the dtype has no gradients
    "inference tensor"    created in inference mode
    "non-leaf"            the result of an operation, which keeps its `.grad` only after `retain_grad()`
    "detach", "data"      cut off by `detach()` or `.data`
    "no_grad"             computed under `no_grad` or `set_grad_enabled(False)`
    "inference_mode"      computed in inference mode
    "read"                its numbers went through Python or NumPy: `item()`, `float()`, `numpy()`, `tolist()`
    "copied"              `torch.tensor(x)` copied it
    "not differentiable"  an op such as `argmax` has no derivative
    "did not require grad"  it was used before `requires_grad` was set
    "replaced"            the loss depends on another tensor of its shape: that of a copy of the model, say
    "unused"              never used, or its module was never called
    "discarded"           used, but the loss does not depend on the result
    "no backward"         `backward` was not called
    "autograd.grad"       `autograd.grad` returns gradients, and sets no `.grad`
    "inputs"              `backward(inputs=...)` was limited to others
    "returns None"        the backward of a `Function` returned None
    "cleared"             `.grad` was set to None after the backward pass, as `zero_grad()` does
    "other backward"      the gradient is from another loss
    "zero"                all elements of the gradient are 0
    "unreached"           the loss does not depend on it; the reason is not known
    ====================  ==========================================================================================

    Args:
        what: a tensor, the loss; a function without arguments that computes it (and may call `backward`), which is
            called once; a `Module`; or an optimizer.
        model: whose parameters to look at: a module, a tensor, tensors by name, a sequence of tensors, or an optimizer.
            By default the models in the variables of the calling functions, and the leaves of the graph.
        seen: the `watch` during which the loss was computed.

    Returns:
        An `Explanation` of a loss, a `ModelExplanation`, or an `OptimizerExplanation`.

    Raises:
        TypeError: `what` or `model` is something else.

    Example:
        >>> from tinytorch import inspect, nn
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        >>> x = torch.ones(3, 2)
        >>> explained = inspect.explain(lambda: model[1](model[0](x).detach()).sum(), model)
        >>> [(story.name, story.cause.code) for story in explained.parameters]
        [('0.weight', 'detach'), ('0.bias', 'detach'), ('1.weight', 'no backward'), ('1.bias', 'no backward')]
    """
    frame = sys._getframe(1)
    if isinstance(what, Module):
        return _of_model(what, frame)
    if hasattr(what, "param_groups"):
        return _of_optimizer(what, model, frame)
    if isinstance(what, Tensor):
        return _of_loss(what, model, seen, frame)
    if isinstance(what, watch):
        return _of_loss(None, model, what, frame)
    if callable(what):
        with watch() as seen:
            result = what()
        losses = [x for x in tensors_in(result) if x.numel()]
        # (A step returns the loss, or the number; what it has called backward of is the loss then.)
        loss = losses[0] if losses and not (seen.walks and not losses[0].requires_grad) else None
        return _of_loss(loss, model, seen, frame)
    raise TypeError(
        f"explain(): expected a tensor, a function, a Module or an optimizer, but got {type(what).__name__}"
    )


# A loss -------------------------------------------------------------------------------------------


class _Graph:
    """The graph behind nodes: the nodes, and the leaves by id."""

    def __init__(self, roots: Iterable[Node]) -> None:
        self.nodes = nodes_behind(roots)
        leaves = sorted([each for each in self.nodes if isinstance(each, AccumulateGrad)], key=lambda x: -x.number)
        self.leaves: dict[int, Tensor] = {id(node.variable): node.variable for node in leaves}  # by first use
        self.freed = any(getattr(node, "saved", ()) is None for node in self.nodes)

    def operations(self) -> list[Node]:
        """Return the nodes that are no leaves."""
        return [node for node in self.nodes if not isinstance(node, AccumulateGrad)]


def _named(model: Any) -> tuple[dict[str, Tensor], list[Module]]:
    """Return tensors by name, and the modules, of the argument `model`."""
    if isinstance(model, Module):
        return {**dict(model.named_parameters()), **_hidden(model)}, [model]
    if isinstance(model, Tensor):
        return {"tensor": model}, []
    if hasattr(model, "param_groups"):
        parameters = [p for group in model.param_groups for p in group["params"]]
        return {f"parameter {k}": p for k, p in enumerate(parameters)}, []
    if isinstance(model, Mapping):
        named: dict[str, Tensor] = {}
        modules: list[Module] = []
        for name, each in model.items():
            if isinstance(each, Module):
                of_part, found = _named(each)
                named |= {f"{name}.{path}": x for path, x in of_part.items()}
                modules += found
            elif isinstance(each, Tensor):
                named[str(name)] = each
            else:
                raise TypeError(f"explain(): model[{name!r}] should be a tensor or a Module, not {type(each).__name__}")
        return named, modules
    if isinstance(model, Sequence) and not isinstance(model, str):
        return _named({str(k): each for k, each in enumerate(model)})
    raise TypeError(
        "explain(): model should be a Module, an optimizer, a tensor, or tensors by name, "
        f"but got {type(model).__name__}"
    )


def _hidden(model: Module) -> dict[str, Tensor]:
    """Return the parameters in plain containers of a model's modules, which do not register them, by name."""
    registered = {id(p) for p in model.parameters()}
    found: dict[str, Tensor] = {}

    def look(value: Any, name: str, depth: int) -> None:
        if isinstance(value, Module):
            for path, p in value.named_parameters():
                if id(p) not in registered:
                    found.setdefault(f"{name}.{path}", p)
        elif isinstance(value, Tensor):
            if value.requires_grad and value._edge is None and id(value) not in registered:
                found.setdefault(name, value)
        elif depth and isinstance(value, Mapping):
            for key, each in value.items():
                look(each, f"{name}[{key!r}]", depth - 1)
        elif depth and isinstance(value, (list, tuple)):
            for k, each in enumerate(value):
                look(each, f"{name}[{k}]", depth - 1)

    for path, module in model.named_modules():
        for attribute, value in vars(module).items():
            if not attribute.startswith("_") and not isinstance(value, Module):
                look(value, f"{path}.{attribute}".lstrip("."), 3)
    return found


def _of_loss(loss: Tensor | None, model: Any, seen: watch | None, frame: FrameType) -> Explanation:
    """Return the explanation of a loss; without one, of the last backward pass that was watched."""
    roots: list[Node]
    if loss is None:
        assert seen is not None
        roots = list(seen.walks[-1].roots) if seen.walks else []
        title = "the loss of the last backward pass" if seen.walks else "no loss: backward was not called"
        if roots and roots[0].dtype is not None and roots[0].outputs == 1:
            title += f": {dtypes.from_numpy_dtype(roots[0].dtype).name} {tuple(roots[0].shape)}"
    else:
        edge = loss._current()._edge
        roots = [edge[0]] if edge is not None else [leaf_edge(loss)[0]] if loss.requires_grad else []
        name = name_of(loss, frame) or "the result"
        title = f"{name}: {loss.dtype.name} {tuple(loss.shape)}"
    graph = _Graph(roots)
    made = Explanation(title)
    made.watched, made.freed = seen is not None, graph.freed
    made.operations, made.leaves = len(graph.operations()), len(graph.leaves)
    if made.operations:
        made.title += f", of {_count(made.operations, 'operation')} on {_count(made.leaves, 'leaf', 'leaves')}"
    frames = list(users_frames(frame))
    named, modules = _named(model) if model is not None else _found(graph, frames, seen)
    known = {id(x) for x in named.values()}
    for x in graph.leaves.values():
        if id(x) not in known and (loss is None or x is not loss):
            named[_free(name_of(x, frame) or f"a leaf of shape {tuple(x.shape)}", named)] = x
    found = suspects(frames, [part for each in modules for part in each.modules()])
    registered = {id(p) for module in modules for p in module.parameters()}
    teller = _Teller(graph, loss, seen, modules, found)
    for name, x in named.items():
        story = teller.story(name, x)
        if modules and id(x) not in registered and id(x) in graph.leaves:
            _note_unregistered(made, name, x, modules)
        made.parameters.append(story)
    if loss is not None and roots and loss._grad is None and (loss._edge is None or loss.numel() != 1):
        made.notes.append(_own_gradient(loss))
    if loss is not None and not roots:
        made.notes.append(_without_graph(loss, seen, found))
    made.modules = _modules_of(graph, modules)
    _weigh(made, graph, seen)
    _look_at_shapes(made, graph, seen)
    if roots and made.operations <= _DRAWN and loss is not None:
        with contextlib.suppress(RuntimeError, TypeError):
            made.picture = picture(loss, {name: x for name, x in named.items() if x.requires_grad})
    return made


_DRAWN = 200  # the largest number of operations of which a picture is drawn


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name that is not taken: the name itself, or with a number."""
    numbers = (f"{name} #{number}" for number in itertools.count(2))
    return name if name not in taken else next(each for each in numbers if each not in taken)


def _note_unregistered(made: Explanation, name: str, x: Tensor, modules: list[Module]) -> None:
    """Note that the loss depends on a leaf which the model does not have."""
    alike = [path for m in modules for path, p in m.named_parameters() if p.shape == x.shape]
    if "[" in name:
        made.notes.append(
            f"{name} is in a plain list or dict: the model does not register it, so `parameters()` and optimizers "
            "do not see it; use `nn.ModuleList`, `nn.ModuleDict` or `nn.ParameterList`"
        )
    elif alike and not any(made_note.startswith("the loss depends") for made_note in made.notes):
        made.notes.append(
            f"the loss depends on {name}, which is no parameter of this model, though of the shape of {alike[0]}: was "
            "it computed by another model, or by a parameter that has been replaced since?"
        )


def _own_gradient(x: Tensor) -> str:
    """Return the note on a tensor, itself no loss, that has no gradient."""
    if x._edge is None:
        return "a leaf without a gradient: `explain(loss, tensor)`, or a step as a function, tells why"
    if x.retains_grad:
        return "its own `.grad` is None: backward was not called since `retain_grad()`"
    return "its own `.grad` is None: only leaves keep it, unless `retain_grad()` is called before backward"


def _without_graph(loss: Tensor, seen: watch | None, found: list[Suspect]) -> str:
    """Return the note that a loss has no graph."""
    text = "it has no graph: it does not require grad, so `backward` would raise an error"
    if seen is not None:
        return text
    lines = [f"`{each.what}` at {each.line}" for each in found if each.code in ("copied", "read", "no_grad", "detach")]
    return text + (f"; possible: {', '.join(lines[:3])}" if lines else "")


def _found(graph: _Graph, frames: list[FrameType], seen: watch | None) -> tuple[dict[str, Tensor], list[Module]]:
    """Return the tensors and modules of the models in the variables of frames that have to do with a graph."""
    models = {name: m for name, m in modules_in(frames).items() if _has_parameters(m)}
    used = {
        name: m
        for name, m in models.items()
        if any(id(p) in graph.leaves for p in m.parameters())
        or (seen is not None and any(seen.was_called(part) for part in m.modules()))
    }
    chosen = used or models
    if not used and seen is not None and seen.called:  # the model is no variable, but it was called
        inner = {id(part) for m in seen.called.values() for part in m.modules() if part is not m}
        chosen = {}
        for m in seen.called.values():
            if id(m) not in inner and _has_parameters(m):
                chosen[_free(type(m).__name__, chosen)] = m
    if len(chosen) == 1:
        return _named(next(iter(chosen.values())))
    return _named(chosen)


def _has_parameters(module: Module) -> bool:
    return next(module.parameters(), None) is not None or bool(_hidden(module))


class _Teller:
    """Tells the stories of parameters.

    Attributes:
        graph: the graph of the loss.
        loss: the loss, or None.
        seen: what was watched, or None.
        modules: the models.
        suspects: where nothing was watched, suspicious lines.
    """

    def __init__(
        self, graph: _Graph, loss: Tensor | None, seen: watch | None, modules: list[Module], found: list[Suspect]
    ) -> None:
        self.graph, self.loss, self.seen, self.modules, self.suspects = graph, loss, seen, modules, found
        self.some = any(x._grad is not None for x in graph.leaves.values())
        #: By id of a parameter, the modules on the way to it, each with the name of the next one.
        self.owners: dict[int, list[tuple[Module, str]]] = {}
        for model in modules:
            for path, p in model.named_parameters():
                self.owners.setdefault(id(p), _way(model, path))
            for path, hidden in _hidden(model).items():
                owner, attribute = _storage(model, path)
                if owner is not None:
                    self.owners.setdefault(id(hidden), [(owner, attribute)])

    def story(self, name: str, x: Tensor) -> Story:
        """Return the story of a tensor."""
        g = x._grad
        reached = id(x) in self.graph.leaves or (x._edge is not None and x._edge[0] in self.graph.nodes)
        gradient, norm = "none", None
        if g is not None:
            array = np.asarray(g.to_dense()._array if g.layout is not x.layout else g._array)
            wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
            norm = float(np.linalg.norm(wide.ravel()))
            gradient = "not finite" if not is_finite(array) else "zero" if not norm else "finite"
        cause, possible = self._cause(x, reached, gradient)
        return Story(name, tuple(x.shape), x.dtype.name, gradient, norm, reached, cause, tuple(possible))

    def _cause(self, x: Tensor, reached: bool, gradient: str) -> tuple[Cause, list[Suspect]]:
        nothing: list[Suspect] = []
        if gradient != "none":
            if not reached and self.graph.nodes and x._edge is None:
                cause, possible = self._of_unreached(x)
                before = "its gradient is from another backward pass"
                if cause.code == "unreached":
                    return Cause("other backward", f"{before}: this loss does not depend on it"), possible
                return cause._replace(reason=f"{cause.reason} ({before})"), possible
            if gradient == "zero":
                return (zeros(self.seen, x) if self.seen is not None else Cause("zero", "all elements are 0")), nothing
            return Cause("", ""), nothing
        if x._array.dtype.kind not in DIFFERENTIABLE:
            return Cause("integer", f"{x.dtype.name} has no gradients"), nothing
        if x._cell is None:
            return Cause("inference tensor", "it was created in inference mode"), nothing
        if not x.requires_grad:
            lines = [each for each in self.suspects if each.code == "frozen"]
            line = lines[0].line if len(lines) == 1 else None
            return Cause("frozen", "requires_grad is False", line), lines
        if x._edge is not None:
            if x.retains_grad:
                return Cause("no backward", "backward was not called since `retain_grad()`"), nothing
            by = x._edge[0].name()
            reason = (
                f"it is the result of an operation ({by}): only leaves keep `.grad`, unless `retain_grad()` is called"
            )
            return Cause("non-leaf", reason), nothing
        if reached:
            return self._of_reached(x)
        return self._of_unreached(x)

    def _of_reached(self, x: Tensor) -> tuple[Cause, list[Suspect]]:
        """Return why a leaf that the loss depends on has no gradient."""
        if self.seen is not None and (self.seen.walks or self.seen.targets(self.loss)):
            return after_backward(self.seen, x, self.loss), []
        if not self.graph.freed and not self.some:
            return Cause("no backward", "backward was not called for this loss"), []
        lines = [each for each in self.suspects if each.code in ("cleared", "autograd.grad")]
        if any(each.code == "autograd.grad" for each in lines) and not any(each.code == "cleared" for each in lines):
            reason = "`autograd.grad` has used this graph: it returns gradients, and sets no `.grad`"
            return Cause("autograd.grad", reason, lines[0].line, certain=False), lines
        if not self.graph.freed:
            return Cause("no backward", "backward was not called for this loss", certain=False), []
        functions = [node for node in self.graph.nodes if isinstance(node, FunctionNode)]
        if self.some and functions and not lines:
            name = functions[0].name()
            return Cause("returns None", f"`{name}` returned None in place of its gradient", certain=False), []
        line = lines[0].line if lines else None
        reason = "it was set to None after the backward pass, as `zero_grad()` does"
        return Cause("cleared", reason, line, certain=False), lines

    def _of_unreached(self, x: Tensor) -> tuple[Cause, list[Suspect]]:
        """Return why the loss does not depend on a leaf."""
        way = self.owners.get(id(x), [])
        if self.seen is not None:
            cause = cause_of(self.seen, x, self.loss)
            if cause.code == "unused" and (replaced := self._replaced(x)) is not None:
                return replaced, []
            if cause.code == "unused" and way:
                return self._unused(cause, way), []
            return (cause if cause.code else after_backward(self.seen, x, self.loss)), []
        for module, attribute in way:
            if not is_mentioned(module, attribute):
                line = attribute_line(module, attribute)
                reason = f"never used: no method of {type(module).__name__} uses `self.{attribute}`"
                if line is not None:
                    reason += f", which is set at {line.shown()}"
                return Cause("unused", reason, line, certain=False), []
        replaced = self._replaced(x)
        if replaced is not None:
            return replaced, []
        lines = [each for each in self.suspects if each.code not in ("cleared", "autograd.grad", "frozen")]
        inside = [each for each in lines if _is_in(each, way)]
        chosen = inside or lines
        first = chosen[0] if chosen else None
        if first is not None and (inside or (len(chosen) == 1 and first.code != "read")):
            reason = f"`{first.what}` at {first.line.shown()}"
            return Cause(first.code, reason, first.line, certain=False), chosen[1:]
        reason = (
            "the loss does not depend on it. To see the line of a cut, watch the step: "
            "`inspect.explain(lambda: step(), model)`"
        )
        return Cause("unreached", reason), chosen

    def _replaced(self, x: Tensor) -> Cause | None:
        """Return the cause that the loss depends on another tensor in place of a parameter, if there is one like it."""
        own = {id(p) for model in self.modules for p in model.parameters()}
        if id(x) not in own or not any(id(y) not in own and y.shape == x.shape for y in self.graph.leaves.values()):
            return None
        reason = (
            "the loss depends on another tensor of this shape: it was computed by another model, such as a copy, or "
            "before the parameter was replaced"
        )
        return Cause("replaced", reason)

    def _unused(self, cause: Cause, way: list[tuple[Module, str]]) -> Cause:
        """Return the cause of a parameter that was never used, with the module that was not called."""
        assert self.seen is not None
        path: list[str] = []
        for module, attribute in way:
            path.append(attribute)
            part = module._modules.get(attribute)
            if part is not None and not any(self.seen.was_called(each) for each in part.modules()):
                line = attribute_line(module, attribute)
                where = f" (set at {line.shown()})" if line is not None else ""
                return Cause("unused", f"its module `{'.'.join(path)}`{where} was never called", line)
        return cause


def _way(model: Module, path: str) -> list[tuple[Module, str]]:
    """Return the modules on the way to a parameter, each with the name of the next one."""
    way, module = [], model
    for part in path.split("."):
        way.append((module, part))
        module = module._modules.get(part, module)  # type: ignore[assignment]
    return way


def _is_in(suspect: Suspect, way: list[tuple[Module, str]]) -> bool:
    """Return whether a line is in the `forward` of a module on the way to a parameter."""
    for module, _ in way:
        code = getattr(type(module).forward, "__code__", None)
        if code is not None and code.co_filename == suspect.line.file and code.co_name == suspect.line.function:
            lines = [number for *_, number in code.co_lines() if number]
            if min(lines) <= suspect.line.number <= max(lines):
                return True
    return False


def _modules_of(graph: _Graph, models: list[Module]) -> list[str]:
    """Return the paths of the modules that own leaves of a graph."""
    found: dict[str, None] = {}
    for model in models:
        for path, module in model.named_modules():
            if any(id(p) in graph.leaves for p in module._parameters.values() if p is not None):
                found.setdefault(f"{path}: {type(module).__name__}" if path else type(module).__name__)
    return list(found)


# What a graph keeps -------------------------------------------------------------------------------


def _kept(node: Node) -> Iterator[tuple[Any, bool]]:
    """Yield the arrays that a node has saved, and whether each is a leaf's."""
    if getattr(node, "saved", None) is None:
        return
    if isinstance(node, OpNode):
        for (kind, _), item in zip(node.plan.sources, node.saved, strict=True):
            if kind not in TENSORS or kind == PACKED:
                continue
            if kind == INPUT:
                with contextlib.suppress(Exception):  # (a tensor without an array)
                    yield item[0]._array, item[0]._edge is None and item[0]._requires_grad
            else:
                yield item[0], False
    elif isinstance(node, FunctionNode):
        for item in node.saved:
            if isinstance(item, tuple) and len(item) == 4:
                tensor = item[0]
                array = getattr(tensor, "_array", tensor)
                yield array, isinstance(tensor, Tensor) and tensor._edge is None and tensor._requires_grad


def _weigh(made: Explanation, graph: _Graph, seen: watch | None) -> None:
    """Sum the memory that a graph keeps, of each array once."""
    counted: set[int] = set()
    leaves = {id(storage(x._array)) for x in graph.leaves.values() if isinstance(x._array, np.ndarray)}
    for node in sorted(graph.operations(), key=lambda node: node.number):
        size = 0
        for array, of_leaf in _kept(node):
            root = storage(array)
            if not isinstance(array, np.ndarray) or id(root) in counted:
                continue
            counted.add(id(root))
            if of_leaf or id(root) in leaves:
                made.parameter_bytes += root.nbytes
            else:
                size += root.nbytes
        if size:
            event = seen.nodes.get(node.number) if seen is not None else None
            shape = "" if node.outputs > 1 else f" {tuple(node.shape)}"
            made.held.append(Held(f"{node.name()}{shape}", None if event is None else event.line, size))
            made.bytes += size
    made.held.sort(key=lambda held: -held.bytes)


def _look_at_shapes(made: Explanation, graph: _Graph, seen: watch | None) -> None:
    """Note where shapes or dtypes of operands differ."""
    for node in sorted(graph.operations(), key=lambda node: node.number):
        if node.outputs != 1:
            continue
        event = seen.nodes.get(node.number) if seen is not None else None
        where = f" at {event.line.shown()}" if event is not None else ""
        name = name_of_op(node.op) if isinstance(node, OpNode) else node.name()
        out, kind = tuple(node.shape), node.dtype
        if event is not None and len(event.shapes) > 2:
            shapes = list(event.shapes[:-1])
        else:
            shapes = [tuple(shape_and_kind(edge)[0]) for edge in node.edges if edge is not None]
        if isinstance(node, OpNode) and node.op.elementwise and any(shape != out for shape in shapes if shape):
            text = f"{name} of {' and '.join(map(str, shapes))} gives {out}{where}"
            if all(shape != out for shape in shapes) and len(shapes) > 1:
                text += " (every operand is expanded: is that intended?)"
            made.broadcasts.append(text)
        kinds = {shape_and_kind(edge)[1] for edge in node.edges if edge is not None} - {kind, None}
        if kinds and kind is not None:
            before = ", ".join(sorted(dtypes.from_numpy_dtype(each).name for each in kinds))
            made.casts.append(f"{name}: {before} becomes {dtypes.from_numpy_dtype(kind).name}{where}")


# A model, an optimizer ----------------------------------------------------------------------------


def _paths(model: Module) -> dict[int, list[str]]:
    """Return all paths of each parameter, by id."""
    paths: dict[int, list[str]] = {}
    for path, p in model.named_parameters(remove_duplicate=False):
        paths.setdefault(id(p), []).append(path)
    return paths


def _of_model(model: Module, frame: FrameType) -> ModelExplanation:
    rows = []
    parameters = dict(model.named_parameters())
    paths = _paths(model)
    for name, p in parameters.items():
        others = [path for path in paths[id(p)] if path != name]
        reason = f"also used as {', '.join(others)}" if others else ""
        rows.append(Row(name, tuple(p.shape), "trained" if p.requires_grad else "frozen", reason))
    hidden = _hidden(model)
    for name, hidden_one in hidden.items():
        owner, attribute = _storage(model, name)
        line = None if owner is None else attribute_line(owner, attribute)
        where = f", set at {line.shown()}" if line is not None else ""
        reason = (
            f"in a plain attribute, list or dict{where}: `parameters()` does not see it; use `nn.Parameter`, "
            "`nn.ModuleList`, `nn.ModuleDict` or `nn.ParameterList`"
        )
        rows.append(Row(name, tuple(hidden_one.shape), "forgotten", reason, line))
    return ModelExplanation(_title(model, rows), rows, _notes_of(model))


def _notes_of(model: Module) -> list[str]:
    modes = {module.training for module in model.modules()}
    buffers = list(model.buffers())
    notes = [f"{_count(len(buffers), 'buffer')}, which are not trained"] if buffers else []
    if len(modes) > 1:
        inner = [path for path, module in model.named_modules() if module.training != model.training]
        mode = "training" if model.training else "evaluation"
        notes.append(f"the model is in {mode} mode, but not {', '.join(inner[:5])}{' …' if len(inner) > 5 else ''}")
    return notes


def _storage(model: Module, name: str) -> tuple[Module | None, str]:
    """Return the module that has the plain attribute in which a hidden parameter is, and the attribute's name."""
    path = name.partition("[")[0].split(".")
    module: Module = model
    for part in path:
        inner = module._modules.get(part)
        if inner is None:
            return module, part
        module = inner
    return None, ""


def _title(model: Module, rows: list[Row]) -> str:
    counts = []
    for state in ("trained", "frozen", "forgotten", "foreign"):
        of_state = [row for row in rows if row.state == state]
        if of_state:
            numbers = sum(int(np.prod(row.shape)) for row in of_state)
            counts.append(f"{len(of_state)} {state} ({numbers:,} numbers)")
    return f"{type(model).__name__}: {', '.join(counts) or 'no parameters'}"


def _of_optimizer(optimizer: Any, model: Any, frame: FrameType) -> OptimizerExplanation:
    groups = list(optimizer.param_groups)
    trained = {id(p): k for k, group in enumerate(groups) for p in group["params"]}
    if model is None:
        models = modules_in(users_frames(frame))
        used = {name: m for name, m in models.items() if any(id(p) in trained for p in m.parameters())}
        candidates = used or models
        if not candidates:
            raise TypeError(
                "explain(): no model is found in the variables of the calling functions: pass it as `model`"
            )
        model = next(iter(candidates.values()))
    if not isinstance(model, Module):
        raise TypeError(f"explain(): model should be a Module, but got {type(model).__name__}")
    rows, notes = [], []
    rates = {k: float(group["lr"]) for k, group in enumerate(groups) if "lr" in group}
    hidden = _hidden(model)
    own: dict[str, Tensor] = {**dict(model.named_parameters()), **hidden}
    for name, p in own.items():
        group = trained.get(id(p))
        plain = " (it is in a plain list, dict or attribute, which the model does not register)" * (name in hidden)
        if group is not None and not p.requires_grad:
            row = Row(name, tuple(p.shape), "frozen", f"in group {group}, but requires_grad is False")
        elif group is not None and rates.get(group) == 0:
            row = Row(name, tuple(p.shape), "frozen", f"the learning rate of group {group} is 0")
        elif group is not None:
            rate = f", learning rate {rates[group]:g}" if group in rates else ""
            row = Row(name, tuple(p.shape), "trained", f"group {group}{rate}")
        elif p.requires_grad:
            row = Row(name, tuple(p.shape), "forgotten", f"in no group of the optimizer{plain}")
        else:
            row = Row(name, tuple(p.shape), "frozen", "requires_grad is False; in no group")
        rows.append(row)
    ids = {id(p) for p in own.values()}
    foreign = [(k, p) for k, group in enumerate(groups) for p in group["params"] if id(p) not in ids]
    shapes = {tuple(p.shape): name for name, p in own.items()}
    for k, p in foreign:
        alike = shapes.get(tuple(p.shape))
        reason = f"in group {k}, but no parameter of the model" + (f" (of the shape of {alike})" if alike else "")
        rows.append(Row(name_of(p, frame) or "a tensor", tuple(p.shape), "foreign", reason))
    if foreign and not any(row.state == "trained" for row in rows):
        notes.append(
            "the optimizer trains none of the model's parameters: it was made for another model, a copy of it, or "
            "before its parameters were replaced; make it anew: "
            f"`{type(optimizer).__name__}(model.parameters(), ...)`"
        )
    made = OptimizerExplanation(_title(model, rows), rows, notes)
    made.title = f"{type(optimizer).__name__} for {made.title}"
    return made


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
