import torch
import torch.nn as nn
from torch.nn import functional as F

text = "hello world, the quick brown fox jumps over the lazy dog. " * 8
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])


class CharLSTM(nn.Module):
    def __init__(self, vocab, emb=16, hidden=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        out, state = self.lstm(self.embed(x), state)
        return self.head(out), state


model = CharLSTM(len(chars))
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
seq, batch = 24, 8
state = None
for step in range(20):
    start = torch.randint(0, len(data) - seq - 1, (batch,))
    x = torch.stack([data[s : s + seq] for s in start])
    y = torch.stack([data[s + 1 : s + seq + 1] for s in start])
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = model(x, state)
    loss = F.cross_entropy(logits.transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.3f} ppl {loss.exp():.3f} norm {norm:.3f}")


@torch.no_grad()
def generate(model, start="h", length=20, temperature=0.8):
    model.eval()
    x, state, out = torch.tensor([[stoi[start]]]), None, start
    for _ in range(length):
        logits, state = model(x, state)
        probs = F.softmax(logits[0, -1] / temperature, dim=-1)
        nxt = torch.multinomial(probs, 1)
        out += chars[int(nxt)]
        x = nxt.view(1, 1)
    return out


print(repr(generate(model)))
print(model.lstm._parameters.keys() if hasattr(model.lstm, "_parameters") else None)
gru = nn.GRU(4, 6, bidirectional=True, batch_first=True, dropout=0.0)
packed = nn.utils.rnn.pack_padded_sequence(
    torch.randn(3, 5, 4), torch.tensor([5, 3, 2]), batch_first=True
)
out, h = gru(packed)
padded, lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
print(padded.shape, lengths, h.shape, packed.batch_sizes)
rnn_layer = nn.RNN(len(chars), 8, nonlinearity="relu")
Y, new = rnn_layer(F.one_hot(data[:6].view(3, 2), len(chars)).float(), torch.zeros(1, 2, 8))
print(Y.shape, new.shape, gru)
cell = nn.LSTMCell(3, 4)
hx, cx = torch.zeros(2, 4), torch.zeros(2, 4)
for t in range(3):
    hx, cx = cell(torch.ones(2, 3) * t, (hx, cx))
print(hx.detach())
