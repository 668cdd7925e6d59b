"""Gradients between steps: not cleared, cleared at the wrong place, not computed, not used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import StepAfterBackward, ZeroAfterStep, ZeroGradients, leaves
from tinytorch.inspect.doctor.place import here
from tinytorch.inspect.doctor.source import in_one_loop
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of

__all__ = ["GradientsOfOptimizers", "GradientsOfTensors", "without_backward"]


def _start(p: Any) -> Any:
    """Return the first elements of a tensor's gradient; None if it has none."""
    array = array_of(p._grad)
    if array is None or not array.size:
        return None
    return array.reshape(-1)[:256] if array.flags.c_contiguous else array.flat[:256]


def _first(p: Any) -> bytes | None:
    """Return the first elements of a tensor's gradient as bytes; None if it has none or they are zero."""
    part = _start(p)
    if part is None:
        return None
    data: bytes = part.tobytes()
    return data if data.strip(b"\0\x80") else None  # (0x80 begins the zero with a sign)


def _which(p: Any) -> Any:
    """Return what identifies a tensor's gradient until something replaces it or writes to it; None if it has none."""
    g = p._grad
    return None if g is None else (id(g), g._version)


def _is_finite(p: Any) -> bool:
    """Return whether the first elements of a tensor's gradient are finite."""
    part = _start(p)
    return part is None or bool(np.isfinite(part).all())


def without_backward(info: Any, steps: int) -> Suspicion:
    """Return the suspicion that an optimizer steps without gradients."""
    still = all(p._grad is None or ((g := array_of(p._grad)) is not None and not g.any()) for p in info.params)
    return Suspicion(
        "step-without-backward",
        f"{type(info.optimizer).__name__} took {steps} steps without a backward pass to its parameters since the step "
        "before: they get no gradients of the loss.",
        info.step_place,
        "loss.backward()\noptimizer.step()",
        certain=True,
        proven=f"after {steps} steps no parameter has a gradient" if still else "",
        rank=1,
    )


