"""Nodes, edges, what they save, hooks on several gradients: programs run by both libraries."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a program in the list."""
    PROGRAMS.append(function)
    return function


def leaf(torch: Any) -> Any:
    return torch.tensor([1.0, 2.0], requires_grad=True)


def attempt(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or the name of its error."""
    try:
        return call()
    except Exception as error:  # every class: it is compared
        return type(error).__name__


# Nodes ------------------------------------------------------------------------------------------------


@program
def nodes_are_nodes(torch: Any) -> Any:
    x = leaf(torch)
    y = x.exp()
    accumulator = y.grad_fn.next_functions[0][0]

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    made = F.apply(x)
    return [
        (isinstance(node, torch.autograd.graph.Node), node.name(), type(node).__name__, node.requires_grad)
        for node in (y.grad_fn, accumulator, made.grad_fn)
    ]


@program
def notes_on_a_node(torch: Any) -> Any:
    y = leaf(torch).exp()
    y.grad_fn.metadata["mine"] = 3
    return y.grad_fn.metadata


@program
def numbers_of_nodes(torch: Any) -> Any:
    x = leaf(torch)
    y = x * 2
    z = y + 1
    accumulator = y.grad_fn.next_functions[0][0]
    return z.grad_fn._sequence_nr() - y.grad_fn._sequence_nr(), accumulator._sequence_nr()


@program
def metadata_of_what_a_node_gets(torch: Any) -> Any:
    x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    found = []
    for tensor in (x * 2, x.split(2)[0], x.sum()):
        for each in tensor.grad_fn._input_metadata:
            found.append((each.shape, str(each.dtype), str(each.device), each.is_nested_tensor))
    return found


@program
def calling_a_node(torch: Any) -> Any:
    x = leaf(torch)
    y = x * 3
    (x * 1).grad_fn.next_functions[0][0](torch.ones(2))
    g = torch.ones(2)
    return [
        y.grad_fn(g),
        x.exp().grad_fn(g).requires_grad,
        x.exp().grad_fn(None),
        x.grad,
        *[attempt(lambda each=each: y.grad_fn(*each)) for each in [(), (g, g), (3,)]],
        attempt(lambda: y.grad_fn(g=g)),
    ]


@program
def next_functions_of_ops_with_indices(torch: Any) -> Any:
    x, i = torch.ones(3, 3, requires_grad=True), torch.zeros(3, 3, dtype=torch.long)
    mask = i == 0
    results = [
        x.gather(0, i),
        x.index_select(0, i[0]),
        x.take(i),
        x[i[0]],
        x.scatter(0, i, x),
        x.scatter_add(0, i, x),
        x.index_add(0, i[0], x),
        x.masked_select(mask),
        torch.where(mask, x, x),
        torch.where(mask, x, 0.0),
        x.sort()[0],
        x.max(0)[0],
        torch.nn.functional.nll_loss(x, i[0]),
        torch.nn.functional.embedding(i[0], x),
        x * 2,
        x + 1,
        x / torch.ones(3),
        torch.cat([x, torch.ones(1, 3)]),
        torch.nn.functional.layer_norm(x, [3]),
    ]
    return [
        (r.grad_fn.name(), [(None if n is None else n.name(), k) for n, k in r.grad_fn.next_functions]) for r in results
    ]


# Edges ------------------------------------------------------------------------------------------------


@program
def gradient_edges(torch: Any) -> Any:
    graph = torch.autograd.graph
    x = leaf(torch)
    b = (x * 2).split(1)[1]
    edges = [graph.get_gradient_edge(each) for each in (x, b)]
    assert isinstance(edges[0], graph.GradientEdge)
    assert edges[1].node is b.grad_fn
    return [(e.node.name(), e.output_nr, e.ownership_token, len(e)) for e in edges]


@program
def edge_of_what_requires_no_grad(torch: Any) -> Any:
    torch.autograd.graph.get_gradient_edge(torch.ones(2))


@program
def edges_as_inputs_of_grad(torch: Any) -> Any:
    graph = torch.autograd.graph
    x = leaf(torch)
    h = x * 2
    y = (h * 3).sum()
    inputs = [graph.get_gradient_edge(h), graph.get_gradient_edge(x), x]
    return torch.autograd.grad(y, [*inputs, graph.GradientEdge(h.grad_fn, 0)])


@program
def edges_as_inputs_of_backward(torch: Any) -> Any:
    graph = torch.autograd.graph
    x, w = leaf(torch), leaf(torch)
    h = x * w
    h.sum().backward(inputs=[graph.get_gradient_edge(h), graph.get_gradient_edge(x)])
    return x.grad, w.grad, h.retains_grad


@program
def edges_as_outputs(torch: Any) -> Any:
    graph = torch.autograd.graph
    x = leaf(torch)
    y = x * x
    edge = graph.get_gradient_edge(y)
    found = torch.autograd.grad(edge, x, torch.tensor([3.0, 4.0]), retain_graph=True)
    total = y.sum()
    torch.autograd.backward([graph.get_gradient_edge(total), total], retain_graph=True)
    both = x.grad.clone()
    x.grad = None
    torch.autograd.backward(graph.get_gradient_edge(x), torch.ones(2))
    return found, both, x.grad


@program
def an_edge_needs_a_gradient(torch: Any) -> Any:
    x = leaf(torch)
    torch.autograd.grad(torch.autograd.graph.get_gradient_edge(x * 2), x)


@program
def an_edge_with_a_gradient_of_a_wrong_shape(torch: Any) -> Any:
    x = leaf(torch)
    torch.autograd.backward([torch.autograd.graph.get_gradient_edge(x * 2)], [torch.ones(3)])


@program
def an_edge_of_a_function(torch: Any) -> Any:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return 2 * a + 3 * b

    x = leaf(torch)
    a, b = F.apply(x)
    edge = torch.autograd.graph.get_gradient_edge(b)
    found = torch.autograd.grad((a * b).sum(), [edge, x], retain_graph=True)
    return found, torch.autograd.grad(edge, x, torch.ones(2)), edge.node is a.grad_fn


@program
def unused_edges(torch: Any) -> Any:
    edge = torch.autograd.graph.get_gradient_edge(leaf(torch))
    y = leaf(torch).sum()
    found = torch.autograd.grad(y, edge, allow_unused=True, retain_graph=True)
    return found, attempt(lambda: torch.autograd.grad(y, edge, materialize_grads=True))


@program
def dicts_of_inputs(torch: Any) -> Any:
    x = leaf(torch)
    h = x * 2
    y = (h * 3).sum()
    found = torch.autograd.grad(y, {"x": x, "h": h}, retain_graph=True)
    y.backward(inputs={"x": x})
    return found, x.grad


@program
def other_mappings_of_inputs(torch: Any) -> Any:
    x = leaf(torch)
    inputs = collections.OrderedDict(x=x)
    return [
        attempt(lambda: torch.autograd.grad(x.sum(), inputs)),
        attempt(lambda: torch.autograd.backward(x.sum(), inputs=inputs)),
    ]


@program
def inputs_and_outputs_that_are_no_tensors(torch: Any) -> Any:
    x = leaf(torch)
    return [
        attempt(lambda: torch.autograd.grad(x.sum(), "a")),
        attempt(lambda: torch.autograd.grad(x.sum(), 3)),
        attempt(lambda: torch.autograd.grad(x.sum(), [x, None])),
        attempt(lambda: torch.autograd.grad([3], x)),
        attempt(lambda: torch.autograd.grad([], x)),
        attempt(lambda: torch.autograd.backward([])),
        attempt(lambda: torch.autograd.backward(x.sum(), inputs=[3])),
        attempt(lambda: torch.autograd.backward([x.sum(), x.sum()], [torch.ones(())])),
        attempt(lambda: torch.autograd.backward([x.sum()], [torch.ones(()), None])),
    ]


@program
def backward_into_what_requires_no_grad(torch: Any) -> Any:
    x = leaf(torch)
    x.sum().backward(inputs=[x, torch.ones(2)])


@program
def gradients_made_up_for_unused_inputs(torch: Any) -> Any:
    x = leaf(torch)
    return torch.autograd.grad(x.sum(), [x, leaf(torch)], materialize_grads=True, create_graph=True)


@program
def a_gradient_of_a_wrong_shape_has_an_index(torch: Any) -> Any:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None, g, torch.ones(7)

    F.apply(3, leaf(torch), leaf(torch)).sum().backward()


# What nodes save --------------------------------------------------------------------------------------


@program
def saved_inputs(torch: Any) -> Any:
    x, y = leaf(torch), leaf(torch)
    h = x * 1
    product, power = h * y, x**2
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2)
    matmul = (a @ b).grad_fn
    number = (x * 2).grad_fn
    return [
        product.grad_fn._saved_self is h,
        product.grad_fn._saved_other is y,
        power.grad_fn._saved_self is x,
        power.grad_fn._saved_exponent,
        h.sin().grad_fn._saved_self is h,
        matmul._saved_mat2 is b,
        matmul._saved_self,  # it is not needed
        number._saved_self,
        number._saved_other,
        torch.nn.functional.mse_loss(x, y).grad_fn._saved_target is y,
        x.clamp(0, 1).grad_fn._saved_max,
    ]


@program
def saved_results(torch: Any) -> Any:
    x = leaf(torch)
    y = x.exp()
    saved = y.grad_fn._saved_result
    return [
        saved is y,
        saved,
        saved.grad_fn is y.grad_fn,
        x.sigmoid().grad_fn._saved_result,
        x.relu().grad_fn._saved_result,
        torch.max(x, 0)[0].grad_fn._saved_indices,
    ]


@program
def saved_arguments(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    return [
        x.sum(-1).grad_fn._saved_dim,
        x.mean(0).grad_fn._saved_dim,
        x.sum().grad_fn._saved_self_sym_sizes,
        x.softmax(-1).grad_fn._saved_dim,
        x.cumsum(1).grad_fn._saved_dim,
        x.transpose(0, -1).grad_fn._saved_dim1,
        x.view(6).grad_fn._saved_self_sym_sizes,
        torch.cat([x, x], 1).grad_fn._saved_dim,
        x.gather(0, torch.zeros(1, 3, dtype=torch.long)).grad_fn._saved_index,
        torch.nn.functional.mse_loss(x, x).grad_fn._saved_reduction,
        torch.nn.functional.leaky_relu(x, 0.2).grad_fn._saved_negative_slope,
    ]


@program
def what_is_not_saved(torch: Any) -> Any:
    y = leaf(torch).exp()
    return y.grad_fn._saved_nothing


@program
def names_of_what_is_saved(torch: Any) -> Any:
    x = leaf(torch)
    nodes = [each.grad_fn for each in (x * x, x.exp(), x.sin(), x / x.detach())]
    return [
        {"_saved_self", "_raw_saved_self", "_saved_result"} & set(dir(node)) for node in nodes[:3]
    ], "_saved_other" in dir(nodes[3])


@program
def saved_and_freed(torch: Any) -> Any:
    y = leaf(torch).exp()
    y.sum().backward()
    return y.grad_fn._saved_result


@program
def saved_input_that_was_written_to(torch: Any) -> Any:
    h = leaf(torch) * 1
    y = h.sin()
    h.add_(1)
    return y.grad_fn._saved_self


@program
def saved_result_that_was_written_to(torch: Any) -> Any:
    y = leaf(torch).exp()
    node = y.grad_fn
    y.add_(1)
    return node._saved_result


@program
def hooks_on_one_saved_tensor(torch: Any) -> Any:
    log = []
    x, w = leaf(torch), leaf(torch)
    y = x * w

    def pack(t: Any) -> Any:
        log.append(("pack", t.tolist()))
        return t.detach() * 1

    def unpack(t: Any) -> Any:
        log.append(("unpack", t.tolist()))
        return t * 10

    y.grad_fn._raw_saved_self.register_hooks(pack, unpack)
    shown = y.grad_fn._saved_self
    y.sum().backward()
    return log, shown, x.grad, w.grad


@program
def hooks_on_a_saved_result(torch: Any) -> Any:
    x = leaf(torch)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach() * 1, lambda t: t * 10)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    return g, gg


@program
def hooks_on_what_a_function_saved(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(torch)
    y = Square.apply(x)
    raw = y.grad_fn._raw_saved_tensors
    raw[0].register_hooks(lambda t: t.detach() * 1, lambda t: t * 10)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    return len(raw), attempt(lambda: raw[1].register_hooks(abs, abs)), g, gg


@program
def errors_of_hooks_on_saved_tensors(torch: Any) -> Any:
    found = []
    x = leaf(torch)

    def same(t: Any) -> Any:
        return t

    found.append(attempt(lambda: (x * 2).grad_fn._raw_saved_self.register_hooks(same, same)))
    found.append(attempt(lambda: x.exp().grad_fn._raw_saved_result.register_hooks(3, 4)))
    found.append(attempt(lambda: x.exp().grad_fn._raw_saved_result.register_hooks(same)))
    raw = (x**2).grad_fn._raw_saved_self
    raw.register_hooks(same, same)
    found.append(attempt(lambda: raw.register_hooks(same, same)))
    y = x**2
    raw = y.grad_fn._raw_saved_self
    y.sum().backward()
    found.append(attempt(lambda: raw.register_hooks(same, same)))
    return found


# Several gradients, versions --------------------------------------------------------------------------


@program
def a_hook_on_all_gradients(torch: Any) -> Any:
    log = []
    a, b = leaf(torch), leaf(torch)
    c, d = a * b, a * b
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, c, d), lambda gs: log.append([None if g is None else g.tolist() for g in gs])
    )
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward()
    return log


@program
def a_hook_on_all_gradients_that_a_walk_to_leaves_only_passes(torch: Any) -> Any:
    a = leaf(torch)
    b = a * 2
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: None)
    return torch.autograd.grad(b.sum(), a)


@program
def a_hook_on_any_gradient(torch: Any) -> Any:
    log = []
    a, b = leaf(torch), leaf(torch)
    c = a * b
    register = torch.autograd.graph.register_multi_grad_hook
    handle = register((a, c, torch.ones(2), b), lambda g: log.append(g.tolist()), mode="any")
    (c * 3).sum().backward()
    (a * 5).sum().backward()
    handle.remove()
    (a * 7).sum().backward()
    return log


@program
def hooks_on_several_gradients_inside_each_other(torch: Any) -> Any:
    log = []
    a, b = leaf(torch), leaf(torch)
    register = torch.autograd.graph.register_multi_grad_hook

    def inner(g: Any) -> None:
        with torch.enable_grad():
            (a * b * 10).sum().backward()

    c = a * b
    c.register_hook(inner)
    register((a, b), lambda gs: log.append([g.tolist() for g in gs]))
    c.sum().backward()
    return log, a.grad


@program
def errors_of_hooks_on_several_gradients(torch: Any) -> Any:
    register = torch.autograd.graph.register_multi_grad_hook
    x = leaf(torch)
    return [attempt(lambda: register((x,), print, mode="some")), attempt(lambda: register((x, torch.ones(2)), print))]


@program
def versions_counted_up(torch: Any) -> Any:
    x, y = torch.zeros(2), torch.zeros(2)
    torch.autograd.graph.increment_version(x)
    torch.autograd.graph.increment_version([x, y])
    with torch.inference_mode():
        torch.autograd.graph.increment_version(torch.zeros(2))
    return x._version, y._version


@program
def a_write_that_backward_is_told_of(torch: Any) -> Any:
    h = leaf(torch) * 1
    y = h * h
    h.detach().numpy()[0] = 7
    torch.autograd.graph.increment_version(h)
    y.sum().backward()


@needs_oracle
@pytest.mark.parametrize("each", PROGRAMS, ids=lambda each: each.__name__)
def test_same_as_pytorch(each: Callable[[Any], Any]) -> None:
    same_as_pytorch(each)


def test_a_node_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="Can't instantiate abstract class Node"):
        tinytorch.autograd.graph.Node()


def test_a_hook_on_several_gradients_outside_of_backward() -> None:
    x = leaf(tinytorch)
    tinytorch.autograd.graph.register_multi_grad_hook((x,), lambda gs: None)
    (hook,) = x._hooks.tensor[0].values()
    with pytest.raises(AssertionError, match="inside a backward call"):
        hook(tinytorch.ones(2))
