// Vectors of WIDTH floats, by the vector extensions of GCC and Clang: no intrinsics, and no loads beyond an array.
#ifndef TINYTORCH_VECTORS_H
#define TINYTORCH_VECTORS_H

#include "native.h"

// families.h defines WIDTH for each instruction set. A family that is compiled on its own (by an editor, or by
// `scripts/build_native.py --check`) gets the width of the baseline.
#ifndef WIDTH
#define WIDTH 4
#endif

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));
typedef float unaligned_vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef char byte_vec __attribute__((vector_size(WIDTH), aligned(1), may_alias));

// Loads and stores ------------------------------------------------------------------------------

INLINE vec load(const float *from) { return *(const unaligned_vec *)from; }
INLINE void store(float *to, vec x) { *(unaligned_vec *)to = x; }
INLINE vec broadcast(float x) { return x - (vec){0}; }

// Copy fewer than WIDTH floats, in pieces whose lengths the compiler knows: no call of memcpy.
INLINE void copy_short(float *to, const float *from, Py_ssize_t count) {
    for (int piece = WIDTH / 2; piece; piece /= 2) {
        if (count & piece) {
            memcpy(to, from, 4 * piece);
            to += piece;
            from += piece;
        }
    }
}

// Load fewer than WIDTH floats; the other lanes are zero.
INLINE vec load_partial(const float *from, Py_ssize_t count) {
    float x[WIDTH] = {0};
    copy_short(x, from, count);
    return load(x);
}

INLINE void store_partial(float *to, vec x, Py_ssize_t count) {
    float from[WIDTH];
    store(from, x);
    copy_short(to, from, count);
}

// Load or store `count` floats, or WIDTH if `count` is larger.
INLINE vec load_up_to(const float *from, int64_t count) {
    return count >= WIDTH ? load(from) : load_partial(from, count);
}
INLINE void store_up_to(float *to, vec x, int64_t count) {
    count >= WIDTH ? store(to, x) : store_partial(to, x, count);
}

// Copy floats. The last vector overlaps the one before it, so that short runs take few instructions, too.
INLINE void copy_floats(float *to, const float *from, Py_ssize_t count) {
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
    if (count >= WIDTH) {
        for (Py_ssize_t i = 0; i < count - WIDTH; i += WIDTH) store(to + i, load(from + i));
        store(to + count - WIDTH, load(from + count - WIDTH));
    } else if (count >= 8) {
        *(eight *)to = *(const eight *)from;
        *(eight *)(to + count - 8) = *(const eight *)(from + count - 8);
    } else if (count >= 4) {
        *(four *)to = *(const four *)from;
        *(four *)(to + count - 4) = *(const four *)(from + count - 4);
    } else
        for (Py_ssize_t i = 0; i < count; i++) to[i] = from[i];
}

INLINE void fill_zero(float *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = 0;
}

// Lanes -----------------------------------------------------------------------------------------

// Rotate the lanes of `x` by `by`: lane i of the result is lane i + by of `x`.
#define LANE(i, by) ((i) + (by)) % WIDTH
#define FOUR_LANES(i, by) LANE(i, by), LANE(i + 1, by), LANE(i + 2, by), LANE(i + 3, by)
#if WIDTH == 16
#define ROTATED(x, by)                                                                                                 \
    __builtin_shufflevector(x, x, FOUR_LANES(0, by), FOUR_LANES(4, by), FOUR_LANES(8, by), FOUR_LANES(12, by))
#elif WIDTH == 8
#define ROTATED(x, by) __builtin_shufflevector(x, x, FOUR_LANES(0, by), FOUR_LANES(4, by))
#else
#define ROTATED(x, by) __builtin_shufflevector(x, x, FOUR_LANES(0, by))
#endif

// Interleave two vectors (x0 y0 x1 y1 ...): the first and the second half of the result.
#if WIDTH == 4
#define INTERLEAVE_LOW(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#elif WIDTH == 8
#define INTERLEAVE_LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define INTERLEAVE_LOW(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(x, y)                                                                                          \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

