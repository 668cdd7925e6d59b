// Twins of kernels/activation.py, but for the softmax functions; and `logistic` of kernels/loss.py.
#include "activations.h"
#include "elementary.h"

POINTWISE(relu, (x), (), clamp_min(x, 0))

POINTWISE(relu_grad, (g, y), (), where(y != 0, g, broadcast(0)))

POINTWISE(leaky_relu, (x), (slope), where(x > 0, x, x *(float)slope))

POINTWISE(leaky_relu_grad, (g, x), (slope), where(x > 0, g, g *(float)slope))

POINTWISE(hardswish, (x), (), hardswish_of(x))

POINTWISE(hardswish_grad, (g, x), (), where(x <= -3, broadcast(0), where(x < 3, (x / 3 + 0.5f) * g, g)))

POINTWISE(sigmoid, (x), (), vsigmoid(x))

// The slopes of sigmoid and tanh lose digits where |y| is near 1; there they are computed by the input, if it is given.
static const float flat = 1 - 0x1p-9f;

INLINE vec slope_of(vec g, vec y, bool tanh) { return tanh ? (1 - y * y) * g : (1 - y) * y * g; }

INLINE vec slope_by_input(vec g, vec y, vec x, bool tanh) {
    vec size = tanh ? vabs(y) : y, factor = tanh ? size + 1 : y, power = tanh ? -2 * vabs(x) : -x;
    return where(size > flat, factor * factor * vexp(power) * g, slope_of(g, y, tanh));
}

INLINE void slope_block(const float *const *inputs, float *out, Py_ssize_t length, bool tanh) {
    const float *g = inputs[0], *y = inputs[1], *x = inputs[2];
    Py_ssize_t at = 0;
    for (; at + UNROLLED_WIDTH <= length; at += UNROLLED_WIDTH) {
        vec largest = broadcast(0);
        for (int k = 0; k < UNROLL; k++) {
            vec size = load(y + at + k * WIDTH);
            largest = vmax(tanh ? vabs(size) : size, largest);
        }
        bool far = horizontal_max(largest) > flat;
        for (int k = 0; far && k < UNROLL; k++) {
            Py_ssize_t i = at + k * WIDTH;
            store(out + i, slope_by_input(load(g + i), load(y + i), load(x + i), tanh));
        }
        for (int k = 0; !far && k < UNROLL; k++) {
            Py_ssize_t i = at + k * WIDTH;
            store(out + i, slope_of(load(g + i), load(y + i), tanh));
        }
    }
    for (; at < length; at += WIDTH) {
        Py_ssize_t left = length - at;
        vec last_g = load_up_to(g + at, left), last_y = load_up_to(y + at, left), last_x = load_up_to(x + at, left);
        store_up_to(out + at, slope_by_input(last_g, last_y, last_x, tanh), left);
    }
}

POINTWISE_BLOCK(sigmoid_slope, (g, y), (), slope_of(g, y, false))
POINTWISE_BLOCK(tanh_slope, (g, y), (), slope_of(g, y, true))

static void sigmoid_slope_by_input(const float *const *inputs, const double *numbers, float *out, Py_ssize_t length) {
    (void)numbers;
    slope_block(inputs, out, length, false);
}

static void tanh_slope_by_input(const float *const *inputs, const double *numbers, float *out, Py_ssize_t length) {
    (void)numbers;
    slope_block(inputs, out, length, true);
}

KERNEL(sigmoid_slope, g, y, x) {
    bool alone = args->x == Py_None;
    return tt_pointwise(&args->g, alone ? 2 : 3, 0, Py_None, alone ? sigmoid_slope_block : sigmoid_slope_by_input);
}

KERNEL(tanh_slope, g, y, x) {
    bool alone = args->x == Py_None;
    return tt_pointwise(&args->g, alone ? 2 : 3, 0, Py_None, alone ? tanh_slope_block : tanh_slope_by_input);
}

POINTWISE(silu, (x), (), silu_of(x))

INLINE vec silu_grad_of(vec g, vec x) {
    vec s = vsigmoid(x);
    return ((1 - s) * x + 1) * s * g;
}

POINTWISE(silu_grad, (g, x), (), silu_grad_of(g, x))

INLINE doubles elu_wide(doubles x, double alpha, double scale, double input_scale) {
    return choose(x >= 0, x, expm1_wide(clamp_below(x * input_scale)) * alpha) * scale;
}

