# cause: zero_grad-misplaced
# symptom: the parameters stay at their first guess (explained variance -1.279; without the fault: explained variance 0.991)
"""Fit a damped oscillation a * exp(-g t) * cos(w t + p) + c to noisy readings."""
import torch

torch.manual_seed(12)
TRUE = dict(a=1.8, g=0.35, w=2.4, p=0.6, c=0.5)
t = torch.linspace(0, 8, 160)


def curve(a, g, w, p, c):
    return a * torch.exp(-g * t) * torch.cos(w * t + p) + c


readings = curve(**TRUE) + 0.05 * torch.randn(160)
params = {
    name: torch.tensor(guess, requires_grad=True)
    for name, guess in dict(a=1.0, g=0.1, w=2.1, p=0.0, c=0.0).items()
}
fit = torch.optim.LBFGS(params.values(), lr=0.5, max_iter=10, history_size=10)


def residual():
    return (curve(**params) - readings).pow(2).sum()


def closure():
    value = residual()
    value.backward()
    fit.zero_grad()  # <- fault
    return value


for round_ in range(12):
    before = fit.step(closure)
    if round_ % 3 == 0:
        print(f"round {round_}: sum of squares {before.item():.4f}")

for name, p in params.items():
    print(f"  {name}: {p.item():.3f} (true {TRUE[name]:.3f})")
with torch.no_grad():
    explained = 1 - residual() / (readings - readings.mean()).pow(2).sum()
print(f"final explained variance {explained.item():.3f}")
