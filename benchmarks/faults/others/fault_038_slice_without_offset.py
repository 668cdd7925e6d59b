# cause: same-batch-again
# symptom: most of the points are never seen (test accuracy 0.930; without the fault: test accuracy 0.985)
import torch

# Two layers, by hand: no modules, no optimizer.
torch.manual_seed(1)

n = 1000
x = torch.rand(n, 2) * 2 - 1
y = ((x[:, 0] * x[:, 1]) > 0).float().view(n, 1)  # XOR of the signs
x_train, y_train, x_test, y_test = x[:800], y[:800], x[800:], y[800:]

w1 = (torch.randn(2, 32) * 0.7).requires_grad_()
b1 = torch.zeros(32, requires_grad=True)
w2 = (torch.randn(32, 1) * 0.25).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)
lr = 0.5


def forward(x):
    h = torch.tanh(x @ w1 + b1)
    return torch.sigmoid(h @ w2 + b2)


for epoch in range(60):
    perm = torch.randperm(800)
    for i in range(0, 800, 40):
        xb, yb = x_train[:40], y_train[:40]  # <- fault
        p = forward(xb)
        loss = -(yb * torch.log(p + 1e-7) + (1 - yb) * torch.log(1 - p + 1e-7)).mean()
        loss.backward()
        with torch.no_grad():
            for param in (w1, b1, w2, b2):
                param -= lr * param.grad
                param.grad = None
    if epoch % 10 == 0:
        print(epoch, loss.item())

with torch.no_grad():
    acc = ((forward(x_test) > 0.5).float() == y_test).float().mean().item()
print(f"final test accuracy {acc:.3f}")
