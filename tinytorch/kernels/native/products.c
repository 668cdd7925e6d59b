// Twins of kernels/products.py.
#include "elementary.h"
#include "matmul.h"

static PyObject *multiply(PyObject *like, Matrices a, Matrices b, const float *bias, PyObject *out,
                          const Epilogue *epilogue, const float *residual);

// The same, in a new array, of sums of many terms: as the sum of products of blocks of columns and rows.
static PyObject *multiply_blocks(PyObject *like, Matrices a, Matrices b, const float *bias) {
    const int64_t terms = a.columns, depth = ceil_div(terms, ceil_div(terms, MAX_DEPTH));
    PyObject *sum = NULL;
    for (int64_t begin = 0; begin < terms; begin += depth) {
        a.columns = b.rows = imin(depth, terms - begin);
        PyObject *part = multiply(like, a, b, sum ? NULL : bias, NULL, NULL, NULL);
        if (!part || part == FALLBACK || !sum) {
            Py_XDECREF(sum);
            sum = part;
            if (!part || part == FALLBACK) break;
        } else {
            float *to = float_data(sum);
            const float *from = float_data(part);
            for (int64_t i = 0; i < PyArray_SIZE(ARRAY(sum)); i++) to[i] += from[i];
            Py_DECREF(part);
        }
        a.data += depth * a.column_stride;
        b.data += depth * b.row_stride;
    }
    return sum;
}

// Return `a b + bias`, in `out` if it is not NULL, with an epilogue if that is not NULL; or FALLBACK.
static PyObject *multiply(PyObject *like, Matrices a, Matrices b, const float *bias, PyObject *out,
                          const Epilogue *epilogue, const float *residual) {
    int dims = PyArray_NDIM(ARRAY(like));
    int64_t m = a.rows, n = b.columns, k = a.columns, count = 1, threads = tt_threads();
    for (int d = 0; d < MAX_LEADING; d++) {
        if (a.leading[d] != b.leading[d]) return FALLBACK;
        count *= a.leading[d];
    }
    double multiplications = (double)m * (double)n * (double)k;
    if ((HAS_BLAS && WIDTH < 8) || k != b.rows || m < 4 || n < 4) return FALLBACK;
    if (k > MAX_DEPTH) return out || epilogue ? FALLBACK : multiply_blocks(like, a, b, bias);
    if (multiplications < MIN_MATRIX || multiplications * (double)count < MIN_PRODUCT) return FALLBACK;
    int64_t shape[MAX_LEADING + 2] = {0};
    for (int d = 0; d < dims - 2; d++) shape[d] = a.leading[MAX_LEADING - dims + 2 + d];
    shape[dims - 2] = m;
    shape[dims - 1] = n;
    Product p = {.bias = bias, .epilogue = epilogue, .residual = residual};
    PyObject *result = out ? Py_NewRef(out) : tt_new_array(like, dims, shape);
    if (!result) return NULL;
    bool fits = read_matrices(result, &p.result) && p.result.rows == m && p.result.columns == n &&
                p.result.column_stride == 1 && PyArray_ISWRITEABLE(ARRAY(result));
    for (int d = 0; d < MAX_LEADING; d++) fits = fits && p.result.leading[d] == a.leading[d];

    plan(&p, &a, &b);
    multiplications *= (double)count;
    threads = imax(imin(threads, (int64_t)multiplications / THREAD_WORK), 1);
    int64_t panel_size = count * k * ceil_div(p.y.columns, WIDTH) * WIDTH;
    int64_t row_size = count * k * ceil_div(p.x.rows, PRODUCT_ROWS) * PRODUCT_ROWS;
    bool pack_panels = multiplications >= PACK_FIRST && threads > 1 && count < MANY_MATRICES * threads && !p.in_place &&
                       panel_size <= MAX_PACKED;
    bool far = p.x.rows * k >= CACHED_COLUMNS || (p.x.column_stride % CONFLICTS == 0 && p.y.columns >= CONFLICTS);
    bool pack_rows = p.x.row_stride == 1 && far && row_size <= MAX_PACKED;
    if (!pack_panels) panel_size = 0;
    if (!pack_rows) row_size = 0;
    p.scratch_size = product_scratch(k);
    p.scratch = fits ? alloc_floats((size_t)(threads * p.scratch_size + panel_size + row_size)) : NULL;
    if (!p.scratch) {
        Py_DECREF(result);
        return FALLBACK;
    }
    if (panel_size) {
        p.packed_panels = p.scratch + threads * p.scratch_size;
        tt_parallel_for(pack_panel_part, &p, count * p.panels, panel_size, (int)threads);
    }
    if (row_size) {
        p.packed_rows = p.scratch + threads * p.scratch_size + panel_size;
        tt_parallel_for(pack_rows_part, &p, count * ceil_div(k, WIDTH), row_size, (int)threads);
    }
    tt_parallel_for(product_part, &p, cut(&p, count, threads), count * m * n * k / WIDTH, (int)threads);
    free(p.scratch);
    return result;
}

