"""`torch.library`: operators of one's own, which `torch.ops` finds by name.

An operator is a Python function of tensors, and if one is registered, a formula of its gradient; a call is a node of
the graph. What PyTorch registers for tracing (`register_fake`) and for other devices is taken, and never called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from tinytorch import ops
from tinytorch.autograd.function import Function
from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import flatten, unflatten
from tinytorch.ops.autocast import active, outside

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "impl_abstract", "register_autocast",
    "register_autograd", "register_fake", "register_kernel", "register_vmap",
]  # fmt: skip

#: Where a kernel runs for tensors on the CPU: with the library's own gradients, or as a node of the graph.
_ITS_OPS_RECORD = {"CompositeImplicitAutograd"}
_ON_CPU = {"", "CPU", "cpu", "CompositeExplicitAutograd", "default"} | _ITS_OPS_RECORD


class CustomOpDef:
    """An operator; `custom_op` makes one of a function."""

    def __init__(self, name: str, kernel: Callable[..., Any] | None) -> None:
        namespace, separator, rest = name.partition("::")
        if not separator or not namespace or not rest:
            raise ValueError(f"expected {name!r} to be of the form '<namespace>::<name>', such as 'mylib::sin'")
        self._qualname = name
        self._name = f"{namespace}.{rest}.default"
        self._kernel = kernel
        self._signature = None if kernel is None else inspect.signature(kernel)
        self._composite = False
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._autocast: Callable[..., Any] | None = None
        self._node: Any = type(
            f"GeneratedBackwardFor_{namespace}_{rest}_default",
            (Function,),
            {"forward": staticmethod(self._forward), "backward": staticmethod(self._pull_back)},
        )
        ops._namespaces.setdefault(namespace, ops._Namespace(namespace)).__dict__[rest] = self

    @property
    def default(self) -> CustomOpDef:
        """The operator itself."""
        return self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator."""
        if self._autocast is not None and active():
            return outside(self._autocast, *args, **kwargs)
        if self._kernel is None or self._signature is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the 'CPU' backend: it has no kernel there"
            )
        if self._composite:
            return self._kernel(*args, **kwargs)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RuntimeError(f"{self._qualname}() {error}") from None
        bound.apply_defaults()
        leaves, structure = flatten((bound.args, bound.kwargs))
        results: list[Any] = []
        outputs = self._node.apply(structure, results, *leaves)
        return unflatten(list(outputs), results[0])

    def _forward(self, ctx: Any, structure: Any, results: list[Any], *leaves: Any) -> Any:
        args, named = unflatten(list(leaves), structure)
        assert self._kernel is not None
        output = self._kernel(*args, **named)
        flat, form = flatten(output)
        results.append(form)
        ctx.structure = structure
        if self._setup_context is not None:
            given = {"ctx": ctx, "inputs": args, "output": output}
            if named:
                given["keyword_only_inputs"] = named
            self._setup_context(**given)
        return tuple(flat)

    def _pull_back(self, ctx: Any, *grads: Any) -> Any:
        if self._backward is None:
            raise RuntimeError(
                f"Trying to backward through {self._name} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        back = self._backward(ctx, *grads)
        back = back if isinstance(back, tuple) else (back,)
        args, _named = unflatten(list(range(ctx.structure.num_leaves)), ctx.structure)
        found: list[Any] = [None] * ctx.structure.num_leaves
        if len(back) != len(args):
            raise RuntimeError(
                f"Expected the gradient function of {self._name} to return {len(args)} gradients, one per input, but "
                f"got {len(back)}"
            )
        for place, grad in zip(args, back, strict=True):
            if isinstance(place, int):
                found[place] = grad
            elif grad is not None:
                for each, part in zip(flatten(place)[0], flatten(grad)[0], strict=True):
                    found[each] = part
        return (None, None, *found)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Take another function for tensors on some devices; may be used as a decorator.

        Args:
            device_types: names of devices; "cpu" or None makes `fn` the one that runs.
        """

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            if device_types is None or "cpu" in ((device_types,) if isinstance(device_types, str) else device_types):
                self._implement(fn, "CPU")
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Take a function of tensors without elements; it is for tracing, and never called. A decorator."""
        return fn

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Take a rule for `vmap`, which calls the operator once for each element instead. A decorator."""
        return self.register_fake if func is None else func

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a gradient.

        Args:
            backward: `backward(ctx, *grads)` returns a gradient, or None, for each positional argument.
            setup_context: `setup_context(ctx, inputs, output)` fills `ctx`; for an operator with arguments by name
                only, `setup_context(ctx, inputs, keyword_only_inputs, output)`.
        """
        self._backward, self._setup_context = backward, setup_context

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Take the dtype for autocast on other devices."""

    def _implement(self, fn: Callable[..., Any], key: str) -> None:
        if key == "AutocastCPU":
            self._autocast = fn
        if key in _ON_CPU:
            self._kernel = fn
            self._signature = inspect.signature(fn)
            self._composite = key in _ITS_OPS_RECORD


class _Operator:
    """One of PyTorch's own operators, by its name: the function or method of that name, in whichever form."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.__name__}')>"

    def __getattr__(self, form: str) -> _Operator:
        if form.startswith("__") or "." in self.__name__:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no '{form}'")
        found = self.__dict__[form] = _Operator(f"{self.__name__}.{form}")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.partition(".")[0]
        for owner in (import_module("tinytorch"), Tensor, import_module("tinytorch.nn.functional")):
            found = getattr(owner, name, None)
            if found is not None:
                return found(*args, **kwargs)
        raise NotImplementedError(f"tinytorch has no operator aten::{name}")


