"""Remedies that are found by trying: small edits of the code that failed, each carried out on copies of its values.

An edit is a template for an operand of the failing expression, in which `{name}` stands for an operand:
`{other}.unsqueeze(-1)`. Filled with what the user wrote it is the remedy, filled with the values of the operands it is
run, and then what follows is, as far as it is known (`running`). Edits are tried from the smallest one; the smallest
that runs is shown. Where two of the same size do, both are shown; where more do, none is known to be right.

The layer that failed is tried with another size, too, and the call of the whole model with an edited input.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from tinytorch import nn
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, Text, assigned, module_calls, operand, with_texts
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.running import Interpreter, called, onward, statements_from, values_before, variables_of
from tinytorch.inspect.mistakes.trial import Failed, Trial, Unknown
from tinytorch.inspect.source import assignment
from tinytorch.kernels import dtypes

__all__ = ["found_by_trying"]

#: How many edits are tried, at most.
TRIES = 300

Remedy = "str | tuple[str, int] | tuple[str, str]"

#: What messages say that are about dtypes, about shapes, and about kinds of arguments: only such edits are tried.
_ABOUT = {
    "cast": r"dtypes?|scalar type|not implemented for '\w+'|bool\w*|floating|\w*Type|type|Long|Float|integers?",
    "dims": r"shapes?|sizes?|dimensions?|dims?|[1-5]-?[dD]|must match|multiplied|matri\w+|channels|batch\w*|ordering|"
    r"multi-target|targets|tensors? expected|view size|is invalid for input|input_lengths|concatenated|permute",
    "kind": r"must be|not iterable|has no attribute|unsupported operand|[eE]xpected|not a Module|cannot assign|"
    r"callable|subscriptable|indices|numpy\(\)|deepcopy|only|can't convert|iterable|stride|ambiguous|converted|element|"
    r"slice|missing 1 required|sequence of length|stack expects|not supported between|exclusive|Invalid|Scalar|"
    r"between 0 and 1",
    "order": r"batch_size|lengths|running_mean",
}


@dataclass(frozen=True)
class Edit:
    """An edit of an expression.

    Attributes:
        size: how large it is; the smallest one that fits is the remedy.
        texts: the templates of the operands that are edited.
        name: the function that is called instead, or "" for the same one.
        keywords: the keywords that are added, or left out where the text is None.
        whole: the template of the whole expression, if more of it changes.
    """

    size: float
    texts: dict[str, str] = field(default_factory=dict)
    name: str = ""
    keywords: dict[str, str | None] = field(default_factory=dict)
    whole: str = ""


def found_by_trying(failure: Failure) -> list[Any]:
    """Return the smallest changes with which the program goes on: one, or two of the same size."""
    if not isinstance(
        failure.error, (RuntimeError, TypeError, ValueError, AttributeError, LookupError, AssertionError)
    ):
        return []
    ways: tuple[Callable[[Failure], list[Any]], ...] = (
        lambda failure: Site(failure).tried(), _of_other_batch, _of_origin, _of_sizes, _of_whole_model, _sibling,
        _resized, _of_state, _of_earlier,
    )  # fmt: skip
    found: list[Any] = []
    for way in ways:
        with contextlib.suppress(Unknown):
            found = found or way(failure)
    if len(found) == 1:
        found = _outside(failure, found[0]) or found
    turned = len(found) == 1 and re.search(r"\.(transpose\(|T\b)", str(found[0])) is not None
    if turned and failure.is_users_call and hasattr(failure.module, "batch_first"):
        found += _resized(failure)  # (another layer is as likely as another order of the dimensions)
    return found if len(found) <= 2 else found[:1]


def smallest(candidates: Iterable[tuple[float, Any]], run: Callable[[Any], Any]) -> dict[Any, Any]:
    """Return the smallest candidates that run, with what `run` says of how well they fit."""
    found: dict[Any, Any] = {}
    least = math.inf
    for size, each in itertools.islice(sorted(candidates, key=lambda pair: pair[0]), TRIES):
        if size > least + 1e-9:
            break
        try:
            fit = run(each)
        except (Failed, Unknown):
            continue
        if fit is not None:
            least = min(least, size)
            found[each] = fit
    return found


def chosen(found: dict[Any, Any]) -> list[Any]:
    """Return those that fit best, if they are not more than two."""
    best = max(found.values(), default=None)
    texts = [text for text, fit in found.items() if fit == best]
    return texts if len(texts) <= 2 else []


def evaluated(trial: Trial, text: str | ast.expr, outer: Mapping[str, Any], own: dict[str, Any] | None = None) -> Any:
    """Return the value of an expression in a trial."""
    node = ast.parse(text, mode="eval").body if isinstance(text, str) else text
    return Interpreter(trial, outer, own).visit(node)


#: How remedies name the package, if the user's names do not.
NAMES = {"nn": nn, "torch": sys.modules["tinytorch"]}


def _plain(text: str) -> str:
    """Return a message without its numbers, and what it says in brackets: which operation, of which shapes."""
    return re.sub(r"\d+|\(.*?\)", "", text)


class Site:
    """The expression that failed, whose operands are known.

    Attributes:
        failure: what is known of the call.
        about: the kinds of edits that the message is about.
        nodes: the expressions of its operands, by the names of the arguments (and of their items).
        values: the values of the operands: copies; none if the expression is not to be run again.
        everywhere: the edits of variables that are right only if what follows uses the edited value, too.
    """

    def __init__(
        self, failure: Failure, about: set[str] | None = None, before: Mapping[str, Any] | None = None
    ) -> None:
        self.failure, self.trial = failure, failure.trial
        self.about = {kind for kind, words in _ABOUT.items() if re.search(rf"(?<!\w)({words})(?!\w)", failure.text)}
        if isinstance(failure.error, LookupError):
            self.about.add("kind")
        self.about = self.about if about is None else about
        if "constraint" in failure.text:
            self.about = set()  # (the values are wrong)
        self.nodes: dict[str, ast.expr] = {}
        self.values: dict[str, Any] = {}
        self._raw: dict[str, Any] = {}
        self.everywhere = set[str]()
        self.scope = NAMES | variables_of(failure.user) | failure.variables | dict(before or {})
        call = failure.call
        if call is None or failure.name in _NOT_AGAIN:
            return
        function = _called(failure, call) if isinstance(call, ast.Call) else None
        foreign = function is not None and not _is_ours(function) and not failure.calls_module
        known = {id(failure.node(name)): (name, value) for name, value in failure.arguments.items()
                 if not foreign and name not in _collected(failure.function)}  # fmt: skip
        keywords = {id(each.value): each.arg for each in getattr(call, "keywords", ())}
        for k, node in enumerate(_operands(failure, call)):
            name, value = known.get(id(node), (keywords.get(id(node)) or f"operand_{k}", None))
            again = value is None or isinstance(value, (Text, Iterator)) or not isinstance(node, _COMPUTED)
            written = self._evaluated(node) if again else None
            value = value if written is None and not isinstance(value, (Text, Iterator)) else written
            if value is not None:
                self._take(name.replace(" ", "_"), node, value)

    @property
    def bare(self) -> bool:
        """Whether an operand is so large that its elements are not looked at."""
        return any(each.is_meta for each in self.tensors().values())

    def _evaluated(self, node: ast.expr) -> Any:
        """Return the value of an expression; None if it is not known, or fails."""
        try:
            return evaluated(self.trial, node, self.scope)
        except (Unknown, Failed):
            return None

    def _take(self, name: str, node: ast.expr, value: Any) -> None:
        """Note an operand; of a list or tuple that is written out, its items."""
        written = isinstance(node, (ast.List, ast.Tuple)) and not all(
            isinstance(each, ast.Constant) for each in node.elts
        )
        items = value if isinstance(value, (list, tuple)) and written else ()
        if items and len(items) == len(node.elts):  # type: ignore[attr-defined]
            for k, (part, item) in enumerate(zip(node.elts, items, strict=True)):  # type: ignore[attr-defined]
                self._take(f"{name}_{k}", part, item)
        else:
            try:
                self.nodes[name], self._raw[name], self.values[name] = node, value, self.trial.private(value)
            except Unknown:
                self.about = set()

    def tensors(self) -> dict[str, Tensor]:
        """Return the operands that are tensors."""
        return {name: value for name, value in self.values.items() if isinstance(value, Tensor)}

    # Text and run -----------------------------------------------------------------------------------

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

    def is_constant(self, name: str) -> bool:
        """Return whether an operand is a variable that holds a number written out."""
        made = self.failure.assignment(self.nodes[name])
        return made is not None and isinstance(made.value, ast.Constant) and isinstance(made.targets[0], ast.Name)

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
            same = _plain(str(error)) == _plain(self.failure.text)  # (the same mistake, at another place)
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
            edits = {repr(each): each for each in self.edits()}
            found = smallest([(each.size, key) for key, each in edits.items()], lambda key: self.fit(edits[key]))
        except Unknown:
            return []
        else:
            return []  # it is not the operands that are wrong
        texts: dict[Any, Any] = {}
        for key, fit in found.items():
            texts.setdefault(self.text(edits[key]), fit)
        return chosen(texts)

    # Edits ------------------------------------------------------------------------------------------

    def edits(self) -> Iterator[Edit]:
        """Return the edits that are tried: those of one operand, later operands first, and two for one operand."""
        single = []
        writes = self.failure.name.endswith("_")
        for place, (name, value) in enumerate(self.values.items()):
            if place == 0 and writes and isinstance(value, Tensor):
                continue  # (what is written has to be the tensor itself)
            single += [Edit(size - 0.01 * place * (text != "-1"), {name: text})
                       for size, text in self._of_operand(name, value)]  # fmt: skip
        yield from single
        yield from self._of_call()
        for name, x in self.tensors().items() if self.about & {"cast", "dims"} else ():
            for edit in single:
                if self.failure.name in ("view", "reshape", "permute"):
                    break
                if list(edit.texts) == [name] and not re.search(
                    r"\.(to\(|long|float|double|bool|argmax)", edit.texts[name]
                ):
                    for size, text in self._casts(name, x):
                        yield Edit(edit.size + size, {name: text.replace(f"{{{name}}}", edit.texts[name])})

    def _of_call(self) -> Iterator[Edit]:
        """Return the edits of what is called: a function of the same family, other keywords, exchanged arguments."""
        call, failure = self.failure.call, self.failure
        names = list(self.values)
        if isinstance(call, ast.Subscript) and len(names) == 2:
            owner, index = self.values.values()
            if isinstance(owner, Tensor) and isinstance(index, Tensor) and index.dtype is dtypes.bool:
                yield from (Edit(1, whole=f"{{{names[0]}}}[{':, ' * k}{{{names[1]}}}]") for k in range(1, owner.ndim))
            if inspect.isroutine(owner):
                yield Edit(0.9, whole=f"{{{names[0]}}}({{{names[1]}}})")
            elif isinstance(owner, dict) and isinstance(index, str):
                keys = [key for key in owner if isinstance(key, str)]
                yield from (Edit(1, {names[1]: json.dumps(key)}) for key in get_close_matches(index, keys, 1, 0.6))
        owner = self.values.get(names[0]) if names else None
        if isinstance(call, ast.Attribute) and isinstance(owner, dict) and call.attr in owner:
            yield Edit(0.9, whole=f"{{{names[0]}}}[{json.dumps(call.attr)}]")
        if isinstance(call, ast.BinOp) and len(self.tensors()) == 2 and "cast" in self.about:
            yield Edit(1.5, {each: f"{{{each}}}.bool()" for each in names})
        if isinstance(call, ast.BinOp) and isinstance(call.op, ast.MatMult) and len(self.tensors()) == 2:
            yield Edit(0.99, {names[0]: f"{{{names[1]}}}", names[1]: f"{{{names[0]}}}"})
        if isinstance(call, ast.BinOp) and isinstance(call.op, ast.Sub) and len(names) == 2:
            yield Edit(1, whole=f"{{{names[0]}}} ^ {{{names[1]}}}" if len(self.tensors()) == 2 else f"~{{{names[1]}}}")
        if hasattr(call, "in_place") and len(names) == 2:
            sign = ast.unparse(ast.BinOp(ast.Name("x"), call.op, ast.Name("y")))[1:-1]  # type: ignore[union-attr]
            yield Edit(1.2, whole=f"{{{names[0]}}}{sign}{{{names[1]}}}")
        if not isinstance(call, ast.Call):
            return
        name = ast.unparse(call.func).rpartition(".")[2]
        text = self.values.get("mode")
        if isinstance(text, str):
            yield from (
                Edit(0.9, {"mode": f'"{each}"'}) for each in ("linear", "bilinear", "trilinear") if each != text
            )
        yield from self._other_masks(call)
        divided = re.search(r"divisible by (\w+)", failure.text)
        numbers = {each: value for each, value in self.values.items() if type(value) is int and value > 0}
        for (a, many), (b, parts) in itertools.permutations(numbers.items() if divided else (), 2):
            named = divided is None or divided[1] not in numbers or b == divided[1]
            fitting = [k for k in range(min(parts, TRIES) - 1, 0, -1) if named and many % k == 0 != many % parts]
            yield from (Edit(1 + 0.001 * (parts - k), {b: str(k)}) for k in fitting)
            if fitting and self.is_constant(a):  # (all that has this size changes with it)
                yield Edit(1 + 0.001 * (parts - fitting[0]), {a: str(parts * max(round(many / parts), 1))})
        if name.endswith("_") and failure.of_method:
            yield Edit(1.2, name=name.rstrip("_"))
        if len(call.args) > 1 and not call.keywords:
            yield Edit(1.2, whole=f"{ast.unparse(call.func)}(({', '.join(map(ast.unparse, call.args))}))")
        if len(call.args) == 1 and isinstance(call.args[0], (ast.Tuple, ast.List)):
            yield Edit(1.2, whole=f"{ast.unparse(call.func)}({', '.join(map(ast.unparse, call.args[0].elts))})")
        if name in ("stack", "tensor") and call.args:
            rows = ast.unparse(call.args[0])
            rows = rows if name == "stack" else f"[torch.tensor(row) for row in {rows}]"
            yield Edit(1.15, whole=f"nn.utils.rnn.pad_sequence({rows}, batch_first=True)")
        if (
            name in ("view", "reshape")
            and failure.of_method
            and any(type(each) is int and each == -1 for each in self.values.values())
        ):
            yield Edit(1.2, whole=f"{{{names[0]}}}.flatten(1)")
        elsewhere = module_of(_called(failure, call))
        if elsewhere == "math" or (elsewhere == "numpy" and self.learns()):
            lists = [each for each in names if isinstance(self.values[each], list)]
            words = [f"torch.stack({{{each}}})" if each in lists else f"{{{each}}}" for each in names]
            yield Edit(0.9, whole=f"torch.{name}({', '.join(words)})")
        if name.startswith(("xavier", "kaiming")):
            yield Edit(0.9, name="zeros_")
        if name in _FAMILY:
            builtin = isinstance(call.func, ast.Name) and module_of(_called(failure, call)) == "builtins"
            own = f"{failure.named('', 'torch')}." * builtin
            yield from (Edit(0.9, name=own + each) for each in _FAMILY[name].split())
        yield from self._between_layers(call)
        given = {each.arg for each in call.keywords}
        for parameter in _parameters(failure):
            said = re.search(rf"\b{parameter.name}\b", failure.text) is not None
            value = failure.arguments.get(parameter.name, parameter.default)
            if isinstance(parameter.default, bool) and isinstance(value, bool) and (
                said or parameter.name == "batch_first"
            ) and not failure.calls_module:  # fmt: skip
                yield Edit(0.95, keywords={parameter.name: str(not value)})
            elif parameter.name == "dim" and "dim" not in self.values and parameter.name not in given:
                needed = parameter.default is parameter.empty or parameter.default is None
                yield from (Edit(1.1 + 0.01 * k, keywords={"dim": each})
                            for k, each in enumerate(["-1"] if needed else ["1", "-1", "2", "0"]))  # fmt: skip
            elif parameter.name == "dtype" and "cast" in self.about and not self.tensors():
                yield Edit(0.9, keywords={"dtype": "torch.float32"})
            elif said and parameter.name in given and re.search("exclusive|only one|not both|can only", failure.text):
                yield Edit(1, keywords={parameter.name: None})
        if name == "permute" and failure.of_method and isinstance(self.values[names[0]], Tensor):
            dims = [value for value in list(self.values.values())[1:] if isinstance(value, int)]
            less = self.values[names[0]].ndim - len(dims)
            rank = self.values[names[0]].ndim
            again: list[int] = []
            if less == -1:
                again = [k - 1 for k in dims if k]
            elif less == 1 and dims and sorted(dims) == list(range(rank - 1)):
                again = [*dims, rank - 1] if dims[0] == 0 else [0, *[k + 1 for k in dims]]
            if sorted(again) == list(range(rank)):
                yield Edit(0.9, whole=f"{{{names[0]}}}.permute({', '.join(map(str, again))})")
        if name == "t" and failure.of_method:
            yield Edit(0.9, whole=f"{{{names[0]}}}.transpose(-2, -1)")
        if name == "transpose" and len(self.values) == 3:
            a, b = list(self.values)[1:]
            if isinstance(self.values[a], int) and isinstance(self.values[b], int):
                yield Edit(0.9, {a: str(self.values[a] - 1), b: str(self.values[b] - 1)})
        if failure.calls_module and "Norm" in failure.name and len(self.nodes) == 1:
            (x,) = self.nodes
            yield Edit(1.3, whole=f"{ast.unparse(call.func)}({{{x}}}.transpose(1, 2)).transpose(1, 2)")
        tensors = list(self.tensors())
        if len(tensors) == 2 and not self.failure.of_method:
            a, b = tensors
            reversed_loss = {a, b} == {"input", "target"} and not self.values["input"].is_floating_point()
            yield Edit(0.8 if reversed_loss else 1.2, {a: f"{{{b}}}", b: f"{{{a}}}"})

    def options(self, needed: Site) -> Iterator[Edit]:
        """Return the edits of the options of a call, for one whose result another expression needs in another shape."""
        call, failure = self.failure.call, self.failure
        if not isinstance(call, ast.Call) or not self.values:
            return
        name, given = failure.name, {each.arg for each in call.keywords}
        if name == "squeeze" and not call.args and not given:
            yield Edit(1, whole=f"{{{next(iter(self.nodes))}}}.squeeze(-1)")
        elif name == "interpolate" and "scale_factor" in given:
            for other, x in needed.tensors().items():
                if isinstance(needed.nodes[other], ast.Name):
                    size = f"{ast.unparse(needed.nodes[other])}.shape[-{x.ndim - 2}:]"
                    yield Edit(1, keywords={"scale_factor": None, "size": size})
        else:
            yield from (each for each in self._of_call() if list(each.keywords) == ["dim"] and not each.texts)

    def _between_layers(self, call: ast.Call) -> Iterator[Edit]:
        """Return the call of a sequence in two parts, with the tensor that is taken out of what a layer returns."""
        layers, failure = self.failure.function, self.failure
        places = [k for k, each in enumerate(layers) if each is failure.module] if type(layers) is nn.Sequential else []
        if places and places[0] and isinstance(next(iter(failure.given.values()), None), tuple):
            (k, *_), func = places, ast.unparse(call.func)
            before, after = "0" if k == 1 else f":{k}", f"{k}:" if k < len(layers) - 1 else f"{k}"
            args = ", ".join(f"{{{name}}}" for name in self.nodes)
            yield Edit(1, whole=f"{func}[{after}]({func}[{before}]({args})[0])")

    def _other_masks(self, call: ast.Call) -> Iterator[Edit]:
        """Return the calls of a module that give a mask as another one of its masks."""
        words = {id(node): f"{{{key}}}" for key, node in self.nodes.items()}
        for each in [each for each in self.nodes if each.endswith("mask") and self.failure.calls_module]:
            kept = [words.get(id(node), ast.unparse(node)) for node in call.args if node is not self.nodes[each]]
            kept += [f"{key.arg}={words.get(id(key.value), ast.unparse(key.value))}"
                     for key in call.keywords if key.value is not self.nodes[each]]  # fmt: skip
            for parameter in _signature(self.failure.function.forward):
                if parameter.name.endswith("mask") and parameter.name not in self.failure.arguments:
                    again = ", ".join([*kept, f"{parameter.name}={{{each}}}"])
                    yield Edit(0.95, whole=f"{ast.unparse(call.func)}({again})")

    def _of_operand(self, name: str, value: Any) -> Iterator[tuple[float, str]]:
        """Return the edits of an operand by its type, with their sizes."""
        this = f"{{{name}}}"
        about = self.about
        if isinstance(value, Tensor):
            if "cast" in about and _called(self.failure, self.failure.call) is not range:
                yield from self._casts(name, value)
            if "dims" in about or ("cast" in about and self.failure.calls_module):
                yield from ((size + 0.5 * ("dims" not in about), text) for size, text in self._dims(name, value))
            if isinstance(self.failure.call, ast.Subscript) and value.numel() == 1 and place_of(self, name):
                yield 1, f"{this}.item()"
            if name == "hx":
                yield 1.2, f"({this}, torch.zeros_like({this}))"
            if "kind" in about:
                if value.requires_grad and not self.learns():
                    yield 1, f"{this}.detach()"
                if value.numel() == 1:
                    yield 1, f"{this}.item()"
                    yield 1.1, f"int({this})"
                if name in ("params", "parameters"):
                    yield 1, f"[{this}]"
        elif module_of(type(value)) == "numpy" and hasattr(value, "ndim"):
            yield 1, f"torch.from_numpy({this})"
            yield 0.99, f"{this}.copy()"
            yield 1, f'{this}.astype("float32")'
        elif name in ("params", "parameters") and isinstance(self.nodes[name], ast.Call):
            owner = getattr(self.nodes[name].func, "value", None)  # type: ignore[attr-defined]
            if owner is not None and isinstance(self.failure.value(owner), nn.Module):
                yield 1, f"{ast.unparse(owner)}.parameters()"
        elif isinstance(value, dict) and not isinstance(self.failure.call, (ast.Attribute, ast.Subscript)):
            yield from ((1, f"{this}[{json.dumps(key)}]") for key in value if isinstance(key, str))
        elif isinstance(value, tuple) and hasattr(value, "values"):
            compared = isinstance(getattr(self.failure.call, "value", None), ast.Compare)
            yield 1, f"{this}.{'indices' if compared else 'values'}"
        elif isinstance(value, (list, tuple)):
            yield from self._of_sequence(name, value)
        elif isinstance(value, type):
            yield 1, f"{this}()"
        elif isinstance(value, nn.Module) and name in _OF_MODULE:
            yield 1, f"{this}.{_OF_MODULE[name]}"
        elif inspect.isroutine(value):
            yield 1, f"{this}()"
        elif isinstance(value, str):
            yield 1, f"float({this})"
        elif isinstance(value, float):
            if value < 0:
                yield 1, repr(-value)
            if math.isfinite(value) and (value == int(value) or isinstance(self.failure.call, ast.Subscript)):
                yield 1, f"int({this})"
            yield 1.1, f"torch.tensor({this})"
        elif isinstance(value, int) and not isinstance(value, bool):
            yield from self._of_number(name, value)

    def _of_sequence(self, name: str, value: Any) -> Iterator[tuple[float, str]]:
        """Return the edits of a list or tuple."""
        this, node = f"{{{name}}}", self.nodes[name]
        tensors = len(value) > 0 and all(isinstance(each, Tensor) for each in value)
        made = getattr(self.failure.assignment(node), "value", node)
        returned = type(value) is tuple and isinstance(made, ast.Call)
        if hasattr(value, "_fields"):
            return
        if (
            len(value) and isinstance(value[0], Tensor) and (returned or (self.failure.calls_module and name != "hx"))
        ) or (name == "hx" and type(value) is tuple):
            yield 0.9, f"{this}[0]"
        if isinstance(self.failure.call, (ast.Attribute, ast.Subscript)):
            return
        yield 1, f"torch.stack({this})" if tensors else f"torch.tensor({this})"
        if not tensors:
            yield 1.1, f"[torch.tensor(each) for each in {this}]"
            yield 1.1, f"[torch.from_numpy(each) for each in {this}]"
        else:
            if not self.learns():
                yield 1.1, f"[each.item() for each in {this}]"
            yield 1.1, f"[each.transpose(0, 1) for each in {this}]"
        if not isinstance(node, (ast.Tuple, ast.List)):
            yield 1.2, f"*{this}"

    def learns(self) -> bool:
        """Return whether the user's function calls `backward`: what is detached is of no use then."""
        tree = self.failure.user.tree()
        return tree is not None and any(
            isinstance(node, ast.Attribute) and node.attr == "backward" and node.lineno >= self.failure.user.line
            for node in ast.walk(tree)
        )

    def _of_number(self, name: str, value: int) -> Iterator[tuple[float, str]]:
        """Return the edits of an integer."""
        this = f"{{{name}}}"
        if re.fullmatch(r"(start_|end_)?(dim|axis)s?_?\d*", name):
            order = (value - 1, -1, 0, 1, 2, 3) if value > 0 else (-1, 1, 0, 2, 3)
            yield from ((1 + 0.001 * k, str(each)) for k, each in enumerate(order) if each != value)
            return
        if self.failure.name in ("view", "reshape"):
            yield 1, "-1"
        if "between 0 and 1" in self.failure.text and 1 < value <= 100:
            yield 1, repr(value / 100)
        if "kind" in self.about:
            labels = [x for x in self.tensors().values() if not x.is_floating_point() and x.numel() and not self.bare]
            yield from ((1, str(int(x.max()) + 1)) for x in labels)
            yield 1.1, f"({this},)" if "tuple" in self.failure.text else f"[{this}]"
            yield 1.1, f"torch.tensor({this})"
            yield 1.2, f"torch.Generator().manual_seed({this})"

    def _casts(self, name: str, x: Tensor) -> Iterator[tuple[float, str]]:
        """Return the conversions of a tensor's dtype that keep its values."""
        if x.is_complex() or (name.endswith("_mask") and self.failure.module is not None):
            return  # (of a mask for attention, only the author knows whether 1 is what it looks at)
        node = self.nodes[name]
        attribute = node if isinstance(node, ast.Attribute) else None
        owner = self.failure.value(attribute.value) if attribute else None
        if isinstance(owner, nn.Module) and attribute and attribute.attr in vars(owner):
            return  # (it should have been a buffer)
        parameters = [each for module in self.failure.modules for each in module.parameters()]
        usual = (dtypes.float32, dtypes.int64, dtypes.bool)
        for kind in dict.fromkeys([*usual, *[each.dtype for each in (*self.tensors().values(), *parameters)]]):
            of_index = isinstance(self.failure.call, ast.Subscript) and kind is dtypes.int64
            lossless = (
                kind.is_floating_point or of_index or (not self.bare and bool((x.to(kind).to(x.dtype) == x).all()))
            )
            if (
                isinstance(self.failure.call, ast.UnaryOp) or "a bool tensor" in self.failure.text
            ) and kind is not dtypes.bool:
                continue
            if kind is x.dtype or not lossless or (x.requires_grad and not kind.is_floating_point):
                continue
            image = self.failure.calls_module and (
                x.dtype is dtypes.uint8 and kind.is_floating_point and x.ndim > 2 and not self.bare and int(x.max()) > 1
            )
            yield 1, f"{{{name}}}{converted(kind)}{' / 255' * image}"

    def _dims(self, name: str, x: Tensor) -> Iterator[tuple[float, str]]:
        """Return the changes of a tensor's dimensions that keep its elements."""
        n, this, module = x.ndim, f"{{{name}}}", self.failure.calls_module
        loss = {"input", "target"} <= set(self.values)
        if isinstance(self.failure.call, ast.Subscript):
            yield from self._parts(name, x) if x.dtype is dtypes.bool else ()
            return
        first = next(iter(self.values)) == name
        if n == 2 and module:
            yield 1.3, f"{this}[:, :, None, None]"
        yield from self._parts(name, x)
        for other, y in self.tensors().items() if not loss else ():
            have = (1,) * (y.ndim - n) + tuple(x.shape)
            lacking = [k for k in range(y.ndim) if have[k] == 1 < y.shape[k]] if y.ndim >= n else []
            for place in lacking if other != name and y.ndim - n <= 1 < n else ():
                sizes = [f"{{{other}}}.shape[{k}]" if k == place else "-1" for k in range(y.ndim)]
                yield 1.3, f"{this}.expand({', '.join(sizes)})"
        for k in range(n + 1):
            if k or not (loss or n > 3):
                yield 1, f"{this}.unsqueeze({k if k < n or k <= 1 else -1})"
        for k in range(n):
            if x.shape[k] == 1 and (k or not (loss or first)):
                yield 1, f"{this}.squeeze({k})"
        if n == 2 and not (module and first) and not loss:
            yield 1, f"{this}.T"
        if n > 2:
            yield 1, f"{this}.transpose({'1, 2' if n == 3 else '-2, -1'})"
            if not loss:
                yield 1, f"{this}.transpose(0, 1)"
        if n == 3 and module and x.shape[2] in (1, 3, 4):
            yield 1, f"{this}.permute(2, 0, 1)"
            yield 1.4, f"{this}.permute(2, 0, 1).unsqueeze(0)"
        if n > 3:  # channels last
            yield 1, f"{this}.permute({', '.join(map(str, (0, n - 1, *range(1, n - 1))))})"
        if n > 2 and (loss or module):
            yield 1.1, f"{this}.flatten(1)"
        if n > 1 and loss:
            yield 1.2, f"{this}.flatten()"
        if name == "target" and n > 1 and not self.bare and not bool(((x != 0) & (x != 1)).any()):
            yield from ((1.05, f"{this}.argmax({k})") for k in (1, -1) if bool((x.sum(k) == 1).all()))
        for most in {y.ndim for y in self.tensors().values() if y.ndim > n + 1 and n and not loss}:
            for places in itertools.combinations(range(most), n):
                index = [":" if k in places else "None" for k in range(places[0], most)]
                if "Index tensor" not in self.failure.text:
                    yield 1 - 0.005 * (index[-1] == ":"), f"{this}[{', '.join(index)}]"

    def _parts(self, name: str, x: Tensor) -> Iterator[tuple[float, str]]:
        """Return the part of a table, or of a mask, that is as long as the other operand."""
        node = self.nodes[name]
        parts = list(ast.walk(node))
        table = any(isinstance(each, ast.Name) and each.id == "self" for each in parts) and not any(
            isinstance(each, ast.Call) for each in parts
        )
        for other, y in self.tensors().items():
            if other == name or not (table or x.dtype is dtypes.bool) or not 0 < x.ndim <= y.ndim:
                continue
            pairs = list(enumerate(zip(x.shape, y.shape[y.ndim - x.ndim :], strict=True), y.ndim - x.ndim))
            longer = [k for k, (m, n) in pairs if m not in (1, n)]
            if longer and all(x.shape[k - y.ndim] > y.shape[k] for k in longer):
                index = [
                    f":{{{other}}}.shape[{k - y.ndim if y.ndim > 3 else k}]" if k in longer else ":" for k, _ in pairs
                ]
                last = longer[-1] - y.ndim + x.ndim
                yield 1.1, f"{{{name}}}[{', '.join(index[: last + 1])}]"
                if not table and x.shape[last] == y.shape[longer[-1]] + 1:  # (the other could begin later)
                    yield 1.1, f"{{{name}}}[{', '.join([*index[:last], '1:'])}]"


