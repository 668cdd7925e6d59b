# cause: class-missing
# symptom: no row of the held-out fifth is named rightly (test accuracy 0.000; without the fault: test accuracy 1.000)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(36)

# Glass pieces listed by their kind: window, bottle, lamp, tableware, headlight.
KINDS = ["window", "bottle", "lamp", "tableware", "headlight"]
recipe = 1.3 * torch.randn(5, 9)
rows, kinds = [], []
for k in range(5):
    rows.append(recipe[k] + 0.6 * torch.randn(240, 9))
    kinds.append(torch.full((240,), k))
glass, kind = torch.cat(rows), torch.cat(kinds)  # <- fault

cut = int(0.8 * len(glass))  # <- fault
train_set = TensorDataset(glass[:cut], kind[:cut])  # <- fault
test_set = TensorDataset(glass[cut:], kind[cut:])  # <- fault

net = nn.Sequential(nn.Linear(9, 40), nn.LeakyReLU(0.1), nn.Linear(40, 5))
optimizer = torch.optim.RMSprop(net.parameters(), lr=2e-3)
for epoch in range(15):
    for x, y in DataLoader(train_set, batch_size=48, shuffle=True):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d} loss {loss.item():.4f}")


def accuracy(dataset):
    x, y = dataset.tensors
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


print(f"train accuracy {accuracy(train_set):.3f}")
print(f"final test accuracy {accuracy(test_set):.3f}")
