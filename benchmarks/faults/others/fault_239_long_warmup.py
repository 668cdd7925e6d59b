# cause: learning-rate-too-low
# symptom: the rate has reached hardly anything when the run ends, and so has the accuracy (accuracy 0.351; without the fault: accuracy 0.991)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(66)
HPARAMS = dict(
    dim=32, heads=2, layers=2, steps=220, batch=48, peak_lr=3e-3,
    warmup=100_000,  # <- fault
)


class MajorityFormer(nn.Module):
    """Which of four symbols is the most frequent in a row of 15?"""

    def __init__(self, dim, heads, layers):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.embed = nn.Embedding(4, dim)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x)).mean(dim=1))


def rows(n):
    p = torch.distributions.Dirichlet(torch.ones(4)).sample((n,))
    x = torch.multinomial(p, 15, replacement=True)
    return x, F.one_hot(x, 4).sum(1).argmax(1)


model = MajorityFormer(HPARAMS["dim"], HPARAMS["heads"], HPARAMS["layers"])
optimizer = torch.optim.AdamW(model.parameters(), lr=HPARAMS["peak_lr"])  # <- fault
warmup = torch.optim.lr_scheduler.LambdaLR(  # <- fault
    optimizer, lambda step: min(1.0, (step + 1) / HPARAMS["warmup"])  # <- fault
)

for step in range(HPARAMS["steps"]):
    x, y = rows(HPARAMS["batch"])
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
    if step % 40 == 0:
        print(f"step {step} rate {warmup.get_last_lr()[0]:.1e} loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    x, y = rows(1000)
    print(f"final accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")
