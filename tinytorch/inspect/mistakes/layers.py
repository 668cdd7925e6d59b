"""Remedies for layers: sizes, channels, dimensions and dtypes that do not fit."""

from __future__ import annotations

import ast
import inspect
import math
import re
from difflib import get_close_matches
from typing import Any

from tinytorch import nn
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, is_layer
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.remedies import remedy
from tinytorch.inspect.mistakes.stack import Step, locals_of
from tinytorch.inspect.sources import assigned_attribute

# Constructors -------------------------------------------------------------------------------------


def constructor(module: Any, *first: Any, **changes: Any) -> str:
    """Return the call that makes a layer like `module`.

    Args:
        module: the layer; it has attributes with the names of its other arguments.
        *first: the first arguments.
        **changes: arguments with other values.
    """
    name = _class_of(module)
    texts = [repr(number(each)) for each in first]
    for argument, default in _options(type(module), len(first)):
        value = changes.get(argument, getattr(module, argument, default))
        if argument == "bias":
            value = value is not None and value is not False
        if number(value) != number(default) and isinstance(value, (bool, int, float, str, tuple)):
            texts.append(f"{argument}={number(value)!r}")
    return f"nn.{name}({', '.join(texts)})".replace("'", '"')


def _options(kind: type, count: int) -> list[tuple[str, Any]]:
    """Return the arguments after the first ones that the constructor of a layer has, and their default values."""
    if any(each.__name__ == "RNNBase" for each in kind.__mro__):
        kind = next(each for each in kind.__mro__ if each.__name__ == "RNNBase")
        count += 1  # (`mode` comes first)
    parameters = list(inspect.signature(kind).parameters.values())[count:]
    return [(each.name, each.default) for each in parameters if each.name not in ("device", "dtype")]


def _class_of(module: Any) -> str:
    """Return the name of the class of `torch.nn` that a module is of."""
    return next(each.__name__ for each in type(module).__mro__ if module_of(each).startswith("tinytorch.nn"))


def number(value: Any) -> Any:
    """Return a tuple of equal numbers as the number, and other values as they are."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value


def _conv(module: Any, inputs: int, **changes: Any) -> str:
    """Return the constructor of a convolution with another number of input channels."""
    return constructor(module, inputs, module.out_channels, module.kernel_size, **changes)


_DTYPES = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16", "int64": "long"}


def converted(dtype: Any) -> str:
    """Return the method call that converts to a dtype: ".float()"."""
    name = str(dtype).rpartition(".")[2]
    return f".{_DTYPES[name]}()" if name in _DTYPES else f".to(torch.{name})"


def _in_sequence(failure: Failure) -> bool:
    """Return whether another module of the package called the innermost module."""
    return not failure.is_users_call and len(failure.modules) > 1


# Linear -------------------------------------------------------------------------------------------


def _joined_along(failure: Failure, x: Tensor, want: int) -> tuple[str, int] | None:
    """Return the call of `cat` that joined features along the batch, with the last dimension instead, and its line."""
    made = failure.origin("input") if failure.is_users_call else None
    if not isinstance(made, ast.Call) or ast.unparse(made.func).rpartition(".")[2] != "cat" or x.ndim < 2:
        return None
    parts = made.args[0] if made.args else None
    along = [each for each in made.keywords if each.arg == "dim"]
    first = len(made.args) == 1 and (not along or ast.unparse(along[0].value) == "0")
    if not isinstance(parts, (ast.List, ast.Tuple)) or not first or len(parts.elts) * x.shape[-1] != want:
        return None
    assigned = failure.assignment(failure.node("input"))
    text = f"{ast.unparse(made.func)}({ast.unparse(parts)}, dim={1 if x.ndim == 2 else -1})"
    return text, failure.user.line if assigned is None else assigned.lineno


def _of_other_dimensions(failure: Failure) -> tuple[str, str] | str | None:
    """Return the pooling of a model for the dimensions of its convolutions, where it is for others; and its place."""
    root = failure.modules[0]
    convs = {_dimensions(each) for each in root.modules() if is_layer(each, "_ConvNd")}
    kinds = ("_MaxPoolNd", "_AvgPoolNd", "_AdaptiveAvgPoolNd", "_AdaptiveMaxPoolNd")
    pools = [each for each in root.modules() if is_layer(each, *kinds) and _class_of(each)[-1] == "d"]
    wrong = [each for each in pools if len(convs) == 1 and int(_class_of(each)[-2]) not in convs]
    if len(wrong) != 1:
        return None
    size = getattr(wrong[0], "kernel_size", None) or wrong[0].output_size
    name, dims = _class_of(wrong[0]), convs.pop()
    text, place = f"nn.{name[:-2]}{dims}d({number(size)!r})", made_at(failure, wrong[0])
    return (text, place) if place else text


@remedy("mat1 and mat2 shapes cannot be multiplied", "size mismatch, got")
def features(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Derive the number of features of a linear layer, or what makes the input fit it."""
    module, x = failure.module, failure.given.get("input")
    if not failure.is_module("Linear") or not isinstance(x, Tensor):
        return None
    have, want, bias = list(x.shape), module.in_features, "" if module.bias is not None else ", bias=False"
    if x.ndim == 1 and want == 1:
        return failure.with_input("{}.unsqueeze(-1)")
    if x.ndim == 2 and math.prod(have) == want and failure.calls_module and not failure.is_users_call:
        name, sample = next(iter(failure.arguments.items()))
        convs = [each for each in failure.modules[0].modules() if is_layer(each, "_ConvNd")]
        if isinstance(sample, Tensor) and convs and sample.ndim == _dimensions(convs[0]) + 1:
            return failure.rewritten(**{name: "{}.unsqueeze(0)"})  # (a sample without a batch)
    joined = _joined_along(failure, x, want) or _of_other_dimensions(failure)
    if joined is not None:
        return joined
    if x.ndim > 2 and math.prod(have[1:]) == want:
        linear = f"nn.Linear({want}, {module.out_features}{bias})"
        return f"nn.Flatten(), {linear}" if _in_sequence(failure) else failure.with_input("{}.flatten(1)")
    node = failure.node("input") if failure.is_users_call else None
    state = failure.value(node.value) if isinstance(node, ast.Subscript) else None
    both = isinstance(state, Tensor) and state.ndim == 3 and state.shape[0] % 2 == 0  # of both directions
    if both and isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "-1" and 2 * have[-1] == want:
        states = ast.unparse(node.value)
        return failure.with_input(f"torch.cat([{states}[-2], {states}[-1]], dim=1)")
    if x.ndim >= 2 and have[-2] == want and have[-1] != want:
        return failure.with_input("{}.transpose(-2, -1)")
    if x.ndim == 4 and min(have[2:]) > 0 and have[1] > 1:  # feature maps
        return f"nn.Flatten(), nn.Linear({math.prod(have[1:])}, {module.out_features}{bias})"
    return f"nn.Linear({have[-1]}, {module.out_features}{bias})" if have else None


