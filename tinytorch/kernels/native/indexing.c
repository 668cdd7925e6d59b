// Twins of kernels/indexing.py and kernels/scatter.py, of `running_sums` in kernels/reduce.py, and of `place` in
// kernels/pool.py. All work along one dimension of an array viewed as (before, length, after).
// Elements that are added to the same place are added in the order of the indices.
#include "helpers.h"

enum {
    ELEMENTS_OF_PART = 1 << 15,
    STRIP_WIDTH = 128,  // columns of a part, where `before` is 1
    INDEX_BLOCK = 128,  // indices that are checked at a time
    MAX_INDEX_DIMS = 16,
};

typedef struct {
    const float *x;
    const int64_t *index;
    float *out;
    Py_ssize_t before, length, count, after;     // `count` indices in place of `length` elements
    Py_ssize_t rows_per_part, columns_per_part;  // rows of `before`, and columns of `after`
    bool add, reverse;
    bool out_of_range;  // set by a part that has met an index out of range
} Lines;

// The rows and columns of a part: all rows of a strip of columns where `before` is 1; else some rows, and all columns.
typedef struct {
    Py_ssize_t first, last, left, right;
} PartRange;

static bool set_shape(Lines *lines, const npy_intp *shape, int dims, int dim) {
    if (dim < 0) return false;
    lines->before = lines->after = 1;
    for (int d = 0; d < dim; d++) lines->before *= shape[d];
    for (int d = dim + 1; d < dims; d++) lines->after *= shape[d];
    lines->length = shape[dim];
    return true;
}

// Set the shape for `gather` and `scatter`, whose index has as many dimensions as the array. In all dimensions but
// `dim` it has the array's sizes; only the first dimension may be shorter. False for any other index.
static bool set_indexed_shape(Lines *lines, const npy_intp *shape, int dims, int dim, PyObject *index) {
    if (!is_index_array(index) || PyArray_NDIM(ARRAY(index)) != dims || !set_shape(lines, shape, dims, dim))
        return false;
    const npy_intp *sizes = PyArray_DIMS(ARRAY(index));
    for (int d = 0; d < dims; d++) {
        if (d != dim && sizes[d] != shape[d] && (d || sizes[d] > shape[d])) return false;
    }
    if (dim && shape[0] != sizes[0]) {
        lines->before = 1;
        for (int d = 0; d < dim; d++) lines->before *= sizes[d];
    }
    lines->count = sizes[dim];
    lines->index = PyArray_DATA(ARRAY(index));
    return true;
}

static bool in_bounds(const int64_t *index, Py_ssize_t count, Py_ssize_t length) {
    uint64_t largest = 0;  // as an unsigned number, a negative index is larger than any length
    for (Py_ssize_t i = 0; i < count; i++) largest = (uint64_t)index[i] > largest ? (uint64_t)index[i] : largest;
    return !count || largest < (uint64_t)length;
}

static void run_lines(Work work, Lines *lines) {
    Py_ssize_t row = lines->count * lines->after;
    bool strips = lines->before == 1;
    lines->rows_per_part = row && row < ELEMENTS_OF_PART ? ELEMENTS_OF_PART / row : 1;
    lines->columns_per_part = strips ? STRIP_WIDTH : imax(lines->after, 1);
    Py_ssize_t parts = strips ? ceil_div(lines->after, STRIP_WIDTH) : ceil_div(lines->before, lines->rows_per_part);
    tt_parallel_for(work, lines, parts, lines->before * row, tt_threads());
}

INLINE PartRange range_of(const Lines *lines, Py_ssize_t part) {
    bool strips = lines->before == 1;
    Py_ssize_t first = strips ? 0 : part * lines->rows_per_part, left = strips ? part * STRIP_WIDTH : 0;
    return (PartRange){first, strips ? lines->before : imin(first + lines->rows_per_part, lines->before), left,
                       imin(left + lines->columns_per_part, lines->after)};
}

// gather and scatter ----------------------------------------------------------------------------