// Undo the interleaving of two adjacent vectors: every second lane, from lane `first` on (0: even lanes, 1: odd lanes).
#define EVERY_SECOND(i) (i), (i) + 2, (i) + 4, (i) + 6
#if WIDTH == 16
#define DEINTERLEAVE(first, x, y)                                                                                      \
    __builtin_shufflevector(x, y, EVERY_SECOND(first), EVERY_SECOND(first + 8), EVERY_SECOND(first + 16),              \
                            EVERY_SECOND(first + 24))
#elif WIDTH == 8
#define DEINTERLEAVE(first, x, y) __builtin_shufflevector(x, y, EVERY_SECOND(first), EVERY_SECOND(first + 8))
#else
#define DEINTERLEAVE(first, x, y) __builtin_shufflevector(x, y, EVERY_SECOND(first))
#endif

// Copy every second float: `from[0]`, `from[2]` ... Eight at a time, whatever the width: rows are often short.
INLINE void copy_every_second(float *to, const float *from, int64_t count) {
    typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
    if (count < 8) {
        for (int64_t i = 0; i < count; i++) to[i] = from[2 * i];
        return;
    }
    for (int64_t i = 0; i < count; i += 8) {
        if (i > count - 8) i = count - 8;
        eight x = *(const eight *)(from + 2 * i), y = *(const eight *)(from + 2 * i + 7);
        *(eight *)(to + i) = __builtin_shufflevector(x, y, 0, 2, 4, 6, 9, 11, 13, 15);
    }
}

// Transpose a square of WIDTH vectors: each round interleaves the first half of the vectors with the second half.
INLINE void transpose(vec *rows) {
    vec next[WIDTH];
    for (int round = 1; round < WIDTH; round *= 2) {
        for (int i = 0; i < WIDTH / 2; i++) {
            next[2 * i] = INTERLEAVE_LOW(rows[i], rows[i + WIDTH / 2]);
            next[2 * i + 1] = INTERLEAVE_HIGH(rows[i], rows[i + WIDTH / 2]);
        }
        for (int i = 0; i < WIDTH; i++) rows[i] = next[i];
    }
}

INLINE float horizontal_sum(vec x) {
    if (WIDTH > 8) x += ROTATED(x, 8);
    if (WIDTH > 4) x += ROTATED(x, 4);
    x += ROTATED(x, 2);
    x += ROTATED(x, 1);
    return x[0];
}

// Elementary functions --------------------------------------------------------------------------

INLINE vec where(ints mask, vec x, vec y) { return (vec)((mask & (ints)x) | (~mask & (ints)y)); }

INLINE vec vmax(vec x, vec y) { return where(x > y, x, y); }

INLINE float horizontal_max(vec x) {
    if (WIDTH > 8) x = vmax(x, ROTATED(x, 8));
    if (WIDTH > 4) x = vmax(x, ROTATED(x, 4));
    x = vmax(x, ROTATED(x, 2));
    x = vmax(x, ROTATED(x, 1));
    return x[0];
}

// Both keep NaN. GCC has one instruction for a loop that is not unrolled, and three for `where`.
#ifdef __clang__
INLINE vec clamp_max(vec x, float max) { return where(x > max, broadcast(max), x); }
INLINE vec clamp_min(vec x, float min) { return where(x < min, broadcast(min), x); }
#else
INLINE vec clamp_max(vec x, float max) {
#pragma GCC unroll 1
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = x[lane] > max ? max : x[lane];
    return x;
}
INLINE vec clamp_min(vec x, float min) {
#pragma GCC unroll 1
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = x[lane] < min ? min : x[lane];
    return x;
}
#endif

INLINE vec vabs(vec x) { return (vec)((ints)x & INT32_MAX); }

INLINE vec vsqrt(vec x) {
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = sqrtf(x[lane]);
    return x;
}

INLINE vec vrsqrt(vec x) { return 1 / vsqrt(x); }

