import torch

x = torch.ones(5)
y = torch.zeros(3)
w = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
print(f"Gradient function for z = {type(z.grad_fn).__name__}")
print(f"Gradient function for loss = {type(loss.grad_fn).__name__}")
print(z.grad_fn.name(), loss.grad_fn.name(), w.grad_fn)
loss.backward()
print(w.grad)
print(b.grad)
try:
    loss.backward()
except RuntimeError as error:
    print(error)
z = torch.matmul(x, w) + b
print(z.requires_grad)
with torch.no_grad():
    z = torch.matmul(x, w) + b
print(z.requires_grad)
z_det = z.detach()
print(z_det.requires_grad)
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nSecond call\n{inp.grad}")
inp.grad.zero_()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nCall after zeroing gradients\n{inp.grad}")
try:
    out.backward()
except RuntimeError as error:
    print(str(error)[:51])
try:
    torch.ones(2).sum().backward()
except RuntimeError as error:
    print(str(error)[:70])
a = torch.tensor([2.0, 3.0], requires_grad=True)
b = torch.tensor([6.0, 4.0], requires_grad=True)
Q = 3 * a**3 - b**2
Q.backward(gradient=torch.tensor([1.0, 1.0]))
print(9 * a**2 == a.grad, -2 * b == b.grad)
(g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), a)
print(g, h)
print(torch.autograd.grad(a.sum(), [a, b], allow_unused=True))
try:
    torch.autograd.grad(a.sum(), [a, b])
except RuntimeError as error:
    print(str(error).split(".")[0])
c = a * 2
c.retain_grad()
c.sum().backward()
print(c.grad, c.is_leaf, a.is_leaf)
handle = a.register_hook(lambda grad: grad * 10)
a.grad = None
(a * b.detach()).sum().backward()
print(a.grad)
handle.remove()
with torch.set_grad_enabled(False):
    print((a * 2).requires_grad)


@torch.no_grad()
def double(x):
    return x * 2


print(double(a).requires_grad)
with torch.inference_mode():
    inf = a * 2
print(inf.is_inference())
J = torch.autograd.functional.jacobian(lambda v: v**2, torch.arange(3.0))
H = torch.autograd.functional.hessian(lambda v: (v**3).sum(), torch.arange(3.0))
print(J)
print(H)
print(torch.autograd.gradcheck(torch.sin, torch.randn(3, dtype=torch.double, requires_grad=True)))
with torch.autograd.detect_anomaly(check_nan=False):
    (a.exp()).sum().backward()
print(a.grad)
