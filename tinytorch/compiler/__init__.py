"""`torch.compile` and `torch.compiler`: functions that run as recorded programs of NumPy calls.

The first call of a function is traced: `tracing` runs its source, rewritten by `sources` and `rewriting`, so that
every read is guarded (`guards`) and every call runs by a rule (`calls`, `policy`), while `recorder` notes the kernels
that run and the arrays that they read. `program` generates Python source from that, with the help of `lowering`,
`fusing` and `recomputing`, or of `inference` and `arena`. `compiled` runs it, through `entry` and `backward`, where
the guards hold. For tensors of any size a call is written down as calls of public functions instead (`trace`), of
which `general` makes a program. A function that cannot be compiled as a whole is split into parts (`graph_breaks`).
`saved` writes a program as a module that needs NumPy alone.

`cache` keeps rewritten code between processes, `liveness` says which variables are read later, `explained` times the
lines of a program, and `batches` makes a saved program one for any batch size.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sized
from typing import Any, cast

from tinytorch.compiler import compiled as _compiled
from tinytorch.compiler.compiled import Compiled, CompileError, stance
from tinytorch.core.mode import traced_as
from tinytorch.nn.modules.module import Module

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance",
]  # fmt: skip

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "inference")
_BACKENDS = ("cudagraphs", "inductor", "onnxrt", "openxla", "tvm")
_PLAIN = ("eager", "eager_noexcept", "aot_eager", "aot_eager_decomp_partition", "aot_ts", "ts")  # they compile nothing


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
    mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """Return a function, or a module, that does the same as `model` by a program of NumPy calls where that is possible.

    A whole training step can be compiled: forward, `backward`, the optimizer's `step` and `zero_grad`. The results are
    the same, bit for bit. Each signature (shapes, dtypes, layouts, and everything that the function reads) has its own
    program; the third shape gets one for tensors of any size. A statement that cannot be compiled, for instance since
    it reads a tensor's value, runs as Python, and the statements before and after it as programs (docs/compile.md,
    "Graph breaks").

    Args:
        model: a function or a module; without one, a decorator is returned.
        fullgraph: raise an error where a statement cannot be compiled, instead of running it as Python.
        backend: "inductor"; with a function, or PyTorch's backends that compile nothing ("eager"), nothing is compiled.
        dynamic: make programs for tensors of any size (True), or never (False); by default for the third size that
            a function is called with.
        mode: "inference" makes programs of calls without gradients (in `no_grad`, of a module in evaluation mode) that
            are faster, and whose results differ by rounding: batch norms become part of the weights, which are packed
            once, and again after one of them has been written to; images are stored with their channels last. Any
            other call, and any call in the other modes, which are PyTorch's and have no effect, is compiled as usual.
        options, name, isolate_recompiles, shapes_spec: have no effect.
        disable: compile nothing.
        recompile_limit: how many programs are kept, 8 by default; then the least used one makes room.

    `TINYTORCH_COMPILE=0` in the environment turns compiling off; `TINYTORCH_COMPILE_CACHE` is a folder that keeps what
    a first call has compiled for the next process.

    Raises:
        RuntimeError: both `mode` and `options` are given, or the mode or backend is not known; in a call, with
            `fullgraph`, why it cannot be compiled.
        AssertionError: `model` cannot be called.

    Example:
        >>> @torch.compile
        ... def f(x):
        ...     return x.sin() * 2 + 1
        >>> f(torch.zeros(2)), f(torch.zeros(2))
        (tensor([1., 1.]), tensor([1., 1.]))
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if isinstance(backend, str) and backend not in (*_BACKENDS, *_PLAIN):
        raise CompileError(
            f"Invalid backend: {backend!r}, see `torch.compiler.list_backends()` for available backends."
        )
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable,
            recompile_limit=recompile_limit,
        )  # fmt: skip
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    plain = disable or (backend not in _BACKENDS) or os.environ.get("TINYTORCH_COMPILE") == "0"
    compiled = None if plain else Compiled(model, fullgraph, recompile_limit, dynamic, mode == "inference")
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled or model


