import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(8, 5, requires_grad=True)
target = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2])
soft = F.softmax(torch.randn(8, 5), -1)
weights = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0])
losses = {
    "ce": nn.CrossEntropyLoss()(x, target),
    "ce weighted": nn.CrossEntropyLoss(weight=weights, label_smoothing=0.1)(x, target),
    "ce soft": F.cross_entropy(x, soft),
    "ce ignore": F.cross_entropy(x, target, ignore_index=0, reduction="sum"),
    "nll": nn.NLLLoss()(nn.LogSoftmax(dim=1)(x), target),
    "mse": nn.MSELoss()(x, soft),
    "l1": nn.L1Loss(reduction="sum")(x, soft),
    "smooth": nn.SmoothL1Loss(beta=0.5)(x, soft),
    "huber": nn.HuberLoss(delta=0.3)(x, soft),
    "bce": nn.BCELoss(reduction="mean")(F.sigmoid(x), soft),
    "bce logits": nn.BCEWithLogitsLoss(pos_weight=weights)(x, (soft > 0.2).float()),
    "kl": nn.KLDivLoss(reduction="batchmean")(F.log_softmax(x, 1), soft),
    "multi margin": nn.MultiMarginLoss()(x, target),
    "multilabel": nn.MultiLabelSoftMarginLoss()(x, (soft > 0.2).float()),
    "soft margin": nn.SoftMarginLoss()(x, (soft > 0.2).float() * 2 - 1),
    "hinge": nn.HingeEmbeddingLoss()(x, (soft > 0.2).float() * 2 - 1),
    "poisson": nn.PoissonNLLLoss()(x, soft),
    "cosine": nn.CosineEmbeddingLoss(margin=0.2)(x, soft, torch.ones(8) * -1),
    "ranking": nn.MarginRankingLoss()(x[:, 0], x[:, 1], torch.ones(8)),
    "gaussian": nn.GaussianNLLLoss()(x, soft, torch.ones(8, 5)),
}
for name, value in losses.items():
    (g,) = torch.autograd.grad(value, x, retain_graph=True)
    print(f"{name:<14} {value.item():.5f} {g.norm().item():.5f} {value}")


class FocalLoss(nn.Module):
    def forward(self, logits, target):
        logpt = F.log_softmax(logits, dim=-1).gather(1, target.unsqueeze(1)).squeeze(1)
        return (-((1 - logpt.exp()) ** 2) * logpt).mean()


print(FocalLoss()(x, target))
print(F.binary_cross_entropy(torch.sigmoid(x), soft, reduction="sum"), soft.sum(dim=1), torch.accelerator.current_accelerator() is not None)
uncertainty = nn.Parameter(torch.zeros(2))
total = sum(torch.exp(-s) * v + s for s, v in zip(uncertainty, (losses["ce"], losses["mse"])))
total.backward()
print(uncertainty.grad, x.grad.norm())
log_probs = torch.randn(12, 2, 5).log_softmax(2).detach().requires_grad_()
ctc = nn.CTCLoss()(log_probs, torch.randint(1, 5, (2, 4)), torch.full((2,), 12), torch.tensor([4, 3]))
ctc.backward()
print(ctc, log_probs.grad.abs().sum())
