# cause: zero_grad-misplaced
# symptom: loss and accuracy stay where they began, no weight ever changes
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ReviewNet(nn.Module):
    """Bag of words -> sentiment (3 classes)."""

    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.fc1 = nn.Linear(dim, 32)
        self.fc2 = nn.Linear(32, classes)

    def forward(self, tokens):
        v = self.embed(tokens).mean(dim=1)
        return self.fc2(torch.relu(self.fc1(v)))


def fake_reviews(n, vocab=300, length=20):
    y = torch.randint(0, 3, (n,))
    common = torch.randint(90, vocab, (n, length))
    typical = torch.randint(0, 30, (n, length)) + 30 * y.unsqueeze(1)
    pick = torch.rand(n, length) < 0.35
    return torch.where(pick, typical, common), y


class Trainer:
    def __init__(self, model, lr=5e-3, clip=1.0):
        self.model = model
        self.clip = clip
        self.loss_fn = nn.CrossEntropyLoss()
        self.optim = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)

    def train_step(self, tokens, y):
        logits = self.model(tokens)
        loss = self.loss_fn(logits, y)
        loss.backward()
        self.optim.zero_grad()  # <- fault
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optim.step()
        return loss.item(), (logits.argmax(1) == y).sum().item()

    def fit(self, loader, epochs):
        for ep in range(1, epochs + 1):
            tot, hit, seen = 0.0, 0, 0
            for tokens, y in loader:
                l, h = self.train_step(tokens, y)
                tot += l * len(y)
                hit += h
                seen += len(y)
            print(f"[{ep}/{epochs}] loss={tot / seen:.4f} acc={hit / seen:.3f}")


if __name__ == "__main__":
    torch.manual_seed(11)
    tokens, y = fake_reviews(1500)
    loader = DataLoader(TensorDataset(tokens, y), batch_size=50, shuffle=True)
    Trainer(ReviewNet(300, 24, 3)).fit(loader, epochs=6)
