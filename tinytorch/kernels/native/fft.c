// Twins of `complex_rows`, `rows_of_reals`, `rows_to_reals` and `rows_to_real_part` in kernels/fft.py: Fourier
// transforms of contiguous rows whose length is a power of two.
//
// Stockham's algorithm of radix 4: each stage reads one buffer and writes the other, and the results come out in order.
// Real and imaginary parts are apart in the buffers. The inverse transform is the transform with them exchanged. The
// transform of n real numbers is that of n / 2 complex ones, their pairs, and a step that takes it apart.
#include "helpers.h"

enum {
    MIN_POINTS_LOG = 6,  // the first stage needs 4 vectors of every width
    MAX_POINTS_LOG = 16,
    FFT_WORK_PER_PART = 1 << 14,
};

typedef float four __attribute__((vector_size(16)));
typedef float unaligned_four __attribute__((vector_size(16), aligned(4), may_alias));

INLINE four load_four(const float *from) { return *(const unaligned_four *)from; }
INLINE void store_four(float *to, four x) { *(unaligned_four *)to = x; }
INLINE four broadcast_four(float x) { return x - (four){0}; }

// Roots of unity ---------------------------------------------------------------------------------

// Arrays of n / 4 powers w, w^2 and w^3 of w = exp(-2 pi i p / n), real and imaginary parts apart, for p < n / 4.
enum { W1_RE, W1_IM, W2_RE, W2_IM, W3_RE, W3_IM, ROOT_ARRAYS };
// They are computed once, and kept; the GIL is held where they are asked for.
static float *roots_of[MAX_POINTS_LOG + 2], *half_roots_of[MAX_POINTS_LOG + 2];

static const float *roots(int log) {
    if (!roots_of[log]) {
        int64_t n = (int64_t)1 << log, quarter = n / 4;
        float *w = alloc_floats((size_t)(ROOT_ARRAYS * quarter));
        if (!w) return NULL;
        for (int64_t p = 0; p < quarter; p++) {
            for (int k = 1; k < 4; k++) {
                double angle = -2 * 3.14159265358979323846 * (double)(k * p) / (double)n;
                w[(2 * k - 2) * quarter + p] = (float)cos(angle);
                w[(2 * k - 1) * quarter + p] = (float)sin(angle);
            }
        }
        roots_of[log] = w;
    }
    return roots_of[log];
}

// exp(-2 pi i k / n) for k < n / 2: the real parts, then the imaginary parts.
static const float *half_roots(int log) {
    if (!half_roots_of[log]) {
        int64_t n = (int64_t)1 << log, half = n / 2;
        float *w = alloc_floats((size_t)n);
        if (!w) return NULL;
        for (int64_t k = 0; k < half; k++) {
            double angle = -2 * 3.14159265358979323846 * (double)k / (double)n;
            w[k] = (float)cos(angle);
            w[half + k] = (float)sin(angle);
        }
        half_roots_of[log] = w;
    }
    return half_roots_of[log];
}

// Stages -----------------------------------------------------------------------------------------

// A transform of four points, of vectors of type `type`: re[k], im[k], in place.
#define TRANSFORM_FOUR(type, re, im)                                                                                   \
    {                                                                                                                  \
        type sum_re = re[0] + re[2], sum_im = im[0] + im[2], difference_re = re[0] - re[2];                            \
        type difference_im = im[0] - im[2], odd_re = re[1] + re[3], odd_im = im[1] + im[3];                            \
        type turned_re = im[1] - im[3], turned_im = re[3] - re[1];                                                     \
        re[0] = sum_re + odd_re;                                                                                       \
        im[0] = sum_im + odd_im;                                                                                       \
        re[1] = difference_re + turned_re;                                                                             \
        im[1] = difference_im + turned_im;                                                                             \
        re[2] = sum_re - odd_re;                                                                                       \
        im[2] = sum_im - odd_im;                                                                                       \
        re[3] = difference_re - turned_re;                                                                             \
        im[3] = difference_im - turned_im;                                                                             \
    }

// Multiply point k by a root of unity.
#define TURN(type, re, im, k, root_re, root_im)                                                                        \
    {                                                                                                                  \
        type w_re = root_re, w_im = root_im, old = re[k];                                                              \
        re[k] = old * w_re - im[k] * w_im;                                                                             \
        im[k] = old * w_im + im[k] * w_re;                                                                             \
    }

typedef struct {
    float *re, *im;
} Parts;

