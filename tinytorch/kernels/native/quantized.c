// Twins of kernels/quantized.py: linear layers whose weights have 8 or 16 bits, and products of matrices of bytes.
#include "matmul.h"

// Weights ---------------------------------------------------------------------------------------

typedef enum { INT8, FLOAT16, BFLOAT16 } WeightKind;  // (NumPy has no bfloat16: its bits are a uint16)

// A vector of WIDTH integers in memory, widened: one instruction, where GCC 12 converts a vector of bytes lane by lane.
#define WIDENED_FOUR(from, i) from[i], from[(i) + 1], from[(i) + 2], from[(i) + 3]
#if WIDTH == 16
#define WIDENED(from)                                                                                                  \
    (ints) { WIDENED_FOUR(from, 0), WIDENED_FOUR(from, 4), WIDENED_FOUR(from, 8), WIDENED_FOUR(from, 12) }
#elif WIDTH == 8
#define WIDENED(from)                                                                                                  \
    (ints) { WIDENED_FOUR(from, 0), WIDENED_FOUR(from, 4) }
#else
#define WIDENED(from)                                                                                                  \
    (ints) { WIDENED_FOUR(from, 0) }
#endif

typedef int16_t half_bits __attribute__((may_alias));

INLINE int64_t weight_size(WeightKind kind) { return kind == INT8 ? 1 : 2; }

// Widen float16, whose bits have been sign-extended: move them to where a float32 has sign, exponent and mantissa, and
// correct the exponent by a product, which is exact also for subnormal numbers. Infinity and NaN come out as finite
// numbers beyond the others; they get the largest exponent.
INLINE vec widen_float16(ints bits) {
    vec x = (vec)(bits << 13 & (int32_t)0x8fffe000) * 0x1p112f;
    return (vec)((ints)x | ((vabs(x) >= 65536) & 0x7f800000));
}

// Load WIDTH weights as floats.
INLINE vec load_narrow(WeightKind kind, const char *from) {
    const int8_t *bytes = (const int8_t *)from;
    const half_bits *halves = (const half_bits *)from;
    if (kind == INT8) return __builtin_convertvector(WIDENED(bytes), vec);
    ints bits = WIDENED(halves);
    return kind == FLOAT16 ? widen_float16(bits) : (vec)(bits << 16);
}

// Load fewer than WIDTH weights; the other lanes are zero.
INLINE vec load_narrow_partial(WeightKind kind, const char *from, int64_t count) {
    _Alignas(2) char weights[2 * WIDTH] = {0};
    memcpy(weights, from, (size_t)(count * weight_size(kind)));
    return load_narrow(kind, weights);
}

INLINE void widen(WeightKind kind, const char *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) store(to + i, load_narrow(kind, from + i * weight_size(kind)));
    if (i < count) store_partial(to + i, load_narrow_partial(kind, from + i * weight_size(kind), count - i), count - i);
}

// A linear layer --------------------------------------------------------------------------------

// Few rows of x are multiplied by scalar products: each weight is read once, in the order of memory, and widened in a
// register. Otherwise a thread widens a part of some rows of weights at a time, and multiplies it by panels of x.
enum {
    NARROW_DOTS = 8,               // rows of x up to which scalar products are faster
    NARROW_ROWS = 4,               // rows of x of a scalar product
    NARROW_PREFETCH = 2048,        // bytes
    NARROW_WORK = 1 << 16,         // weights of a part
    NARROW_WIDENED = 1 << 15,      // floats that a thread widens at a time: they stay in its cache
    NARROW_DEPTH = 1 << 10,        // terms of sums that are added at a time: they stay in it, too
    NARROW_FEATURES = 8 * WIDTH,   // the most rows of weights that a thread widens at a time
    TILES = WIDTH * TILE_COLUMNS,  // floats of WIDTH rows of tiles
};

typedef struct {
    WeightKind kind;
    const float *x, *scale, *bias;
    const char *weight;
    float *out;
    int64_t rows, features, depth, features_per_part;
    Matrices columns;         // x, transposed
    float *packed;            // panels of it
    int64_t panels, vectors;  // their number, and how many vectors of rows of x each has; the last one may have fewer
    float *scratch;
    int64_t scratch_size;  // per worker
} NarrowLinear;

