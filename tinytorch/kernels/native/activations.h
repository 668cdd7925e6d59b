// Activation functions of vectors, for the kernels of their own (activation.c) and for epilogues (channels_last.c).
#ifndef TINYTORCH_ACTIVATIONS_H
#define TINYTORCH_ACTIVATIONS_H

#include "elementary.h"

// What is 0 (NaN at minus infinity) below `low`, and x above `high`.
INLINE vec between(vec x, float low, float high, vec middle) {
    return where(x > high, x, where(x < low, x * 0, middle));
}

INLINE doubles hardswish_wide(doubles x) { return x * (1.0 / 6) * (x + 3); }
INLINE vec hardswish_of(vec x) { return between(x, -3, 3, ROUNDED(hardswish_wide, x)); }

// 2^x for |x| < 1000, with an error of 2^-28.9.
INLINE doubles exp2_near(doubles x) {
    const double shift = 0x1.8p52;  // as in `exp2_reduced`
    doubles shifted = x + shift, r = x - (shifted - shift);
    doubles p = POLYNOMIAL(r, 0.693147202855056, 0.24022647913630713, 0.05550332471144309, 0.009618437357535065,
                           0.0013398874408307518, 0.00015353361932720773);
    return (doubles)((longs)(times(r, p) + 1) + ((longs)shifted << 52));
}

INLINE doubles sigmoid_wide(doubles x) { return 1 / (exp2_near(times(x, all(-log2_of_e))) + 1); }
INLINE vec sigmoid_of(vec x) { return where_above(x, 20, 1, where_below(x, -110, 0, ROUNDED(sigmoid_wide, x))); }

INLINE doubles silu_wide(doubles x) { return x / (exp2_near(times(x, all(-log2_of_e))) + 1); }
INLINE vec silu_of(vec x) { return between(x, -120, 20, ROUNDED(silu_wide, x)); }

// a times the upper tail probability of the normal distribution at a, from 0 to 14.5: exp(-a a / 2) times a rational
// function with an error of 2^-27.3.
INLINE doubles gelu_tail(doubles a) {
    doubles gaussian = exp2_near(times(times(a, all(-0.7213475204444817)), a));
    doubles p = POLYNOMIAL(a, 0.5000000029350743, 0.4381932365322325, 0.18315972155967766, 0.04060778471442702,
                           0.004112527234212674);
    return times(a, gaussian) * p / POLYNOMIAL(a, 1, 1.6742714517457051, 1.2021900218017016, 0.4692715191436704,
                                                    0.10179510317218278, 0.010308456444521085);
}
INLINE vec gelu_erf_of(vec x) {
    vec a = clamp_max(vabs(x), 14.5f), positive = where(x < 0, x * 0, x);
    doubles lower = gelu_tail(HALF_OF(a, 0)), upper = gelu_tail(HALF_OF(a, 1));
    return rounded(HALF_OF(positive, 0) - lower, HALF_OF(positive, 1) - upper);
}

// The approximation by tanh: (1 + tanh(z)) / 2 = 1 / (1 + 2^y) with y = x (a + b x x).
INLINE doubles gelu_tanh_wide(doubles x) {
    doubles square = times(x, x), factor = times(square, all(-0.1029432395800235)) - 2.302208198144325;
    return x / (exp2_near(times(x, factor)) + 1);
}
INLINE vec gelu_tanh_of(vec x) { return between(x, -12, 10, ROUNDED(gelu_tanh_wide, x)); }

#endif