// The first stage. Its input is pairs of parts, `x`, or the parts in `apart`.
INLINE void first_stage(const float *x, Parts apart, bool swapped, const float *w, int64_t n, Parts y) {
    int64_t quarter = n / 4;
    for (int64_t p = 0; p < quarter; p += WIDTH) {
        vec re[4], im[4];
        for (int k = 0; k < 4; k++) {
            int64_t at = p + k * quarter;
            if (x) {
                vec low = load(x + 2 * at), high = load(x + 2 * at + WIDTH);
                re[k] = DEINTERLEAVE(0, low, high);
                im[k] = DEINTERLEAVE(1, low, high);
            } else {
                re[k] = load(apart.re + at);
                im[k] = load(apart.im + at);
            }
            if (swapped) {
                vec old = re[k];
                re[k] = im[k];
                im[k] = old;
            }
        }
        TRANSFORM_FOUR(vec, re, im)
        for (int k = 1; k < 4; k++) {
            const float *root = w + (2 * k - 2) * quarter + p;
            TURN(vec, re, im, k, load(root), load(root + quarter))
        }
        for (int part = 0; part < 2; part++) {
            vec *v = part ? im : re;
            float *to = (part ? y.im : y.re) + 4 * p;
            vec even_low = INTERLEAVE_LOW(v[0], v[2]), even_high = INTERLEAVE_HIGH(v[0], v[2]);
            vec odd_low = INTERLEAVE_LOW(v[1], v[3]), odd_high = INTERLEAVE_HIGH(v[1], v[3]);
            store(to, INTERLEAVE_LOW(even_low, odd_low));
            store(to + WIDTH, INTERLEAVE_HIGH(even_low, odd_low));
            store(to + 2 * WIDTH, INTERLEAVE_LOW(even_high, odd_high));
            store(to + 3 * WIDTH, INTERLEAVE_HIGH(even_high, odd_high));
        }
    }
}

// The second stage: transforms of `n / 4` points, four of them side by side.
INLINE void second_stage(Parts x, const float *w, int64_t n, Parts y) {
    int64_t quarter = n / 4, count = n / 16;
    for (int64_t p = 0; p < count; p++) {
        four re[4], im[4];
        for (int k = 0; k < 4; k++) {
            re[k] = load_four(x.re + 4 * (p + k * count));
            im[k] = load_four(x.im + 4 * (p + k * count));
        }
        TRANSFORM_FOUR(four, re, im)
        for (int k = 1; k < 4; k++) {
            const float *root = w + (2 * k - 2) * quarter + 4 * p;
            TURN(four, re, im, k, broadcast_four(root[0]), broadcast_four(root[quarter]))
        }
        for (int k = 0; k < 4; k++) {
            store_four(y.re + 16 * p + 4 * k, re[k]);
            store_four(y.im + 16 * p + 4 * k, im[k]);
        }
    }
}

// A later stage: transforms of `length` points, `side` of them side by side.
INLINE void later_stage(Parts x, const float *w, int64_t n, int64_t length, int64_t side, Parts y) {
    int64_t quarter = n / 4, count = length / 4;
    for (int64_t p = 0; p < count; p++) {
        float root[ROOT_ARRAYS];
        for (int k = 0; k < ROOT_ARRAYS; k++) root[k] = w[k * quarter + p * side];
        for (int64_t q = 0; q < side; q += WIDTH) {
            vec re[4], im[4];
            for (int k = 0; k < 4; k++) {
                re[k] = load(x.re + q + side * (p + k * count));
                im[k] = load(x.im + q + side * (p + k * count));
            }
            TRANSFORM_FOUR(vec, re, im)
            for (int k = 1; k < 4; k++) TURN(vec, re, im, k, broadcast(root[2 * k - 2]), broadcast(root[2 * k - 1]))
            for (int k = 0; k < 4; k++) {
                store(y.re + q + side * (4 * p + k), re[k]);
                store(y.im + q + side * (4 * p + k), im[k]);
            }
        }
    }
}

// The last stage, of 4 or 2 points. The results go to `out`, as pairs of parts, or to `apart`.
INLINE void last_stage(Parts x, int64_t n, int64_t points, bool swapped, float factor, float *out, Parts apart) {
    int64_t side = n / points;
    for (int64_t q = 0; q < side; q += WIDTH) {
        vec re[4], im[4];
        for (int k = 0; k < points; k++) {
            re[k] = load(x.re + q + side * k) * factor;
            im[k] = load(x.im + q + side * k) * factor;
        }
        if (points == 4) {
            TRANSFORM_FOUR(vec, re, im)
        } else {
            vec first_re = re[0], first_im = im[0];
            re[0] = first_re + re[1];
            im[0] = first_im + im[1];
            re[1] = first_re - re[1];
            im[1] = first_im - im[1];
        }
        for (int k = 0; k < points; k++) {
            int64_t at = q + side * k;
            if (!out) {
                store(apart.re + at, re[k]);
                store(apart.im + at, im[k]);
            } else {
                vec first = swapped ? im[k] : re[k], second = swapped ? re[k] : im[k];
                store(out + 2 * at, INTERLEAVE_LOW(first, second));
                store(out + 2 * at + WIDTH, INTERLEAVE_HIGH(first, second));
            }
        }
    }
}