// Compute the scalar products of `rows` rows of x from `row` on with the weights of `features` features, which are read
// in the order of memory, since a large weight is not in the cache. Of a sum there are as many parts as the registers
// hold, which do not wait for one another.
INLINE void multiply_dots(WeightKind kind, int rows, int features, const NarrowLinear *p, int64_t row,
                          int64_t feature) {
    enum { UNROLLED = 4 };
    const int chains = rows * features >= 8 ? 1 : rows * features >= 4 ? 2 : 4;
    vec sums[NARROW_ROWS][2][UNROLLED];
    int64_t depth = p->depth, size = weight_size(kind), k = 0;
    const float *x = p->x + row * depth;
    const char *weight = p->weight + feature * depth * size;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < features; j++)
            for (int u = 0; u < UNROLLED; u++) sums[i][j][u] = (vec){0};
    for (; k + UNROLLED * WIDTH <= depth; k += UNROLLED * WIDTH) {
        for (int j = 0; j < features; j++) __builtin_prefetch(weight + (j * depth + k) * size + NARROW_PREFETCH);
        for (int u = 0; u < UNROLLED; u++) {
            vec w[2];
            for (int j = 0; j < features; j++) w[j] = load_narrow(kind, weight + (j * depth + k + u * WIDTH) * size);
            for (int i = 0; i < rows; i++) {
                vec number = load(x + i * depth + k + u * WIDTH);
                for (int j = 0; j < features; j++) sums[i][j][u % chains] += number * w[j];
            }
        }
    }
    for (; k < depth; k += WIDTH) {
        int64_t left = depth - k;
        for (int j = 0; j < features; j++) {
            const char *from = weight + (j * depth + k) * size;
            vec w = left < WIDTH ? load_narrow_partial(kind, from, left) : load_narrow(kind, from);
            for (int i = 0; i < rows; i++) sums[i][j][0] += load_up_to(x + i * depth + k, left) * w;
        }
    }
    for (int j = 0; j < features; j++) {
        float scale = p->scale ? p->scale[feature + j] : 1, bias = p->bias ? p->bias[feature + j] : 0;
        for (int i = 0; i < rows; i++) {
            const vec *parts = sums[i][j];
            float sum = horizontal_sum(parts[0] + parts[1] + (parts[2] + parts[3]));
            p->out[(row + i) * p->features + feature + j] = sum * scale + bias;
        }
    }
}

// Compute the results of one feature, or of two.
INLINE void dots_of(WeightKind kind, int features, const NarrowLinear *p, int64_t feature) {
    int64_t row = 0;
    for (; row + NARROW_ROWS <= p->rows; row += NARROW_ROWS)
        multiply_dots(kind, NARROW_ROWS, features, p, row, feature);
    for (; row + 2 <= p->rows; row += 2) multiply_dots(kind, 2, features, p, row, feature);
    if (row < p->rows) multiply_dots(kind, 1, features, p, row, feature);
}

INLINE void dots_part(WeightKind kind, const NarrowLinear *p, Py_ssize_t part) {
    int64_t feature = part * p->features_per_part, end = imin(feature + p->features_per_part, p->features);
    if (p->rows > 1)
        for (; feature + 2 <= end; feature += 2) dots_of(kind, 2, p, feature);
    for (; feature < end; feature++) dots_of(kind, 1, p, feature);
}

static void narrow_dots(void *context, Py_ssize_t part, int worker) {
    const NarrowLinear *p = context;
    (void)worker;
    if (p->kind == INT8) dots_part(INT8, p, part);
    else if (p->kind == FLOAT16) dots_part(FLOAT16, p, part);
    else dots_part(BFLOAT16, p, part);
}

static float *narrow_panel(const NarrowLinear *p, int64_t panel) {
    return p->packed + panel * p->vectors * WIDTH * p->depth;
}

static void pack_narrow_part(void *context, Py_ssize_t part, int worker) {
    const NarrowLinear *p = context;
    int64_t first = part * p->vectors * WIDTH;
    (void)worker;
    pack_panel(&p->columns, p->x + first * p->depth, imin(p->vectors * WIDTH, p->rows - first), narrow_panel(p, part));
}

