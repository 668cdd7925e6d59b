// Twins of kernels in kernels/random.py: normal numbers, whose functions round where those of NumPy do, so that the
// numbers are the same, and the shuffle of Fisher and Yates.
#include "drawing.h"
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

// Words -----------------------------------------------------------------------------------------

// The state of NumPy's engine, MT19937 of Matsumoto and Nishimura: loops over it draw several words at a time.
enum { KEYS = 624, MIDDLE = 397, WORDS = 1024 };
typedef struct {
    uint32_t key[KEYS];
    int place;
} Twister;
static bool is_twister;  // whether the engine's state lies in memory like that

INLINE uint32_t twisted(uint32_t high, uint32_t low) {
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return y >> 1 ^ (-(y & 1) & 0x9908b0dfu);
}

static void draw_words(bitgen_t *engine, uint32_t *to, int64_t count) {
    Twister *t = engine->state;
    for (int64_t i = 0; !is_twister && i < count; i++) to[i] = engine->next_uint32(engine->state);
    while (is_twister && count) {
        uint32_t *key = t->key;
        int place = t->place;  // (another thread may set a seed meanwhile)
        if (place == KEYS) {
            const int rest = KEYS - MIDDLE;
            for (int i = 0; i < rest; i++) key[i] = key[i + MIDDLE] ^ twisted(key[i], key[i + 1]);
            for (int i = rest; i < KEYS - 1; i++) key[i] = key[i - rest] ^ twisted(key[i], key[i + 1]);
            key[KEYS - 1] = key[MIDDLE - 1] ^ twisted(key[KEYS - 1], key[0]);
            place = 0;
        }
        const int64_t words = imin(count, KEYS - place);
        key += place;
        for (int64_t i = 0; i < words; i++) {
            uint32_t y = key[i];
            y ^= y >> 11;
            y ^= y << 7 & 0x9d2c5680u;
            y ^= y << 15 & 0xefc60000u;
            to[i] = y ^ y >> 18;
        }
        t->place = place + (int)words;
        to += words;
        count -= words;
    }
}

// Whether the state of an engine, of which Python shows a copy, lies in memory as above.
static bool lies_so(PyObject *bits, const Twister *t) {
    PyObject *state = PyObject_GetAttrString(bits, "state");
    PyObject *own = state && PyDict_Check(state) ? PyDict_GetItemString(state, "state") : NULL;
    PyObject *key = own && PyDict_Check(own) ? PyDict_GetItemString(own, "key") : NULL;
    PyObject *place = key ? PyDict_GetItemString(own, "pos") : NULL;
    bool same = place && PyLong_Check(place) && PyLong_AsLong(place) == t->place && PyArray_CheckExact(key) &&
                PyArray_TYPE(ARRAY(key)) == NPY_UINT32 && PyArray_NBYTES(ARRAY(key)) == sizeof t->key &&
                !memcmp(PyArray_DATA(ARRAY(key)), t->key, sizeof t->key);
    Py_XDECREF(state);
    return same;
}

// Fills whose time in Python is all calls --------------------------------------------------------

enum { MOST_NUMBERS = 1 << 15, FEW_NUMBERS = 4 };

// The engine of a source, of which it is known by then how its state lies in memory.
static bitgen_t *known_engine_of(PyObject *source) {
    static bool known;
    bitgen_t *engine = engine_of(source);
    if (engine && !known) {
        PyObject *bits = PyObject_GetAttrString(source, "_bits");
        is_twister = bits && lies_so(bits, engine->state);
        known = true;
        Py_XDECREF(bits);
        PyErr_Clear();
    }
    return engine;
}

// Whether an array is filled here: of float32 or float64, and contiguous; and whether it is of float64.
static bool may_fill(PyObject *out, bool *wide) {
    if (!PyArray_CheckExact(out) || !PyArray_ISCARRAY(ARRAY(out))) return false;
    if (!PyArray_SIZE(ARRAY(out))) return false;  // (nothing is drawn, which the state tells)
    *wide = PyArray_TYPE(ARRAY(out)) == NPY_DOUBLE;
    return *wide || PyArray_TYPE(ARRAY(out)) == NPY_FLOAT;
}

