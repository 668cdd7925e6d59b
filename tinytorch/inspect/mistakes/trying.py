"""Remedies that are found by trying: small changes of the code, each carried out on copies of the values at hand.

A way (`WAYS`) yields candidates: the size of a change, the remedy, and what carries it out: it fails (`Failed`) where
the program does not go on, or returns how well the change fits. The smallest that runs is shown. Where two of the same
size do, both are shown; where more do, none is known to be right.

`Site` are the edits (`edits`) of the expression that failed: filled with what the user wrote an edit is the remedy,
filled with the values of the operands it is run, and then what follows is, as far as it is known (`running`). Other
ways change what made a value, the input of the whole model, or a layer.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from tinytorch import nn
from tinytorch.autograd import grad
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.arrays import of_library, of_numpy
from tinytorch.inspect.mistakes.edits import TRIES, Edit, Edits
from tinytorch.inspect.mistakes.failure import Failure, assigned, module_calls, operand, with_texts
from tinytorch.inspect.mistakes.layers import arguments_of, constructor, constructors, like, may_be_made, number
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.running import (
    NAMES,
    Interpreter,
    called,
    evaluated,
    onward,
    plain,
    statements_from,
    values_before,
    variables_of,
)
from tinytorch.inspect.mistakes.trial import Failed, Trial, Unknown
from tinytorch.inspect.source import assignment
from tinytorch.kernels import dtypes

__all__ = ["found_by_trying"]

#: The size of a change, the remedy (or what returns it), and what carries the change out.
Candidate = tuple[float, Any, Callable[[], Any]]


def found_by_trying(failure: Failure) -> list[Any]:
    """Return the smallest changes with which the program goes on: one, or two of the same size."""
    if not isinstance(
        failure.error, (RuntimeError, TypeError, ValueError, AttributeError, LookupError, AssertionError)
    ):
        return []
    if isinstance(failure.error, AssertionError) and not failure.inside:
        return []  # (what the user asserts is not so)
    found: list[Any] = []
    for way in WAYS:
        with contextlib.suppress(Unknown):
            found = found or way(failure)
    if len(found) == 1:
        found = _outside(failure, found[0]) or found
    return found if len(found) <= 2 else found[:1]


def search(trial: Trial, candidates: Iterable[Candidate], most: int = 2) -> list[Any]:
    """Return the remedies of the smallest candidates that run, and of these the best, unless they are too many."""
    found: dict[Any, Any] = {}
    least = math.inf
    for size, remedy, run in itertools.islice(sorted(candidates, key=lambda each: each[0]), TRIES):
        if size > least + 1e-9:
            break
        trial.renew()
        try:
            fit = run()
        except (Failed, Unknown):
            continue
        if fit is not None:
            least = min(least, size)
            found.setdefault(remedy() if callable(remedy) else remedy, fit)
    best = max(found.values(), default=None)
    remedies = [remedy for remedy, fit in found.items() if fit == best]
    return remedies if len(remedies) <= most else []


class Site(Edits):
    """The expression that failed, and the smallest of its edits with which the program goes on.

    Attributes:
        everywhere: the edits of variables that are right only if what follows uses the edited value, too.
    """

    def __init__(
        self, failure: Failure, about: set[str] | None = None, before: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(failure, about, before)
        self.everywhere = set[str]()

    def _edited(self, edit: Edit, words: dict[str, str], every: bool) -> Any:
        """Return the expression with the texts of an edit, in which operands are called by some words."""
        if edit.whole:
            return ast.parse(edit.whole.format_map(words), mode="eval").body
        texts = {name: edit.texts.get(name, f"{{{name}}}") for name in (self.nodes if every else edit.texts)}
        assert self.failure.call is not None
        marked = {id(self.nodes[name]): text.format_map(words) for name, text in texts.items()}
        tree = with_texts(self.failure.call, marked)
        if isinstance(tree, ast.Call) and edit.keywords:
            tree.keywords = [each for each in tree.keywords if each.arg not in edit.keywords]
            tree.keywords += [ast.keyword(name, ast.parse(text, mode="eval").body)
                              for name, text in edit.keywords.items() if text is not None]  # fmt: skip
        if isinstance(tree, ast.Call) and edit.name:
            owner = f"{ast.unparse(tree.func.value)}." if isinstance(tree.func, ast.Attribute) else ""
            tree.func = ast.parse(owner + edit.name, mode="eval").body
        return tree

    def text(self, edit: Edit) -> Any:
        """Return the remedy; what takes a tensor out of a tuple belongs where it was assigned, and so does a number."""
        for name, text in edit.texts.items():
            node, value = self.nodes[name], self.values[name]
            made = self.failure.assignment(node)
            if repr(edit) in self.everywhere:
                edited = ast.parse(text.format_map({name: operand(made.value)}), mode="eval").body
                return f"{ast.unparse(made.targets[0])} = {self.failure.unparsed(edited)}", made.lineno
            if text.isdigit() and self.is_constant(name):
                return f"{ast.unparse(made.targets[0])} = {text}", made.lineno
            if text in (f"{{{name}}}[0]", f"{{{name}}}.values") and isinstance(value, tuple) and made is not None and (
                isinstance(made.value, ast.Call) and len(edit.texts) == 1 and isinstance(made.targets[0], ast.Name)
            ):  # fmt: skip
                target, source = ast.unparse(made.targets[0]), ast.unparse(made.value).replace("'", '"')
                if text.endswith("]") and len(value) == 2:
                    return f"{target}, _ = {source}", made.lineno
                return f"{target} = {source}{text.partition('}')[2]}", made.lineno
        words = {name: operand(node) for name, node in self.nodes.items()}
        target = getattr(self.failure.call, "in_place", "") if edit.whole else ""
        if edit.name and f"{edit.name}_" == self.failure.name and isinstance(self.failure.statement(), ast.Expr):
            target = next(iter(words.values()))  # (the result is used no more)
        return f"{target} = " * bool(target) + self.failure.unparsed(self._edited(edit, words, False))

    def run(self, edit: Edit) -> Any:
        """Return the result of the edited expression.

        Raises:
            Failed: it fails as well.
        """
        self.trial.renew()
        words = {name: f"operand{k}_" for k, name in enumerate(self.nodes)}
        own = {word: self.trial.private(self._raw[name]) for name, word in words.items()}
        return evaluated(self.trial, self._edited(edit, words, True), self.scope, own)

    def fit(self, edit: Edit) -> Any:
        """Return how well an edit fits; None if it does not.

        A result whose shape is that of an operand fits best; that of an arithmetic operation has to be so.
        """
        result = self.run(edit)
        alike = isinstance(result, Tensor) and result.shape in [each.shape for each in self.tensors().values()]
        call = self.failure.call
        if result is None:
            return None
        if self._is_constant(result):
            return None
        norm = (
            self.failure.calls_module and "Norm" in self.failure.name and isinstance(result, Tensor) and self.tensors()
        )
        if norm and result.shape not in [x.shape for x in self.tensors().values()]:
            return None
        elementwise = isinstance(call, ast.BinOp) and not isinstance(call.op, ast.MatMult)
        if elementwise and len(self.tensors()) == 2 and "dims" in self.about and not alike:
            return None
        index = next(k for k, step in enumerate(self.failure.steps) if step is self.failure.user)
        goes_on = 2
        try:
            onward(self.trial, self.failure, index, result)
        except Failed as error:
            goes_on = 0
            same = plain(str(error)) == plain(self.failure.text)  # (the same mistake, at another place)
            name = self.variable(edit)
            if not name and not same:
                raise
            try:
                if name:
                    again, changed = self.run(edit), {ast.unparse(self.nodes[name]): self._value(edit.texts[name])}
                    onward(self.trial, self.failure, index, again, changed)
                    self.everywhere.add(repr(edit))
                    goes_on = 1
            except Failed:
                if not same:
                    raise
        first = next(iter(self.tensors().values()), None)
        batch = isinstance(result, Tensor) and first is not None and result.shape[:1] == first.shape[:1]
        kept = sum(self.keeps_batch(name, text) for name, text in edit.texts.items())
        return goes_on, alike, kept, any("unsqueeze(0)" in text for text in edit.texts.values()), batch

    def _is_constant(self, result: Any) -> bool:
        """Return whether a loss is the same whatever the model computes, as that of a single class."""
        if not re.search("loss|entropy", self.failure.name, re.IGNORECASE) or not isinstance(result, Tensor):
            return False
        given = [self.trial.private(self._raw[name]) for name, x in self.tensors().items() if x.requires_grad]
        if result.numel() != 1 or not result.requires_grad or result.is_meta or not given:
            return False
        found = self.trial.do(partial(grad, allow_unused=True, retain_graph=True), result, given)
        return not any(each is not None and bool((each != 0).any()) for each in found)

    def keeps_batch(self, name: str, text: str) -> bool:
        """Return whether an edit gives a tensor the first size that one of the other tensors has."""
        others = {value.shape[:1] for key, value in self.tensors().items() if key != name and value.ndim > 1}
        if not isinstance(self.values[name], Tensor) or not others or "{" not in text:
            return False
        edited = self._value(text)
        return isinstance(edited, Tensor) and edited.shape[:1] in others

    def _value(self, text: str) -> Any:
        """Return the value of an edited operand."""
        words = {key: f"operand{k}_" for k, key in enumerate(self.values)}
        own = {words[key]: self.trial.private(value) for key, value in self._raw.items()}
        return evaluated(self.trial, text.format_map(words), self.scope, own)

    def variable(self, edit: Edit) -> str:
        """Return the operand that an edit changes, if it is a variable that is first used here; "" otherwise."""
        name, tree = next(iter(edit.texts), ""), self.failure.user.tree()
        node = self.nodes.get(name)
        made = self.failure.assignment(node)
        if not isinstance(node, ast.Name) or made is None or tree is None or not isinstance(made.targets[0], ast.Name):
            return ""
        lines = [each.lineno for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == node.id]
        fields = re.findall(r"{(\w+)}", edit.texts[name])
        before = any(made.lineno < line < self.failure.user.line for line in lines)
        return "" if before or fields != [name] or len(edit.texts) > 1 else name

    def tried(self) -> list[Any]:
        """Return the smallest edits of the expression that run and fit."""
        if not self.values or not self.about:
            return []
        self.trial.warns = True
        try:
            self.run(Edit(0))
        except Failed as error:
            self.trial.warns = False
            if type(error.__cause__) is not type(self.failure.error):
                return []
            edits = {repr(each): each for each in self.edits()}.values()
            return search(
                self.trial, [(each.size, partial(self.text, each), partial(self.fit, each)) for each in edits]
            )
        except Unknown:
            return []
        return []  # it is not the operands that are wrong


# What made a value ---------------------------------------------------------------------------------


def _of_origin(failure: Failure) -> list[Any]:
    """Return the edit of the expression that made a value, in an assignment or in place, with which the call runs."""
    call = failure.call
    if call is None or failure.user.tree() is None:
        return []
    scope = NAMES | variables_of(failure.user) | failure.variables
    candidates: dict[Any, Candidate] = {}

    def run(text: str, word: str) -> Any:
        interpreter = Interpreter(failure.trial, scope)
        value = interpreter.visit(ast.parse(text, mode="eval").body)
        parts = [node for node in ast.walk(call) if isinstance(node, ast.expr) and ast.unparse(node) == word]
        interpreter.given = {id(node): value for node in parts}
        interpreter.visit(call)
        return None if value is None else True

    for node in [each for each in ast.walk(call) if isinstance(each, ast.expr)]:
        statement, place = assigned(failure, node)
        made = node if statement is None else statement.value
        for text, definition in _made_otherwise(failure, made):
            if definition is not None:
                key = f"{ast.unparse(definition[0])}()", definition[1]
            elif statement is not None:
                key = f"{ast.unparse(statement.targets[0])} = {text}", place
            else:
                key = failure.replaced(node, text), 0
            candidates.setdefault(key, (1, key, partial(run, text, ast.unparse(node))))
    return search(failure.trial, candidates.values())


def _made_otherwise(failure: Failure, made: ast.expr) -> Iterator[tuple[str, Any]]:
    """Return other expressions for one that made a value, with the assignment that is changed, if that is another one.

    They are an object of a class for the class, what a method was called of, and the item of a tuple.
    """
    call = made if isinstance(made, ast.Call) else None
    value = failure.value(made if call is None else call.func)
    if isinstance(value, type) and issubclass(value, nn.Module):
        if call is None:
            yield f"{ast.unparse(made)}()", None
        elif call.args:
            options = [ast.unparse(each) for each in call.keywords]
            options += ["dim=-1"] * ("dim" in inspect.signature(value).parameters and "dim=" not in "".join(options))
            definition = assigned(failure, call.func)
            text = f"{ast.unparse(call.func)}({', '.join(options)})({', '.join(map(ast.unparse, call.args))})"
            yield text, definition if definition[0] is not None else None
    elif call is not None and call is not failure.call and isinstance(call.func, ast.Attribute):
        if not call.args and not call.keywords:
            yield ast.unparse(call.func.value), None
    elif isinstance(made, ast.Subscript) and ast.unparse(made.slice) == "-1" and failure.modules:
        if any(getattr(each, "bidirectional", False) for each in failure.modules[0].modules()):
            state = ast.unparse(made.value)
            yield f"torch.cat(({state}[-2], {state}[-1]), dim=1)", None
    elif isinstance(made, ast.Tuple) and len(made.elts) == 1:
        yield ast.unparse(made.elts[0]), None


def _of_other_batch(failure: Failure) -> list[Any]:
    """Return what `_of_earlier` does where a layer gets another number of samples than the model."""
    outer = [x for x in module_calls(failure.steps)[0][1].values() if isinstance(x, Tensor)] if failure.modules else []
    inner = [x for x in failure.given.values() if isinstance(x, Tensor)]
    if not outer or not inner or outer[0].shape[:1] == inner[0].shape[:1] or isinstance(failure.module, nn.RNNBase):
        return []
    return _of_earlier(failure)


def _of_earlier(failure: Failure) -> list[Any]:
    """Return the only option of a call before, which made a value, with which the program goes on: `cat(x, dim=1)`."""
    trial, step = failure.trial, failure.user
    _, _, goal = statements_from(step)
    index = next(k for k, each in enumerate(failure.steps) if each is step)
    needed = Site(failure)
    candidates: dict[Any, Candidate] = {}

    def run(make: Callable[[], Any], before: Mapping[str, Any], call: ast.Call) -> Any:
        trial.goal, trial.passed = goal, False
        try:
            onward(trial, failure, index, make(), dict(before), call)
        finally:
            trial.goal, trial.instead = None, {}
        return trial.passed or None

    for statement, call in _calls_before(failure, goal):
        names = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)}
        try:
            before = values_before(trial, failure, statement, names) if statement is not None else {}
            site = Site(failure.at(call), {"dims"}, before)
            made: list[Candidate] = [
                (edit.size, site.text(edit), partial(site.run, edit)) for edit in site.options(needed)
            ]
        except (Unknown, Failed):
            continue
        for size, text, make in [*made, *_made_larger(failure, site, call, needed)]:
            remedy = (text, getattr(statement, "lineno", 0)) if isinstance(text, str) else text
            candidates.setdefault((size, remedy), (size, remedy, partial(run, make, before, call)))
    return search(trial, candidates.values(), most=1)


def _made_larger(failure: Failure, site: Site, call: ast.Call, needed: Site) -> Iterator[Candidate]:
    """Yield the constructor of a layer that is called with which its result has as many numbers as are needed."""
    layer, trial = site.failure.function, failure.trial
    place = made_at(failure, layer) if isinstance(layer, nn.Linear) else ""
    numbers = [each for each in needed.values.values() if type(each) is int and each > 0]
    if place and len(numbers) > 1:
        text = like(layer, out_features=math.prod(numbers))

        def make() -> Any:
            trial.instead = {id(layer): evaluated(trial, text, NAMES)}
            return evaluated(trial, call, site.scope)

        yield 1.5, (text, place), make


def _calls_before(failure: Failure, goal: ast.expr) -> Iterator[tuple[ast.stmt | None, ast.Call]]:
    """Yield the calls from which an expression of the user's function has its values, and their assignments."""
    tree = failure.user.tree()
    parts: list[tuple[ast.stmt | None, ast.expr, int]] = [(None, goal, failure.user.line)]
    seen: set[int] = set()
    for statement, whole, line in parts:
        for node in ast.walk(whole):
            if isinstance(node, ast.Call) and node is not goal:
                yield statement, node
            made = assignment(tree, node.id, line) if isinstance(node, ast.Name) and tree is not None else None
            if made is not None and id(made) not in seen and len(parts) < 12:
                seen.add(id(made))
                parts.append((made, made.value, made.lineno))


