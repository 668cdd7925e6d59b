"""Remedies for masks, and for sequences, tables and labels that are longer than what they are used with."""

from __future__ import annotations

import ast

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, is_layer
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.remedies import remedy
from tinytorch.inspect.sources import assigned_attribute

# Sequences that are shifted by one ----------------------------------------------------------------


def _slices(failure: Failure, node: ast.AST | None, k: int, depth: int = 0) -> set[str]:
    """Return which of "1:" and ":-1" cut dimension `k` of the tensors from which an expression is computed."""
    found: set[str] = set()
    for each in ast.walk(node) if node is not None and depth < 5 else ():
        if isinstance(each, ast.Subscript):
            items = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
            for j, item in enumerate(items):
                if isinstance(item, ast.Constant) and item.value is Ellipsis:
                    break
                text = ast.unparse(item)
                if j == k and text in ("1:", ":-1"):
                    found.add(text)
        elif isinstance(each, ast.Name):
            assigned = failure.assignment(each)
            if assigned is not None and assigned.value is not node:
                found |= _slices(failure, assigned.value, k, depth + 1)
    return found


def cut(text: str, k: int, part: str) -> str:
    """Return the text of an expression of which a part of dimension `k` is taken: "x[:, :-1]"."""
    return f"{text}[{':, ' * k}{part}]"


def _is_mask(x: Tensor) -> bool:
    """Return whether a tensor says which elements count: booleans, or only zeros and ones."""
    if str(x.dtype) == "torch.bool":
        return True
    array = x._array  # (not by ops, which a profile of the program would show)
    return bool(((array == 0) | (array == 1)).all())


def part_of_longer(failure: Failure, long: Tensor, short: ast.AST | None, k: int) -> str:
    """Return which part of dimension `k` of the longer tensor belongs to the shorter one; "" if that is not known.

    Predictions of what follows end one place earlier; a mask is cut as the tensor that it belongs to.
    """
    slices = _slices(failure, short, k)
    if not slices:
        return ""
    if _is_mask(long) or not long.dtype.is_floating_point:
        return "1:" if "1:" in slices else ":-1"
    return {"1:": ":-1", ":-1": "1:"}[slices.pop()] if len(slices) == 1 else ""


def _places(x: Tensor, y: Tensor) -> list[int]:
    return [k for k, (m, n) in enumerate(zip(x.shape, y.shape, strict=False)) if m != n]


@remedy("The shape of the mask")
def shifted_mask(failure: Failure) -> str | None:
    """Cut the longer of a tensor and its mask, where labels are those of the next places."""
    x, mask = failure.arguments.get("input"), failure.arguments.get("key")
    if not isinstance(x, Tensor) or not isinstance(mask, Tensor) or mask.ndim > x.ndim:
        return None
    places = _places(x, mask)
    if len(places) == 1 and abs(x.shape[places[0]] - mask.shape[places[0]]) == 1:
        (k,) = places
        if x.shape[k] > mask.shape[k]:
            part = part_of_longer(failure, x, failure.node("key"), k)
            return f"{cut(failure.said('input'), k, part)}[{failure.said('key')}]" if part else None
        part = part_of_longer(failure, mask, failure.node("input"), k)
        return failure.rewritten(key=cut("{}", k, part)) if part else None
    if x.ndim == 3 and mask.ndim == 2 and list(mask.shape) == [x.shape[0], x.shape[2]]:
        return f"{failure.said('input')}.transpose(1, 2)[{failure.said('key')}]"
    if mask.ndim > 1 and mask.shape[-1] == 1 and tuple(mask.shape[:-1]) == tuple(x.shape[: mask.ndim - 1]):
        return failure.rewritten(key="{}.squeeze(-1)")
    return None


@remedy("Expected target size", "to match target batch_size")
def shifted_labels(failure: Failure) -> str | None:
    """Cut the predictions that no label follows."""
    given = failure.arguments
    x, target = given.get("input"), given.get("target")
    if not isinstance(x, Tensor) or not isinstance(target, Tensor):
        return None
    node, other = failure.node("input"), failure.node("target")
    if x.ndim == target.ndim + 1 and x.ndim > 2 and "1:" in _slices(failure, other, 1):
        if x.shape[-1] - target.shape[-1] == 1:
            return failure.rewritten(input="{}[..., :-1]")
        return None
    while isinstance(node, ast.Name) and failure.assignment(node) is not None:
        node = failure.assignment(node).value
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or "1:" not in _slices(failure, other, 1)
    ):
        return None
    whole = failure.value(node.func.value)
    rows = isinstance(whole, Tensor) and whole.ndim == 3 and whole.shape[0] * whole.shape[1] == x.shape[0]
    if not rows or whole.shape[0] * (whole.shape[1] - 1) != target.numel() or node.func.attr not in (
        "view", "reshape", "flatten",
    ):  # fmt: skip
        return None
    name = "reshape" if node.func.attr == "view" else node.func.attr
    arguments = ", ".join([ast.unparse(each) for each in node.args])
    return failure.rewritten(input=f"{cut(ast.unparse(node.func.value), 1, ':-1')}.{name}({arguments})")


