// Epilogues: what products and convolutions do to their sums where they store them, besides adding a bias and a
// residual.
#ifndef TINYTORCH_EPILOGUES_H
#define TINYTORCH_EPILOGUES_H

#include "activations.h"

// CLAMP bounds the sums, maybe by infinities.
typedef enum { CLAMP, SILU, HARDSWISH, HARDSIGMOID, SIGMOID, GELU, GELU_TANH } Activation;

typedef struct {
    Activation activation;
    float low, high;
} Epilogue;

INLINE vec activated(Activation activation, vec x) {
    if (activation == SILU) return quick_silu_of(x);
    if (activation == HARDSWISH) return hardswish_of(x);
    if (activation == HARDSIGMOID) return clamp_max(clamp_min(x + 3, 0), 6) / 6;
    if (activation == SIGMOID) return vsigmoid(x);
    if (activation == GELU) return gelu_erf_of(x);
    return gelu_tanh_of(x);
}

#define ACTIVATE(kind)                                                                                                 \
    case kind: {                                                                                                       \
        int64_t i = 0;                                                                                                 \
        for (; i + WIDTH <= count; i += WIDTH) store(to + i, activated(kind, load(to + i)));                           \
        if (i < count) store_partial(to + i, activated(kind, load_partial(to + i, count - i)), count - i);             \
        break;                                                                                                         \
    }

// Apply an activation function other than CLAMP to some floats.
static __attribute__((noinline)) void activate(Activation activation, float *to, int64_t count) {
    switch (activation) {
        ACTIVATE(SILU)
        ACTIVATE(HARDSWISH)
        ACTIVATE(HARDSIGMOID)
        ACTIVATE(SIGMOID)
        ACTIVATE(GELU)
        ACTIVATE(GELU_TANH)
    case CLAMP:
        break;
    }
}
#undef ACTIVATE

// Add a residual, unless it is NULL, to some sums, and apply the activation function.
static inline void finish_sums(const Epilogue *e, float *to, const float *residual, int64_t count) {
    bool bounded = e->low > -INFINITY || e->high < INFINITY;
    if (residual || bounded) {
        int64_t i = 0;
        for (; i + WIDTH <= count; i += WIDTH) {
            vec x = load(to + i);
            if (residual) x += load(residual + i);
            store(to + i, bounded ? clamp_max(clamp_min(x, e->low), e->high) : x);
        }
        if (i < count) {
            vec x = load_partial(to + i, count - i);
            if (residual) x += load_partial(residual + i, count - i);
            store_partial(to + i, clamp_max(clamp_min(x, e->low), e->high), count - i);
        }
    }
    if (e->activation != CLAMP) activate(e->activation, to, count);
}

// Read the arguments of an epilogue: the name of its function, and the bounds of "clamp".
static inline bool read_epilogue(PyObject *activation, PyObject *low, PyObject *high, Epilogue *e) {
    static const char *const names[] = {"clamp", "silu", "hardswish", "hardsigmoid", "sigmoid", "gelu", "gelu_tanh"};
    *e = (Epilogue){CLAMP, -INFINITY, INFINITY};
    if (is_string(activation, "none")) return true;
    if (is_string(activation, "relu")) {
        e->low = 0;
        return true;
    }
    for (int k = 0; k < (int)(sizeof names / sizeof *names); k++) {
        if (!is_string(activation, names[k])) continue;
        e->activation = (Activation)k;
        return k || (tt_read_number(low, &e->low) && tt_read_number(high, &e->high));
    }
    return false;
}

#endif
