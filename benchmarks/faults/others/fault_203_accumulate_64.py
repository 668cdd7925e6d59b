# cause: step-missing
# symptom: the loss is the same in every epoch (test accuracy 0.400; without the fault: test accuracy 0.980)
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--micro", type=int, default=20)
parser.add_argument("--accumulate", type=int, default=64)  # <- fault
parser.add_argument("--lr", type=float, default=5e-3)
args = parser.parse_args([])
torch.manual_seed(3)

# Wine-like table: 11 measurements, 3 growers.
centers = torch.randn(3, 11)
y = torch.randint(0, 3, (1000,))
x = centers[y] + 0.7 * torch.randn(1000, 11)
x_train, y_train, x_test, y_test = x[:800], y[:800], x[800:], y[800:]

net = nn.Sequential(nn.Linear(11, 32), nn.ELU(), nn.Linear(32, 16), nn.ELU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=args.lr)

for epoch in range(args.epochs):
    total = 0.0
    opt.zero_grad()
    chunks = torch.randperm(800).split(args.micro)
    for i, chunk in enumerate(chunks, start=1):
        loss = F.cross_entropy(net(x_train[chunk]), y_train[chunk])
        (loss / args.accumulate).backward()  # <- fault
        if i % args.accumulate == 0:  # <- fault
            opt.step()  # <- fault
            opt.zero_grad()
        total += loss.item()
    print("epoch %d loss %.4f" % (epoch, total / len(chunks)))

hits = (net(x_test).argmax(1) == y_test).sum().item()
print("final test accuracy %.3f" % (hits / len(y_test)))