@remedy("must match the size of tensor b")
def shifted_operand(failure: Failure) -> str | None:
    """Cut the longer of two tensors where the other was cut by one, or a table that is longer than the sequence."""
    if failure.calls_module:
        return None
    found = [(name, value) for name, value in failure.arguments.items() if isinstance(value, Tensor)]
    if len(found) != 2:
        return None
    for (a, x), (b, y) in (found, found[::-1]):
        node, text = failure.node(b), "{}"
        if node is None:
            continue
        behind = x.ndim - y.ndim
        sizes = list(zip(range(y.ndim), x.shape[behind:], y.shape, strict=False)) if behind >= 0 else []
        places = [k for k, m, n in sizes if m != n and 1 not in (m, n)]
        if not sizes or not places or any(y.shape[k] <= x.shape[behind + k] for k in places):
            continue
        if len(places) == 1 and y.shape[places[0]] - x.shape[behind + places[0]] == 1:
            part = part_of_longer(failure, y, failure.node(a), places[0])
            if part:
                return failure.rewritten(**{b: cut(text, places[0], part)})
        kept = _is_mask(y) and y.ndim > 1 and bool((y != 0).any())
        if kept and len(places) == 1 and isinstance(failure.node(a), ast.Name):
            (k,) = places
            size = x.shape[behind + k]
            rest = y.narrow(k, size, y.shape[k] - size)
            if bool((rest == rest.flatten()[0]).all()):  # (it is that of longer sequences, at whose end is padding)
                return failure.rewritten(**{b: cut(text, k, f":{failure.said(a)}.shape[{behind + k}]")})
        table = next((each for each in ast.walk(node) if _is_table(failure, each)
                      and tuple(failure.value(each).shape) == tuple(y.shape)), None)  # fmt: skip
        if table is not None and places[-1] - places[0] + 1 == len(places):
            other = failure.said(a)
            if isinstance(failure.node(a), (ast.Name, ast.Attribute)) and places[0] <= 3:
                parts = [f":{other}.shape[{behind + k - x.ndim if k - y.ndim >= -2 and behind else behind + k}]"
                         for k in places]  # fmt: skip
                return failure.replaced(table, cut(ast.unparse(table), places[0], ", ".join(parts)))
    return None


def _is_table(failure: Failure, node: ast.AST) -> bool:
    """Return whether an expression is a tensor that a module keeps: a parameter, a buffer or an attribute."""
    own = isinstance(node, ast.Attribute) and hasattr(failure.value(node.value), "_modules")
    return own and isinstance(failure.value(node), Tensor)


@remedy("must match the size of tensor b")
def longer_table(failure: Failure) -> tuple[str, str] | None:
    """Make a table of a module as long as the sequence, where a class token has been added to that."""
    found = [(name, value) for name, value in failure.arguments.items() if isinstance(value, Tensor)]
    for (_, x), (b, y) in (found, found[::-1]) if len(found) == 2 and not failure.calls_module else ():
        node, behind = failure.node(b), x.ndim - y.ndim
        places = [k for k in range(y.ndim) if behind >= 0 and y.shape[k] not in (1, x.shape[behind + k])]
        if node is None or not _is_table(failure, node) or len(places) != 1 or not isinstance(node, ast.Attribute):
            continue
        (k,) = places
        more = x.shape[behind + k] - y.shape[k]
        made = assigned_attribute(type(failure.value(node.value)), node.attr, "__init__")
        for each in ast.walk(made[0].value) if made is not None and more == 1 and k == y.ndim - 2 else ():
            sizes = each.args if isinstance(each, ast.Call) and len(each.args) == y.ndim else []
            if isinstance(each, ast.Call) and len(each.args) == 1 and isinstance(each.args[0], ast.Tuple):
                sizes = each.args[0].elts
            if len(sizes) == y.ndim and made is not None:
                old = sizes[k]
                text = str(x.shape[behind + k]) if isinstance(old, ast.Constant) else f"{ast.unparse(old)} + {more}"
                again = failure.in_text(made[0].value, old, text)
                return f"{ast.unparse(made[0].targets[0])} = {again}", f"{made[1]}:{made[0].lineno}"
    return None


# Masks of attention -------------------------------------------------------------------------------


def _hidden(mask: Tensor) -> str:
    """Return what makes the mask of the places that are hidden of one that a tokenizer gave: 1 stands for a token."""
    if str(mask.dtype) == "torch.bool":
        return "{}"
    return "{}.bool()" if not bool((mask[:, 0] != 0).any()) else "{} == 0"