#: Functions that are not called again: their arguments are right, or what they do is no computation.
_NOT_AGAIN = ("backward", "step", "zero_grad", "load_state_dict", "save", "setitem")
#: Expressions whose values are computed again, if the function does not tell them.
_COMPUTED = (ast.Call, ast.BinOp, ast.List, ast.Tuple, ast.Subscript, ast.UnaryOp, ast.Compare)
#: Functions that do the same for other arguments.
_FAMILY = {"view": "reshape", "bmm": "matmul", "mm": "matmul", "mv": "matmul", "dot": "matmul", "inv": "pinv",
           "inverse": "linalg.pinv", "cat": "stack", "concat": "stack", "from_numpy": "tensor", "tensor": "stack",
           "max": "maximum", "min": "minimum", "stack": "tensor",
           "binary_cross_entropy": "binary_cross_entropy_with_logits", "conv1d": "conv2d", "conv2d": "conv1d conv3d",
           "max_pool2d": "max_pool1d max_pool3d", "avg_pool2d": "avg_pool1d avg_pool3d"}  # fmt: skip


#: What of a module is an argument of some name.
_OF_MODULE = {"params": "parameters()", "parameters": "parameters()", "tensor": "weight", "state_dict": "state_dict()"}


def _called(failure: Failure, call: Any) -> Any:
    """Return the function that an expression calls, also one of Python's; None if it is not known."""
    if not isinstance(call, ast.Call):
        return None
    function = failure.value(call.func)
    if function is None and isinstance(call.func, ast.Name):
        function = getattr(builtins, call.func.id, None)
    return function


