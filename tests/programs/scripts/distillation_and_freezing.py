import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim import lr_scheduler

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
student = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
x = torch.randn(128, 8)
y = torch.stack([x[:, :2].sum(1), x[:, 2:4].sum(1), x[:, 4:6].sum(1), x[:, 6:].sum(1)], 1).argmax(1)
opt = optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(10):
    opt.zero_grad()
    F.cross_entropy(teacher(x), y).backward()
    opt.step()
teacher.eval()
T, alpha = 2.0, 0.25
optimizer = optim.SGD(student.parameters(), lr=0.2)
for epoch in range(5):
    student.train()
    with torch.no_grad():
        teacher_logits = teacher(x)
    logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / T, -1), F.softmax(teacher_logits / T, -1), reduction="batchmean") * T**2
    soft_targets_loss = torch.sum(
        F.softmax(teacher_logits / T, -1) * (F.softmax(teacher_logits / T, -1).log() - F.log_softmax(logits / T, -1))
    ) / logits.size(0)
    loss = alpha * soft + (1 - alpha) * F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{epoch}: {loss.item():.4f} {soft.item():.4f} {soft_targets_loss.item() * T**2:.4f}")
backbone = copy.deepcopy(teacher)
for param in backbone.parameters():
    param.requires_grad = False
num_ftrs = backbone[3].in_features
backbone[3] = nn.Linear(num_ftrs, 2)
before = backbone[0].weight.clone()
optimizer_ft = optim.SGD(filter(lambda p: p.requires_grad, backbone.parameters()), lr=0.1, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=2, gamma=0.1)
best_model_wts, best_acc = copy.deepcopy(backbone.state_dict()), 0.0
for epoch in range(4):
    for phase in ["train", "val"]:
        backbone.train() if phase == "train" else backbone.eval()
        optimizer_ft.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            outputs = backbone(x)
            _, preds = torch.max(outputs, 1)
            loss = nn.CrossEntropyLoss()(outputs, y % 2)
            if phase == "train":
                loss.backward()
                optimizer_ft.step()
        corrects = torch.sum(preds == (y % 2).data)
        if phase == "train":
            exp_lr_scheduler.step()
        epoch_acc = corrects.double() / len(x)
        print("{} Loss: {:.4f} Acc: {:.4f}".format(phase, loss.item(), epoch_acc))
        if phase == "val" and epoch_acc > best_acc:
            best_acc = epoch_acc
            best_model_wts = copy.deepcopy(backbone.state_dict())
backbone.load_state_dict(best_model_wts)
print(torch.equal(before, backbone[0].weight), [n for n, p in backbone.named_parameters() if p.requires_grad])
student.requires_grad_(False)
student[0].requires_grad_()
print([p.requires_grad for p in student.parameters()], optimizer_ft.param_groups[0]["lr"])
