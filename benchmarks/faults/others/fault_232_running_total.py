# cause: loss-kept-with-graph
# symptom: the memory of the process grows with every batch (growth of memory 50.5 MB; without the fault: growth of memory 0.0 MB)
import resource
import sys

import torch
import torch.nn as nn

torch.manual_seed(28)


def peak_mb():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


class Counter(nn.Module):
    """A recurrent cell by hand that counts the ones of a bit string."""

    def __init__(self, hidden=16):
        super().__init__()
        self.hidden = hidden
        self.inp = nn.Linear(1, hidden)
        self.rec = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, bits):
        h = bits.new_zeros(len(bits), self.hidden)
        for t in range(bits.shape[1]):
            h = h + 0.1 * torch.tanh(self.inp(bits[:, t : t + 1]) + self.rec(h))
        return self.out(h).squeeze(1)


model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
total_loss, batches = 0.0, 0
for batch in range(400):
    bits = torch.randint(0, 2, (16, 24)).float()
    loss = nn.functional.mse_loss(model(bits), bits.mean(1) * 4 - 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total_loss += loss  # <- fault
    batches += 1
    if batch == 20:
        start = peak_mb()
    if batch % 80 == 79:
        print(f"batch {batch + 1}: mean loss so far {total_loss / batches:.4f}, {peak_mb():.0f} MB")

print(f"last loss {loss.item():.4f}")
print(f"final growth of memory {peak_mb() - start:.1f} MB")
