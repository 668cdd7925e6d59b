"""The random programs of other suites, written so that what they do is compiled, and done several times."""

from __future__ import annotations

import ast
import builtins
import itertools
import random
import warnings
from typing import Any

import tests.nn.test_random_calls as layers
import tests.optim.test_random_training as training
import tinytorch as torch
from tests.compiler.drawn import code_of
from tests.compiler.stepped import DECORATOR
from tests.compiler.test_programs import plain, seen
from tests.programs.runner import importer

_numbers = itertools.count()
TIMES = 3  # a call is done: it is written down, then it is a program

# The gradients, and the layers' own state, are compared, too.
_CALLED = """
def tensors(x):
    if isinstance(x, (list, tuple)):
        return [t for each in x for t in tensors(each)]
    return [x] if isinstance(x, torch.Tensor) else []
leaves = [{leaves}]
@{decorator}
def call():
    found = tensors({result})
    loss = sum((t * numbers(0, *t.shape)).sum() for t in found if t.requires_grad)
    grads = torch.autograd.grad(loss, leaves, allow_unused=True) if found[0].requires_grad else []
    return [t.detach() for t in found], grads
for _ in range({times}):
    try:
        out.append([call(), leaves])
    except Exception as error:
        out.append(type(error).__name__)
    with torch.no_grad():
        for leaf in leaves:
            leaf.mul_(0.9)
"""


class _Made(ast.NodeTransformer):
    """Takes the layers that an expression makes out of it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if ast.unparse(node.func).startswith("nn.") and not ast.unparse(node.func).startswith("nn.functional"):
            self.lines.append(f"made{len(self.lines)} = {ast.unparse(node)}")
            return ast.Name(f"made{len(self.lines) - 1}", ast.Load())
        return node


def of_layers(seed: int) -> str:
    """Return a program that calls a function of `torch.nn`, and takes gradients."""
    rng = random.Random(seed)
    p = layers.Program(rng)
    made = _Made()
    result = ast.unparse(made.visit(ast.parse(rng.choice(layers.CALLS)(p), mode="eval")))
    called = _CALLED.format(leaves=", ".join(p.leaves), decorator=DECORATOR, result=result, times=TIMES)
    begin = layers.BEGIN.replace(".reshape(shape)", ".reshape(shape).clone()")  # (a view that is a leaf is no program)
    return "\n".join([begin, *p.lines, *made.lines, called])


def of_training(seed: int) -> str:
    """Return a program of optimizers, schedulers, clipping …, of which each part is done several times."""
    rng = random.Random(seed)
    lines = training.text_of(rng.choice(training.CALLS), rng).splitlines()
    text = "\n".join(f"note(lambda: {each})" if each in ("o.step()", "s.step()") else each for each in lines)
    once = "    try:\n        out.append(seen(f()))\n    except Exception as error:\n        out.append(error)\n"
    assert once in text
    several = "".join([f"    {line}\n" for line in once.splitlines()])
    several = f"    f = {DECORATOR}(f)\n    for _ in range({TIMES}):\n{several}"
    return text.replace(once, several.replace("append(error)", "append(type(error).__name__)"))


def outcome(text: str, compiles: bool) -> tuple[Any, list[Any]]:
    """Return what a program noted, and what it compiled."""
    made: list[Any] = []

    def compiled(function: Any) -> Any:
        made.append(torch.compile(function))
        return made[-1]

    name = f"<drawn text {next(_numbers)}>"
    scope: dict[str, Any] = {"__builtins__": {**vars(builtins), "__import__": importer("tinytorch")}, "__name__": name}
    scope |= {"out": [], DECORATOR: compiled if compiles else plain}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code_of(text, name), scope)
        except Exception as error:  # every class: it is compared
            scope["out"].append(type(error).__name__)
    return [seen(scope["out"]), torch.get_rng_state().numpy().tobytes()], made
