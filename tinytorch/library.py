"""`torch.library`: custom operators, which `torch.ops` provides by name.

An operator is a Python function of tensors, optionally with a formula for its gradient; a call of it is one node of the
graph. Functions that are registered for tracing (`register_fake`) or for other devices are accepted, but never called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinytorch import ops
from tinytorch.autograd.batched_function import by_rule
from tinytorch.autograd.function import Function
from tinytorch.core.mode import in_vmap
from tinytorch.func.pytree import flatten, unflatten
from tinytorch.ops import overrides
from tinytorch.ops.autocast import active, outside

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "impl_abstract", "register_autocast",
    "register_autograd", "register_fake", "register_kernel", "register_vmap",
]  # fmt: skip

#: The dispatch keys of kernels that run for CPU tensors. A call of a kernel under a composite key records the ops that
#: the kernel calls; a call of any other kernel is one node of the graph.
_COMPOSITE_KEYS = {"CompositeImplicitAutograd"}
_CPU_KEYS = {"", "CPU", "cpu", "CompositeExplicitAutograd", "default"} | _COMPOSITE_KEYS


class CustomOpDef:
    """A custom operator; `custom_op` creates one from a function.

    Args:
        name: "<namespace>::<name>".
        kernel: the function, if there is one so far.
        writes: whether it writes to its arguments.
    """

    def __init__(self, name: str, kernel: Callable[..., Any] | None, writes: bool = False) -> None:
        namespace, separator, rest = name.partition("::")
        if not separator or not namespace or not rest:
            raise ValueError(f"expected {name!r} to be of the form '<namespace>::<name>', such as 'mylib::sin'")
        self.__traced_as__ = "refused" if writes else "opaque"  # (read by `torch.compile`)
        self.__name__, self.__module__ = rest, f"torch._ops.{namespace}"
        self._qualname = self.__qualname__ = name
        self._name = f"{namespace}.{rest}.default"
        self._kernel = kernel
        self._signature = None if kernel is None else inspect.signature(kernel)
        self._composite = False
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._autocast: Callable[..., Any] | None = None
        self._batches: Callable[..., Any] | None = None
        self._node: Any = type(
            f"GeneratedBackwardFor_{namespace}_{rest}_default",
            (Function,),
            {"forward": staticmethod(self._run_forward), "backward": staticmethod(self._run_backward)},
        )
        ops._namespaces.setdefault(namespace, ops._Namespace(namespace)).__dict__[rest] = self

    @property
    def default(self) -> CustomOpDef:
        """The operator itself."""
        return self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; arguments with `__torch_function__` may override it."""
        if overrides.asked(args, kwargs) is not None:
            return overrides.handle_torch_function(self, [*args, *kwargs.values()], *args, **kwargs)
        if self._autocast is not None and active():
            return outside(self._autocast, *args, **kwargs)
        if self._kernel is None or self._signature is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the 'CPU' backend: it has no kernel there"
            )
        if self._composite:
            return self._kernel(*args, **kwargs)
        return self.applied(self._node.apply, args, kwargs)

    def applied(self, apply: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the operator as a node of the graph, which `apply` makes."""
        assert self._signature is not None
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RuntimeError(f"{self._qualname}() {error}") from None
        bound.apply_defaults()
        if self._batches is not None and in_vmap():
            found = by_rule(self._batches, bound.args, bound.kwargs, self._name)
            if found is not NotImplemented:
                return found
        leaves, structure = flatten((bound.args, bound.kwargs))
        output_structure: list[Any] = []  # one item, which `_run_forward` appends
        outputs = apply(structure, output_structure, *leaves)
        return unflatten(list(outputs), output_structure[0])

    def _run_forward(
        self, ctx: Any, structure: Any, output_structure: list[Any], *leaves: Any, kernel: Any = None,
        setup_context: Any = None,
    ) -> Any:  # fmt: skip
        """Run the kernel and `setup_context`, or what stands in their places."""
        kernel = kernel or self._kernel
        args, kwargs = unflatten(list(leaves), structure)
        output = kernel(*args, **kwargs)
        flat_output, form = flatten(output)
        output_structure.append(form)
        ctx.structure = structure
        if self._setup_context is not None:
            keyword_only = {"keyword_only_inputs": kwargs} if kwargs else {}
            setup_context = setup_context or self._setup_context
            setup_context(ctx=ctx, inputs=args, output=output, **keyword_only)
        return tuple(flat_output)

    def _run_backward(self, ctx: Any, *grads: Any, rule: Any = None) -> Any:
        """Return the gradients of all leaves, by the registered formula or `rule` in its place."""
        if self._backward is None:
            raise RuntimeError(
                f"Trying to backward through {self._name} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        input_grads = (rule or self._backward)(ctx, *grads)
        input_grads = input_grads if isinstance(input_grads, tuple) else (input_grads,)
        indices, _ = unflatten(list(range(ctx.structure.num_leaves)), ctx.structure)  # of leaves, in place of the args
        leaf_grads: list[Any] = [None] * ctx.structure.num_leaves
        if len(input_grads) != len(indices):
            raise RuntimeError(
                f"Expected the gradient function of {self._name} to return {len(indices)} gradients, one per input, "
                f"but got {len(input_grads)}"
            )
        for index, grad in zip(indices, input_grads, strict=True):
            if isinstance(index, int):
                leaf_grads[index] = grad
            elif grad is not None:
                for leaf, leaf_grad in zip(flatten(index)[0], flatten(grad)[0], strict=True):
                    leaf_grads[leaf] = leaf_grad
        return (None, None, *leaf_grads)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register a kernel for some devices; may be used as a decorator.

        Args:
            device_types: device types; with "cpu" or None among them `fn` becomes the kernel, others have no effect.
        """

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            if device_types is None or "cpu" in ((device_types,) if isinstance(device_types, str) else device_types):
                self._implement(fn, "CPU")
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Accept a function for tracing, on tensors without data; it is never called. May be used as a decorator."""
        return fn

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register a rule for `vmap`; may be used as a decorator. Without one, the operator is called per example.

        Args:
            func: `func(info, in_dims, *args, **kwargs)` returns `(outputs, out_dims)`: see `Function.vmap`.
        """

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._batches = func
            return func

        return register if func is None else register(func)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the gradient of the operator.

        Args:
            backward: `backward(ctx, *grads)` returns a gradient, or None, for each positional argument.
            setup_context: `setup_context(ctx, inputs, output)` saves what `backward` needs in `ctx`. For an operator
                with keyword-only arguments it is `setup_context(ctx, inputs, keyword_only_inputs, output)`.
        """
        self._backward, self._setup_context = backward, setup_context

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Accept a dtype for autocasting; it has no effect."""

    def _implement(self, fn: Callable[..., Any], key: str) -> None:
        if key == "AutocastCPU":
            self._autocast = fn
        if key in _CPU_KEYS:
            self._kernel = fn
            self._signature = inspect.signature(fn)
            self._composite = key in _COMPOSITE_KEYS


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
    """Create an operator from a function of tensors; may be used as a decorator.

    Args:
        name: "<namespace>::<name>", under which the operator is also `torch.ops.<namespace>.<name>`.
        fn: the function. Autograd does not record what it does: `CustomOpDef.register_autograd` registers a gradient.
        mutates_args: the names of the arguments that the function writes to.

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

    def create(fn: Callable[..., Any]) -> CustomOpDef:
        signature = inspect.signature(fn)
        for parameter in signature.parameters.values():
            if schema is None and parameter.annotation is inspect.Parameter.empty:
                raise ValueError(
                    f"infer_schema(func): Parameter {parameter.name} must have a type annotation. Got func with "
                    f"signature {signature})"
                )
        return CustomOpDef(name, fn, bool(list(mutates_args)))

    return create if fn is None else create(fn)


def _lookup(op: Any) -> CustomOpDef:
    """Return an operator by its name; an operator is returned as it is."""
    if isinstance(op, CustomOpDef):
        return op
    namespace, _, name = str(op).partition("::")
    operator = vars(ops._namespaces.get(namespace, object)).get(name.removesuffix(".default"))
    if not isinstance(operator, CustomOpDef):
        raise RuntimeError(f"operator {op} does not exist")
    return operator


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """Accept a function for tracing, on tensors without data; it is never called. May be used as a decorator.

    The operator need not exist, since packages also register functions for operators that are compiled for PyTorch.
    """
    return (lambda func: func) if func is None else func


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Register the gradient of an operator; see `CustomOpDef.register_autograd`."""
    _lookup(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Register a kernel of an operator for some devices; see `CustomOpDef.register_kernel`."""
    return _lookup(op).register_kernel(device_types, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Callable[..., Any]:
    """Register a rule for `vmap`; see `CustomOpDef.register_vmap`."""
    return _lookup(op).register_vmap(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Accept a dtype for autocasting; it has no effect."""


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare an operator, whose kernel `impl` registers.

    Args:
        qualname: "<namespace>::<name>".
        schema: the parameters, such as "(Tensor x, int n) -> Tensor".
    """
    CustomOpDef(qualname, None, "!" in schema)


def impl(qualname: str, types: str | Sequence[str], func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Register the kernel of an operator for some devices; may be used as a decorator.

    Args:
        types: device types, or "default" for all.
    """

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        for key in (types,) if isinstance(types, str) else types:
            _lookup(qualname)._implement(func, key)
        return func

    return register if func is None else register(func)


class Library:
    """The operators of a namespace.

    Args:
        ns: the namespace.
        kind: "DEF", "FRAGMENT" or "IMPL".
        dispatch_key: the default dispatch key of `impl`.

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
        """Declare an operator by its schema, "name(Tensor x, …) -> Tensor", and return its name."""
        name = schema.partition("(")[0].strip()
        CustomOpDef(f"{self.ns}::{name}", None, "!" in schema)
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
        """Register the kernel of an operator for a dispatch key; the keys of other devices have no effect."""
        name = op_name._qualname if isinstance(op_name, CustomOpDef) else f"{self.ns}::{op_name}"
        _lookup(name)._implement(fn, dispatch_key or self.dispatch_key)
