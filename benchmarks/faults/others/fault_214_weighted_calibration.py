# cause: broadcast-in-loss
# symptom: bad readings pull the fit although they have hardly any weight (coefficient error 2.637; without the fault: coefficient error 0.025)
import torch

torch.manual_seed(64)

# Calibrate a probe: voltage = c0 + c1 T + c2 T^2, readings with known standard errors.
COEF = torch.tensor([0.5, -1.2, 0.8])
n = 400
temp = torch.rand(n) * 2 - 1
sigma = torch.where(torch.rand(n) < 0.4, 8.0, 0.05)
bias = torch.where(sigma > 1, 6.0 * temp, torch.zeros(n))
voltage = torch.stack([torch.ones(n), temp, temp**2], 1) @ COEF + bias + sigma * torch.randn(n)

table = torch.stack([temp, voltage, sigma], dim=1)
powers = torch.stack([table[:, 0] ** k for k in range(3)], dim=1)
measured = table[:, 1]
weight = 1.0 / table[:, 2:] ** 2  # <- fault
weight = weight / weight.mean()

coef = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.Adam([coef], lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 400, gamma=0.3)

for step in range(1200):
    predicted = powers @ coef
    chi2 = (weight * (predicted - measured) ** 2).mean()  # <- fault
    optimizer.zero_grad()
    chi2.backward()
    optimizer.step()
    scheduler.step()
    if step % 300 == 0:
        print(f"step {step} chi2 {chi2.item():.4f}")

print("true", COEF.tolist())
print("found", [round(c, 3) for c in coef.tolist()])
print(f"final coefficient error {(coef.detach() - COEF).norm().item():.3f}")