@remedy("must have the same dtype", "should be the same", "expected scalar type", "to have the same dtype")
def dtype_of_layer(failure: Failure) -> str | None:
    """Convert what a layer is given to the dtype of its parameters."""
    if failure.module is None:
        return None
    kinds = {each.dtype for each in failure.module.parameters(recurse=False)}
    x = next((value for value in failure.given.values() if isinstance(value, Tensor)), None)
    if len(kinds) != 1 or x is None or x.dtype in kinds:
        return None
    if unregistered(failure) is not None:
        return None
    kind = kinds.pop()
    if x.dtype.is_complex:
        return None
    if failure.is_module("Linear") and failure.module.in_features == x.ndim == 1 != x.shape[0]:
        return failure.with_input("{}.unsqueeze(-1)" + converted(kind))
    images = str(x.dtype) == "torch.uint8" and kind.is_floating_point and failure.is_module("_ConvNd")
    return failure.with_input("{}" + converted(kind) + (" / 255" if images and int(x.max()) > 1 else ""))


@remedy("must have the same dtype", "should be the same", "expected scalar type", "to have the same dtype",
        "Expected all tensors to be on the same device")  # fmt: skip
def unregistered(failure: Failure) -> tuple[str, str] | None:
    """Register a tensor that a module keeps, so that it is converted and moved with the module."""
    roots = [*failure.modules[:1], failure.variables.get("self")]
    tensors = [value for value in (*failure.given.values(), *failure.arguments.values()) if isinstance(value, Tensor)]
    for root in roots:
        if not hasattr(root, "_modules") or isinstance(root, type):
            continue
        kinds = {(each.dtype, str(each.device)) for each in root.parameters() if each.dtype.is_floating_point}
        found = []
        for module in root.modules():
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or not value.dtype.is_floating_point or value.grad_fn is not None:
                    continue
                kind = value.dtype, str(value.device)
                if len(kinds) == 1 and kind not in kinds and kind in {(x.dtype, str(x.device)) for x in tensors}:
                    found.append((module, name))
        if len(found) == 1:
            assigned = assigned_attribute(type(found[0][0]), found[0][1], "__init__")
            if assigned is not None:
                text = f'self.register_buffer("{found[0][1]}", {ast.unparse(assigned[0].value)})'
                return text, f"{assigned[1]}:{assigned[0].lineno}"
    return None


