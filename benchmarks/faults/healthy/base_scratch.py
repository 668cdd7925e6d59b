"""Two layers from scratch: tensors, no modules, no optimizer."""

import torch

torch.manual_seed(2)
x = torch.randn(512, 8)
true = torch.randn(8, 3)
labels = (x @ true).argmax(1)

w1 = (torch.randn(8, 32) * 0.3).requires_grad_()
b1 = torch.zeros(32, requires_grad=True)
w2 = (torch.randn(32, 3) * 0.3).requires_grad_()
b2 = torch.zeros(3, requires_grad=True)
params = [w1, b1, w2, b2]
lr = 0.5

for step in range(200):
    h = torch.relu(x @ w1 + b1)
    scores = h @ w2 + b2
    loss = torch.nn.functional.cross_entropy(scores, labels)
    loss.backward()
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad
            p.grad.zero_()
    if step % 40 == 0:
        print(step, loss.item())