POINTWISE(elu, (x), (alpha, scale, input_scale), ROUNDED(elu_wide, x, alpha, scale, input_scale))

INLINE vec elu_grad_of(vec g, vec x, float alpha, float scale, float input_scale) {
    vec slope = vexp(clamp_max(x, 0) * input_scale) * (alpha * scale * input_scale);
    return g * where(x <= 0, slope, broadcast(scale));
}

POINTWISE(elu_grad, (g, x), (alpha, scale, input_scale), elu_grad_of(g, x, alpha, scale, input_scale))

// log(1 + exp(beta x)) / beta; log(1 + e) is log((1 + s) / (1 - s)) with s = e / (e + 2), up to 1/3.
INLINE doubles softplus_wide(doubles x, double beta) {
    doubles scaled = x * beta, e = exp_wide(clamp_below(-magnitude(scaled))), s = e / (e + 2);
    doubles log = s * POLYNOMIAL(times(s, s), 1.9999999998088853, 0.6666667903300155, 0.39998710691898715,
                                 0.2862022346306389, 0.21398374082944616, 0.24394655861511594);
    KEEP(log);
    return (log + choose(scaled < 0, all(0), scaled)) * (1 / beta);
}

POINTWISE(log_sigmoid, (x), (), 0 - ROUNDED(softplus_wide, -x, 1))

POINTWISE(logistic, (x, y), (), (1 - y) * x - (clamp_max(x, 0) - vlog1p_exp(x)))

POINTWISE_BLOCK(binary_entropies, (x, y), (),
                (y - 1) * clamp_min(log1p_of(-x), -100) - y * clamp_min(log_of(x), -100))

static bool are_probabilities(PyObject *x) {
    bool all = is_float_array(x, false);
    for (Py_ssize_t i = 0, size = all ? PyArray_SIZE(ARRAY(x)) : 0; i < size; i++) {
        all &= float_data(x)[i] >= 0 && float_data(x)[i] <= 1;
    }
    return all;
}

KERNEL(binary_entropies, x, y) {
    if (!are_probabilities(args->x) || !are_probabilities(args->y)) return FALLBACK;
    return tt_pointwise(&args->x, 2, 0, Py_None, binary_entropies_block);
}

INLINE vec softplus_of(vec x, float beta, float threshold) {
    return where(x * beta > threshold, x, ROUNDED(softplus_wide, x, beta));
}

POINTWISE(softplus, (x), (beta, threshold), softplus_of(x, beta, threshold))

INLINE vec softplus_grad_of(vec g, vec x, float beta, float threshold) {
    vec scaled = x * beta;
    return where(scaled > threshold, g, g * vsigmoid(scaled));
}

POINTWISE(softplus_grad, (g, x), (beta, threshold), softplus_grad_of(g, x, beta, threshold))

// tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2) and e = exp(x); from 20 on it is 1.
INLINE doubles mish_wide(doubles x) {
    doubles e = exp_wide(choose(x > 20, all(20), x)), n = e * (e + 2);
    KEEP(n);
    return x * (n / (n + 2));
}

POINTWISE(mish, (x), (), where(x < -200, x * 0, ROUNDED(mish_wide, x)))

INLINE doubles softsign_wide(doubles x) { return x / (magnitude(x) + 1); }

POINTWISE(softsign, (x), (), ROUNDED(softsign_wide, x))

// x - tanh(x), as x^3 times a rational function with an error of 2^-30.9 where |x| <= 9.02.
INLINE doubles tanhshrink_wide(doubles x) {
    doubles square = times(x, x);
    doubles p = POLYNOMIAL(square, 0.3333333331735247, 0.023488329436442437, 0.00037232406496464146,
                           1.3123167560110194e-06, 1.3608844905358317e-11);
    return x * square * p / POLYNOMIAL(square, 1, 0.47046498459286196, 0.027398209105903078, 0.0004011616907358978,
                                       1.3448573635216955e-06);
}

INLINE vec tanhshrink_of(vec x) {
    return where(vabs(x) > 9.02f, x - with_sign(broadcast(1), x), ROUNDED(tanhshrink_wide, x)) + 0;  // (not -0)
}

POINTWISE(tanhshrink, (x), (), tanhshrink_of(x))

enum { GATED_OF_PART = 1 << 14 };

typedef struct {
    const float *x;
    float *out, *gate;
    int64_t rows, half, rows_per_part;
} Gated;

