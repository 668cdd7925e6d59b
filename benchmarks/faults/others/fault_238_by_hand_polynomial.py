# cause: learning-rate-too-high
# symptom: the error grows with each step until it is inf and then nan (test rmse nan; without the fault: test rmse 0.099)
import torch

torch.manual_seed(3)

# Fuel use over speed: a cubic by gradient descent, without any optimizer class.
speed = torch.rand(300) * 2 - 1
fuel = 1.5 - 0.7 * speed + 2.2 * speed**2 + 1.1 * speed**3 + 0.1 * torch.randn(300)
design = torch.stack([speed**k for k in range(4)], dim=1)
train, test = slice(0, 240), slice(240, 300)

RATE = 1.6  # <- fault
weights = torch.zeros(4, requires_grad=True)

for step in range(1500):
    error = (design[train] @ weights - fuel[train]).pow(2).mean()
    error.backward()
    with torch.no_grad():
        weights -= RATE * weights.grad  # <- fault
    weights.grad = None
    if step % 150 == 0:
        print(f"step {step:4d} error {error.item():.5g}")

with torch.no_grad():
    rmse = (design[test] @ weights - fuel[test]).pow(2).mean().sqrt()
print("weights", [round(w, 3) for w in weights.tolist()])
print(f"final test rmse {rmse.item():.3f}")
