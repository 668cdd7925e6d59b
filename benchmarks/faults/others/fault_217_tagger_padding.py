# cause: labels-out-of-range
# symptom: the first batch stops with an error about a target that is out of bounds (IndexError; without the fault: accuracy 1.000)
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(23)

# Word 0 is padding. A word's tag depends on it and on the word before.
VOCAB, TAGS = 40, 5


def sentence():
    n = int(torch.randint(4, 13, (1,)))
    words = torch.randint(1, VOCAB, (n,))
    before = torch.cat([torch.zeros(1, dtype=torch.long), words[:-1]])
    return words, (words + before % 2) % TAGS


def collate(pairs):
    words, tags = zip(*pairs)
    return (
        pad_sequence(words, batch_first=True),
        pad_sequence(tags, batch_first=True, padding_value=-1),  # <- fault
    )


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, batch_first=True, bidirectional=True)
        self.score = nn.Linear(64, TAGS)

    def forward(self, words):
        return self.score(self.lstm(self.embed(words))[0])


train = DataLoader([sentence() for _ in range(600)], batch_size=30, shuffle=True, collate_fn=collate)
test = DataLoader([sentence() for _ in range(200)], batch_size=50, collate_fn=collate)
tagger = Tagger()
criterion = nn.CrossEntropyLoss()  # <- fault
optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-2)

for epoch in range(6):
    total = 0.0
    for words, tags in train:
        loss = criterion(tagger(words).view(-1, TAGS), tags.view(-1))  # <- fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(train):.3f}")

right = words_seen = 0
with torch.no_grad():
    for words, tags in test:
        real = tags >= 0
        right += (tagger(words).argmax(-1) == tags)[real].sum().item()
        words_seen += real.sum().item()
print(f"final accuracy {right / words_seen:.3f}")
