"""What a traced program is compared by, and modules that are traced: for either library."""

from __future__ import annotations

from typing import Any


def shown(module: Any) -> list[str]:
    """Return the graph, the names of its nodes and the code of a graph module."""
    return [str(module.graph), " ".join([node.name for node in module.graph.nodes]), module.code]


def traced(t: Any, program: Any, *inputs: Any, **options: Any) -> list[Any]:
    """Trace a program; return its texts, and its result with inputs (if there are some)."""
    module = t.fx.symbolic_trace(program, **options)
    module.graph.lint()
    return [*shown(module), module(*inputs) if inputs else None]


def net(t: Any) -> Any:
    """Return a module with layers, containers, parameters, a buffer and a constant."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.linear(x) * self.weight + self.shift
        return self.layers(y - self.constant).sum(dim=-1)

    made = model(t, forward, "Net", linear=t.nn.Linear(4, 4), weight=t.nn.Parameter(t.ones(4)))
    made.register_buffer("shift", t.full((4,), 0.5))
    made.constant = t.tensor([1.0, 2.0, 3.0, 4.0])
    made.layers = t.nn.Sequential(t.nn.Linear(4, 3), t.nn.ReLU())
    return made


def ramp(t: Any, *shape: int) -> Any:
    """Return a tensor of numbers from -1 to 1."""
    count = 1
    for size in shape:
        count *= size
    return t.linspace(-1, 1, count).view(*shape)


def named(*programs: Any, **others: Any) -> dict[str, Any]:
    """Return programs by their names."""
    return {each.__name__: each for each in programs} | others


def model(t: Any, forward: Any, name: str = "Model", **parts: Any) -> Any:
    """Return a module of a class with a name, which has parts and a `forward`."""
    made = type(name, (t.nn.Module,), {"forward": forward})()
    for key, part in parts.items():
        setattr(made, key, part)
    return made
