"""Functions of tensors that are drawn at random, with statements in them that cannot be compiled."""

from __future__ import annotations

import random
from typing import Any

from tests.compiler import drawn
from tests.compiler.test_programs import difference

HELPERS = """
LOG = []

def helper(x, scale=1.5):
    y = x.sin() * scale
    LOG.append(tuple(y.shape))
    return y + x

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x, *, twice=False):
        y = x.abs().sqrt()
        self.calls += 1
        return y * 2 if twice else y

layer, stack = Layer(), nn.Sequential(nn.Tanh(), Layer(), nn.Sigmoid())
"""
#: Statements that cannot be compiled; `x` and `y` are variables.
BREAKING = [
    "LOG.append(1)", "LOG.append(tuple(x.shape))", "LOG.append(float(x.double().sum()))", "helper(x)",
    "x = helper(x, scale=0.5)", "y = x * float(x.double().mean())", "LOG.append([each.shape for each in (x, y)])",
    "z = [LOG.append(k) for k in range(2)]", "layer(x)", "x = layer(x, twice=len(LOG) % 2 == 0)", "y = stack(x)",
    "if x.double().sum() > 0: y = x * 2", "x = x[x.double() > 0] if x.ndim else x", "LOG.extend((k := 3, k))",
    "try: LOG.append(1 // (len(LOG) % 2))\nexcept ZeroDivisionError as error: LOG.append(str(error))",
    "del x", "y = (lambda a: a * 2)(x)", "y = torch.from_numpy(x.detach().double().numpy() * 2)",
    "def inner(a): return helper(a) * 2\ny = inner(x)", "x = x.detach().numpy() if x.ndim == 9 else x",
    "import math; LOG.append(math.floor(2.5))", "y, z = x, LOG[-1:]", "with torch.no_grad(): y = helper(x)",
    "y = sum(each * 2 for each in (x, x))", "global_list = LOG; global_list += [1]", "x.retain_grad()",
    "y = x.clone(); y.register_hook(lambda g: LOG.append(g.shape))", "LOG.append(x.requires_grad)",
]  # fmt: skip
#: Statements around others.
AROUND = [
    "for k in range(2):", "if len(LOG) % 2:", "while True:", "with torch.no_grad():", "with nullcontext():",
    "with suppress(RuntimeError, TypeError):", "try:", "if True:", "for k, each in enumerate(LOG[-2:]):",
    "while len(LOG) % 3:", "with torch.enable_grad():",
]  # fmt: skip
AFTER = {
    "try:": [
        "except Exception: LOG.append('caught')", "except RuntimeError as error: LOG.append(type(error).__name__)",
        "finally: LOG.append('end')", "except Exception: x = y\nelse: y = x",
        "except Exception: return LOG[-1:]\nfinally: LOG.append(0)",
    ],
    "if len(LOG) % 2:": ["else: y = x", "elif len(LOG) % 3: LOG.append(3)", "else: LOG.append(4)", ""],
    "for k in range(2):": ["else: LOG.append('over')", ""],
}  # fmt: skip
LEAVING = ["break", "continue", "return x", "return (x, y.sum())", "raise ValueError"]
ALL = [*drawn.NAMES, *[f"v{k}" for k in range(9)]]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def function(seed: int) -> str:
    """Return the text of a function that is drawn."""
    rng = random.Random(f"seams {seed}")
    first, head, *body, last = drawn.function(seed).splitlines()
    body = [line[4:] for line in body]
    names = [name for name in ALL if any(name in line for line in [head, *body])]

    def filled(text: str) -> list[str]:
        x, y = rng.choice(names), rng.choice(names)
        words = text.replace("x", "@x").replace("y", "@y")
        for old, new in (("@x", x), ("@y", y)):
            words = _replaced(words, old, new)
        return words.replace("@", "").splitlines()

    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(body))
        while at < len(body) and (body[at][:1] == " " or _is_tail(body[at])):
            at += 1
        if rng.random() < 0.55:
            body[at:at] = filled(rng.choice(BREAKING))
            continue
        end = rng.randint(at, min(len(body), at + 5))
        while end < len(body) and (body[end][:1] == " " or _is_tail(body[end])):
            end += 1
        inner = body[at:end]
        around = rng.choice(AROUND)
        for _ in range(rng.randint(0, 2)):
            inner[0:0] = filled(rng.choice(BREAKING))
        if rng.random() < 0.3:
            leaving = rng.choice(LEAVING)
            loops = {"break": ("for", "while"), "continue": ("for",)}  # (a `while` might never end)
            if leaving not in loops or around.startswith(loops[leaving]):
                inner += filled(f"if len(LOG) % 3 == {rng.randint(0, 2)}: {leaving}")
        if around.startswith("while"):
            inner += ["LOG.append(9)"] + (["break"] if "True" in around else [])
        new = [around, *_indented(inner or ["pass"])]
        if around in AFTER:
            new += filled(rng.choice(AFTER[around]))
        body[at:end] = new
    text = "\n".join([head, *_indented(body), last])
    return f"{first}\nfrom contextlib import nullcontext, suppress\n{HELPERS}\n{text}\n"


def _is_tail(line: str) -> bool:
    return line.startswith(("else:", "elif ", "except ", "finally:"))


def _replaced(text: str, old: str, new: str) -> str:
    """Replace a name that stands alone."""
    parts = text.split(old)
    done = parts[0]
    for part in parts[1:]:
        alone = not (done[-1:].isalnum() or done[-1:] in ("_", ".")) and not (part[:1].isalnum() or part[:1] in "_@")
        done += (new if alone else old[1:]) + part
    return done


def state(step: Any) -> list[Any]:
    """Return the objects that the functions have changed."""
    scope = getattr(step, "function", step).__globals__
    return [str(scope["LOG"]), scope["layer"].calls, scope["stack"][1].calls]


def failure(text: str) -> str:
    """Return how a function differs when it is compiled, or an empty string."""
    compile(text, "drawn", "exec")
    kept: list[Any] = []
    before = drawn.defined

    def defined(text: str) -> Any:
        kept.append(before(text))
        return kept[-1]

    drawn.defined = defined  # (the function that is compiled is created there)
    try:
        expected, _ = drawn.run(text, False)
        got, step = drawn.run(text, True)
    finally:
        drawn.defined = before
    found = difference(expected, got) or difference(state(kept[0]), state(step))
    whole = list(step.whole())
    # (A backward pass may be an error of the function.)
    reasons = [reason for part in whole for reason in part.reasons if not reason.startswith("RuntimeError")]
    errors = [reason for reason in reasons if reason.split(":")[0].endswith("Error")]
    count["programs"] += sum(len(part.variants) for part in whole)
    count["runs"] += sum(variant.runs for part in whole for variant in part.variants)
    count["split"] += step.split is not None
    count["breaks"] += len({each for part in whole for each in part.graph_breaks})
    return f"{found}\n{step.explain()}" if found else f"{errors}" if errors else ""


count = dict.fromkeys(("programs", "runs", "split", "breaks"), 0)