def _outside(failure: Failure, text: Any) -> list[Any]:
    """Return a layer's input in the layout of a batch, if it came from outside, as what the model is given."""
    tree = failure.user.tree()
    if re.search(r"unsqueeze\(0\)|permute\(", str(text)) is None:
        return []
    if not (failure.calls_module and isinstance(tree, ast.FunctionDef) and tree.name == "forward"):
        return []
    given = [each.arg for each in tree.args.args[1:] if assignment(tree, each.arg, failure.user.line) is None]
    with contextlib.suppress(SyntaxError, Unknown):
        parts = [ast.unparse(node) for node in ast.walk(ast.parse(str(text))) if isinstance(node, ast.Call)]
        ends = [part.removeprefix(name) for part in parts for name in given if part.startswith(f"{name}.")]
        found = _of_whole_model(failure) if ends else []
        return [each for each in found if max(ends, key=len) in str(each)] if len(found) == 1 else []
    return []


def _of_sizes(failure: Failure) -> list[Any]:
    """Return the assignments of a tensor of a module with another size, one that the other operand has."""
    site = Site(failure)
    candidates: list[Candidate] = []
    for name, x in site.tensors().items() if "dims" in site.about else ():
        statement, place = assigned(failure, site.nodes[name])
        if statement is None or not (isinstance(site.nodes[name], ast.Attribute) or x.requires_grad):
            continue
        calls = [each.args for each in ast.walk(statement) if isinstance(each, ast.Call) and each.args]
        written = [each[0].elts if isinstance(each[0], ast.Tuple) else each for each in calls]
        parts = next((each for each in written if len(each) == x.ndim > 0), [])
        if any(isinstance(part, ast.Constant) and part.value != n for part, n in zip(parts, x.shape, strict=False)):
            continue  # (they are not its sizes)
        sizes = {size for other, y in site.tensors().items() if other != name for size in y.shape}
        for (k, part), size in itertools.product(enumerate(parts), sizes):
            more = size == x.shape[k] + 1 and not isinstance(part, ast.Constant)
            text = failure.in_text(statement, part, f"{ast.unparse(part)} + 1" if more else f"{size}")
            again = (*x.shape[:k], size, *x.shape[k + 1 :])
            edit = Edit(1, {name: f"torch.zeros({again}, dtype={x.dtype})"})
            candidates.append((1, (text, place), partial(site.fit, edit)))
    return search(failure.trial, candidates)


