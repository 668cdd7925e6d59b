"""Remedies for functions of tensors: shapes, dimensions, indices and dtypes that do not fit."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, is_layer, operand
from tinytorch.inspect.mistakes.layers import constructor, number, unregistered
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.remedies import remedy
from tinytorch.ops.register import functions


def operands(failure: Failure) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """Return the names and the values of the two tensors of the user's call."""
    found = [(name, value) for name, value in failure.arguments.items() if isinstance(value, Tensor)]
    (a, x), (b, y) = found[:2]
    return (a, x), (b, y)


def without(shape: Any, k: int) -> list[int]:
    """Return a shape without dimension `k`."""
    return [*shape[:k], *shape[k + 1 :]]


# Broadcasting, products ---------------------------------------------------------------------------


@remedy("must match the size of tensor b")
def broadcast(failure: Failure) -> str | None:
    """Add a dimension of size 1 where one operand lacks it."""
    loss = {"input", "target"} <= set(failure.arguments)
    if failure.calls_module and not loss:
        return None
    (a, x), (b, y) = operands(failure)
    if x.ndim == y.ndim == 4 and list(y.shape) == [x.shape[0], *x.shape[2:], x.shape[1]]:
        return failure.rewritten(**{b: "{}.permute(0, 3, 1, 2)"})
    for name, one, other in ((b, y, x), (a, x, y)):
        if one.ndim == other.ndim == 3 and list(one.shape) == [other.shape[1], 1, other.shape[2]] and not loss:
            return failure.rewritten(**{name: "{}.transpose(0, 1)"})
    if loss:
        return None  # (which values the others are compared with, only the author knows)
    distance = isinstance(failure.call, ast.BinOp) and isinstance(failure.call.op, ast.Sub) and any(
        word in failure.user.text() for word in (".norm(", ".sum(-1)", ".sum(dim=-1)", ".sum(2)", ".sum(dim=2)")
    )  # fmt: skip
    if distance and x.ndim == y.ndim == 2 and x.shape[1:] == y.shape[1:]:
        return failure.rewritten(**{a: "{}.unsqueeze(1)"})  # (of all pairs of rows)
    for name, small, large in ((b, y, x), (a, x, y)):
        if small.ndim == 2 and large.ndim > 3 and list(small.shape) == [large.shape[0], large.shape[-1]]:
            return failure.rewritten(**{name: f"{{}}[:, {'None, ' * (large.ndim - 2)}:]"})
        for k in range(1, large.ndim) if small.ndim == large.ndim - 1 else ():
            if without(large.shape, k) == list(small.shape):
                return failure.rewritten(**{name: f"{{}}.unsqueeze({-1 if k == large.ndim - 1 else k})"})
        places = [each for each in itertools.combinations(range(large.ndim), small.ndim)
                  if [large.shape[k] for k in each] == list(small.shape)]  # fmt: skip
        if 0 < small.ndim < large.ndim and len(places) == 1:
            index = [":" if k in places[0] else "None" for k in range(places[0][0], large.ndim)]
            return failure.rewritten(**{name: f"{{}}[{', '.join(index)}]"})
    if x.ndim == y.ndim == 2 and x.shape[0] == y.shape[1] and x.shape[1] == y.shape[0]:
        return failure.rewritten(**{b: "{}.T"})
    return None


@remedy("must match the size of tensor b")
def resized_map(failure: Failure) -> str | None:
    """Resize the map that a module computes to the size of the one that it is added to."""
    call = failure.call
    if not isinstance(call, ast.BinOp) or not isinstance(call.op, ast.Add) or failure.calls_module:
        return None
    (a, x), (b, y) = operands(failure)
    if x.ndim != 4 or y.ndim != 4 or x.shape[:2] != y.shape[:2]:
        return None
    near = all(0 < abs(m - n) <= 3 for m, n in zip(x.shape[2:], y.shape[2:], strict=True) if m != n)
    for name, other, node in ((a, b, call.left), (b, a, call.right)):
        kept = failure.node(other)
        made = getattr(failure.assignment(node), "value", node)
        module = failure.value(made.func) if isinstance(made, ast.Call) else None
        upsampled = type(module).__name__.startswith(("Upsample", "ConvTranspose"))
        if near and upsampled and isinstance(kept, ast.Name):
            function = failure.named("nn.functional", "nn.functional")
            return failure.rewritten(**{name: f"{function}.interpolate({{}}, size={kept.id}.shape[-2:])"})
    return None