class _State:
    """What is known of the gradients of an optimizer, judged by a few of its parameters."""

    def __init__(self, info: Any) -> None:
        params = [p for p in info.params if p.requires_grad] or info.params
        self.params = [params[k] for k in sorted({0, len(params) // 2, len(params) - 1})]
        self.used: list[Any] = [None] * len(self.params)  # which gradients the last step has used (`_which`)
        # Before the running backward pass: those that it may add to, and whether there were any.
        self.held: list[Any] = [None] * len(self.params)
        self.had = [False] * len(self.params)
        self.stale = [False] * len(self.params)  # whether a backward pass has added to gradients used before
        self.filled = False  # whether a backward pass since the last step gave gradients
        self.cleared_at: Any = None  # the line that cleared them since
        self.dropped_at: Any = None
        self.steps = self.with_stale = self.without = self.cleared = self.frozen = 0
        self.filled_times = self.dropped = 0
        self.backwards = 0  # those since the last step

    def unchanged(self, k: int) -> bytes | None:
        """Return the first elements of a gradient if it is still the one that the last step used, and not zero."""
        used, p = self.used[k], self.params[k]
        return _first(p) if used is not None and used == _which(p) else None


class GradientsOfOptimizers(Check):
    """`zero_grad` and `backward` before each step of an optimizer."""

    causes = ("zero_grad-missing", "zero_grad-misplaced", "step-without-backward", "step-missing")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.states: dict[int, _State] = {}
        self.backward_place: Any = None
        self.forwards = 0  # calls of models, for a graph, since the last step
        self.of_inputs = False  # whether the last input of a model requires a gradient, as for an attack

    def state(self, info: Any) -> _State:
        """Return what is known of an optimizer's gradients."""
        known = self.states.get(id(info))
        if known is None:
            known = self.states[id(info)] = _State(info)
        return known

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        self.of_inputs = any(each.requires_grad for each in tensors_of(args))

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        self.forwards += local.state.grad

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.backward_place = place
        for info in self.watch.optimizers.values():
            state = self.state(info)
            for k, p in enumerate(state.params):
                if state.stale[k] and _first(p) is None:
                    state.stale[k] = False
                state.held[k], state.had[k] = state.unchanged(k), p._grad is not None

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        for info in self.watch.optimizers.values():
            state = self.state(info)
            state.backwards += 1
            filled = False
            for k, p in enumerate(state.params):
                if not state.had[k]:
                    filled |= p._grad is not None
                    continue
                held, now = state.held[k], _first(p)
                filled |= now is not None
                if held is not None and now is not None and (held != now or not _is_finite(p)):
                    state.stale[k] = True
            if filled:
                if not state.filled:
                    state.filled_times += 1
                state.filled, state.cleared_at = True, None

    def zeroed(self, target: Any) -> None:  # noqa: D102
        for info in self.watch.optimizers.values():
            state = self.state(info)
            owned = target is info.optimizer or (
                hasattr(target, "parameters") and any(p is state.params[0] for p in target.parameters())
            )
            if owned:
                state.stale = [False] * len(state.params)
                if state.filled and state.backwards:
                    state.cleared_at = here()
                    if info.steps == 0 or info.last_backward < self.watch.backwards:
                        state.dropped += not self.of_inputs
                        state.dropped_at = state.cleared_at
                state.filled = False

    def step_begins(self, info: Any) -> None:  # noqa: D102
        state = self.state(info)
        state.steps += 1
        if not any(map(_first, state.params)):
            if info.closure:
                pass
            elif state.cleared_at is not None:
                state.cleared += 1
            elif not state.backwards and self.forwards:
                state.without += 1
            elif state.backwards:
                info.idle += all(p._grad is None for p in info.params)
                state.frozen += not any(p.requires_grad for p in info.params)
        elif any(stale and _first(p) for stale, p in zip(state.stale, state.params, strict=True)):
            if all(map(_is_finite, state.params)):
                state.with_stale += 1
            else:
                state.steps -= 1  # (gradients that are not finite cannot be compared)
        elif (
            not state.backwards
            and self.forwards
            and not info.closure
            and any(map(state.unchanged, range(len(state.params))))
        ):
            state.without += 1

    def step_ends(self, info: Any) -> None:  # noqa: D102
        state = self.state(info)
        self.forwards = 0
        if info.closure and state.backwards and state.cleared_at is not None and not any(map(_first, state.params)):
            state.cleared += 1  # (the closure cleared what it had computed)
        state.used = [_which(p) for p in state.params]
        state.stale = [False] * len(state.params)
        state.filled, state.cleared_at, state.backwards = False, None, 0

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for number, info in enumerate(self.watch.optimizers.values()):
            state = self.states.get(id(info))
            if state is None:
                continue
            name = type(info.optimizer).__name__
            if state.steps >= 3 and state.with_stale >= 0.85 * (state.steps - 1):
                yield Suspicion(
                    "zero_grad-missing",
                    f"{state.with_stale} of {state.steps} steps of {name} used the gradients of earlier steps again: "
                    "each backward pass added to them, since nothing cleared them.",
                    self.backward_place,
                    "optimizer.zero_grad()\nloss.backward()",
                    trials=[Trial(ZeroGradients(), "learns_better", says="with zero_grad() before each backward pass")],
                    certain=True,
                    rank=1,
                )
            if state.steps >= 2 and state.cleared >= 0.85 * state.steps:
                yield Suspicion(
                    "zero_grad-misplaced",
                    f"In {state.cleared} of {state.steps} steps, {name} found no gradients: they were cleared between "
                    "backward() and step().",
                    state.dropped_at,
                    "optimizer.zero_grad()\nloss.backward()\noptimizer.step()",
                    trials=[Trial(ZeroAfterStep(), "learns_better",
                                  says="with the gradients cleared after step() instead")],
                    certain=True,
                    rank=1,
                )  # fmt: skip
            elif (
                state.steps >= 2
                and state.dropped > max(0.7 * state.filled_times, 2 * state.steps)
                and not info.closure  # (which clears them for each evaluation)
                and in_one_loop(self.backward_place, info.step_place)
            ):
                yield Suspicion(
                    "zero_grad-misplaced",
                    f"The gradients of {state.dropped} of {state.filled_times} backward passes were cleared before one "
                    f"of the {state.steps} steps of {name} had used them.",
                    state.dropped_at,
                    "loss.backward()  # several times\noptimizer.step()\noptimizer.zero_grad()  # after the step alone",
                    trials=[Trial(ZeroAfterStep(), "learns_better",
                                  says="with the gradients cleared after step() alone")],
                    certain=True,
                    rank=1,
                )  # fmt: skip
            elif state.steps >= 3 and state.frozen >= 0.85 * state.steps:
                yield Suspicion(
                    "frozen-by-mistake",
                    f"{name} took {state.frozen} of {state.steps} steps while all its parameters had "
                    "requires_grad=False, so that they changed nothing.",
                    next((place for p in info.params if (place := self.watch.frozen_at.get(id(p)))), info.place),
                    "for p in model.parameters():\n    p.requires_grad_(True)  # when they are to be trained again",
                    certain=True,
                    proven=f"in {state.frozen} steps no parameter had a gradient, since none requires one",
                    rank=1,
                )
            elif state.steps >= 3 and state.without >= 0.85 * state.steps:
                yield without_backward(info, state.without)
            elif (
                info.steps <= 0.1 * state.filled_times
                and state.filled_times >= 5
                and self._only(info)
                and not info.closure
            ):
                often = f"{info.steps} steps" if info.steps else "no step"
                yield Suspicion(
                    "step-missing",
                    f"{self.watch.backwards} backward passes gave gradients, but {name} took {often}: the parameters "
                    "stay as they are.",
                    info.step_place or self.backward_place,
                    "loss.backward()\noptimizer.step()",
                    trials=[Trial(StepAfterBackward(number), "fits", says="with a step after each backward pass")],
                    certain=True,
                    rank=1,
                )

    def _only(self, info: Any) -> bool:
        """Return whether no other optimizer steps the same parameters."""
        return not any(
            each.steps and each.ids & info.ids for each in self.watch.optimizers.values() if each is not info
        )


class GradientsOfTensors(Check):
    """The same for programs that change tensors themselves: `w -= lr * w.grad`."""

    causes = ("zero_grad-missing", "step-missing")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, list[Any]] = {}  # by id: the tensor, its value and gradient after the last backward pass
        self.stale = self.fresh = self.still = 0
        self.place: Any = None
        self.before: dict[int, bool] = {}

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.place = self.place or place
        self.before.clear()
        for key, (p, value, gradient) in self.seen.items():
            changed = not np.array_equal(p._array.reshape(-1)[:64], value)
            now = _first(p)
            if now is None or now != gradient:
                self.before[key] = False
                self.fresh += 1
            elif changed:
                self.before[key] = True
            else:
                self.still += 1

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        watch = self.watch
        if watch.backwards <= 2 and isinstance(loss, Tensor):
            owned = set().union(*[info.ids for info in watch.optimizers.values()]) if watch.optimizers else set()
            for p in [] if watch.optimizers else leaves(loss)[:8]:
                if id(p) not in owned and id(p) not in self.seen:
                    self.seen[id(p)] = [p, None, None]
        for key, entry in self.seen.items():
            p, _, gradient = entry
            now = _first(p)
            if self.before.get(key):
                self.stale += now is not None and gradient is not None and now != gradient
            entry[1], entry[2] = p._array.reshape(-1)[:64].copy(), now
        if watch.optimizers:
            self.seen.clear()

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        if self.stale >= 3 and self.stale > 5 * self.fresh:
            yield Suspicion(
                "zero_grad-missing",
                f"The gradients of tensors that the program changes itself were not cleared: {self.stale} backward "
                "passes added to gradients that had been used.",
                self.place,
                "w.grad.zero_()  # or w.grad = None, after the update",
                trials=[Trial(ZeroGradients(manual=True), "learns_better", says="with cleared gradients")],
                certain=True,
                rank=1,
            )
