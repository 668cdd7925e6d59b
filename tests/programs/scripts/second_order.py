import torch
from torch import func, nn
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


x = torch.tensor([-1.2, 1.0], requires_grad=True)
H = hessian(rosenbrock, x)
print(H, torch.linalg.eigvalsh(H))
print(hvp(rosenbrock, x, torch.tensor([1.0, 0.0])), vhp(rosenbrock, x, torch.ones(2))[1])
print(jacobian(lambda a, b: a * b.sum(), (torch.ones(2), torch.arange(3.0))))
print(jvp(torch.sin, torch.zeros(2), torch.ones(2)), vjp(torch.cos, torch.ones(2), torch.ones(2))[1])
(g,) = torch.autograd.grad(rosenbrock(x), x, create_graph=True)
v = torch.tensor([0.5, -0.5])
print(torch.autograd.grad(g @ v, x)[0])
for it in range(5):
    g = func.grad(rosenbrock)(x.detach())
    H = func.hessian(rosenbrock)(x.detach())
    with torch.no_grad():
        x -= torch.linalg.solve(H, g)
print(f"newton {x[0].item():.5f} {x[1].item():.5f}")
x = torch.tensor([-1.2, 1.0], requires_grad=True)
optimizer = torch.optim.LBFGS([x], lr=1, max_iter=20, history_size=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = rosenbrock(x)
    loss.backward()
    return loss


for i in range(4):
    loss = optimizer.step(closure)
print(f"{loss.item():.1f}", [round(a, 2) for a in x.tolist()])
loss = loss.item() < 1e-6
net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
params = dict(net.named_parameters())
inputs = torch.randn(6, 3)


def f(p, x):
    return func.functional_call(net, p, (x,)).squeeze(-1)


jac = func.jacrev(f)(params, inputs)
flat = torch.cat([j.flatten(1) for j in jac.values()], 1)
ntk = flat @ flat.T
print(ntk.shape, torch.linalg.eigvalsh(ntk)[1:])
out, tangent = func.jvp(lambda z: f(params, z), (inputs,), (torch.ones_like(inputs),))
print(tangent.detach())
print(torch.stack([x, x], dim=0), torch.rsqrt(torch.ones(1)).type_as(x), torch.linalg.matrix_rank(ntk) > 0)
print(func.jacfwd(torch.tanh)(torch.arange(3.0)), func.vmap(torch.dot)(inputs, inputs))
value, vjp_fn = func.vjp(lambda z: z.pow(2).sum(), torch.ones(2))
print(value, vjp_fn(torch.tensor(1.0)))
laplacian = func.vmap(lambda z: func.hessian(lambda q: f(params, q))(z).trace())(inputs)
print(laplacian.detach())
