// Activation functions of vectors, for the kernels of their own (activation.c) and for epilogues (channels_last.c).
#ifndef TINYTORCH_ACTIVATIONS_H
#define TINYTORCH_ACTIVATIONS_H

#include "helpers.h"

INLINE vec hardswish_of(vec x) { return clamp_max(clamp_min(x + 3, 0), 6) / 6 * x; }

INLINE vec silu_of(vec x) { return x / (vexp(-x) + 1); }

// 2^(n + rest) for |rest| <= 1 / 2, by a fitted polynomial; the integer n is in the low bits of `shifted`, as in
// `exp_reduced`, and the result is a normal number.
INLINE vec power_of_2(vec shifted, vec rest) {
    vec p = rest * 0.001327647129073739f + 0.009675540961325169f;
    p = p * rest + 0.05550713092088699f;
    p = p * rest + 0.24022120237350464f;
    p = p * rest + 0.6931469440460205f;
    p = p * rest + 1;
    return (vec)((ints)p + ((ints)shifted << 23));
}

// silu(x), to 4 ulp, in two thirds of the time; where exp(-x) is no normal number, it is 0 or infinite.
INLINE vec quick_silu_of(vec x) {
    const float shift = 0x1.8p23f, factor = -0x1.715476p0f, rest_of_factor = -1.925963033500966e-08f;
    vec bounded = clamp_max(x, 87), shifted = bounded * factor + shift, rest = bounded * factor - (shifted - shift);
    vec power = power_of_2(shifted, bounded * rest_of_factor + rest);
    return x / (where(x < -88.5f, broadcast(INFINITY), power) + 1);
}

// exp(-x x / 2) for x from 0 to 13.
INLINE vec gaussian(vec x) {
    const float shift = 0x1.8p23f;
    vec power = x * -0.7213475204444817f * x, shifted = power + shift;
    return power_of_2(shifted, power - (shifted - shift));
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
