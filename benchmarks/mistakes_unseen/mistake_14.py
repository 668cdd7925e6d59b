# remedy: sequences of different lengths cannot be stacked: DataLoader(..., collate_fn=lambda b: pad_sequence([x for x, _ in b], batch_first=True))
import torch
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self):
        self.texts = [torch.randint(1, 500, (int(n),)) for n in torch.randint(5, 30, (64,))]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], torch.tensor(float(i % 2))


loader = DataLoader(Reviews(), batch_size=8, shuffle=True)
embedding = torch.nn.EmbeddingBag(500, 16)
for tokens, label in loader:  # <- fault
    print(embedding(tokens).shape)
