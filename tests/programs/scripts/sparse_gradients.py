# Sparse gradients: embeddings and bags with SparseAdam, SGD and Adagrad beside Adam, clipping, hooks.
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore", message=".*[Ss]parse")

torch.manual_seed(0)
vocabulary, classes = 50, 4
texts = [torch.randint(0, vocabulary, (int(torch.randint(3, 9, ())),)) for _ in range(32)]
labels = torch.stack([text.sum() % classes for text in texts])
flat = torch.cat(texts)
offsets = torch.tensor([0] + [len(text) for text in texts[:-1]]).cumsum(0)


class Classifier(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocabulary, 8, mode=mode, sparse=True)
        self.head = nn.Linear(8, classes)

    def forward(self, text, offsets):
        return self.head(self.bag(text, offsets))


history = {}
for mode in ("sum", "mean"):
    for name, options in (("SparseAdam", {"lr": 0.05}), ("SGD", {"lr": 0.5}), ("Adagrad", {"lr": 0.2})):
        torch.manual_seed(1)
        model = Classifier(mode)
        tables = getattr(torch.optim, name)(model.bag.parameters(), **options)
        others = torch.optim.Adam(model.head.parameters(), lr=0.02)
        losses = []
        for _ in range(20):
            tables.zero_grad()
            others.zero_grad()
            loss = F.cross_entropy(model(flat, offsets), labels)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.head.parameters(), 1.0)
            tables.step()
            others.step()
            losses.append(loss.item())
        grad = model.bag.weight.grad
        history[mode, name] = losses
        print(mode, name, " ".join(f"{each:.4f}" for each in losses[::5]), grad.layout, grad._nnz(), f"{norm:.4f}")

# What the other optimizers say.
model = Classifier("mean")
F.cross_entropy(model(flat, offsets), labels).backward()
for optimizer in (torch.optim.Adam, torch.optim.RMSprop, torch.optim.NAdam):
    try:
        optimizer(model.parameters()).step()
    except RuntimeError as error:
        print(optimizer.__name__, "-", error)
try:
    nn.EmbeddingBag(5, 2, mode="max", sparse=True)(torch.tensor([[1, 2]]))
except (RuntimeError, ValueError) as error:
    print(error)

# Skip-gram with negative samples, two tables, and a hook that sees the sparse gradient.
torch.manual_seed(2)
words, contexts = nn.Embedding(vocabulary, 8, sparse=True), nn.Embedding(vocabulary, 8, sparse=True)
seen = []
handle = words.weight.register_hook(lambda g: seen.append((str(g.layout), tuple(g.shape), g._nnz())))
optimizer = torch.optim.SparseAdam([*words.parameters(), *contexts.parameters()], lr=0.05)
skip_gram = []
for step in range(20):
    center = torch.randint(0, vocabulary, (16,))
    context, negative = (center + 1) % vocabulary, torch.randint(0, vocabulary, (16, 3))
    v = words(center)
    positive = F.logsigmoid((v * contexts(context)).sum(1))
    wrong = F.logsigmoid(-torch.bmm(contexts(negative), v.unsqueeze(2)).squeeze(2)).sum(1)
    loss = -(positive + wrong).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    skip_gram.append(loss.item())
handle.remove()
print(" ".join(f"{each:.4f}" for each in skip_gram[::5]), seen[0], len(seen))

# A sparse parameter of its own: the gradient has its entries.
dense = torch.randn(4, 4).relu()
sparse = dense.to_sparse().requires_grad_()
(torch.sparse.mm(sparse, torch.arange(8.0).view(4, 2)) ** 2).sum().backward()
sparse_grad = sparse.grad.to_dense()
print(sparse.grad.layout, sparse.is_leaf, f"{sparse_grad.sum().item():.3f}")
torch.testing.assert_close(sparse.detach(), dense.to_sparse())
