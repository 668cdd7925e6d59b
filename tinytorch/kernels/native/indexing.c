// Twins of kernels/indexing.py, of running sums, of what pooling puts back and of joined arrays: along one dimension,
// with `before` places in those ahead of it and `after` in those that follow. Sums of what meets at a place are taken in
// the order of the indices.

enum { SHARED = 1 << 15, LINE_WIDTH = 128, MOST_DIMS = 8 };

typedef struct {
    const float *x;
    const int64_t *index;
    float *out;
    Py_ssize_t before, length, count, after;  // the shapes: (before, length, after), and (before, count, after)
    Py_ssize_t step, width;                   // rows of `before`, and columns of `after`, that make up a part
    bool add, bad, reverse;
} Lines;

static bool index_array(PyObject *x) {
    return PyArray_CheckExact(x) && PyArray_TYPE((PyArrayObject *)x) == NPY_INT64 && PyArray_ISCARRAY_RO((PyArrayObject *)x);
}

static bool float_array(PyObject *x, bool written) {
    return tt_float32(x) && tt_contiguous(x) && (!written || PyArray_ISWRITEABLE((PyArrayObject *)x));
}

static bool apart(PyObject *x, PyObject *y) {
    const char *a = PyArray_DATA((PyArrayObject *)x), *b = PyArray_DATA((PyArrayObject *)y);
    return a + PyArray_NBYTES((PyArrayObject *)x) <= b || b + PyArray_NBYTES((PyArrayObject *)y) <= a;
}

static float *floats_of(PyObject *x) { return PyArray_DATA((PyArrayObject *)x); }

