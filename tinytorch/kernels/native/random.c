// Twins of kernels in kernels/random.py: normal numbers, whose functions round where those of NumPy do, so that the
// numbers are the same, and the shuffle of Fisher and Yates.
#include "helpers.h"

enum { BLOCK = 16, HALF = BLOCK / 2, NUMBERS_PER_PART = 1 << 13 };

// Set by an instruction set whose products and sums are fused by one instruction: `fmaf` is a slow function otherwise.
#if WIDTH > 4 || defined(__aarch64__)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif

typedef struct {
    const float *uniforms;
    float *normals;
    int64_t blocks;
} Normals;

INLINE int32_t bits_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float of_bits(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The logarithm of a number in (0, 1]: u = (1 + x) 2^e with sqrt(1/2) <= 1 + x < sqrt(2); polynomial of Cephes' logf.
INLINE float log_of_uniform(float u) {
    int32_t exponent = (bits_of(u) - 0x3F3504F3) >> 23;
    float x = of_bits(bits_of(u) - exponent * (1 << 23)) - 1, e = (float)exponent, z = x * x;
    float y = __builtin_fmaf(7.0376836292e-2f, x, -1.1514610310e-1f);
    y = __builtin_fmaf(y, x, 1.1676998740e-1f);
    y = __builtin_fmaf(y, x, -1.2420140846e-1f);
    y = __builtin_fmaf(y, x, 1.4249322787e-1f);
    y = __builtin_fmaf(y, x, -1.6668057665e-1f);
    y = __builtin_fmaf(y, x, 2.0000714765e-1f);
    y = __builtin_fmaf(y, x, -2.4999993993e-1f);
    y = __builtin_fmaf(y, x, 3.3333331174e-1f);
    y *= x;
    y = __builtin_fmaf(y, z, e * -2.12194440e-4f);
    y -= z * 0.5f;                      // (this product and the next are exact)
    return (x + y) + e * 0.693359375f;
}

// Cosine and sine of x in [0, 2 pi]: x = octant * pi/4 + rest, |rest| <= pi/4, with an even octant; polynomials of
// Cephes' cosf and sinf.
INLINE void cos_and_sin(float x, float *cosine, float *sine) {
    int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & -2;
    float multiple = (float)octant;
    x -= multiple * 0.78515625f;  // (this product and the next are exact)
    x -= multiple * 2.4187564849853515625e-4f;
    x = __builtin_fmaf(multiple, -3.77489497744594108e-8f, x);
    float z = x * x;
    float y = __builtin_fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    y = __builtin_fmaf(y, z, 4.166664568298827e-2f) * z;
    float c = __builtin_fmaf(y, z, z * -0.5f) + 1;
    y = __builtin_fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
    y = __builtin_fmaf(y, z, -1.6666654611e-1f) * z;
    float s = __builtin_fmaf(y, x, x);
    // In octants 2 and 6 sine and cosine are exchanged; sine is negative from 4 on, cosine in 2 and 4.
    int32_t swap = (bits_of(c) ^ bits_of(s)) & -(octant >> 1 & 1);
    *sine = of_bits(bits_of(s) ^ swap ^ (int32_t)((uint32_t)(octant & 4) << 29));
    *cosine = of_bits(bits_of(c) ^ swap ^ (int32_t)((uint32_t)((octant + 2) & 4) << 29));
}

static void normals_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Normals *n = context;
    int64_t blocks = NUMBERS_PER_PART / BLOCK, begin = part * blocks, end = imin(begin + blocks, n->blocks);
    for (int64_t block = begin; block < end; block++) {
        const float *u = n->uniforms + block * BLOCK;
        float *out = n->normals + block * BLOCK;
        for (int i = 0; i < HALF; i++) {
            float radius = __builtin_sqrtf(log_of_uniform(1 - u[i]) * -2), cosine, sine;
            cos_and_sin(u[HALF + i] * 6.28318530717959f, &cosine, &sine);
            out[i] = radius * cosine;
            out[HALF + i] = radius * sine;
        }
    }
}

KERNEL(box_muller, u) {
    if (!HAS_FMA || !is_float_array(args->u, false)) return FALLBACK;
    PyArrayObject *u = ARRAY(args->u);
    npy_intp size = PyArray_SIZE(u);
    if (PyArray_NDIM(u) != 1 || size % BLOCK) return FALLBACK;
    PyObject *out = PyArray_SimpleNew(1, &size, NPY_FLOAT);
    if (!out) return NULL;
    Normals n = {.uniforms = PyArray_DATA(u), .normals = float_data(out), .blocks = size / BLOCK};
    tt_parallel_for(normals_part, &n, ceil_div(size, NUMBERS_PER_PART), size * 32, tt_threads());
    return out;
}

KERNEL(shuffled, words) {
    PyArrayObject *words = ARRAY(args->words);
    if (!PyArray_CheckExact(args->words) || PyArray_TYPE(words) != NPY_UINT32) return FALLBACK;
    if (PyArray_NDIM(words) != 1 || !PyArray_ISCARRAY_RO(words)) return FALLBACK;
    npy_intp size = PyArray_SIZE(words) + 1;
    PyObject *out = PyArray_SimpleNew(1, &size, NPY_INT64);
    if (!out) return NULL;
    const uint32_t *word = PyArray_DATA(words);
    int64_t *places = PyArray_DATA(ARRAY(out));
    for (int64_t i = 0; i < size; i++) places[i] = i;
    for (int64_t i = 0; i + 1 < size; i++) {
        int64_t j = i + word[i] % (size - i), held = places[i];
        places[i] = places[j];
        places[j] = held;
    }
    return out;
}

FAMILY(random, ENTRY(box_muller), ENTRY(shuffled));
