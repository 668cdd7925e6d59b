# cause: relu-dead
# symptom: both convolutions give only zeros (test accuracy 0.195; without the fault: test accuracy 1.000)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

# Tones in noise: which of 5 frequencies is in the signal?
FREQ = torch.tensor([3.0, 5.0, 8.0, 12.0, 17.0])


def tones(n, length=96):
    k = torch.randint(0, 5, (n,))
    t = torch.arange(length) / length
    phase = 6.2832 * torch.rand(n, 1)
    clean = torch.sin(6.2832 * FREQ[k][:, None] * t + phase)
    return (clean + 0.8 * torch.randn(n, length)).unsqueeze(1), k


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 9, padding=4),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
        )
        self.classifier = nn.Linear(128, 5)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


x_train, y_train = tones(1024)
x_test, y_test = tones(400)
model = Wave()
for m in model.features:
    if isinstance(m, nn.GroupNorm):
        nn.init.constant_(m.bias, -5.0)  # <- fault
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
MICRO, ACCUMULATE = 16, 4

for epoch in range(4):
    order = torch.randperm(len(x_train))
    optimizer.zero_grad()
    epoch_loss = 0.0
    for i, idx in enumerate(order.split(MICRO)):
        loss = F.cross_entropy(model(x_train[idx]), y_train[idx])
        (loss / ACCUMULATE).backward()
        epoch_loss += loss.item()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch} loss {epoch_loss / (i + 1):.3f}")

with torch.no_grad():
    acc = (model(x_test).argmax(1) == y_test).float().mean()
print(f"final test accuracy {acc.item():.3f}")
