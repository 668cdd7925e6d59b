# cause: data-unshuffled
# symptom: loss near zero at the end of each epoch with great jumps in between; most answers name the last species, test accuracy swings far below what is possible
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SPECIES = ["oak", "beech", "birch", "maple"]


def measure_leaves(per_species, gen):
    centres = torch.tensor([
        [1.0, 0.5, -0.5, 0.2, 0.0],
        [-0.5, 1.0, 0.5, -0.3, 0.4],
        [0.3, -1.0, 0.8, 0.6, -0.4],
        [-0.8, -0.4, -1.0, 0.1, 0.5],
    ])
    xs, ys = [], []
    for k in range(len(SPECIES)):
        xs.append(centres[k] + 0.5 * torch.randn(per_species, 5, generator=gen))
        ys.append(torch.full((per_species,), k))
    return torch.cat(xs), torch.cat(ys)  # <- fault


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(100)
    train_set = TensorDataset(*measure_leaves(400, gen))
    test_x, test_y = measure_leaves(100, gen)
    loader = DataLoader(train_set, batch_size=20)  # <- fault
    model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(8):
        model.train()
        last = 0.0
        worst = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            last = loss.item()
            worst = max(worst, last)
        model.eval()
        with torch.no_grad():
            said = model(test_x).argmax(dim=1)
        acc = (said == test_y).float().mean().item()
        counts = torch.bincount(said, minlength=4).tolist()
        print(f"epoch {epoch}: last loss {last:.4f} worst {worst:.2f} test acc {acc:.3f} answers {dict(zip(SPECIES, counts))}")


if __name__ == "__main__":
    main()
