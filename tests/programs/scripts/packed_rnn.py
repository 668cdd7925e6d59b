# Recurrent nets on packed sequences, cells by hand, language models with truncated backpropagation.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpad_sequence, unpack_sequence, invert_permutation

torch.manual_seed(2)
vocab = ["<pad>"] + sorted(set("long_str tiny medium"))
words = ["long_str", "tiny", "medium"]
seqs = [torch.tensor([vocab.index(c) for c in w]) for w in words]
lengths = torch.tensor([len(s) for s in seqs])
padded = pad_sequence(seqs, batch_first=True)
print(padded, lengths)
embed = nn.Embedding(len(vocab), 4, padding_idx=0)
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    rnn = kind(4, 5, num_layers=2, bidirectional=True, batch_first=True)
    packed = pack_padded_sequence(embed(padded), lengths, batch_first=True, enforce_sorted=False)
    out, h = rnn(packed)
    print(packed.data.shape, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
    unpacked, n = pad_packed_sequence(out, batch_first=True, padding_value=0.0, total_length=10)
    print(unpacked.shape, n, unpacked.sum((1, 2)))
    hn = h[0] if isinstance(h, tuple) else h
    last = hn.view(2, 2, 3, 5)[-1].transpose(0, 1).reshape(3, -1)
    alone = [rnn(embed(s)[None])[1] for s in seqs]
    alone = torch.stack([(a[0] if isinstance(a, tuple) else a).view(2, 2, 5)[-1].reshape(-1) for a in alone])
    print(kind.__name__, torch.allclose(last, alone, atol=1e-6))
    mask = torch.arange(10)[None] < n[:, None]
    pooled = unpacked.masked_fill(~mask[..., None], float("-inf")).amax(1)
    (pooled.sum() + last.pow(2).sum()).backward()
    print(embed.weight.grad.norm(dim=1)[:4])
    embed.zero_grad()
ps = pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5]), torch.tensor([6])])
print(ps, isinstance(ps, PackedSequence), ps.to(torch.float32).data.dtype, ps.is_cuda)
print([t.tolist() for t in unpack_sequence(ps)], [t.tolist() for t in unpad_sequence(padded, lengths, batch_first=True)])
print(invert_permutation(torch.tensor([2, 0, 1])))
for bad in (lambda: pack_padded_sequence(embed(padded), torch.tensor([1, 2, 3]), batch_first=True), lambda: pack_padded_sequence(embed(padded), torch.tensor([3, 2, 0]), batch_first=True)):
    try:
        bad()
    except Exception as e:
        print(type(e).__name__, str(e)[:70])


class CharLM(nn.Module):
    def __init__(self, n, dim=24, layers=2):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(n, dim)
        self.rnn = nn.LSTM(dim, dim, layers, dropout=0.1)
        self.decoder = nn.Linear(dim, n)
        self.decoder.weight = self.encoder.weight
        self.init_weights()
        self.dim, self.layers = dim, layers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        for name, p in self.rnn.named_parameters():
            if "weight_hh" in name:
                for chunk in p.chunk(4):
                    nn.init.orthogonal_(chunk.data)
            elif "bias_hh" in name:
                p.data[self.rnn.hidden_size : 2 * self.rnn.hidden_size].fill_(1.0)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return F.log_softmax(self.decoder(self.drop(out)).view(-1, self.encoder.num_embeddings), dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.layers, bsz, self.dim), weight.new_zeros(self.layers, bsz, self.dim))


text = "the cat sat on the mat and the dog sat on the log while the hen sat on the den. " * 8
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


data = batchify(ids, 8)
model = CharLM(len(chars))
lr, best = 5.0, None
for epoch in range(3):
    hidden, total = model.init_hidden(8), 0.0
    for i in range(0, data.size(0) - 1, 16):
        n = min(16, len(data) - 1 - i)
        x, y = data[i : i + n], data[i + 1 : i + 1 + n].reshape(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        out, hidden = model(x, hidden)
        loss = F.nll_loss(out, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item() * n
    ppl = torch.exp(torch.tensor(total / len(data)))
    print(f"epoch {epoch} ppl {ppl:.3f}")
    if best is not None and ppl > best:
        lr /= 4
    best = ppl
model.eval()
hidden = model.init_hidden(1)
x = torch.tensor([[chars.index("t")]])
out = ["t"]
with torch.no_grad():
    for _ in range(25):
        logits, hidden = model(x, hidden)
        weights = logits.squeeze().div(0.8).exp()
        pick = torch.multinomial(weights, 1)[0]
        x.fill_(pick)
        out.append(chars[pick])
print("".join(out))
print(nn.LSTM(3, 2, num_layers=2, batch_first=True, bidirectional=True)._parameters.keys(), nn.GRU(3, 2, bidirectional=True), nn.RNN(3, 2, nonlinearity="relu")(torch.ones(1, 3))[0])
cell = nn.LSTMCell(3, 4)
hx = cx = torch.zeros(2, 4)
outs = []
for t in torch.randn(5, 2, 3):
    hx, cx = cell(t, (hx, cx))
    outs.append(hx)
torch.stack(outs).sum().backward()
print(cell.weight_ih.grad.sum(), nn.GRUCell(3, 4)(torch.ones(3)).shape, nn.RNNCell(3, 4, nonlinearity="relu")(torch.ones(1, 3)).shape)