// The dimension, from 0; -1 for what is none.
static int dim_of(PyObject *number, int dims) {
    if (!PyLong_CheckExact(number)) return -1;
    long dim = PyLong_AsLong(number);
    if (dim == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    if (dim < 0) dim += dims;
    return dim >= 0 && dim < dims ? (int)dim : -1;
}

static bool measure(Lines *lines, const npy_intp *shape, int dims, int dim) {
    if (dim < 0) return false;
    lines->before = lines->after = 1;
    for (int d = 0; d < dim; d++) lines->before *= shape[d];
    for (int d = dim + 1; d < dims; d++) lines->after *= shape[d];
    lines->length = shape[dim];
    return true;
}

// As for `gather`: the index has the other dimensions of `shape`, but that the first may be shorter.
static bool measure_like(Lines *lines, const npy_intp *shape, int dims, int dim, PyObject *index) {
    if (!index_array(index) || PyArray_NDIM((PyArrayObject *)index) != dims || !measure(lines, shape, dims, dim)) {
        return false;
    }
    const npy_intp *sizes = PyArray_DIMS((PyArrayObject *)index);
    for (int d = 0; d < dims; d++) {
        if (d != dim && sizes[d] != shape[d] && (d || sizes[d] > shape[d])) return false;
    }
    if (dim && shape[0] != sizes[0]) {
        lines->before = 1;
        for (int d = 0; d < dim; d++) lines->before *= sizes[d];
    }
    lines->count = sizes[dim];
    lines->index = PyArray_DATA((PyArrayObject *)index);
    return true;
}

static bool in_bounds(const int64_t *index, Py_ssize_t count, Py_ssize_t length) {
    uint64_t most = 0;  // negative ones are large
    for (Py_ssize_t i = 0; i < count; i++) most = (uint64_t)index[i] > most ? (uint64_t)index[i] : most;
    return !count || most < (uint64_t)length;
}

static void share_lines(Work work, Lines *lines) {
    Py_ssize_t row = lines->count * lines->after;
    bool wide = lines->before == 1;
    lines->step = row && row < SHARED ? SHARED / row : 1;
    lines->width = wide ? LINE_WIDTH : lines->after ? lines->after : 1;
    Py_ssize_t parts = wide ? (lines->after + LINE_WIDTH - 1) / LINE_WIDTH : (lines->before + lines->step - 1) / lines->step;
    tt_share(work, lines, parts, lines->before * row, tt_threads());
}

// The rows and columns of a part.
#define PART_OF(lines, block)                                                                                          \
    const bool wide = (lines)->before == 1;                                                                            \
    const Py_ssize_t first = wide ? 0 : block * (lines)->step, left = wide ? block * LINE_WIDTH : 0;                      \
    const Py_ssize_t last = wide || first + (lines)->step > (lines)->before ? (lines)->before : first + (lines)->step; \
    const Py_ssize_t right = left + (lines)->width > (lines)->after ? (lines)->after : left + (lines)->width;          \
    (void)worker

static PyObject *nothing(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

// Elements ----------------------------------------------------------------------------------------

static void gather_part(void *context, Py_ssize_t block, int worker) {
    Lines *lines = context;
    PART_OF(lines, block);
    const uint64_t length = (uint64_t)lines->length;
    const Py_ssize_t after = lines->after, count = lines->count;
    bool bad = false;
    for (Py_ssize_t row = first; row < last; row++) {
        const float *x = lines->x + row * lines->length * after;
        const int64_t *index = lines->index + row * count * after;
        float *out = lines->out + row * count * after;
        if (after == 1) {
            for (Py_ssize_t begin = 0; begin < count; begin += LINE_WIDTH) {  // first looked at, as vectors, then read
                Py_ssize_t end = begin + LINE_WIDTH < count ? begin + LINE_WIDTH : count;
                if (!in_bounds(index + begin, end - begin, lines->length)) {
                    bad = true;
                    break;
                }
                for (Py_ssize_t k = begin; k < end; k++) out[k] = x[index[k]];
            }
            continue;
        }
        for (Py_ssize_t k = 0; k < count; k++) {
            for (Py_ssize_t j = left; j < right; j++) {
                uint64_t at = (uint64_t)index[k * after + j];
                bad |= at >= length;
                out[k * after + j] = x[(at < length ? at : 0) * (uint64_t)after + (uint64_t)j];
            }
        }
    }
    if (bad) __atomic_store_n(&lines->bad, true, __ATOMIC_RELAXED);
}

KERNEL(gather) {
    Lines lines = {0};
    if (count != 3 || out || !float_array(args[0], false)) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int dims = PyArray_NDIM(x), dim = dim_of(args[1], dims);
    if (!measure_like(&lines, PyArray_DIMS(x), dims, dim, args[2]) ||
        (!lines.length && PyArray_SIZE((PyArrayObject *)args[2]))) {
        return PASS;
    }
    PyObject *result = PyArray_NewLikeArray((PyArrayObject *)args[2], NPY_CORDER, PyArray_DescrFromType(NPY_FLOAT), 0);
    if (!result) return NULL;
    lines.x = floats_of(args[0]);
    lines.out = floats_of(result);
    share_lines(gather_part, &lines);
    if (!lines.bad) return result;
    Py_DECREF(result);
    return PASS;
}

INLINE void scatter_rows(const Lines *lines, Py_ssize_t first, Py_ssize_t last, Py_ssize_t left, Py_ssize_t right,
                         Py_ssize_t after, bool add) {
    for (Py_ssize_t row = first; row < last; row++) {
        const float *x = lines->x + row * lines->count * after;
        const int64_t *index = lines->index + row * lines->count * after;
        float *out = lines->out + row * lines->length * after;
        for (Py_ssize_t k = 0; k < lines->count; k++) {
            for (Py_ssize_t j = left; j < right; j++) {
                float *to = out + index[k * after + j] * after + j;
                *to = add ? *to + x[k * after + j] : x[k * after + j];
            }
        }
    }
}

static void scatter_part(void *context, Py_ssize_t block, int worker) {
    const Lines *lines = context;
    PART_OF(lines, block);
    if (lines->after == 1) {
        if (lines->add) scatter_rows(lines, first, last, 0, 1, 1, true);
        else scatter_rows(lines, first, last, 0, 1, 1, false);
    } else {
        scatter_rows(lines, first, last, left, right, lines->after, lines->add);
    }
}

// Add or put the elements of `x`, of the index's shape, into `out`.
static bool scattered_into(Lines *lines, PyObject *x, PyObject *index) {
    if (!float_array(x, false) || PyArray_NDIM((PyArrayObject *)x) != PyArray_NDIM((PyArrayObject *)index) ||
        !PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)x), PyArray_DIMS((PyArrayObject *)index),
                              PyArray_NDIM((PyArrayObject *)x)) ||
        !in_bounds(lines->index, PyArray_SIZE((PyArrayObject *)index), lines->length)) {
        return false;
    }
    lines->x = floats_of(x);
    return true;
}

