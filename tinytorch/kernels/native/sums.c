// Twins of the sums in kernels/reduce.py, over dimensions of an array viewed as (outer, count, inner). Sums over rows
// (inner is 1) and over columns alike are cut into short float32 sums, whose results are added in turn.
#include "helpers.h"

enum {
    STRIP = 1 << 10,      // columns of a part
    ROWS_PER_PART = 256,  // rows of a part
    NARROW = 64,          // narrower matrices are summed with several rows side by side
    ROW_PIECE = 1 << 15,  // elements of a part of a long row
    MAX_SUM_DIMS = 31,
};

typedef struct {
    const float *x;
    float *out;
    double *row_sums;  // of the pieces of long rows
    Py_ssize_t outer, count, inner;
    Py_ssize_t abreast, parts, strips, rows_per_part;  // rows side by side; parts of the rows, strips of the columns
} Sum;

// The sum of `count` rows (up to 8), for one vector of columns.
INLINE vec sum_of_rows(const float *x, Py_ssize_t step, int count) {
    vec sums[4] = {load(x)};
    if (count >= 2) sums[0] += load(x + step);
    for (int k = 1; 2 * k < count; k++) sums[k] = load(x + 2 * k * step) + load(x + (2 * k + 1) * step);
    return count > 4 ? sums[0] + sums[1] + (sums[2] + sums[3]) : sums[0];
}

// Add `count` rows (1, 2 or 8) to the sums.
INLINE void add_to_sums(const float *x, Py_ssize_t step, int count, float *sums, const Tail *tail) {
    for (Py_ssize_t i = 0; i < tail->body; i += WIDTH) {
        store(sums + i, load(sums + i) + sum_of_rows(x + i, step, count));
    }
    const float *last = x + tail->begin;
    vec more;
    if (tail->count < WIDTH) {
        more = load_partial(last, tail->count);
        for (int k = 1; k < count; k++) more += load_partial(last + k * step, tail->count);
    } else {
        more = mask_tail(sum_of_rows(last, step, count), tail);
    }
    store(sums + tail->begin, load(sums + tail->begin) + more);
}

// `sums` has room for `width` + WIDTH floats.
static void sum_columns(const float *x, Py_ssize_t rows, Py_ssize_t step, float *sums, Py_ssize_t width) {
    Tail tail = tail_of(width);
    for (Py_ssize_t i = 0; i < width + WIDTH; i++) sums[i] = 0;
    for (; rows >= 8; rows -= 8, x += 8 * step) add_to_sums(x, step, 8, sums, &tail);
    for (; rows >= 2; rows -= 2, x += 2 * step) add_to_sums(x, step, 2, sums, &tail);
    if (rows) add_to_sums(x, step, 1, sums, &tail);
}

static void sum_columns_part(void *context, Py_ssize_t index, int worker) {
    (void)worker;
    const Sum *s = context;
    const Py_ssize_t inner = s->inner, strip = index % s->strips, part = index / s->strips % s->parts;
    const Py_ssize_t outer = index / s->strips / s->parts, begin = strip * STRIP, abreast = s->abreast;
    const Py_ssize_t first = part * ROWS_PER_PART * abreast, rows = imin(s->count - first, ROWS_PER_PART * abreast);
    const Py_ssize_t width = imin(inner - begin, STRIP);
    const float *x = s->x + (outer * s->count + first) * inner + begin;
    float sums[STRIP + 16], *out = s->out + (outer * s->parts + part) * inner + begin;
    sum_columns(x, rows / abreast, abreast * inner, sums, abreast * width);
    for (Py_ssize_t k = 1; k < abreast; k++) {
        for (Py_ssize_t i = 0; i < width; i++) sums[i] += sums[k * width + i];
    }
    for (Py_ssize_t row = rows / abreast * abreast; row < rows; row++) {
        for (Py_ssize_t i = 0; i < width; i++) sums[i] += x[row * inner + i];
    }
    memcpy(out, sums, 4 * (size_t)width);
}

INLINE void sum_short_rows(const float *restrict x, Py_ssize_t rows, Py_ssize_t count, float *restrict out) {
    for (Py_ssize_t row = 0; row < rows; row++) {
        float sum = x[row * count];
        for (Py_ssize_t i = 1; i < count; i++) sum += x[row * count + i];
        out[row] = sum;
    }
}

static double sum_of_whole_row(const float *x, Py_ssize_t count) { return sum_of_row(x, count, 0, false); }

