import torch
import torch.nn as nn
import random

random.seed(5)
torch.manual_seed(5)

# A small language: subject verb object, verbs agree with the subject.
subjects = [("the cat", "s"), ("the dogs", ""), ("a bird", "s"), ("two fish", "")]
verbs = ["see", "eat", "like", "hear"]
objects = ["the corn", "a worm", "some milk", "the rain"]
sentences = []
for _ in range(900):
    who, ending = random.choice(subjects)
    sentences.append(f"{who} {random.choice(verbs)}{ending} {random.choice(objects)}. ")
text = "".join(sentences)

chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in text])
train_ids, val_ids = ids[: int(0.9 * len(ids))], ids[int(0.9 * len(ids)) :]


class CharLSTM(nn.Module):
    def __init__(self, vocab, emb=24, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        out, state = self.lstm(self.embed(x), state)
        return self.head(out), state


def batchify(stream, batch, length):
    n = len(stream) // batch
    stream = stream[: n * batch].view(batch, n)
    for i in range(0, n - 1, length):
        stop = min(i + length, n - 1)
        yield stream[:, i:stop], stream[:, i + 1 : stop + 1]


model = CharLSTM(len(chars))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(4):
    state = None
    for k, (x, y) in enumerate(batchify(train_ids, 16, 32)):
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = loss_fn(logits.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if k % 20 == 0:
            print(f"epoch {epoch} batch {k} loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    x, y = val_ids[:-1][None], val_ids[1:][None]
    logits, _ = model(x)
    val = loss_fn(logits[0], y[0]).item()
print(f"final validation loss {val:.3f}")
