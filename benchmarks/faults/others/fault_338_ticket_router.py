# cause: labels-out-of-range
# symptom: IndexError "Target 8 is out of bounds" from cross entropy in the first epoch
import random
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

DESKS = ["billing", "login", "refund", "shipping", "outage", "sales", "privacy", "other"]
VOCAB = 400


class Tickets(Dataset):
    """Support tickets: each record is (word ids, desk number); desk numbers in the export count from one."""

    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.records = []
        for _ in range(n):
            desk = rnd.randint(1, len(DESKS))
            topical = [(desk - 1) * 50 + rnd.randrange(50) for _ in range(6)]
            filler = [rnd.randrange(VOCAB) for _ in range(9)]
            self.records.append((topical + filler, desk))

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        words, desk = self.records[i]
        return torch.tensor(words), torch.tensor(desk)  # <- fault


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCAB, 32, mode="mean")
        self.fc = nn.Linear(32, len(DESKS))  # <- fault

    def forward(self, words):
        return self.fc(self.bag(words))


def accuracy(model, loader):
    right = total = 0
    with torch.no_grad():
        for words, desk in loader:
            right += (model(words).argmax(1) == desk).sum().item()
            total += len(desk)
    return right / total


def main():
    torch.manual_seed(0)
    train_dl = DataLoader(Tickets(2000, seed=1), batch_size=64, shuffle=True)
    test_dl = DataLoader(Tickets(400, seed=2), batch_size=200)
    model = Router()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(6):
        seen = 0.0
        for words, desk in train_dl:
            optimizer.zero_grad()
            loss = loss_fn(model(words), desk)  # <- fault
            loss.backward()
            optimizer.step()
            seen += loss.item()
        print(epoch, "loss", round(seen / len(train_dl), 4), "acc", accuracy(model, test_dl))


if __name__ == "__main__":
    main()
