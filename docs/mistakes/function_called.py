"""A Function is made and called."""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g


x = torch.rand(3, requires_grad=True)
y = Square()(x)
#! y = Square.apply(x)