class OptimizedModule(Module):
    """What `compile` returns for a module: it calls the module, and has its attributes, parameters and mode.

    As in PyTorch the module is `_orig_mod`, and names in `state_dict` begin with that.

    Example:
        >>> compiled = torch.compile(torch.nn.Linear(2, 3))
        >>> list(compiled.state_dict()), compiled.in_features
        (['_orig_mod.weight', '_orig_mod.bias'], 2)
    """

    _orig_mod: Module
    _compiled: Any = None

    def __init__(self, mod: Module, compiled: Compiled | None = None) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__["_compiled"] = compiled

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module does."""
        return (self._compiled or self._orig_mod)(*args, **kwargs)

    @property
    def source(self) -> str:
        """The text of the latest program."""
        return self._compiled.source if self._compiled else ""

    def explain(self, guards: bool = False) -> str:
        """Return what `Compiled.explain` does: the calls, the programs, and why other calls were not compiled."""
        return self._compiled.explain(guards) if self._compiled else "compiling is off"

    def profile(self, *args: Any, **kwargs: Any) -> str:
        """Call the module, and return the lines of its program that ran, each with its time."""
        return self._compiled.profile(*args, **kwargs) if self._compiled else ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the latest program as a module that needs NumPy alone, as `Compiled.save` does.

        Raises:
            RuntimeError: there is no program, or it cannot be written.
            ValueError: the path does not end in `.py`.
        """
        if not self._compiled:
            raise CompileError("there is no program to be saved: compiling is off")
        self._compiled.save(path)

    def __reduce__(self) -> tuple[Any, ...]:
        mode = "inference" if self._compiled is not None and self._compiled.infers else None
        return functools.partial(compile, mode=mode), (self._orig_mod,)  # programs are not copied or pickled

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._modules["_orig_mod"].training  # type: ignore[union-attr]

    @training.setter
    def training(self, value: bool) -> None:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is not None:  # the base class sets it first
            module.training = value

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod" or "_orig_mod" not in modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(cast(Sized, self._orig_mod))


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function, which is not compiled from now on, or a decorator that does so.

    Example:
        >>> @torch.compiler.disable
        ... def f(x):
        ...     return x * 2
        >>> f(torch.ones(1))
        tensor([2.])
    """
    if fn is None:
        return lambda fn: disable(fn, recursive, reason=reason)
    _compiled.disabled.add(fn)
    return fn


_disable_dynamo = disable


def allow_in_graph(fn: Any) -> Any:
    """Return the function, or the sequence of functions, itself.

    Example:
        >>> f = torch.compiler.allow_in_graph(torch.exp)
        >>> f(torch.zeros(1))
        tensor([1.])
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return the function itself.

    Example:
        >>> @torch.compiler.assume_constant_result
        ... def sizes():
        ...     return 2, 3
        >>> sizes()
        (2, 3)
    """
    return fn


@traced_as("pure")
def is_compiling() -> bool:
    """Return whether a function is being traced in this thread.

    Example:
        >>> torch.compiler.is_compiling()
        False
    """
    return _compiled.recording.count > 0


is_dynamo_compiling = is_compiling


@traced_as("pure")
def is_exporting() -> bool:
    """Return False: there is no export.

    Example:
        >>> torch.compiler.is_exporting()
        False
    """
    return False


def reset() -> None:
    """Drop all programs.

    Example:
        >>> torch.compiler.reset()
    """
    _compiled.reset()


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs.

    Example:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of PyTorch's compilers: "inductor" stands for the one here.

    Example:
        >>> torch.compiler.list_backends()
        ['cudagraphs', 'inductor', 'onnxrt', 'openxla', 'tvm']
    """
    return list(_BACKENDS)


class set_stance:
    """Set how compiled functions run: "default", or without programs ("force_eager"). Also a context manager.

    Args:
        stance: "default", "force_eager", "eager_on_recompile" or "fail_on_recompile".

    Raises:
        RuntimeError: the stance is not known.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     y = torch.compile(torch.sin)(torch.zeros(1))
    """

    def __init__(
        self, stance_: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance_ not in ("default", "force_eager", "eager_on_recompile", "eager_then_compile", "fail_on_recompile"):
            raise RuntimeError(f"invalid torch.compile stance {stance_!r}")
        self._stance, self._before = stance_, stance.name
        stance.name = stance_

    def __enter__(self) -> set_stance:
        stance.name = self._stance
        return self

    def __exit__(self, *exc: object) -> None:
        stance.name = self._before

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the stance set while it runs."""
        stance.name = self._before

        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return fn(*args, **kwargs)

        return run
