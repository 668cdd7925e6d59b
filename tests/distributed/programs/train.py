"""train.py LIBRARY OUTPUT MODEL...: train models, each process on its part of every batch; save losses and parameters.

The same program for PyTorch and tinytorch; alone, without a group, it trains on whole batches.
"""

import importlib
import os
import sys

import numpy as np

LIBRARY, OUTPUT, *MODELS = sys.argv[1:]
torch = importlib.import_module(LIBRARY)
nn = importlib.import_module(f"{LIBRARY}.nn")
F = importlib.import_module(f"{LIBRARY}.nn.functional")
optim = importlib.import_module(f"{LIBRARY}.optim")
dist = importlib.import_module(f"{LIBRARY}.distributed")
DDP = importlib.import_module(f"{LIBRARY}.nn.parallel").DistributedDataParallel
STEPS, LETTERS, WIDTH, LENGTH = 10, 31, 32, 16

alone = os.environ.get("ALONE") == "1"
if not alone:
    dist.init_process_group("gloo")
rank, world = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.qkv, self.proj = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.ln2, self.fc1, self.fc2 = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (each.view(b, t, 4, c // 4).transpose(1, 2) for each in self.qkv(self.ln1(x)).split(c, 2))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(heads.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, WIDTH)
        self.blocks, self.ln = nn.Sequential(Block(), Block()), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, LETTERS, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.ln(self.blocks(self.embedding(x)))).view(-1, LETTERS)


def cnn(norm):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), norm(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def pictures(rng):
    return rng.random((STEPS, 16, 1, 16, 16), np.float32), rng.integers(0, 10, (STEPS, 16))


def text(rng):
    return rng.integers(0, LETTERS, (STEPS, 8, LENGTH)), rng.integers(0, LETTERS, (STEPS, 8, LENGTH))


def sgd(parameters):
    return optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters):
    return optim.Adam(parameters, lr=1e-3)


CASES = {
    "mlp": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(256, 64), nn.Tanh(), nn.Linear(64, 10)), pictures, sgd, {}),
    "cnn": (lambda: cnn(lambda n: nn.Identity()), pictures, adam, {}),
    "batchnorm": (lambda: cnn(nn.BatchNorm2d), pictures, sgd, {}),
    "gpt": (GPT, text, lambda parameters: optim.AdamW(parameters, lr=1e-3), {}),
    "small_buckets": (GPT, text, sgd, {"bucket_cap_mb": 0.01, "gradient_as_bucket_view": True}),
    "static": (GPT, text, sgd, {"static_graph": True}),
    "syncbn": (lambda: cnn(nn.BatchNorm2d if alone else nn.SyncBatchNorm), pictures, sgd, {}),
}

saved = {}
for name in MODELS:
    make, data, optimizer_of, options = CASES[name]
    model = make()
    X, Y = data(np.random.default_rng(0))
    start = np.random.default_rng(1 + rank)  # other ranks start elsewhere: DDP has to give them rank 0's values
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy((start.standard_normal(tuple(p.shape)) * 0.1).astype(np.float32)))
    net = model if alone else DDP(model, **options)
    optimizer = optimizer_of(net.parameters())
    losses = []
    for xs, ys in zip(X, Y):  # noqa: B905  (also for old Pythons)
        x, y = torch.from_numpy(xs[rank::world].copy()), torch.from_numpy(ys[rank::world].copy())
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y.view(-1))
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if not alone:
            dist.all_reduce(mean)
        losses.append(float(mean) / world)
    final = np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])
    if not alone:
        everyone = [None] * world
        dist.all_gather_object(everyone, final.tobytes())
        assert all(each == everyone[0] for each in everyone), f"{name}: ranks differ"
    saved[f"{name}.losses"], saved[f"{name}.final"] = np.array(losses), final
    saved[f"{name}.buffers"] = np.concatenate([np.zeros(1), *[b.numpy().ravel() for b in model.buffers()]])
if rank == 0:
    np.savez(OUTPUT, **saved)
if not alone:
    dist.barrier()  # both have saved, whatever an end does
    dist.destroy_process_group()
