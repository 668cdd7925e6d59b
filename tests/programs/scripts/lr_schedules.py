import math

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)

net = nn.Linear(3, 1)


def run(name, make, steps=8, metric=False):
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    lrs = []
    for step in range(steps):
        lrs.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.zero_grad()
        loss = net(torch.ones(2, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
        if metric:
            scheduler.step(1.0 if step > 2 else 1.0 / (step + 1))
        else:
            scheduler.step()
    print(f"{name:<12}", lrs)


run("step", lambda o: StepLR(o, step_size=3, gamma=0.5))
run("multi", lambda o: MultiStepLR(o, milestones=[2, 5], gamma=0.1))
run("exp", lambda o: ExponentialLR(o, gamma=0.8))
run("lambda", lambda o: LambdaLR(o, lr_lambda=lambda e: 0.95**e))
run("cosine", lambda o: CosineAnnealingLR(o, T_max=6, eta_min=1e-3))
run("restarts", lambda o: CosineAnnealingWarmRestarts(o, T_0=2, T_mult=2))
run("cyclic", lambda o: CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3))
run("onecycle", lambda o: OneCycleLR(o, max_lr=0.5, total_steps=9))
run("linear", lambda o: LinearLR(o, start_factor=0.25, total_iters=4))
run("poly", lambda o: PolynomialLR(o, total_iters=6, power=2.0))
run("plateau", lambda o: ReduceLROnPlateau(o, "min", patience=1, factor=0.1), metric=True)
run(
    "sequential",
    lambda o: SequentialLR(o, [LinearLR(o, 0.1, total_iters=3), CosineAnnealingLR(o, 5)], milestones=[3]),
)


run("times", lambda o: optim.lr_scheduler.MultiplicativeLR(o, lambda e: 0.9))
run("exp range", lambda o: CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9))
run("constant", lambda o: optim.lr_scheduler.ConstantLR(o, 0.3, 2))
run("chained", lambda o: optim.lr_scheduler.ChainedScheduler([ExponentialLR(o, 0.9), StepLR(o, 2)]))


class WarmupCosine(optim.lr_scheduler._LRScheduler):
    def __init__(self, optimizer, warmup, total, last_epoch=-1):
        self.warmup, self.total = warmup, total
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        e = self.last_epoch
        if e < self.warmup:
            return [base * (e + 1) / self.warmup for base in self.base_lrs]
        t = (e - self.warmup) / (self.total - self.warmup)
        return [base * 0.5 * (1 + math.cos(math.pi * t)) for base in self.base_lrs]


run("custom", lambda o: WarmupCosine(o, 2, 8))
opt = optim.SGD([{"params": [net.weight]}, {"params": [net.bias], "lr": 1.0}], lr=0.1)
sched = LambdaLR(opt, [lambda e: 1 / (e + 1), lambda e: 0.5**e])
for _ in range(3):
    opt.step()
    sched.step()
print([g["lr"] for g in opt.param_groups], sched.get_last_lr(), [g["initial_lr"] for g in opt.param_groups])
print(net.weight.norm(), StepLR(opt, 2).state_dict())
