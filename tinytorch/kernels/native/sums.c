// Twins of kernels/reduce.py: sums over dimensions of an array seen as (outer, count, inner). Of rows (inner is 1) as of
// columns few numbers are added one after another, then what came of them.

enum { STRIP = 1 << 10, NARROW = 64, LAYERS = 256, SPAN = 1 << 15 };  // columns; rows of a part; numbers of a row's part

typedef struct {
    const float *x;
    float *out, *partial;
    double *spans;
    Py_ssize_t outer, count, inner;
    Py_ssize_t abreast, parts, strips, rows;  // rows side by side as one; parts of the rows, and of the columns
} Sums;

// The sum of vectors of up to 8 rows.
INLINE vec sum_of_layers(const float *x, Py_ssize_t step, int count) {
    vec sums[4] = {load(x)};
    if (count >= 2) sums[0] += load(x + step);
    for (int k = 1; 2 * k < count; k++) sums[k] = load(x + 2 * k * step) + load(x + (2 * k + 1) * step);
    return count > 4 ? sums[0] + sums[1] + (sums[2] + sums[3]) : sums[0];
}

// Add `count` rows, 1, 2 or 8, to the sums.
INLINE void add_layers(const float *x, Py_ssize_t step, int count, float *sums, const Ends *ends) {
    for (Py_ssize_t i = 0; i < ends->whole; i += WIDTH) {
        store(sums + i, load(sums + i) + sum_of_layers(x + i, step, count));
    }
    const float *last = x + ends->begin;
    vec more;
    if (ends->count < WIDTH) {
        more = load_some(last, ends->count);
        for (int k = 1; k < count; k++) more += load_some(last + k * step, ends->count);
    } else {
        more = own_of(sum_of_layers(last, step, count), ends);
    }
    store(sums + ends->begin, load(sums + ends->begin) + more);
}

static void sum_layers(const float *x, Py_ssize_t rows, Py_ssize_t step, float *sums, Py_ssize_t width) {
    Ends ends = ends_of(width);
    for (Py_ssize_t i = 0; i < width + WIDTH; i++) sums[i] = 0;
    for (; rows >= 8; rows -= 8, x += 8 * step) add_layers(x, step, 8, sums, &ends);
    for (; rows >= 2; rows -= 2, x += 2 * step) add_layers(x, step, 2, sums, &ends);
    if (rows) add_layers(x, step, 1, sums, &ends);
}

static void sum_columns_part(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Sums *of = context;
    const Py_ssize_t inner = of->inner, strip = block % of->strips, part = block / of->strips % of->parts;
    const Py_ssize_t outer = block / of->strips / of->parts, begin = strip * STRIP, abreast = of->abreast;
    const Py_ssize_t first = part * LAYERS * abreast, left = of->count - first;
    const Py_ssize_t rows = left < LAYERS * abreast ? left : LAYERS * abreast;
    const Py_ssize_t width = inner - begin < STRIP ? inner - begin : STRIP;
    const float *x = of->x + (outer * of->count + first) * inner + begin;
    float sums[STRIP + 16], *out = of->out + (outer * of->parts + part) * inner + begin;
    sum_layers(x, rows / abreast, abreast * inner, sums, abreast * width);
    for (Py_ssize_t k = 1; k < abreast; k++) {
        for (Py_ssize_t i = 0; i < width; i++) sums[i] += sums[k * width + i];
    }
    for (Py_ssize_t row = rows / abreast * abreast; row < rows; row++) {
        for (Py_ssize_t i = 0; i < width; i++) sums[i] += x[row * inner + i];
    }
    memcpy(out, sums, 4 * (size_t)width);
}

static double sum_of_span(const float *x, Py_ssize_t count) { return sum_of_row(x, count, 0, false); }

INLINE void sum_short_rows(const float *restrict x, Py_ssize_t rows, Py_ssize_t count, float *restrict out) {
    for (Py_ssize_t row = 0; row < rows; row++) {
        float sum = x[row * count];
        for (Py_ssize_t i = 1; i < count; i++) sum += x[row * count + i];
        out[row] = sum;
    }
}

static void sum_rows_part(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Sums *of = context;
    if (of->spans) {  // one after another in a row
        Py_ssize_t begin = block % of->parts * SPAN, left = of->count - begin;
        of->spans[block] = sum_of_span(of->x + block / of->parts * of->count + begin, left < SPAN ? left : SPAN);
        return;
    }
    Py_ssize_t first = block * of->rows, end = first + of->rows < of->outer ? first + of->rows : of->outer;
    const float *x = of->x + first * of->count;
    if (of->count == 2) {  // which the compiler sees
        sum_short_rows(x, end - first, 2, of->out + first);
    } else if (of->count == 3) {
        sum_short_rows(x, end - first, 3, of->out + first);
    } else if (of->count == 4) {
        sum_short_rows(x, end - first, 4, of->out + first);
    } else if (of->count < WIDTH) {
        sum_short_rows(x, end - first, of->count, of->out + first);
    } else {
        for (Py_ssize_t row = first; row < end; row++, x += of->count) {
            of->out[row] = (float)sum_of_span(x, of->count);
        }
    }
}

