# cause: step-missing
# symptom: the loss stays where it began (explained variance -0.407; without the fault: explained variance 0.975)
import torch
import torch.nn as nn

torch.manual_seed(7)

LENGTH = 64
t = torch.linspace(0, 1, LENGTH)


def make_signals(n):
    c1 = 0.1 + 0.35 * torch.rand(n, 1)
    c2 = 0.55 + 0.35 * torch.rand(n, 1)
    h = 0.5 + torch.rand(n, 1)
    return torch.exp(-((t - c1) ** 2) / 0.005) + h * torch.exp(-((t - c2) ** 2) / 0.003)


class Encoder(nn.Module):
    def __init__(self, code=4):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(8, 16, 5, stride=2, padding=2)
        self.fc = nn.Linear(16 * 16, code)

    def forward(self, x):
        x = torch.relu(self.conv1(x[:, None, :]))
        x = torch.relu(self.conv2(x))
        return self.fc(x.reshape(len(x), -1))


class Decoder(nn.Module):
    def __init__(self, code=4):
        super().__init__()
        self.fc = nn.Linear(code, 16 * 16)
        self.up1 = nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose1d(8, 1, 4, stride=2, padding=1)

    def forward(self, z):
        x = torch.relu(self.fc(z)).view(-1, 16, 16)
        x = torch.relu(self.up1(x))
        return self.up2(x)[:, 0]


encoder, decoder = Encoder(), Decoder()
parameters = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(parameters, lr=2e-3)

data = make_signals(1024)
held_out = make_signals(256)
variance = held_out.var().item()

for epoch in range(30):
    total = 0.0
    for batch in data[torch.randperm(len(data))].split(64):
        noisy = batch + 0.05 * torch.randn_like(batch)
        reconstruction = decoder(encoder(noisy))
        loss = ((reconstruction - batch) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()  # <- fault
        total += loss.item()
    if (epoch + 1) % 6 == 0:
        print("epoch", epoch + 1, "mse", round(total / 16, 5))

with torch.no_grad():
    error = ((decoder(encoder(held_out)) - held_out) ** 2).mean().item()
print(f"final explained variance {1 - error / variance:.3f}")
