"""`torch.fx._lazy_graph_module`: graph modules that generate their code when it is first needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tinytorch.fx._codegen import PythonCode
from tinytorch.fx.graph_module import (
    GraphModule,
    _format_import_block,
    _make_graph_module,
    _Preferred,
    reduce_graph_module,
)

__all__ = ["_LazyGraphModule", "_force_skip_lazy_graph_module", "_make_graph_module", "_use_lazy_graph_module"]


class _Skipping:
    """Whether `_use_lazy_graph_module` has no effect."""

    forced = False


@contextlib.contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """Let `_use_lazy_graph_module` have no effect in a `with` block."""
    before = _Skipping.forced
    _Skipping.forced = True
    try:
        yield
    finally:
        _Skipping.forced = before


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Let traces and passes return lazy graph modules in a `with` block, or not."""
    before = _Preferred.cls
    _Preferred.cls = _LazyGraphModule if should_use and not _Skipping.forced else GraphModule
    try:
        yield
    finally:
        _Preferred.cls = before


def _get_graph_module_cls() -> type[GraphModule]:
    """Return the class of the graph modules that traces and passes return."""
    return _Preferred.cls


class _LazyGraphModule(GraphModule):
    """A graph module whose `recompile` only notes that the code is out of date; it is generated on first use.

    Example:
        >>> from tinytorch.fx._lazy_graph_module import _use_lazy_graph_module
        >>> with _use_lazy_graph_module(True):
        ...     module = torch.fx.symbolic_trace(lambda x: x + 1)
        >>> module._needs_recompile(), module(torch.ones(1)), module._needs_recompile()
        (True, tensor([2.]), False)
    """

    forward: Any

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> _LazyGraphModule:
        """Return a lazy module with the graph of another."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Generate the code of a module now, if it is lazy."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    @classmethod
    def _needs_recompile(cls) -> bool:
        return cls.forward is cls._lazy_forward

    def real_recompile(self) -> None:
        """Generate the code, if it is out of date."""
        if self._needs_recompile():
            self._real_recompile()

    def _real_recompile(self) -> PythonCode:
        return super().recompile()

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()  # (a saved bound method comes here each time)
        return self(*args, **kwargs)

    forward = _lazy_forward

    @classmethod
    def recompile(cls) -> None:  # type: ignore[override]
        """Note that the code is out of date."""
        cls.forward = cls._lazy_forward

    @property
    def code(self) -> str:
        """The generated code."""
        self.real_recompile()
        return super().code

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        python_code = self._real_recompile()
        body = {key: value for key, value in self.__dict__.items() if key != "_graph"}
        return reduce_graph_module, (body, _format_import_block(python_code.globals))