@remedy("must be Tensor, not")
def not_a_tensor(failure: Failure) -> str | tuple[str, int] | None:
    """Make a tensor of an array or a list; take the output out of the tuple that a recurrent layer returns."""
    places = (failure.given, failure.arguments)
    found = [(names, name) for names in places for name, value in names.items() if name and not _is_tensor(value)]
    names, name = next(((n, k) for n, k in found if k in ("input", "x", "self", "target", "other")), found[0])
    value = names[name]
    change = failure.with_input if names is failure.given else lambda text, _: failure.rewritten(**{name: text})
    if module_of(type(value)) == "numpy" and hasattr(value, "ndim"):
        return change("torch.from_numpy({})", name)
    if hasattr(value, "batch_sizes"):
        first = ", batch_first=True" if any(each.batch_first for each in recurrent_layers(failure)) else ""
        return change(f"nn.utils.rnn.pad_packed_sequence({{}}{first})[0]", name)
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return _unpacked(failure, name)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (int, float, list, tuple, Tensor)):
        if failure.inside and failure.of_loop(failure.node(name)):
            return None  # (a batch of a loader is a list)
        texts = {True: "torch.stack({})", False: "torch.tensor({})"}
        return change(texts[all(isinstance(each, Tensor) for each in value)], name)
    if isinstance(value, (int, float)):
        return change("torch.tensor({})", name)
    return None


def recurrent_layers(failure: Failure) -> list[Any]:
    """Return the recurrent layers of the modules that are running or are among the user's variables."""
    roots = [each for each in (*failure.modules, *failure.variables.values())
             if hasattr(each, "_modules") and not isinstance(each, type)]  # fmt: skip
    return [each for root in roots for each in root.modules() if is_layer(each, "RNNBase")]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _unpacked(failure: Failure, name: str) -> tuple[str, int] | None:
    """Return the assignment that takes the first of a pair: `out, _ = lstm(x)`."""
    return first_of_pair(failure, failure.node(name)) if failure.is_users_call or failure.inside else None


def first_of_pair(failure: Failure, node: ast.AST | None) -> tuple[str, int] | None:
    """Return the assignment to a variable again, in which it gets the first value of the pair that a layer returns."""
    assigned = failure.assignment(node)
    if assigned is None or not isinstance(assigned.targets[0], ast.Name) or not isinstance(assigned.value, ast.Call):
        return None
    return f"{assigned.targets[0].id}, _ = {ast.unparse(assigned.value)}", assigned.lineno


# Convolutions and pooling -------------------------------------------------------------------------


def _dimensions(module: Any) -> int:
    return len(module.kernel_size) if isinstance(module.kernel_size, tuple) else int(_class_of(module)[-2])


@remedy("channels, but got", "to have", "Given groups=")
def channels(failure: Failure) -> str | None:
    """Derive the number of channels of a convolution, or what makes the input fit it."""
    module, x = failure.module, failure.tensor_given()
    if not failure.is_module("_ConvNd") or x is None:
        return None
    want, have, dims = module.in_channels, list(x.shape), _dimensions(module)
    square = dims == 2 and have[-1] == have[-2] != have[-3]  # (maps of channels, rather than channels last)
    kind = "" if x.dtype is module.weight.dtype else converted(module.weight.dtype)
    kind += " / 255" if kind and str(x.dtype) == "torch.uint8" else ""
    if x.ndim == dims + 2 and have[-1] == want and have[1] != want and not square:
        order = (0, dims + 1, *range(1, dims + 1))
        return failure.with_input(("{}.transpose(1, 2)" if dims == 1 else f"{{}}.permute{order}") + kind)
    if x.ndim == dims + 1 and have[-1] == want and have[0] != want:
        order = (dims, *range(dims))
        return failure.with_input("{}.transpose(0, 1)" if dims == 1 else f"{{}}.permute{order}")
    if x.ndim == dims + 1 and want == 1:
        return failure.with_input("{}.unsqueeze(1)")
    inputs = have[1] if x.ndim == dims + 2 else have[0]
    return _conv(module, inputs) if inputs % module.groups == 0 else None


@remedy("input to conv", "input to conv_transpose")
def missing_dimensions(failure: Failure) -> str | None:
    """Add a dimension of channels, or remove one of size 1."""
    module, x = failure.module, failure.tensor_given()
    if not failure.is_module("_ConvNd") or x is None:
        return None
    dims, have = _dimensions(module), list(x.shape)
    if x.ndim == 2 and have[1] == module.in_channels and dims > 1:
        return failure.with_input(f"{{}}[:, :{', None' * dims}]")
    if x.ndim == dims and module.in_channels == 1:
        return failure.with_input("{}.unsqueeze(0)")
    if x.ndim == dims + 3 and 1 in have[:3]:
        return failure.with_input(f"{{}}.squeeze({have.index(1)})")
    return failure.with_input("{}.flatten(0, 1)") if x.ndim == dims + 3 else None


