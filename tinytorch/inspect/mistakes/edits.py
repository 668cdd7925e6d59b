"""The edits that are tried of an expression that failed, from the smallest one: a new edit is a `yield` here.

An edit is a template for an operand of the expression, in which `{name}` stands for an operand:
`{other}.unsqueeze(-1)`; or it changes what is called. What an operand is says which edits there are (`_of_operand`:
`_casts` of its dtype, `_dims` of its shape, `_of_number`, `_of_sequence`), and what is called (`_of_call`); `options`
are those of a call before. The words of the message say which kinds are tried: if `_ABOUT` has none of them, nothing
is. `trying` finds what works.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from tinytorch import nn
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, Text
from tinytorch.inspect.mistakes.running import NAMES, evaluated, variables_of
from tinytorch.inspect.mistakes.trial import Failed, Unknown
from tinytorch.kernels import dtypes

__all__ = ["TRIES", "Edit", "Edits", "named_dtype", "signature"]

#: How many edits are tried, at most.
TRIES = 300

#: What messages say that are about dtypes, about shapes, and about kinds of arguments: only such edits are tried.
_ABOUT = {
    "cast": r"dtypes?|scalar type|not implemented for '\w+'|bool\w*|floating|\w*Type|type|Long|Float|integers?",
    "dims": r"shapes?|sizes?|dimensions?|dims?|[1-5]-?[dD]|must match|multiplied|matri\w+|channels|batch\w*|ordering|"
    r"multi-target|targets|tensors? expected|view size|is invalid for input|input_lengths|concatenated|permute",
    "kind": r"must be|arguments?|interpreted|not iterable|has no attribute|unsupported operand|[eE]xpected|"
    r"not a Module|cannot assign|callable|subscriptable|indices|numpy\(\)|deepcopy|only|can't convert|iterable|stride|"
    r"ambiguous|converted|element|slice|missing 1 required|sequence of length|stack expects|not supported between|"
    r"exclusive|Invalid|Scalar|between 0 and 1|subscript",
    "order": r"batch_size|lengths|running_mean",
}


@dataclass(frozen=True)
class Edit:
    """An edit of an expression.

    Attributes:
        size: how large it is: below 1 another name or option, 1 one method, 1.1 to 1.5 two or what is seldom meant. The
            smallest one that fits is the remedy; of three that are as small, none is (`trying.search`).
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


