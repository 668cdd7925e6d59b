// Twins of kernels/activation.py.

INLINE vec sigmoid_of(vec x) { return 1 / (exp_of(-x) + 1); }

POINTWISE(sigmoid, 1, 0, sigmoid_of(a[0]))

POINTWISE(silu, 1, 0, a[0] / (exp_of(-a[0]) + 1))

INLINE vec silu_grad_of(vec g, vec x) {
    vec s = sigmoid_of(x);
    return ((1 - s) * x + 1) * s * g;
}

POINTWISE(silu_grad, 2, 0, silu_grad_of(a[0], a[1]))