// Multiply `count` rows of widened weights of length `depth` by a panel of x from term `begin` on. Tiles get the
// result, or have it added to them.
static void multiply_widened(const NarrowLinear *p, const float *weights, int64_t count, int64_t begin, int64_t depth,
                             int64_t panel, float *tiles) {
    const float zeros[TILE_COLUMNS] = {0};
    int64_t vectors = ceil_div(imin(p->vectors * WIDTH, p->rows - panel * p->vectors * WIDTH), WIDTH);
    int64_t y_step = vectors * WIDTH;
    const float *y = narrow_panel(p, panel) + begin * y_step;
    for (int64_t r = 0; r < count; r += TILE_ROWS, tiles += TILE_ROWS * TILE_COLUMNS) {
        const float *row[TILE_ROWS];
        float further[TILE_ROWS * TILE_COLUMNS], *to = begin ? further : tiles;
        for (int i = 0; i < TILE_ROWS; i++) row[i] = weights + imin(r + i, count - 1) * depth;
        if (vectors == 3) multiply_tile(3, row, 1, y, y_step, depth, zeros, zeros, to, TILE_COLUMNS);
        else if (vectors == 2) multiply_tile(2, row, 1, y, y_step, depth, zeros, zeros, to, TILE_COLUMNS);
        else multiply_tile(1, row, 1, y, y_step, depth, zeros, zeros, to, TILE_COLUMNS);
        for (int i = 0; begin && i < TILE_ROWS; i++)
            for (int64_t j = i * TILE_COLUMNS; j < i * TILE_COLUMNS + y_step; j += WIDTH)
                store(tiles + j, load(tiles + j) + load(further + j));
    }
}

// Scale the tiles of WIDTH features, or fewer, from `feature` on, and transpose them into the result.
static void store_narrow(const NarrowLinear *p, int64_t feature, int64_t count, int64_t panel, float *tiles) {
    int64_t first = panel * p->vectors * WIDTH, columns = imin(p->vectors * WIDTH, p->rows - first);
    for (int64_t i = 0; i < count; i++) {
        vec scale = broadcast(p->scale ? p->scale[feature + i] : 1);
        vec bias = broadcast(p->bias ? p->bias[feature + i] : 0);
        for (int64_t j = i * TILE_COLUMNS; j < i * TILE_COLUMNS + columns; j += WIDTH)
            store(tiles + j, load(tiles + j) * scale + bias);
    }
    store_transposed(tiles, count, columns, p->out + first * p->features + feature, p->features);
}

INLINE void widen_part(WeightKind kind, const NarrowLinear *p, int64_t feature, int64_t count, int64_t begin,
                       int64_t depth, float *to) {
    for (int64_t i = 0; i < count; i++)
        widen(kind, p->weight + ((feature + i) * p->depth + begin) * weight_size(kind), depth, to + i * depth);
}

static void narrow_tiles(void *context, Py_ssize_t part, int worker) {
    const NarrowLinear *p = context;
    int64_t first = part * p->features_per_part, count = imin(p->features_per_part, p->features - first);
    int64_t blocks = ceil_div(p->features_per_part, WIDTH);
    float *tiles = p->scratch + worker * p->scratch_size, *weights = tiles + p->panels * blocks * TILES;
    for (int64_t begin = 0; begin < p->depth; begin += NARROW_DEPTH) {
        int64_t depth = imin(NARROW_DEPTH, p->depth - begin);
        if (p->kind == INT8) widen_part(INT8, p, first, count, begin, depth, weights);
        else if (p->kind == FLOAT16) widen_part(FLOAT16, p, first, count, begin, depth, weights);
        else widen_part(BFLOAT16, p, first, count, begin, depth, weights);
        for (int64_t panel = 0; panel < p->panels; panel++)
            multiply_widened(p, weights, count, begin, depth, panel, tiles + panel * blocks * TILES);
    }
    for (int64_t panel = 0; panel < p->panels; panel++)
        for (int64_t i = 0; i < count; i += WIDTH)
            store_narrow(p, first + i, imin(WIDTH, count - i), panel, tiles + (panel * blocks + i / WIDTH) * TILES);
}

static bool read_narrow(PyObject *weight, WeightKind *kind) {
    if (!PyArray_CheckExact(weight) || PyArray_NDIM(ARRAY(weight)) != 2 || !PyArray_ISCARRAY_RO(ARRAY(weight)))
        return false;
    int type = PyArray_TYPE(ARRAY(weight));
    *kind = type == NPY_BYTE ? INT8 : type == NPY_HALF ? FLOAT16 : BFLOAT16;
    return type == NPY_BYTE || type == NPY_HALF || type == NPY_UINT16;
}