// The same of small arrays.
static bool is_filled(PyObject *out, bool *wide) {
    return may_fill(out, wide) && PyArray_SIZE(ARRAY(out)) <= MOST_NUMBERS;
}

// A fill, which holds the interpreter's lock: other threads may draw from the same engine.
typedef struct {
    bitgen_t *engine;
    void *out;
    int64_t size;
    bool wide;
    uint64_t bound;     // of ones
    float start, width, end;
} Fill;

static void fill_words(const Fill *f) {
    if (!f->wide) {
        draw_words(f->engine, f->out, f->size);
        return;
    }
    uint32_t words[WORDS];
    uint64_t *to = f->out;
    for (int64_t left = f->size; left > 0; left -= WORDS / 2, to += WORDS / 2) {
        const int64_t count = imin(left, WORDS / 2);
        draw_words(f->engine, words, 2 * count);
        for (int64_t i = 0; i < count; i++) to[i] = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
    }
}

KERNEL(drawn_words, out, source) {
    PyArrayObject *out = ARRAY(args->out);
    if (!PyArray_CheckExact(args->out) || !PyArray_ISCARRAY(out)) return FALLBACK;
    const int itemsize = (int)PyArray_ITEMSIZE(out);
    if (PyArray_DESCR(out)->kind != 'u' || itemsize < 4) return FALLBACK;
    Fill f = {.engine = known_engine_of(args->source), .out = PyArray_DATA(out), .size = PyArray_SIZE(out), .wide = itemsize == 8};
    if (!f.engine) return FALLBACK;
    fill_words(&f);
    return Py_NewRef(args->out);
}

static void fill_uniform(const Fill *f) {
    uint32_t words[WORDS];
    float *to = f->out;
    for (int64_t left = f->size; left > 0; left -= WORDS, to += WORDS) {
        const int64_t count = imin(left, WORDS);
        draw_words(f->engine, words, count);
        for (int64_t i = 0; i < count; i++) {
            const float number = __builtin_fmaf(float_of(words[i]), f->width, f->start);
            to[i] = f->start != 0 && number == f->end ? f->start : number;  // (rounded up)
        }
    }
}

static void fill_bernoulli(const Fill *f) {
    uint32_t words[WORDS];
    float *to = f->out;
    for (int64_t left = f->size; left > 0; left -= WORDS / 2, to += WORDS / 2) {
        const int64_t count = imin(left, WORDS / 2);
        draw_words(f->engine, words, 2 * count);
        for (int64_t i = 0; i < count; i++) {
            const uint64_t word = (uint64_t)(words[2 * i] & ((1 << 21) - 1)) << 32 | words[2 * i + 1];
            to[i] = word < f->bound ? 1 : 0;
        }
    }
}

KERNEL(uniform, out, source, low, high) {
    double low, high;
    bool wide;
    if (!may_fill(args->out, &wide) || !tt_read_double(args->low, &low) || !tt_read_double(args->high, &high)) {
        return FALLBACK;
    }
    if (PyArray_SIZE(ARRAY(args->out)) > MOST_NUMBERS && (wide || !HAS_FMA)) return FALLBACK;
    bitgen_t *engine = fabs(high - low) > 1e290 ? NULL : known_engine_of(args->source);
    if (!engine) return FALLBACK;
    const npy_intp size = PyArray_SIZE(ARRAY(args->out));
    if (wide) {
        double *to = PyArray_DATA(ARRAY(args->out)), width = high - low;
        for (npy_intp i = 0; i < size; i++) {
            to[i] = __builtin_fma(next_double(engine), width, low);
            if (low != 0 && to[i] == high) to[i] = low;  // (rounded up)
        }
    } else {
        Fill f = {.engine = engine, .out = float_data(args->out), .size = size, .start = (float)low, .end = (float)high};
        f.width = f.end - f.start;
        fill_uniform(&f);
    }
    return Py_NewRef(Py_None);
}

