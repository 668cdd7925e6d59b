# cause: softmax-before-cross-entropy
# symptom: the loss sinks only little and some classes are never predicted (accuracy 0.808; without the fault: accuracy 1.000)
import math

import torch
import torch.nn as nn

torch.manual_seed(77)

CLASSES, CHANNELS, STEPS = 10, 4, 64


def record(n):
    k = torch.randint(CLASSES, (n,))
    t = torch.arange(STEPS) / STEPS
    freq = (2.0 + 1.5 * k.float())[:, None, None]
    shift = torch.arange(CHANNELS)[None, :, None] * 0.7 + 2 * math.pi * torch.rand(n, 1, 1)
    return torch.sin(2 * math.pi * freq * t + shift) + 0.5 * torch.randn(n, CHANNELS, STEPS), k


class BrainNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv1d(CHANNELS, 24, kernel_size=11, padding=5),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(24, 32, kernel_size=7, padding=3),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(32, CLASSES),
            nn.Softmax(dim=1),  # <- fault
        )


net = BrainNet()
criterion = nn.CrossEntropyLoss()
sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
x, y = record(1600)

for epoch in range(8):
    losses = torch.zeros(0)
    for b in torch.randperm(1600).view(-1, 40):
        sgd.zero_grad()
        loss = criterion(net(x[b]), y[b])  # <- fault
        loss.backward()
        sgd.step()
        losses = torch.cat([losses, loss.detach().view(1)])
    print(f"epoch {epoch}  loss {losses.mean().item():.4f}")

x, y = record(500)
with torch.inference_mode():
    guess = net(x).argmax(dim=1)
print("classes predicted:", guess.unique().tolist())
print(f"final accuracy {(guess == y).float().mean().item():.3f}")
