# cause: nll-without-log-softmax
# symptom: the loss falls far below zero without end (cross entropy 1.960; without the fault: cross entropy 0.386)
import random

import torch
import torch.nn as nn

random.seed(6)
torch.manual_seed(6)

SYLLABLES = {
    "nordic": ["sven", "bjor", "gud", "hal", "run", "sk", "dottir"],
    "latin": ["vi", "lla", "ro", "mar", "cos", "ta", "ino"],
    "slavic": ["vla", "slav", "mir", "ova", "ich", "dra", "zek"],
}
LANGS = list(SYLLABLES)
WEIGHTS = [6, 2, 1]


def make(n):
    out = []
    for lang in random.choices(range(3), WEIGHTS, k=n):
        parts = [random.choice(SYLLABLES[LANGS[lang]]) for _ in range(random.randint(1, 2))]
        parts.append(random.choice(sum(SYLLABLES.values(), [])))
        random.shuffle(parts)
        out.append(("".join(parts), lang))
    return out


def encode(name, length=14):
    ids = [ord(ch) - ord("a") + 1 for ch in name][:length]
    return ids + [0] * (length - len(ids))


class NameClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(27, 16, padding_idx=0)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, len(LANGS))

    def forward(self, ids):
        _, h = self.gru(self.emb(ids))
        return self.out(h[-1])  # <- fault


train, test = make(900), make(300)
model = NameClassifier()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(6):
    random.shuffle(train)
    total = 0.0
    for i in range(0, len(train), 30):
        names, langs = zip(*train[i : i + 30])
        x, y = torch.tensor([encode(n) for n in names]), torch.tensor(langs)
        loss = criterion(model(x), y)  # <- fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / (len(train) // 30):.3f}")

with torch.no_grad():
    scores = model(torch.tensor([encode(n) for n, _ in test]))
langs = torch.tensor([lang for _, lang in test])
print(f"accuracy {(scores.argmax(1) == langs).float().mean().item():.3f}")
print(f"final cross entropy {nn.functional.cross_entropy(scores, langs).item():.3f}")
