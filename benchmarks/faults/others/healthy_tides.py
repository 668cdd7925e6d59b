"""Forecast a tide gauge: batches in order of time, state carried on and cut between batches."""
import torch
import torch.nn as nn

torch.manual_seed(56)

hours = torch.arange(3000.0)
level = torch.sin(0.506 * hours) + 0.4 * torch.sin(0.262 * hours + 1) + 0.05 * torch.randn(3000)
train, test = level[:2400], level[2400:]
STREAMS, CHUNK = 8, 25


class Tide(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        y, state = self.gru(x.unsqueeze(-1), state)
        return self.out(y).squeeze(-1), state


model = Tide()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
streams = train.view(STREAMS, -1)

for epoch in range(25):
    state, total, count = None, 0.0, 0
    for begin in range(0, streams.shape[1] - CHUNK - 1, CHUNK):  # never shuffled
        x = streams[:, begin : begin + CHUNK]
        y = streams[:, begin + 1 : begin + CHUNK + 1]
        guess, state = model(x, state)
        loss = nn.functional.mse_loss(guess, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = state.detach()  # truncated backpropagation through time
        total, count = total + loss.item(), count + 1
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: mse {total / count:.4f}")

with torch.no_grad():
    guess, _ = model(test[None, :-1])
error = (guess[0] - test[1:]).pow(2).mean()
print(f"final test r2 {1 - (error / test.var()).item():.3f}")