static void sum_rows_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Sum *s = context;
    if (s->row_sums) {  // pieces of long rows
        Py_ssize_t begin = part % s->parts * ROW_PIECE;
        const float *x = s->x + part / s->parts * s->count + begin;
        s->row_sums[part] = sum_of_whole_row(x, imin(s->count - begin, ROW_PIECE));
        return;
    }
    Py_ssize_t first = part * s->rows_per_part, end = imin(first + s->rows_per_part, s->outer);
    const float *x = s->x + first * s->count;
    if (s->count == 2) {  // constants: the compiler unrolls the loops
        sum_short_rows(x, end - first, 2, s->out + first);
    } else if (s->count == 3) {
        sum_short_rows(x, end - first, 3, s->out + first);
    } else if (s->count == 4) {
        sum_short_rows(x, end - first, 4, s->out + first);
    } else if (s->count < WIDTH) {
        sum_short_rows(x, end - first, s->count, s->out + first);
    } else {
        for (Py_ssize_t row = first; row < end; row++, x += s->count) {
            s->out[row] = (float)sum_of_whole_row(x, s->count);
        }
    }
}

// Sum (outer, count, inner) over the middle dimension; false if memory is short.
static bool sum_middle(const float *x, Py_ssize_t outer, Py_ssize_t count, Py_ssize_t inner, float *out) {
    Sum s = {.x = x, .out = out, .outer = outer, .count = count, .inner = inner};
    const int64_t size = (int64_t)outer * count * inner;
    if (inner == 1) {
        s.parts = ceil_div(count, ROW_PIECE);
        s.rows_per_part = PART_SIZE / count + 1;
        if (s.parts > 1 && !(s.row_sums = malloc(8 * (size_t)(outer * s.parts)))) return false;
        Py_ssize_t parts = s.row_sums ? outer * s.parts : ceil_div(outer, s.rows_per_part);
        tt_parallel_for(sum_rows_part, &s, parts, size, tt_threads());
        for (Py_ssize_t row = 0; s.row_sums && row < outer; row++) {
            double sum = 0;
            for (Py_ssize_t k = 0; k < s.parts; k++) sum += s.row_sums[row * s.parts + k];
            out[row] = (float)sum;
        }
        free(s.row_sums);
        return true;
    }
    s.abreast = imin(inner < NARROW ? 2 * NARROW / inner : 1, count);
    s.parts = ceil_div(count, ROWS_PER_PART * s.abreast);
    s.strips = ceil_div(inner, STRIP);
    float *partial = NULL;  // a row of sums per part
    if (s.parts > 1 && !(s.out = partial = malloc(4 * (size_t)(outer * s.parts * inner)))) return false;
    tt_parallel_for(sum_columns_part, &s, outer * s.parts * s.strips, size, tt_threads());
    bool done = !partial || sum_middle(partial, outer, s.parts, inner, out);
    free(partial);
    return done;
}

// Sum over the dimensions that are marked in `reduced`: one group of adjacent dimensions after another, the innermost
// first.
static bool sum_dims(const float *x, int dims, const npy_intp *shape, const bool *reduced, float *out) {
    Py_ssize_t before = 1, count = 1, after = 1;
    int d = dims - 1;
    for (; d >= 0 && !reduced[d]; d--) after *= shape[d];
    for (; d >= 0 && reduced[d]; d--) count *= shape[d];
    bool more = false;
    for (int k = d; k >= 0; k--) {
        before *= shape[k];
        more |= reduced[k];
    }
    if (!more) return sum_middle(x, before, count, after, out);
    npy_intp rest_shape[MAX_SUM_DIMS + 2];
    bool rest_reduced[MAX_SUM_DIMS + 2];
    for (int k = 0; k <= d; k++) {
        rest_shape[k] = shape[k];
        rest_reduced[k] = reduced[k];
    }
    rest_shape[d + 1] = after;
    rest_reduced[d + 1] = false;
    float *sums = malloc(4 * (size_t)(before * after));
    bool done =
        sums && sum_middle(x, before, count, after, sums) && sum_dims(sums, d + 2, rest_shape, rest_reduced, out);
    free(sums);
    return done;
}

