"""`torch.fx.passes.infra`: passes, which change graph modules, and their order."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from tinytorch.fx.graph_module import GraphModule
from tinytorch.nn.modules.module import Module

__all__ = ["PassBase", "PassManager", "PassResult", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


class _Result(NamedTuple):
    graph_module: GraphModule
    modified: bool


class PassResult(_Result):
    """The result of a pass: the graph module, and whether it was changed."""

    __slots__ = ()

    def __new__(cls, graph_module: GraphModule, modified: bool) -> PassResult:
        """Return the result."""
        return super().__new__(cls, graph_module, modified)


class PassBase(abc.ABC):
    """A pass: subclasses implement `call`, and may check the graph before and after it.

    Example:
        >>> from tinytorch.fx.passes.infra.pass_base import PassBase, PassResult
        >>> class Clean(PassBase):
        ...     def call(self, graph_module):
        ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
        >>> Clean()(torch.fx.symbolic_trace(lambda x: x + 1)).modified
        False
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Run the checks and the pass; return its result."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Change the graph module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the graph module before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the graph module after the pass."""


def pass_result_wrapper(fn: Any) -> Any:
    """Return a pass that returns a `PassResult`, of a function that returns a module or None.

    Args:
        fn: the function; it counts as having changed the module.
    """
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm: Module) -> PassResult | None:
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        if result is None or isinstance(result, Module):
            return PassResult(gm if result is None else result, True)  # type: ignore[arg-type]
        return None

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _name_of(each: Pass) -> str:
    name: str = each.__name__ if inspect.isfunction(each) else type(each).__name__
    return name


def _validate_pass_schedule_constraint(constraint: Constraint, passes: list[Pass]) -> None:
    """Raise RuntimeError if two of the passes are not in the order that a constraint wants."""
    for i, earlier in enumerate(passes):
        for j, later in enumerate(passes[i + 1 :]):
            if not constraint(earlier, later):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {earlier} before {later} but found {earlier} at "
                    f"index {i} and {later} at index {j} in pass list."
                )


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """Return passes in an order that all constraints allow."""
    if not constraints:
        return passes
    later: dict[Pass, list[Pass]] = {each: [] for each in passes}
    missing = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            for constraint in constraints if a != b else ():
                if not constraint(a, b):
                    later[b].append(a)
                    missing[a] += 1
    found = [each for each in passes if not missing[each]]
    for each in found:  # (which grows)
        for after in later[each]:
            missing[after] -= 1
            if not missing[after]:
                found.append(after)
    circle = [each for each in missing if missing[each]]
    if circle:
        raise RuntimeError(f"Circular dependency detected within the following passes: {circle}")
    return found


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """Return the constraint that one pass runs before another."""

    def depends_on(a: Pass, b: Pass) -> bool:
        return a != that or b != this

    return depends_on


class PassManager:
    """Runs passes on a graph module, in an order that constraints allow.

    Args:
        passes: functions, or `PassBase`s, that return a `PassResult`.
        constraints: functions of two passes that return whether the first may run before the second.
        steps: how often all passes run at most; they stop when they change nothing.
        run_checks_after_each_pass: whether `check` runs after each pass.
        suppress_check_failures: has no effect.

    Example:
        >>> from tinytorch.fx.passes.dialect.common.cse_pass import CSEPass
        >>> from tinytorch.fx.passes.infra.pass_manager import PassManager
        >>> PassManager([CSEPass()])(torch.fx.symbolic_trace(lambda x: torch.sin(x) + torch.sin(x))).modified
        True
    """

    _validated = False
    steps = 1

    def __init__(
        self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None, steps: int | None = None,
        run_checks_after_each_pass: bool = False, suppress_check_failures: bool = False,
    ) -> None:  # fmt: skip
        self.passes, self.constraints = passes or [], constraints or []
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass as the last."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order of the passes violates a constraint."""
        for constraint in () if self._validated else self.constraints:
            _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes into an order that the constraints allow; RuntimeError if there is none."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], Any]) -> None:
        """Let a function check the module, at the start and after passes.

        Raises:
            TypeError: the function has not one parameter.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.__dict__["check"] = check

    def check(self, module: Module) -> Any:
        """Check the module: `add_checks` replaces this function, which accepts all."""

    def __call__(self, module: Any) -> PassResult:
        """Run the passes.

        Args:
            module: the graph module.

        Returns:
            The last pass's module, and whether a pass has changed it.

        Raises:
            Exception: a pass failed, which the message names with those before it.
        """
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed_once = False
        for _ in range(self.steps):
            changed = False
            for number, each in enumerate(self.passes):
                try:
                    module, modified = self._run(each, module)
                except Exception as error:
                    before = [_name_of(done) for done in self.passes[:number]]
                    raise Exception(
                        f"An error occurred when running the '{_name_of(each)}' pass after the following passes: "
                        f"{before}"
                    ) from error
                changed = changed or modified
            changed_once = changed_once or changed
            if not changed:
                break
        return PassResult(module, changed_once)

    def _run(self, each: Pass, module: Any) -> tuple[Any, bool]:
        result = each(module)
        if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name_of(each)} should be type PassResult.Please wrap it with "
                "pass_result_wrapper()"
            )
        made = result.graph_module
        if isinstance(made, GraphModule):
            made.recompile()
        if self.run_checks_after_each_pass:
            self.check(made)
        return made, result.modified
