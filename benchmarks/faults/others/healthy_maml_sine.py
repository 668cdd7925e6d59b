import torch
import torch.nn.functional as F

torch.manual_seed(3)


def task():
    amplitude, phase = 0.5 + 2 * torch.rand(1), 3.14 * torch.rand(1)

    def draw(k):
        x = 8 * torch.rand(k, 1) - 4
        return x, amplitude * torch.sin(x + phase)

    return draw


def init_weights(hidden=40):
    sizes = [(1, hidden), (hidden, hidden), (hidden, 1)]
    weights = []
    for i, o in sizes:
        weights.append((torch.randn(o, i) * (2 / i) ** 0.5 * (0.5 if i == 1 else 1)).requires_grad_())
        weights.append((0.5 * torch.randn(o)).requires_grad_())
    return weights


def net(x, w):
    x = torch.relu(F.linear(x, w[0], w[1]))
    x = torch.relu(F.linear(x, w[2], w[3]))
    return F.linear(x, w[4], w[5])


def adapt(w, x, y, lr=0.02, create_graph=True):
    loss = F.mse_loss(net(x, w), y)
    grads = torch.autograd.grad(loss, w, create_graph=create_graph)
    return [p - lr * g for p, g in zip(w, grads)]


weights = init_weights()
meta_opt = torch.optim.Adam(weights, lr=2e-3)
for it in range(300):
    meta_loss = 0.0
    for _ in range(4):
        draw = task()
        fast = adapt(weights, *draw(10))
        x, y = draw(10)
        meta_loss = meta_loss + F.mse_loss(net(x, fast), y)
    meta_loss = meta_loss / 4
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
    if it % 60 == 59:
        print(f"iteration {it + 1} meta loss {meta_loss.item():.3f}")

before = after = 0.0
for _ in range(50):
    draw = task()
    xs, ys = draw(10)
    xq, yq = draw(100)
    fast = weights
    for _ in range(3):
        fast = adapt(fast, xs, ys, create_graph=False)
    before += F.mse_loss(net(xq, weights), yq).item() / 50
    after += F.mse_loss(net(xq, fast), yq).item() / 50
print(f"test mse before adaptation {before:.3f}")
print(f"final test mse after adaptation {after:.3f}")