class Edits:
    """The edits of an expression that failed, whose operands are known.

    Attributes:
        failure: what is known of the call.
        about: the kinds of edits that the message is about.
        nodes: the expressions of its operands, by the names of the arguments (and of their items).
        values: the values of the operands: copies; none if the expression is not to be run again.
    """

    def __init__(
        self, failure: Failure, about: set[str] | None = None, before: Mapping[str, Any] | None = None
    ) -> None:
        self.failure, self.trial = failure, failure.trial
        self.about = {kind for kind, words in _ABOUT.items() if re.search(rf"(?<!\w)({words})(?!\w)", failure.text)}
        if isinstance(failure.error, LookupError):
            self.about.add("kind")
        self.about = self.about if about is None else about
        if any(words in failure.text for words in _NO_EDITS):
            self.about = set()
        self.nodes: dict[str, ast.expr] = {}
        self.values: dict[str, Any] = {}
        self._raw: dict[str, Any] = {}
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
        plain = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
        written = isinstance(node, (ast.List, ast.Tuple)) and not all(isinstance(x, plain) for x in ast.walk(node))
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

    def is_constant(self, name: str) -> bool:
        """Return whether an operand is a variable that holds a number written out."""
        made = self.failure.assignment(self.nodes[name])
        return made is not None and isinstance(made.value, ast.Constant) and isinstance(made.targets[0], ast.Name)

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
                yield from (Edit(1, {names[1]: _quoted(key)}) for key in get_close_matches(index, keys, 1, 0.6))
        owner = self.values.get(names[0]) if names else None
        if isinstance(call, ast.Attribute) and isinstance(owner, dict) and call.attr in owner:
            yield Edit(0.9, whole=f"{{{names[0]}}}[{_quoted(call.attr)}]")
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
        ways = {np.ndarray: "from_numpy", list: "tensor"}
        made = {each: f"torch.{ways[type(value)]}({{{each}}})" for each, value in self.values.items()
                if type(value) in ways}  # fmt: skip
        if len(made) > 1:
            yield Edit(1.05, made)
        if len(call.args) > 1:
            rest = [f", {_text(each)}" for each in call.keywords]
            yield Edit(1.2, whole=f"{_text(call.func)}(({', '.join(map(_text, call.args))}){''.join(rest)})")
        if len(call.args) == 1 and isinstance(call.args[0], (ast.Tuple, ast.List)):
            yield Edit(1.2, whole=f"{_text(call.func)}({', '.join(map(_text, call.args[0].elts))})")
        if name in ("stack", "tensor") and call.args:
            rows = _text(call.args[0])
            rows = rows if name == "stack" else f"[torch.tensor(row) for row in {rows}]"
            yield Edit(1.15, whole=f"nn.utils.rnn.pad_sequence({rows}, batch_first=True)")
        if (
            name in ("view", "reshape")
            and failure.of_method
            and any(type(each) is int and each == -1 for each in self.values.values())
        ):
            yield Edit(1.2, whole=f"{{{names[0]}}}.flatten(1)")
        if module_of(_called(failure, call)) == "math":
            yield Edit(0.9, whole=f"torch.{name}({', '.join([f'{{{each}}}' for each in names])})")
        if name.startswith(("xavier", "kaiming")):
            yield Edit(0.9, name="zeros_")
        if name in _FAMILY:
            builtin = isinstance(call.func, ast.Name) and module_of(_called(failure, call)) == "builtins"
            own = f"{failure.named('', 'torch')}." * builtin
            yield from (Edit(0.9, name=own + each) for each in _FAMILY[name].split())
        scores = self.values.get("input")
        if name == "cross_entropy" and isinstance(scores, Tensor) and scores.shape[1:] == (1,):
            yield Edit(0.9, {"input": "{input}.squeeze(1)"}, name="binary_cross_entropy_with_logits")
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
                if name.startswith("cum") and any(x.ndim > 1 for x in self.tensors().values()):
                    continue  # (NumPy's would be of all elements)
                yield from (Edit(1.1 + 0.01 * k, keywords={"dim": each})
                            for k, each in enumerate(["-1"] if needed else ["1", "-1", "2", "0"]))  # fmt: skip
            elif parameter.name == "dtype" and "cast" in self.about and not self.tensors() and "dtype" not in given:
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
            ends = ("permute(0, 2, 3, 1)", "permute(0, 3, 1, 2)")
            if getattr(self.values[x], "ndim", 0) != 4:
                ends = ("transpose(1, 2)", "transpose(1, 2)")
            for there, back in (ends, ends[::-1]):
                yield Edit(1.3, whole=f"{_text(call.func)}({{{x}}}.{there}).{back}")
        equation = self.values[names[0]] if name == "einsum" and names else ""
        read, _, written = equation.partition("->") if isinstance(equation, str) else ("", "", "")
        for letter in sorted({*written} - {*read}):
            known = [each for each in dict.fromkeys(read) if each.isalpha() and each not in written]
            yield from (Edit(read.count(each), {names[0]: _quoted(equation.replace(letter, each))}) for each in known)
        places = [each for each in names if self.nodes[each] in call.args]
        for a, b in itertools.combinations(places, 2):
            if type(self.values[a]) is not type(self.values[b]) and "kind" in self.about:
                yield Edit(0.95, {a: f"{{{b}}}", b: f"{{{a}}}"})
        tensors = list(self.tensors())
        if len(tensors) == 2 and not self.failure.of_method:
            a, b = tensors
            reversed_loss = {a, b} == {"input", "target"} and not self.values["input"].is_floating_point()
            yield Edit(0.8 if reversed_loss else 1.2, {a: f"{{{b}}}", b: f"{{{a}}}"})

    def options(self, needed: Edits) -> Iterator[Edit]:
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
        elif name in ("view", "reshape"):  # (the sizes in another order)
            for a, b in itertools.pairwise(list(self.nodes)[1:]):
                yield Edit(1, {a: f"{{{b}}}", b: f"{{{a}}}"})
        else:
            yield from (each for each in self._of_call() if list(each.keywords) == ["dim"] and not each.texts)

    def _between_layers(self, call: ast.Call) -> Iterator[Edit]:
        """Return the call of a sequence in two parts, with the tensor that is taken out of what a layer returns."""
        layers, failure = self.failure.function, self.failure
        places = [k for k, each in enumerate(layers) if each is failure.module] if type(layers) is nn.Sequential else []
        if places and places[0] and isinstance(next(iter(failure.given.values()), None), tuple):
            (k, *_), func = places, _text(call.func)
            before, after = "0" if k == 1 else f":{k}", f"{k}:" if k < len(layers) - 1 else f"{k}"
            args = ", ".join(f"{{{name}}}" for name in self.nodes)
            yield Edit(1, whole=f"{func}[{after}]({func}[{before}]({args})[0])")

    def _other_masks(self, call: ast.Call) -> Iterator[Edit]:
        """Return the calls of a module that give a mask as another one of its masks."""
        words = {id(node): f"{{{key}}}" for key, node in self.nodes.items()}
        for each in [each for each in self.nodes if each.endswith("mask") and self.failure.calls_module]:
            kept = [words.get(id(node), _text(node)) for node in call.args if node is not self.nodes[each]]
            kept += [f"{key.arg}={words.get(id(key.value), _text(key.value))}"
                     for key in call.keywords if key.value is not self.nodes[each]]  # fmt: skip
            for parameter in signature(self.failure.function.forward):
                if parameter.name.endswith("mask") and parameter.name not in self.failure.arguments:
                    again = ", ".join([*kept, f"{parameter.name}={{{each}}}"])
                    yield Edit(0.95, whole=f"{_text(call.func)}({again})")

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
                if value.requires_grad and (self.failure.is_unused or not self.failure.learns):
                    yield 1.25, f"{this}.detach()"
                if value.numel() == 1:
                    yield 1, f"{this}.item()"
                    yield 1.1, f"int({this})"
                if name in ("params", "parameters"):
                    yield 1, f"[{this}]"
        elif module_of(type(value)) == "numpy" and hasattr(value, "ndim"):
            yield 1, f"torch.from_numpy({this})"
            yield 0.95 if self.failure.name == "Parameter" else 1.2, f"torch.from_numpy({this}).float()"
            yield 0.99, f"{this}.copy()"
            yield 1, f'{this}.astype("float32")'
        elif name in ("params", "parameters") and isinstance(self.nodes[name], ast.Call):
            owner = getattr(self.nodes[name].func, "value", None)  # type: ignore[attr-defined]
            if owner is not None and isinstance(self.failure.value(owner), nn.Module):
                yield 1, f"{_text(owner)}.parameters()"
        elif isinstance(value, dict) and not isinstance(self.failure.call, (ast.Attribute, ast.Subscript)):
            yield from ((1, f"{this}[{_quoted(key)}]") for key in value if isinstance(key, str))
        elif isinstance(value, tuple) and hasattr(value, "values"):
            compared = isinstance(getattr(self.failure.call, "value", None), ast.Compare)
            yield 1, f"{this}.{'indices' if compared else 'values'}"
            if isinstance(self.failure.call, ast.BinOp):
                yield from ((1.3, f"{this}.values.unsqueeze({k})") for k in range(1, value[0].ndim + 1))
        elif isinstance(value, (list, tuple)):
            yield from self._of_sequence(name, value)
        elif named_dtype(value):
            yield 0.85, named_dtype(value)
        elif isinstance(value, type):
            yield 1, f"{this}()"
        elif isinstance(value, nn.Module) and name in _OF_MODULE:
            yield 1, f"{this}.{_OF_MODULE[name]}"
        elif inspect.isroutine(value):
            node = self.nodes[name]
            if isinstance(node, ast.Attribute) and node.attr == "size":
                yield 0.9, f"{_text(node.value)}.numel()"
            yield 1, f"{this}()"
        elif isinstance(value, str):
            yield 1, f"float({this})"
        elif isinstance(value, float):
            if value < 0:
                yield 1, repr(-value)
            if math.isfinite(value) and (value == int(value) or isinstance(self.failure.call, ast.Subscript)):
                yield 1, f"int({this})"
            yield 1.1, f"torch.tensor({this})"
            yield 1.15, f"torch.tensor([{this}])"
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
            if name != "hx" and [x.ndim for x in value if isinstance(x, Tensor)] == [3, 3]:
                yield 1, f"{this}[0][-1]"  # (the state of the last layer of an LSTM)
        if isinstance(self.failure.call, (ast.Attribute, ast.Subscript)):
            return
        yield 1, f"torch.stack({this})" if tensors else f"torch.tensor({this})"
        if not tensors:
            yield 1.1, f"[torch.tensor(each) for each in {this}]"
        else:
            if not self.failure.learns:
                yield 1.1, f"[each.item() for each in {this}]"
            yield 1.1, f"[each.transpose(0, 1) for each in {this}]"

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
        node, ranks = self.nodes[name], {y.ndim for y in self.tensors().values()}
        matrices = self.failure.name in ("matmul", "mm") and ranks == {2}
        #: Of the scores of a batch a call without their last dimension would make those of one sample.
        classes = n == 2 and name == "input" and re.search("cross_?entropy", self.failure.name, re.IGNORECASE)
        transposed = isinstance(node, ast.Attribute) and node.attr in ("T", "mT")
        if transposed:
            yield 0.9, _text(node.value)  # type: ignore[attr-defined]
        for k in range(n + 1) if not matrices else ():
            if k or not (loss or n > 3):
                yield 1, f"{this}.unsqueeze({k if k < n or k <= 1 else -1})"
        for k in range(n):
            if x.shape[k] == 1 and (k or not (loss or first) or (loss and n > 2)) and not classes:
                yield 1, f"{this}.squeeze({k})"
        if n == 2 and not (module and first) and not loss and not transposed:
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