# The whole model ----------------------------------------------------------------------------------


def _of_whole_model(failure: Failure) -> list[Any]:
    """Return the edits of the input of the outermost model with which all of it runs."""
    calls = [k for k, step in enumerate(failure.steps) if step.ours and step.code.co_name == "_call_impl"]
    users = [k for k, step in enumerate(failure.steps[: calls[0]] if calls else ()) if step.users]
    if not failure.modules or not users or failure.steps[users[-1]] is failure.user:
        return []
    outer = Failure(failure.error, failure.steps, users[-1], failure.trial, failure.modes)
    if not outer.calls_module:
        return []
    site = Site(outer, Site(failure).about & {"dims", "cast"})
    place = f"{outer.user.file}:{outer.user.line}"
    return [(text, place) if isinstance(text, str) else text for text in site.tried()]


def _sibling(failure: Failure) -> list[Any]:
    """Return the pooling of other dimensions, or the padded convolution, with which the whole model runs."""
    summed = re.search("must match the size of tensor b|Sizes of tensors must match", failure.text) is not None
    if not failure.modules:
        return []
    trial, root, given = failure.trial, failure.modules[0], module_calls(failure.steps)[0][1]
    candidates: list[Candidate] = []

    def run(text: str, module: nn.Module) -> bool:
        trial.instead = {id(module): evaluated(trial, text, NAMES)}
        try:
            called(trial, trial.private(root), (), {name: trial.private(value) for name, value in given.items()})
        finally:
            trial.instead = {}
        return True

    for module in root.modules():
        name, texts = type(module).__name__, []
        if module_of(type(module)) == "tinytorch.nn.modules.pooling" and name[-2:] in ("1d", "2d", "3d"):
            text = constructor(name, arguments_of(module))
            texts = [text.replace(name, f"{name[:-2]}{k}d") for k in "123".replace(name[-2], "")]
        convolution = isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) and set(module.stride) == {1}
        if summed and convolution and not any(module.padding):
            around = number(tuple(d * (k - 1) // 2 for d, k in zip(module.dilation, module.kernel_size, strict=True)))
            texts = [constructor(name, arguments_of(module), {"padding": around})]
        for text in texts:
            candidates.append((1, partial(_placed, failure, text, module), partial(run, text, module)))
    return search(trial, candidates)


def _placed(failure: Failure, text: str, module: nn.Module) -> tuple[str, Any]:
    return text, made_at(failure, module) or 0


# Layers -------------------------------------------------------------------------------------------


def _resized(failure: Failure) -> list[str]:
    """Return the constructors that make a layer which accepts what the innermost one was given: the smallest change."""
    module, given = failure.module, failure.given
    tensors = [each for each in given.values() if isinstance(each, Tensor)]
    known = module is not None and module_of(type(module)).startswith("tinytorch.nn.modules.")
    if not known or not tensors or not tensors[0].ndim or "Loss" in type(module).__name__:
        return []
    if not isinstance(module, nn.RNNBase) and not may_be_made(module):
        return []
    if not isinstance(failure.error, (RuntimeError, ValueError, IndexError, AssertionError)) or failure.steps[-1].users:
        return []
    outer = [x for x in module_calls(failure.steps)[0][1].values() if isinstance(x, Tensor) and x.ndim > 1]
    batch = max([x.shape[0] for x in outer], default=0)
    folded = any(x.ndim > 2 for x in outer) and batch and tensors[0].shape[0] % batch == 0
    other = outer and tensors[0].ndim > 1 and tensors[0].shape[0] != batch and not folded
    if type(module).__name__ == "Linear" and other:
        return []  # (something is wrong with the batch before)
    calls = [k for k, step in enumerate(failure.steps) if step.ours and step.code.co_name == "_call_impl"
             and step.frame.f_locals.get("self") is module]  # fmt: skip
    local: list[str] = []
    trial, dtype = failure.trial, next((each.dtype for each in module.parameters()), dtypes.float32)

    def run(text: str) -> bool:
        args = tuple(map(trial.private, given.values()))
        for layer in evaluated(trial, f"[{text}]", NAMES):
            made = trial.do(lambda layer=layer: layer.to(dtype).train(module.training))
            args = (called(trial, made, args, {}),)
        local.append(text)
        onward(trial, failure, calls[-1] if calls else 0, args[0])
        return True

    sizes = {text: size for size, text in sorted(constructors(module, tensors))}
    found = search(trial, [(size, text, partial(run, text)) for text, size in sizes.items()])
    least = min([sizes[text] for text in local], default=0)
    if all(sizes[text] > least for text in found):  # (what follows has mistakes of its own)
        return [text for text in local if sizes[text] == least] if len(local) <= 2 else []
    return found


def _of_state(failure: Failure) -> list[str]:
    """Return the initial state of a recurrent layer for the number of layers and the batch that it has."""
    found = re.search(r"Expected (?:hidden|cell).* size \((.*?)\), got [\[(](.*?)[\])]", failure.text)
    if found is None:
        return []
    want, have = ([int(each) for each in text.split(",") if each.strip()] for text in found.groups())
    pair = isinstance(failure.given.get("hx"), tuple)
    if have[1:] == want[1:] and have[:1] in ([1], [2 * sum(want[:1])]):
        change = f"{{}}.repeat({want[0]}, 1, 1)" if have == [1, *want[1:]] else "{}[0::2] + {}[1::2]"
        each = change.replace("{}", "each")
        return [failure.with_input(f"tuple([{each} for each in {{}}])" if pair else change, "hx")]
    batch = f"{failure.said(next(iter(failure.given)))}.shape[{0 if failure.module.batch_first else 1}]"
    node = failure.node(next(iter(failure.given)))
    if not failure.is_users_call or (isinstance(node, ast.Call) and not hasattr(failure.value(node.func), "_modules")):
        return [f"torch.zeros({found[1]})"]
    zeros = f"torch.zeros({want[0]}, {batch}, {want[2]})" if len(want) == 3 else f"torch.zeros({found[1]})"
    return [failure.with_input(f"({zeros}, {zeros})", "hx") if pair else zeros]


#: The ways in which remedies are looked for, in this order, until one finds some.
WAYS: tuple[Callable[[Failure], list[Any]], ...] = (
    of_numpy, lambda failure: Site(failure).tried(), of_library, _of_other_batch, _of_origin, _of_sizes,
    _of_whole_model, _sibling, _resized, _of_state, _of_earlier,
)  # fmt: skip
