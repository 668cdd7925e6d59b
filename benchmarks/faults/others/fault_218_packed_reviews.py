# cause: labels-mismatched
# symptom: the loss stays near that of guessing although the words tell the mood (accuracy 0.540; without the fault: accuracy 1.000)
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(81)


class Reviews(Dataset):
    """Token ids 1..49 are neutral, 50..59 good, 60..69 bad words."""

    def __init__(self, n):
        self.items = []
        for _ in range(n):
            label = int(torch.randint(2, (1,)))
            length = int(torch.randint(5, 25, (1,)))
            tokens = torch.randint(1, 50, (length,))
            marked = torch.rand(length) < 0.3
            marked[0] = True
            mood = torch.randint(50, 60, (length,)) + 10 * (1 - label)
            self.items.append((torch.where(marked, mood, tokens), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    labels = torch.tensor([label for _, label in batch])  # <- fault
    # longest first, as packing wants it
    sequences = sorted((tokens for tokens, _ in batch), key=len, reverse=True)  # <- fault
    lengths = torch.tensor([len(s) for s in sequences])
    return pad_sequence(sequences, batch_first=True), lengths, labels  # <- fault


class Mood(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(70, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.words(tokens), lengths, batch_first=True)
        return self.head(self.gru(packed)[1][-1])


model = Mood()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    total = 0.0
    loader = DataLoader(Reviews(700), batch_size=35, shuffle=True, collate_fn=collate)
    for tokens, lengths, labels in loader:
        loss = nn.functional.cross_entropy(model(tokens, lengths), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.3f}")

hits = 0
for tokens, label in Reviews(200):
    hits += model(tokens[None], torch.tensor([len(tokens)])).argmax().item() == label
print(f"final accuracy {hits / 200:.3f}")
