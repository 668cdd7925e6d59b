# Jacobians, Hessians, products with them, and functions of functions.
import copy
import warnings
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

torch.manual_seed(0)
D = 6
weight = torch.randn(D, D)
bias = torch.randn(D)
x = torch.randn(D)


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


xp = x.clone().requires_grad_()
unit_vectors = torch.eye(D)
rows = [torch.autograd.grad(predict(weight, bias, xp), xp, vec)[0] for vec in unit_vectors]
jacobian = torch.stack(rows)
_, vjp_fn = vjp(partial(predict, weight, bias), x)
(ft_jacobian,) = vmap(vjp_fn)(unit_vectors)
print(torch.allclose(ft_jacobian, jacobian))
print(torch.allclose(jacrev(predict, argnums=2)(weight, bias, x), jacobian))
print(torch.allclose(jacfwd(predict, argnums=2)(weight, bias, x), jacobian))
jw, jb = jacrev(predict, argnums=(0, 1))(weight, bias, x)
print(jw.shape, jb.shape, jb.diagonal())
print(jacrev(predict, argnums=2, chunk_size=2)(weight, bias, x).sum())
print(jacfwd(predict, argnums=2, randomness="same")(weight, bias, x).sum())

hess = hessian(predict, argnums=2)(weight, bias, x)
hess2 = jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)
hess3 = jacfwd(jacfwd(predict, argnums=2), argnums=2)(weight, bias, x)
print(hess.shape, (hess - hess2).abs().max() < 1e-5, (hess - hess3).abs().max() < 1e-5)
batch = torch.randn(4, D)
batched = vmap(partial(jacrev(predict, argnums=2), weight, bias))(batch)
print(batched.shape, batched.sum((1, 2)))
laplacian = vmap(lambda v: torch.trace(hessian(lambda u: predict(weight, bias, u).sum())(v)))(batch)
print(laplacian)


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


def hvp_revrev(f, primals, tangents):
    _, fn = vjp(grad(f), *primals)
    return fn(*tangents)


def f(x):
    return x.sin().pow(3).sum()


a, b = torch.randn(20), torch.randn(20)
print(torch.allclose(hvp(f, (a,), (b,)), hvp_revrev(f, (a,), (b,))[0], atol=1e-5))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    out, lin = linearize(torch.sin, a)
print(torch.allclose(lin(b), b * a.cos()), out[:3])


def loss_aux(w, x):
    y = x @ w
    return (y**2).mean(), {"pred": y, "norm": w.norm()}


g, aux = grad(loss_aux, has_aux=True)(weight, batch)
print(g.shape, sorted(aux), aux["norm"])
g, (value, aux) = grad_and_value(loss_aux, has_aux=True)(weight, batch)
print(value, aux["pred"].mean())
(out, tan, aux) = jvp(lambda v: (v.exp(), v.sum()), (x,), (torch.ones(D),), has_aux=True)
print(out, tan, aux)
out, fn, aux = vjp(lambda v: (v.exp(), v.sum()), x, has_aux=True)
print(fn(torch.ones(D))[0], aux)
j, aux = jacrev(lambda v: (v.exp(), v.sum()), has_aux=True)(x)
print(j.diagonal(), aux)
print({k: v.shape for k, v in jacrev(lambda p: {"o": p["a"] * p["b"]})({"a": x, "b": x})["o"].items()})


def inplace(x):
    y = x.clone()
    y.view(-1)[0].mul_(3)
    y += 1
    return y


print(functionalize(inplace)(x))
print(functionalize(inplace, remove="mutations_and_views")(x))

models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).eval() for _ in range(3)]
params, buffers = stack_module_state(models)
print({k: (tuple(v.shape), v.requires_grad, v.is_leaf) for k, v in params.items()})
print({k: (tuple(v.shape), v.dtype) for k, v in buffers.items()})
base = copy.deepcopy(models[0])


def fmodel(params, buffers, x):
    return functional_call(base, (params, buffers), (x,))


data = torch.randn(3, 5, 3)
print(vmap(fmodel)(params, buffers, data).sum((1, 2)))
print(vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data[0]).sum((1, 2)))
print(vmap(fmodel, in_dims=(0, 0, None), out_dims=1, chunk_size=2)(params, buffers, data[0]).shape)
torch.manual_seed(3)
print(vmap(lambda x: x + torch.rand(()), randomness="different")(torch.zeros(3)))
torch.manual_seed(3)
print(vmap(lambda x: x + torch.rand(()), randomness="same")(torch.zeros(3)))
for bad in (
    lambda: grad(lambda x: x)(x),
    lambda: grad(lambda x: 1.0)(x),
    lambda: vmap(lambda x, y: x + y)(torch.zeros(3), torch.zeros(4)),
    lambda: vmap(lambda x: x, in_dims=2)(torch.zeros(3)),
    lambda: vmap(lambda x: 3.0)(torch.zeros(3)),
    lambda: jacrev(lambda x: x)(torch.arange(3)),
):
    try:
        bad()
    except Exception as e:
        print(type(e).__name__, str(e).splitlines()[0][:80])
