# cause: functional-dropout-always
"""Bags of words: the topic of a text of random words."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
topics, vocabulary, length = 5, 60, 12
topic = torch.randint(0, topics, (750,))
own = torch.randint(0, 12, (750, length)) + 12 * topic.unsqueeze(1)
noise = torch.randint(0, vocabulary, (750, length))
texts = torch.where(torch.rand(750, length) < 0.4, own, noise)
loader = DataLoader(TensorDataset(texts, topic), batch_size=25, shuffle=True)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16)
        self.hidden = nn.Linear(16, 32)
        self.out = nn.Linear(32, topics)

    def forward(self, text):
        h = self.embedding(text).mean(dim=1)
        h = torch.relu(self.hidden(h))
        h = F.dropout(h, 0.2)  # <- fault
        return F.log_softmax(self.out(h), dim=-1)


model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(6):
    model.train()
    total_loss = 0
    for text, target in loader:
        loss = F.nll_loss(model(text), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    model.eval()
    with torch.no_grad():
        right = 0
        for text, target in loader:
            right += (model(text).argmax(1) == target).sum().item()
    print(f"{epoch} {total_loss / len(loader):.4f} {right / 750:.3f}")
