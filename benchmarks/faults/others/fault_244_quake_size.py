# cause: loss-at-chance
# symptom: the loss of three classes stays at 1.1 however long it trains (accuracy 0.344; without the fault: accuracy 1.000)
import torch
import torch.nn as nn

torch.manual_seed(73)


# Seismograms of weak, middling and strong quakes: the same wave form, higher or lower.
def seismograms(n, length=80):
    size = torch.randint(0, 3, (n,))
    t = torch.linspace(0, 1, length)
    start = 0.1 + 0.4 * torch.rand(n, 1)
    envelope = torch.exp(-6 * (t - start).clamp(min=0)) * (t > start)
    wave = envelope * torch.sin(2 * torch.pi * (8 + 4 * torch.rand(n, 1)) * t)
    height = 2.0 ** size.float()[:, None] * (0.85 + 0.3 * torch.rand(n, 1))
    return height * (wave + 0.02 * torch.randn(n, length)), size


def preprocess(traces):
    traces = traces - traces.mean(dim=1, keepdim=True)
    return traces / traces.std(dim=1, keepdim=True)  # <- fault


class QuakeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(1, 12, 7, stride=2, padding=3)
        self.c2 = nn.Conv1d(12, 16, 5, stride=2, padding=2)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        x = torch.relu(self.c1(x.unsqueeze(1)))
        x = torch.relu(self.c2(x))
        return self.head(x.amax(dim=2))


def main():
    model = QuakeNet()
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(8):
        total = 0.0
        for _ in range(30):
            traces, size = seismograms(48)
            loss = loss_fn(model(preprocess(traces)), size)  # <- fault
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() / 30
        print(f"epoch {epoch} loss {total:.3f}")
    traces, size = seismograms(800)
    with torch.no_grad():
        guess = model(preprocess(traces)).argmax(1)
    print(f"final accuracy {(guess == size).float().mean().item():.3f}")


main()
