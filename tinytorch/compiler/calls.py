"""What a traced call runs in the place of a function: one rule for each kind of callable.

`runner_of` asks the rules in turn. A rule returns the function to call, which may be the function itself, its source
followed by the tracer, or a wrapper that records what it does; None if a call of it has unknown effects.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import inspect
import logging
import math
import operator
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tinytorch.autograd import function as autograd
from tinytorch.autograd.function import FunctionMeta
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.compiler.guards import ITERTOOLS, KEYS, PLAIN, static_member
from tinytorch.compiler.policy import CALLS, CREATES, INLINE, OPAQUE, OPS, PURE, STATEFUL, TRUSTED, declared, policy_of
from tinytorch.compiler.recorder import NotRecorded, fault, is_ours, parts_of, tensors_of
from tinytorch.compiler.rewriting import OPERATORS
from tinytorch.compiler.trace import Dimension, Trace, dimensions_in, fixed
from tinytorch.core.mode import local
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.func.pytree import flatten, unflatten
from tinytorch.kernels.programs import Bailout
from tinytorch.nn.modules.module import (
    Module,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
from tinytorch.ops.random import Generator
from tinytorch.ops.register import Builtin, Function
from tinytorch.optim.lr_scheduler import LRScheduler
from tinytorch.optim.optimizer import Optimizer, _step_post_hooks, _step_pre_hooks

if TYPE_CHECKING:
    from tinytorch.compiler.tracing import Tracer

#: What is to be called in the place of a function.
Run = Any

#: Builtins that look at no more than a type; those that create a container or iterator; those that iterate over their
#: arguments.
_OF_TYPES = frozenset(
    [isinstance, issubclass, callable, type, inspect.signature, inspect.isfunction, inspect.ismethod, inspect.isclass]
)
_CONSTRUCTORS = frozenset([
    list, dict, dict.fromkeys, set, frozenset, tuple, zip, enumerate, reversed, range, slice, sorted, iter, *ITERTOOLS,
])  # fmt: skip
#: Those of the former that hold the elements of what they are given, and do not look at them.
_HOLDERS = frozenset([list, dict, tuple, zip, enumerate, reversed, iter, *ITERTOOLS])
#: Functions of operators, besides those of `in` and subscripts.
_OPERATORS = frozenset(OPERATORS.values())
_ITERATING = frozenset([list, dict, set, frozenset, tuple, zip, enumerate, sorted, any, all, sum, min, max])
#: Those whose result depends on nothing but the arguments, and which change nothing.
_PURE = frozenset(
    [*_OF_TYPES, *_CONSTRUCTORS, *_ITERATING, len, abs, round, int, float, bool, str, repr, divmod, pow, Size, object]
)
#: Those that calculate with their arguments; those that keep, compare or add up their arguments.
_ARITHMETIC = (len, abs, round, divmod, pow, sum, min, max, int, float, bool)
_HOLDING = frozenset([
    *_OF_TYPES, *_HOLDERS, *_OPERATORS, len, set, frozenset, slice, any, all, sum, min, max, abs, map, filter,
    functools.reduce, Size, object, getattr, hasattr, setattr, math.prod, next,
])  # fmt: skip
#: Methods of Python's containers that do not change them, of containers that existed before the call.
_READING_METHODS = frozenset("get items keys values index count copy __getitem__ __contains__ __len__".split())
_CONTAINERS = (str, bytes, int, float, tuple, range, dict, list, set, frozenset, types.MappingProxyType, *KEYS)
#: Containers of which only the length is read by `len`, whatever their elements are.
_SIZED = (list, tuple, dict, set, frozenset, types.MappingProxyType, *KEYS)
#: Methods of containers and strings whose results the call creates.
_CREATING_METHODS = frozenset("copy items keys values split".split())
#: Methods of `Module` that walk through its tree of modules.
_TREE_METHODS = frozenset("parameters named_parameters children modules named_children named_modules buffers".split())
#: Members of Python's own classes that create objects and change nothing else.
_NEW = (object.__new__, dict.__new__, list.__new__, set.__new__)
_INIT = (object.__init__, dict.__init__, list.__init__, set.__init__, OrderedDict.__init__)
_GLOBAL_HOOKS = (_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks)
_MODULE_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_STEP_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


def call(tracer: Tracer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function by the rule for its kind, and note what its result is."""
    try:
        run = runner_of(tracer, function, args, kwargs)
    except Exception as error:
        if isinstance(error, NotRecorded) or tracer.has_run(error):
            raise
        run = None
        tracer.stop(fault(error))
    if run is None:
        name = getattr(function, "__qualname__", type(function).__name__)
        tracer.stop(f"{name} is called, whose effects are not known")
        return function(*args, **kwargs)
    before = tracer.recorder.line
    if tracer.trace is None:
        result = run(*args, **kwargs)
    else:
        result = _written_down(tracer, tracer.trace, run, function, args, kwargs)
    tracer.recorder.line = before
    if isinstance(function, Module):
        tracer.name_output(function, result)
    creates = isinstance(function, (type, types.BuiltinFunctionType)) and function in _CONSTRUCTORS
    if isinstance(result, Tensor) or creates or policy_of(type(result)) == TRUSTED:
        return tracer.make(result)
    if isinstance(run, types.BuiltinFunctionType) and run.__name__ in _CREATING_METHODS:
        return tracer.make(result)
    if policy_of(getattr(function, "__wrapped__", function)) == PURE:
        return tracer.guards.create(result)
    if isinstance(function, types.MethodType) and isinstance(function.__self__, Module):
        return tracer.make(result) if function.__name__ in _TREE_METHODS else result
    return result