def _users_name(failure: Failure, mask: Tensor, *ends: str) -> str:
    """Return the argument of the user's call whose value has the shape of a mask, and whose name ends so."""
    names = [name for name, value in failure.arguments.items()
             if name.endswith(ends) and isinstance(value, Tensor) and value.shape == mask.shape]  # fmt: skip
    return names[0] if len(names) == 1 else ""


@remedy("attn_mask is", "attn_mask's size should be")
def padding_mask(failure: Failure) -> str | None:
    """Give a mask of the tokens of each sequence as padding mask."""
    mask, query, key = (failure.given.get(name) for name in ("attn_mask", "query", "key"))
    if not isinstance(mask, Tensor) or not isinstance(query, Tensor) or not isinstance(key, Tensor):
        return None
    batch = key.shape[0 if failure.module.batch_first else 1]
    length = key.shape[1 if failure.module.batch_first else 0]
    name = _users_name(failure, mask, "mask")
    call, node = failure.call, failure.node(name)
    if key.ndim != 3 or list(mask.shape) != [batch, length] or batch == length or not name or node is None:
        return None
    if not isinstance(call, ast.Call) or "padding" in name:
        return None
    keyword = {"mask": "src_key_padding_mask", "attn_mask": "key_padding_mask"}.get(
        name, name.replace("_mask", "_key_padding_mask")
    )
    text = _hidden(failure.arguments[name]).replace("{}", failure.said(name))
    rest = [each for each in call.args if each is not node]
    keywords = [each for each in call.keywords if each.value is not node]
    if len(rest) < len(call.args) and call.args[-1] is not node:
        return None
    again = ast.Call(call.func, rest, [*keywords, ast.keyword(keyword, ast.parse(text, mode="eval").body)])
    return failure.unparsed(again)


@remedy("attn_mask is", "attn_mask's size should be")
def mask_of_each_head(failure: Failure) -> str | None:
    """Repeat the masks of the sequences for each head, or cut a mask that is longer than the sequence."""
    mask, query, key = (failure.given.get(name) for name in ("attn_mask", "query", "key"))
    if not isinstance(mask, Tensor) or not isinstance(query, Tensor) or not isinstance(key, Tensor):
        return None
    first, name = failure.module.batch_first, _users_name(failure, mask, "mask")
    batch, length, width = query.shape[0 if first else 1], query.shape[1 if first else 0], key.shape[1 if first else 0]
    if not name or query.ndim != 3:
        return None
    if list(mask.shape) == [batch, length, width]:
        return failure.rewritten(**{name: f"{{}}.repeat_interleave({failure.module.num_heads}, dim=0)"})
    node, x = failure.node(name), next((each for each in failure.arguments if each in ("src", "query", "tgt")), "")
    larger = mask.ndim == 2 and mask.shape[0] >= length and mask.shape[1] >= width
    if larger and length == width and x and isinstance(failure.node(x), ast.Name) and isinstance(node, ast.Attribute):
        size = f"{failure.said(x)}.shape[{1 if first else 0}]"
        return failure.rewritten(**{name: f"{{}}[:{size}, :{size}]"})
    return None


@remedy("floating types of key_padding_mask are supported", "key_padding_mask to have dtype")
def boolean_padding(failure: Failure) -> str | None:
    """Convert a padding mask to booleans: a tokenizer's has ones where the tokens are."""
    mask = failure.given.get("key_padding_mask")
    name = _users_name(failure, mask, "key_padding_mask") if isinstance(mask, Tensor) and mask.ndim == 2 else ""
    return failure.rewritten(**{name: _hidden(failure.arguments[name])}) if name else None


def _steps_of(mask: Tensor) -> int | None:
    """Return which dimension of a padding mask is that of steps: the one at whose end are the hidden places."""
    hidden = (mask != 0).int()  # (a mask of floats has -inf there)
    ends = [k for k in (0, 1) if bool((hidden.diff(dim=k) >= 0).all())]
    return ends[0] if len(ends) == 1 and bool(hidden.any()) else None


