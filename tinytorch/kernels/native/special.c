// Twins of functions of kernels/gamma.py and kernels/special.py: log gamma, its derivative, and the inverse of erf.
// They are computed in double precision and rounded once, as those of elementary.h, by rational functions with errors of
// at most 2^-31. What is not positive, where zeros lie between poles, is computed one by one.
#include "elementary.h"

// log|gamma(x)| for x > -1/2. Between 1/2 and 10 it is (x - 1) (x - 2) times a rational function, before that
// log|gamma(x + 1)| - log|x|, and after it Stirling's series (DLMF 5.11.1).
INLINE doubles lgamma_wide(doubles x) {
    longs small = magnitude(x) < 0.5, large = x >= 10;
    doubles n, a = magnitude(x), log = log_reduced(a, a - 1, &n), y = choose(small, x + 1, choose(large, all(1), x));
    log = log + times(n, all(log_of_2));
    doubles p = POLYNOMIAL(y, 2.333942589712959, 35.16315143349461, 98.43443963086614, 75.89135786554436,
                           17.17323775828827, 0.9592160220535859, 0.003994499865872287, -2.1033221048851966e-05);
    doubles q = POLYNOMIAL(y, 1, 27.912534917624097, 129.17686349431355, 163.79803844938706, 67.42268795275318,
                           8.80489121802379, 0.2790899582034195);
    doubles near = times(times(y - 1, y - 2), p / q) + 0, inverse = 1 / x;
    doubles series = POLYNOMIAL(times(inverse, inverse), 1 / 12., -1 / 360., 1 / 1260.);
    doubles far = times(x - 0.5, log) - x + 0.9189385332046727 + times(series, inverse);
    return choose(large, far, choose(small, near - log, near));
}

// digamma(x) for x > 0. Between 1 and 10 it is x minus its root, times a rational function, before that
// digamma(x + 1) - 1 / x, and after it the asymptotic series (DLMF 5.11.2).
INLINE doubles digamma_wide(doubles x) {
    const double root = 1.4616321449683622, rest = 9.549995429965697e-17;
    longs small = x < 1, large = x >= 10;
    doubles n, log = log_reduced(x, x - 1, &n), y = choose(small, x + 1, choose(large, all(1), x)), inverse = 1 / x;
    log = log + times(n, all(log_of_2));
    doubles p = POLYNOMIAL(y, 3580.5690832870837, 9608.93154356296, 5511.245135555071, 838.6243191475389,
                           27.68604847318596, 0.039953572615408106);
    doubles q = POLYNOMIAL(y, 1, 5225.854510529482, 7473.101368430264, 2675.8245224473, 267.51643834415273,
                           5.621040106730682);
    doubles near = times((y - root) - rest, p / q), square = times(inverse, inverse);
    doubles series = POLYNOMIAL(square, 1 / 12., -1 / 120., 1 / 252.);
    doubles far = log - inverse * 0.5 - times(series, square);
    return choose(large, far, choose(small, near - inverse, near));
}

// By reflection (DLMF 5.5.4). There are zeros between the poles, so nothing is lost here.
static float digamma_of_negative(float x) {
    const double near = (double)x - rint((double)x), pi = 3.141592653589793;
    if (near == 0) return x == 0 ? copysignf(INFINITY, -x) : NAN;
    double y = 1 - (double)x, sum = -pi / tan(pi * near);
    for (; y < 10; y++) sum -= 1 / y;
    double square = 1 / (y * y);
    double series = 1 / 252. - square * (1 / 240. - square * (1 / 132. - square * (691 / 32760. - square / 12)));
    return (float)(sum + log(y) - 0.5 / y - square * (1 / 12. - square * (1 / 120. - square * series)));
}

