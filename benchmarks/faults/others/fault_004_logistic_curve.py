# cause: overflow
# symptom: the first loss is finite, then all is NaN: exp(135) is inf and its gradient NaN (mse against the true curve nan; without the fault: mse against the true curve 0.0005)
import torch

torch.manual_seed(33)

# The number of cases in an outbreak, day by day, is fitted by a logistic curve.
days = torch.arange(300.0)
truth = 8.0 / (1 + torch.exp(-0.06 * (days - 140)))
cases = truth + 0.15 * torch.randn(300)  # thousands

capacity = torch.tensor(5.0, requires_grad=True)
speed = torch.tensor(0.9, requires_grad=True)
middle = torch.tensor(150.0, requires_grad=True)


def logistic(t):
    return capacity / (1 + torch.exp(-speed * (t - middle)))  # <- fault


optimizer = torch.optim.Adam([{"params": [capacity, middle], "lr": 0.1}, {"params": [speed], "lr": 0.01}])
for step in range(1500):
    optimizer.zero_grad()
    loss = torch.mean((logistic(days) - cases) ** 2)
    loss.backward()
    optimizer.step()
    if step % 300 == 0:
        print(f"step {step}: loss {loss.item():.4f} capacity {capacity.item():.2f} speed {speed.item():.3f}")
print(f"final mse against the true curve {((logistic(days) - truth) ** 2).mean().item():.4f}")