// Write the sums of (outer, count, inner) numbers over the middle; false if there is no memory.
static bool sum_middle(const float *x, Py_ssize_t outer, Py_ssize_t count, Py_ssize_t inner, float *out) {
    Sums of = {.x = x, .out = out, .outer = outer, .count = count, .inner = inner};
    const int64_t size = (int64_t)outer * count * inner;
    if (inner == 1) {
        of.parts = (count + SPAN - 1) / SPAN;
        of.rows = PART / count + 1;
        if (of.parts > 1 && !(of.spans = malloc(8 * (size_t)(outer * of.parts)))) return false;
        tt_share(sum_rows_part, &of, of.spans ? outer * of.parts : (outer + of.rows - 1) / of.rows, size, tt_threads());
        for (Py_ssize_t row = 0; of.spans && row < outer; row++) {
            double sum = 0;
            for (Py_ssize_t k = 0; k < of.parts; k++) sum += of.spans[row * of.parts + k];
            out[row] = (float)sum;
        }
        free(of.spans);
        return true;
    }
    of.abreast = inner < NARROW ? 2 * NARROW / inner : 1;
    if (of.abreast > count) of.abreast = count;
    of.parts = (count + LAYERS * of.abreast - 1) / (LAYERS * of.abreast);
    of.strips = (inner + STRIP - 1) / STRIP;
    if (of.parts > 1 && !(of.out = of.partial = malloc(4 * (size_t)(outer * of.parts * inner)))) return false;
    tt_share(sum_columns_part, &of, outer * of.parts * of.strips, size, tt_threads());
    bool done = !of.partial || sum_middle(of.partial, outer, of.parts, inner, out);
    free(of.partial);
    return done;
}

// Sum over the dimensions that are `reduced`, run after run of neighbouring ones, the innermost first.
static bool sum_dims(const float *x, int dims, const npy_intp *shape, const bool *reduced, float *out) {
    Py_ssize_t before = 1, count = 1, after = 1;
    int d = dims - 1;
    for (; d >= 0 && !reduced[d]; d--) after *= shape[d];
    for (; d >= 0 && reduced[d]; d--) count *= shape[d];
    bool rest = false;
    for (int k = d; k >= 0; k--) {
        before *= shape[k];
        rest |= reduced[k];
    }
    if (!rest) return sum_middle(x, before, count, after, out);
    npy_intp left[33];
    bool more_reduced[33];
    for (int k = 0; k <= d; k++) {
        left[k] = shape[k];
        more_reduced[k] = reduced[k];
    }
    left[d + 1] = after;
    more_reduced[d + 1] = false;
    float *sums = malloc(4 * (size_t)(before * after));
    bool done = sums && sum_middle(x, before, count, after, sums) && sum_dims(sums, d + 2, left, more_reduced, out);
    free(sums);
    return done;
}

// (x, axes, keepdims)
KERNEL(total) {
    npy_intp shape[32];
    int64_t sizes[32], axes[32];
    bool reduced[32] = {false};
    if (out || count < 1 || count > 3 || !float_array(args[0], false)) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int dims = PyArray_NDIM(x);
    bool every = count == 1 || args[1] == Py_None, kept = count == 3 && args[2] == Py_True;
    if (!dims || dims > 31 || !PyArray_SIZE(x) || (count == 3 && !PyBool_Check(args[2]))) return PASS;
    if (!every) {
        Py_ssize_t many = PyTuple_Check(args[1]) ? PyTuple_Size(args[1]) : 0;
        if (many < 1 || many > dims || !tt_sizes(args[1], many, axes)) return PASS;
        for (Py_ssize_t k = 0; k < many; k++) {
            if (axes[k] < 0 || axes[k] >= dims) return PASS;
            reduced[axes[k]] = true;
        }
    }
    int many = 0;
    for (int d = 0; d < dims; d++) {
        shape[d] = PyArray_DIM(x, d);
        reduced[d] |= every;
        if (!reduced[d] || kept) sizes[many++] = reduced[d] ? 1 : shape[d];
    }
    PyObject *result = tt_new(args[0], many, sizes);
    if (!result) return NULL;
    if (!sum_dims(floats_of(args[0]), dims, shape, reduced, floats_of(result))) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    return PyArray_Return((PyArrayObject *)result);
}

KERNEL(column_sums) {
    if (out || count != 1 || !float_array(args[0], false)) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (PyArray_NDIM(x) < 2 || !PyArray_SIZE(x)) return PASS;
    const int64_t columns = PyArray_DIM(x, PyArray_NDIM(x) - 1);
    PyObject *result = tt_new(args[0], 1, &columns);
    if (!result) return NULL;
    if (sum_middle(floats_of(args[0]), 1, PyArray_SIZE(x) / columns, columns, floats_of(result))) return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}