class _Operators(ops._Namespace):
    """`torch.ops.aten`: PyTorch's own operators."""

    def __getattr__(self, name: str) -> _Operator:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = _Operator(name)
        return found


ops._namespaces["aten"] = _Operators("aten")


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function of tensors; may be used as a decorator.

    Args:
        name: "<namespace>::<name>"; `torch.ops.<namespace>.<name>` is the operator, too.
        fn: the function. Gradients do not flow through what it does: see `CustomOpDef.register_autograd`.
        mutates_args: names of the arguments that it writes to.
        device_types, schema, tags: have no effect.

    Raises:
        ValueError: a parameter of the function has no annotation.

    Example:
        >>> @torch.library.custom_op("docs::sine", mutates_args=())
        ... def sine(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(np.sin(x.numpy()))
        >>> sine.register_autograd(
        ...     lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        ... )
        >>> import numpy as np
        >>> x = torch.zeros(1, requires_grad=True)
        >>> torch.ops.docs.sine(x).backward()
        >>> x.grad
        tensor([1.])
    """

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        signature = inspect.signature(fn)
        for parameter in signature.parameters.values():
            if schema is None and parameter.annotation is inspect.Parameter.empty:
                raise ValueError(
                    f"infer_schema(func): Parameter {parameter.name} must have a type annotation. Got func with "
                    f"signature {signature})"
                )
        return CustomOpDef(name, fn)

    return make if fn is None else make(fn)


def _found(op: Any) -> CustomOpDef:
    """Return an operator, given itself or its name."""
    if isinstance(op, CustomOpDef):
        return op
    namespace, _, name = str(op).partition("::")
    found = vars(ops._namespaces.get(namespace, object)).get(name.removesuffix(".default"))
    if not isinstance(found, CustomOpDef):
        raise RuntimeError(f"operator {op} does not exist")
    return found


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """Take a function of tensors without elements, for tracing; it is never called. May be used as a decorator.

    The operator may be one that is compiled for PyTorch, and not there.
    """
    return (lambda func: func) if func is None else func


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Give an operator a gradient; see `CustomOpDef.register_autograd`.

    Raises:
        RuntimeError: there is no such operator.
    """
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Take another function for an operator on some devices; see `CustomOpDef.register_kernel`."""
    return _found(op).register_kernel(device_types, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Callable[..., Any]:
    """Take a rule for `vmap`; see `CustomOpDef.register_vmap`."""
    return _found(op).register_vmap(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Take the dtype for autocast on other devices."""


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Name an operator, to which `impl` gives its function.

    Args:
        qualname: "<namespace>::<name>".
        schema: its parameters, such as "(Tensor x, int n) -> Tensor".
        lib, tags: have no effect.
    """
    CustomOpDef(qualname, None)


def impl(qualname: str, types: str | Sequence[str], func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Give an operator its function on some devices; may be used as a decorator.

    Args:
        types: names of devices, or "default" for all.
        lib: has no effect.
    """

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        for each in (types,) if isinstance(types, str) else types:
            _found(qualname)._implement(func, each)
        return func

    return register if func is None else register(func)


class Library:
    """Operators of one namespace.

    Args:
        kind: "DEF", "FRAGMENT" or "IMPL".
        dispatch_key: where the functions run for which `impl` is told no other.

    Example:
        >>> library = torch.library.Library("docs_library", "DEF")
        >>> library.define("scale(Tensor x, float by) -> Tensor")
        'scale'
        >>> library.impl("scale", lambda x, by: x * by, "CPU")
        >>> torch.ops.docs_library.scale(torch.ones(2), 3.0)
        tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its schema, "name(Tensor x, …) -> Tensor", and return the name."""
        name = schema.partition("(")[0].strip()
        CustomOpDef(f"{self.ns}::{name}", None)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Give an operator its function at a dispatch key; those of other devices have no effect."""
        name = op_name._qualname if isinstance(op_name, CustomOpDef) else f"{self.ns}::{op_name}"
        _found(name)._implement(fn, dispatch_key or self.dispatch_key)