static void gather_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    Lines *lines = context;
    const PartRange range = range_of(lines, part);
    const uint64_t length = (uint64_t)lines->length;
    const Py_ssize_t after = lines->after, count = lines->count, left = range.left, right = range.right;
    bool out_of_range = false;
    for (Py_ssize_t row = range.first; row < range.last; row++) {
        const float *x = lines->x + row * lines->length * after;
        const int64_t *index = lines->index + row * count * after;
        float *out = lines->out + row * count * after;
        if (after == 1) {
            for (Py_ssize_t begin = 0; begin < count; begin += INDEX_BLOCK) {
                Py_ssize_t end = imin(begin + INDEX_BLOCK, count);
                if (!in_bounds(index + begin, end - begin, lines->length)) {
                    out_of_range = true;
                    break;
                }
                for (Py_ssize_t k = begin; k < end; k++) out[k] = x[index[k]];
            }
            continue;
        }
        for (Py_ssize_t k = 0; k < count; k++) {
            for (Py_ssize_t j = left; j < right; j++) {
                uint64_t at = (uint64_t)index[k * after + j];
                out_of_range |= at >= length;
                out[k * after + j] = x[(at < length ? at : 0) * (uint64_t)after + (uint64_t)j];
            }
        }
    }
    if (out_of_range) __atomic_store_n(&lines->out_of_range, true, __ATOMIC_RELAXED);
}

KERNEL(gather, x, dim, index) {
    Lines lines = {0};
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    int dims = PyArray_NDIM(x), dim = read_dim(args->dim, dims);
    if (!set_indexed_shape(&lines, PyArray_DIMS(x), dims, dim, args->index)) return FALLBACK;
    if (!lines.length && PyArray_SIZE(ARRAY(args->index))) return FALLBACK;
    PyObject *result = PyArray_NewLikeArray(ARRAY(args->index), NPY_CORDER, PyArray_DescrFromType(NPY_FLOAT), 0);
    if (!result) return NULL;
    lines.x = float_data(args->x);
    lines.out = float_data(result);
    run_lines(gather_part, &lines);
    if (!lines.out_of_range) return result;
    Py_DECREF(result);
    return FALLBACK;
}

INLINE void scatter_rows(const Lines *lines, PartRange range, Py_ssize_t after, bool add) {
    for (Py_ssize_t row = range.first; row < range.last; row++) {
        const float *x = lines->x + row * lines->count * after;
        const int64_t *index = lines->index + row * lines->count * after;
        float *out = lines->out + row * lines->length * after;
        for (Py_ssize_t k = 0; k < lines->count; k++) {
            for (Py_ssize_t j = range.left; j < range.right; j++) {
                float *to = out + index[k * after + j] * after + j;
                *to = add ? *to + x[k * after + j] : x[k * after + j];
            }
        }
    }
}

static void scatter_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Lines *lines = context;
    PartRange range = range_of(lines, part);
    if (lines->after == 1) {
        range.left = 0, range.right = 1;  // constants for the compiler
        if (lines->add) scatter_rows(lines, range, 1, true);
        else scatter_rows(lines, range, 1, false);
    } else {
        scatter_rows(lines, range, lines->after, lines->add);
    }
}

// Set the elements that are scattered: an array of the index's shape. False if they or the indices do not fit.
static bool set_source(Lines *lines, PyObject *x, PyObject *index) {
    if (!is_float_array(x, false) || !same_shape(x, index) ||
        !in_bounds(lines->index, PyArray_SIZE(ARRAY(index)), lines->length)) {
        return false;
    }
    lines->x = float_data(x);
    return true;
}

// Scatter into a new array of zeros.
static PyObject *scatter_into_zeros(Lines *lines, int dims, npy_intp *shape, bool add) {
    PyObject *result = PyArray_Zeros(dims, shape, PyArray_DescrFromType(NPY_FLOAT), 0);
    if (!result) return NULL;
    lines->out = float_data(result);
    lines->add = add;
    run_lines(scatter_part, lines);
    return result;
}

// Read a tuple of ints as the shape of an array; its length, or 0 if it is no such tuple.
static int read_shape(PyObject *tuple, npy_intp *shape) {
    int64_t sizes[MAX_INDEX_DIMS];
    Py_ssize_t dims = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    if (dims < 1 || dims > MAX_INDEX_DIMS || !tt_read_sizes(tuple, dims, sizes)) return 0;
    for (int d = 0; d < dims; d++) shape[d] = (npy_intp)sizes[d];
    return (int)dims;
}

