# cause: layers-in-list
# symptom: the price model explains less than half; its optimizer has few parameters (test r2 0.427; without the fault: test r2 0.985)
import torch
from torch import nn

torch.manual_seed(15)

COLUMNS = {"district": 40, "condition": 8, "agency": 30, "street": 60}


def listings(n):
    cols = {name: torch.randint(size, (n,)) for name, size in COLUMNS.items()}
    price = sum(EFFECT[name][ids] for name, ids in cols.items())
    return cols, price + 0.2 * torch.randn(n)


EFFECT = {name: torch.randn(size) for name, size in COLUMNS.items()}


class PriceModel(nn.Module):
    def __init__(self, dim=3, hidden=16):
        super().__init__()
        self.tables = {name: nn.Embedding(size, dim) for name, size in COLUMNS.items()}  # <- fault
        self.mix = nn.Linear(dim * len(COLUMNS), hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, cols):
        x = torch.cat([table(cols[name]) for name, table in self.tables.items()], dim=1)
        return self.out(torch.relu(self.mix(x))).squeeze(1)


cols, price = listings(3000)
test_cols, test_price = listings(600)
model = PriceModel()
print("parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # <- fault

for epoch in range(20):
    mse = 0.0
    for rows in torch.randperm(3000).split(100):
        guess = model({name: ids[rows] for name, ids in cols.items()})
        loss = nn.functional.mse_loss(guess, price[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mse += loss.item() / 30
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: mse {mse:.3f}")

with torch.no_grad():
    residual = model(test_cols) - test_price
print(f"final test r2 {1 - (residual.var() / test_price.var()).item():.3f}")