KERNEL(total, x, axes, keepdims) {
    npy_intp shape[MAX_SUM_DIMS + 1];
    int64_t sizes[MAX_SUM_DIMS + 1], axes[MAX_SUM_DIMS + 1];
    bool reduced[MAX_SUM_DIMS + 1] = {false};
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    const int dims = PyArray_NDIM(x);
    bool all_axes = args->axes == Py_None, keepdims = args->keepdims == Py_True;
    if (!dims || dims > MAX_SUM_DIMS || !PyArray_SIZE(x) || !PyBool_Check(args->keepdims)) return FALLBACK;
    if (!all_axes) {
        Py_ssize_t count = PyTuple_Check(args->axes) ? PyTuple_Size(args->axes) : 0;
        if (count < 1 || count > dims || !tt_read_sizes(args->axes, count, axes)) return FALLBACK;
        for (Py_ssize_t k = 0; k < count; k++) {
            if (axes[k] < 0 || axes[k] >= dims) return FALLBACK;
            reduced[axes[k]] = true;
        }
    }
    int result_dims = 0, long_dims = 0;  // the order of a sum does not depend on dimensions of one element
    for (int d = 0; d < dims; d++) {
        const npy_intp length = PyArray_DIM(x, d);
        const bool sums = reduced[d] || all_axes;
        if (!sums || keepdims) sizes[result_dims++] = sums ? 1 : length;
        if (length == 1 && (long_dims || d < dims - 1)) continue;
        shape[long_dims] = length;
        reduced[long_dims++] = sums || length == 1;
    }
    PyObject *result = tt_new_array(args->x, result_dims, sizes);
    if (!result) return NULL;
    if (!sum_dims(float_data(args->x), long_dims, shape, reduced, float_data(result))) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    return PyArray_Return(ARRAY(result));
}

KERNEL(column_sums, x) {
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    if (PyArray_NDIM(x) < 2 || !PyArray_SIZE(x)) return FALLBACK;
    const int64_t columns = PyArray_DIM(x, PyArray_NDIM(x) - 1);
    PyObject *result = tt_new_array(args->x, 1, &columns);
    if (!result) return NULL;
    if (sum_middle(float_data(args->x), 1, PyArray_SIZE(x) / columns, columns, float_data(result))) return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

// The sum over a dimension, or all of them, for `dtype` None.
static PyObject *sum_along(PyObject *x, PyObject *dim, PyObject *keepdim, PyObject *dtype) {
    if (dtype != Py_None || !is_float_array(x, false)) return FALLBACK;
    PyObject *axes = Py_NewRef(Py_None);
    if (dim != Py_None) {
        int overflow = 1, dims = PyArray_NDIM(ARRAY(x));
        long axis = PyLong_CheckExact(dim) ? PyLong_AsLongAndOverflow(dim, &overflow) : 0;
        Py_DECREF(axes);
        if (overflow || axis < -dims || axis >= dims) return FALLBACK;
        axes = Py_BuildValue("(l)", axis < 0 ? axis + dims : axis);
        if (!axes) return NULL;
    }
    PyObject *result = total_kernel(&(total_arguments){x, axes, keepdim}), *array = result;
    Py_DECREF(axes);
    if (result && result != FALLBACK && !PyArray_Check(result)) {
        array = PyArray_FromScalar(result, NULL);
        Py_DECREF(result);
    }
    return array;
}

KERNEL(sum_over, x, dim, keepdim, dtype) { return sum_along(args->x, args->dim, args->keepdim, args->dtype); }

KERNEL(mean_over, x, dim, keepdim, dtype) {
    PyObject *result = sum_along(args->x, args->dim, args->keepdim, args->dtype);
    if (!result || result == FALLBACK) return result;
    float *sums = float_data(result);
    const Py_ssize_t size = PyArray_SIZE(ARRAY(result));
    const float count = (float)(PyArray_SIZE(ARRAY(args->x)) / size);
    for (Py_ssize_t i = 0; i < size; i++) sums[i] /= count;
    return result;
}

// One number in all places of an array of a shape.
KERNEL(spread, x, shape, dim) {
    if (!is_float_array(args->x, false) || PyArray_SIZE(ARRAY(args->x)) != 1) return FALLBACK;
    int64_t sizes[MAX_SUM_DIMS + 1];
    Py_ssize_t size = 1, dims = PyTuple_Check(args->shape) ? PyTuple_Size(args->shape) : -1;
    if (dims < 0 || dims > MAX_SUM_DIMS || !tt_read_sizes(args->shape, dims, sizes)) return FALLBACK;
    for (Py_ssize_t d = 0; d < dims && size <= 1 << 14; d++) size *= sizes[d];
    if (size > 1 << 14) return FALLBACK;  // (a view of the number)
    PyObject *result = tt_new_array(args->x, (int)dims, sizes);
    if (!result) return NULL;
    float *to = float_data(result);
    const float number = *float_data(args->x);
    for (Py_ssize_t i = 0; i < size; i++) to[i] = number;
    return result;
}

// Products, truth and norms of small arrays, in one pass of NumPy's order ---------------------------------------------

enum { SMALL = 1 << 12 };  // elements (NumPy's loops are faster where they are long)

#define PRODUCTS(type)                                                                                                \
    COMPACT static void products_##type(const Reduction *r, const type *x, type *out) {                               \
        EACH_ROW(*r, row) {                                                                                            \
            const type *from = ROW(*r, x, row);                                                                        \
            type product = *from;                                                                                      \
            for (int64_t i = 1; i < r->count; i++) product *= from[i * r->after];                                      \
            out[row] = product;                                                                                        \
        }                                                                                                              \
    }