KERNEL(widening_linear, x, weight, scale, bias) {
    NarrowLinear p = {0};
    if (!is_float_array(args->x, false) || PyArray_NDIM(ARRAY(args->x)) != 2) return FALLBACK;
    if (!read_narrow(args->weight, &p.kind)) return FALLBACK;
    float *scale, *bias;
    p.rows = PyArray_DIM(ARRAY(args->x), 0);
    p.features = PyArray_DIM(ARRAY(args->weight), 0);
    p.depth = PyArray_DIM(ARRAY(args->weight), 1);
    if (PyArray_DIM(ARRAY(args->x), 1) != p.depth || !p.rows || !p.features || !p.depth) return FALLBACK;
    if (!read_floats(args->scale, p.features, true, &scale)) return FALLBACK;
    if (!read_floats(args->bias, p.features, true, &bias)) return FALLBACK;
    bool dots = p.rows <= NARROW_DOTS;
    if (!dots && WIDTH < 8) return FALLBACK;
    p.x = float_data(args->x);
    p.weight = PyArray_DATA(ARRAY(args->weight));
    p.scale = scale;
    p.bias = bias;
    PyObject *out = tt_new_array(args->x, 2, (int64_t[]){p.rows, p.features});
    if (!out) return NULL;
    p.out = float_data(out);
    int64_t work = p.features * p.depth * p.rows / WIDTH + p.features * p.depth / 4;
    int threads = tt_threads();
    if (dots) {
        p.features_per_part = imax(NARROW_WORK / p.depth, 2);
        tt_parallel_for(narrow_dots, &p, ceil_div(p.features, p.features_per_part), work, threads);
        return out;
    }
    int64_t vectors = ceil_div(p.rows, WIDTH);
    p.vectors = ceil_div(vectors, ceil_div(vectors, TILE_VECTORS));
    p.panels = ceil_div(vectors, p.vectors);
    p.columns = matrix((float *)p.x, p.depth, p.rows, 1, p.depth);
    int64_t depth = imin(p.depth, NARROW_DEPTH);
    p.features_per_part = imin(imax(NARROW_WIDENED / depth / WIDTH, 1) * WIDTH, NARROW_FEATURES);
    p.scratch_size = round_to_lines(p.features_per_part * (p.panels * TILE_COLUMNS + depth));
    int64_t packed = p.panels * p.vectors * WIDTH * p.depth;
    p.scratch = alloc_floats((size_t)(threads * p.scratch_size + packed));
    if (!p.scratch) {
        Py_DECREF(out);
        return FALLBACK;
    }
    p.packed = p.scratch + threads * p.scratch_size;
    tt_parallel_for(pack_narrow_part, &p, p.panels, packed, threads);
    tt_parallel_for(narrow_tiles, &p, ceil_div(p.features, p.features_per_part), work, threads);
    free(p.scratch);
    return out;
}

// Products of bytes -----------------------------------------------------------------------------

// The factors are widened to 16 bits, the columns of the second one as rows: the compiler turns sums of products of
// 16-bit integers into instructions that multiply and add pairs.
enum {
    BYTE_ROWS = 4,
    BYTE_COLUMNS = 2,
    BYTE_PANEL = 32,           // columns of a part
    BYTE_BLOCK = 64,           // terms that are transposed at a time
    BYTE_DEPTHS = 32,          // the length of a widened row is a multiple of it
    MAX_BYTE_DEPTH = 1 << 16,  // terms: a sum fits into 32 bits
};

typedef struct {
    const int16_t *rows;  // of the first factor, widened
    const int8_t *b;
    int64_t row_stride, column_stride;  // of b
    int32_t *out;
    int64_t m, n, k, depth;  // depth: the length of a widened row
    int16_t *scratch;
} ByteProduct;

// Widen the columns of b from `first` on.
static void widen_columns(const ByteProduct *p, int64_t first, int64_t columns, int16_t *to) {
    for (int64_t begin = 0; begin < p->k; begin += BYTE_BLOCK) {
        int64_t end = imin(begin + BYTE_BLOCK, p->k);
        for (int64_t j = 0; j < columns; j++) {
            const int8_t *from = p->b + (first + j) * p->column_stride;
            if (p->row_stride == 1)
                for (int64_t k = begin; k < end; k++) to[j * p->depth + k] = from[k];
            else
                for (int64_t k = begin; k < end; k++) to[j * p->depth + k] = from[k * p->row_stride];
        }
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = p->k; k < p->depth; k++) to[j * p->depth + k] = 0;
}