KERNEL(product, a, b, out) {
    Matrices a, b;
    if (!read_matrices(args->a, &a) || !read_matrices(args->b, &b)) return FALLBACK;
    if (PyArray_NDIM(ARRAY(args->a)) != PyArray_NDIM(ARRAY(args->b))) return FALLBACK;
    return multiply(args->a, a, b, NULL, args->out == Py_None ? NULL : args->out, NULL, NULL);
}

KERNEL(linear, x, weight, bias) {
    Matrices x, weight;
    float *bias;
    if (!read_matrices(args->x, &x) || !read_matrices(args->weight, &weight)) return FALLBACK;
    if (PyArray_NDIM(ARRAY(args->x)) != 2 || PyArray_NDIM(ARRAY(args->weight)) != 2) return FALLBACK;
    if (args->bias != Py_None && (!PyArray_Check(args->bias) || PyArray_NDIM(ARRAY(args->bias)) != 1)) return FALLBACK;
    if (!read_floats(args->bias, weight.rows, true, &bias)) return FALLBACK;
    return multiply(args->x, x, transposed(weight), bias, NULL, NULL, NULL);
}

KERNEL(finished, x, weight, bias, residual, activation, low, high, out) {
    Matrices x, weight;
    float *bias, *residual;
    Epilogue epilogue;
    if (!read_matrices(args->x, &x) || !read_matrices(args->weight, &weight)) return FALLBACK;
    if (PyArray_NDIM(ARRAY(args->x)) != 2 || PyArray_NDIM(ARRAY(args->weight)) != 2) return FALLBACK;
    if (!read_floats(args->bias, weight.rows, true, &bias)) return FALLBACK;
    if (!read_floats(args->residual, x.rows * weight.rows, true, &residual)) return FALLBACK;
    if (args->out != Py_None && !is_float_array(args->out, true)) return FALLBACK;
    // (The sums are stored before the residual is read.)
    if (args->out != Py_None && residual && !disjoint(args->out, args->residual)) return FALLBACK;
    if (!read_epilogue(args->activation, args->low, args->high, &epilogue)) return FALLBACK;
    return multiply(args->x, x, transposed(weight), bias, args->out == Py_None ? NULL : args->out, &epilogue, residual);
}

// Products of small arrays, whose time in Python is all calls: by the same steps as there.

// Whether both are matrices of float32, or of float64.
static bool are_float_matrices(PyObject *a, PyObject *b) {
    if (!PyArray_CheckExact(a) || !PyArray_CheckExact(b)) return false;
    int type = PyArray_TYPE(ARRAY(a));
    return (type == NPY_FLOAT || type == NPY_DOUBLE) && PyArray_TYPE(ARRAY(b)) == type &&
           PyArray_ISBEHAVED_RO(ARRAY(a)) && PyArray_ISBEHAVED_RO(ARRAY(b)) && PyArray_NDIM(ARRAY(a)) == 2 &&
           PyArray_NDIM(ARRAY(b)) == 2;
}