PRODUCTS(float)
PRODUCTS(double)
PRODUCTS(uint64_t)

SMALL_KERNEL(prod, x, dim, keepdim, dtype) {
    Reduction r;
    if (args->dtype != Py_None || !read_reduction(args->x, args->dim, args->keepdim, &r)) return FALLBACK;
    const int type = PyArray_TYPE(ARRAY(args->x));
    if (PyArray_SIZE(ARRAY(args->x)) > SMALL || (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64)) {
        return FALLBACK;
    }
    PyObject *out = new_reduced(&r, type);
    if (!out) return NULL;
    const void *from = PyArray_DATA(ARRAY(args->x));
    void *to = PyArray_DATA(ARRAY(out));
    if (type == NPY_FLOAT) products_float(&r, from, to);
    else if (type == NPY_DOUBLE) products_double(&r, from, to);
    else products_uint64_t(&r, from, to);
    return out;
}

// Whether any (all) of the bools are true.
COMPACT static PyObject *truth(PyObject *x, PyObject *dim, PyObject *keepdim, bool any) {
    Reduction r;
    if (!read_reduction(x, dim, keepdim, &r) || PyArray_TYPE(ARRAY(x)) != NPY_BOOL) return FALLBACK;
    if (PyArray_SIZE(ARRAY(x)) > SMALL) return FALLBACK;
    PyObject *out = new_reduced(&r, NPY_BOOL);
    npy_bool *to = out ? PyArray_DATA(ARRAY(out)) : NULL;
    EACH_ROW(r, row) {
        const npy_bool *from = ROW(r, (const npy_bool *)PyArray_DATA(ARRAY(x)), row);
        int64_t i = 0;
        while (i < r.count && !from[i * r.after] == any) i++;
        if (to) to[row] = (i < r.count) == any;
    }
    return out;
}

KERNEL(any_over, x, dim, keepdim) { return truth(args->x, args->dim, args->keepdim, true); }
KERNEL(all_over, x, dim, keepdim) { return truth(args->x, args->dim, args->keepdim, false); }

// Add a number to the sum of a p-norm, for p from 0 to infinity; the norm of the sum. In float64 no square of a float32
// overflows.
INLINE double add_to_norm(double sum, double value, double p) {
    if (p == 2) return sum + value * value;
    value = fabs(value);
    if (p == 1) return sum + value;
    return value > sum || value != value ? value : sum;
}

INLINE float norm_of(double sum, double p) { return (float)(p == 2 ? sqrt(sum) : sum); }

static bool read_order(PyObject *object, double *p) {
    return tt_read_double(object, p) && (*p == 1 || *p == 2 || *p == INFINITY);
}

SMALL_KERNEL(norm, x, p, dim, keepdim) {
    Reduction r;
    double p;
    if (!tt_is_float32(args->x) || !read_reduction(args->x, args->dim, args->keepdim, &r)) return FALLBACK;
    if (PyArray_SIZE(ARRAY(args->x)) > SMALL || !read_order(args->p, &p)) return FALLBACK;
    if (PyTuple_Check(args->dim) && !PyTuple_Size(args->dim)) return FALLBACK;
    PyObject *out = new_reduced(&r, NPY_FLOAT);
    if (!out) return NULL;
    EACH_ROW(r, row) {
        const float *from = ROW(r, float_data(args->x), row);
        double sum = 0;
        for (int64_t i = 0; i < r.count && sum == sum; i++) sum = add_to_norm(sum, from[i * r.after], p);
        float_data(out)[row] = norm_of(sum, p);
    }
    return out;
}

// Distances of rows -----------------------------------------------------------------------------

typedef struct {
    const float *x, *y;  // `y` is NULL for the distances from the rows after each row
    float *out;
    int64_t rows, others, length;  // of a matrix of `x`, and of one of `y`
    int kind;                      // the norm: 1, 2, or 0 for infinity
} Distances;

