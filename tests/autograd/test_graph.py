"""Nodes, edges, what they save, hooks on several gradients: programs run by both libraries."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.autograd.programs import Program, Programs, leaf, listed, made, tried
from tests.same import same_as_pytorch

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


#: Ops whose nodes have PyTorch's names, and lead where PyTorch's lead.
OPS: dict[str, Callable[..., list[Any]]] = {
    "arithmetic": lambda torch, F, x, w, y, i: [
        x + 1, x - x, x * x, x / 2, -x, x**2, x * 2, 2 - x, y - x, x**y, x @ w, x.mm(w), x / torch.ones(2, 3), +x,
        torch.rsub(x, y), torch.rsub(x, 2.0), torch.rsub(x, y, alpha=2), torch.add(x, y, alpha=2),
        torch.sub(x, y, alpha=2), torch.div(x, y, rounding_mode="floor"), torch.floor_divide(x, y),
        torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2), torch.addcdiv(x, x, y, value=2),
        torch.addmm(torch.ones(2), x, w), torch.maximum(x, x), torch.minimum(x, x),
    ],
    "pointwise": lambda torch, F, x, w, y, i: [
        x.exp(), x.log(), x.sqrt(), x.sin(), x.tanh(), x.sigmoid(), x.relu(), x.abs(), torch.sgn(x), torch.sign(x),
        torch.rad2deg(x), torch.deg2rad(x), torch.log1p(x), torch.round(x, decimals=1), x.clamp(0, 1),
        torch.clamp_min(x, 0.0), torch.clamp_max(x, 1.0), torch.clamp(x, y, y + 1), torch.where(x > 0, x, x),
        torch.where(x > 0, x, y.detach()), torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, 1.0), x.double(), x.clone(),
    ],
    "reductions": lambda torch, F, x, w, y, i: [
        x.sum(), x.mean(), x.sum(0), x.mean(1), x.max(), x.max(0)[0], x.min(), x.amax(0), x.prod(), x.var(), x.std(),
        x.norm(), x.softmax(1), x.log_softmax(1), x.logsumexp(1), x.cumsum(0), x.sort()[0],
    ],
    "shapes": lambda torch, F, x, w, y, i: [
        x.t(), x.view(6), x.reshape(3, 2), x.unsqueeze(0), x[None].squeeze(0), x.transpose(0, 1), x.permute(1, 0), x[0],
        x[:, 1], x.expand(2, 2, 3), torch.cat([x, x]), torch.cat([x, y.detach(), x]), torch.stack([x, x]),
        x.split(1)[0], x.unbind(0)[0], x.flatten(), x.tril(), x.repeat(2, 1), x.flip(0),
    ],
    "indices": lambda torch, F, x, w, y, i: [
        x[i[0]], x.gather(0, i), x.index_select(0, i[0]), x.take(i), x.scatter(0, i, x), x.scatter_add(0, i, x),
        x.index_add(0, i[0, :2], x), x.masked_select(i == 0), F.embedding(i[0], x),
    ],
    "functions": lambda torch, F, x, w, y, i: [
        F.celu(x), F.selu(x), F.elu(x), F.rrelu(x), F.rrelu(x, training=True), F.leaky_relu(x), F.relu6(x), F.glu(w),
        F.prelu(x, torch.ones(1)), F.hardsigmoid(x), F.softshrink(x), F.nll_loss(x, i[0, :2]),
        F.layer_norm(x, [3]),
    ],
    "that differ further on": lambda torch, F, x, w, y, i: [x[0, 1], F.margin_ranking_loss(x, y, x, reduction="none")],
}  # fmt: skip


@pytest.mark.parametrize("name", OPS)
def test_names_of_nodes_and_where_they_lead(name: str) -> None:
    def program(torch):
        x, w, y = (torch.ones(shape, requires_grad=True) for shape in ((2, 3), (3, 2), (2, 3)))
        results = OPS[name](torch, torch.nn.functional, x, w, y * 0.5, torch.zeros(2, 3, dtype=torch.long))
        nodes = [r.grad_fn for r in results]
        if name == "that differ further on":
            return [(node.name(), len(node.next_functions)) for node in nodes]
        return [node and (node.name(), [(n and n.name(), k) for n, k in node.next_functions]) for node in nodes]

    same_as_pytorch(program)


@PROGRAMS
class Nodes:
    def nodes_are_nodes(torch):
        x = leaf(torch)
        y = x.exp()
        accumulator = y.grad_fn.next_functions[0][0]

        function = made(torch, forward=lambda ctx, x: x * 2)
        return [
            (isinstance(node, torch.autograd.graph.Node), node.name(), type(node).__name__, node.requires_grad)
            for node in (y.grad_fn, accumulator, function.apply(x).grad_fn)
        ]

    def notes_and_numbers(torch):
        y = leaf(torch) * 2
        z = y + 1
        y.grad_fn.metadata["mine"] = 3
        accumulator = y.grad_fn.next_functions[0][0]
        numbers = z.grad_fn._sequence_nr() - y.grad_fn._sequence_nr(), accumulator._sequence_nr()
        return y.grad_fn.metadata, z.grad_fn.metadata, numbers

    def the_same_node_each_time(torch):
        x = leaf(torch)
        y = x * 2
        left, right = ((y + k).grad_fn.next_functions[0][0] for k in (1, 2))
        leaves = [(x + k).grad_fn.next_functions[0][0] for k in (1, 2)]
        return left is right, left is y.grad_fn, leaves[0] is leaves[1], leaves[0].variable is x

    def positive_is_the_tensor_itself(torch):
        x = leaf(torch)
        return +x is x, torch.positive(x) is x, x.positive() is x, tried(lambda: +torch.tensor([True]))

    def metadata_of_what_a_node_gets(torch):
        x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
        found = []
        for tensor in (x * 2, x.split(2)[0], x.sum()):
            for each in tensor.grad_fn._input_metadata:
                found.append((each.shape, str(each.dtype), str(each.device), each.is_nested_tensor))
        return found

    def calling_a_node(torch):
        x = leaf(torch)
        y = x * 3
        (x * 1).grad_fn.next_functions[0][0](torch.ones(2))
        g = torch.ones(2)
        return [
            y.grad_fn(g),
            x.exp().grad_fn(g).requires_grad,
            x.exp().grad_fn(None),
            x.grad,
            tried(*[lambda each=each: y.grad_fn(*each) for each in [(), (g, g), (3,)]], lambda: y.grad_fn(g=g)),
        ]


# Edges ------------------------------------------------------------------------------------------------


@PROGRAMS
class Edges:
    def gradient_edges(torch):
        graph = torch.autograd.graph
        x = leaf(torch)
        b = (x * 2).split(1)[1]
        edges = [graph.get_gradient_edge(each) for each in (x, b)]
        assert isinstance(edges[0], graph.GradientEdge)
        assert edges[1].node is b.grad_fn
        return [(e.node.name(), e.output_nr, e.ownership_token, len(e)) for e in edges]

    def edges_as_inputs_of_grad(torch):
        graph = torch.autograd.graph
        x = leaf(torch)
        h = x * 2
        y = (h * 3).sum()
        inputs = [graph.get_gradient_edge(h), graph.get_gradient_edge(x), x]
        return torch.autograd.grad(y, [*inputs, graph.GradientEdge(h.grad_fn, 0)])

    def edges_as_inputs_of_backward(torch):
        graph = torch.autograd.graph
        x, w = leaf(torch), leaf(torch)
        h = x * w
        h.sum().backward(inputs=[graph.get_gradient_edge(h), graph.get_gradient_edge(x)])
        return x.grad, w.grad, h.retains_grad

    def edges_as_outputs(torch):
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

    def mistakes(torch):
        graph, x = torch.autograd.graph, leaf(torch)
        y, inputs = x.sum(), collections.OrderedDict(x=x)
        edge, unused = graph.get_gradient_edge(x * 2), graph.get_gradient_edge(leaf(torch))
        grad, backward = torch.autograd.grad, torch.autograd.backward
        return tried(
            lambda: graph.get_gradient_edge(torch.ones(2)), lambda: grad(edge, x),
            lambda: backward([edge], [torch.ones(3)]), lambda: grad(y, unused, allow_unused=True, retain_graph=True),
            lambda: grad(y, unused, materialize_grads=True), lambda: grad(y, inputs), lambda: grad(y, "a"),
            lambda: backward(y, inputs=inputs), lambda: grad(y, 3), lambda: grad(y, [x, None]), lambda: grad([3], x),
            lambda: grad([], x), lambda: backward([]), lambda: backward(y, inputs=[3]),
            lambda: backward([y, y], [torch.ones(())]), lambda: backward([y], [torch.ones(()), None]),
        )  # fmt: skip

    def an_edge_of_a_function(torch):
        F = made(torch, forward=lambda ctx, x: (x * 2, x * 3), backward=lambda ctx, a, b: 2 * a + 3 * b)
        x = leaf(torch)
        a, b = F.apply(x)
        edge = torch.autograd.graph.get_gradient_edge(b)
        found = torch.autograd.grad((a * b).sum(), [edge, x], retain_graph=True)
        return found, torch.autograd.grad(edge, x, torch.ones(2)), edge.node is a.grad_fn

    def dicts_of_inputs(torch):
        x = leaf(torch)
        h = x * 2
        y = (h * 3).sum()
        found = torch.autograd.grad(y, {"x": x, "h": h}, retain_graph=True)
        y.backward(inputs={"x": x})
        return found, x.grad

    def a_gradient_of_a_wrong_shape_has_an_index(torch):
        function = made(torch, forward=lambda ctx, a, x, y: x * y, backward=lambda ctx, g: (None, g, torch.ones(7)))
        function.apply(3, leaf(torch), leaf(torch)).sum().backward()


# What nodes save --------------------------------------------------------------------------------------


@PROGRAMS
class Saved:
    def saved_inputs(torch):
        x, y = leaf(torch), leaf(torch)
        h = x * 1
        product, power = h * y, x**2
        a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2)
        matmul = (a @ b).grad_fn
        number, frozen = (x * 2).grad_fn, (x * torch.ones(2)).grad_fn
        return [
            product.grad_fn._saved_self is h,
            product.grad_fn._saved_other is y,
            power.grad_fn._saved_self is x,
            power.grad_fn._saved_exponent,
            h.sin().grad_fn._saved_self is h,
            matmul._saved_mat2 is b,
            matmul._saved_self,  # it is not needed
            [number._saved_self, number._saved_other, frozen._saved_self, frozen._saved_other],
            torch.nn.functional.mse_loss(x, y).grad_fn._saved_target is y,
            x.clamp(0, 1).grad_fn._saved_max,
        ]

    def saved_results(torch):
        x = leaf(torch)
        y = x.exp()
        saved = y.grad_fn._saved_result
        return [
            saved is y,
            saved,
            saved.grad_fn is y.grad_fn,
            saved.data_ptr() == y.data_ptr(),
            x.sigmoid().grad_fn._saved_result,
            x.relu().grad_fn._saved_result,
            torch.max(x, 0)[0].grad_fn._saved_indices,
        ]

    def saved_arguments(torch):
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
            [
                torch.nn.functional.mse_loss(x, x, reduction=name).grad_fn._saved_reduction
                for name in ("none", "mean", "sum")
            ],
            torch.nn.functional.leaky_relu(x, 0.2).grad_fn._saved_negative_slope,
        ]

    def names_of_what_is_saved(torch):
        x = leaf(torch)
        nodes = [each.grad_fn for each in (x * x, x.exp(), x.sin(), x / x.detach())]
        return [
            {"_saved_self", "_raw_saved_self", "_saved_result"} & set(dir(node)) for node in nodes[:3]
        ], "_saved_other" in dir(nodes[3])

    def what_cannot_be_shown(torch):
        x = leaf(torch)
        h, freed, result, power = x * 1, x.exp(), x.exp(), x.pow(2)
        of_h, of_result, of_power = h.sin().grad_fn, result.grad_fn, power.grad_fn._raw_saved_self
        (freed + power).sum().backward()
        h.add_(1)
        result.add_(1)
        return tried(
            lambda: x.exp().grad_fn._saved_nothing, lambda: freed.grad_fn._saved_result, lambda: of_h._saved_self,
            lambda: of_result._saved_result, lambda: type(power.grad_fn._raw_saved_self).__name__,
            lambda: of_power.register_hooks(abs, abs),
        )  # fmt: skip

    def hooks_on_one_saved_tensor(torch):
        log = []
        x, w = leaf(torch), leaf(torch)
        y = x * w

        def pack(t):
            log.append(("pack", t.tolist()))
            return t.detach() * 1

        def unpack(t):
            log.append(("unpack", t.tolist()))
            return t * 10

        y.grad_fn._raw_saved_self.register_hooks(pack, unpack)
        shown = y.grad_fn._saved_self
        y.sum().backward()
        return log, shown, x.grad, w.grad

    def hooks_on_a_saved_result(torch):
        x = leaf(torch)
        y = x.exp()
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach() * 1, lambda t: t * 10)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        return g, gg

    def hooks_on_what_a_function_saved(torch):
        Square = made(
            torch, forward=lambda ctx, x: (ctx.save_for_backward(x, None), x * x)[1],
            backward=lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
        )  # fmt: skip
        x = leaf(torch)
        y = Square.apply(x)
        raw = y.grad_fn._raw_saved_tensors
        raw[0].register_hooks(lambda t: t.detach() * 1, lambda t: t * 10)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        return len(raw), tried(lambda: raw[1].register_hooks(abs, abs)), g, gg

    def errors_of_hooks_on_saved_tensors(torch):
        x = leaf(torch)
        node = (x**2).grad_fn
        raw = node._raw_saved_self  # (of a node that lives: PyTorch's refers to its memory)
        return tried(
            lambda: (x * 2).grad_fn._raw_saved_self.register_hooks(abs, abs),
            lambda: x.exp().grad_fn._raw_saved_result.register_hooks(3, 4),
            lambda: x.exp().grad_fn._raw_saved_result.register_hooks(abs),
            lambda: raw.register_hooks(lambda t: t, lambda t: t), lambda: raw.register_hooks(lambda t: t, lambda t: t),
        )  # fmt: skip


# Several gradients, versions --------------------------------------------------------------------------


@PROGRAMS
class Several:
    def a_hook_on_all_gradients(torch):
        log = []
        a, b = leaf(torch), leaf(torch)
        c, d = a * b, a * b
        handle = torch.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda gs: log.append(listed(gs)))
        c.sum().backward(retain_graph=True)
        c.sum().backward(inputs=(a,), retain_graph=True)
        (c + d).sum().backward(retain_graph=True)
        handle.remove()
        c.sum().backward()
        return log

    def a_hook_on_all_gradients_that_a_walk_to_leaves_only_passes(torch):
        a = leaf(torch)
        b = a * 2
        torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: None)
        return torch.autograd.grad(b.sum(), a)

    def a_hook_on_any_gradient(torch):
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

    def hooks_on_several_gradients_inside_each_other(torch):
        log = []
        a, b = leaf(torch), leaf(torch)
        register = torch.autograd.graph.register_multi_grad_hook

        def inner(g):
            with torch.enable_grad():
                (a * b * 10).sum().backward()

        c = a * b
        c.register_hook(inner)
        register((a, b), lambda gs: log.append([g.tolist() for g in gs]))
        c.sum().backward()
        return log, a.grad

    def errors_of_hooks_on_several_gradients(torch):
        register = torch.autograd.graph.register_multi_grad_hook
        x = leaf(torch)
        return tried(lambda: register((x,), print, mode="some"), lambda: register((x, torch.ones(2)), print))

    def versions_counted_up(torch):
        x, y = torch.zeros(2), torch.zeros(2)
        torch.autograd.graph.increment_version(x)
        torch.autograd.graph.increment_version([x, y])
        with torch.inference_mode():
            torch.autograd.graph.increment_version(torch.zeros(2))
        return x._version, y._version

    def a_write_that_backward_is_told_of(torch):
        h = leaf(torch) * 1
        y = h * h
        h.detach().numpy()[0] = 7
        torch.autograd.graph.increment_version(h)
        y.sum().backward()


def test_a_node_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="Can't instantiate abstract class Node"):
        tinytorch.autograd.graph.Node()


def test_a_hook_on_several_gradients_outside_of_backward() -> None:
    x = leaf(tinytorch)
    tinytorch.autograd.graph.register_multi_grad_hook((x,), lambda gs: None)
    (hook,) = x._hooks.tensor[0].values()
    with pytest.raises(AssertionError, match="inside a backward call"):
        hook(tinytorch.ones(2))
