// Twin of `by_rows` in kernels/sparse.py: the product of a matrix in the format CSR and a dense one, row by row.
#include "helpers.h"

enum { SPARSE_WORK_PER_PART = 1 << 15 };

typedef struct {
    const float *values, *dense;
    const int64_t *columns, *start;
    float *out;
    int64_t rows, width, rows_per_part;
} SparseProduct;

static void sparse_rows(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const SparseProduct *t = context;
    int64_t begin = part * t->rows_per_part, end = imin(begin + t->rows_per_part, t->rows);
    for (int64_t row = begin; row < end; row++) {
        float *out = t->out + row * t->width;
        memset(out, 0, sizeof(float) * (size_t)t->width);
        for (int64_t k = t->start[row]; k < t->start[row + 1]; k++) {
            const float *x = t->dense + t->columns[k] * t->width;
            vec value = broadcast(t->values[k]);
            int64_t j = 0;
            for (; j + WIDTH <= t->width; j += WIDTH) store(out + j, load(out + j) + value * load(x + j));
            for (; j < t->width; j++) out[j] += t->values[k] * x[j];
        }
    }
}

// True if all entries lie within the arrays.
static bool entries_are_within(const SparseProduct *t, int64_t entries, int64_t columns) {
    if (t->start[0] || t->start[t->rows] != entries) return false;
    for (int64_t row = 0; row < t->rows; row++) {
        if (t->start[row] > t->start[row + 1]) return false;
    }
    for (int64_t k = 0; k < entries; k++) {
        if (t->columns[k] < 0 || t->columns[k] >= columns) return false;
    }
    return true;
}

KERNEL(by_rows, values, columns, start, dense) {
    if (!is_float_array(args->values, false) || !is_float_array(args->dense, false)) return FALLBACK;
    if (!is_index_array(args->columns) || !is_index_array(args->start)) return FALLBACK;
    PyArrayObject *dense = ARRAY(args->dense);
    int64_t entries = PyArray_SIZE(ARRAY(args->values)), rows = PyArray_SIZE(ARRAY(args->start)) - 1;
    if (PyArray_NDIM(dense) != 2 || PyArray_SIZE(ARRAY(args->columns)) != entries || rows < 0) return FALLBACK;
    SparseProduct t = {
        .values = float_data(args->values),
        .dense = PyArray_DATA(dense),
        .columns = PyArray_DATA(ARRAY(args->columns)),
        .start = PyArray_DATA(ARRAY(args->start)),
        .rows = rows,
        .width = PyArray_DIM(dense, 1),
    };
    if (!entries_are_within(&t, entries, PyArray_DIM(dense, 0))) return FALLBACK;
    PyObject *out = PyArray_SimpleNew(2, ((npy_intp[]){rows, t.width}), NPY_FLOAT);
    if (!out || !rows || !t.width) return out;
    t.out = float_data(out);
    int64_t work = (entries + rows) * t.width;
    t.rows_per_part = imax(1, rows * SPARSE_WORK_PER_PART / imax(work, 1));
    tt_parallel_for(sparse_rows, &t, ceil_div(rows, t.rows_per_part), work, tt_threads());
    return out;
}

FAMILY(sparse, ENTRY(by_rows));