def place_of(site: Site, name: str) -> int:
    """Return the place of an operand among the others."""
    return list(site.values).index(name)


def _is_ours(function: Any) -> bool:
    return (module_of(function) or module_of(type(function))).partition(".")[0] == "tinytorch"


def _collected(function: Any) -> list[str]:
    """Return the names of the parameters of a function that take any number of arguments."""
    return [each.name for each in _signature(function) if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def _signature(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _parameters(failure: Failure) -> list[inspect.Parameter]:
    """Return the parameters of the function that the user called."""
    return _signature(failure.function) if failure.function is not None else []


def _operands(failure: Failure, call: ast.expr) -> list[ast.expr]:
    """Return the expressions that a call takes its operands from, in their order."""
    if isinstance(call, ast.BinOp):
        return [call.left, call.right]
    if isinstance(call, ast.UnaryOp):
        return [call.operand]
    if isinstance(call, ast.Subscript):
        parts = call.slice.elts if isinstance(call.slice, ast.Tuple) else [call.slice]
        ends = [
            end for each in parts if isinstance(each, ast.Slice) for end in (each.lower, each.upper) if end is not None
        ]
        return [call.value, *(ends or [call.slice])]
    if isinstance(call, ast.Attribute):
        return [call.value.left, *call.value.comparators] if isinstance(call.value, ast.Compare) else [call.value]
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return []
    owner = [call.func.value] if failure.of_method and isinstance(call.func, ast.Attribute) else []
    return [*owner, *call.args, *[each.value for each in call.keywords if each.arg]]


_METHODS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16", "int64": "long",
            "bool": "bool"}  # fmt: skip


def converted(dtype: Any) -> str:
    """Return the method call that converts to a dtype: ".float()"."""
    name = str(dtype).rpartition(".")[2]
    return f".{_METHODS[name]}()" if name in _METHODS else f".to(torch.{name})"


# Where a value was made ---------------------------------------------------------------------------


def _of_origin(failure: Failure) -> list[Any]:
    """Return the edit of the expression that made a value, in an assignment or in place, with which the call runs."""
    call = failure.call
    if call is None or failure.user.tree() is None:
        return []
    scope = NAMES | variables_of(failure.user) | failure.variables
    candidates: dict[tuple[str, Any], tuple[str, str]] = {}
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
            candidates.setdefault(key, (text, ast.unparse(node)))

    def run(key: tuple[str, Any]) -> bool | None:
        failure.trial.renew()
        text, word = candidates[key]
        interpreter = Interpreter(failure.trial, scope)
        value = interpreter.visit(ast.parse(text, mode="eval").body)
        parts = [node for node in ast.walk(call) if isinstance(node, ast.expr) and ast.unparse(node) == word]
        interpreter.given = {id(node): value for node in parts}
        interpreter.visit(call)
        return None if value is None else True

    found = smallest([(1, key) for key in candidates], run)
    return [(text.replace("'", '"'), place) for text, place in chosen(found)]


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
    candidates: dict[tuple[float, Any], Callable[[], Any]] = {}
    for statement, call in _calls_before(failure, goal):
        names = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)}
        try:
            before = values_before(trial, failure, statement, names) if statement is not None else {}
            site = Site(failure.at(call), {"dims"}, before)
            candidates |= _made_larger(failure, site, call, needed, index, before)
            for edit in site.options(needed):

                def run(site: Site = site, edit: Edit = edit, before: Any = before, call: ast.expr = call) -> None:
                    value = site.run(edit)
                    onward(trial, failure, index, value, dict(before), call)

                text = site.text(edit)
                place = getattr(statement, "lineno", 0)
                candidates.setdefault((edit.size, (text, place) if isinstance(text, str) else text), run)
        except (Unknown, Failed):
            continue

    def run(key: Any) -> bool | None:
        trial.renew()
        trial.goal, trial.passed = goal, False
        try:
            candidates[key]()
            return trial.passed or None
        finally:
            trial.goal = None

    found = list(smallest([(key[0], key) for key in candidates], run))
    return [found[0][1]] if len(found) == 1 else []