def _written_down(
    tracer: Tracer, trace: Trace, run: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call `run` in the place of a function; write down a call of a function of tensors."""
    owner = tracer.owners.get(id(function)) or getattr(function, "__self__", None)
    of_tensors = isinstance(function, (Function, Builtin)) or isinstance(owner, (Tensor, Optimizer, LRScheduler))
    if isinstance(function, types.FunctionType):
        policy = policy_of(function)
        of_tensors |= policy in (*OPS, CREATES) or (policy == PURE and bool(tensors_of(args)))
        if policy == TRUSTED:
            trace.fail("a tensor's value decides what is done")
    elif isinstance(owner, Module):
        of_tensors = function.__func__ is Module.zero_grad
    elif isinstance(function, type):
        if policy_of(function) == TRUSTED:
            trace.fail(f"{function!r} is called")
    elif function in _ARITHMETIC:
        of_tensors = any(isinstance(x, Tensor) for x in args) if function is len else bool(tensors_of(args))
    if tracer.trusted(function) or tracer.trusted(owner):
        trace.fail("a distribution is used")
    if of_tensors or declared(function) == OPAQUE:
        return trace.call(run, function, args, kwargs)
    if function is int and args and type(args[0]) is Dimension:
        return args[0]
    if _reads_numbers(function, owner):
        args, kwargs = fixed(args), fixed(kwargs)
    return run(*args, **kwargs)


def _reads_numbers(function: Any, owner: Any) -> bool:
    """Return whether a function reads the numbers that it is given otherwise than by comparing and calculating."""
    if isinstance(function, functools._lru_cache_wrapper):
        return False  # (its rule decides)
    if isinstance(function, (type, types.BuiltinFunctionType)):
        known = function in _HOLDING or (isinstance(function, type) and function.__module__ != "builtins")
        return not (known or isinstance(owner, (list, dict, set, tuple)))
    return isinstance(function, np.ufunc) or policy_of(function) == PURE


def runner_of(tracer: Tracer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Return what is to be called in a function's place, or None if its effects are not known."""
    try:
        pure = function in _PURE
    except TypeError:  # it has no hash
        pure = False
    if pure:
        return _builtin(tracer, function, [*args, *kwargs.values()])
    if function in (map, filter, functools.reduce):
        return functools.partial(_applying, tracer, function)
    if isinstance(function, types.BuiltinFunctionType) and function in _OPERATORS:
        return functools.partial(tracer.operation, function) if all(map(tracer.simple, args)) else None
    if function is operator.getitem:
        return tracer.item
    if function is next and (tracer.made(args[0]) or tracer.is_followed(args[0])):
        return next
    if function in (getattr, hasattr) and type(args[1]) is str:
        return tracer.getattr if function is getattr else tracer.hasattr
    if function is vars and args and not isinstance(args[0], types.ModuleType):
        return lambda x: tracer.attribute(x, "__dict__")
    if function in (setattr, delattr):
        return tracer.set_attribute if function is setattr else tracer.delete_attribute
    inner = original(function)
    if inner is not None:  # a compiled function is followed itself
        if isinstance(function, types.MethodType):
            inner = types.MethodType(inner, function.__self__)
        return runner_of(tracer, inner, args, kwargs)
    if isinstance(function, Module):
        return _module(tracer, function)
    if isinstance(function, Function):
        return _public(tracer, function, declared(function.raw))
    if isinstance(function, Builtin):
        return runner_of(tracer, function.__wrapped__, args, kwargs)
    owner = tracer.owners.get(id(function)) or getattr(function, "__self__", None)
    if tracer.trusted(function) or tracer.trusted(owner):
        return trusting(tracer, function)
    if isinstance(owner, LRScheduler) and function.__name__ == "step" and not (args or kwargs):
        tracer.recorder.changed_state = True
        return _stateful(tracer, function)
    for kind, of_method in _METHODS.items():
        if isinstance(owner, kind):
            return of_method(tracer, function, owner, args, kwargs)
    if isinstance(owner, weakref.WeakKeyDictionary) and function.__name__ == "get":
        return functools.partial(_weak_get, tracer, owner)
    if isinstance(function, functools._lru_cache_wrapper):
        return functools.partial(_cached, tracer, function)
    if isinstance(function, functools.partial):
        return _partial(tracer, function)
    if function is functools.update_wrapper and args and tracer.is_followed(args[0]):
        return function
    if isinstance(function, (type, types.FunctionType)) and function in _IN_PLACE_OF:
        return functools.partial(_IN_PLACE_OF[function], tracer, function)
    if isinstance(function, np.ufunc) and all(isinstance(x, PLAIN) for x in args) and not kwargs:
        return function
    if declared(function) == OPAQUE:
        return functools.partial(_operator if hasattr(function, "applied") else _opaque, tracer, function)
    if isinstance(function, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return _builtin_method(tracer, function, owner)
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:  # `dict.pop(x, key)`
        return _builtin_method(tracer, function, args[0])
    if isinstance(function, types.MethodType):
        if isinstance(owner, FunctionMeta) and function.__func__ is autograd.Function.apply.__func__:  # type: ignore[attr-defined]
            return functools.partial(_applied, tracer, owner)
        return functools.partial(tracer.run, function.__func__, owner)
    if isinstance(function, types.FunctionType):
        return _function(tracer, function)
    if isinstance(function, type):
        return _class(tracer, function)
    called = static_member(type(function), "__call__")
    if isinstance(called, types.FunctionType) and policy_of(type(function)) in (None, INLINE):
        tracer.guards.member(type(function), "__call__")
        return functools.partial(tracer.run, called, function)
    return None


def original(function: Any) -> Any:
    """Return the function of which a function is the compiled form, or None; a wrapper of one is no compiled form."""
    if isinstance(getattr(function, "__func__", function), types.FunctionType):
        return None  # (`functools.wraps` copies the attribute)
    return getattr(function, "_torchdynamo_orig_callable", None)


def _builtin(tracer: Tracer, function: Any, given: list[Any]) -> Run:
    if function is len and len(given) == 1:
        own = tracer.special(given[0], "__len__")
        if own is not NotImplemented:
            return lambda x: own
        if type(given[0]) in _SIZED:
            return len
    if function in _ITERATING and any(_is_iterable_class(x) for x in given):
        return lambda *args, **kwargs: function(
            *[tracer.iterate(x) if _is_iterable_class(x) else x for x in args], **kwargs
        )
    walked = [x for x in given if isinstance(x, Module) and function in (len, *_CONSTRUCTORS)]
    for x in walked:
        tracer.iterate(x)
    known = tracer.simple if function not in _HOLDERS else functools.partial(_is_held, tracer)
    if function not in _OF_TYPES and not all(known(x) or any(x is each for each in walked) for x in given):
        tracer.stop(f"{function.__name__} of an object is called")
    return function


def _is_held(tracer: Tracer, x: Any) -> bool:
    """Return whether to iterate over an object runs no unknown code."""
    own = static_member(type(x), "__iter__")
    of_python = isinstance(x, (list, tuple, dict, set, frozenset, str, range)) and not isinstance(
        own, types.FunctionType
    )
    return of_python or tracer.simple(x)


def _applying(tracer: Tracer, function: Any, inner: Any, *given: Any) -> Any:
    """Return what `map`, `filter` or `functools.reduce` returns for a function that is followed."""
    if function is filter and inner is None:
        inner = bool
    followed = functools.partial(tracer.inside, inner)
    if function is map:
        return tracer.make(map(followed, *[tracer.iterate(x) for x in given]))
    values = tracer.iterate(given[0])
    if function is filter:
        return tracer.make(filter(lambda x: tracer.truth(followed(x)), values))
    return functools.reduce(followed, values, *given[1:])


def _is_iterable_class(x: Any) -> bool:
    """Return whether an object iterates by a Python function of a user's class."""
    return isinstance(static_member(type(x), "__iter__"), types.FunctionType) and policy_of(type(x)) is None


def _builtin_method(tracer: Tracer, function: Any, owner: Any) -> Run:
    known = getattr(function, "__module__", None) == "math" or isinstance(owner, (str, bytes, int, float))
    reads = isinstance(owner, _CONTAINERS) and (tracer.made(owner) or function.__name__ in _READING_METHODS)
    return function if known or reads else None


def _function(tracer: Tracer, function: types.FunctionType) -> Run:
    """Return what runs in the place of a Python function: what its policy says; a user's source is followed."""
    policy = policy_of(function)
    if policy in (None, INLINE):
        return functools.partial(tracer.run, function)
    registry = getattr(function, "__traced_registry__", None)
    if registry is not None:
        if any(policy_of(entry) != TRUSTED for entry in registry.values()):
            return None
        tracer.guards.require(f"{tracer.guards.refer(registry)} == {tracer.guards.refer(dict(registry))}")
    if policy == PURE:
        return function
    if policy == CALLS:
        return functools.partial(_calling, tracer, function)
    return trusting(tracer, function) if policy == TRUSTED else _public(tracer, function, policy)


def _applied(tracer: Tracer, kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a user's `autograd.Function`; a trace has the call itself."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return _recorded(tracer, kind, kind._arguments(args, kwargs))

    with tracer.unwritten() as trace:
        return run(*args, **kwargs) if trace is None else trace.call(run, kind.apply, args, kwargs)


def _recorded(tracer: Tracer, kind: Any, args: tuple[Any, ...], forward: Run = None, backward: Run = None) -> Any:
    """Call a `Function`, whose `forward` is followed, and whose `backward` will be, while the call is traced.

    `forward` and `backward` run in the place of these methods, if they are not followed.
    """
    if tracer.stopped:
        return kind.apply(*args)
    node = kind._node_class()
    for name in ("forward", "setup_context", "backward", "vjp", "boxed_grads_call", "clear_saved_tensors_on_access"):
        tracer.guards.member(kind, name)

    def followed(function: Any) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            for x in args:
                if isinstance(x, autograd.FunctionCtx):
                    tracer.guards.create(x)
            return tracer.inside(function, *args)

        return run

    line = tracer.recorder.line
    before = [x._version if isinstance(x, Tensor) else 0 for x in args]
    result = kind._recorded(node, args, forward or followed(kind.forward), followed(kind.setup_context))
    if node.edges:
        node.rule = functools.partial(_differentiated, weakref.ref(tracer), line, backward)
        if before != [x._version if isinstance(x, Tensor) else 0 for x in args]:
            tracer.stop(f"{kind.__name__} writes to its arguments, and gradients are recorded")
    return result


def _differentiated(tracer: weakref.ref[Tracer], line: Any, backward: Run, ctx: Any, grads: list[Any]) -> Any:
    """Run the `backward` of a user's `Function`, which is followed while the call is traced that has applied it.

    `line` is where the Function was applied; `backward` is what runs instead, with `ctx` and `grads`.
    """
    tracing, kind = tracer(), ctx._forward_cls
    if tracing is None or tracing.closed or tracing.stopped:
        return ctx.apply(*grads)
    rule = ctx._rule()
    once = getattr(rule, "__first_order__", None)
    if once is not None and local.state.grad:
        tracing.stop(f"the backward of {kind.__name__} is differentiated")
        return ctx.apply(*grads)
    tracing.guards.create(ctx)
    for g in grads:
        tracing.make(g)
    given = [grads] if kind.boxed_grads_call else grads
    tracing.make(given[0])
    try:
        with tracing.unwritten():
            return backward(ctx, *given) if backward else tracing.inside(once or rule, ctx, *given)
    except NotRecorded as reason:
        reason.line = line
        raise


def _calling(tracer: Tracer, function: Any, inner: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the first argument of a function such as `checkpoint` instead of it."""
    options = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    given = {key: value for key, value in kwargs.items() if key in options}
    if not all(isinstance(value, PLAIN) for value in given.values()) or (
        local.state.grad and given.get("use_reentrant") is not False
    ):
        tracer.stop(f"{function.__name__} is called with use_reentrant=True, or another option that is not followed")
        return function(inner, *args, **kwargs)
    return call(tracer, inner, args, {key: value for key, value in kwargs.items() if key not in options})


def _operator(tracer: Tracer, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call an operator of a user's: its kernel is one step of the program, and its gradient is followed."""
    with tracer.unwritten():
        if not local.state.grad or not any(x._requires_grad for x in tensors_of((args, kwargs))):
            return _opaque(tracer, function, *args, **kwargs)
        guards = tracer.guards
        for name in ("_kernel", "_backward", "_setup_context", "_composite", "_autocast"):
            guards.require(f"{guards.refer(function)}.{name} is {guards.refer(getattr(function, name))}")
        if function._composite or function._autocast is not None or function._backward is None:
            return _opaque(tracer, function, *args, **kwargs)
        kernel = functools.partial(_opaque, tracer, function)
        setup = function._setup_context and functools.partial(tracer.inside, function._setup_context)
        rule = functools.partial(tracer.inside, function._backward)

        def forward(ctx: Any, *given: Any) -> Any:
            tracer.guards.create(ctx)
            return function._run_forward(ctx, *given, kernel=kernel, setup_context=setup)

        def backward(ctx: Any, *grads: Any) -> Any:
            return function._run_backward(ctx, *grads, rule=rule)

        def apply(*given: Any) -> Any:
            return _recorded(tracer, function._node, given, forward, backward)

        return function.applied(apply, args, kwargs)


def _opaque(tracer: Tracer, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of tensors that is one step of the program, such as a user's operator."""
    recorder = tracer.recorder
    leaves, structure = flatten((args, kwargs))
    given = [x for x in leaves if isinstance(x, Tensor)]
    versions = [x._version for x in given]
    result = recorder.unseen(lambda: function(*args, **kwargs))
    several = isinstance(result, (tuple, list))
    results = list(result) if several else [result]
    arrays = [x._array for x in given]
    reason = ""
    if not all(type(x) is Tensor and not x.is_meta for x in results) or not all(
        isinstance(x, Tensor) or tracer.simple(x) for x in leaves
    ):
        reason = "takes or returns something else than tensors and numbers"
    elif any(x._requires_grad for x in results):
        reason = "has a gradient of its own"
    elif versions != [x._version for x in given] or recorder.has_effects():
        reason = "writes to a tensor, or is called after a write"
    elif any(np.may_share_memory(x._array, y) for x in results for y in arrays):
        reason = "returns memory of its arguments"
    if reason:
        tracer.stop(f"{function!r} {reason}")
        return result
    shapes = [(x._array.shape, x._array.strides, x._array.dtype) for x in results]

    def step(*arrays: Any) -> Any:
        new = iter(arrays)
        values = [wrap(next(new)) if isinstance(x, Tensor) else x for x in constants]
        args, kwargs = unflatten(values, structure)
        with no_grad():
            found = function(*args, **kwargs)
        made = [x._array for x in found] if several else [found._array]
        if [(x.shape, x.strides, x.dtype) for x in made] != shapes:
            raise Bailout
        return tuple(made) if several else made[0]

    constants = [wrap(np.empty(0)) if isinstance(x, Tensor) else x for x in leaves]
    recorder.opaque(step, arrays, [x._array for x in results], several)
    return result


def _cached(tracer: Tracer, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function with `functools.cache`, which follows from its arguments."""
    given, guards = (*args, *kwargs.values()), tracer.guards
    inner = function.__wrapped__
    if isinstance(inner, types.FunctionType) and any(True for _ in dimensions_in(given)):
        return call(tracer, inner, args, kwargs)  # for tensors of any size
    args, kwargs = fixed(args), fixed(kwargs)
    if tensors_of(given) or not all(guards.same(x) for x in given):
        tracer.stop(f"{function.__qualname__} is called, which keeps its results")
    result = function(*args, **kwargs)
    if tensors_of(result):
        tracer.stop(f"{function.__qualname__} is called, which keeps tensors")
    guards.see(result, guards.refer(result), True, "")
    return result


def _created(tracer: Tracer, kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a new object of a class whose constructor has no other effect."""
    return tracer.guards.create(kind(*args, **kwargs))


def _tree(tracer: Tracer, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the leaves of a tree, or a tree, which the call creates."""
    if kwargs or len(args) > 1 + (function is unflatten) or not tracer.simple(args[0]):
        tracer.stop(f"a tree of a {type(args[0]).__name__} is flattened or restored")
    result = function(*args, **kwargs)
    for part in _containers_in(result):
        tracer.guards.create(part)
    return result


def _partial(tracer: Tracer, function: functools.partial[Any]) -> Run:
    """Return what runs in the place of a function with some of its arguments."""
    if not tracer.made(function):
        for name in ("args", "keywords"):
            tracer.guards.see(getattr(function, name), f"{tracer.guards.refer(function)}.{name}", True, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        return call(tracer, function.func, (*function.args, *args), {**function.keywords, **kwargs})

    return run


def _copy(tracer: Tracer, function: Any, x: Any) -> Any:
    """Return a copy of an object of a user's class, such as a configuration; reading the copy reads the object."""
    kind = type(x)
    if isinstance(x, (Tensor, Module)) or tensors_of(getattr(x, "__dict__", x)):
        tracer.stop(f"a {kind.__name__} is copied")
    result = function(x)
    for part in _containers_in(result) if function is copy.deepcopy else (result,):
        tracer.guards.create(part)
    if not (tracer.simple(x) or tracer.made(x)):
        tracer.copied[id(result)] = x
    return result


def _containers_in(x: Any) -> Iterable[Any]:
    """Yield an object and, if it is a container, the containers in it."""
    yield x
    if isinstance(x, (list, tuple, dict)):
        for element in x.values() if isinstance(x, dict) else x:
            if isinstance(element, (list, tuple, dict, set)):
                yield from _containers_in(element)


def _weak_get(tracer: Tracer, owner: Any, key: Any, default: Any = None) -> Any:
    """Return what a weak dictionary has for a key, which is guarded."""
    value, guards = owner.get(key, default), tracer.guards
    guards.see(value, f"{guards.refer(owner)}.get({guards.refer(key)}, {guards.refer(default)})", True, "")
    return value


def _logger_method(tracer: Tracer, function: Any, logger: logging.Logger, args: tuple[Any, ...], kwargs: Any) -> Run:
    """Return what runs in the place of a method of a logger; a message that is shown is shown in each call."""
    name, guards = function.__name__, tracer.guards
    if isinstance(getattr(function, "__func__", None), functools._lru_cache_wrapper):
        return function  # it is shown once
    level = getattr(logging, name.upper(), None)
    if name in ("isEnabledFor", "log") and args:
        level = args[0]
    if type(level) is not int:
        return None
    enabled = logger.isEnabledFor(level)
    guards.require(f"{guards.refer(logger)}.isEnabledFor({level}) is {enabled}")
    return function if name == "isEnabledFor" or not enabled else None


def _context_variable(tracer: Tracer, function: Any, variable: contextvars.ContextVar[Any], *_: Any) -> Run:
    """Return what runs in the place of a method of a context variable: what the call sets, it must reset."""
    name = function.__name__

    def run(*args: Any) -> Any:
        result = function(*args)
        if name == "set":
            tracer.tokens[id(result)] = result
        elif name == "reset":
            tracer.tokens.pop(id(args[0]), None)
        elif not any(token.var is variable for token in tracer.tokens.values()):
            guards = tracer.guards
            guards.see(result, f"{guards.refer(variable)}.get({', '.join(map(guards.refer, args))})", True, "")
        return result

    return run


def _class(tracer: Tracer, kind: type) -> Run:
    policy = policy_of(kind)
    if kind is Tensor:
        return _creating(tracer, kind)
    if policy == TRUSTED:
        guards = tracer.guards
        for base in kind.__mro__:  # (distributions have a default that programs set)
            if "_validate_args" in base.__dict__:
                guards.see(base.__dict__["_validate_args"], f"{guards.refer(base)}._validate_args", True, "")
        guards.member(kind, "__init__")
        return trusting(tracer, kind)
    if policy is None:
        return _own_class(tracer, kind)
    if policy == INLINE and issubclass(kind, Module):
        return functools.partial(_layer, tracer, kind)
    return kind if policy in (*OPS, PURE) else None


def _layer(tracer: Tracer, kind: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Return a new layer, such as a loss, which has no parameters: their values would be those of the first call."""
    layer = kind(*args, **kwargs)
    known = [inner for inner in layer.children() if not tracer.made(inner)]
    own = {id(x) for inner in known for x in (*inner.parameters(), *inner.buffers())}
    if any(id(x) not in own for x in (*layer.parameters(), *layer.buffers())):
        tracer.stop(f"a {kind.__name__} with parameters or buffers is created")
    return tracer.guards.create(layer)


def _own_class(tracer: Tracer, kind: type) -> Run:
    """Return what creates an object of a class that a user or another package has defined."""
    guards = tracer.guards
    if issubclass(kind, BaseException):
        return kind
    if issubclass(kind, Module) and policy_of(static_member(kind, "__init__")) is not None:
        guards.member(kind, "__init__")
        return functools.partial(_layer, tracer, kind)
    of_package = [base for base in kind.__mro__ if policy_of(base) is not None]
    module = issubclass(kind, Module) and all(base in Module.__mro__ for base in of_package)
    if of_package and not module:
        return None
    if static_member(type(kind), "__call__") is not type.__dict__["__call__"]:
        return None
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make"):
        return kind
    if is_dataclass(kind):  # its object holds what it is given
        for name in ("__init__", "__post_init__", "__setattr__"):
            guards.member(kind, name)
        return functools.partial(_created, tracer, kind)
    init = static_member(kind, "__init__")
    if static_member(kind, "__new__") not in _NEW or not (isinstance(init, types.FunctionType) or init in _INIT):
        return None
    for name in ("__init__", "__new__", "__setattr__"):
        guards.member(kind, name)
    if init in _INIT:
        return functools.partial(_created, tracer, kind)

    def run(*args: Any, **kwargs: Any) -> Any:
        x = guards.create(kind.__new__(kind))
        tracer.run(init, x, *args, **kwargs)
        for name in ("_parameters", "_buffers") if module and not tracer.stopped else ():
            if any(value is not None and id(value) not in guards.inputs for value in x.__dict__[name].values()):
                tracer.stop(f"a {kind.__name__} with parameters or buffers is created")
        return x

    return run


def trusting(tracer: Tracer, function: Any) -> Callable[..., Any]:
    """Return a trusted function as one that runs as it is."""

    def run(*args: Any, **kwargs: Any) -> Any:
        for x in [*args, *kwargs.values()]:
            parts = x if type(x) in (list, tuple) else (x,)
            known = all(tracer.recorder.find(tensor._array) is not None for tensor in tensors_of(x))
            if not known or not all(tracer.simple(part) or tracer.trusted(part) for part in parts):
                tracer.stop(f"a distribution is given a {type(x).__name__}")
        before, tracer.recorder.trusts = tracer.recorder.trusts, True
        try:
            return function(*args, **kwargs)
        finally:
            tracer.recorder.trusts = before

    return run


# Functions and methods of tensors -------------------------------------------------------------------


def _public(tracer: Tracer, function: Any, policy: str | None) -> Run:
    """Return what runs in the place of a function of tensors."""
    if policy in (None, *OPS):
        return function
    return _creating(tracer, function) if policy == CREATES else None


def _creating(tracer: Tracer, function: Any) -> Run:
    """Return a function whose result follows from numbers, and from the shapes and dtypes of tensors."""
    name = function.__name__
    code = getattr(inspect.unwrap(function), "__code__", None)
    like = code is not None and code.co_varnames[:1] == ("input",)  # (a method's tensor is no argument)

    def run(*args: Any, **kwargs: Any) -> Any:
        if name == "as_tensor" and args and isinstance(args[0], Tensor):
            return function(*args, **kwargs)
        numbers = [*args[like:], *[value for key, value in kwargs.items() if key != "input"]]
        if not all(_is_number(x) for x in numbers):
            tracer.stop(f"{name} is called with values that are no numbers")
        result = function(*args, **kwargs)
        tracer.recorder.known(result)
        return result

    return run


def _is_number(x: Any) -> bool:
    """Return whether an argument consists of numbers, or is a generator of random ones."""
    return not isinstance(x, dict) and all(isinstance(part, (*PLAIN, Generator, range)) for part in parts_of(x))


def _tensor_method(tracer: Tracer, function: Any, x: Tensor, *_: Any) -> Run:
    if function.__name__ == "requires_grad_" and tracer.made(x) and not x._requires_grad and x._edge is None:
        return function
    if not is_ours(type(x)):
        return None
    return _public(tracer, function, declared(function))


# Optimizers -----------------------------------------------------------------------------------------


def _optimizer_method(
    tracer: Tracer, function: Any, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Run:
    if policy_of(type(optimizer)) != STATEFUL:
        return None
    guards, groups = tracer.guards, tracer.guards.refer(optimizer.param_groups)
    guards.steady = True
    for k, group in enumerate(optimizer.param_groups):
        guards.require(f"not {groups}[{k}].get('differentiable')")
        guards.see(group["params"], f"{groups}[{k}]['params']", True, "param")
    guards.require(f"{guards.refer(optimizer)}.param_groups is {groups}")
    guards.require(f"len({groups}) == {len(optimizer.param_groups)}")
    guards.steady = False
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if function.__name__ == "zero_grad":
        if args or kwargs:  # with `set_to_none=False` gradients become zeros
            for p in params:
                tracer.recorder.meet(p)
        return functools.partial(_zero_grad, tracer, function, params)
    if function.__name__ != "step" or args or kwargs:
        return None
    if any(group.get("differentiable") for group in optimizer.param_groups):
        return None
    if "step" not in optimizer.__dict__:
        guards.require(f"'step' not in {guards.refer(optimizer.__dict__)}")
    for hooks in (*[getattr(optimizer, name) for name in _STEP_HOOKS], _step_pre_hooks, _step_post_hooks):
        guards.require(f"not {guards.refer(hooks)}")
        if hooks:
            return None
    return _stateful(tracer, function, params)


def _stateful(tracer: Tracer, function: Any, written: Iterable[Tensor] = ()) -> Run:
    """Return a step of an optimizer or scheduler, which runs as it is in each call of the program."""

    def run() -> Any:
        recorder = tracer.recorder
        versions = {place: x._version for place, x in recorder.tensors.items()}
        result = recorder.unseen(function)
        for place, x in recorder.tensors.items():  # the step counts its writes itself
            recorder.versions[place] += x._version - versions[place]
        if result is not None:
            tracer.stop("a step returns a value")
        owner = type(tracer.owners.get(id(function)) or function.__self__).__name__
        recorder.state(function, f"{owner}_{function.__name__}".lower(), written)
        return result

    return run


def _zero_grad(tracer: Tracer, function: Any, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> None:
    before = [p._grad for p in params]
    function(*args, **kwargs)
    for p, gradient in zip(params, before, strict=True):
        if p._grad is None:
            tracer.recorder.set_gradient(p)
        elif p._grad is not gradient:
            tracer.stop("zero_grad created gradients")


# Modules --------------------------------------------------------------------------------------------


def _module(tracer: Tracer, module: Module, overridden: bool = True) -> Run:
    """Return what a call of a module runs: its `forward`, without hooks; if `overridden`, its class's `__call__`."""
    kind, own, guards = type(module), module.__dict__, tracer.guards
    if "_orig_mod" in module._modules and "_compiled" in own:  # a compiled module
        inner = module._modules["_orig_mod"]
        guards.require(f"{guards.refer(module._modules)}.get('_orig_mod') is {guards.refer(inner)}")
        return runner_of(tracer, inner, (), {})
    own_call = kind.__call__  # (a graph module's runs `forward`)
    if overridden and own_call is not Module.__call__ and declared(own_call) != INLINE:
        guards.member(kind, "__call__")
        return functools.partial(tracer.run, own_call, module) if policy_of(own_call) is None else None
    for hooks in (*[own[name] for name in _MODULE_HOOKS], *_GLOBAL_HOOKS):
        if hooks:
            tracer.stop("a module has hooks, or there are global ones")
            return module
        guards.require(f"not {guards.refer(hooks)}")
    if "forward" in own:
        guards.see(own["forward"], f"{guards.refer(own)}.get('forward')", True, "")
        return runner_of(tracer, own["forward"], (), {})
    guards.require(f"'forward' not in {guards.refer(own)}")
    guards.member(kind, "forward")
    forward = original(kind.forward) or kind.forward
    if not isinstance(forward, types.FunctionType):
        return None
    return functools.partial(tracer.run, forward, module)


def has_hooks(module: Module) -> bool:
    """Return whether a call of a module runs hooks."""
    return any([*[module.__dict__[name] for name in _MODULE_HOOKS], *_GLOBAL_HOOKS])


def _module_method(tracer: Tracer, function: Any, module: Module, args: tuple[Any, ...], kwargs: Any) -> Run:
    name, run = function.__name__, getattr(function, "__func__", None)
    if run is None:  # one that `object` has, such as `__hash__`
        return function if name in ("__hash__", "__eq__", "__ne__") else None
    if run in (Module.train, Module.eval):
        mode = bool(args[0]) if args else name == "train"
        for inner in module.modules():
            if inner.__dict__.get("training") is not mode:
                tracer.stop("a module's training mode is changed")
                break
            tracer.guards.require(f"{tracer.guards.refer(inner.__dict__)}.get('training') is {mode}")
        return function
    if run is Module.__init__ and tracer.made(module):
        return function
    if run is Module.__call__:  # by `super()`
        return _module(tracer, module, overridden=False)
    if run is Module.zero_grad and not args:
        params = list(module.parameters())
        _see_tree(tracer, module)
        return functools.partial(_zero_grad, tracer, function, params)
    if name in _TREE_METHODS and run is getattr(Module, name):
        _see_tree(tracer, module)
        return lambda *args, **kwargs: iter(list(function(*args, **kwargs)))
    return functools.partial(tracer.run, run, module)


def _see_tree(tracer: Tracer, module: Module) -> None:
    """Guard which modules, parameters and buffers a module has, and those in it."""
    guards = tracer.guards
    guards.steady = True
    for path, inner in module.named_modules():
        tracer.paths[id(inner)] = path
        for kind in ("_parameters", "_buffers", "_modules"):
            own = inner.__dict__[kind]
            guards.require(f"len({guards.refer(own)}) == {len(own)}")
            for key, value in own.items():
                guards.see(value, f"{guards.refer(own)}[{key!r}]", True, tracer.path(inner, key))
    guards.steady = False


#: The rules for methods, by the class of their object; and for functions in whose place another one runs.
_METHODS: dict[type, Callable[..., Run]] = {
    Tensor: _tensor_method, Optimizer: _optimizer_method, Module: _module_method, logging.Logger: _logger_method,
    contextvars.ContextVar: _context_variable, Generator: lambda *_: None,
}  # fmt: skip
_IN_PLACE_OF: dict[Any, Callable[..., Any]] = {
    functools.partial: _created, functools.wraps: _created, flatten: _tree, unflatten: _tree, copy.copy: _copy,
    copy.deepcopy: _copy,
}  # fmt: skip

__all__ = ["call", "has_hooks", "original", "runner_of", "trusting"]