INLINE void multiply_bytes(int rows, int columns, const int16_t *a, const int16_t *b, int64_t depth, int32_t *to,
                           int64_t stride) {
    int32_t sums[BYTE_ROWS][BYTE_COLUMNS] = {{0}};
    for (int64_t k = 0; k < depth; k++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) sums[i][j] += a[i * depth + k] * b[j * depth + k];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) to[i * stride + j] = sums[i][j];
}

static void byte_part(void *context, Py_ssize_t part, int worker) {
    const ByteProduct *p = context;
    int64_t first = part * BYTE_PANEL, columns = imin(BYTE_PANEL, p->n - first), depth = p->depth;
    int16_t *panel = p->scratch + worker * BYTE_PANEL * depth;
    widen_columns(p, first, columns, panel);
    for (int64_t i = 0; i < p->m;) {
        bool many = i + BYTE_ROWS <= p->m;
        const int16_t *a = p->rows + i * depth;
        for (int64_t j = 0; j < columns;) {
            bool two = j + BYTE_COLUMNS <= columns;
            const int16_t *b = panel + j * depth;
            int32_t *to = p->out + i * p->n + first + j;
            if (many && two) multiply_bytes(BYTE_ROWS, BYTE_COLUMNS, a, b, depth, to, p->n);
            else if (many) multiply_bytes(BYTE_ROWS, 1, a, b, depth, to, p->n);
            else if (two) multiply_bytes(1, BYTE_COLUMNS, a, b, depth, to, p->n);
            else multiply_bytes(1, 1, a, b, depth, to, p->n);
            j += two ? BYTE_COLUMNS : 1;
        }
        i += many ? BYTE_ROWS : 1;
    }
}

// A matrix of bytes of any strides.
static bool read_bytes(PyObject *x, Matrices *m) {
    if (!PyArray_CheckExact(x) || PyArray_NDIM(ARRAY(x)) != 2) return false;
    int type = PyArray_TYPE(ARRAY(x));
    return (type == NPY_BYTE || type == NPY_UBYTE) && view_as_matrices(ARRAY(x), m);
}

KERNEL(byte_product, a, b) {
    Matrices a, b;
    if (!read_bytes(args->a, &a) || !read_bytes(args->b, &b) || PyArray_TYPE(ARRAY(args->b)) != NPY_BYTE)
        return FALLBACK;
    if (a.columns != b.rows || !a.rows || !a.columns || !b.columns || a.columns > MAX_BYTE_DEPTH) return FALLBACK;
    ByteProduct p = {.b = (const int8_t *)b.data, .row_stride = b.row_stride, .column_stride = b.column_stride};
    p.m = a.rows, p.n = b.columns, p.k = a.columns, p.depth = ceil_div(p.k, BYTE_DEPTHS) * BYTE_DEPTHS;
    int threads = tt_threads();
    int64_t size = p.m * p.depth;
    float *memory = alloc_floats((size_t)((size + threads * BYTE_PANEL * p.depth) / 2));
    PyObject *out = memory ? PyArray_SimpleNew(2, ((npy_intp[]){p.m, p.n}), NPY_INT32) : NULL;
    if (!out) {
        free(memory);
        return memory ? NULL : FALLBACK;
    }
    int16_t *rows = (int16_t *)memory;
    const int8_t *data = (const int8_t *)a.data;
    const uint8_t *unsigned_data = (const uint8_t *)a.data;
    for (int64_t i = 0; i < p.m; i++) {
        int64_t from = i * a.row_stride;
        int16_t *to = rows + i * p.depth;
        if (PyArray_TYPE(ARRAY(args->a)) == NPY_UBYTE)
            for (int64_t k = 0; k < p.k; k++) to[k] = unsigned_data[from + k * a.column_stride];
        else
            for (int64_t k = 0; k < p.k; k++) to[k] = data[from + k * a.column_stride];
        for (int64_t k = p.k; k < p.depth; k++) to[k] = 0;
    }
    p.rows = rows;
    p.scratch = rows + size;
    p.out = PyArray_DATA(ARRAY(out));
    tt_parallel_for(byte_part, &p, ceil_div(p.n, BYTE_PANEL), p.m * p.n * p.k / WIDTH, threads);
    free(memory);
    return out;
}

FAMILY(quantized, ENTRY(widening_linear), ENTRY(byte_product));
