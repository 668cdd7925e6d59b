# cause: inputs-unscaled
# symptom: the loss stays near ln 4 (test accuracy 0.238; without the fault: test accuracy 0.998)
import torch
from torch import nn

torch.manual_seed(2)

# 8 x 8 pictures of letters L, T, X, O as a scanner gives them: bytes
letters = torch.zeros(4, 8, 8)
letters[0, 1:7, 1:3] = letters[0, 5:7, 1:7] = 1
letters[1, 1:3, 1:7] = letters[1, 1:7, 3:5] = 1
letters[2] = torch.eye(8) + torch.eye(8).flip(1)
letters[3, 1:7, 1:7] = 1
letters[3, 3:5, 3:5] = 0


def scan(n):
    y = torch.randint(0, 4, (n,))
    ink = letters[y].clamp(0, 1)
    rolled = torch.stack([torch.roll(a, (int(r), int(c)), (0, 1)) for a, (r, c) in zip(ink, torch.randint(-1, 2, (n, 2)))])
    pixels = 90 + 60 * rolled + 20 * torch.randn(n, 8, 8)
    return pixels.clamp(0, 255).to(torch.uint8), y


train_x, train_y = scan(1500)
test_x, test_y = scan(500)
train_x, test_x = train_x.float(), test_x.float()  # <- fault

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(25):
    for idx in torch.randperm(1500).split(50):
        loss = nn.functional.cross_entropy(model(train_x[idx]), train_y[idx])  # <- fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {loss.item():.3f}")
with torch.no_grad():
    print(f"final test accuracy {(model(test_x).argmax(1) == test_y).float().mean().item():.3f}")