// Fewer than 16 numbers: pairs, of which the second one may wait for the next call.
static PyObject *few_normals(PyObject *out, bool wide, PyObject *source, double mean, double std) {
    const npy_intp size = PyArray_SIZE(ARRAY(out));
    PyObject *waiting = PyObject_GetAttrString(source, "normal"), *left = Py_NewRef(Py_None);
    bitgen_t *engine = waiting ? engine_of(source) : NULL;
    if (!engine) {
        PyErr_Clear();
        Py_XDECREF(waiting);
        Py_DECREF(left);
        return FALLBACK;
    }
    npy_intp first = 0;
    double numbers[BLOCK + 1];
    if (waiting != Py_None) numbers[first++] = PyFloat_AsDouble(waiting);
    Py_DECREF(waiting);
    for (; first < size; first += 2) {
        double u = next_double(engine), v = next_double(engine), radius = sqrt(-2 * log1p(-v)), angle = 2 * M_PI * u;
        numbers[first] = radius * cos(angle);
        numbers[first + 1] = radius * sin(angle);
    }
    for (npy_intp i = 0; i < size; i++) {
        double number = __builtin_fma(numbers[i], std, mean);
        if (wide) ((double *)PyArray_DATA(ARRAY(out)))[i] = number;
        else float_data(out)[i] = (float)number;
    }
    if (first > size) {
        Py_DECREF(left);
        left = PyFloat_FromDouble(numbers[size]);
    }
    int failed = !left || PyObject_SetAttrString(source, "normal", left);
    Py_XDECREF(left);
    return failed ? NULL : Py_NewRef(Py_None);
}

KERNEL(normal, out, source, mean, std) {
    double mean, std;
    bool wide;
    if (!is_filled(args->out, &wide) || !tt_read_double(args->mean, &mean) || !tt_read_double(args->std, &std)) {
        return FALLBACK;
    }
    const npy_intp size = PyArray_SIZE(ARRAY(args->out)), rest = size % BLOCK;
    if (fabs(std) > 1e290 || (wide && size > FEW_NUMBERS)) return FALLBACK;
    if (size < BLOCK) return few_normals(args->out, wide, args->source, mean, std);
    float *uniforms = HAS_FMA ? malloc(2 * sizeof(float) * (size_t)(size + BLOCK)) : NULL;
    bitgen_t *engine = uniforms ? engine_of(args->source) : NULL;
    if (!engine) {
        free(uniforms);
        return FALLBACK;
    }
    float *normals = uniforms + size + BLOCK, *to = float_data(args->out);
    // The numbers of an incomplete block are drawn and discarded; the last 16 are drawn again, as one block.
    for (npy_intp i = 0; i < size; i++) uniforms[i] = next_float(engine);
    for (npy_intp i = 0; rest && i < BLOCK; i++) uniforms[size - rest + i] = next_float(engine);
    Normals n = {.uniforms = uniforms, .normals = normals, .blocks = size / BLOCK + (rest ? 1 : 0)};
    for (npy_intp part = 0; part * NUMBERS_PER_PART < n.blocks * BLOCK; part++) normals_part(&n, part, 0);
    const float width = (float)std, start = (float)mean;
    for (npy_intp i = 0; i < size - rest; i++) to[i] = __builtin_fmaf(normals[i], width, start);
    for (npy_intp i = 0; rest && i < BLOCK; i++) {
        to[size - BLOCK + i] = __builtin_fmaf(normals[size - rest + i], width, start);
    }
    free(uniforms);
    return Py_NewRef(Py_None);
}