@remedy("Kernel size can't be greater than actual input size")
def padding_for_kernel(failure: Failure) -> str | None:
    """Derive the padding with which a kernel fits."""
    module, x = failure.module, failure.tensor_given()
    if not failure.is_module("_ConvNd") or x is None or isinstance(module.padding, str):
        return None
    dims = _dimensions(module)
    needed = [
        math.ceil(max(0, d * (k - 1) + 1 - size) / 2)
        for size, k, d in zip(x.shape[-dims:], module.kernel_size, module.dilation, strict=True)
    ]
    return _conv(module, module.in_channels, padding=number(tuple(needed)))


@remedy("Output size is too small")
def smaller_pooling(failure: Failure) -> str | None:
    """Derive the largest window that fits."""
    x = failure.tensor_given()
    if not failure.is_module("_MaxPoolNd", "_AvgPoolNd") or x is None:
        return None
    dims = int(_class_of(failure.module)[-2])
    if max(x.shape[-dims:]) == 1:
        return "nn.Identity()"  # (nothing is left to be pooled)
    return f"nn.{_class_of(failure.module)}({min(x.shape[-dims:])})" if min(x.shape[-dims:]) > 1 else None


@remedy("pixel_shuffle expects")
def shuffled_channels(failure: Failure) -> tuple[str, str] | str | None:
    """Derive the output channels of the convolution before a pixel shuffle."""
    module, x = failure.module, failure.tensor_given()
    before = producer(failure)
    if not failure.is_module("PixelShuffle") or x is None or not is_layer(before, "_ConvNd"):
        return None
    count, factor = before.out_channels, module.upscale_factor
    if count % factor:
        return None
    text = constructor(before, before.in_channels, count * factor, before.kernel_size)
    place = made_at(failure, before)
    return (text, place) if place else text


def producer(failure: Failure) -> Any:
    """Return the layer that computed what the innermost module was given, as far as the source shows it; or None."""
    if len(failure.modules) > 1 and is_layer(failure.modules[-2], "Sequential"):
        before = None
        for each in failure.modules[-2]._modules.values():
            if each is failure.module:
                return before
            before = each if list(each.parameters(recurse=True)) else before
    call = failure.call
    node: ast.AST | None = call.args[0] if isinstance(call, ast.Call) and call.args else None
    for _ in range(4):
        if isinstance(node, ast.Name):
            assigned = failure.assignment(node)
            node = None if assigned is None else assigned.value
        if not isinstance(node, ast.Call):
            return None
        module = failure.value(node.func)
        while is_layer(module, "Sequential"):
            module = list(module._modules.values())[-1]
        if hasattr(module, "_modules") and list(module.parameters()):
            return module
        node = node.args[0] if node.args else None
    return None


@remedy("must be divisible by groups")
def fitting_groups(failure: Failure) -> str | None:
    """Derive the largest number of groups, not above the given one, by which both numbers of channels are divisible."""
    both = math.gcd(failure.arguments["in_channels"], failure.arguments["out_channels"])
    groups = next(k for k in range(failure.arguments["groups"], 0, -1) if both % k == 0)
    return failure.rewritten(groups=str(groups))


# Normalization ------------------------------------------------------------------------------------


@remedy("must be divisible by num_groups")
def fitting_norm_groups(failure: Failure) -> str | None:
    """Derive the largest number of groups, not above the given one, by which the channels are divisible."""
    count = failure.arguments["num_channels"]
    groups = next(k for k in range(failure.arguments["num_groups"], 0, -1) if count % k == 0)
    return failure.rewritten(num_groups=str(groups))


@remedy("running_mean should contain", "weight should contain", "to match num_features")
def norm_features(failure: Failure) -> str | None:
    """Derive the number of channels of a batch norm."""
    x = failure.tensor_given()
    if not failure.is_module("_NormBase") or x is None:
        return None
    if x.ndim == 3 and x.shape[2] == failure.module.num_features:
        there = failure.with_input("{}.transpose(1, 2)")
        return f"{there}.transpose(1, 2)" if failure.is_users_call else there
    return constructor(failure.module, x.shape[1])


@remedy("input (got")
def norm_dimensions(failure: Failure) -> str | None:
    """Name the batch norm for the number of dimensions of the input, or add a batch dimension."""
    module, x = failure.module, failure.tensor_given()
    if not failure.is_module("_NormBase") or x is None:
        return None
    count = module.num_features
    if x.ndim > 1 and x.shape[1] == count:
        dims = {2: 1, 3: 1, 4: 2, 5: 3}[x.ndim]
        return constructor(module, count).replace(_class_of(module), f"{_class_of(module)[:-2]}{dims}d")
    return failure.with_input("{}.unsqueeze(0)") if x.shape[0] == count else None


