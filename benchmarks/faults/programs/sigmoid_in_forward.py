# cause: sigmoid-before-bce-with-logits
"""A recurrent network that counts: is the sum of a sequence positive?"""

import torch
from torch import nn

torch.manual_seed(5)
N, T = 400, 30
x = torch.randn(N, T, 2)
y = (x[:, :, 0].sum(1) > 0).float()


class Counter(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, batch_first=True, nonlinearity="tanh")
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return torch.sigmoid(self.head(out[:, -1])).squeeze(1)  # <- fault


model = Counter()
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(15):
    order = torch.randperm(N)
    for begin in range(0, N, 40):
        idx = order[begin : begin + 40]
        logits = model(x[idx])
        loss = loss_fn(logits, y[idx])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    accuracy = ((logits > 0) == (y[idx] > 0.5)).float().mean().item()
    print(epoch, loss.item(), accuracy)
