# remedy: the last batch is smaller: make the state from the input's size, torch.zeros(1, x.size(0), 32), or DataLoader(..., drop_last=True)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 16


class SentimentGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(200, 24)
        self.gru = nn.GRU(24, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def init_hidden(self):
        return torch.zeros(1, BATCH_SIZE, 32)  # <- fault

    def forward(self, x):
        out, h = self.gru(self.embed(x), self.init_hidden())  # <- fault
        return self.fc(h[-1])


loader = DataLoader(TensorDataset(torch.randint(0, 200, (100, 20)), torch.rand(100, 1)), batch_size=BATCH_SIZE)
model = SentimentGRU()
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
