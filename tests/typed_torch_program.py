"""A user's program for PyTorch with types, which scripts/check_package checks after `as-torch` by mypy and pyright."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import torch.utils.checkpoint
from torch import Tensor
from torch.autograd import Function
from torch.cuda.amp import GradScaler
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
from torch.utils.tensorboard import SummaryWriter


class Pairs(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x = torch.randn(n, 3)
        self.y = self.x.sum(dim=1, keepdim=True)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.x[i], self.y[i]


class Net(nn.Module):
    def __init__(self, width: int, *, p: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Dropout(p))
        self.head = nn.Linear(width, 1)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.layers(x))
        y: Tensor = self.head(x) * math.sqrt(2.0)
        return y


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * gs[0]


def batches(loader: DataLoader[Any]) -> Iterator[Tensor]:
    for x, _y in loader:
        yield x


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor) -> float:
    model.eval()
    out: Tensor = model(x)
    probs = torch.softmax(out, dim=-1)
    best = probs.argmax(dim=1)
    values, indices = torch.topk(probs, 1)
    m = torch.max(probs, dim=1)
    print(m.values, best.shape[0], values.tolist(), indices.numpy())
    return float((best == 0).float().mean().item())


def main() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, _test = random_split(Pairs(10), [8, 2])
    loader = DataLoader(train, batch_size=4, shuffle=True)
    model = Net(8).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    criterion = nn.MSELoss()
    for _epoch in range(2):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
    torch.save(model.state_dict(), "x.pt")
    model.load_state_dict(torch.load("x.pt", map_location="cpu", weights_only=True))
    a = torch.from_numpy(np.ones((2, 3), dtype=np.float32))
    b = torch.cat([a, torch.zeros_like(a)], dim=0).view(-1, 3).permute(1, 0).contiguous()
    c = torch.stack([a, a]).mean(axis=0) + torch.sum(a, axis=1, keepdim=True)
    d = torch.arange(0, 10, dtype=torch.int64, device=device).reshape(2, 5)
    e = torch.where(a > 0, a, torch.tensor(0.0)).clamp(min=0).pow(2).squeeze(0).unsqueeze(axis=1)
    print(b.size(0), c.dtype, d.ndim, e.requires_grad, torch.linalg.norm(a), torch.fft.fft)
    q = torch.einsum("ij,kj->ik", a, a) @ torch.eye(2)
    print(q.T, torch.pi, torch.finfo(torch.float32).eps, torch.Size([1, 2]), torch.__version__)
    print(pad_sequence([a, a], batch_first=True), Square.apply(a), torch.utils.checkpoint.checkpoint)
    nn.init.xavier_uniform_(model.head.weight)
    generator = torch.Generator().manual_seed(1)
    torch.rand(3, generator=generator).uniform_(0, 1)
    with torch.inference_mode():
        evaluate(model, a)
    torch.compile(model)
    print(torch.backends.cudnn.benchmark, torch.distributions.Normal(0.0, 1.0).sample())
    torch.cuda.empty_cache()
    writer = SummaryWriter("x")
    writer.add_scalar("a", 1.0, 0)
    print(dist.is_available(), GradScaler, TensorDataset(a, a))
    hidden: Tensor = nn.LSTM(3, 4)(a)[0]
    for name, parameter in model.named_parameters():
        print(name, parameter.grad, parameter.data, hidden.device)


def mistakes() -> None:
    torch.no_such_function()  # type: ignore[attr-defined]
    torch.cuda.no_such_function()  # type: ignore[attr-defined]
    torch.ones(2).no_such_method()  # type: ignore[attr-defined]
    nn.Linear("a", 2)  # type: ignore[arg-type]
