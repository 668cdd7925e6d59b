"""The backward of a user's function returns a gradient of a wrong shape."""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g.sum().expand(2)
        #: return g * 2


x = torch.ones(3, requires_grad=True)
Double.apply(x).sum().backward()
