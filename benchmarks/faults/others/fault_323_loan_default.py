# cause: inputs-unscaled
# symptom: the loss sits near ln 2 and the accuracy stays close to the share of the larger class
import torch
import torch.nn as nn


def applicants(n):
    income = 55000 + 15000 * torch.randn(n)
    loan = 180000 + 50000 * torch.randn(n)
    age = 42 + 10 * torch.randn(n)
    years_employed = 8 + 3 * torch.randn(n)
    balance = 12000 + 4000 * torch.randn(n)
    risk = (
        -(income - 55000) / 15000
        + (loan - 180000) / 50000
        - 0.5 * (balance - 12000) / 4000
        - 0.8 * (years_employed - 8) / 3
        + 0.4 * ((age - 42) / 10) ** 2
        - 0.4
    )
    y = (risk + 0.2 * torch.randn(n) > 0).float()
    return torch.stack([income, loan, age, years_employed, balance], dim=1), y  # <- fault


torch.manual_seed(9)
X, y = applicants(2000)  # <- fault
X_train, y_train = X[:1600], y[:1600]
X_valid, y_valid = X[1600:], y[1600:]

model = nn.Sequential(
    nn.Linear(5, 32),
    nn.Tanh(),
    nn.Linear(32, 16),
    nn.Tanh(),
    nn.Linear(16, 1),
)
bce = nn.BCEWithLogitsLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(15):
    epoch_loss = 0.0
    for rows in torch.randperm(1600).split(40):
        logit = model(X_train[rows]).squeeze(1)  # <- fault
        loss = bce(logit, y_train[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss += loss.item() / 40
    if epoch % 2 == 0:
        with torch.no_grad():
            valid = ((model(X_valid).squeeze(1) > 0).float() == y_valid).float().mean().item()
        print(f"epoch {epoch:2d}  loss {epoch_loss:.4f}  valid acc {valid:.3f}  (share of defaults {y_valid.mean().item():.3f})")
