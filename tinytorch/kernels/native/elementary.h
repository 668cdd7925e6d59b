// Elementary functions of vectors of floats, computed in double precision and rounded once: their errors are little
// more than half a unit in the last place. (`exp` and `log` are computed in single precision, with the rounding errors
// that count: theirs are below 0.6.) Products that are not exact are rounded before they are added (`times`), so that
// the results are the same bits on every instruction set. The polynomials in double precision interpolate at Chebyshev
// points, with errors below 2^-31; rational functions are fitted to the smallest relative error.
#ifndef TINYTORCH_ELEMENTARY_H
#define TINYTORCH_ELEMENTARY_H

#include "helpers.h"

// Half as many lanes as a `vec` has.
typedef double doubles __attribute__((vector_size(4 * WIDTH)));
typedef int64_t longs __attribute__((vector_size(4 * WIDTH)));
typedef uint64_t unsigned_longs __attribute__((vector_size(4 * WIDTH)));
typedef float few __attribute__((vector_size(2 * WIDTH)));

#if WIDTH == 16
#define LANES(i) (i), (i) + 1, (i) + 2, (i) + 3, (i) + 4, (i) + 5, (i) + 6, (i) + 7
#elif WIDTH == 8
#define LANES(i) (i), (i) + 1, (i) + 2, (i) + 3
#else
#define LANES(i) (i), (i) + 1
#endif
#define HALF_OF(x, half) widened(__builtin_shufflevector(x, x, LANES((half) * (WIDTH / 2))))