#: Words of messages about values that are wrong, not about code: nothing is tried.
_NO_EDITS = ("constraint", "one of the params is numpy.ndarray")
#: Functions that are not called again: their arguments are right, or what they do is no computation.
_NOT_AGAIN = ("backward", "step", "zero_grad", "load_state_dict", "save", "setitem")
#: Expressions whose values are computed again, if the function does not tell them.
_COMPUTED = (ast.Call, ast.BinOp, ast.List, ast.Tuple, ast.Subscript, ast.Compare)
#: Functions that do the same for other arguments.
_FAMILY = {"view": "reshape", "bmm": "matmul", "mm": "matmul", "mv": "matmul", "dot": "matmul", "inv": "pinv",
           "inverse": "linalg.pinv", "cat": "stack", "concat": "stack", "from_numpy": "tensor", "tensor": "stack",
           "max": "maximum", "min": "minimum", "stack": "tensor", "transpose": "permute", "repeat": "repeat_interleave",
           "binary_cross_entropy": "binary_cross_entropy_with_logits", "conv1d": "conv2d", "conv2d": "conv1d conv3d",
           "max_pool2d": "max_pool1d max_pool3d", "avg_pool2d": "avg_pool1d avg_pool3d"}  # fmt: skip


#: What of a module is an argument of some name.
_OF_MODULE = {"params": "parameters()", "parameters": "parameters()", "tensor": "weight", "state_dict": "state_dict()"}


