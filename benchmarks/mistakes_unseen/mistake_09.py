# remedy: sigmoid's result is needed for its gradient, do not change it in place: gate = gate * 2 instead of gate *= 2
import torch
import torch.nn as nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // 4)
        self.fc2 = nn.Linear(channels // 4, channels)

    def forward(self, x):
        gate = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.fc2(torch.relu(self.fc1(gate))))
        gate *= 2  # <- fault
        return x * gate[:, :, None, None]


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.Sequential(nn.ReLU(), SqueezeExcite(16)),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 2),
)
loss = model(torch.randn(4, 3, 8, 8)).pow(2).mean()
loss.backward()