INLINE vec beside(vec total, vec difference, int kind) {
    if (kind == 2) return difference * difference + total;
    const vec size = vabs(difference);
    return kind == 1 ? total + size : where((size > total) | (size != size), size, total);
}

INLINE void distances_of_row(const Distances *d, const float *x, const float *y, float *out, int64_t others, int kind) {
    for (int64_t row = 0; row < others; row++, y += d->length) {
        vec totals[2] = {{0}};
        int64_t i = 0;
        for (; i + 2 * WIDTH <= d->length; i += 2 * WIDTH) {
            for (int k = 0; k < 2; k++) {
                totals[k] = beside(totals[k], load(x + i + k * WIDTH) - load(y + i + k * WIDTH), kind);
            }
        }
        for (; i < d->length; i += WIDTH) {
            const int64_t left = d->length - i;
            totals[0] = beside(totals[0], load_up_to(x + i, left) - load_up_to(y + i, left), kind);
        }
        if (kind) {
            const float sum = horizontal_sum(totals[0] + totals[1]);
            out[row] = kind == 2 ? sqrtf(sum) : sum;
        } else {
            const vec most = beside(totals[0], totals[1], 0);
            out[row] = horizontal_max(most);
            for (int lane = 0; lane < WIDTH; lane++) out[row] = most[lane] != most[lane] ? most[lane] : out[row];
        }
    }
}

static void distances_part(void *context, Py_ssize_t row, int worker) {
    (void)worker;
    const Distances *d = context;
    const float *x = d->x + row * d->length, *y = x + d->length;
    float *out = d->out + row * (2 * d->rows - row - 1) / 2;
    int64_t others = d->rows - row - 1;
    if (d->y) {
        others = d->others;
        y = d->y + row / d->rows * others * d->length;
        out = d->out + row * others;
    }
    if (d->kind == 2) distances_of_row(d, x, y, out, others, 2);
    else if (d->kind) distances_of_row(d, x, y, out, others, 1);
    else distances_of_row(d, x, y, out, others, 0);
}

KERNEL(cdist, x, y, p) {
    double p;
    if (!is_float_array(args->x, false) || !is_float_array(args->y, false) || !tt_read_double(args->p, &p)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x), *y = ARRAY(args->y);
    const int dims = PyArray_NDIM(x);
    if ((p != 1 && p != 2 && p != INFINITY) || dims < 2 || PyArray_NDIM(y) != dims) return FALLBACK;
    for (int d = 0; d < dims; d++) {
        if (d != dims - 2 && PyArray_DIM(x, d) != PyArray_DIM(y, d)) return FALLBACK;
    }
    Distances d = {.x = float_data(args->x), .y = float_data(args->y), .kind = p == INFINITY ? 0 : (int)p};
    d.rows = PyArray_DIM(x, dims - 2), d.others = PyArray_DIM(y, dims - 2), d.length = PyArray_DIM(x, dims - 1);
    int64_t shape[NPY_MAXDIMS], rows = 1;
    for (int k = 0; k < dims - 1; k++) rows *= shape[k] = PyArray_DIM(x, k);
    shape[dims - 1] = d.others;
    PyObject *result = tt_new_array(args->x, dims, shape);
    if (!result) return NULL;
    d.out = float_data(result);
    tt_parallel_for(distances_part, &d, rows, rows * d.others * imax(d.length, 1), tt_threads());
    return result;
}

KERNEL(pdist, x, p) {
    double p;
    if (!is_float_array(args->x, false) || !tt_read_double(args->p, &p)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    if ((p != 1 && p != 2 && p != INFINITY) || PyArray_NDIM(x) != 2) return FALLBACK;
    Distances d = {.x = float_data(args->x), .kind = p == INFINITY ? 0 : (int)p, .rows = PyArray_DIM(x, 0)};
    d.length = PyArray_DIM(x, 1);
    const int64_t pairs = d.rows * (d.rows - 1) / 2;
    PyObject *result = tt_new_array(args->x, 1, &pairs);
    if (!result) return NULL;
    d.out = float_data(result);
    tt_parallel_for(distances_part, &d, d.rows, pairs * imax(d.length, 1), tt_threads());
    return result;
}

FAMILY(sums, ENTRY(cdist), ENTRY(pdist), ENTRY(prod), ENTRY(any_over), ENTRY(all_over), ENTRY(norm), ENTRY(total),
       ENTRY(column_sums), ENTRY(sum_over), ENTRY(mean_over), ENTRY(spread));
