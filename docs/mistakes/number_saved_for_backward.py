"""A number is saved for backward like a tensor."""

import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        #! ctx.save_for_backward(x); ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        #! x, = ctx.saved_tensors; scale = ctx.scale
        return g * scale, None


x = torch.rand(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()