// Return the product of two matrices, either of which may be transposed; or FALLBACK.
static PyObject *product_of(PyObject *a, PyObject *b, bool transpose_a, bool transpose_b) {
    if (!HAS_BLAS || !are_float_matrices(a, b)) return FALLBACK;
    if (PyArray_DIM(ARRAY(a), !transpose_a) != PyArray_DIM(ARRAY(b), transpose_b)) return FALLBACK;
    if (PyArray_SIZE(ARRAY(a)) < 2 || PyArray_SIZE(ARRAY(b)) < 2) return FALLBACK;  // (see `product` in Python)
    PyObject *x = transpose_a ? PyArray_Transpose(ARRAY(a), NULL) : Py_NewRef(a), *result = FALLBACK;
    PyObject *y = transpose_b ? PyArray_Transpose(ARRAY(b), NULL) : Py_NewRef(b);
    if (!x || !y) {
        result = NULL;
    } else if (PyArray_TYPE(ARRAY(a)) == NPY_FLOAT) {
        result = product_kernel(&(product_arguments){x, y, Py_None});
    }
    if (result == FALLBACK) result = PyArray_MatrixProduct2(x, y, NULL);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

KERNEL(mm, a, b) { return product_of(args->a, args->b, false, false); }
KERNEL(mm_nt, a, b) { return product_of(args->a, args->b, false, true); }
KERNEL(mm_tn, a, b) { return product_of(args->a, args->b, true, false); }

#define ADD_TO_ROWS(type)                                                                    \
    {                                                                                        \
        const type *row = PyArray_DATA(ARRAY(bias));                                         \
        type *to = PyArray_DATA(ARRAY(out));                                                 \
        for (int64_t i = 0; i < rows; i++, to += columns) {                                  \
            for (int64_t j = 0; j < columns; j++) to[j] += row[j];                           \
        }                                                                                    \
    }

static PyObject *affine_of_matrices(PyObject *x, PyObject *weight, PyObject *bias) {
    PyObject *out = FALLBACK;
    if (!are_float_matrices(x, weight)) return FALLBACK;
    const int64_t rows = PyArray_DIM(ARRAY(x), 0), columns = PyArray_DIM(ARRAY(weight), 0);
    if (PyArray_DIM(ARRAY(x), 1) != PyArray_DIM(ARRAY(weight), 1)) return FALLBACK;
    if (bias != Py_None &&
        (!PyArray_CheckExact(bias) || PyArray_TYPE(ARRAY(bias)) != PyArray_TYPE(ARRAY(x)) ||
         PyArray_NDIM(ARRAY(bias)) != 1 || PyArray_DIM(ARRAY(bias), 0) != columns || !PyArray_ISCARRAY_RO(ARRAY(bias)))) {
        return FALLBACK;
    }
    const bool in_floats = PyArray_TYPE(ARRAY(x)) == NPY_FLOAT;
    if (in_floats) out = linear_kernel(&(linear_arguments){x, weight, bias});
    if (out != FALLBACK) return out;
    if (rows * columns > MIN_PRODUCT) return FALLBACK;
    out = product_of(x, weight, false, true);
    if (!out || out == FALLBACK || bias == Py_None) return out;
    if (in_floats) ADD_TO_ROWS(float) else ADD_TO_ROWS(double)
    return out;
}
#undef ADD_TO_ROWS

KERNEL(affine, x, weight, bias) {
    const int dims = PyArray_CheckExact(args->x) ? PyArray_NDIM(ARRAY(args->x)) : 0;
    if (dims == 2) return affine_of_matrices(args->x, args->weight, args->bias);
    if (!dims || !PyArray_SIZE(ARRAY(args->x))) return FALLBACK;
    npy_intp shape[NPY_MAXDIMS], *last = shape + dims - 1;
    memcpy(shape, PyArray_DIMS(ARRAY(args->x)), sizeof(npy_intp) * (size_t)dims);
    npy_intp flat[] = {PyArray_SIZE(ARRAY(args->x)) / *last, *last};
    PyObject *rows = PyArray_Newshape(ARRAY(args->x), &(PyArray_Dims){flat, 2}, NPY_CORDER);
    PyObject *out = rows ? affine_of_matrices(rows, args->weight, args->bias) : NULL;
    Py_XDECREF(rows);
    if (!out || out == FALLBACK) return out;
    *last = PyArray_DIM(ARRAY(out), 1);
    PyObject *result = PyArray_Newshape(ARRAY(out), &(PyArray_Dims){shape, dims}, NPY_CORDER);
    Py_DECREF(out);
    return result;
}

INLINE float difference(float a, float b, float c, float d) {
    float first = a * b, second = c * d;
    KEEP(first);  // (that of a vector and itself is 0)
    KEEP(second);
    return first - second;
}

// Of vectors of one shape, in any order of memory.
KERNEL(cross, x, y, dim) {
    if (!tt_is_float32(args->x) || !tt_is_float32(args->y) || !same_shape(args->x, args->y)) return FALLBACK;
    const int dims = PyArray_NDIM(ARRAY(args->x)), dim = read_dim(args->dim, dims);
    if (dim < 0) return FALLBACK;
    PyObject *x = PyArray_FromArray(ARRAY(args->x), NULL, NPY_ARRAY_CARRAY_RO);
    PyObject *y = PyArray_FromArray(ARRAY(args->y), NULL, NPY_ARRAY_CARRAY_RO), *result = x && y ? new_like(x) : NULL;
    if (result) {
        const int64_t size = PyArray_SIZE(ARRAY(x));
        int64_t after = 1;
        for (int d = dim + 1; d < dims; d++) after *= PyArray_DIM(ARRAY(x), d);
        for (int64_t begin = 0; begin < size; begin += 3 * after) {
            for (int64_t i = begin; i < begin + after; i++) {
                const float *a = float_data(x) + i, *b = float_data(y) + i;
                float *out = float_data(result) + i;
                const int64_t j = after, k = 2 * after;
                out[0] = difference(a[j], b[k], a[k], b[j]);
                out[j] = difference(a[k], b[0], a[0], b[k]);
                out[k] = difference(a[0], b[j], a[j], b[0]);
            }
        }
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

KERNEL(trace, x) {
    if (!tt_is_float32(args->x) || PyArray_NDIM(ARRAY(args->x)) != 2) return FALLBACK;
    const char *x = PyArray_DATA(ARRAY(args->x));
    const npy_intp *shape = PyArray_DIMS(ARRAY(args->x)), *strides = PyArray_STRIDES(ARRAY(args->x));
    double total = 0;
    for (int64_t i = 0; i < imin(shape[0], shape[1]); i++) total += *(const float *)(x + i * (strides[0] + strides[1]));
    PyObject *result = tt_new_array(args->x, 0, NULL);
    if (!result) return NULL;
    *float_data(result) = (float)total;
    return PyArray_Return(ARRAY(result));
}

// QR --------------------------------------------------------------------------------------------

enum { MAX_FACTORED = 1 << 10 };  // elements of a matrix (LAPACK factors larger ones in blocks)

// Apply the reflection 1 - tau v v^T to a column; v[0] is 1.
COMPACT static void reflect(const double *v, double tau, double *column, int64_t length) {
    double sum = column[0];
    for (int64_t i = 1; i < length; i++) sum += v[i] * column[i];
    sum *= tau;
    column[0] -= sum;
    for (int64_t i = 1; i < length; i++) column[i] -= sum * v[i];
}

// Factor a matrix, given and returned by columns, by reflections in the order of LAPACK: R above, and Q in `q`,
// which has `columns` columns.
COMPACT static void factor_qr(double *a, int64_t m, int64_t n, double *q, int64_t columns) {
    double tau[MAX_FACTORED];
    const int64_t k = imin(m, n);
    for (int64_t j = 0; j < k; j++) {
        double *v = a + j * m + j, squares = 0;
        for (int64_t i = 1; i < m - j; i++) squares += v[i] * v[i];
        tau[j] = 0;
        if (squares == 0) continue;
        const double beta = -copysign(sqrt(v[0] * v[0] + squares), v[0]);
        tau[j] = (beta - v[0]) / beta;
        for (int64_t i = 1; i < m - j; i++) v[i] /= v[0] - beta;
        v[0] = beta;
        for (int64_t c = j + 1; c < n; c++) reflect(v, tau[j], a + c * m + j, m - j);
    }
    for (int64_t i = 0; i < m * columns; i++) q[i] = i % (m + 1) ? 0 : 1;
    for (int64_t j = k; j-- > 0;) {
        for (int64_t c = j; c < columns; c++) reflect(a + j * m + j, tau[j], q + c * m + j, m - j);
    }
}

SMALL_KERNEL(qr, x, mode) {
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    const bool complete = is_string(args->mode, "complete");
    const int dims = PyArray_NDIM(x);
    if (dims < 2 || !PyArray_SIZE(x) || (!complete && !is_string(args->mode, "reduced"))) return FALLBACK;
    const int64_t m = PyArray_DIM(x, dims - 2), n = PyArray_DIM(x, dims - 1), rows = complete ? m : imin(m, n);
    if (m * imax(n, rows) > MAX_FACTORED) return FALLBACK;
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(x), sizeof(npy_intp) * (size_t)dims);
    shape[dims - 2] = rows;
    shape[dims - 1] = m;
    PyObject *q = PyArray_SimpleNew(dims, shape, NPY_FLOAT);
    shape[dims - 2] = n;
    shape[dims - 1] = rows;
    PyObject *r = PyArray_SimpleNew(dims, shape, NPY_FLOAT);
    double work[MAX_FACTORED], by_columns[MAX_FACTORED];
    for (int64_t at = 0; q && r && at < PyArray_SIZE(x) / (m * n); at++) {
        const float *from = float_data(args->x) + at * m * n;
        float *to_q = float_data(q) + at * rows * m, *to_r = float_data(r) + at * n * rows;
        for (int64_t i = 0; i < m * n; i++) work[i % n * m + i / n] = from[i];
        factor_qr(work, m, n, by_columns, rows);
        for (int64_t i = 0; i < rows * m; i++) to_q[i] = (float)by_columns[i];
        for (int64_t i = 0; i < n * rows; i++) to_r[i] = i % rows > i / rows ? 0 : (float)work[i / rows * m + i % rows];
    }
    PyObject *parts[] = {q ? PyArray_SwapAxes(ARRAY(q), dims - 2, dims - 1) : NULL,
                         r ? PyArray_SwapAxes(ARRAY(r), dims - 2, dims - 1) : NULL};
    Py_XDECREF(q);
    Py_XDECREF(r);
    return new_tuple(2, parts);
}

FAMILY(products, ENTRY(product), ENTRY(trace), ENTRY(linear), ENTRY(finished), ENTRY(cross), ENTRY_WITH_NUMPY(mm),
       ENTRY_WITH_NUMPY(mm_nt), ENTRY_WITH_NUMPY(mm_tn), ENTRY_WITH_NUMPY(affine), ENTRY(qr));