static void glu_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Gated *g = context;
    const int64_t half = g->half, end = imin((part + 1) * g->rows_per_part, g->rows);
    for (int64_t row = part * g->rows_per_part; row < end; row++) {
        const float *a = g->x + 2 * row * half, *b = a + half;
        float *out = g->out + row * half, *gate = g->gate + row * half;
        for (int64_t i = 0; i < half; i += WIDTH) {
            const vec s = vsigmoid(load_up_to(b + i, half - i));
            store_up_to(gate + i, s, half - i);
            store_up_to(out + i, load_up_to(a + i, half - i) * s, half - i);
        }
    }
}

KERNEL(glu, x, dim) {
    if (!is_float_array(args->x, false)) return FALLBACK;
    const int dims = PyArray_NDIM(ARRAY(args->x)), dim = read_dim(args->dim, dims);
    if (dim < 0 || PyArray_DIM(ARRAY(args->x), dim) % 2) return FALLBACK;
    int64_t shape[NPY_MAXDIMS];
    Gated g = {.x = float_data(args->x), .rows = 1};
    for (int d = 0; d < dims; d++) shape[d] = PyArray_DIM(ARRAY(args->x), d) / (d == dim ? 2 : 1);
    for (int d = 0; d < dim; d++) g.rows *= shape[d];
    PyObject *result = tt_new_array(args->x, dims, shape), *gate = tt_new_array(args->x, dims, shape);
    if (result && gate && PyArray_SIZE(ARRAY(result))) {
        g.out = float_data(result);
        g.gate = float_data(gate);
        g.half = PyArray_SIZE(ARRAY(result)) / g.rows;
        g.rows_per_part = 1 + GATED_OF_PART / g.half;
        tt_parallel_for(glu_part, &g, ceil_div(g.rows, g.rows_per_part), g.rows * g.half, tt_threads());
    }
    return new_tuple(2, (PyObject *[]){result, gate});
}

// GELU ------------------------------------------------------------------------------------------

INLINE vec gelu_erf_grad_of(vec g, vec x) {
    vec clamped = clamp_max(vabs(x), 13);
    vec slope = (scaled_upper_tail(clamped) - clamped * 0.3989422804014327f) * gaussian(clamped);
    return g * where(x > 0, 1 - slope, slope);
}

INLINE vec gelu_tanh_grad_of(vec g, vec x) {
    vec square = x * x, cdf = 1 / (vexp(x * (square * -0.07135481627260025f + -1.5957691216057308f)) + 1);
    return ((1 - cdf) * x * (square * 0.21406444881780074f + 1.5957691216057308f) + 1) * cdf * g;
}

POINTWISE_BLOCK(gelu_erf, (x), (), gelu_erf_of(x))
POINTWISE_BLOCK(gelu_tanh, (x), (), gelu_tanh_of(x))
POINTWISE_BLOCK(gelu_erf_grad, (g, x), (), gelu_erf_grad_of(g, x))
POINTWISE_BLOCK(gelu_tanh_grad, (g, x), (), gelu_tanh_grad_of(g, x))

KERNEL(gelu, x, approximate) {
    Pointwise block = is_string(args->approximate, "tanh") ? gelu_tanh_block : gelu_erf_block;
    return tt_pointwise(&args->x, 1, 0, Py_None, block);
}

KERNEL(gelu_grad, g, x, approximate) {
    Pointwise block = is_string(args->approximate, "tanh") ? gelu_tanh_grad_block : gelu_erf_grad_block;
    return tt_pointwise(&args->g, 2, 0, Py_None, block);
}

FAMILY(activation, ENTRY(relu), ENTRY(relu_grad), ENTRY(leaky_relu), ENTRY(leaky_relu_grad), ENTRY(hardswish),
       ENTRY(hardswish_grad), ENTRY(sigmoid), ENTRY(sigmoid_slope), ENTRY(tanh_slope), ENTRY(silu), ENTRY(silu_grad),
       ENTRY(elu), ENTRY(elu_grad), ENTRY(log_sigmoid), ENTRY(logistic),
       ENTRY(binary_entropies), ENTRY(softplus), ENTRY(softplus_grad),
       ENTRY(mish), ENTRY(softsign), ENTRY(tanhshrink), ENTRY(gelu), ENTRY(gelu_grad), ENTRY(glu));