@remedy("Expected more than 1 value per channel when training")
def one_value(failure: Failure) -> tuple[str, str] | None:
    """Leave out the last batch of a loader, if that is the small one; else switch the whole model to evaluation."""
    for step in [each for each in failure.steps if each.users]:
        call, tree = step.expression(), step.tree()
        if not isinstance(call, ast.Call):
            continue
        model = failure.value(call.func, {**step.frame.f_globals, **locals_of(step.frame)})
        if not hasattr(model, "_modules") or not call.args:
            continue
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, (ast.For, ast.While)) and node.lineno <= step.line <= (node.end_lineno or 0):
                return _without_last_batch(failure, step)
        again = ast.Call(ast.parse(f"{ast.unparse(call.func)}.eval()", mode="eval").body, call.args, call.keywords)
        return failure.unparsed(again), f"{step.file}:{step.line}"
    return None


def _without_last_batch(failure: Failure, step: Step) -> tuple[str, str] | None:
    """Return the constructor of the only loader that a function makes, without a smaller last batch."""
    tree, variables = step.tree(), {**step.frame.f_globals, **locals_of(step.frame)}
    calls = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "DataLoader"
    ]
    sizes = [each.value for node in calls for each in node.keywords if each.arg == "batch_size"]
    if len(calls) != 1 or len(sizes) != 1 or failure.value(sizes[0], variables) == 1:
        return None
    keywords = [each for each in calls[0].keywords if each.arg != "drop_last"]
    again = ast.Call(calls[0].func, calls[0].args, [*keywords, ast.keyword("drop_last", ast.Constant(True))])
    return failure.unparsed(again), f"{step.file}:{calls[0].lineno}"


@remedy("Given normalized_shape=")
def normalized_shape(failure: Failure) -> str | None:
    """Move the features to the end, where another dimension has their number; else derive the layer's shape."""
    x, count = failure.tensor_given(), len(failure.module.normalized_shape)
    if x is None or x.ndim < count:
        return None
    places = [k for k in range(x.ndim - 1) if x.shape[k] == failure.module.normalized_shape[0]] if count == 1 else []
    if places:
        order = [0, *range(2, x.ndim), 1]
        back = [0, x.ndim - 1, *range(1, x.ndim - 1)]
        there = "transpose(-2, -1)" if places[-1] == x.ndim - 2 else f"permute({', '.join(map(str, order))})"
        again = there if places[-1] == x.ndim - 2 else f"permute({', '.join(map(str, back))})"
        if places[-1] not in (1, x.ndim - 2):
            return None
        return failure.with_input(f"{{}}.{there}") + (f".{again}" if failure.is_users_call else "")
    return f"nn.{_class_of(failure.module)}({number(tuple(x.shape[-count:]))})"


# Options of layers --------------------------------------------------------------------------------


