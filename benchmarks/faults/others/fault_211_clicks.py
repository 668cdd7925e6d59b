# cause: sigmoid-before-bce-with-logits
# symptom: every click probability is at least a half and the log loss is far too high (log loss 0.694; without the fault: log loss 0.222)
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(90)


class ClickLog(Dataset):
    """Which user saw which advert at which hour, and whether there was a click (rare)."""

    true_user, true_ad = torch.randn(200, 2), torch.randn(50, 2)

    def __init__(self, n):
        self.user, self.ad = torch.randint(200, (n,)), torch.randint(50, (n,))
        self.hour = torch.randint(24, (n,))
        score = (self.true_user[self.user] * self.true_ad[self.ad]).sum(1) * 2 - 3.5
        score += ((self.hour > 18) & (self.hour < 23)).float()
        self.click = torch.bernoulli(torch.sigmoid(score))

    def __len__(self):
        return len(self.click)

    def __getitem__(self, i):
        return self.user[i], self.ad[i], self.hour[i], self.click[i]


class FactorizationMachine(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.u, self.a, self.h = nn.Embedding(200, k), nn.Embedding(50, k), nn.Embedding(24, 1)
        self.bias = nn.Parameter(torch.zeros(1))
        for table in (self.u, self.a, self.h):
            nn.init.normal_(table.weight, std=0.2)

    def forward(self, user, ad, hour):
        pair = (self.u(user) * self.a(ad)).sum(1)
        score = pair + self.h(hour).squeeze(1) + self.bias
        return score.sigmoid()  # <- fault


model = FactorizationMachine()
loss_fn = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(4):
    for *features, click in DataLoader(ClickLog(8000), batch_size=100, shuffle=True):
        loss = loss_fn(model(*features), click)  # <- fault
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("epoch", epoch, "loss", round(loss.item(), 4))

test = ClickLog(4000)
with torch.no_grad():
    out = model(test.user, test.ad, test.hour)
print(f"clicks {test.click.mean().item():.3f}, predicted {torch.sigmoid(out).mean().item():.3f}")
print(f"final log loss {loss_fn(out, test.click).item():.3f}")
