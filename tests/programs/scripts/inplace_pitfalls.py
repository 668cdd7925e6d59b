import torch
import torch.nn as nn
import torch.nn.functional as F


def attempt(what, f):
    try:
        result = f()
        print(what, "->", result)
    except Exception as error:
        print(what, "->", type(error).__name__, str(error).split(".")[0].split(":")[0][:36])


w = torch.ones(3, requires_grad=True)
attempt("leaf in place", lambda: w.add_(1))


def modified():
    y = w.exp()
    y.mul_(2)
    y.sum().backward()


attempt("saved output modified", modified)


def view_of_leaf():
    w[0] = 5


attempt("write to a leaf's element", view_of_leaf)
attempt("backward of non scalar", lambda: (w * 2).backward())
attempt("no grad", lambda: torch.ones(2).sum().backward())
attempt("int requires grad", lambda: torch.tensor([1, 2], requires_grad=True))
attempt("dtype mismatch", lambda: torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.float64))
attempt("in place promotion", lambda: torch.ones(2, dtype=torch.int64).add_(1.5))
attempt("linear shape", lambda: nn.Linear(3, 2)(torch.ones(4, 5)))
attempt("conv channels", lambda: nn.Conv2d(3, 4, 3)(torch.ones(1, 1, 8, 8)))
attempt("cross entropy target", lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5])))
attempt("cross entropy float", lambda: F.nll_loss(torch.ones(2, 3), torch.ones(2)))
attempt("bce range", lambda: F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0])))
attempt("embedding range", lambda: nn.Embedding(3, 2)(torch.tensor([3])))
attempt("embedding type", lambda: nn.Embedding(3, 2)(torch.tensor([0.5])))
attempt("item", lambda: torch.ones(2).item())
attempt("stack", lambda: torch.stack([torch.ones(2), torch.ones(3)]))
attempt("reshape", lambda: torch.ones(5).reshape(2, 3))
attempt("squeeze", lambda: torch.ones(1, 2).squeeze(5))
attempt("batch norm of one", lambda: nn.BatchNorm1d(2)(torch.ones(1, 2)))
attempt("deepcopy of non-leaf", lambda: __import__("copy").deepcopy(w * 2))
attempt("empty optimizer", lambda: torch.optim.SGD([], lr=0.1))
attempt("negative lr", lambda: torch.optim.SGD([w], lr=-1))
attempt("non-leaf optimizer", lambda: torch.optim.SGD([w * 2], lr=1))
attempt("float index", lambda: torch.ones(3)[1.5])
attempt("grad of different shape", lambda: setattr(w, "grad", torch.ones(2)))
attempt("requires_grad of non-leaf", lambda: (w * 2).requires_grad_(False))
attempt("multinomial", lambda: torch.multinomial(torch.tensor([-1.0, 2.0]), 1))
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
y[1] = 0
y.sum().backward()
print(x.grad)
x.grad = None
z = x.clone()
z[:2] *= x[1:]
z.sum().backward()
print(x.grad)
with torch.no_grad():
    x[0] = 10
    x.clamp_(max=5)
print(x, x.is_leaf, x._version)
a = torch.zeros(3)
b = a
b += 1
c = a.view(3, 1)
c[0] = 7
print(a, a is b, c._base is a, c.data_ptr() == a.data_ptr())
d = x.detach()
d[2] = -1
print(x, d.requires_grad)
relu = nn.ReLU(inplace=True)
t = torch.tensor([-1.0, 2.0])
print(relu(t) is t, t)