KERNEL(scatter) {
    Lines lines = {0};
    if (count != 5 || out || !float_array(args[0], true)) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int dims = PyArray_NDIM(x), dim = dim_of(args[1], dims);
    if (!PyUnicode_Check(args[4])) return PASS;
    lines.add = PyUnicode_CompareWithASCIIString(args[4], "add") == 0;
    if (!lines.add && PyUnicode_CompareWithASCIIString(args[4], "put")) return PASS;
    if (!measure_like(&lines, PyArray_DIMS(x), dims, dim, args[2]) || !scattered_into(&lines, args[3], args[2])) return PASS;
    if (!apart(args[0], args[2]) || !apart(args[0], args[3])) return PASS;
    lines.out = floats_of(args[0]);
    share_lines(scatter_part, &lines);
    return nothing();
}

KERNEL(scattered) {
    Lines lines = {0};
    npy_intp shape[16];
    int64_t sizes[16];
    Py_ssize_t dims = count == 5 && PyTuple_Check(args[1]) ? PyTuple_Size(args[1]) : 0;
    if (out || dims < 1 || dims > 16 || !tt_sizes(args[1], dims, sizes) || !tt_float32(args[0])) return PASS;
    for (int d = 0; d < dims; d++) shape[d] = (npy_intp)sizes[d];
    if (!measure_like(&lines, shape, (int)dims, dim_of(args[2], (int)dims), args[3]) ||
        !scattered_into(&lines, args[0], args[3])) {
        return PASS;
    }
    PyObject *result = PyArray_Zeros((int)dims, shape, PyArray_DescrFromType(NPY_FLOAT), 0);
    if (!result) return NULL;
    lines.out = floats_of(result);
    lines.add = args[4] != Py_True;
    share_lines(scatter_part, &lines);
    return result;
}

KERNEL(place) {
    Lines lines = {0};
    npy_intp shape[8];
    int64_t sizes[8];
    Py_ssize_t dims = count == 4 && PyTuple_Check(args[2]) ? PyTuple_Size(args[2]) : 0;
    if (out || dims < 1 || dims > 7 || !tt_sizes(args[2], dims, sizes) || !tt_float32(args[0]) || !index_array(args[1]) ||
        PyArray_NDIM((PyArrayObject *)args[0]) < 2) {
        return PASS;
    }
    lines.before = shape[0] = PyArray_DIM((PyArrayObject *)args[0], 0);
    lines.length = lines.after = 1;
    for (int d = 0; d < dims; d++) lines.length *= shape[d + 1] = (npy_intp)sizes[d];
    lines.index = PyArray_DATA((PyArrayObject *)args[1]);
    if (!scattered_into(&lines, args[0], args[1])) return PASS;
    lines.count = lines.before ? PyArray_SIZE((PyArrayObject *)args[0]) / lines.before : 0;
    PyObject *result = PyArray_Zeros((int)dims + 1, shape, PyArray_DescrFromType(NPY_FLOAT), 0);
    if (!result) return NULL;
    lines.out = floats_of(result);
    lines.add = args[3] != Py_True;
    share_lines(scatter_part, &lines);
    return result;
}

// Rows --------------------------------------------------------------------------------------------

static void take_part(void *context, Py_ssize_t block, int worker) {
    const Lines *lines = context;
    PART_OF(lines, block);
    const Py_ssize_t after = lines->after;
    for (Py_ssize_t row = first; row < last; row++) {
        const float *x = lines->x + row * lines->length * after + left;
        float *out = lines->out + row * lines->count * after + left;
        for (Py_ssize_t k = 0; k < lines->count; k++, out += after) {
            memcpy(out, x + lines->index[k] * after, 4 * (size_t)(right - left));
        }
    }
}

