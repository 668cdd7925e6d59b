import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
x = torch.randn(120, 10)
y = (x[:, :3] * 2).argmax(1)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(60):
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()


def fgsm_attack(data, epsilon, data_grad):
    sign_data_grad = data_grad.sign()
    perturbed = data + epsilon * sign_data_grad
    return torch.clamp(perturbed, -3, 3)


def test(model, epsilon):
    correct = 0
    for data, target in zip(x.split(1), y.split(1)):
        data = data.clone()
        data.requires_grad = True
        output = F.log_softmax(model(data), dim=1)
        init_pred = output.max(1, keepdim=True)[1]
        if init_pred.item() != target.item():
            continue
        loss = F.nll_loss(output, target)
        model.zero_grad()
        loss.backward()
        output = model(fgsm_attack(data, epsilon, data.grad.data))
        correct += (output.argmax(1) == target).item()
    print(f"Epsilon: {epsilon}\tTest Accuracy = {correct} / {len(x)} = {correct / len(x)}")
    return correct


accuracies = [test(model, eps) for eps in (0, 0.1, 0.3)]


def pgd(model, x, y, eps=0.3, alpha=0.1, steps=4):
    delta = torch.zeros_like(x).uniform_(-eps, eps).requires_grad_()
    for _ in range(steps):
        loss = nn.CrossEntropyLoss()(model(x + delta), y)
        loss.backward()
        delta.data = (delta + alpha * delta.grad.detach().sign()).clamp(-eps, eps)
        delta.grad.zero_()
    return delta.detach()


adv = pgd(model, x, y)
print(adv.abs().max(), (model(x + adv).argmax(-1) == y).float().mean())
saliency = torch.autograd.grad(model(x)[torch.arange(len(x)), y].sum(), model[0].weight)[0].abs().sum(0)
print(saliency.argsort(descending=True)[:3], saliency.softmax(0).max())