static PyObject *scatter_into(PyObject *to, PyObject *along, PyObject *index, PyObject *src, bool add) {
    Lines lines = {.add = add};
    if (!is_float_array(to, true)) return FALLBACK;
    PyArrayObject *x = ARRAY(to);
    int dims = PyArray_NDIM(x), dim = read_dim(along, dims);
    if (!set_indexed_shape(&lines, PyArray_DIMS(x), dims, dim, index)) return FALLBACK;
    if (!set_source(&lines, src, index)) return FALLBACK;
    if (!disjoint(to, index) || !disjoint(to, src)) return FALLBACK;
    lines.out = float_data(to);
    run_lines(scatter_part, &lines);
    Py_RETURN_NONE;
}

KERNEL(scatter_by, x, dim, index, src, how) {
    bool add = is_string(args->how, "add");
    if (!add && !is_string(args->how, "put")) return FALLBACK;
    return scatter_into(args->x, args->dim, args->index, args->src, add);
}

KERNEL(scatter, x, dim, index, src) { return scatter_into(args->x, args->dim, args->index, args->src, false); }
KERNEL(scatter_add, x, dim, index, src) { return scatter_into(args->x, args->dim, args->index, args->src, true); }

KERNEL(scattered, x, shape, dim, index, distinct) {
    Lines lines = {0};
    npy_intp shape[MAX_INDEX_DIMS];
    int dims = read_shape(args->shape, shape);
    if (!dims || !tt_is_float32(args->x)) return FALLBACK;
    if (!set_indexed_shape(&lines, shape, dims, read_dim(args->dim, dims), args->index)) return FALLBACK;
    if (!set_source(&lines, args->x, args->index)) return FALLBACK;
    return scatter_into_zeros(&lines, dims, shape, args->distinct != Py_True);
}

KERNEL(place, g, index, spatial, distinct) {
    Lines lines = {0};
    npy_intp shape[MAX_INDEX_DIMS + 1];  // (planes, *spatial)
    int dims = read_shape(args->spatial, shape + 1);
    if (!dims || !tt_is_float32(args->g) || !is_index_array(args->index) || PyArray_NDIM(ARRAY(args->g)) < 2) {
        return FALLBACK;
    }
    lines.before = shape[0] = PyArray_DIM(ARRAY(args->g), 0);
    lines.length = lines.after = 1;
    for (int d = 1; d <= dims; d++) lines.length *= shape[d];
    lines.index = PyArray_DATA(ARRAY(args->index));
    if (!set_source(&lines, args->g, args->index)) return FALLBACK;
    lines.count = lines.before ? PyArray_SIZE(ARRAY(args->g)) / lines.before : 0;
    return scatter_into_zeros(&lines, dims + 1, shape, args->distinct != Py_True);
}

// Rows ------------------------------------------------------------------------------------------

static void take_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Lines *lines = context;
    const PartRange range = range_of(lines, part);
    const Py_ssize_t after = lines->after;
    for (Py_ssize_t row = range.first; row < range.last; row++) {
        const float *x = lines->x + row * lines->length * after + range.left;
        float *out = lines->out + row * lines->count * after + range.left;
        for (Py_ssize_t k = 0; k < lines->count; k++, out += after) {
            memcpy(out, x + lines->index[k] * after, 4 * (size_t)(range.right - range.left));
        }
    }
}

KERNEL(take_rows, x, dim, index) {
    Lines lines = {0};
    if (!is_float_array(args->x, false) || !is_index_array(args->index)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x), *index = ARRAY(args->index);
    int dims = PyArray_NDIM(x), dim = read_dim(args->dim, dims), index_dims = PyArray_NDIM(index);
    if (dims + index_dims > MAX_INDEX_DIMS || !set_shape(&lines, PyArray_DIMS(x), dims, dim)) return FALLBACK;
    lines.index = PyArray_DATA(index);
    lines.count = PyArray_SIZE(index);
    if (!in_bounds(lines.index, lines.count, lines.length)) return FALLBACK;
    int64_t shape[MAX_INDEX_DIMS];
    int result_dims = 0;
    for (int d = 0; d < dim; d++) shape[result_dims++] = PyArray_DIM(x, d);
    for (int d = 0; d < index_dims; d++) shape[result_dims++] = PyArray_DIM(index, d);
    for (int d = dim + 1; d < dims; d++) shape[result_dims++] = PyArray_DIM(x, d);
    if (!result_dims) return FALLBACK;  // NumPy returns a scalar
    PyObject *result = tt_new_array(args->x, result_dims, shape);
    if (!result) return NULL;
    lines.x = float_data(args->x);
    lines.out = float_data(result);
    run_lines(take_part, &lines);
    return result;
}

