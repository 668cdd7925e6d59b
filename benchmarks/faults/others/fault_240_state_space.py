# cause: gradients-explode
# symptom: gradient norms of many powers of ten, and the loss never comes down (mse over variance 4.866e+22; without the fault: mse over variance 2.504e-05)
import torch
import torch.nn as nn

torch.manual_seed(29)

LENGTH = 60


# A leaky tank: its level after an hour of inflows, minute by minute.
def tank(n):
    inflow = torch.rand(n, LENGTH)
    keep = 0.93 ** torch.arange(LENGTH - 1, -1, -1)
    return inflow - 0.5, ((inflow - 0.5) * keep).sum(1, keepdim=True)


class StateSpace(nn.Module):
    """x' = A x + B u, y = C x, all learned."""

    def __init__(self, states=16):
        super().__init__()
        self.A = nn.Parameter(torch.randn(states, states) / 3)  # <- fault
        self.B = nn.Parameter(torch.randn(states, 1) / 4)
        self.C = nn.Parameter(torch.randn(1, states) / 4)

    def forward(self, u):
        x = u.new_zeros(len(u), self.A.shape[0])
        for t in range(u.shape[1]):
            x = x @ self.A.T + u[:, t : t + 1] @ self.B.T  # <- fault
        return x @ self.C.T


def gradient_norm(model):
    return sum(p.grad.double().pow(2).sum() for p in model.parameters()).sqrt().item()


model = StateSpace()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(400):
    u, y = tank(32)
    loss = nn.functional.mse_loss(model(u), y)
    optimizer.zero_grad()
    loss.backward()
    norm = gradient_norm(model)
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4g}, gradient norm {norm:.3g}")

with torch.no_grad():
    u, y = tank(500)
    print(f"final mse over variance {(nn.functional.mse_loss(model(u), y) / y.var()).item():.4g}")
