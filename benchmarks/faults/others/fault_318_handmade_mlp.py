# cause: weights-symmetric
# symptom: all hidden units stay equal to one another, the network can only fit a plane wave and the loss stops high
import torch

torch.manual_seed(8)

# height of a landscape z(x, y) on [-1, 1]^2
N, HIDDEN = 1200, 32
xy = 2 * torch.rand(N, 2) - 1
z = torch.sin(3 * xy[:, :1]) * torch.cos(2 * xy[:, 1:]) + 0.5 * xy[:, :1] ** 2

W1 = torch.full((2, HIDDEN), 0.5, requires_grad=True)  # <- fault
b1 = torch.zeros(HIDDEN, requires_grad=True)
W2 = torch.full((HIDDEN, 1), 1 / HIDDEN, requires_grad=True)  # <- fault
b2 = torch.zeros(1, requires_grad=True)
params = [W1, b1, W2, b2]
moment = [torch.zeros_like(p) for p in params]
lr, beta = 0.1, 0.9


def forward(v):
    return torch.tanh(v @ W1 + b1) @ W2 + b2


for epoch in range(1, 41):
    total = 0.0
    for idx in torch.randperm(N).split(40):
        loss = (forward(xy[idx]) - z[idx]).pow(2).mean()
        for p in params:
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p, m in zip(params, moment):
                m.mul_(beta).add_(p.grad, alpha=1 - beta)
                p.sub_(lr * m)
        total += loss.item() * len(idx) / N
    if epoch % 8 == 0:
        spread = W1.detach().std(dim=1).max().item()
        print(f"epoch {epoch}: mse {total:.4f}  spread over hidden units {spread:.2e}  (variance of z {z.var().item():.3f})")