KERNEL(take_rows) {
    Lines lines = {0};
    if (count != 3 || out || !float_array(args[0], false) || !index_array(args[2])) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[2];
    int dims = PyArray_NDIM(x), dim = dim_of(args[1], dims), more = PyArray_NDIM(index);
    if (dims + more > 16 || !measure(&lines, PyArray_DIMS(x), dims, dim)) return PASS;
    lines.index = PyArray_DATA(index);
    lines.count = PyArray_SIZE(index);
    if (!in_bounds(lines.index, lines.count, lines.length)) return PASS;
    int64_t shape[16];
    int at = 0;
    for (int d = 0; d < dim; d++) shape[at++] = PyArray_DIM(x, d);
    for (int d = 0; d < more; d++) shape[at++] = PyArray_DIM(index, d);
    for (int d = dim + 1; d < dims; d++) shape[at++] = PyArray_DIM(x, d);
    PyObject *result = tt_new(args[0], at, shape);
    if (!result) return NULL;
    if (!at) return Py_DECREF(result), PASS;
    lines.x = floats_of(args[0]);
    lines.out = floats_of(result);
    share_lines(take_part, &lines);
    return result;
}

static void add_part(void *context, Py_ssize_t block, int worker) {
    const Lines *lines = context;
    PART_OF(lines, block);
    const Py_ssize_t after = lines->after;
    for (Py_ssize_t row = first; row < last; row++) {
        const float *restrict x = lines->x + row * lines->count * after;
        float *restrict out = lines->out + row * lines->length * after;
        if (after == 1) {
            for (Py_ssize_t k = 0; k < lines->count; k++) out[lines->index[k]] += x[k];
            continue;
        }
        for (Py_ssize_t k = 0; k < lines->count; k++) {
            const float *restrict from = x + k * after;
            float *restrict to = out + lines->index[k] * after;
            for (Py_ssize_t j = left; j < right; j++) to[j] += from[j];
        }
    }
}

KERNEL(add_rows) {
    Lines lines = {0};
    if (count != 4 || out || !float_array(args[0], true) || !index_array(args[2]) || !float_array(args[3], false)) {
        return PASS;
    }
    PyArrayObject *into = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[2];
    int dims = PyArray_NDIM(into);
    if (!measure(&lines, PyArray_DIMS(into), dims, dim_of(args[1], dims))) return PASS;
    lines.index = PyArray_DATA(index);
    lines.count = PyArray_SIZE(index);
    lines.x = floats_of(args[3]);
    lines.out = floats_of(args[0]);
    if (PyArray_SIZE((PyArrayObject *)args[3]) != lines.before * lines.count * lines.after || !apart(args[0], args[2]) ||
        !apart(args[0], args[3]) ||
        !in_bounds(lines.index, lines.count, lines.length)) {
        return PASS;
    }
    share_lines(add_part, &lines);
    return nothing();
}

// Running sums ------------------------------------------------------------------------------------

// Sums are kept in float64. Those of a row wait for one another, so that several rows take as long as one.
INLINE void running_rows(const float *x, float *out, Py_ssize_t length, Py_ssize_t step, int rows) {
    double sums[8] = {0};
    for (Py_ssize_t k = 0, at = step < 0 ? length - 1 : 0; k < length; k++, at += step) {
        for (int row = 0; row < rows; row++) out[row * length + at] = (float)(sums[row] += (double)x[row * length + at]);
    }
}

static void running_part(void *context, Py_ssize_t block, int worker) {
    const Lines *lines = context;
    PART_OF(lines, block);
    const Py_ssize_t length = lines->length, after = lines->after, step = lines->reverse ? -1 : 1;
    if (after == 1) {
        Py_ssize_t row = first;
        for (; row + 8 <= last; row += 8) running_rows(lines->x + row * length, lines->out + row * length, length, step, 8);
        for (; row < last; row++) running_rows(lines->x + row * length, lines->out + row * length, length, step, 1);
        return;
    }
    for (Py_ssize_t row = first; row < last; row++) {
        for (Py_ssize_t begin = left; begin < right; begin += LINE_WIDTH) {
            const Py_ssize_t width = right - begin < LINE_WIDTH ? right - begin : LINE_WIDTH;
            double sums[LINE_WIDTH] = {0};
            for (Py_ssize_t k = 0; k < length; k++) {
                const Py_ssize_t at = (row * length + (step < 0 ? length - 1 - k : k)) * after + begin;
                const float *restrict x = lines->x + at;
                float *restrict out = lines->out + at;
                for (Py_ssize_t j = 0; j < width; j++) out[j] = (float)(sums[j] += (double)x[j]);
            }
        }
    }
}