// Range reduction of exp: x = n log(2) + r with |r| <= log(2) / 2. Return exp(r) - 1 and n; a polynomial interpolates
// exp(r) - 1 - r at Chebyshev points. For x from -104.5 to 89.
INLINE vec exp_reduced(vec x, ints *n) {
    const float shift = 0x1.8p23f;  // x + shift is rounded to an integer, which is in the low bits of the sum
    vec shifted = x * 0x1.715476p0f + shift;
    *n = (ints)shifted - (ints)broadcast(shift);
    vec rounded = shifted - shift;
    vec r = x - rounded * 0.693145751953125f;  // log(2) in two parts: the product with the first one is exact
    r = r - rounded * 1.4286068203094287e-06f;
    vec p = r * 0.0001989098086973674f + 0.0013933641031986495f;
    p = p * r + 0.00833331093444889f;
    p = p * r + 0.04166646500604005f;
    p = p * r + 0.16666666681614256f;
    p = p * r + 0.5f;
    return p * r * r + r;
}

// x 2^n, by two factors: 2^n alone may overflow or be subnormal where the product is not.
INLINE vec scale_by_power_of_2(vec x, ints n) {
    ints half = n >> 1;
    return x * (vec)((half + 127) << 23) * (vec)((n - half + 127) << 23);
}

// exp(x), to 1 ulp.
INLINE vec vexp(vec x) {
    ints n;
    vec reduced = exp_reduced(clamp_min(clamp_max(x, 89), -104.5f), &n);
    return scale_by_power_of_2(reduced + 1, n);
}

// exp(x) for x <= 0.
INLINE vec vexp_nonpositive(vec x) {
    ints n;
    vec reduced = exp_reduced(clamp_min(x, -104.5f), &n);
    return scale_by_power_of_2(reduced + 1, n);
}

// exp(x) for x <= 0, with subnormal results flushed to zero: arithmetic on subnormal numbers is slow.
INLINE vec vexp_flushed(vec x) {
    ints n;
    vec reduced = exp_reduced(clamp_min(x, -87), &n);
    return where(x < -87, broadcast(0), (reduced + 1) * (vec)((n + 127) << 23));
}

// log((1 + z) / (1 - z)) for |z| <= 1 / 3, by a fitted polynomial.
INLINE vec log_ratio(vec z) {
    vec square = z * z, p = square * 0.28024465710377466f + 0.2799913979980111f;
    p = p * square + 0.4002169912883807f;
    p = p * square + 0.6666641313168186f;
    return p * square * z + 2 * z;
}

// log(x) of positive normal numbers; NaN for NaN. x = 2^n m with m near 1.
INLINE vec vlog(vec x) {
    ints n = ((ints)x - (ints)broadcast(0x1.6a09e6p-1f)) >> 23;
    vec m = (vec)((ints)x - (n << 23));
    return __builtin_convertvector(n, vec) * 0.6931471805599453f + log_ratio((m - 1) / (m + 1)) + 0 * x;
}

// log(1 + exp(-|x|))
INLINE vec vlog1p_exp(vec x) {
    vec e = vexp(-vabs(x));
    return log_ratio(e / (e + 2));
}

INLINE vec vsigmoid(vec x) { return 1 / (vexp(-x) + 1); }

// tanh(x), to 2 ulp. Near 0 it is x + x^3 q(x^2) with a polynomial that interpolates q at Chebyshev points.
INLINE vec vtanh(vec x) {
    vec s = x * x, far = 1 - 2 / (vexp(x + x) + 1);
    vec q = s * -0.006269119679927826f + 0.021110959351062775f;
    q = q * s - 0.053873948752880096f;
    q = q * s + 0.13332915306091309f;
    q = q * s - 0.3333333134651184f;
    return where((x > 0.6f) | (x < -0.6f), far, q * s * x + x);
}

// Rows ------------------------------------------------------------------------------------------

enum {
    UNROLL = 4,                       // vectors of an unrolled loop, whose sums do not wait for one another
    UNROLLED_WIDTH = UNROLL * WIDTH,  // floats of an unrolled iteration
    PART_SIZE = 1 << 13,              // elements that are worth a part of a parallel loop
};