def _text(node: ast.AST) -> str:
    """Return the text of an expression of the program, in a template: braces of its own stand in it doubled."""
    return ast.unparse(node).replace("{", "{{").replace("}", "}}")


def _quoted(word: Any) -> str:
    return json.dumps(word).replace("{", "{{").replace("}", "}}")


def _called(failure: Failure, call: Any) -> Any:
    """Return the function that an expression calls, also one of Python's; None if it is not known."""
    if not isinstance(call, ast.Call):
        return None
    return failure.value(call.func)


def place_of(site: Edits, name: str) -> int:
    """Return the place of an operand among the others."""
    return list(site.values).index(name)


def named_dtype(value: Any) -> str:
    """Return torch's name of a dtype that is given as NumPy's, as its name, or as a type of Python; "" for others."""
    name = value if isinstance(value, str) else ""
    value = {"int": int, "float": float}.get(name, value)
    if isinstance(value, np.dtype) or value in (bool, int, float, complex) or (
        isinstance(value, type) and issubclass(value, np.generic)
    ):  # fmt: skip
        name = np.dtype(value).name
    return f"torch.{name}" if isinstance(getattr(dtypes, name or "_", None), dtypes.dtype) else ""


def _is_ours(function: Any) -> bool:
    return (module_of(function) or module_of(type(function))).partition(".")[0] == "tinytorch"


def _collected(function: Any) -> list[str]:
    """Return the names of the parameters of a function that take any number of arguments."""
    return [each.name for each in signature(function) if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def signature(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function, if they are known."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _parameters(failure: Failure) -> list[inspect.Parameter]:
    """Return the parameters of the function that the user called."""
    return signature(failure.function) if failure.function is not None else []


def _operands(failure: Failure, call: ast.expr) -> list[ast.expr]:
    """Return the expressions that a call takes its operands from, in their order."""
    if isinstance(call, ast.BinOp):
        return [call.left, call.right]
    if isinstance(call, ast.UnaryOp):
        return [call.operand]
    if isinstance(call, ast.Compare) and len(call.ops) == 1:
        return [call.left, *call.comparators]
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