// Transform n = 2^log complex numbers, from `x` or `apart` to `out` or `result`; `a` and `b` are buffers, and may be
// `apart` and `result`: the first stage writes `a` and reads no other buffer.
static void transform(const float *x, Parts apart, bool inverse, float factor, const float *w, int log, Parts a, Parts b,
                      float *out, Parts result) {
    int64_t n = (int64_t)1 << log;
    first_stage(x, apart, inverse, w, n, a);
    second_stage(a, w, n, b);
    int64_t length = n / 16, side = 16;
    Parts from = b, to = a;
    for (; length > 4; length /= 4, side *= 4) {
        later_stage(from, w, n, length, side, to);
        Parts old = from;
        from = to;
        to = old;
    }
    if (length == 4) {
        last_stage(from, n, 4, inverse, factor, out, result);
    } else {
        last_stage(from, n, 2, inverse, factor, out, result);
    }
}

// Rows -------------------------------------------------------------------------------------------

typedef enum { COMPLEX_ROWS, FROM_REALS, TO_REALS, TO_REAL_PART } Kind;

typedef struct {
    Kind kind;
    const float *x, *w, *half_w;
    float *out, *scratch;
    int64_t rows, in, width, points, scratch_size;  // `in`, `width`: floats in a row of the input and of the output
    int log;  // of the complex points
    bool inverse, onesided;
    float factor;
    int64_t rows_per_part;
} Rows;

INLINE vec reversed(vec x) {
    float lanes[WIDTH];
    vec y;
    store(lanes, x);
    for (int i = 0; i < WIDTH; i++) y[i] = lanes[WIDTH - 1 - i];
    return y;
}

INLINE void store_pairs(float *to, vec first, vec second) {
    store(to, INTERLEAVE_LOW(first, second));
    store(to + WIDTH, INTERLEAVE_HIGH(first, second));
}

// The spectrum of 2 n real numbers, from the transform `z` of their n pairs. The second half is the mirror image.
static void take_apart(Parts z, const float *w, int64_t n, bool onesided, float *out) {
    for (int64_t next = 1; next < n; next += WIDTH) {
        int64_t k = imin(next, n - WIDTH), mirrored = n - k - WIDTH + 1;
        vec a = load(z.re + k), b = load(z.im + k);
        vec c = reversed(load(z.re + mirrored)), d = -reversed(load(z.im + mirrored));
        vec w_re = load(w + k), w_im = load(w + n + k), re = a - c, im = b - d;
        vec x_re = 0.5f * ((a + c) + (w_re * im + w_im * re)), x_im = 0.5f * ((b + d) - (w_re * re - w_im * im));
        store_pairs(out + 2 * k, x_re, x_im);
        if (!onesided) store_pairs(out + 2 * (n + mirrored), reversed(x_re), -reversed(x_im));
    }
    out[0] = z.re[0] + z.im[0];
    out[1] = 0;
    out[2 * n] = z.re[0] - z.im[0];
    out[2 * n + 1] = 0;
}

// Undo `take_apart`: twice the transform of the pairs, from the first n + 1 points of a spectrum.
static void put_together(const float *restrict x_re, const float *restrict x_im, const float *restrict w, int64_t n,
                         float *restrict z_re, float *restrict z_im) {
    for (int64_t k = 1; k < n; k++) {
        float a = x_re[k], b = x_im[k], c = x_re[n - k], d = -x_im[n - k];
        float re = a - c, im = b - d;
        z_re[k] = (a + c) - (w[k] * im - w[n + k] * re);
        z_im[k] = (b + d) + (w[k] * re + w[n + k] * im);
    }
    z_re[0] = x_re[0] + x_re[n];
    z_im[0] = x_re[0] - x_re[n];
}

static void separate(const float *x, int64_t n, float *re, float *im) {
    for (int64_t k = 0; k < n; k += WIDTH) {
        vec low = load(x + 2 * k), high = load(x + 2 * k + WIDTH);
        store(re + k, DEINTERLEAVE(0, low, high));
        store(im + k, DEINTERLEAVE(1, low, high));
    }
}

// Replace the first half of a spectrum of `n` points by that of its part with a real transform: the mean of each point
// and of the conjugate of its mirror image.
static void take_hermitian_part(float *restrict re, float *restrict im, int64_t n) {
    const float *restrict mirrored_re = re + n / 2, *restrict mirrored_im = im + n / 2;
    for (int64_t k = 1; k < n / 2; k++) {
        re[k] = 0.5f * (re[k] + mirrored_re[n / 2 - k]);
        im[k] = 0.5f * (im[k] - mirrored_im[n / 2 - k]);
    }
}

