// Twins of kernels/activation.py.

POINTWISE(relu, 1, 0, at_least(a[0], 0))

POINTWISE(relu_grad, 2, 0, where(a[1] != 0, a[0], all(0)))

POINTWISE(leaky_relu, 1, 1, where(a[0] > 0, a[0], a[0] * number[0]))

POINTWISE(leaky_relu_grad, 2, 1, where(a[1] > 0, a[0], a[0] * number[0]))

POINTWISE(hardswish, 1, 0, at_most(at_least(a[0] + 3, 0), 6) * a[0] / 6)

INLINE vec hardswish_grad_of(vec g, vec x) {
    return where(x <= -3, all(0), where(x < 3, (x / 3 + 0.5f) * g, g));
}

POINTWISE(hardswish_grad, 2, 0, hardswish_grad_of(a[0], a[1]))

INLINE vec sigmoid_of(vec x) { return 1 / (exp_of(-x) + 1); }

POINTWISE(sigmoid, 1, 0, sigmoid_of(a[0]))

POINTWISE(silu, 1, 0, a[0] / (exp_of(-a[0]) + 1))

INLINE vec silu_grad_of(vec g, vec x) {
    vec s = sigmoid_of(x);
    return ((1 - s) * x + 1) * s * g;
}

POINTWISE(silu_grad, 2, 0, silu_grad_of(a[0], a[1]))

INLINE vec absolute(vec x) { return (vec)((ints)x & INT32_MAX); }

INLINE vec expm1_of(vec x) {
    ints n;
    vec less_one = exp_parts(at_least(at_most(x, 89), -104.5f), &n);
    return where(n == 0, less_one, times_power(less_one + 1, n) - 1);
}

INLINE vec elu_of(vec x, float alpha, float scale, float input_scale) {
    return where(x > 0, x * scale, expm1_of(at_most(x, 0) * input_scale) * (alpha * scale));
}

POINTWISE(elu, 1, 3, elu_of(a[0], number[0], number[1], number[2]))

INLINE vec elu_grad_of(vec g, vec x, float alpha, float scale, float input_scale) {
    return g * where(x <= 0, exp_of(at_most(x, 0) * input_scale) * (alpha * scale * input_scale), all(scale));
}

POINTWISE(elu_grad, 2, 3, elu_grad_of(a[0], a[1], number[0], number[1], number[2]))

// log((1 + z) / (1 - z)) for |z| up to 1 / 3: in the place of its series, a polynomial that is fitted to it.
INLINE vec log_ratio_of(vec z) {
    vec square = z * z, p = square * 0.28024465710377466f + 0.2799913979980111f;
    p = p * square + 0.4002169912883807f;
    p = p * square + 0.6666641313168186f;
    return p * square * z + 2 * z;
}

// log(x) of normal numbers above 0, or NaN: x = 2^n m with m about 1.
INLINE vec log_of(vec x) {
    ints n = ((ints)x - (ints)all(0x1.6a09e6p-1f)) >> 23;
    vec m = (vec)((ints)x - (n << 23));
    return __builtin_convertvector(n, vec) * 0.6931471805599453f + log_ratio_of((m - 1) / (m + 1)) + 0 * x;
}

// log(1 + exp(-|x|))
INLINE vec log1p_exp_of(vec x) {
    vec e = exp_of(-absolute(x));
    return log_ratio_of(e / (e + 2));
}

POINTWISE(log_sigmoid, 1, 0, at_most(a[0], 0) - log1p_exp_of(a[0]))

// Of kernels/loss.py.
POINTWISE(logistic, 2, 0, (1 - a[1]) * a[0] - (at_most(a[0], 0) - log1p_exp_of(a[0])))

INLINE vec softplus_of(vec x, float beta, float threshold) {
    vec scaled = x * beta;
    return where(scaled > threshold, x, (log1p_exp_of(scaled) + at_least(scaled, 0)) / beta);
}

POINTWISE(softplus, 1, 2, softplus_of(a[0], number[0], number[1]))

