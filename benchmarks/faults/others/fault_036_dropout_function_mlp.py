# cause: functional-dropout-always
# symptom: the test error is noisy and larger (error of the age 3.00 years, accuracy of the group 0.920; without the fault: error of the age 2.46 years, accuracy of the group 0.932)
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)


def people(n):
    """Ten answers of a form; the tasks are an age (regression) and a sort of customer (3 classes)."""
    z = torch.randn(n, 4)
    answers = torch.cat([z, z[:, :2] * z[:, 2:], torch.tanh(z)], dim=1) + 0.1 * torch.randn(n, 10)
    age = 45 + 12 * z[:, 0] + 6 * torch.sin(2 * z[:, 1])
    group = torch.bucketize(z[:, 2] + 0.5 * z[:, 3] ** 2, torch.tensor([0.0, 1.0]))
    return answers, age, group


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU())
        self.age_head = nn.Linear(64, 1)
        self.group_head = nn.Linear(64, 3)

    def forward(self, x):
        shared = F.dropout(self.trunk(x), 0.4)  # <- fault
        return {"age": self.age_head(shared).squeeze(-1), "group": self.group_head(shared)}


train = TensorDataset(*people(1500))
x_val, age_val, group_val = people(500)
AGE_MEAN, AGE_STD = 45.0, 13.0

model = TwoHeads()
losses = {"age": nn.SmoothL1Loss(), "group": nn.CrossEntropyLoss()}
optimizer = torch.optim.AdamW(
    [
        {"params": model.trunk.parameters(), "lr": 2e-3},
        {"params": model.age_head.parameters(), "lr": 4e-3},
        {"params": model.group_head.parameters(), "lr": 4e-3},
    ]
)

for epoch in range(15):
    for x, age, group in DataLoader(train, batch_size=50, shuffle=True):
        out = model(x)
        loss_age = losses["age"](out["age"], (age - AGE_MEAN) / AGE_STD)
        loss_group = losses["group"](out["group"], group)
        loss = loss_age + 0.5 * loss_group
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: age {loss_age.item():.4f}, group {loss_group.item():.4f}")

model.eval()
with torch.no_grad():
    out = model(x_val)
    mae = (out["age"] * AGE_STD + AGE_MEAN - age_val).abs().mean().item()
    acc = (out["group"].argmax(1) == group_val).float().mean().item()
print(f"final error of the age {mae:.2f} years, accuracy of the group {acc:.3f}")
