# cause: scheduler-too-often
# symptom: the loss stands still after the first few dozen batches (test accuracy 0.280; without the fault: test accuracy 1.000)
import torch
import torch.nn as nn

CONFIG = {"epochs": 6, "batch": 25, "lr": 3e-3, "decay": 0.8, "seed": 44}
torch.manual_seed(CONFIG["seed"])


def draw(n, size=16):
    """Crosses, squares, bars and diagonals on noisy paper."""
    pics = 0.25 * torch.randn(n, 1, size, size)
    kinds = torch.randint(0, 4, (n,))
    for pic, kind in zip(pics, kinds.tolist()):
        r, c = torch.randint(1, size - 7, (2,)).tolist()
        patch = pic[0, r : r + 6, c : c + 6]
        if kind == 0:
            patch[2] += 1
            patch[:, 2] += 1
        elif kind == 1:
            patch[0] += 1
            patch[-1] += 1
            patch[1:-1, 0] += 1
            patch[1:-1, -1] += 1
        elif kind == 2:
            patch[2:4] += 1
        else:
            patch += torch.eye(6)
    return pics, kinds


def train_epoch(model, batches, optimizer, scheduler, criterion):
    model.train()
    total = 0.0
    for pics, kinds in batches:
        optimizer.zero_grad()
        loss = criterion(model(pics), kinds)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- fault
        total += loss.item()
    return total / len(batches)


model = nn.Sequential(
    nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
    nn.Flatten(), nn.Linear(96, 4),
)
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, CONFIG["decay"])  # <- fault
pics, kinds = draw(1200)
test_pics, test_kinds = draw(300)

for epoch in range(CONFIG["epochs"]):
    order = torch.randperm(len(pics)).split(CONFIG["batch"])
    batches = [(pics[i], kinds[i]) for i in order]
    mean = train_epoch(model, batches, optimizer, scheduler, nn.CrossEntropyLoss())
    print(f"epoch {epoch}: loss {mean:.3f}, rate {scheduler.get_last_lr()[0]:.1e}")

model.eval()
with torch.no_grad():
    accuracy = (model(test_pics).argmax(1) == test_kinds).float().mean().item()
print(f"final test accuracy {accuracy:.3f}")
