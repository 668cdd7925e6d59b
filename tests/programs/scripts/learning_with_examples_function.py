import math

import torch


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class MyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_x = grad_output.clone()
        grad_x[x < 0] = 0
        return grad_x


device = torch.device("cpu")
x = torch.linspace(-math.pi, math.pi, 2000, device=device)
y = torch.sin(x)
a = torch.full((), 0.0, device=device, requires_grad=True)
b = torch.full((), -1.0, device=device, requires_grad=True)
c = torch.full((), 0.0, device=device, requires_grad=True)
d = torch.full((), 0.3, device=device, requires_grad=True)
learning_rate = 5e-6
for t in range(500):
    P3 = LegendrePolynomial3.apply
    y_pred = a + b * P3(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    if t % 100 == 99:
        print(t, loss.item())
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= learning_rate * p.grad
            p.grad = None
print(f"Result: y = {a.item():.4f} + {b.item()} * P3({c.item():.4f} + {d.item()} x)")
N, D_in, H, D_out = 64, 100, 50, 10
x = torch.randn(N, D_in)
y = torch.randn(N, D_out)
w1 = torch.randn(D_in, H, requires_grad=True)
w2 = torch.randn(H, D_out, requires_grad=True)
for t in range(30):
    y_pred = MyReLU.apply(x.mm(w1)).mm(w2)
    loss = (y_pred - y).pow(2).sum()
    print(t, loss.item())
    loss.backward()
    with torch.no_grad():
        w1 -= 1e-6 * w1.grad
        w2 -= 1e-6 * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
print(
    torch.autograd.gradcheck(
        LegendrePolynomial3.apply, torch.randn(4, dtype=torch.float64, requires_grad=True)
    )
)
print(type(MyReLU.apply(w1).grad_fn).__name__)