INLINE vec softplus_grad_of(vec g, vec x, float beta, float threshold) {
    vec scaled = x * beta;
    return where(scaled > threshold, g, g * sigmoid_of(scaled));
}

POINTWISE(softplus_grad, 2, 2, softplus_grad_of(a[0], a[1], number[0], number[1]))

POINTWISE(sigmoid_slope, 2, 0, (1 - a[1]) * a[1] * a[0])

POINTWISE(tanh_slope, 2, 0, (1 - a[1] * a[1]) * a[0])

// exp(-x x / 2) for x from 0 to 13: a power of 2, by a polynomial that is fitted to that.
INLINE vec bell_of(vec x) {
    const float shift = 0x1.8p23f;  // as in `exp_parts`
    vec power = x * -0.7213475204444817f * x, shifted = power + shift, rest = power - (shifted - shift);
    vec p = rest * 0.001327647129073739f + 0.009675540961325169f;
    p = p * rest + 0.05550713092088699f;
    p = p * rest + 0.24022120237350464f;
    p = p * rest + 0.6931469440460205f;
    p = p * rest + 1;
    return (vec)((ints)p + ((ints)shifted << 23));
}

// What the normal distribution has beyond x, from 0 to 13, divided by `bell_of(x)`: a polynomial of t = 1 / (1 + p x),
// fitted to 5e-8.
INLINE vec beyond_of(vec x) {
    vec t = 1 / (x * 0.296f + 1);
    vec p = t * 0.03796684741973877f - 0.17422249913215637f;
    p = p * t + 0.2486872524023056f;
    p = p * t - 0.09218185395002365f;
    p = p * t + 0.14927464723587036f;
    p = p * t + 0.09230004996061325f;
    p = p * t + 0.120213583111763f;
    p = p * t + 0.11796195805072784f;
    return p * t;
}

INLINE vec gelu_of(vec x) {
    vec size = absolute(x), near = at_most(size, 13);
    return x * 0.5f + size * 0.5f - beyond_of(near) * bell_of(near) * near;
}

INLINE vec gelu_grad_of(vec g, vec x) {
    vec near = at_most(absolute(x), 13), slope = (beyond_of(near) - near * 0.3989422804014327f) * bell_of(near);
    return g * where(x > 0, 1 - slope, slope);
}

// By tanh: (1 + tanh(z)) / 2 = 1 / (1 + exp(-2 z)) with -2 z = x (a + b x x).
INLINE vec gelu_by_tanh_of(vec x) {
    return x / (exp_of(x * (x * x * -0.07135481627260025f + -1.5957691216057308f)) + 1);
}

INLINE vec gelu_grad_by_tanh_of(vec g, vec x) {
    vec square = x * x, cdf = 1 / (exp_of(x * (square * -0.07135481627260025f + -1.5957691216057308f)) + 1);
    return ((1 - cdf) * x * (square * 0.21406444881780074f + 1.5957691216057308f) + 1) * cdf * g;
}

POINTWISE(gelu_by_erf, 1, 0, gelu_of(a[0]))
POINTWISE(gelu_by_tanh, 1, 0, gelu_by_tanh_of(a[0]))
POINTWISE(gelu_grad_by_erf, 2, 0, gelu_grad_of(a[0], a[1]))
POINTWISE(gelu_grad_by_tanh, 2, 0, gelu_grad_by_tanh_of(a[0], a[1]))

static bool by_tanh(PyObject *approximate) {
    return PyUnicode_Check(approximate) && !PyUnicode_CompareWithASCIIString(approximate, "tanh");
}

KERNEL(gelu) { return count == 2 ? (by_tanh(args[1]) ? gelu_by_tanh_call : gelu_by_erf_call)(args, 1, out) : PASS; }

KERNEL(gelu_grad) {
    return count == 3 ? (by_tanh(args[2]) ? gelu_grad_by_tanh_call : gelu_grad_by_erf_call)(args, 2, out) : PASS;
}
