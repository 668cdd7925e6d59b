# Functions written by hand, differentiated twice; forward mode; vmap of them.
import torch
import torch.autograd.forward_ad as fwAD
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable, InplaceFunction

torch.manual_seed(0)


class Sinh(Function):
    @staticmethod
    def forward(ctx, x):
        expx, expnegx = torch.exp(x), torch.exp(-x)
        ctx.save_for_backward(expx, expnegx)
        return (expx - expnegx) / 2, expx, expnegx

    @staticmethod
    def backward(ctx, grad_out, g_exp, g_negexp):
        expx, expnegx = ctx.saved_tensors
        return grad_out * (expx + expnegx) / 2 + g_exp * expx - g_negexp * expnegx


class CubeForward(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        return CubeBackward.apply(grad_out, x)


class CubeBackward(Function):
    @staticmethod
    def forward(ctx, grad_out, x):
        ctx.save_for_backward(x, grad_out)
        return grad_out * 3 * x**2

    @staticmethod
    def backward(ctx, grad_out):
        x, g = ctx.saved_tensors
        return grad_out * 3 * x**2, grad_out * g * 6 * x


x = torch.rand(3, 3, requires_grad=True, dtype=torch.double)
for fn in (lambda v: Sinh.apply(v)[0], CubeForward.apply):
    print(gradcheck(fn, x), gradgradcheck(fn, x))
out = CubeForward.apply(x)
(gx,) = torch.autograd.grad(out.sum(), x, create_graph=True)
print(gx.grad_fn.name(), type(out.grad_fn).__name__)
(ggx,) = torch.autograd.grad(gx.sum(), x)
print(ggx)


class Clamp(Function):
    """setup_context apart, with forward mode and a batching rule."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, low):
        return x.clamp(min=low)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, low = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.low = low

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > ctx.low), None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return t * (x > ctx.low)


print(Clamp.apply(x, 0.5))
print(gradcheck(lambda v: Clamp.apply(v, 0.5), x, check_forward_ad=True))
print(torch.func.vmap(lambda v: Clamp.apply(v, 0.5))(x.detach()))
print(torch.func.vmap(torch.func.grad(lambda v: Clamp.apply(v, 0.5).sum()))(x.detach()))
with fwAD.dual_level():
    dual = fwAD.make_dual(x.detach(), torch.ones_like(x))
    y = Clamp.apply(dual, 0.5) * dual.sin()
    p, t = fwAD.unpack_dual(y)
    print(p, t)
    print(fwAD.unpack_dual(y).tangent is not None, fwAD.unpack_dual(torch.ones(2)))


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


y = Once.apply(x).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True)
try:
    g.sum().backward()
except RuntimeError as e:
    print(str(e)[:34])


class Mixed(Function):
    @staticmethod
    def forward(ctx, a, n, b=None, flag=True):
        ctx.set_materialize_grads(False)
        idx = a.argmax(0)
        ctx.mark_non_differentiable(idx)
        ctx.n = n
        ctx.needs = ctx.needs_input_grad
        return a * n, idx, None if b is None else b + 1

    @staticmethod
    def backward(ctx, g, gi, gb):
        print("  got", g is not None, gi, gb, ctx.needs_input_grad)
        return None if g is None else g * ctx.n, None, gb, None


a = torch.randn(3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
o, i, p = Mixed.apply(a, 3, b)
print(o.requires_grad, i.requires_grad, p.requires_grad, i)
o.sum().backward()
print(a.grad, b.grad)
o, i, p = Mixed.apply(a, 3)
print(p)


class Double_(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


z = a.detach().clone().requires_grad_()
w = z * 1
v = Double_.apply(w)
print(v is w, w.grad_fn.name())
v.sum().backward()
print(z.grad)
try:
    Double_.apply(z)
except RuntimeError as e:
    print(str(e)[:34])


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        return g


for f in (lambda: Wrong.apply(a, b).sum().backward(), lambda: Wrong()(a)):
    try:
        f()
    except RuntimeError as e:
        print(str(e)[:150])
