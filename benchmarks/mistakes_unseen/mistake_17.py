# remedy: this scheduler wants the watched number: scheduler.step(val_loss)
import torch
import torch.nn as nn

x, y = torch.randn(100, 4), torch.randn(100, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)

for epoch in range(5):
    loss = nn.functional.mse_loss(model(x[:80]), y[:80])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(x[80:]), y[80:]).item()
    scheduler.step()  # <- fault
