// What kernels are written with: the names of what Python calls, arrays, threads; and vectors of one instruction set.
//
// A family of kernels is a file. Each instruction set includes all families (families.h), so that all in them is static
// and compiled once per set; module.c hands Python those of the best set that the processor has.
#ifndef TINYTORCH_NATIVE_H
#define TINYTORCH_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tinytorch_native_numpy
#ifndef TINYTORCH_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A kernel takes a call's positional arguments, and `out` if there is one. It returns a new reference, or PASS (which
// is borrowed) for arguments that it leaves to its definition in NumPy.
typedef PyObject *(*Call)(PyObject *const *args, Py_ssize_t count, PyObject *out);
#define PASS Py_NotImplemented

typedef struct {
    const char *name;
    Call call;
} Kernel;

// Threads (pool.c) ------------------------------------------------------------------------------

// Do the `block`th part of some work; `worker` is below the number of threads, and no two at a time have the same.
typedef void (*Work)(void *context, Py_ssize_t block, int worker);

int tt_threads(void);
void tt_set_threads(int count);

// Do all of `blocks` parts, on up to `threads` threads, and wait for them. What a part is must not depend on the number
// of threads; then neither do results. `elements` says how much there is: for little, the interpreter's lock is kept.
void tt_share(Work work, void *context, Py_ssize_t blocks, int64_t elements, int threads);
// The same, in work that was shared out and so has no lock of the interpreter's.
void tt_share_unlocked(Work work, void *context, Py_ssize_t blocks, int64_t elements, int threads);

// Arrays (module.c) -----------------------------------------------------------------------------

// Is it an array of float32 (no subclass) in the machine's own order of bytes, that can be read in place?
bool tt_float32(PyObject *object);
bool tt_contiguous(PyObject *object);
// Read a tuple of `count` ints; false if it is none.
bool tt_sizes(PyObject *tuple, Py_ssize_t count, int64_t *sizes);
PyObject *tt_new(PyObject *like, int dims, const int64_t *shape);

typedef void (*Pointwise)(const float *const *inputs, const float *numbers, float *out, Py_ssize_t count);
PyObject *tt_pointwise(PyObject *const *args, Py_ssize_t count, PyObject *out, int inputs, int numbers,
                       Pointwise block);

#endif

// Vectors ---------------------------------------------------------------------------------------

#ifdef VECTORS  // defined by families.h, once the instruction set is chosen; WIDTH is its number of floats

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));
typedef float anywhere __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef char bytes __attribute__((vector_size(WIDTH), aligned(1), may_alias));

INLINE vec load(const float *from) { return *(const anywhere *)from; }
INLINE void store(float *to, vec x) { *(anywhere *)to = x; }
INLINE vec all(float x) { return x - (vec){0}; }

// Copy fewer than WIDTH floats, by lengths that are known: without a call.
INLINE void copy_some(float *to, const float *from, Py_ssize_t count) {
    for (int part = WIDTH / 2; part; part /= 2) {
        if (count & part) {
            memcpy(to, from, 4 * part);
            to += part;
            from += part;
        }
    }
}

INLINE vec load_some(const float *from, Py_ssize_t count) {
    float x[WIDTH] = {0};
    copy_some(x, from, count);
    return load(x);
}

INLINE void store_some(float *to, vec x, Py_ssize_t count) {
    float from[WIDTH];
    store(from, x);
    copy_some(to, from, count);
}

// The same for as many as there are, up to a whole vector.
INLINE vec part_of(const float *from, int64_t count) { return count >= WIDTH ? load(from) : load_some(from, count); }
INLINE void put_part(float *to, vec x, int64_t count) { count >= WIDTH ? store(to, x) : store_some(to, x, count); }