// The tail of a row of `count` floats. `body` floats are whole vectors before it; the tail's vector begins at `begin`
// and may overlap the body (or be short, where `count` < WIDTH); `own` masks the lanes not yet processed.
typedef struct {
    Py_ssize_t count, body, begin;
    ints own;
} Tail;

INLINE Tail tail_of(Py_ssize_t count) {
    Tail tail = {count, (count - 1) / WIDTH * WIDTH, count < WIDTH ? 0 : count - WIDTH, {0}};
    int rest = (int)(count - tail.body);
    for (int lane = 0; lane < WIDTH; lane++) tail.own[lane] = -(count < WIDTH ? lane < rest : lane >= WIDTH - rest);
    return tail;
}

// Zero the lanes that the body has processed.
INLINE vec mask_tail(vec x, const Tail *tail) { return where(tail->own, x, broadcast(0)); }

INLINE vec load_tail(const float *x, const Tail *tail) {
    return tail->count < WIDTH ? load_partial(x, tail->count) : load(x + tail->begin);
}

INLINE void store_tail(float *x, vec value, const Tail *tail) {
    if (tail->count < WIDTH) {
        store_partial(x, value, tail->count);
    } else {
        store(x + tail->begin, value);
    }
}

// The sum of a row; or, if `squared`, of the squares of its differences from `mean`.
INLINE float sum_of_short_row(const float *x, Py_ssize_t count, float mean, bool squared) {
    Tail tail = tail_of(count);
    vec sums[UNROLL] = {{0}}, last = load_tail(x, &tail) - mean;
    Py_ssize_t i = 0;
    for (; i + UNROLLED_WIDTH <= tail.body; i += UNROLLED_WIDTH) {
        for (int k = 0; k < UNROLL; k++) {
            vec deviation = load(x + i + k * WIDTH) - mean;
            sums[k] += squared ? deviation * deviation : deviation;
        }
    }
    for (; i < tail.body; i += WIDTH) {
        vec deviation = load(x + i) - mean;
        sums[0] += squared ? deviation * deviation : deviation;
    }
    return horizontal_sum(sums[0] + sums[1] + (sums[2] + sums[3]) + mask_tail(squared ? last * last : last, &tail));
}

// The same of a row of any length: pieces are summed in float32, and their sums in float64.
INLINE double sum_of_row(const float *x, Py_ssize_t count, float mean, bool squared) {
    const Py_ssize_t piece = 1 << 12;
    if (count <= piece) return sum_of_short_row(x, count, mean, squared);
    double sum = 0;
    for (Py_ssize_t i = 0; i < count; i += piece) {
        sum += sum_of_short_row(x + i, count - i < piece ? count - i : piece, mean, squared);
    }
    return sum;
}

// Columns ---------------------------------------------------------------------------------------

// Up to UNROLLED_WIDTH columns of a matrix, processed side by side as UNROLL vectors. Where `count` is smaller, the
// last vectors have fewer lanes, or none.
typedef struct {
    Py_ssize_t begin, count;
} Columns;

INLINE vec load_columns(const float *x, const Columns *columns, int k) {
    Py_ssize_t left = columns->count - k * WIDTH;
    return left >= WIDTH ? load(x + k * WIDTH) : load_partial(x + k * WIDTH, left > 0 ? left : 0);
}

INLINE void store_columns(float *x, vec value, const Columns *columns, int k) {
    Py_ssize_t left = columns->count - k * WIDTH;
    if (left >= WIDTH) {
        store(x + k * WIDTH, value);
    } else if (left > 0) {
        store_partial(x + k * WIDTH, value, left);
    }
}

// Register tiles --------------------------------------------------------------------------------

// A tile of a matrix product or a convolution fills the registers: TILE_ROWS rows of one factor times TILE_VECTORS
// vectors of the other.
#if WIDTH == 4 && (defined(__x86_64__) || defined(__wasm__)) || WIDTH == 8
#define TILE_ROWS 4  // there are 16 registers
#else
#define TILE_ROWS 8  // there are 32
#endif
#define TILE_VECTORS 3
#define TILE_COLUMNS (TILE_VECTORS * WIDTH)

#endif