KERNEL(running_sums) {
    Lines lines = {0};
    if (count != 3 || out || !float_array(args[0], false)) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int dims = PyArray_NDIM(x);
    if (!measure(&lines, PyArray_DIMS(x), dims, dim_of(args[1], dims))) return PASS;
    lines.count = lines.length;
    lines.reverse = args[2] == Py_True;
    PyObject *result = PyArray_NewLikeArray(x, NPY_CORDER, NULL, 0);
    if (!result) return NULL;
    lines.x = floats_of(args[0]);
    lines.out = floats_of(result);
    share_lines(running_part, &lines);
    return result;
}

// Arrays joined along a dimension. A row of the result is a row of each, one after another.
typedef struct {
    const float *data;
    Py_ssize_t length;  // of a row
} Piece;

typedef struct {
    Piece *pieces;
    float *out;
    Py_ssize_t row, size;
} Joined;

static void join_part(void *context, Py_ssize_t part, int worker) {
    const Joined *joined = context;
    Py_ssize_t at = part * SHARED, end = at + SHARED < joined->size ? at + SHARED : joined->size;
    Py_ssize_t row = at / joined->row, column = at % joined->row;
    (void)worker;
    for (const Piece *piece = joined->pieces; at < end; row++, column = 0, piece = joined->pieces) {
        for (; column >= piece->length; piece++) column -= piece->length;
        for (Py_ssize_t left = joined->row - at % joined->row; left && at < end; piece++, column = 0) {
            Py_ssize_t there = piece->length - column, count = there < end - at ? there : end - at;
            memcpy(joined->out + at, piece->data + row * piece->length + column, 4 * (size_t)count);
            at += count, left -= count;
        }
    }
}

KERNEL(concatenated) {
    if (count != 2 || out || !(PyList_Check(args[0]) || PyTuple_Check(args[0]))) return PASS;
    bool list = PyList_Check(args[0]);
    Py_ssize_t pieces = list ? PyList_Size(args[0]) : PyTuple_Size(args[0]);
    PyObject *first = !pieces ? NULL : list ? PyList_GetItem(args[0], 0) : PyTuple_GetItem(args[0], 0);
    if (!first || !float_array(first, false)) return PASS;
    int dims = PyArray_NDIM((PyArrayObject *)first), dim = dim_of(args[1], dims);
    if (dim < 0 || dims > MOST_DIMS) return PASS;
    int64_t shape[MOST_DIMS], after = 1;
    for (int d = 0; d < dims; d++) {
        shape[d] = PyArray_DIM((PyArrayObject *)first, d);
        if (d > dim) after *= shape[d];
    }
    shape[dim] = 0;
    Joined joined = {.pieces = malloc((size_t)pieces * sizeof(Piece)), .size = 1};
    bool fits = joined.pieces;
    for (Py_ssize_t k = 0; fits && k < pieces; k++) {
        PyObject *x = list ? PyList_GetItem(args[0], k) : PyTuple_GetItem(args[0], k);
        fits = float_array(x, false) && PyArray_NDIM((PyArrayObject *)x) == dims;
        for (int d = 0; fits && d < dims; d++) fits = d == dim || PyArray_DIM((PyArrayObject *)x, d) == shape[d];
        if (!fits) break;
        joined.pieces[k] = (Piece){floats_of(x), PyArray_DIM((PyArrayObject *)x, dim) * after};
        shape[dim] += PyArray_DIM((PyArrayObject *)x, dim);
    }
    PyObject *result = fits ? tt_new(first, dims, shape) : PASS;
    if (fits && result) {
        for (int d = 0; d < dims; d++) joined.size *= shape[d];
        joined.row = shape[dim] * after, joined.out = floats_of(result);
        if (joined.size) tt_share(join_part, &joined, (joined.size + SHARED - 1) / SHARED, joined.size, tt_threads());
    }
    free(joined.pieces);
    return result;
}
