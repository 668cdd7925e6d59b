# cause: same-batch-again
# symptom: the training loss goes to nearly 0 while the error on other samples stays large and rises
import torch
import torch.nn as nn


class HeatData(torch.utils.data.Dataset):
    """(conductivity, source position, source strength, x) -> stationary temperature on a rod of length 1"""

    def __init__(self, n):
        k = 0.5 + torch.rand(n)
        s = 0.1 + 0.8 * torch.rand(n)
        q = 2.0 * torch.rand(n) - 1.0
        x = torch.rand(n)
        green = torch.where(x < s, x * (1 - s), s * (1 - x))
        self.inputs = torch.stack([k - 1, 2 * s - 1, q, 2 * x - 1], dim=1)
        self.temp = (10 * q * green / k).unsqueeze(1)

    def __len__(self):
        return self.inputs.shape[0]

    def __getitem__(self, i):
        return self.inputs[i], self.temp[i]


class Surrogate(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.l1 = nn.Linear(4, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, 1)
        self.act = nn.SiLU()

    def forward(self, v):
        return self.l3(self.act(self.l2(self.act(self.l1(v)))))


torch.manual_seed(6)
loader = torch.utils.data.DataLoader(HeatData(1600), batch_size=32, shuffle=True)
check = HeatData(400)
net = Surrogate()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
lossf = nn.MSELoss()
batches = iter(loader)
inputs, temp = next(batches)  # <- fault
for it in range(600):  # <- fault
    pred = net(inputs)  # <- fault
    loss = lossf(pred, temp)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (it + 1) % 100 == 0:
        with torch.no_grad():
            err = lossf(net(check.inputs), check.temp).item()
        print(f"iteration {it + 1:4d}  training mse {loss.item():.6f}  check mse {err:.4f}  (variance {check.temp.var().item():.3f})")
