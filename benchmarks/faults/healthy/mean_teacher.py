"""A student follows a teacher that is the running mean of its weights, and never gets gradients."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] > 0).long()
student = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for step in range(150):
    index = torch.randperm(400)[:50]
    out = student(x[index] + 0.05 * torch.randn(50, 8))
    with torch.no_grad():
        goal = teacher(x[index]).softmax(1)
    loss = nn.functional.cross_entropy(out[:20], y[index][:20]) + ((out.softmax(1) - goal) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(teacher.parameters(), student.parameters()):
            a.mul_(0.95).add_(b, alpha=0.05)
teacher.eval()
print(loss.item(), (teacher(x).argmax(1) == y).float().mean().item())