static void add_rows_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Lines *lines = context;
    const PartRange range = range_of(lines, part);
    const Py_ssize_t after = lines->after;
    for (Py_ssize_t row = range.first; row < range.last; row++) {
        const float *restrict x = lines->x + row * lines->count * after;
        float *restrict out = lines->out + row * lines->length * after;
        if (after == 1) {
            for (Py_ssize_t k = 0; k < lines->count; k++) out[lines->index[k]] += x[k];
            continue;
        }
        for (Py_ssize_t k = 0; k < lines->count; k++) {
            const float *restrict from = x + k * after;
            float *restrict to = out + lines->index[k] * after;
            for (Py_ssize_t j = range.left; j < range.right; j++) to[j] += from[j];
        }
    }
}

KERNEL(add_rows, out, dim, index, rows) {
    Lines lines = {0};
    if (!is_float_array(args->out, true) || !is_index_array(args->index) || !is_float_array(args->rows, false)) {
        return FALLBACK;
    }
    PyArrayObject *out = ARRAY(args->out), *index = ARRAY(args->index);
    int dims = PyArray_NDIM(out);
    if (!set_shape(&lines, PyArray_DIMS(out), dims, read_dim(args->dim, dims))) return FALLBACK;
    lines.index = PyArray_DATA(index);
    lines.count = PyArray_SIZE(index);
    lines.x = float_data(args->rows);
    lines.out = float_data(args->out);
    if (PyArray_SIZE(ARRAY(args->rows)) != lines.before * lines.count * lines.after ||
        !disjoint(args->out, args->index) || !disjoint(args->out, args->rows) ||
        !in_bounds(lines.index, lines.count, lines.length)) {
        return FALLBACK;
    }
    run_lines(add_rows_part, &lines);
    Py_RETURN_NONE;
}

// Running sums ----------------------------------------------------------------------------------

// Sums are kept in float64. Each addition waits for the one before it, so several rows together take no longer than
// one.
INLINE void running_sum_rows(const float *x, float *out, Py_ssize_t length, Py_ssize_t step, int rows) {
    double sums[8] = {0};
    for (Py_ssize_t k = 0, at = step < 0 ? length - 1 : 0; k < length; k++, at += step) {
        for (int row = 0; row < rows; row++)
            out[row * length + at] = (float)(sums[row] += (double)x[row * length + at]);
    }
}

static void running_sums_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Lines *lines = context;
    const PartRange range = range_of(lines, part);
    const Py_ssize_t length = lines->length, after = lines->after, step = lines->reverse ? -1 : 1;
    if (after == 1) {
        Py_ssize_t row = range.first;
        for (; row + 8 <= range.last; row += 8) {
            running_sum_rows(lines->x + row * length, lines->out + row * length, length, step, 8);
        }
        for (; row < range.last; row++) {
            running_sum_rows(lines->x + row * length, lines->out + row * length, length, step, 1);
        }
        return;
    }
    for (Py_ssize_t row = range.first; row < range.last; row++) {
        for (Py_ssize_t begin = range.left; begin < range.right; begin += STRIP_WIDTH) {
            const Py_ssize_t width = imin(range.right - begin, STRIP_WIDTH);
            double sums[STRIP_WIDTH] = {0};
            for (Py_ssize_t k = 0; k < length; k++) {
                const Py_ssize_t at = (row * length + (step < 0 ? length - 1 - k : k)) * after + begin;
                const float *restrict x = lines->x + at;
                float *restrict out = lines->out + at;
                for (Py_ssize_t j = 0; j < width; j++) out[j] = (float)(sums[j] += (double)x[j]);
            }
        }
    }
}

KERNEL(running_sums, x, axis, reverse) {
    Lines lines = {0};
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    int dims = PyArray_NDIM(x);
    if (!set_shape(&lines, PyArray_DIMS(x), dims, read_dim(args->axis, dims))) return FALLBACK;
    lines.count = lines.length;
    lines.reverse = args->reverse == Py_True;
    PyObject *result = new_like(args->x);
    if (!result) return NULL;
    lines.x = float_data(args->x);
    lines.out = float_data(result);
    run_lines(running_sums_part, &lines);
    return result;
}

FAMILY(indexing, ENTRY(gather), ENTRY(scatter), ENTRY(scatter_add), ENTRY(scatter_by), ENTRY(scattered), ENTRY(place), ENTRY(take_rows), ENTRY(add_rows),
       ENTRY(running_sums));