INLINE doubles widened(few x) {
#if WIDTH == 16
    doubles wide;  // (GCC 12 widens the halves, and joins them)
    __asm__("vcvtps2pd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
#else
    return __builtin_convertvector(x, doubles);
#endif
}

INLINE vec rounded(doubles lower, doubles upper) {
    few a = __builtin_convertvector(lower, few), b = __builtin_convertvector(upper, few);
    return __builtin_shufflevector(a, b, LANES(0), LANES(WIDTH / 2));
}

// The vector of floats that a function of doubles gives for one. (What follows are further arguments.)
#define ROUNDED(function, x, ...)                                                                                      \
    rounded(function(HALF_OF(x, 0), ##__VA_ARGS__), function(HALF_OF(x, 1), ##__VA_ARGS__))

INLINE doubles all(double x) { return x - (doubles){0}; }

// Keep the compiler from contracting a product with the sum that it is added to: it has to be there.
#if defined(__x86_64__)
#define KEEP(product) __asm__("" : "+v"(product))
#elif defined(__aarch64__)
#define KEEP(product) __asm__("" : "+w"(product))
#elif defined(__wasm__)
#define KEEP(product)  // (it has no instruction for both)
#else
#define KEEP(product) __asm__("" : "+m"(product))
#endif

INLINE doubles times(doubles x, doubles y) {
    doubles product = x * y;
    KEEP(product);
    return product;
}

INLINE vec vtimes(vec x, vec y) {
    vec product = x * y;
    KEEP(product);
    return product;
}

INLINE doubles choose(longs mask, doubles x, doubles y) { return (doubles)((mask & (longs)x) | (~mask & (longs)y)); }
INLINE doubles magnitude(doubles x) { return (doubles)((longs)x & INT64_MAX); }
INLINE doubles root(doubles x) {
    for (int lane = 0; lane < WIDTH / 2; lane++) x[lane] = __builtin_sqrt(x[lane]);
    return x;
}
INLINE bool any(ints mask) {
    if (WIDTH > 8) mask |= ROTATED(mask, 8);
    if (WIDTH > 4) mask |= ROTATED(mask, 4);
    mask |= ROTATED(mask, 2);
    return mask[0] | mask[1];
}
INLINE vec with_sign(vec x, vec sign) { return (vec)(((ints)x & INT32_MAX) | ((ints)sign & INT32_MIN)); }

// Sums of up to 2, 4, 8 and 16 terms of a polynomial, by the scheme of Estrin: short chains of dependent operations.
INLINE doubles terms_2(const double *c, int count, doubles x) {
    return count > 1 ? times(x, all(c[1])) + c[0] : all(c[0]);
}
INLINE doubles terms_4(const double *c, int count, doubles x, doubles x2) {
    doubles low = terms_2(c, count, x);
    return count > 2 ? times(terms_2(c + 2, count - 2, x), x2) + low : low;
}
INLINE doubles terms_8(const double *c, int count, doubles x, doubles x2, doubles x4) {
    doubles low = terms_4(c, count, x, x2);
    return count > 4 ? times(terms_4(c + 4, count - 4, x, x2), x4) + low : low;
}
INLINE doubles polynomial(const double *c, int count, doubles x) {
    doubles x2 = times(x, x), x4 = times(x2, x2), low = terms_8(c, count, x, x2, x4);
    return count > 8 ? times(terms_8(c + 8, count - 8, x, x2, x4), times(x4, x4)) + low : low;
}
// The coefficients are given by ascending power.
#define POLYNOMIAL(x, ...)                                                                                             \
    polynomial((const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double), x)

static const double log2_of_e = 1.4426950408889634, log_of_2 = 0.6931471805599453;

// Exponentials ----------------------------------------------------------------------------------

// 2^x = (1 + result) 2^n for |x| < 1000; `power` is n in the bits of the exponent. Keeps NaN, with n = 0.
INLINE doubles exp2_reduced(doubles x, longs *power) {
    const double shift = 0x1.8p52;  // x + shift is rounded to an integer, which is in the low bits of the sum
    doubles shifted = x + shift, r = x - (shifted - shift);
    *power = (longs)shifted << 52;
    return times(r, POLYNOMIAL(r, 0.6931471805599453, 0.2402265092256076, 0.05550410883930555, 0.00961805662050108,
                               0.001333350234150156, 0.00015461467905285986, 1.529734162283227e-05));
}

INLINE doubles exp2_wide(doubles x) {
    longs power;
    doubles reduced = exp2_reduced(x, &power);
    return (doubles)((longs)(reduced + 1) + power);
}
INLINE doubles exp_wide(doubles x) { return exp2_wide(times(x, all(log2_of_e))); }
INLINE doubles expm1_wide(doubles x) {
    longs power;
    doubles reduced = exp2_reduced(times(x, all(log2_of_e)), &power), scale = (doubles)((longs)all(1) + power);
    return times(reduced, scale) + (scale - 1);
}
INLINE doubles sinh_wide(doubles x) {
    doubles e = expm1_wide(magnitude(x));
    return (e + e / (e + 1)) * 0.5;
}
INLINE doubles cosh_wide(doubles x) {
    doubles e = exp_wide(magnitude(x));
    return (e + 1 / e) * 0.5;
}
// A rational function for |x| <= 9.02, with an error of 2^-30.
INLINE doubles tanh_wide(doubles x) {
    doubles square = times(x, x);
    doubles p = POLYNOMIAL(square, 0.9999999990687938, 0.1378611790934388, 0.0040094705056249735, 3.161002240242815e-05,
                           5.083616288322595e-08);
    return x * p / POLYNOMIAL(square, 1, 0.4711945033028478, 0.02774098649303684, 0.0004209147787825045,
                              1.6191133586316592e-06, 7.389355186004913e-10);
}
// Numbers below -200, whose exponentials are 0 in float32, as -200; keeps NaN.
INLINE doubles clamp_below(doubles x) { return choose(x < -200, all(-200), x); }

// (Selections afterwards delay the computation less than bounds before it.)
INLINE vec where_above(vec x, float bound, float value, vec rest) { return where(x > bound, broadcast(value), rest); }
INLINE vec where_below(vec x, float bound, float value, vec rest) { return where(x < bound, broadcast(value), rest); }

// exp(x) where it is a normal number: (1 + r + r r / 2 + r^3 q(r)) 2^n. What the rounding of r and of 1 + r loses is
// added to the small terms; the products without `vtimes` are exact.
INLINE vec exp_normal(vec x) {
    const float shift = 0x1.8p23f;  // as in `exp_reduced`
    vec shifted = vtimes(x, broadcast(0x1.715476p0f)) + shift, n = shifted - shift;
    vec more = x - n * 0.693145751953125f, less = vtimes(n, broadcast(1.4286068203094287e-06f));
    vec r = more - less, lost = (more - r) - less, square = vtimes(r, r);
    vec q = vtimes(r, broadcast(0.0013935074f)) + 0.008333202f + vtimes(square, broadcast(0.00019948946f));
    q = vtimes(q, square) + (vtimes(r, broadcast(0.041666463f)) + 0.16666667f);
    vec sum = r + 1, rest = r - (sum - 1) + lost + vtimes(vtimes(square, q) + lost, r);
    return (vec)((ints)(sum + (square * 0.5f + rest)) + ((ints)shifted << 23));
}

INLINE vec exp_of(vec x) {
    const float low = -87.33654f, high = 88.72284f;  // the logarithms of the smallest normal number, and of infinity
    vec result = exp_normal(x);
    if (!any(~((x >= low) & (x < high)))) return result;
    ints subnormal = (x < low) & (x > -104);
    if (any(subnormal)) result = where(subnormal, ROUNDED(exp_wide, x), result);
    return where(x >= high, broadcast(INFINITY), where(x <= -104, broadcast(0), where(x == x, result, x)));
}
INLINE vec exp2_of(vec x) { return where_above(x, 128.5f, INFINITY, where_below(x, -151, 0, ROUNDED(exp2_wide, x))); }
INLINE vec expm1_of(vec x) {
    vec result = where_above(x, 89, INFINITY, where_below(x, -104.5f, -1, ROUNDED(expm1_wide, x)));
    return where(x == 0, x, result);
}
INLINE vec sinh_of(vec x) { return with_sign(where_above(vabs(x), 90, INFINITY, ROUNDED(sinh_wide, x)), x); }
INLINE vec cosh_of(vec x) { return where_above(vabs(x), 90, INFINITY, ROUNDED(cosh_wide, x)); }
INLINE vec tanh_of(vec x) { return where(vabs(x) > 9.02f, with_sign(broadcast(1), x), ROUNDED(tanh_wide, x)); }

// Logarithms ------------------------------------------------------------------------------------

// log(m) of u = m 2^n with m from sqrt(1/2) to sqrt(2), for positive numbers. For numbers near 1, `less` is u - 1 more
// exactly.
INLINE doubles log_reduced(doubles u, doubles less, doubles *n) {
    const int64_t one = 1023;
    unsigned_longs biased = ((unsigned_longs)u + (uint64_t)((one << 52) - 0x3fe6a09e667f3bcd)) >> 52;
    *n = (doubles)(biased | (uint64_t)0x4330000000000000) - (0x1p52 + one);  // the integer, by its bits
    doubles m = (doubles)((unsigned_longs)u - (biased << 52) + (uint64_t)(one << 52));
    doubles f = choose(*n == 0, less, m - 1), s = f / (f + 2);
    return s * POLYNOMIAL(times(s, s), 2.0000000000083635, 0.6666666524691081, 0.4000038479011479, 0.2853504356313236,
                          0.23616504319718873);
}

INLINE doubles entropy_wide(doubles x) {
    doubles n, log = log_reduced(x, x - 1, &n);
    KEEP(log);
    return times(-x, log + times(n, all(log_of_2)));
}
INLINE doubles log_odds_wide(doubles x) {
    doubles n, log = log_reduced(x / (1 - x), (x + x - 1) / (1 - x), &n);
    KEEP(log);
    return log + times(n, all(log_of_2));
}
INLINE doubles log1p_wide(doubles x) {
    doubles n, log = log_reduced(x + 1, x, &n);
    KEEP(log);
    return log + times(n, all(log_of_2));
}
INLINE doubles log2_wide(doubles x) {
    doubles n, log = log_reduced(x, x - 1, &n);
    return times(log, all(log2_of_e)) + n;
}
INLINE doubles log10_wide(doubles x) {
    doubles n, log = log_reduced(x, x - 1, &n);
    return times(log, all(0.4342944819032518)) + times(n, all(0.3010299956639812));
}
INLINE doubles arcsinh_wide(doubles x) {
    doubles a = magnitude(x), square = times(a, a);
    return log1p_wide(square / (root(square + 1) + 1) + a);
}
INLINE doubles arccosh_wide(doubles x) {
    doubles less = x - 1;
    return log1p_wide(root(times(less, x + 1)) + less);
}
INLINE doubles arctanh_wide(doubles x) {
    doubles a = magnitude(x);
    return log1p_wide(2 * a / (1 - a)) * 0.5;
}
// The logarithm of x, given that of positive finite numbers.
INLINE vec completed_log(vec x, vec log) {
    vec rest = where(x == 0, broadcast(-INFINITY), where(x < 0, broadcast(NAN), x));
    return where((x > 0) & (x < INFINITY), log, rest);
}

// log(x 2^-lowered) of a normal number: n log(2) + f - f f / 2 + f^3 q(f) with f from -5/16 to 3/8. The square is taken
// in two parts: that of the first 12 digits of f is exact, and added exactly; so are the first digits of n log(2).
INLINE vec log_normal(vec x, ints lowered) {
    ints power = ((ints)x - (ints)broadcast(0.6875f)) >> 23;
    vec f = (vec)((ints)x - (power << 23)) - 1, n = __builtin_convertvector(power - lowered, vec);
    vec digits = (vec)((ints)f & ~0xfff), half = digits * digits * 0.5f, f2 = vtimes(f, f), f4 = vtimes(f2, f2);
    vec q = vtimes(f2, broadcast(0.09083965f)) + (vtimes(f, broadcast(-0.12567933f)) + 0.11436829f);
    q = vtimes(q, f4) + (vtimes(vtimes(f, broadcast(-0.12243979f)) + 0.14250691f, f2) +
                         (vtimes(f, broadcast(-0.16677102f)) + 0.20001197f));
    q = vtimes(q, f2) + vtimes(f, broadcast(-0.24999855f)) + 0.33333322f;
    vec rest = vtimes(vtimes(f2, f), q) - vtimes((f - digits) * 0.5f, f + digits);
    vec near = f - half, whole = n * 0.693145751953125f, sum = whole + near;
    rest = rest + vtimes(n, broadcast(1.4286068203094287e-06f)) + ((f - near) - half);
    return sum + (((whole - sum) + near) + rest);
}

INLINE vec log_of(vec x) {
    ints normal = (x >= 0x1p-126f) & (x < INFINITY);
    if (!any(~normal)) return log_normal(x, (ints){0});
    ints subnormal = ~normal & (x > 0);
    return completed_log(x, log_normal(where(subnormal, x * 0x1p23f, x), subnormal & 23));
}
INLINE vec log2_of(vec x) { return completed_log(x, ROUNDED(log2_wide, x)); }
INLINE vec log10_of(vec x) { return completed_log(x, ROUNDED(log10_wide, x)); }
INLINE vec log1p_of(vec x) { return where(x == 0, x, completed_log(x + 1, ROUNDED(log1p_wide, x))); }
INLINE vec arcsinh_of(vec x) { return with_sign(where(vabs(x) < INFINITY, ROUNDED(arcsinh_wide, x), x), x); }
INLINE vec arccosh_of(vec x) { return where(x < INFINITY, where(x < 1, broadcast(NAN), ROUNDED(arccosh_wide, x)), x); }
INLINE vec arctanh_of(vec x) {
    vec a = vabs(x), rest = where(a == 1, broadcast(INFINITY), broadcast(NAN));
    return with_sign(where(a < 1, ROUNDED(arctanh_wide, x), rest), x);
}

INLINE vec entropy_of(vec x) {
    vec rest = where(x == 0, x, where(x == x, broadcast(-INFINITY), x));
    return where((x > 0) & (x < INFINITY), ROUNDED(entropy_wide, x), rest);
}
INLINE vec log_odds_of(vec x) {
    vec rest = where(x == 0, broadcast(-INFINITY), where(x == 1, broadcast(INFINITY), broadcast(NAN)));
    return where((x > 0) & (x < 1), ROUNDED(log_odds_wide, x), rest);
}

// The reciprocal of the root, after a step of Newton's method from its value in single precision.
INLINE doubles reciprocal_root(doubles x, doubles y) {
    return times(y, 1.5 - times(times(times(x, y), y), all(0.5)));
}
INLINE vec rsqrt_of(vec x) {
    vec y = vrsqrt(x);
    doubles lower = reciprocal_root(HALF_OF(x, 0), HALF_OF(y, 0));
    doubles upper = reciprocal_root(HALF_OF(x, 1), HALF_OF(y, 1));
    return where((x > 0) & (x < INFINITY), rounded(lower, upper), y);
}

// Angles ----------------------------------------------------------------------------------------

enum { FAR_ANGLE = 1000000 };  // from there on products with parts of pi / 2 are not exact

// Sine and cosine of x = n pi / 2 + r with |r| <= pi / 4; the last bits of `quadrant` are those of n.
INLINE void sin_and_cos(doubles x, doubles *sine, doubles *cosine, longs *quadrant) {
    const double shift = 0x1.8p52;
    doubles shifted = times(x, all(0.6366197723675814)) + shift, n = shifted - shift;
    doubles r = x - times(n, all(0x1.921fb544p+0));  // (33 bits of pi / 2: the product is exact)
    r = r - times(n, all(0x1.0b4611a6p-34));
    r = r - times(n, all(0x1.3198a2e037073p-69));
    doubles square = times(r, r);
    doubles s =
        POLYNOMIAL(square, -0.16666666663854168, 0.008333331874273714, -0.000198400864995936, 2.7249895230611676e-06);
    doubles c = POLYNOMIAL(square, -0.49999999999963873, 0.041666666637384386, -0.0013888885090262895,
                           2.4799861846361453e-05, -2.7237108576245085e-07);
    *sine = r * (times(s, square) + 1);
    *cosine = times(c, square) + 1;
    *quadrant = (longs)shifted;
}
INLINE doubles sin_wide(doubles x) {
    doubles sine, cosine;
    longs quadrant;
    sin_and_cos(x, &sine, &cosine, &quadrant);
    return (doubles)((longs)choose(-(quadrant & 1), cosine, sine) ^ (quadrant & 2) << 62);
}
INLINE doubles cos_wide(doubles x) {
    doubles sine, cosine;
    longs quadrant;
    sin_and_cos(x, &sine, &cosine, &quadrant);
    return (doubles)((longs)choose(-(quadrant & 1), sine, cosine) ^ ((quadrant + 1) & 2) << 62);
}
INLINE doubles tan_wide(doubles x) {
    doubles sine, cosine;
    longs quadrant;
    sin_and_cos(x, &sine, &cosine, &quadrant);
    longs odd = -(quadrant & 1);
    return choose(odd, -cosine, sine) / choose(odd, sine, cosine);
}

INLINE doubles sinc_wide(doubles x) {
    const double shift = 0x1.8p52, pi = 3.141592653589793;
    doubles shifted = x + shift, sine = sin_wide(times(x - (shifted - shift), all(pi)));
    return (doubles)((longs)sine ^ (longs)shifted << 63) / times(x, all(pi));
}

// The angle of a point in the first quadrant.
INLINE doubles angle(doubles y, doubles x) {
    const double tangent = 0.41421356237309503, pi = 3.141592653589793;  // of pi / 8
    longs high = y > x * (1 / tangent), low = y < x * tangent;
    doubles z = choose(high, -x, choose(low, y, y - x)) / choose(high, y, choose(low, x, x + y));
    doubles p = z * POLYNOMIAL(times(z, z), 0.9999999999783846, -0.33333332096926027, 0.19999883803853233,
                               -0.1428158730709012, 0.11040471009581072, -0.0845608946699897, 0.04707129655257451);
    KEEP(p);
    return p + choose(high, all(pi / 2), choose(low, all(0), all(pi / 4)));
}
INLINE doubles arctan_wide(doubles x) { return angle(magnitude(x), all(1)); }
INLINE doubles arcsin_wide(doubles x) {
    doubles a = magnitude(x);
    return angle(a, root(times(1 - a, a + 1)));
}
INLINE doubles arccos_wide(doubles x) {
    doubles acute = angle(root(times(1 - x, x + 1)), magnitude(x));
    return choose(x < 0, 3.141592653589793 - acute, acute);
}

// A function of an angle, which is computed by that of the C library where the angle is large.
#define ANGULAR(name)                                                                                                  \
    INLINE vec name##_of(vec x) {                                                                                      \
        vec result = ROUNDED(name##_wide, x);                                                                          \
        ints far = vabs(x) >= FAR_ANGLE;                                                                               \
        if (any(far)) {                                                                                                \
            for (int lane = 0; lane < WIDTH; lane++) {                                                                 \
                if (far[lane]) result[lane] = (float)name(x[lane]);                                                    \
            }                                                                                                          \
        }                                                                                                              \
        return result;                                                                                                 \
    }
ANGULAR(sin)
ANGULAR(cos)
ANGULAR(tan)

INLINE vec sinc_of(vec x) {
    vec result = where(vabs(x) < 0x1p24f, ROUNDED(sinc_wide, x), (x - x) / x);  // from there on numbers are even
    return where(x == 0, broadcast(1), result);
}
INLINE vec arctan_of(vec x) { return with_sign(ROUNDED(arctan_wide, x), x); }
INLINE vec arcsin_of(vec x) { return with_sign(ROUNDED(arcsin_wide, x), x); }
INLINE vec arccos_of(vec x) { return ROUNDED(arccos_wide, x); }

// The error function ----------------------------------------------------------------------------

// erf(x) for |x| <= 1, in the variable x x
INLINE doubles erf_near(doubles x) {
    return x * POLYNOMIAL(times(x, x), 1.1283791670946768, -0.3761263888963531, 0.11283791308604582,
                          -0.026866133235095593, 0.005223783477189248, -0.0008542637997087229, 0.0001195656256820733,
                          -1.3909340021874599e-05, 1.058938064107502e-06);
}
// erfc(a) for 0 <= a <= 10.2: exp(-a a) times a function of (a - 2) / (a + 2)
INLINE doubles erfc_far(doubles a) {
    return exp_wide(-(a * a)) * POLYNOMIAL((a - 2) / (a + 2), 0.25539567631020943, -0.42718584741201515,
                                           0.24165819435410127, -0.07897858132094551, 0.0037328857960437774,
                                           0.006997478787663402, -0.0008470103811607689, -0.0009823813225694068,
                                           4.2606831145654015e-05, 0.00017844755206521744, 2.7618514674489078e-05,
                                           -4.197843071637076e-05, 2.6729845661303632e-06);
}
// A rational function for |x| <= 3.93, with an error of 2^-28.7.
INLINE doubles erf_wide(doubles x) {
    doubles square = times(x, x);
    doubles p = POLYNOMIAL(square, 1.1283791695771623, 0.19244575009945072, 0.05557665812316469, 0.004193467870327559,
                           0.0004055442799383391, 6.58133605180126e-06);
    return x * p / POLYNOMIAL(square, 1, 0.503884026389964, 0.11721430136033897, 0.01621038488675799,
                              0.0014070622565305383, 7.105911982966648e-05, 2.485860102421222e-07);
}
INLINE doubles erfc_wide(doubles x) {
    doubles a = magnitude(x), tail = erfc_far(a), near = erf_near(x);
    KEEP(tail);
    KEEP(near);
    return choose(a < 1, 1 - near, choose(x > 0, tail, 2 - tail));
}

INLINE vec erf_of(vec x) { return where(vabs(x) > 3.93f, with_sign(broadcast(1), x), ROUNDED(erf_wide, x)); }
INLINE vec erfc_of(vec x) { return where_above(x, 10.2f, 0, where_below(x, -10, 2, ROUNDED(erfc_wide, x))); }

#endif
