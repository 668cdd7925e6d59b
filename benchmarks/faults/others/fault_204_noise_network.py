# cause: step-without-backward
# symptom: the predicted noise never moves from its start (negative log likelihood 0.586; without the fault: negative log likelihood -0.896)
import torch
import torch.nn as nn

torch.manual_seed(21)


def mlp(n_in, n_out, width=40):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, n_out)
    )


# House heating: use depends on temperature, and so does its scatter.
def sample(n):
    temp = torch.rand(n, 1) * 4 - 2
    scatter = torch.exp(1.2 * temp - 1.5)
    return temp, torch.sin(2 * temp) + scatter * torch.randn(n, 1)


mean_net, scale_net = mlp(1, 1), mlp(1, 1)
mean_opt = torch.optim.Adam(mean_net.parameters(), lr=5e-3)
scale_opt = torch.optim.Adam(scale_net.parameters(), lr=5e-3)
temp, use = sample(2000)

for step in range(600):
    rows = torch.randint(0, 2000, (128,))
    t, u = temp[rows], use[rows]

    mean = mean_net(t)
    fit_loss = (mean - u).abs().mean()
    mean_opt.zero_grad()
    fit_loss.backward()
    mean_opt.step()

    log_scale = scale_net(t)
    z = (u - mean.detach()) / log_scale.exp()
    scale_loss = (log_scale + 0.5 * z**2).mean()  # <- fault
    scale_opt.zero_grad()  # <- fault
    scale_opt.step()  # <- fault

    if step % 100 == 0:
        print(f"{step:4d} fit {fit_loss.item():.3f} scale {scale_loss.item():.3f}")

with torch.no_grad():
    t, u = sample(1000)
    s = scale_net(t)
    nll = (s + 0.5 * ((u - mean_net(t)) / s.exp()) ** 2).mean()
print(f"final negative log likelihood {nll.item():.3f}")
