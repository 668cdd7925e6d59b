import random

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)


class Sequences(Dataset):
    def __init__(self, n, transform=None):
        self.lengths = [3 + (7 * i) % 5 for i in range(n)]
        self.transform = transform

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        if torch.is_tensor(i):
            i = i.tolist()
        sample = {"ids": torch.arange(self.lengths[i]), "label": i % 2, "name": f"s{i}", "w": np.float32(i) / 2}
        return self.transform(sample) if self.transform else sample


class ByLength(Sampler):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(sorted(range(len(self.data)), key=lambda i: self.data.lengths[i]))

    def __len__(self):
        return len(self.data)


def collate(batch):
    ids = pad_sequence([b["ids"] for b in batch], batch_first=True, padding_value=-1)
    return ids, torch.tensor([b["label"] for b in batch]), [b["name"] for b in batch]


data = Sequences(7)
for ids, labels, names in DataLoader(data, batch_size=3, sampler=ByLength(data), collate_fn=collate):
    print(ids, labels, names)
fixed = Sequences(6, transform=lambda s: {**s, "ids": s["ids"][:3]})
for batch in DataLoader(fixed, batch_size=4, drop_last=True):
    print(batch)
print(default_collate([(1, 2.5, "a"), (3, 4.5, "b")]), default_collate([np.ones(2), np.zeros(2)]))
train, val = random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(42))
print(list(train), list(val), train.indices)
a, b = random_split(TensorDataset(torch.arange(10)), [0.7, 0.3])
print(len(a), len(b), a[0])
both = ConcatDataset([TensorDataset(torch.arange(3)), TensorDataset(torch.arange(10, 12))])
print(len(both), both[4], Subset(both, [0, 3])[1])
weights = [0.1, 0.1, 5.0]
print(list(WeightedRandomSampler(weights, 8, replacement=True)))
print(list(BatchSampler(SequentialSampler(range(7)), batch_size=3, drop_last=False)))
print(list(RandomSampler(range(5))), list(RandomSampler(range(3), replacement=True, num_samples=6)))


class Stream(IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        assert info is None
        return iter(range(self.start, self.end))


print([b.tolist() for b in DataLoader(Stream(3, 10), batch_size=3)])
class BucketSampler(Sampler):
    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        chunks = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        for k in torch.randperm(len(chunks)).tolist():
            yield chunks[k]

    def __len__(self):
        return -(-len(self.lengths) // self.size)


for ids, labels, names in DataLoader(data, batch_sampler=BucketSampler(data.lengths, 3), collate_fn=collate):
    print(ids.shape, labels, names)


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(torch.initial_seed() % 2**32)


for workers in (0, 2):
    g = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(torch.arange(12).view(6, 2), torch.arange(6)), batch_size=2, shuffle=True, generator=g, num_workers=workers, worker_init_fn=seed_worker, persistent_workers=workers > 0, multiprocessing_context="fork" if workers else None)
    for epoch in range(2):
        print([(x.tolist(), y.tolist()) for x, y in loader])
    del loader
print(list(BatchSampler(SubsetRandomSampler([4, 5, 6, 7]), 3, drop_last=False)), list(RandomSampler(range(5), num_samples=7, replacement=True)))
dataiter = iter(DataLoader(both, batch_size=None))
print(next(dataiter), StackDataset(a=[1, 2], b=[3, 4])[1], ChainDataset([Stream(0, 2), Stream(5, 6)]).__class__.__name__)