KERNEL(integers, out, source, low, count) {
    PyArrayObject *out = ARRAY(args->out);
    if (!PyArray_CheckExact(args->out) || PyArray_TYPE(out) != NPY_INT64 || !PyArray_ISCARRAY(out)) return FALLBACK;
    if (!PyArray_SIZE(out) || PyArray_SIZE(out) > MOST_NUMBERS || !PyLong_Check(args->low) || !PyLong_Check(args->count)) return FALLBACK;
    const int64_t low = PyLong_AsLongLong(args->low);
    const uint64_t count = PyLong_AsUnsignedLongLong(args->count);
    bitgen_t *engine = PyErr_Occurred() || !count ? NULL : engine_of(args->source);
    if (!engine) {
        PyErr_Clear();
        return FALLBACK;
    }
    int64_t *to = PyArray_DATA(out);
    for (npy_intp i = 0; i < PyArray_SIZE(out); i++) {
        const uint64_t word = count < 1 << 28 ? engine->next_uint32(engine->state) : next_word64(engine);
        to[i] = (int64_t)(word % count + (uint64_t)low);  // (wraps around)
    }
    return Py_NewRef(Py_None);
}

KERNEL(bernoulli, out, source, p) {
    double p;
    bool wide;
    if (!may_fill(args->out, &wide) || !tt_read_double(args->p, &p) || !(p >= 0 && p <= 1)) return FALLBACK;
    if (wide && PyArray_SIZE(ARRAY(args->out)) > MOST_NUMBERS) return FALLBACK;
    bitgen_t *engine = known_engine_of(args->source);
    if (!engine) return FALLBACK;
    const uint64_t bound = (uint64_t)ceil(p * 0x1p53), mask = ((uint64_t)1 << 53) - 1;
    Fill f = {.engine = engine, .out = PyArray_DATA(ARRAY(args->out)), .size = PyArray_SIZE(ARRAY(args->out)), .bound = bound};
    if (!wide) fill_bernoulli(&f);
    for (npy_intp i = 0; wide && i < f.size; i++) ((double *)f.out)[i] = (next_word64(engine) & mask) < bound;
    return Py_NewRef(Py_None);
}

KERNEL(bernoulli_each, out, source, p) {
    bool wide, wide_p;
    if (!is_filled(args->out, &wide) || !is_filled(args->p, &wide_p) || wide != wide_p) return FALLBACK;
    if (!same_shape(args->out, args->p)) return FALLBACK;
    const float *p = float_data(args->p);
    const double *p_wide = PyArray_DATA(ARRAY(args->p));
    const npy_intp size = PyArray_SIZE(ARRAY(args->out));
    for (npy_intp i = 0; i < size; i++) {
        if (wide ? !(p_wide[i] >= 0 && p_wide[i] <= 1) : !(p[i] >= 0 && p[i] <= 1)) return FALLBACK;
    }
    bitgen_t *engine = engine_of(args->source);
    if (!engine) return FALLBACK;
    for (npy_intp i = 0; i < size; i++) {
        if (wide) ((double *)PyArray_DATA(ARRAY(args->out)))[i] = next_double(engine) < p_wide[i];
        else float_data(args->out)[i] = next_float(engine) < p[i];
    }
    return Py_NewRef(Py_None);
}

KERNEL(permutation, out, source) {
    PyArrayObject *out = ARRAY(args->out);
    if (!PyArray_CheckExact(args->out) || PyArray_TYPE(out) != NPY_INT64 || !PyArray_ISCARRAY(out)) return FALLBACK;
    const npy_intp size = PyArray_SIZE(out);
    if (PyArray_NDIM(out) != 1 || size < 2 || size > MOST_NUMBERS) return FALLBACK;
    bitgen_t *engine = engine_of(args->source);
    if (!engine) return FALLBACK;
    int64_t *places = PyArray_DATA(out);
    for (npy_intp i = 0; i < size; i++) places[i] = i;
    for (npy_intp i = 0; i + 1 < size; i++) {
        const npy_intp j = i + engine->next_uint32(engine->state) % (size - i);
        const int64_t held = places[i];
        places[i] = places[j];
        places[j] = held;
    }
    return Py_NewRef(Py_None);
}

FAMILY(random, ENTRY(box_muller), ENTRY(shuffled), ENTRY(drawn_words), ENTRY(uniform), ENTRY(normal), ENTRY(integers),
       ENTRY(bernoulli), ENTRY(bernoulli_each), ENTRY(permutation));