@remedy("pad should be at most half of effective kernel size")
def half_of_window(failure: Failure) -> str | None:
    """Pad by half of the window."""
    module = failure.module
    if not failure.is_module("_MaxPoolNd", "_AvgPoolNd") or not isinstance(module.kernel_size, int):
        return None
    return constructor(module, module.kernel_size, padding=module.kernel_size // 2)


@remedy("padding='same' is not supported for strided convolutions")
def padding_of_stride(failure: Failure) -> str | None:
    """Pad by half of the kernel, so that the size is divided by the stride."""
    size, dilation = failure.arguments.get("kernel_size"), failure.arguments.get("dilation", 1)
    if not isinstance(size, int) or not isinstance(dilation, int):
        return None
    return failure.rewritten(padding=str(dilation * (size - 1) // 2))


@remedy("to match the convolution dimensions, but got")
def sizes_of_dimensions(failure: Failure) -> str | None:
    """Give an option of a convolution once, where all its numbers are equal."""
    name = re.findall(r"expected (\w+) to be", failure.text)[0]
    value, module = getattr(failure.module, name, None), failure.module
    if not isinstance(value, tuple) or len(set(value)) != 1 or not failure.is_module("_ConvNd"):
        return None
    return _conv(module, module.in_channels)


@remedy("padding_mode must be one of", "is not a valid value for mode", "Unrecognised padding mode")
def mode_of_name(failure: Failure) -> str | None:
    """Name the mode that was meant."""
    name = "padding_mode" if "padding_mode" in failure.arguments else "mode"
    wrong = failure.arguments[name]
    names = [each for each in re.findall(r"'(\w+)'", failure.text) if each != wrong]
    meant = next(iter(get_close_matches(wrong, names, 1, 0.6)), None)
    return failure.rewritten(**{name: f'"{meant}"'}) if meant else None


@remedy("expected size of input's dimension 2 to match the calculated number of sliding blocks")
def stride_of_blocks(failure: Failure) -> str | None:
    """Fold with the stride with which the blocks were taken, where they do not overlap."""
    size, kernel = failure.arguments["output_size"], failure.arguments["kernel_size"]
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
    count = math.prod(n // k for n, k in zip(size, kernel, strict=True))
    if failure.arguments["input"].shape[-1] != count:
        return None
    return failure.with_keywords(stride=str(number(tuple(kernel))))


@remedy("Dimension out of range")
def dimension_of_layer(failure: Failure) -> str | None:
    """Name the last dimension, where a layer names one behind it."""
    module, x = failure.module, failure.tensor_given()
    if x is None or getattr(module, "dim", None) != x.ndim or module_of(type(module)).partition(".")[0] != "tinytorch":
        return None
    return constructor(module, dim=-1)


@remedy("Fan in and fan out can not be computed")
def initialized_bias(failure: Failure) -> str | None:
    """Initialize a bias with zeros."""
    name, x = next(iter(failure.arguments.items()))
    return f"nn.init.zeros_({failure.said(name)})" if isinstance(x, Tensor) and x.ndim == 1 else None


@remedy("has no attribute")
def weight_of_layer(failure: Failure) -> str | None:
    """Initialize the weight of a layer, rather than the layer; only layers that have one."""
    name, value = next(iter(failure.arguments.items()), ("", None))
    if failure.inside and hasattr(value, "_modules") and isinstance(getattr(value, "weight", None), Tensor):
        return failure.rewritten(**{name: "{}.weight"}) if name == "tensor" else None
    applied = any(step.ours and step.code.co_name == "apply" for step in failure.steps)
    wrong, statement = re.findall(r"'(\w+)'", failure.text)[-1], failure.statement()
    if not applied or failure.call is None or not isinstance(statement, (ast.Expr, ast.AugAssign)):
        return None
    for node in ast.walk(failure.call):
        if isinstance(node, ast.Attribute) and node.attr == wrong and hasattr(failure.value(node.value), "_modules"):
            return f'if hasattr({ast.unparse(node.value)}, "{wrong}"): {failure.user.text()}'
    return None


@remedy("is not a Module subclass")
def module_of_function(failure: Failure) -> str | None:
    """Name the module that does what a function does: `nn.ReLU()` for `F.relu`."""
    call = failure.call
    for node in call.args if isinstance(call, ast.Call) else ():
        name = ast.unparse(node).rpartition(".")[2]
        kinds = {each.lower(): each for each in dir(nn) if isinstance(getattr(nn, each), type)}
        kind = kinds.get(name.replace("_", "").lower())
        if (
            kind is not None
            and isinstance(node, (ast.Attribute, ast.Name))
            and not isinstance(failure.value(node), type)
        ):
            return failure.replaced(node, f"nn.{kind}({'dim=-1' if 'softmax' in name else ''})")
    return None


@remedy("module name should be a string. Got int", 'module name can\'t contain "."')
def name_of_module(failure: Failure) -> str | None:
    """Name modules by texts without dots."""
    node = failure.node("modules") or failure.node("name")
    if isinstance(node, ast.Dict) and all(isinstance(each, ast.Constant) for each in node.keys):
        items = [f'"{each.value!s}": {ast.unparse(value)}' for each, value in zip(node.keys, node.values, strict=True)
                 if isinstance(each, ast.Constant) and isinstance(each.value, (int, str))]  # fmt: skip
        return failure.replaced(node, "{" + ", ".join(items) + "}")
    if "name" in failure.arguments:
        value = failure.arguments["name"].replace(".", "_")
        return failure.rewritten(name=f'"{value}"' if isinstance(node, ast.Constant) else '{}.replace(".", "_")')
    return failure.rewritten(modules="{str(key): value for key, value in {}.items()}")


# Embeddings and recurrent layers ------------------------------------------------------------------


@remedy("'indices'", "Expected tensor for argument #1")
def integer_indices(failure: Failure) -> str | None:
    """Convert indices to integers."""
    if not isinstance(next(iter((failure.given or failure.arguments).values()), None), Tensor):
        return None
    if failure.module is not None:
        return failure.with_input("{}.long()")
    return failure.rewritten(input="{}.long()")


@remedy("index out of range in self")
def vocabulary(failure: Failure) -> str | None:
    """Derive the number of rows of an embedding."""
    x = failure.tensor_given()
    if not failure.is_module("Embedding") or x is None:
        return None
    if int(x.min()) < 0:
        one = len({int(each) for each in x[x < 0].flatten()}) == 1 and int(x.max()) < failure.module.num_embeddings
        return failure.with_input("{}.clamp(min=0)") if one else None
    return constructor(failure.module, int(x.max()) + 1, failure.module.embedding_dim)


@remedy("must be equal to input_size")
def input_size(failure: Failure) -> str | None:
    """Derive the input size of a recurrent layer."""
    module, x = failure.module, failure.tensor_given()
    if x is None or not hasattr(module, "input_size"):
        return None
    if x.ndim == 3 and x.shape[1] == module.input_size:
        return failure.with_input("{}.transpose(1, 2)")
    if x.ndim == 2 and module.input_size == 1 and not type(module).__name__.endswith("Cell"):
        return failure.with_input("{}.unsqueeze(-1)")
    return constructor(module, x.shape[-1], module.hidden_size)


@remedy("Expected hidden", "Expected cell")
def hidden_state(failure: Failure) -> str | None:
    """Give each layer a state, exchange its dimensions, or derive the shape of the initial state."""
    found = re.search(r"size \((.*?)\), got [\[(](.*?)[\])]", failure.text)
    if found is None:
        return None
    want, have = ([int(each) for each in text.split(",") if each.strip()] for text in found.groups())
    pair = isinstance(failure.given.get("hx"), tuple)
    change = "tuple([each{} for each in {{}}])" if pair else "{{}}{}"
    if len(want) == len(have) == 3 and want != have:
        if [have[1], have[0], have[2]] == want and have[0] != have[1]:
            return failure.with_input(change.format(".transpose(0, 1)"), "hx")
        if have[1:] == want[1:]:
            if have[0] == 1:
                return failure.with_input(change.format(f".repeat({want[0]}, 1, 1)"), "hx")
            module = failure.module
            if have[0] % (2 if module.bidirectional else 1):
                return None
            size = module.hidden_size
            both = any(each.bidirectional and each.hidden_size == size for each in recurrent_layers(failure))
            if both and not module.bidirectional and have[0] == 2 * want[0]:
                one = "{}[0::2] + {}[1::2]"  # (the states of both directions)
                pairs = "tuple([each[0::2] + each[1::2] for each in {}])"
                return failure.with_input(pairs if pair else one, "hx")
            layers = have[0] // (2 if module.bidirectional else 1)
            return constructor(module, module.input_size, module.hidden_size, num_layers=layers)
        if have[:2] == want[:2]:
            return constructor(failure.module, failure.module.input_size, have[2])
        if failure.is_users_call and [have[0], have[2]] == [want[0], want[2]] and failure.tensor_given().ndim == 3:
            node = failure.node(next(iter(failure.given)))
            if not isinstance(node, ast.Call) or hasattr(failure.value(node.func), "_modules"):
                count = f"{failure.said(next(iter(failure.given)))}.shape[{0 if failure.module.batch_first else 1}]"
                zeros = f"torch.zeros({want[0]}, {count}, {want[2]})"
                return failure.with_input(f"({zeros}, {zeros})", "hx") if pair else zeros
    return f"torch.zeros({found[1]})"


@remedy("'tuple' object has no attribute", "must be Tensor, not tuple", "hx should be")
def state_of_lstm(failure: Failure) -> str | None:
    """Give a GRU the first of the two states of an LSTM."""
    state = failure.given.get("hx")
    if not failure.is_module("GRU", "RNN", "GRUCell", "RNNCell") or not isinstance(state, tuple):
        return None
    return failure.with_input("{}[0]", "hx") if failure.is_users_call else None


@remedy("hx should also be 3-D but got 2-D", "hx and cx should also be 3-D")
def state_of_layers(failure: Failure) -> str | None:
    """Add the dimension of layers to a state."""
    state, module = failure.given.get("hx"), failure.module
    if not failure.is_users_call or module.num_layers != 1 or module.bidirectional:
        return None
    if isinstance(state, tuple):
        return failure.with_input("tuple([each.unsqueeze(0) for each in {}])", "hx")
    return failure.with_input("{}.unsqueeze(0)", "hx")


@remedy("For unbatched 2-D input, hx should also be 2-D but got 3-D", "For unbatched 2-D input, hx and cx")
def one_step(failure: Failure) -> str | None:
    """Add the dimension of steps to a batch of single steps."""
    x, state = failure.tensor_given(), failure.given.get("hx")
    first = state[0] if isinstance(state, tuple) else state
    if x is None or not isinstance(first, Tensor) or first.ndim != 3 or first.shape[1] != x.shape[0]:
        return None
    return failure.with_input(f"{{}}.unsqueeze({1 if failure.module.batch_first else 0})")


@remedy("offsets has to be a 1D Tensor but got None")
def one_bag(failure: Failure) -> str | None:
    """Make a batch of one bag."""
    return failure.with_input("{}.unsqueeze(0)")


@remedy("index 1 is out of bounds for dimension 0", "not enough values to unpack", "too many values to unpack")
def two_states(failure: Failure) -> str | None:
    """Give an LSTM both its states."""
    if failure.is_module("LSTM") and isinstance(failure.given.get("hx"), Tensor) and failure.is_users_call:
        h = failure.said("hx")
        return failure.rewritten(hx=f"({h}, torch.zeros_like({h}))")
    return None


@remedy("Expected input to be 2D or 3D", "input must have")
def sequence_dimensions(failure: Failure) -> str | None:
    """Remove a dimension of size 1 from what a recurrent layer is given."""
    x = failure.tensor_given()
    if x is None or x.ndim != 4 or 1 not in x.shape[1:3]:
        return None
    return failure.with_input(f"{{}}.squeeze({1 + list(x.shape[1:3]).index(1)})")


# Attention ----------------------------------------------------------------------------------------


@remedy("embed_dim must be divisible by num_heads")
def heads(failure: Failure) -> str | None:
    """Derive the next width that is divisible by the number of heads."""
    given = failure.arguments
    name = "embed_dim" if "embed_dim" in given else "d_model"
    count = given.get("num_heads", given.get("nhead"))
    return failure.rewritten(**{name: str(-(-given[name] // count) * count)})


@remedy("was expecting embedding dimension of", "the feature number of src and tgt must be equal to d_model")
def width(failure: Failure) -> str | None:
    """Derive the width of attention, or of the layer that contains it."""
    query = failure.given.get("query")
    if not failure.is_module("MultiheadAttention") or not isinstance(query, Tensor):
        return None
    size, count = query.shape[-1], failure.module.num_heads
    owner = failure.modules[-2] if len(failure.modules) > 1 else None
    name = next((each for each in _LAYERS if owner is not None and is_layer(owner, each)), None)
    first = ", batch_first=True" if failure.module.batch_first else ""
    if size % count:
        return None
    return f"nn.{name}({size}, {count}{first})" if name else f"nn.MultiheadAttention({size}, {count}{first})"


_LAYERS = ("TransformerEncoderLayer", "TransformerDecoderLayer")


@remedy("attn_mask is")
def mask_of_attention(failure: Failure) -> str | None:
    """Derive the causal mask of the right size."""
    mask, query = failure.given.get("attn_mask"), failure.given.get("query")
    if not isinstance(mask, Tensor) or not isinstance(query, Tensor) or mask.ndim != 2:
        return None
    size = query.shape[1 if query.ndim == 3 and failure.module.batch_first else 0]
    given = [failure.node(name) for name, value in failure.arguments.items() if name.endswith("mask")
             and isinstance(value, Tensor) and value.shape == mask.shape]  # fmt: skip
    if any(isinstance(node, ast.Attribute) for node in given) and mask.shape[0] > size:
        return None  # (a mask that the module keeps for longer sequences)
    upper = mask.triu(1) if str(mask.dtype) == "torch.bool" else (mask.triu(1) != 0)
    causal = mask.shape[0] == mask.shape[1] > 1 and int(upper.sum()) == mask.shape[0] * (mask.shape[0] - 1) // 2
    return f"nn.Transformer.generate_square_subsequent_mask({size})" if causal else None


@remedy("is invalid for input of size", "expected `key` and `value` to be 2-D but found 3-D")
def query_of_batch(failure: Failure) -> str | None:
    """Repeat a query that all sequences share for each, or add the dimension of its length."""
    query, key = failure.given.get("query"), failure.given.get("key")
    if not failure.is_module("MultiheadAttention") or not isinstance(query, Tensor) or not isinstance(key, Tensor):
        return None
    first = failure.module.batch_first
    batch = 0 if first else 1
    if key.ndim != 3 or not failure.is_users_call:
        return None
    if query.ndim == 2 and query.shape[0] == key.shape[batch]:
        return failure.with_input(f"{{}}.unsqueeze({1 if first else 0})", "query")
    if query.ndim == 3 and query.shape[batch] == 1 < key.shape[batch]:
        count = f"{failure.said('key')}.shape[{batch}]"
        return failure.with_input(f"{{}}.expand({f'{count}, -1, -1' if first else f'-1, {count}, -1'})", "query")
    return None


@remedy("missing 2 required positional arguments: 'key' and 'value'")
def self_attention(failure: Failure) -> str | None:
    """Let a sequence attend to itself."""
    call = failure.call
    if not failure.is_module("MultiheadAttention") or not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    text = ast.unparse(call.args[0])
    return f"{ast.unparse(call.func)}({', '.join([text] * 3)})"


@remedy("mat1 and mat2 shapes cannot be multiplied")
def key_width(failure: Failure) -> str | None:
    """Tell attention the width of keys and values, where it is not that of the queries."""
    module = failure.module
    query, key, value = (failure.given.get(name) for name in ("query", "key", "value"))
    if not failure.is_module("MultiheadAttention"):
        return None
    if not isinstance(query, Tensor) or not isinstance(key, Tensor) or not isinstance(value, Tensor):
        return None
    if query.shape[-1] != module.embed_dim or (key.shape[-1] == module.kdim and value.shape[-1] == module.vdim):
        return None
    changes = {"kdim": key.shape[-1], "vdim": value.shape[-1]}
    return constructor(module, module.embed_dim, module.num_heads, **changes)


@remedy("the batch number of src and tgt must be equal")
def batch_first(failure: Failure) -> str | None:
    """Put the batch first, where both sequences have it there."""
    source, target = failure.given.get("src"), failure.given.get("tgt")
    if not isinstance(source, Tensor) or not isinstance(target, Tensor) or failure.module.batch_first:
        return None
    return "batch_first=True" if source.shape[0] == target.shape[0] else None
