# Optimizers written by users (SAM, Lion), Muon, named parameters, and groups.
import torch
from torch import nn, optim
import torch.nn.functional as F

torch.manual_seed(0)


class SAM(optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        assert rho >= 0.0
        defaults = dict(rho=rho, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = torch.norm(
            torch.stack(
                [p.grad.norm(p=2) for g in self.param_groups for p in g["params"] if p.grad is not None]
            ),
            p=2,
        )
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale.to(p))
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()


class Lion(optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid lr {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                m = state["exp_avg"]
                b1, b2 = group["betas"]
                p.add_(m.mul(b1).add(p.grad, alpha=1 - b1).sign_(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss


X = torch.randn(40, 5)
y = X @ torch.randn(5, 1)
for name, make in {
    "sam": lambda ps: SAM(ps, optim.SGD, rho=0.1, lr=0.05, momentum=0.9),
    "lion": lambda ps: Lion(ps, 1e-2, weight_decay=0.1),
    "muon": lambda ps: optim.Muon([p for p in ps if p.ndim == 2], lr=0.02),
}.items():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = make(list(net.parameters()))
    for i in range(8):

        def closure():
            opt.zero_grad()
            l = F.mse_loss(net(X), y)
            l.backward()
            return l

        l = closure()
        opt.step(closure) if name == "sam" else opt.step()
    print(name, f"{l.item():.5f}", len(opt.state_dict()["state"]))
print(opt)
net = nn.Linear(3, 3)
opt = optim.Adam(
    [{"params": [net.weight], "name": "w"}, {"params": net.bias, "lr": 1e-1}],
    lr=1e-3,
    capturable=False,
    maximize=True,
)
opt.add_param_group({"params": torch.zeros(2, requires_grad=True), "weight_decay": 0.1})
print([{k: v for k, v in g.items() if k != "params"} for g in opt.param_groups][2])
for bad in (
    lambda: optim.SGD([], lr=0.1),
    lambda: optim.SGD(net.parameters(), lr=-1),
    lambda: optim.Adam(net.weight, lr=1.0),
    lambda: opt.add_param_group({"params": net.bias}),
    lambda: optim.Adam([torch.ones(2) * torch.ones(2, requires_grad=True)]),
    lambda: opt.load_state_dict({"state": {}, "param_groups": []}),
    lambda: optim.LBFGS([{"params": net.weight}, {"params": net.bias}]),
    lambda: optim.SGD(net.parameters(), lr=0.1, nesterov=True),
):
    try:
        bad()
        print("none")
    except Exception as e:
        print(type(e).__name__, str(e)[:32])
named = optim.AdamW(net.named_parameters(), lr=1e-3)
print(named.state_dict()["param_groups"][0].get("param_names"))
print(optim.AdamW(net.parameters(), amsgrad=True).defaults["amsgrad"], optim.SGD(net.parameters(), 0.1, weight_decay=0.1))