// erfinv(x) / x is a rational function of w = -log(1 - x x), which is at most 17 for numbers below 1.
INLINE doubles erfinv_wide(doubles x) {
    doubles n, w = log_reduced(times(1 - x, x + 1), times(-x, x), &n);
    w = -(w + times(n, all(log_of_2)));
    doubles p = POLYNOMIAL(w, 0.8862269250887422, 0.28897434098418445, 0.054205372750625994, 0.006803444107142377,
                           0.0005281863580547665, 1.7010642348104962e-05, -5.468903965658018e-07);
    doubles q = POLYNOMIAL(w, 1, 0.0642732368847576, 0.03130546611898952, 0.0012784398688293196, 0.0001670928349361096,
                           -2.0065926600823964e-06, -3.2704985585467306e-08);
    return times(x, p / q);
}

static float lgamma_of_negative(float x) {
    int sign;
    return (float)lgamma_r(x, &sign);
}

// Compute the lanes of a mask by a function of one number.
INLINE vec with_lanes(vec x, ints mask, float (*function)(float), vec result) {
    if (any(mask)) {
        for (int lane = 0; lane < WIDTH; lane++) {
            if (mask[lane]) result[lane] = function(x[lane]);
        }
    }
    return result;
}

INLINE vec lgamma_of(vec x) {
    vec result = where((x == 0) | (vabs(x) == INFINITY), broadcast(INFINITY), ROUNDED(lgamma_wide, x));
    return with_lanes(x, x <= -0.5f, lgamma_of_negative, where(x == x, result, x));
}
INLINE vec digamma_of(vec x) {
    vec result = where((x == x) & (x < INFINITY), ROUNDED(digamma_wide, x), x);
    return with_lanes(x, x <= 0, digamma_of_negative, result);
}
INLINE vec erfinv_of(vec x) {
    vec a = vabs(x), rest = where(a == 1, with_sign(broadcast(INFINITY), x), broadcast(NAN));
    return where(a < 1, ROUNDED(erfinv_wide, x), rest);
}

POINTWISE(lgamma, (x), (), lgamma_of(x))
POINTWISE(digamma, (x), (), digamma_of(x))
POINTWISE(erfinv, (x), (), erfinv_of(x))

// The derivative number n > 0 of digamma at x > 0: (-1)^(n + 1) n! times the sum of 1 / (x + k)^(n + 1), whose rest from
// x + 8 on is the series of Euler and Maclaurin (DLMF 25.11.5).
INLINE doubles inverse_power(doubles x, int s) {
    doubles inverse = 1 / x, power = inverse;
    while (--s) power = times(power, inverse);
    return power;
}

INLINE doubles polygamma_wide(doubles x, int n) {
    static const double series[] = {1 / 12., -1 / 720., 1 / 30240., -1 / 1209600., 1 / 47900160.};
    doubles sum = all(0);
    for (int k = 0; k < 8; k++, x += 1) sum += inverse_power(x, n + 1);
    doubles rest = x / n + 0.5, inverse = 1 / x, factor = (n + 1) * inverse;
    for (int k = 0; k < 5; k++) {
        rest += series[k] * factor;
        factor = times(factor, times(inverse, inverse)) * ((n + 2 * k + 2) * (n + 2 * k + 3));
    }
    sum += times(inverse_power(x, n + 1), rest);
    for (int k = 2; k <= n; k++) sum *= k;
    return n % 2 ? sum : -sum;
}

INLINE vec polygamma_of(vec x, int n) { return ROUNDED(polygamma_wide, x, n); }

POINTWISE_BLOCK(polygamma, (x), (n), polygamma_of(x, (int)n))

KERNEL(polygamma, x, n) {
    const Py_ssize_t n = read_int(args->n);
    if (!is_float_array(args->x, false) || n < 1 || n > 8) return FALLBACK;
    const float *x = float_data(args->x);
    for (npy_intp i = 0; i < PyArray_SIZE(ARRAY(args->x)); i++) {
        if (!(x[i] > 0 && x[i] < INFINITY)) return FALLBACK;
    }
    return tt_pointwise(&args->x, 1, 1, Py_None, polygamma_block);
}

FAMILY(special, ENTRY(lgamma), ENTRY(digamma), ENTRY(erfinv), ENTRY(polygamma));