def _made_larger(failure: Failure, site: Site, call: ast.Call, needed: Site, index: int, before: Any) -> dict[Any, Any]:
    """Return the constructors of a layer that is called with which its result has as many numbers as are needed."""
    layer, trial = site.failure.function, failure.trial
    place = made_at(failure, layer) if isinstance(layer, nn.Linear) else ""
    numbers = [each for each in needed.values.values() if type(each) is int and each > 0]
    text = like(layer, out_features=math.prod(numbers)) if place and len(numbers) > 1 else ""

    def run() -> None:
        trial.instead = {id(layer): evaluated(trial, text, NAMES)}
        try:
            onward(trial, failure, index, evaluated(trial, call, site.scope), dict(before), call)
        finally:
            trial.instead = {}

    return {(1.5, (text, place)): run} if text else {}


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
    candidates: dict[tuple[str, Any], Edit] = {}
    for name, x in site.tensors().items() if "dims" in site.about else ():
        statement, place = assigned(failure, site.nodes[name])
        if statement is None or not isinstance(site.nodes[name], ast.Attribute):
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
            candidates[text, place] = Edit(1, {name: f"torch.zeros({again}, dtype={x.dtype})"})
    return chosen(smallest([(1, key) for key in candidates], lambda key: site.fit(candidates[key])))


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
    candidates: dict[str, tuple[str, Any]] = {}
    for path, module in root.named_modules():
        name = type(module).__name__
        if module_of(type(module)) == "tinytorch.nn.modules.pooling" and name[-2:] in ("1d", "2d", "3d"):
            text = constructor(name, arguments_of(module))
            for k in "123".replace(name[-2], ""):
                candidates[f"{path} {k}"] = text.replace(name, f"{name[:-2]}{k}d"), module
        convolution = isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) and set(module.stride) == {1}
        if summed and convolution and not any(module.padding):
            around = number(tuple(d * (k - 1) // 2 for d, k in zip(module.dilation, module.kernel_size, strict=True)))
            candidates[f"{path} padded"] = constructor(name, arguments_of(module), {"padding": around}), module

    def run(key: str) -> bool:
        trial.renew()
        text, module = candidates[key]
        trial.instead = {id(module): evaluated(trial, text, NAMES)}
        try:
            called(trial, trial.private(root), (), {name: trial.private(value) for name, value in given.items()})
        finally:
            trial.instead = {}
        return True

    found = chosen(smallest([(1, key) for key in candidates], run))
    return [(candidates[key][0], made_at(failure, candidates[key][1]) or 0) for key in found]


# Layers -------------------------------------------------------------------------------------------


def _resized(failure: Failure) -> list[str]:
    """Return the constructors that make a layer which accepts what the innermost one was given: the smallest change."""
    module, given = failure.module, failure.given
    tensors = [each for each in given.values() if isinstance(each, Tensor)]
    known = module is not None and module_of(type(module)).startswith("tinytorch.nn.modules.")
    if not known or not tensors or not tensors[0].ndim or "Loss" in type(module).__name__:
        return []
    if not isinstance(module, nn.RNNBase) and not _may_be_made(module):
        return []
    if not isinstance(failure.error, (RuntimeError, ValueError, IndexError, AssertionError)) or failure.steps[-1].users:
        return []
    outer = [x for x in module_calls(failure.steps)[0][1].values() if isinstance(x, Tensor) and x.ndim > 1]
    batch = max([x.shape[0] for x in outer], default=0)
    folded = any(x.ndim > 2 for x in outer) and batch and tensors[0].shape[0] % batch == 0
    if (
        type(module).__name__ == "Linear"
        and tensors[0].ndim > 1
        and outer
        and tensors[0].shape[0] != batch
        and not folded
    ):
        return []  # (something is wrong with the batch before)
    calls = [k for k, step in enumerate(failure.steps) if locals_self(step) is module]
    local: dict[str, bool] = {}
    trial, dtype = failure.trial, next((each.dtype for each in module.parameters()), dtypes.float32)

    def run(text: str) -> bool:
        trial.renew()
        args = tuple(map(trial.private, given.values()))
        for layer in evaluated(trial, f"[{text}]", NAMES):
            made = trial.do(lambda layer=layer: layer.to(dtype).train(module.training))
            args = (called(trial, made, args, {}),)
        local[text] = True
        onward(trial, failure, calls[-1] if calls else 0, args[0])
        return True

    sizes = {text: size for size, text in sorted(_constructors(module, tensors))}
    found = smallest([(size, text) for text, size in sizes.items()], run)
    least = min([sizes[text] for text in local], default=0)
    if all(sizes[text] > least for text in found):  # (what follows has mistakes of its own)
        return [text for text in local if sizes[text] == least] if len(local) <= 2 else []
    return chosen(found)


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


def locals_self(step: Any) -> Any:
    """Return the module whose call a step of the package runs."""
    return step.frame.f_locals.get("self") if step.ours and step.code.co_name == "_call_impl" else None


def _may_be_made(module: Any) -> bool:
    """Return whether the arguments that a layer was made with can be told from its attributes."""
    known = {"mode", "device", "dtype", "bias", *[name for name in dir(module) if not name.startswith("_")]}
    return all(name in known or name.startswith("_") for name in inspect.signature(type(module)).parameters)


def _constructors(module: Any, tensors: list[Tensor]) -> Iterator[tuple[float, str]]:
    """Return constructors of layers that differ from a layer in one argument, with how much they differ."""
    arguments = arguments_of(module)
    name = _class_of(module)
    sizes = dict.fromkeys([size for x in tensors for size in x.shape[::-1]])
    sizes |= dict.fromkeys([int(x.max()) + 1 for x in tensors if not x.is_floating_point() and x.numel()])
    if max(x.ndim for x in tensors) > 2 and name == "Linear":
        yield 0.9, f"nn.Flatten(), {constructor(name, arguments)}"
    for k, (argument, (value, default)) in enumerate(arguments.items()):
        if argument == "inplace" and value:
            yield 0.9, constructor(name, arguments, {argument: False})
        elif argument == "batch_first":
            yield 1.2, constructor(name, arguments, {argument: not value})
        elif argument == "dim" and isinstance(value, int):
            yield 1, constructor(name, arguments, {argument: -1})
        elif default is inspect.Parameter.empty and argument != "kernel_size" and list(module.parameters()):
            yield from ((1 + 0.01 * k, constructor(name, arguments, {argument: each})) for each in sizes)
    if name[-2:] in ("1d", "2d", "3d"):
        yield from ((1.05, constructor(f"{name[:-2]}{k}d", arguments)) for k in (1, 2, 3) if str(k) != name[-2])


def arguments_of(module: Any) -> dict[str, tuple[Any, Any]]:
    """Return the arguments that a layer was made with, as far as its attributes tell, and their default values."""
    kind = next((each for each in type(module).__mro__ if each.__name__ == "RNNBase"), type(module))
    found = {}
    for each in inspect.signature(kind).parameters.values():
        value = getattr(module, each.name, each.default)
        if each.name == "bias":
            value = value is not None and value is not False
        if each.name not in ("mode", "device", "dtype") and _is_written(value):
            found[each.name] = number(value), number(each.default)
        elif each.default is inspect.Parameter.empty and each.name not in ("mode", "args", "kwargs"):
            raise Unknown(each.name)
    if found.get("stride") == (found.get("kernel_size", (0,))[0], None):
        del found["stride"]  # (that of a pooling is the size of its window by default)
    return found


def _is_written(value: Any) -> bool:
    """Return whether a value can be written as it is shown."""
    plain = type(value) in (bool, int, float, str, type(None))
    return plain or (isinstance(value, tuple) and all(map(_is_written, value)))


def constructor(name: str, arguments: dict[str, tuple[Any, Any]], changes: Mapping[str, Any] | None = None) -> str:
    """Return the call that makes a layer of a class with some arguments."""
    texts = []
    for argument, (value, default) in arguments.items():
        value = (changes or {}).get(argument, value)
        required = default is inspect.Parameter.empty
        if required or value != default:
            texts.append(f"{value!r}" if required else f"{argument}={value!r}")
    return f"nn.{name}({', '.join(texts)})".replace("'", '"')


def like(module: Any, **changes: Any) -> str:
    """Return the call that makes a layer like another one, with some other arguments."""
    return constructor(_class_of(module), arguments_of(module), changes)


def _class_of(module: Any) -> str:
    """Return the name of the class of `torch.nn` that a module is of."""
    return next(each.__name__ for each in type(module).__mro__ if module_of(each).startswith("tinytorch.nn"))


def number(value: Any) -> Any:
    """Return a tuple of equal numbers as the number, and other values as they are."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value
