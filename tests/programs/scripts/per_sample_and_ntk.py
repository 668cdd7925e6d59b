# Gradients of each sample, ensembles, and the neural tangent kernel in two ways.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, jacrev, jvp, vjp, vmap, grad

torch.manual_seed(0)


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.fc1 = nn.Linear(8 * 9, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


device = "cpu"
batch_size = 8
data = torch.randn(batch_size, 1, 10, 10, device=device)
targets = torch.randint(10, (batch_size,), device=device)
model = SimpleCNN().to(device=device)


def compute_grad(sample, target):
    sample, target = sample.unsqueeze(0), target.unsqueeze(0)
    loss = F.nll_loss(model(sample), target)
    return torch.autograd.grad(loss, list(model.parameters()))


per_sample_grads = [compute_grad(data[i], targets[i]) for i in range(batch_size)]
per_sample_grads = [torch.stack(shards) for shards in zip(*per_sample_grads)]
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    batch, targets = sample.unsqueeze(0), target.unsqueeze(0)
    return F.nll_loss(functional_call(model, (params, buffers), (batch,)), targets)


ft = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
for a, (k, b) in zip(per_sample_grads, ft.items()):
    print(k, tuple(b.shape), torch.allclose(a, b, atol=1e-5))
norms = torch.stack([g.flatten(1).norm(dim=1) for g in ft.values()]).norm(dim=0)
print("norms", norms)
clipped = {k: (g * (1.0 / norms).clamp(max=1.0).view(-1, *[1] * (g.dim() - 1))).mean(0) for k, g in ft.items()}
print({k: f"{v.norm():.4f}" for k, v in clipped.items()})

x_train, x_test = torch.randn(5, 1, 10, 10), torch.randn(3, 1, 10, 10)


def fnet_single(params, x):
    return functional_call(model, params, (x.unsqueeze(0),)).squeeze(0)


def ntk_contraction(f, params, x1, x2, compute="full"):
    j1 = vmap(jacrev(f), (None, 0))(params, x1)
    j1 = [j.flatten(2) for j in j1.values()]
    j2 = vmap(jacrev(f), (None, 0))(params, x2)
    j2 = [j.flatten(2) for j in j2.values()]
    einsum_expr = {"full": "Naf,Mbf->NMab", "trace": "Naf,Maf->NM", "diagonal": "Naf,Maf->NMa"}[compute]
    return torch.stack([torch.einsum(einsum_expr, a, b) for a, b in zip(j1, j2)]).sum(0)


def ntk_products(func, params, x1, x2):
    def get_ntk(x1, x2):
        def func_x1(params):
            return func(params, x1)

        def func_x2(params):
            return func(params, x2)

        output, vjp_fn = vjp(func_x1, params)

        def get_ntk_slice(vec):
            vjps = vjp_fn(vec)
            _, jvps = jvp(func_x2, (params,), vjps)
            return jvps

        basis = torch.eye(output.numel(), dtype=output.dtype, device=output.device).view(output.numel(), -1)
        return vmap(get_ntk_slice)(basis)

    return vmap(vmap(get_ntk, (None, 0)), (0, None))(x1, x2)


k1 = ntk_contraction(fnet_single, params, x_train, x_test)
k2 = ntk_products(fnet_single, params, x_train, x_test)
print(k1.shape, torch.allclose(k1, k2, atol=1e-4), k1.diagonal(dim1=2, dim2=3).sum(-1))
print(ntk_contraction(fnet_single, params, x_train, x_test, "trace"))
