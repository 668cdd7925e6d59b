import torch
import torch.nn as nn


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def odeint(func, y0, ts, method="rk4"):
    ys = [y0]
    for t0, t1 in zip(ts[:-1], ts[1:]):
        h, y = t1 - t0, ys[-1]
        if method == "euler":
            ys.append(y + h * func(t0, y))
        else:
            k1 = func(t0, y)
            k2 = func(t0 + h / 2, y + h / 2 * k1)
            k3 = func(t0 + h / 2, y + h / 2 * k2)
            k4 = func(t1, y + h * k3)
            ys.append(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return torch.stack(ys)


true_y0 = torch.tensor([[2.0, 0.0]])
t = torch.linspace(0.0, 2.0, 40)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
with torch.no_grad():
    true_y = odeint(lambda t, y: torch.mm(y**3, true_A), true_y0, t)
print(true_y[-1], true_y.shape)
func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-2)
for itr in range(8):
    s = torch.randint(0, 30, (6,))
    batch_y0 = true_y[s]
    batch_t = t[:10]
    batch_y = torch.stack([true_y[s + i] for i in range(10)], dim=0)
    optimizer.zero_grad()
    pred_y = odeint(func, batch_y0, batch_t, "euler" if itr % 2 else "rk4")
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    print("Iter {:04d} | Total Loss {:.6f}".format(itr, loss.item()))
