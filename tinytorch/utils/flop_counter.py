"""`torch.utils.flop_counter`: the floating-point operations of matrix products and convolutions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tinytorch import ops
from tinytorch.autograd.profiler import COUNTED
from tinytorch.core.declaration import Op
from tinytorch.inspect.calls import Call, Listener
from tinytorch.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode"]


class FlopCounterMode(Listener):
    """A context manager that counts floating-point operations, forward and backward, by module and operator.

    Args:
        mods: not needed.
        depth: how many levels of modules the table shows; None for all.
        display: whether the table is printed at the end.

    Example:
        >>> from tinytorch.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode() as counter:
        ...     y = torch.nn.Linear(3, 4)(torch.ones(2, 3))
        Module      FLOP   % Total
        Global    48.000   100.00%
        Linear    48.000   100.00%
        >>> counter.get_flop_counts()["Linear"]
        {<OpOverloadPacket(op='aten.addmm')>: 48}
    """

    follows = True

    def __init__(
        self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        if custom_mapping:
            raise NotImplementedError(
                "FlopCounterMode: tinytorch counts with its own formulas, and takes no custom_mapping"
            )
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table())

    def listen(self, call: Call) -> Iterator[None]:
        """Count the operations of a call."""
        yield
        op = call.op
        name, convolves = call.name, isinstance(op, Op) and op.node_class.__name__.startswith("Convolution")
        if isinstance(op, Op) and (name in COUNTED or convolves):
            count = 2 * op.products(call.out, call.args, call.kwargs)
            if name == "linear":
                name = "mm" if call.values[2] is None else "addmm"
            elif convolves:
                name = "convolution_backward" if self.mod_tracker.is_bw else "convolution"
            for path in sorted(self.mod_tracker.parents):
                self.flop_counts[path][getattr(ops.aten, name)] += count

    def get_total_flops(self) -> int:
        """Return how many operations were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the counts by the paths of modules, "Global" being all, and by operators."""
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts of modules, to a depth, as text."""
        depth, total = depth or self.depth, self.get_total_flops()
        power = max(0, min(4, (len(str(total)) - 2) // 3))
        rows = [("Module", "FLOP", "% Total")]
        for path in sorted(self.flop_counts, key=lambda path: (path != "Global", path)):
            if depth is None or path.count(".") < depth:
                count = sum(self.flop_counts[path].values())
                share = f"{count / total:.2%}" if total else "0%"
                rows.append((" " * path.count(".") + path, f"{count / 1000**power:.3f}{' KMBT'[power].strip()}", share))
        width = max(len(row[0]) for row in rows)
        return "\n".join(f"{path:{width}}  {count:>8}  {share:>8}" for path, count, share in rows)
