# Bags of words: EmbeddingBag classification with offsets, text CNN, n-grams.
import re
from collections import Counter, OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset, Subset, ConcatDataset, ChainDataset, get_worker_info
from torch.utils.data.dataset import random_split

torch.manual_seed(0)
topics = {
    "sea": "the boat left the harbour at dawn and sailed past the lighthouse toward the open water",
    "farm": "the farmer fed the cows and cut the hay before the rain came over the green hill",
    "city": "the train stopped under the tower while buses and cars filled the crowded street",
}
labels = {k: i for i, k in enumerate(topics)}
gen = torch.Generator().manual_seed(1)
corpus = []
for k, text in topics.items():
    words = text.split()
    for _ in range(20):
        n = int(torch.randint(4, 9, (), generator=gen))
        corpus.append((labels[k], " ".join(words[j] for j in torch.randint(len(words), (n,), generator=gen).tolist())))
counter = Counter(w for _, t in corpus for w in re.findall(r"\w+", t))
vocab = OrderedDict((w, i + 1) for i, (w, _) in enumerate(sorted(counter.items(), key=lambda p: (-p[1], p[0]))))
vocab["<unk>"] = 0
vocab.move_to_end("<unk>", last=False)


def encode(text):
    return torch.tensor([vocab.get(w, 0) for w in text.split()], dtype=torch.int64)


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for label, text in batch:
        label_list.append(label)
        ids = encode(text)
        text_list.append(ids)
        offsets.append(ids.size(0))
    return torch.tensor(label_list, dtype=torch.int64), torch.cat(text_list), torch.tensor(offsets[:-1]).cumsum(dim=0)


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class, mode):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, mode=mode, sparse=False, padding_idx=0)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


train, test = random_split(corpus, [48, 12], generator=torch.Generator().manual_seed(0))
for mode in ("mean", "sum", "max"):
    model = TextClassificationModel(len(vocab), 16, 3, mode)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.9)
    for epoch in range(3):
        for label, text, offsets in DataLoader(train, batch_size=8, shuffle=True, collate_fn=collate_batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(text, offsets), label)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        label, text, offsets = next(iter(DataLoader(test, batch_size=12, collate_fn=collate_batch)))
        print(mode, f"{loss.item():.4f}", (model(text, offsets).argmax(1) == label).sum().item())
bag = nn.EmbeddingBag.from_pretrained(torch.arange(12.0).view(6, 2), mode="sum", include_last_offset=True)
print(bag(torch.tensor([0, 1, 5, 2]), torch.tensor([0, 1, 1, 4]), per_sample_weights=torch.tensor([1.0, 2, 3, 4])), bag)

glove = nn.Embedding.from_pretrained(torch.eye(4), freeze=True, padding_idx=0)
print(glove(torch.tensor([[1, 0], [3, 3]])), glove.weight.requires_grad, glove, nn.Embedding(5, 2, max_norm=1.0)(torch.tensor([1, 1])))


class TextCNN(nn.Module):
    def __init__(self, n, d, widths=(2, 3), channels=6):
        super().__init__()
        self.embed = nn.Embedding(n, d, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(d, channels, w, padding=w - 1) for w in widths])
        self.norm = nn.BatchNorm1d(channels * len(widths))
        self.fc = nn.Linear(channels * len(widths), 3)

    def forward(self, x):
        e = self.embed(x).permute(0, 2, 1)
        h = torch.cat([F.max_pool1d(F.relu(c(e)), c(e).size(2)).squeeze(2) for c in self.convs], 1)
        return self.fc(F.dropout(self.norm(h), 0.2, self.training))


class Stream(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        info = get_worker_info()
        assert info is None
        for label, text in self.rows:
            yield label, F.pad(encode(text), (0, 9))[:9]


cnn = TextCNN(len(vocab), 10)
opt = torch.optim.SGD(cnn.parameters(), lr=0.1, momentum=0.9, dampening=0.1)
stream = ChainDataset([Stream(corpus[::2]), Stream(corpus[1::2])])
for label, text in DataLoader(stream, batch_size=20, drop_last=False):
    loss = F.multi_margin_loss(cnn(text), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("cnn", f"{loss.item():.4f}", cnn.embed.weight.grad[0].abs().sum())
both = ConcatDataset([Subset(corpus, [0, 1]), corpus[5:7]])
print(len(both), both[3] == corpus[6], both.cumulative_sizes, dict(Counter(l for l, _ in corpus)))
N = torch.zeros(len(vocab), len(vocab), dtype=torch.int32)
for _, t in corpus:
    for a, b in zip(t.split(), t.split()[1:]):
        N[vocab[a], vocab[b]] += 1
P = (N + 1).float()
P /= P.sum(1, keepdims=True)
g = torch.Generator().manual_seed(2147483647)
names, ix, out = list(vocab), vocab["the"], []
for _ in range(8):
    ix = torch.multinomial(P[ix], num_samples=1, replacement=True, generator=g).item()
    out.append(names[ix])
print(" ".join(out), P.log()[N > 0].mean())
