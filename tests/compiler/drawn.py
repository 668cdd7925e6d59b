"""Functions of tensors that are drawn at random, and steps of training: how their text is written and run."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import random
import warnings
from collections.abc import Callable
from typing import Any

import tests.autograd.test_random_programs as ops
import tinytorch as torch
import tinytorch.nn.functional as F
from tests.compiler.test_programs import difference, seen, values
from tinytorch import nn

SCOPE = {
    "torch": torch, "nn": nn, "F": F, "fit": ops.fit, "dim": ops.dim, "length": ops.length, "first": ops.first,
    "like_rows": ops.like_rows, "grad": ops.grad,
}  # fmt: skip
_numbers = itertools.count()


def texts(name: str) -> dict[str, ast.expr]:
    """Return the bodies of the functions that a table of `test_random_programs` has."""
    tree = ast.parse(inspect.getsource(ops))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            assert isinstance(node.value, ast.Dict)
            return {
                key.value: value.body
                for key, value in zip(node.value.keys, node.value.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(value, ast.Lambda)
            }
    raise KeyError(name)


VIEWS, WRITES, READS = texts("VIEWS"), texts("WRITES"), texts("READS")
MORE = [
    "F.dropout(x, 0.5)", "torch.rand_like(x)", "torch.randn(3, 4) + 0", "torch.bernoulli(x.detach().sigmoid())",
    "x @ x.mT", "F.softmax(x, -1)", "F.layer_norm(x, x.shape[-1:])", "torch.cat([x, y])", "torch.stack([x, x])",
    "torch.where(x > 0, x, y)", "x.mean()", "x.sum(-1)", "x.sum(0)", "x.amax(-1)", "x.max(-1)", "x.sort(-1)",
    "x.cumsum(-1)", "x.clamp(-1, 1)", "x * 2", "1 - x", "x / 3", "x // 2", "x.abs() ** 0.5", "x.float()",
    "x.double()", "x.long()", "F.relu(x)", "F.gelu(x)", "F.linear(x, y)", "x.var(-1)", "x.std()", "x.logsumexp(-1)",
    "x.argmax(-1)", "x.norm()", "torch.einsum('...i,...i->...', x, x)", "x.flip(0)", "x.roll(1, 0)", "x.tril()",
    "x[torch.tensor([0, -1])]", "x[[0]]", "x.gather(-1, torch.zeros(x.shape, dtype=torch.int64))",
    "x.index_select(0, torch.tensor([0]))", "torch.zeros(4)", "torch.arange(4.0)", "torch.outer(x, x)", "x.topk(1)",
    "x.var_mean()", "torch.aminmax(x)", "x.repeat(2, 1)", "x == y", "x.isnan().any()", "x.reshape(-1).contiguous()",
    "torch.lerp(x, y, 0.3)", "torch.addcmul(x, y, y)", "x.detach().requires_grad_()", "torch.empty(3).normal_()",
    "torch.full_like(x, 2)", "x.new_zeros(2)", "x.T.contiguous()", "x.prod()", "x.to(torch.float16)", "x.sign()",
    "x.round()", "torch.tanh(x)", "torch.sigmoid(x)", "torch.maximum(x, y)", "F.mse_loss(x, y)", "x.unsqueeze(0) * 1",
]  # fmt: skip


class _Named(ast.NodeTransformer):
    def __init__(self, by: dict[str, ast.expr]) -> None:
        self.by = by

    def visit_Name(self, node: ast.Name) -> Any:
        return self.by.get(node.id, node)


def shown(body: ast.expr, x: str, y: str, n: int) -> str:
    by = {"lib": ast.Name("torch"), "x": ast.Name(x), "y": ast.Name(y), "n": ast.Constant(n)}
    return ast.unparse(_Named(by).visit(ast.parse(ast.unparse(body), mode="eval")))


def arguments(seed: int, kind: int) -> list[Any]:
    """Return what a function is called with."""
    torch.manual_seed(seed)
    x = torch.randn(2, 3, 4).requires_grad_(kind % 2 == 0)
    w = torch.randn(4).requires_grad_()
    b = torch.randn(4, 3).T if kind == 3 else torch.randn(3, 4)
    return [x, w, b, torch.randn(()), torch.arange(4), torch.randn(2, 3, 4).requires_grad_() * 2]


NAMES = ["x", "w", "b", "s", "i", "h"]


def function(seed: int) -> str:
    """Return the text of a function that is drawn."""
    rng = random.Random(seed)
    kind = rng.randint(0, 3)
    scope: dict[str, Any] = {**SCOPE, **dict(zip(NAMES, arguments(seed, kind), strict=True))}
    names = list(NAMES)
    lines = [f"def step({', '.join(NAMES)}):"]
    count = 0
    about_a_copy = rng.random() < 0.4  # views of it, and writes to them
    if about_a_copy:
        x = rng.choice(NAMES)
        lines.append(f"    v0 = {x}.clone()")
        scope["v0"], count = scope[x].clone(), 1
        names.append("v0")
    for _ in range(rng.randint(2, 14)):
        x, y = rng.choice(names[-6:]), rng.choice(names)
        table = rng.choice([VIEWS, WRITES, READS, MORE, MORE])
        if about_a_copy and rng.random() < 0.7:
            x, table = rng.choice(names[6:]), rng.choice([VIEWS, WRITES, WRITES])
        if isinstance(table, list):
            body = ast.parse(rng.choice(table), mode="eval").body
        else:
            body = table[rng.choice(list(table))]
        text = shown(body, x, y, rng.randint(0, 5))
        if table is not WRITES or rng.random() < 0.2:
            text = f"v{count} = {text}"
            if rng.random() < 0.1:
                text = f"with torch.no_grad(): {text}"
        elif rng.random() < 0.4:
            text = f"with torch.no_grad(): {text}"
        if rng.random() < 0.06:
            text = f"({x} * {x}).sum().backward()"
        elif rng.random() < 0.04:
            keep = f"retain_graph={rng.random() < 0.5}, allow_unused=True"
            text = f"v{count} = torch.autograd.grad(({x} * {x}).sum(), {y}, {keep})[0]"
        elif rng.random() < 0.03:
            text = f"v{count} = {y}.grad"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, "drawn", "exec"), scope)
        except Exception:
            if rng.random() < 0.97:
                continue
        lines.append(f"    {text}")
        made = scope.get(f"v{count}")
        if isinstance(made, tuple) and made:
            lines.append(f"    v{count} = v{count}[0]")
            made = scope[f"v{count}"] = made[0]
        if isinstance(made, torch.Tensor):
            names.append(f"v{count}")
            count += 1
    with_graph = [name for name in names[6:] if scope[name].requires_grad]
    if with_graph and rng.random() < 0.6:
        picked = rng.sample(with_graph, rng.randint(1, min(3, len(with_graph))))
    elif rng.random() < 0.5:
        picked = [names[-1]]
    else:
        picked = rng.sample(names, rng.randint(1, min(3, len(names))))
    form = rng.choice(["({},)", "[{}]", "{}" if len(picked) == 1 else "({})"])
    lines.append(f"    return {form.format(', '.join(picked))}")
    return f"# {kind}\n" + "\n".join(lines) + "\n"


def code_of(text: str, name: str) -> Any:
    """Return the code of a text, whose source is found by that name of a file."""
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    return compile(text, name, "exec")


def defined(text: str, **names: Any) -> Any:
    """Return the function of a text, so that its source is found; it may use further `names`."""
    scope = {**SCOPE, **names, "__name__": "drawn"}
    exec(code_of(text, f"<drawn {next(_numbers)}>"), scope)
    return scope["step"]


def flat(x: Any) -> list[Any]:
    return (
        [x]
        if isinstance(x, torch.Tensor)
        else [y for each in x for y in flat(each)]
        if isinstance(x, (list, tuple))
        else []
    )


def _sum_backward(outputs: list[Any], keep: bool) -> None:
    sum((x**2).sum() for x in outputs).backward(retain_graph=keep)


def backward(rng: random.Random, given: list[Any], outputs: list[Any]) -> list[Any]:
    """Walk back from some of what a function has returned, some of it written to; return what is seen then."""
    found: list[Any] = []

    def fails(action: Callable[[], Any]) -> bool:
        try:
            action()
        except Exception as error:
            found.append(type(error).__name__)
            for x in given:  # (after an error a part of the gradients is there, and a part of the graph is freed)
                x.grad = None
            return True
        found.append([seen(x) for x in [*given, *outputs]])
        return False

    own = [x for x in outputs if not any(x is y for y in given) and x.is_floating_point()]
    while own and rng.random() < 0.15:
        x = rng.choice(own)
        fails(functools.partial(rng.choice([x, x.detach()]).mul_, 2))
    differentiable = [x for x in own if x.requires_grad]
    while differentiable:
        some = rng.sample(differentiable, rng.randint(1, len(differentiable)))
        if fails(functools.partial(_sum_backward, some, rng.random() < 0.5)) or rng.random() < 0.5:
            break
    return found


def run(text: str, compiles: bool) -> tuple[list[Any], Any]:
    """Return what can be seen of some calls of a function."""
    step = defined(text)
    if compiles:
        step = torch.compile(step)
    kind = int(text[2])
    found: list[Any] = []
    kept = []
    watched = torch.ones(1, requires_grad=True)
    if random.Random(text).random() < 0.2:
        watched.register_hook(lambda g: g)  # as long as there is a hook, walks look ahead
    torch.manual_seed(1)
    given = arguments(0, kind)
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(5):
            if k in (1, 2, 4):
                given = arguments(k, (kind + k // 4) % 4)
                torch.set_rng_state(state)
            try:
                result = step(*given)
            except Exception as error:
                found.append(type(error).__name__)
                result = ()
            outputs = flat(result)
            found.append((seen(result), [seen(x) for x in given], [any(x is y for y in given) for x in outputs]))
            if k != 3:
                found += backward(random.Random(f"{k} {text}"), given, outputs)
            state = torch.get_rng_state()
            found.append(state.numpy().tobytes())
            kept.append((result, values(result)))
        found.append([values(x) for x, _ in kept])
    return found, step


def failure(text: str) -> str:
    """Return how a function differs when it is compiled, or an empty string."""
    expected, _ = run(text, False)
    got, step = run(text, True)
    found = difference(expected, got)
    if found:
        return f"{found}\n{step.explain()}"
    counts[bool(step.variants)] += 1
    if not step.variants:
        reason = step.reasons[0].rpartition(": ")[2] if step.reasons else "?"
        reasons[reason] = reasons.get(reason, 0) + 1
    return ""


counts = {True: 0, False: 0}
reasons: dict[str, int] = {}
