import os
import tempfile

import torch
import torch.nn as nn
import torch.optim as optim


class TheModelClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 6, bias=False)
        self.bn = nn.BatchNorm1d(6)
        self.fc2 = nn.Linear(6, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x))))


model = TheModelClass()
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
print("Model's state_dict:")
for param_tensor in model.state_dict():
    print(param_tensor, "\t", model.state_dict()[param_tensor].size())
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))


def train(model, optimizer, scheduler, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.item()


loss = train(model, optimizer, scheduler, 3)
print("Optimizer's state_dict:")
for var_name in optimizer.state_dict():
    if var_name == "param_groups":
        print(var_name, "\t", optimizer.state_dict()[var_name])
print(sorted(optimizer.state_dict()["state"][0]), scheduler.state_dict()["last_epoch"])
with tempfile.TemporaryDirectory() as folder:
    PATH = os.path.join(folder, "checkpoint.tar")
    torch.save(
        {
            "epoch": 3,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "loss": loss,
        },
        PATH,
    )
    straight = train(model, optimizer, scheduler, 3)
    checkpoint = torch.load(PATH, map_location=torch.device("cpu"), weights_only=True)
del folder, PATH
new = TheModelClass()
opt2 = optim.Adam(new.parameters(), lr=0.5)
sch2 = optim.lr_scheduler.ExponentialLR(opt2, gamma=0.9)
print(new.load_state_dict(checkpoint["model_state_dict"]))
opt2.load_state_dict(checkpoint["optimizer_state_dict"])
sch2.load_state_dict(checkpoint["scheduler"])
torch.set_rng_state(checkpoint["rng"])
resumed = train(new, opt2, sch2, 3)
print(checkpoint.pop("epoch"), abs(straight - resumed) < 1e-6, opt2.param_groups[0]["lr"], sch2.get_last_lr())
del checkpoint["optimizer_state_dict"]
partial = {k: v for k, v in checkpoint["model_state_dict"].items() if not k.startswith("fc2")}
partial["extra"] = torch.zeros(1)
print(new.load_state_dict(partial, strict=False))
try:
    new.load_state_dict(partial)
except RuntimeError as error:
    print(error)
partial["fc1.weight"] = torch.zeros(3, 3)
try:
    new.load_state_dict(partial, strict=False)
except RuntimeError as error:
    print(error)