@remedy("must match the size of tensor b")
def padded_convolution(failure: Failure) -> tuple[str, str] | None:
    """Pad the convolution of a residual block, where its result is smaller than what it is added to."""
    own, call = failure.variables.get("self"), failure.call
    if own is not failure.module or not isinstance(call, ast.BinOp):
        return None
    (_, x), (_, y) = operands(failure)
    if x.ndim != y.ndim or x.shape[:2] != y.shape[:2]:
        return None
    less = {abs(m - n) for m, n in zip(x.shape[2:], y.shape[2:], strict=True)}
    found = []
    for each in own.modules() if len(less) == 1 else ():
        if is_layer(each, "_ConvNd") and isinstance(each.padding, tuple) and set(each.stride) == {1}:
            lacking = {
                d * (k - 1) - 2 * p for k, d, p in zip(each.kernel_size, each.dilation, each.padding, strict=True)
            }
            found += [each] if lacking == less and len(lacking) == 1 and not less.copy().pop() % 2 else []
    if len(found) != 1:
        return None
    (conv,), more = found, less.pop() // 2
    text = constructor(conv, conv.in_channels, conv.out_channels, number(conv.kernel_size),
                       padding=number(tuple([p + more for p in conv.padding])))  # fmt: skip
    place = made_at(failure, conv)
    return (text, place) if place else None


@remedy("must match the size of tensor b")
def all_pairs(failure: Failure) -> str | None:
    """Compare all pairs of rows."""
    x, y = failure.arguments.get("x1"), failure.arguments.get("x2")
    if failure.name.rpartition(".")[2] != "cosine_similarity" or not isinstance(x, Tensor) or not isinstance(y, Tensor):
        return None
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        return None
    text = failure.rewritten(x1="{}.unsqueeze(1)")
    return f"{text[:-1]}, dim=-1)" if "dim" not in text else None


