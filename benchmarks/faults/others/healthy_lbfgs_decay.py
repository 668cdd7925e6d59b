import torch

torch.manual_seed(9)

# Fit the sum of two decays and an offset to measured counts.
t = torch.linspace(0, 10, 200, dtype=torch.float64)
measured = 5 * torch.exp(-t / 0.8) + 2 * torch.exp(-t / 4.0) + 0.3 + 0.02 * torch.randn(200, dtype=torch.float64)

log_tau = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
amplitude = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
offset = torch.zeros(1, dtype=torch.float64, requires_grad=True)


def predict():
    return (amplitude * torch.exp(-t[:, None] / log_tau.exp())).sum(1) + offset


optimizer = torch.optim.LBFGS([log_tau, amplitude, offset], lr=1, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = ((predict() - measured) ** 2).mean()
    loss.backward()
    return loss


for step in range(8):
    loss = optimizer.step(closure)
    print(f"step {step}: loss {loss.item():.6f}")

print("life times", sorted(log_tau.exp().tolist()))
print(f"final rms residual {((predict() - measured) ** 2).mean().sqrt().item():.4f}")
