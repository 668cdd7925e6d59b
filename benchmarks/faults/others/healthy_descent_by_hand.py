"""Softmax regression with momentum, all by hand: no optimizer, no module."""
import torch

torch.manual_seed(106)
CLASSES, INPUTS = 4, 6

means = torch.randn(CLASSES, INPUTS) * 2.2
labels = torch.randint(0, CLASSES, (1200,))
inputs = means[labels] * torch.tensor([1, 10, 1, 100, 1, 1.0]) + torch.randn(1200, INPUTS) * torch.tensor(
    [1, 10, 1, 100, 1, 1.0]
)
inputs = (inputs - inputs[:900].mean(0)) / inputs[:900].std(0)

W = torch.zeros(INPUTS, CLASSES, requires_grad=True)  # convex, so zeros are a fair start
b = torch.zeros(CLASSES, requires_grad=True)
velocity = [torch.zeros_like(W), torch.zeros_like(b)]
rate, momentum, decay = 0.1, 0.9, 1e-4


def log_softmax(scores):
    scores = scores - scores.max(dim=1, keepdim=True).values
    return scores - scores.exp().sum(dim=1, keepdim=True).log()


for epoch in range(20):
    order = torch.randperm(900)
    epoch_loss = 0.0
    for rows in order.split(45):
        log_p = log_softmax(inputs[rows] @ W + b)
        loss = -log_p[torch.arange(len(rows)), labels[rows]].mean()
        grads = torch.autograd.grad(loss, [W, b])
        with torch.no_grad():
            for p, v, g in zip([W, b], velocity, grads):
                v.mul_(momentum).add_(g + decay * p)
                p.sub_(rate * v)
        epoch_loss += loss.item() / 20
    if epoch % 4 == 0:
        print(f"epoch {epoch} loss {epoch_loss:.4f}")
    rate *= 0.95

with torch.no_grad():
    guess = (inputs[900:] @ W + b).argmax(1)
print(f"final test accuracy {(guess == labels[900:]).float().mean().item():.3f}")
