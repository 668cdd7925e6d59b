// Activation functions of vectors, for the kernels of their own (activation.c) and for epilogues (channels_last.c).
#ifndef TINYTORCH_ACTIVATIONS_H
#define TINYTORCH_ACTIVATIONS_H

#include "helpers.h"

INLINE vec hardswish_of(vec x) { return clamp_max(clamp_min(x + 3, 0), 6) / 6 * x; }

INLINE vec silu_of(vec x) { return x / (vexp(-x) + 1); }

// exp(-x x / 2) for x from 0 to 13: a power of 2 as in `exp_reduced`, by a fitted polynomial.
INLINE vec gaussian(vec x) {
    const float shift = 0x1.8p23f;
    vec power = x * -0.7213475204444817f * x, shifted = power + shift, rest = power - (shifted - shift);
    vec p = rest * 0.001327647129073739f + 0.009675540961325169f;
    p = p * rest + 0.05550713092088699f;
    p = p * rest + 0.24022120237350464f;
    p = p * rest + 0.6931469440460205f;
    p = p * rest + 1;
    return (vec)((ints)p + ((ints)shifted << 23));
}

// The upper tail probability of the normal distribution at x, from 0 to 13, divided by `gaussian(x)`: a polynomial of
// t = 1 / (1 + p x), fitted to 5e-8.
INLINE vec scaled_upper_tail(vec x) {
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

INLINE vec gelu_erf_of(vec x) {
    vec magnitude = vabs(x), clamped = clamp_max(magnitude, 13);
    return x * 0.5f + magnitude * 0.5f - scaled_upper_tail(clamped) * gaussian(clamped) * clamped;
}

// The approximation by tanh: (1 + tanh(z)) / 2 = 1 / (1 + exp(-2 z)) with -2 z = x (a + b x x).
INLINE vec gelu_tanh_of(vec x) { return x / (vexp(x * (x * x * -0.07135481627260025f + -1.5957691216057308f)) + 1); }

#endif