static void rows_part(void *context, Py_ssize_t part, int worker) {
    const Rows *t = context;
    float *scratch = t->scratch + worker * t->scratch_size;
    int64_t n = t->points, begin = part * t->rows_per_part, end = imin(begin + t->rows_per_part, t->rows);
    Parts a = {scratch, scratch + n}, b = {scratch + 2 * n, scratch + 3 * n};
    Parts c = {scratch + 4 * n, scratch + 5 * n}, none = {NULL, NULL};
    for (int64_t row = begin; row < end; row++) {
        const float *x = t->x + row * t->in;
        float *out = t->out + row * t->width;
        if (t->kind == COMPLEX_ROWS) {
            transform(x, none, t->inverse, t->factor, t->w, t->log, a, b, out, none);
        } else if (t->kind == FROM_REALS) {
            transform(x, none, false, t->factor, t->w, t->log, a, b, NULL, c);
            take_apart(c, t->half_w, n, t->onesided, out);
        } else {
            float *re = scratch, *im = scratch + 2 * n;  // of the spectrum
            if (t->kind == TO_REALS) {
                separate(x, n, re, im);
                re[n] = x[2 * n];
            } else {
                separate(x, 2 * n, re, im);
                take_hermitian_part(re, im, 2 * n);
            }
            put_together(re, im, t->half_w, n, c.re, c.im);
            transform(NULL, c, true, t->factor, t->w, t->log, a, b, out, none);
        }
    }
}

// Return log2(n), or -1 where n is no power of two.
static int log2_of_power(int64_t n) {
    int log = 0;
    while (((int64_t)1 << log) < n) log++;
    return ((int64_t)1 << log) == n ? log : -1;
}

// Transform the rows of `x`, of which each has `points` complex numbers, or `2 * points` real ones.
static PyObject *transform_rows(PyObject *x, Rows *t) {
    t->log = log2_of_power(t->points);
    if (t->log < MIN_POINTS_LOG || t->log > MAX_POINTS_LOG) return FALLBACK;
    t->rows = PyArray_DIM(ARRAY(x), 0);
    PyObject *out = PyArray_SimpleNew(2, ((npy_intp[]){t->rows, t->width}), NPY_FLOAT);
    if (!out || !t->rows) return out;
    t->w = roots(t->log);
    t->half_w = half_roots(t->log + 1);
    t->scratch_size = round_to_lines(6 * t->points);
    t->scratch = alloc_floats((size_t)(t->scratch_size * tt_threads()));
    if (!t->w || !t->half_w || !t->scratch) {
        free(t->scratch);
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    t->x = float_data(x);
    t->out = float_data(out);
    t->rows_per_part = ceil_div(FFT_WORK_PER_PART, 2 * t->points);
    int64_t parts = ceil_div(t->rows, t->rows_per_part);
    tt_parallel_for(rows_part, t, parts, 2 * t->points * t->rows, tt_threads());
    free(t->scratch);
    return out;
}

// The number of floats in a row of a contiguous matrix of float32; 0 for anything else.
static int64_t row_length(PyObject *x) {
    return is_float_array(x, false) && PyArray_NDIM(ARRAY(x)) == 2 ? PyArray_DIM(ARRAY(x), 1) : 0;
}

KERNEL(complex_rows, x, inverse, factor) {
    Rows t = {.kind = COMPLEX_ROWS, .in = row_length(args->x), .inverse = PyObject_IsTrue(args->inverse) == 1};
    t.width = t.in;
    t.points = t.in / 2;
    return t.in % 2 || !tt_read_number(args->factor, &t.factor) ? FALLBACK : transform_rows(args->x, &t);
}

KERNEL(rows_of_reals, x, onesided, factor) {
    Rows t = {.kind = FROM_REALS, .in = row_length(args->x), .onesided = PyObject_IsTrue(args->onesided) == 1};
    t.width = t.onesided ? t.in + 2 : 2 * t.in;
    t.points = t.in / 2;
    return t.in % 2 || !tt_read_number(args->factor, &t.factor) ? FALLBACK : transform_rows(args->x, &t);
}

KERNEL(rows_to_reals, x, factor) {
    Rows t = {.kind = TO_REALS, .in = row_length(args->x)};
    t.width = t.in - 2;
    t.points = t.width / 2;
    return t.in < 4 || t.in % 2 || !tt_read_number(args->factor, &t.factor) ? FALLBACK : transform_rows(args->x, &t);
}

KERNEL(rows_to_real_part, x, factor) {
    Rows t = {.kind = TO_REAL_PART, .in = row_length(args->x)};
    t.width = t.in / 2;
    t.points = t.width / 2;
    return t.in % 4 || !tt_read_number(args->factor, &t.factor) ? FALLBACK : transform_rows(args->x, &t);
}

FAMILY(fft, ENTRY(complex_rows), ENTRY(rows_of_reals), ENTRY(rows_to_real_part), ENTRY(rows_to_reals));