// Copy some floats: short runs, too, by two vectors that overlap.
INLINE void copy(float *to, const float *from, Py_ssize_t count) {
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

INLINE vec where(ints mask, vec x, vec y) { return (vec)((mask & (ints)x) | (~mask & (ints)y)); }

// NaN stays, in both.
INLINE vec at_most(vec x, float most) { return where(x > most, all(most), x); }
INLINE vec at_least(vec x, float least) { return where(x < least, all(least), x); }

// Return exp(r) - 1 for x = n log(2) + r with |r| <= log(2) / 2, and n: r and a polynomial for exp(r) - 1 - r that
// interpolates it at Chebyshev's points. For x from -104.5 to 89.
INLINE vec exp_parts(vec x, ints *n) {
    const float shift = 0x1.8p23f;  // added, it rounds to a whole number, which stands in the low bits
    vec shifted = x * 0x1.715476p0f + shift;
    *n = (ints)shifted - (ints)all(shift);
    vec whole = shifted - shift;
    vec r = x - whole * 0.693145751953125f;  // a product without rounding
    r = r - whole * 1.4286068203094287e-06f;
    vec p = r * 0.0001989098086973674f + 0.0013933641031986495f;
    p = p * r + 0.00833331093444889f;
    p = p * r + 0.04166646500604005f;
    p = p * r + 0.16666666681614256f;
    p = p * r + 0.5f;
    return p * r * r + r;
}

// x 2^n, in two steps, for 2^n may be infinite or a denormal number where the product is not.
INLINE vec times_power(vec x, ints n) {
    ints half = n >> 1;
    return x * (vec)((half + 127) << 23) * (vec)((n - half + 127) << 23);
}

// exp(x), to 1 ulp.
INLINE vec exp_of(vec x) {
    ints n;
    vec less_one = exp_parts(at_least(at_most(x, 89), -104.5f), &n);
    return times_power(less_one + 1, n);
}

// Rows and columns ------------------------------------------------------------------------------

enum { TOGETHER = 4, ABREAST = TOGETHER * WIDTH, PART = 1 << 13 };  // vectors, their lanes; elements that are worth a part

// The lanes of `x`, each in the place `by` before its own.
#define LANE(i, by) ((i) + (by)) % WIDTH
#define FOUR_LANES(i, by) LANE(i, by), LANE(i + 1, by), LANE(i + 2, by), LANE(i + 3, by)
#if WIDTH == 16
#define TURNED(x, by)                                                                                                  \
    __builtin_shufflevector(x, x, FOUR_LANES(0, by), FOUR_LANES(4, by), FOUR_LANES(8, by), FOUR_LANES(12, by))
#elif WIDTH == 8
#define TURNED(x, by) __builtin_shufflevector(x, x, FOUR_LANES(0, by), FOUR_LANES(4, by))
#else
#define TURNED(x, by) __builtin_shufflevector(x, x, FOUR_LANES(0, by))
#endif

// Two vectors lane by lane, each first one's before the second one's: of the first halves, of the second ones.
#if WIDTH == 4
#define LOW(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define HIGH(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#elif WIDTH == 8
#define LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOW(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(x, y) __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

INLINE float sum_of(vec x) {
    if (WIDTH > 8) x += TURNED(x, 8);
    if (WIDTH > 4) x += TURNED(x, 4);
    x += TURNED(x, 2);
    x += TURNED(x, 1);
    return x[0];
}

// Of a row of `count` floats, the last vector, which may overlap the one before it or be short: the lanes that are its
// own, and where it begins; up to `whole` are the others.
typedef struct {
    Py_ssize_t count, whole, begin;
    ints own;
} Ends;

INLINE Ends ends_of(Py_ssize_t count) {
    Ends ends = {count, (count - 1) / WIDTH * WIDTH, count < WIDTH ? 0 : count - WIDTH, {0}};
    int rest = (int)(count - ends.whole);
    for (int lane = 0; lane < WIDTH; lane++) ends.own[lane] = -(count < WIDTH ? lane < rest : lane >= WIDTH - rest);
    return ends;
}

INLINE vec own_of(vec x, const Ends *ends) { return where(ends->own, x, all(0)); }

INLINE vec load_last(const float *x, const Ends *ends) {
    return ends->count < WIDTH ? load_some(x, ends->count) : load(x + ends->begin);
}

INLINE void store_last(float *x, vec value, const Ends *ends) {
    if (ends->count < WIDTH) {
        store_some(x, value, ends->count);
    } else {
        store(x + ends->begin, value);
    }
}

// Columns that are worked on together: as vectors, of which the last ones may have fewer lanes, or none.
typedef struct {
    Py_ssize_t begin, count;
} Columns;

INLINE vec load_columns(const float *x, const Columns *columns, int k) {
    Py_ssize_t left = columns->count - k * WIDTH;
    return left >= WIDTH ? load(x + k * WIDTH) : load_some(x + k * WIDTH, left > 0 ? left : 0);
}

INLINE void store_columns(float *x, vec value, const Columns *columns, int k) {
    Py_ssize_t left = columns->count - k * WIDTH;
    if (left >= WIDTH) {
        store(x + k * WIDTH, value);
    } else if (left > 0) {
        store_some(x + k * WIDTH, value, left);
    }
}

// Families --------------------------------------------------------------------------------------

#define KERNEL(name) static PyObject *name##_call(PyObject *const *args, Py_ssize_t count, PyObject *out)

// A function of arrays of one shape and of numbers: `expression` gives a vector of the result from vectors `a[...]` of
// the arrays and from `number[...]`.
#define POINTWISE(name, inputs, numbers, expression)                                                                   \
    static void name##_block(const float *const *x, const float *number, float *out, Py_ssize_t count) {               \
        (void)number;                                                                                                  \
        vec a[inputs];                                                                                                 \
        Py_ssize_t i = 0;                                                                                              \
        for (; i + WIDTH <= count; i += WIDTH) {                                                                       \
            for (int k = 0; k < inputs; k++) a[k] = load(x[k] + i);                                                    \
            store(out + i, expression);                                                                                \
        }                                                                                                              \
        if (i < count) {                                                                                               \
            for (int k = 0; k < inputs; k++) a[k] = load_some(x[k] + i, count - i);                                    \
            store_some(out + i, expression, count - i);                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    KERNEL(name) { return tt_pointwise(args, count, out, inputs, numbers, name##_block); }

#endif