@remedy("key_padded_mask.shape", "key_padding_mask")
def layers_batch_first(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Make attention with the batch first, where sequences and their padding mask have it there."""
    mask, key, module = failure.given.get("key_padding_mask"), failure.given.get("key"), failure.module
    if not isinstance(mask, Tensor) or not isinstance(key, Tensor) or key.ndim != 3 or module.batch_first:
        return None
    if tuple(mask.shape) != tuple(key.shape[:2]) or key.shape[0] == key.shape[1] or _steps_of(mask) == 0:
        return None
    owner = next((each for each in failure.modules[::-1] if is_layer(each, "TransformerEncoderLayer",
                  "TransformerDecoderLayer", "Transformer")), module)  # fmt: skip
    found = failure.constructor(*[each.__name__ for each in type(owner).__mro__ if module_of(each) != "builtins"])
    if found is None:
        place = made_at(failure, owner)
        return ("batch_first=True", place) if place else "batch_first=True"
    call, line = found
    keywords = [each for each in call.keywords if each.arg != "batch_first"]
    again = ast.Call(call.func, call.args, [*keywords, ast.keyword("batch_first", ast.Constant(True))])
    return failure.unparsed(again), line


@remedy("key_padded_mask.shape", "key_padding_mask")
def transposed_padding(failure: Failure) -> str | None:
    """Transpose a padding mask."""
    mask, key = failure.given.get("key_padding_mask"), failure.given.get("key")
    if not isinstance(mask, Tensor) or not isinstance(key, Tensor) or key.ndim != 3:
        return None
    first = failure.module.batch_first
    names = [
        name
        for name, value in failure.arguments.items()
        if name.endswith("key_padding_mask") and isinstance(value, Tensor) and value.shape == mask.shape
    ]
    fits = tuple(mask.shape[::-1]) == tuple(key.shape[:2] if first else key.shape[1::-1]) and len(names) == 1
    if not fits or (not first and _steps_of(mask) == 1):
        return None
    return failure.rewritten(**{names[0]: "{}.transpose(0, 1)"})


@remedy("must match the size of tensor b", "must match the existing size")
def mask_of_products(failure: Failure) -> str | None:
    """Add dimensions of heads and queries to the mask of scaled dot products."""
    query, key, mask = (failure.arguments.get(name) for name in ("query", "key", "attn_mask"))
    if not isinstance(query, Tensor) or not isinstance(key, Tensor) or not isinstance(mask, Tensor) or query.ndim != 4:
        return None
    if list(mask.shape) == [key.shape[0], key.shape[2]]:
        return failure.rewritten(attn_mask="{}[:, None, None, :]")
    if list(mask.shape) == [key.shape[0], query.shape[2], key.shape[2]]:
        return failure.rewritten(attn_mask="{}.unsqueeze(1)")
    return None


@remedy("~ (operator.invert) is only implemented", "not implemented for 'Float'", "not implemented for 'Double'")
def logical_masks(failure: Failure) -> str | None:
    """Invert or join masks of zeros and ones: as numbers, or as booleans."""
    call = failure.call
    if isinstance(call, ast.UnaryOp) and isinstance(call.op, ast.Invert):
        return f"(1 - {ast.unparse(call.operand)})"
    if not isinstance(call, ast.BinOp) or not isinstance(call.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return None
    texts = {name: "{}.bool()" for name, value in failure.arguments.items()
             if isinstance(value, Tensor) and value.dtype.is_floating_point}  # fmt: skip
    return failure.rewritten(**texts) if texts else None


@remedy("Boolean value of Tensor with more than one value is ambiguous")
def elementwise(failure: Failure) -> str | None:
    """Join masks elementwise: `&` for `and`, `~` for `not`."""
    statement = failure.statement()
    if isinstance(statement, (ast.If, ast.While, ast.Assert)) or statement is None:
        return None
    for node in ast.walk(statement):
        if isinstance(node, ast.BoolOp):
            first = failure.value(node.values[0])
            if isinstance(first, Tensor) and str(first.dtype) != "torch.bool":
                if not isinstance(node.op, ast.Or) or len(node.values) != 2:
                    return None
                name, other = map(ast.unparse, node.values)
                return f"{name} if {name} is not None else {other}"
            sign = " & " if isinstance(node.op, ast.And) else " | "
            parts = [f"({ast.unparse(each)})" if isinstance(each, ast.Compare) else ast.unparse(each)
                     for each in node.values]  # fmt: skip
            return sign.join(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = ast.unparse(node.operand)
            return f"~({operand})" if isinstance(node.operand, (ast.Compare, ast.BoolOp)) else f"~{operand}"
    return None


@remedy("cannot be broadcast to indexing result")
def masked_values(failure: Failure) -> str | None:
    """Take the values at the places of the mask that they are assigned to."""
    x, mask, value = (failure.arguments.get(name) for name in ("input", "key", "value"))
    statement = failure.statement()
    if not isinstance(x, Tensor) or not isinstance(mask, Tensor) or not isinstance(value, Tensor):
        return None
    if not isinstance(statement, ast.Assign) or str(mask.dtype) != "torch.bool":
        return None
    if tuple(value.shape[: mask.ndim]) != tuple(mask.shape):
        return None
    text, simple = ast.unparse(statement.value), isinstance(statement.value, (ast.Name, ast.Call, ast.Attribute))
    text = text if simple else f"({text})"
    return f"{ast.unparse(statement.targets[0])} = {text}[{failure.said('key')}]"