def _shortcut(failure: Failure) -> tuple[str, str]:
    """Return the layer that makes the input of a residual block fit its result, and the sum with it."""
    call = failure.call
    if not isinstance(call, ast.BinOp) or not isinstance(call.op, ast.Add) or failure.modules[-1:] == []:
        raise LookupError("no sum in a module")
    own = failure.variables.get("self")
    if own is not failure.module or module_of(type(own)).startswith("tinytorch."):
        raise LookupError("not in a user's module")
    (a, x), (b, y) = operands(failure)
    names = [name for name in (a, b) if any(failure.arguments[name] is each for each in failure.given.values())]
    if len(names) != 1 or x.ndim != y.ndim or x.shape[0] != y.shape[0]:
        raise LookupError("no shortcut")
    given, other = (x, y) if names[0] == a else (y, x)
    if x.ndim == 2:
        layer = f"nn.Linear({given.shape[1]}, {other.shape[1]})"
    else:
        steps = {-(-m // n) for m, n in zip(given.shape[2:], other.shape[2:], strict=True)}
        step = steps.pop()
        sizes = [-(-size // step) for size in given.shape[2:]]
        if x.ndim < 3 or steps or sizes != list(other.shape[2:]):
            raise LookupError("no number of steps")
        stride = f", stride={step}" * (step != 1)
        layer = f"nn.Conv{x.ndim - 2}d({given.shape[1]}, {other.shape[1]}, 1{stride})"
    return f"self.shortcut = {layer}", failure.rewritten(**{names[0]: "self.shortcut({})"})


@remedy("must match the size of tensor b")
def shortcut(failure: Failure) -> tuple[str, str]:
    """Derive a layer for the shortcut of a residual block."""
    text, _ = _shortcut(failure)
    function: Any = inspect.unwrap(type(failure.module).__init__)
    return text, f"{function.__code__.co_filename}:{function.__code__.co_firstlineno + 1}"


@remedy("must match the size of tensor b")
def with_shortcut(failure: Failure) -> str:
    """Use the layer for the shortcut."""
    return _shortcut(failure)[1]


@remedy(
    "mat1 and mat2 shapes cannot",
    "size for first two dimensions of batch2",
    "inconsistent tensor size",
    "size mismatch, got",
)
def transposed_factor(failure: Failure) -> str | None:
    """Transpose one of the factors."""
    if failure.calls_module:
        return None
    (a, x), (b, y) = operands(failure)
    if x.ndim > 2 and list(y.shape) == [*x.shape[:-2], x.shape[-1]]:
        return vectors(failure, b)
    if x.ndim >= 2 and y.ndim == 1 and x.shape[-2] == y.shape[0]:
        return failure.rewritten(**{a: "{}.transpose(-2, -1)"})
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] == y.shape[-2]:
        return None
    if x.shape[-1] == y.shape[-1]:
        return failure.rewritten(**{b: "{}.transpose(-2, -1)"})
    return failure.rewritten(**{a: "{}.transpose(-2, -1)"}) if x.shape[-2] == y.shape[-2] else None


def vectors(failure: Failure, name: str) -> str:
    """Return the product with a vector for each matrix of a batch."""
    product = failure.rewritten(**{name: "{}.unsqueeze(-1)"})
    return f"{product if isinstance(failure.call, ast.Call) else f'({product})'}.squeeze(-1)"


@remedy("self must be a matrix", "mat2 must be a matrix", "must be a 3D tensor", "1D tensors expected")
def any_product(failure: Failure) -> str | None:
    """Name the product of tensors of any number of dimensions."""
    (_, x), (b, y) = operands(failure)
    if x.ndim > 2 and list(y.shape) == [*x.shape[:-2], x.shape[-1]]:
        return vectors(failure, b)
    if x.ndim >= 2 and y.ndim >= 2 and x.shape[-1] != y.shape[-2]:
        return None
    return failure.renamed("matmul")


@remedy("to have the same dtype, but got", "must have the same dtype", "dtypes of self and other")
def same_dtype(failure: Failure) -> str | None:
    """Convert one operand to the dtype of the other."""
    if failure.calls_module:
        return None
    (a, x), (b, y) = operands(failure)
    if x.dtype is y.dtype or unregistered(failure) is not None:
        return None
    if y.dtype.is_floating_point and not x.dtype.is_floating_point:
        return failure.rewritten(**{a: f"{{}}.to({failure.said(b)}.dtype)"})
    return failure.rewritten(**{b: f"{{}}.to({failure.said(a)}.dtype)"})


@remedy("must have the same scalar type", "Expected self.dtype to be equal to src.dtype",
        "requires the source and destination dtypes match")  # fmt: skip
def dtype_of_written(failure: Failure) -> str | None:
    """Convert what is written to the dtype of the tensor that it is written into."""
    names = [name for name in ("source", "src", "values", "value") if isinstance(failure.arguments.get(name), Tensor)]
    if not names:
        return None
    return failure.rewritten(**{names[0]: f"{{}}.to({failure.said('input')}.dtype)"})


@remedy("not implemented for 'Long'", "not implemented for 'Int'", "not implemented for 'Byte'",
        "not implemented for 'Bool'")  # fmt: skip
def floats_needed(failure: Failure) -> str | None:
    """Convert the only tensor of a function that needs floats; labels that are resized become integers again."""
    names = [name for name, value in failure.arguments.items() if isinstance(value, Tensor)]
    if len(names) != 1 or failure.calls_module or failure.arguments[names[0]].dtype.is_floating_point:
        return None
    labels = failure.name.endswith("interpolate") and failure.arguments.get("mode", "nearest").startswith("nearest")
    return failure.rewritten(**{names[0]: "{}.float()"}) + (".long()" if labels else "")


@remedy("could not infer output dtype", "Input dtype must be either a floating point")
def mean_of_integers(failure: Failure) -> str | None:
    """Convert integers to floats."""
    return failure.rewritten(input="{}.float()")


@remedy("the number of subscripts in the equation")
def ellipsis_of_einsum(failure: Failure) -> str | None:
    """Let an ellipsis stand for the leading dimensions that all operands and the result have."""
    args = failure.arguments.get("args", ())
    text, tensors = args[0], args[1:]
    terms = text.replace(" ", "").replace("->", ",").split(",")
    node = failure.call.args[0] if isinstance(failure.call, ast.Call) else None
    lacking = {x.ndim - len(term) for term, x in zip(terms, tensors, strict=False)}
    if "->" not in text or "." in text or len(terms) != len(tensors) + 1 or node is None or lacking <= {0}:
        return None
    if len({term[:1] for term in terms}) != 1 or len(lacking) != 1 or min(lacking) < 1:
        return None
    again = [f"...{term[1:]}" for term in terms]
    return failure.replaced(node, f'"{",".join(again[:-1])}->{again[-1]}"')


@remedy("Subtraction, the `-` operator, with")
def subtracted_masks(failure: Failure) -> str | None:
    """Invert a mask, or compare two."""
    call = failure.call
    if not isinstance(call, ast.BinOp):
        return None
    left, right = ast.unparse(call.left), ast.unparse(call.right)
    if isinstance(call.left, ast.Constant):
        return f"~{right}"
    return f"{left} ^ {right}" if "two bool tensors" in failure.text else None


@remedy("can't be cast to the desired output type")
def not_in_place(failure: Failure) -> str | None:
    """Compute a result of another dtype out of place."""
    call = failure.call
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        return failure.renamed(call.func.attr[:-1])
    return None


# Joining ------------------------------------------------------------------------------------------


def joined(failure: Failure) -> tuple[list[Any], ast.List | ast.Tuple | None]:
    """Return the tensors that are joined, and the expression of their list."""
    tensors = failure.arguments.get("tensors", ())
    node = failure.node("tensors")
    return list(tensors), node if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == len(tensors) else None


def _with_element(failure: Failure, node: ast.List | ast.Tuple, k: int, text: str) -> str:
    texts = [ast.unparse(each) for each in node.elts]
    texts[k] = text.replace("{}", texts[k])
    return failure.rewritten(tensors=f"[{', '.join(texts)}]")


@remedy("Tensors must have same number of dimensions")
def joined_dimensions(failure: Failure) -> str | None:
    """Add the dimensions that a tensor lacks, and repeat it along those that are not joined."""
    tensors, node = joined(failure)
    dim = failure.arguments.get("dim", 0)
    most = max(each.ndim for each in tensors)
    dim += most if dim < 0 else 0
    lacking = [k for k, each in enumerate(tensors) if each.ndim < most]
    whole = [each for each in tensors if each.ndim == most]
    if node is None or len(lacking) != 1:
        return None
    (k,), large = lacking, whole[0]
    small = tensors[k]
    if list(small.shape) == without(large.shape, dim):
        return _with_element(failure, node, k, f"{{}}.unsqueeze({dim})")
    # The dimensions of the small tensor: the joined one, and others in the order of the large tensor.
    for places in itertools.combinations(range(most), small.ndim):
        if dim in places and all(j == dim or small.shape[i] == large.shape[j] for i, j in enumerate(places)):
            other = ast.unparse(next(each for each, x in zip(node.elts, tensors, strict=True) if x is large))
            free = [j for j in range(most) if j not in places]
            if free == list(range(free[0], most)):
                sizes = f"{'-1, ' * free[0]}*{other}.shape[{free[0]}:]"
                return _with_element(failure, node, k, f"{{}}[..., {', '.join(['None'] * len(free))}].expand({sizes})")
            index = [":" if j in places else "None" for j in range(most)]
            index = index[: max(free) + 1]
            sizes = ", ".join([f"{other}.shape[{j}]" if j in free else "-1" for j in range(most)])
            return _with_element(failure, node, k, f"{{}}[{', '.join(index)}].expand({sizes})")
    return None


@remedy("but got ndarray", "but got list", "but got float", "but got int", "but got tuple")
def joined_tensors(failure: Failure) -> str | None:
    """Make tensors of what is joined with tensors."""
    tensors, node = joined(failure)
    found = re.search(r"as element (\d+) in argument 0, but got (\w+)", failure.text)
    texts = {"ndarray": "torch.from_numpy({})", "list": "torch.tensor({})", "tuple": "{}[0]"}
    if found is None:
        return None
    if node is None:
        alike = len({type(each) for each in tensors}) == 1 and found[2] in ("ndarray", "list")
        made = texts[found[2]].replace("{}", "each") if alike else ""
        return failure.rewritten(tensors=f"[{made} for each in {{}}]") if alike else None
    if found[2] == "tuple" and not isinstance(tensors[int(found[1])][0], Tensor):
        return None
    text = texts.get(found[2], "torch.tensor([{}])")
    return _with_element(failure, node, int(found[1]), text)


@remedy("Sizes of tensors must match except in dimension")
def joined_along(failure: Failure) -> str | None:
    """Name the dimension along which tensors can be joined; crop maps that are too large."""
    tensors, node = joined(failure)
    shapes = [list(each.shape) for each in tensors]
    for k in range(len(shapes[0])):
        if all(without(each, k) == without(shapes[0], k) for each in shapes):
            return failure.with_keywords(dim=str(k)) if failure.node("dim") is None else failure.rewritten(dim=str(k))
    if node is None or len(tensors) != 2 or len(shapes[0]) != len(shapes[1]):
        return None
    along = failure.arguments.get("dim", 0) % len(shapes[0])
    for one, whole in ((0, 1), (1, 0)):
        sizes = list(zip(shapes[one], shapes[whole], range(len(shapes[0])), strict=True))
        if all(m in (1, n) or k == along for m, n, k in sizes):
            other = ast.unparse(node.elts[whole])
            texts = [f"{other}.shape[{k}]" if m == 1 != n and k != along else "-1" for m, n, k in sizes]
            return _with_element(failure, node, one, f"{{}}.expand({', '.join(texts)})")
    if len(shapes[0]) != 4 or shapes[0][0] != shapes[1][0]:
        return None
    for small, large in ((0, 1), (1, 0)):
        if isinstance(node.elts[small], ast.Call) and not isinstance(node.elts[large], ast.Call):
            function = failure.named("nn.functional", "nn.functional")
            size = f"size={ast.unparse(node.elts[large])}.shape[-2:]"
            if all(0 <= b - a <= 3 for a, b in zip(shapes[small][2:], shapes[large][2:], strict=True)):
                return _with_element(failure, node, small, f"{function}.interpolate({{}}, {size})")
        if all(a <= b for a, b in zip(shapes[small][2:], shapes[large][2:], strict=True)):
            other = ast.unparse(node.elts[small])
            return _with_element(failure, node, large, f"{{}}[..., :{other}.shape[-2], :{other}.shape[-1]]")
    return None


@remedy("must be tuple of Tensors, not Tensor")
def joined_list(failure: Failure) -> str | None:
    """Put the tensors into a tuple."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
    again = ast.Call(call.func, [ast.Tuple(call.args, ast.Load())], call.keywords)
    return failure.unparsed(again)


@remedy("stack expects each tensor to be equal size")
def padded(failure: Failure) -> str | None:
    """Pad sequences of different lengths."""
    tensors, _ = joined(failure)
    if len({tuple(each.shape[1:]) for each in tensors}) != 1 or not tensors:
        return None
    return f"nn.utils.rnn.pad_sequence({failure.said('tensors')}, batch_first=True)"


# Views --------------------------------------------------------------------------------------------


@remedy("view size is not compatible")
def reshaped(failure: Failure) -> str | None:
    """Use `reshape`, which copies where it must."""
    return failure.renamed("reshape")


@remedy("is invalid for input of size")
def inferred_size(failure: Failure) -> str | None:
    """Let one size be inferred."""
    call, x = failure.call, failure.arguments.get("input")
    shape = failure.arguments.get("shape") or failure.arguments.get("size")
    if not isinstance(call, ast.Call) or not isinstance(x, Tensor) or shape is None:
        return None
    if len(shape) == 2 and shape[0] == -1 and x.ndim > 2 and failure.of_method:
        return f"{failure.said('input')}.flatten(1)"
    if -1 in shape:
        return None
    shape, count = list(shape), x.numel()
    written: list[ast.expr] = call.args[-1].elts if isinstance(call.args[-1], (ast.Tuple, ast.List)) else call.args
    k = next(
        (k for k in (0, len(shape) - 1) if (rest := math.prod(without(shape, k))) and count % rest == 0
         and (k or count // rest == x.shape[0]) and (not k or shape[0] == x.shape[0])),
        None,
    )  # fmt: skip
    if k is None or len(written) < len(shape):
        return None
    node = written[len(written) - len(shape) + k]
    return failure.replaced(node, "-1")


@remedy("must match the existing size")
def expanded(failure: Failure) -> str | None:
    """Add the dimension that is expanded."""
    x, size = failure.arguments.get("input"), failure.arguments.get("size")
    if failure.name != "expand" or not isinstance(x, Tensor) or not size:
        return None
    size = list(size[0]) if isinstance(size[0], (tuple, list)) else list(size)
    for k in range(len(size) - 1, 0, -1):
        if without(size, k) == list(x.shape):
            return failure.rewritten(input=f"{{}}.unsqueeze({k})")
    return None


@remedy("must match the existing size")
def cut_values(failure: Failure) -> str | None:
    """Cut what is written into every second column of an odd number."""
    value, statement = failure.arguments.get("value"), failure.statement()
    found = re.search(r"size of the tensor \((\d+)\) must match the existing size \((\d+)\)", failure.text)
    if not isinstance(value, Tensor) or found is None or not isinstance(statement, ast.Assign):
        return None
    want, have = int(found[1]), int(found[2])
    if have - want != 1 or value.shape[-1] != have or "::" not in ast.unparse(statement.targets[0]):
        return None
    return f"{ast.unparse(statement.targets[0])} = {operand(statement.value)}[..., :{want}]"


@remedy("does not match the length of the desired ordering")
def whole_permutation(failure: Failure) -> str | None:
    """Add the last dimensions to a permutation."""
    call, x, dims = failure.call, failure.arguments.get("input"), failure.arguments.get("dims", ())
    dims = list(dims[0]) if dims and isinstance(dims[0], (tuple, list)) else list(dims)
    if not isinstance(call, ast.Call) or x is None or sorted(dims) != list(range(len(dims))):
        return None
    if dims[0] == 0 and len(dims) == x.ndim + 1:  # (of a batch)
        return f"{ast.unparse(call.func)}({', '.join([str(k - 1) for k in dims[1:]])})"
    if dims == [2, 0, 1] and x.ndim == 4:
        return f"{ast.unparse(call.func)}(0, 3, 1, 2)"
    if len(dims) > x.ndim:
        return None
    return f"{ast.unparse(call.func)}({', '.join(map(str, [*dims, *range(len(dims), x.ndim)]))})"


@remedy("Dimension out of range")
def last_dimension(failure: Failure) -> str | None:
    """Name the last dimension instead of one behind it."""
    x, dim = failure.arguments.get("input"), failure.arguments.get("dim")
    pair = [failure.arguments.get(name) for name in ("dim0", "dim1")]
    if isinstance(x, Tensor) and x.ndim == 2 and sorted(map(str, pair)) == ["1", "2"]:
        return failure.rewritten(dim0="0", dim1="1")  # (a matrix of no batch)
    if failure.node("start_dim") is not None and isinstance(x, Tensor) and x.ndim == failure.arguments["start_dim"]:
        return failure.rewritten(start_dim=str(x.ndim - 1))
    adds = failure.name in ("unsqueeze", "stack") and isinstance(dim, int) and dim > 0
    if failure.node("dim") is None or not (adds or (isinstance(x, Tensor) and dim == x.ndim)):
        return None
    return failure.rewritten(dim="-1")


@remedy("t() expects a tensor with <= 2 dimensions")
def last_two(failure: Failure) -> str | None:
    """Exchange the last two dimensions."""
    return f"{failure.said('input')}.transpose(-2, -1)"


@remedy("A must be batches of square matrices")
def pseudo_inverse(failure: Failure) -> str | None:
    """Name the inverse of matrices that are not square."""
    return failure.renamed("pinv") if failure.name.endswith("inv") else None


@remedy("bincount only supports 1-d non-negative integral inputs", '"bincount_cpu" not implemented for')
def counted_classes(failure: Failure) -> str | None:
    """Count integers, without those that are negative."""
    x = failure.arguments.get("input")
    if not isinstance(x, Tensor):
        return None
    if x.ndim > 1:
        return failure.rewritten(input="{}.flatten()")
    if x.dtype.is_floating_point:
        return failure.rewritten(input="{}.long()")
    return failure.rewritten(input=f"{{}}[{failure.said('input')} >= 0]") if int(x.min()) < 0 else None


@remedy("refers to a single memory location")
def copied_first(failure: Failure) -> str | None:
    """Copy a tensor whose elements share memory before it is written."""
    node, statement = failure.node("input"), failure.statement()
    if not isinstance(node, ast.Name) or not isinstance(statement, (ast.Expr, ast.AugAssign, ast.Assign)):
        return None
    return f"{node.id} = {node.id}.clone(); {failure.user.text()}"


@remedy("is a view and is being modified inplace")
def out_of_view(failure: Failure) -> str | None:
    """Compute a new tensor, rather than write into one of several views."""
    statement, call = failure.statement(), failure.call
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        value = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, statement.value)
        return f"{statement.target.id} = {failure.unparsed(value)}"
    if isinstance(statement, ast.Expr) and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        text = failure.renamed(call.func.attr.rstrip("_"))
        return f"{ast.unparse(call.func.value)} = {text}" if isinstance(call.func.value, ast.Name) else None
    return None


@remedy("only one element tensors can be converted to Python scalars")
def function_of_tensors(failure: Failure) -> str | None:
    """Call the function of tensors instead of Python's for numbers."""
    call = failure.call
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    name = ast.unparse(call.func)
    if name in ("int", "float") and isinstance(failure.value(call.args[0]), Tensor):
        return f"{ast.unparse(call.args[0])}.tolist()"
    if name.startswith("math.") and functions.get(name.partition(".")[2]) is not None:
        return failure.called_as(f"torch.{name.partition('.')[2]}")
    return None


@remedy("Boolean value of Tensor with more than one value is ambiguous")
def larger_elements(failure: Failure) -> str | None:
    """Take the larger elements of two tensors, rather than the larger tensor."""
    call = failure.call
    names = {"max": "torch.maximum", "min": "torch.minimum"}
    fits = isinstance(call, ast.Call) and len(call.args) == 2 and ast.unparse(call.func) in names
    return failure.called_as(names[ast.unparse(call.func)]) if fits else None  # type: ignore[union-attr]


@remedy("only integer tensors of a single element can be converted to an index")
def integer_of_tensor(failure: Failure) -> str | None:
    """Convert a number that counts to an integer."""
    call = failure.call
    for node in call.args if isinstance(call, ast.Call) else ():
        value = failure.value(node)
        if isinstance(value, Tensor) and value.numel() == 1 and value.dtype.is_floating_point:
            return failure.replaced(node, f"int({ast.unparse(node)})")
    return None


# Indices ------------------------------------------------------------------------------------------


@remedy("is out of bounds for dimension", "is out of range")
def last_index(failure: Failure) -> str | None:
    """Name the last index instead of the one behind it."""
    call = failure.call
    if not isinstance(call, ast.Subscript) or not isinstance(call.slice, ast.Constant):
        return None
    owner = failure.arguments.get("input", failure.self)
    return failure.replaced(call.slice, str(len(owner) - 1)) if call.slice.value == len(owner) > 0 else None


@remedy("is out of bounds for dimension", "is out of range")
def whole_range(failure: Failure) -> tuple[str, int] | None:
    """End a loop at the last index."""
    call, tree = failure.call, failure.user.tree()
    if not isinstance(call, ast.Subscript) or not isinstance(call.slice, ast.Name) or tree is None:
        return None
    owner, index = failure.arguments.get("input", failure.self), call.slice.id
    for node in ast.walk(tree):
        if not isinstance(node, ast.For) or not node.lineno <= failure.user.line <= (node.end_lineno or 0):
            continue
        counted = (
            isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range" and len(node.iter.args) == 1
        )
        if counted and ast.unparse(node.target) == index and failure.value(call.slice) == len(owner):
            return f"range(len({ast.unparse(call.value)}))", node.lineno
    return None


@remedy("only integer tensors of a single element can be converted to an index")
def elements_of_list(failure: Failure) -> str | None:
    """Take several elements of a list."""
    call = failure.call
    if not isinstance(call, ast.Subscript) or not isinstance(failure.value(call.value), (list, tuple)):
        return None
    index = failure.value(call.slice)
    if not isinstance(index, Tensor) or index.ndim != 1 or index.dtype.is_floating_point:
        return None
    return f"[{ast.unparse(call.value)}[k] for k in {ast.unparse(call.slice)}.tolist()]"


@remedy("tensors used as indices must be long")
def integer_index(failure: Failure) -> str | None:
    """Convert an index to integers, or a mask of zeros and ones to booleans."""
    x, key = failure.arguments.get("input"), failure.arguments.get("key")
    if not isinstance(key, Tensor):
        return None
    mask = isinstance(x, Tensor) and x.shape[: key.ndim] == key.shape and bool(((key == 0) | (key == 1)).all())
    return failure.rewritten(key="{}.bool()" if mask and key.numel() > 1 else "{}.long()")


@remedy("is out of bounds for dimension", "index out of range in self")
def index_from_zero(failure: Failure) -> str | None:
    """Count indices from 0 that were counted from 1."""
    x, found = failure.arguments.get("input"), re.search(r"for dimension (\d+)", failure.text)
    name = next((each for each in ("key", "index") if isinstance(failure.arguments.get(each), Tensor)), "")
    if failure.calls_module or not isinstance(x, Tensor) or not name or failure.arguments[name].numel() < 2:
        return None
    size = x.shape[int(found[1]) if found is not None else failure.arguments.get("dim", 0)]
    index = failure.arguments[name]
    return failure.rewritten(**{name: "{} - 1"}) if int(index.min()) >= 1 and int(index.max()) == size else None


@remedy("selected index k out of range")
def fewer_values(failure: Failure) -> str | None:
    """Take no more values than there are."""
    x, dim = failure.arguments["input"], failure.arguments.get("dim", -1)
    return failure.rewritten(k=str(x.shape[dim]))


@remedy("expected grid and input to have same batch size")
def grid_of_batch(failure: Failure) -> str | None:
    """Repeat a grid for each image of a batch."""
    x, grid = failure.arguments["input"], failure.arguments["grid"]
    size = f"{failure.said('input')}.shape[0]"
    if grid.ndim == x.ndim - 1:
        return failure.rewritten(grid=f"{{}}.expand({size}, {', '.join(['-1'] * grid.ndim)})")
    if grid.shape[0] == 1:
        return failure.rewritten(grid=f"{{}}.expand({size}, {', '.join(['-1'] * (grid.ndim - 1))})")
    return None


@remedy("The shape of the mask")
def mask_along(failure: Failure) -> str | None:
    """Apply a mask to the dimension whose size it has."""
    x, mask = failure.arguments.get("input"), failure.arguments.get("key")
    if not isinstance(x, Tensor) or not isinstance(mask, Tensor) or mask.ndim != 1:
        return None
    dims = [k for k, size in enumerate(x.shape) if size == mask.shape[0]]
    if len(dims) != 1:
        return None
    return f"{failure.said('input')}[{':, ' * dims[0]}{failure.said('key')}]"


@remedy("Index tensor must have the same number of dimensions")
def index_dimension(failure: Failure) -> str | None:
    """Add a dimension to the index of `gather` and `scatter`, and remove it from what is gathered."""
    given = failure.arguments
    x, index, dim = given.get("input"), given.get("index"), given.get("dim")
    if x is None or index is None:
        return None
    if x.ndim == 3 and index.ndim == dim == 1 and len(index) == len(x):
        gathered = failure.rewritten(index=f"{{}}[:, None, None].expand(-1, 1, {failure.said('input')}.shape[-1])")
        return f"{gathered}.squeeze(1)"
    if index.ndim != x.ndim - 1:
        return None
    text = failure.rewritten(index=f"{{}}.unsqueeze({dim})")
    return f"{text}.squeeze({dim})" if failure.name == "gather" else text


@remedy("one_hot is only applicable to index tensor")
def one_hot_integers(failure: Failure) -> str | None:
    """Convert classes to integers."""
    return failure.rewritten(**{next(iter(failure.arguments)): "{}.long()"})


@remedy("Class values must be smaller than num_classes")
def one_hot_classes(failure: Failure) -> str | None:
    """Derive the number of classes."""
    name, values = next(iter(failure.arguments.items()))
    if int(values.min()) >= 1 and int(values.max()) == failure.arguments.get("num_classes"):
        return failure.rewritten(**{name: "{} - 1"})
    return failure.rewritten(num_classes=str(int(values.max()) + 1))


# Images -------------------------------------------------------------------------------------------


@remedy("must have the same number of spatial dimensions", "not supported for 2D input", "Only 2D, 3D, 4D, 5D padding",
        "Expected 3D or 4D (batch mode) tensor", "mode needs 4D input")  # fmt: skip
def batch_dimension(failure: Failure) -> str | None:
    """Add a batch dimension to an image, or of channels to masks; name the mode or the size for the dimensions."""
    x, size = failure.arguments.get("input"), failure.arguments.get("size")
    found = re.search(r"Got (\d)D input, but (\w+) mode needs (\d)D input", failure.text)
    if found is not None and isinstance(x, Tensor):
        modes = {3: "linear", 4: "bilinear", 5: "trilinear"}
        sequences = x.ndim == 3 and not size and x.shape[0] < 3
        if found[2] in modes.values() and (x.ndim > 3 or sequences):
            return failure.rewritten(mode=f'"{modes[x.ndim]}"')
    if isinstance(x, Tensor) and isinstance(size, (tuple, list)) and len(size) > x.ndim - 2 and x.ndim == 4:
        return failure.rewritten(size=str(tuple(size[-2:])))
    if isinstance(x, Tensor) and x.ndim == 3 and x.shape[0] not in (1, 3, 4) and failure.name.endswith("interpolate"):
        return failure.rewritten(input="{}.unsqueeze(1)")
    if failure.calls_module:
        return failure.with_input("{}.unsqueeze(0)")
    return failure.rewritten(input="{}.unsqueeze(0)")


@remedy("only one of size or scale_factor should be defined")
def one_size(failure: Failure) -> str | None:
    """Keep the size."""
    return failure.with_keywords(scale_factor=None)


@remedy("align_corners option can only be set with the interpolating modes")
def without_corners(failure: Failure) -> str | None:
    """Leave out what the mode does not have."""
    return failure.with_keywords(align_corners=None)


# Masks, numbers -------------------------------------------------------------------------------------


@remedy("only supports boolean masks", "expected condition to be a boolean tensor")
def boolean_mask(failure: Failure) -> str | None:
    """Convert a mask to booleans."""
    name = next(each for each in ("mask", "condition") if each in failure.arguments)
    return failure.rewritten(**{name: "{}.bool()"})


@remedy("step must be greater than zero")
def flipped(failure: Failure) -> str | None:
    """Reverse a dimension."""
    call = failure.call
    if not isinstance(call, ast.Subscript):
        return None
    items = call.slice.elts if isinstance(call.slice, ast.Tuple) else [call.slice]
    texts = [ast.unparse(each) for each in items]
    if texts.count("::-1") != 1 or any(not isinstance(each, ast.Slice) for each in items):
        if texts[:1] != ["..."] or texts[-1] != "::-1" or len(texts) != 2:
            return None
        return f"{ast.unparse(call.value)}.flip(-1)"
    k = texts.index("::-1")
    rest = [":" if j == k else text for j, text in enumerate(texts)]
    while rest and rest[-1] == ":":
        rest.pop()
    kept = f"[{', '.join(rest)}]" if rest else ""
    return f"{ast.unparse(call.value)}{kept}.flip({k})"


@remedy("Expected dtype int")
def integer_places(failure: Failure) -> str | None:
    """Convert an index to integers."""
    return failure.rewritten(index="{}.long()")


@remedy("zero-dimensional tensor (at position")
def stacked_numbers(failure: Failure) -> str | None:
    """Stack tensors that have no dimension along which they can be joined."""
    tensors, _ = joined(failure)
    return failure.renamed("stack") if tensors and all(each.ndim == 0 for each in tensors) else None


@remedy("invalid index of a 0-dim tensor")
def number_of_tensor(failure: Failure) -> str | None:
    """Take the number out of a tensor without dimensions."""
    call = failure.call
    return f"{ast.unparse(call.value)}.item()" if isinstance(call, ast.Subscript) else None


@remedy("doesn't match the broadcast shape")
def sum_out_of_place(failure: Failure) -> str | None:
    """Compute a larger result out of place."""
    statement = failure.statement()
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        value = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, statement.value)
        return f"{statement.target.id} = {failure.unparsed(value)}"
    return None
