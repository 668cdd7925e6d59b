// Twins of kernels/rearrange.py, for contiguous arrays of any numbers, whose elements are moved as bytes; and of views, and of
// what joins arrays, in kernels/shape.py.
#include "helpers.h"

enum { MAX_DIMS = 64, MAX_JOINED_DIMS = 8, COPIED_PER_PART = 1 << 15 };

// Read an int (no bool); false for anything else.
static bool read_shift(PyObject *object, int64_t *shift) {
    if (!PyLong_CheckExact(object)) return false;
    *shift = PyLong_AsLongLong(object);
    if (*shift != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

// Copy the lower or the upper triangles of matrices; zeros are in the others.
static PyObject *triangles(PyObject *x, PyObject *diagonal, bool lower) {
    int64_t shift;
    if (!holds_numbers(x, false) || !read_shift(diagonal, &shift)) return FALLBACK;
    const int dims = PyArray_NDIM(ARRAY(x));
    if (dims < 2) return FALLBACK;
    const int64_t rows = PyArray_DIM(ARRAY(x), dims - 2), columns = PyArray_DIM(ARRAY(x), dims - 1);
    const int64_t all = columns ? PyArray_SIZE(ARRAY(x)) / columns : 0;
    const size_t item = (size_t)PyArray_ITEMSIZE(ARRAY(x)), line = item * (size_t)columns;
    PyObject *result = new_like(x);
    if (!result) return NULL;
    const char *from = PyArray_DATA(ARRAY(x));
    char *to = PyArray_DATA(ARRAY(result));
    shift = imax(imin(shift, columns), -rows);
    for (int64_t i = 0; i < all; i++, from += line, to += line) {
        const size_t cut = item * (size_t)imax(imin(i % rows + shift + lower, columns), 0);  // before what is above
        memcpy(lower ? to : to + cut, lower ? from : from + cut, lower ? cut : line - cut);
        memset(lower ? to + cut : to, 0, lower ? line - cut : cut);
    }
    return result;
}

KERNEL(tril, x, diagonal) { return triangles(args->x, args->diagonal, true); }
KERNEL(triu, x, diagonal) { return triangles(args->x, args->diagonal, false); }

// Along one dimension, or of the flattened array: what is moved over the end of a row comes first.
KERNEL(roll, x, shifts, dims) {
    int64_t shift;
    if (!holds_numbers(args->x, false) || !PyTuple_Check(args->shifts) || !PyTuple_Check(args->dims)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    if (PyTuple_Size(args->shifts) != 1 || PyTuple_Size(args->dims) > 1 ||
        !read_shift(PyTuple_GetItem(args->shifts, 0), &shift)) {
        return FALLBACK;
    }
    int64_t length = PyArray_SIZE(x);
    size_t after = (size_t)PyArray_ITEMSIZE(x);
    if (PyTuple_Size(args->dims)) {
        const int dim = read_dim(PyTuple_GetItem(args->dims, 0), PyArray_NDIM(x));
        if (dim < 0) return FALLBACK;
        length = PyArray_DIM(x, dim);
        for (int d = dim + 1; d < PyArray_NDIM(x); d++) after *= (size_t)PyArray_DIM(x, d);
    }
    PyObject *result = new_like(args->x);
    if (!result || !length) return result;
    shift = (shift % length + length) % length;
    const size_t row = after * (size_t)length, first = after * (size_t)shift;
    const char *from = PyArray_DATA(x), *end = from + PyArray_NBYTES(x);
    for (char *to = PyArray_DATA(ARRAY(result)); from < end; from += row, to += row) {
        memcpy(to, from + row - first, first);
        memcpy(to + first, from, row - first);
    }
    return result;
}

KERNEL(flip, x, dims) {
    if (!holds_numbers(args->x, false) || !PyTuple_Check(args->dims)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    npy_intp strides[MAX_DIMS], offset = 0;
    const int dims = PyArray_NDIM(x);
    for (int d = 0; d < dims; d++) strides[d] = PyArray_STRIDE(x, d);
    for (Py_ssize_t k = PyTuple_Size(args->dims); k-- > 0;) {
        const int dim = read_dim(PyTuple_GetItem(args->dims, k), dims);
        if (dim < 0 || strides[dim] != PyArray_STRIDE(x, dim)) return FALLBACK;  // (twice the same dimension)
        if (PyArray_DIM(x, dim) > 1) offset += (PyArray_DIM(x, dim) - 1) * strides[dim];
        strides[dim] = -strides[dim];
    }
    if (!PyArray_SIZE(x)) return new_like(args->x);
    PyObject *reversed = tt_view_of(x, dims, PyArray_DIMS(x), strides, offset);
    PyObject *result = reversed ? PyArray_NewCopy(ARRAY(reversed), NPY_CORDER) : NULL;
    Py_XDECREF(reversed);
    return result;
}

// Concatenation ---------------------------------------------------------------------------------

// An input of the concatenation, viewed as (before, length): a row of the result is a row of each input, one after
// another.
typedef struct {
    const float *data;
    Py_ssize_t length;
} Input;

typedef struct {
    Input *inputs;
    float *out;
    Py_ssize_t row, size;  // floats of a row, and of the result
} Concatenation;

static void concatenate_part(void *context, Py_ssize_t part, int worker) {
    const Concatenation *c = context;
    Py_ssize_t at = part * COPIED_PER_PART, end = imin(at + COPIED_PER_PART, c->size);
    Py_ssize_t row = at / c->row, column = at % c->row;
    (void)worker;
    for (const Input *input = c->inputs; at < end; row++, column = 0, input = c->inputs) {
        for (; column >= input->length; input++) column -= input->length;
        for (Py_ssize_t left = c->row - at % c->row; left && at < end; input++, column = 0) {
            Py_ssize_t rest = input->length - column, count = imin(rest, end - at);
            memcpy(c->out + at, input->data + row * input->length + column, 4 * (size_t)count);
            at += count, left -= count;
        }
    }
}

// Arrays joined along a dimension, which is a new one if they are stacked.
static PyObject *joined(PyObject *xs, PyObject *along, bool stacked) {
    bool list = PyList_Check(xs);
    if (!list && !PyTuple_Check(xs)) return FALLBACK;
    Py_ssize_t count = list ? PyList_Size(xs) : PyTuple_Size(xs);
    PyObject *first = !count ? NULL : list ? PyList_GetItem(xs, 0) : PyTuple_GetItem(xs, 0);
    if (!first || !is_float_array(first, false)) return FALLBACK;
    int own_dims = PyArray_NDIM(ARRAY(first)), dims = own_dims + stacked, dim = read_dim(along, dims);
    if (dim < 0 || dims > MAX_JOINED_DIMS) return FALLBACK;
    int64_t shape[MAX_JOINED_DIMS], after = 1;
    for (int d = 0; d < dims; d++) {
        shape[d] = d == dim ? 0 : PyArray_DIM(ARRAY(first), d - (stacked && d > dim));
        if (d > dim) after *= shape[d];
    }
    Concatenation c = {.inputs = malloc((size_t)count * sizeof(Input)), .size = 1};
    bool fits = c.inputs;
    for (Py_ssize_t k = 0; fits && k < count; k++) {
        PyObject *x = list ? PyList_GetItem(xs, k) : PyTuple_GetItem(xs, k);
        fits = is_float_array(x, false) && PyArray_NDIM(ARRAY(x)) == own_dims;
        for (int d = 0; fits && d < dims; d++) {
            fits = d == dim || PyArray_DIM(ARRAY(x), d - (stacked && d > dim)) == shape[d];
        }
        if (!fits) break;
        int64_t length = stacked ? 1 : PyArray_DIM(ARRAY(x), dim);
        c.inputs[k] = (Input){float_data(x), length * after};
        shape[dim] += length;
    }
    PyObject *result = fits ? tt_new_array(first, dims, shape) : FALLBACK;
    if (fits && result) {
        for (int d = 0; d < dims; d++) c.size *= shape[d];
        c.row = shape[dim] * after, c.out = float_data(result);
        if (c.size) tt_parallel_for(concatenate_part, &c, ceil_div(c.size, COPIED_PER_PART), c.size, tt_threads());
    }
    free(c.inputs);
    return result;
}

KERNEL(concatenated, xs, dim) { return joined(args->xs, args->dim, false); }
KERNEL(stacked, xs, dim) { return joined(args->xs, args->dim, true); }

// Views -----------------------------------------------------------------------------------------

KERNEL(expand, x, sizes) {
    const bool list = PyList_Check(args->sizes);
    if (!PyArray_CheckExact(args->x) || !PyArray_ISCARRAY(ARRAY(args->x)) || !(list || PyTuple_Check(args->sizes))) {
        return FALLBACK;
    }
    PyArrayObject *x = ARRAY(args->x);
    const Py_ssize_t dims = list ? PyList_Size(args->sizes) : PyTuple_Size(args->sizes), extra = dims - PyArray_NDIM(x);
    npy_intp shape[MAX_DIMS], strides[MAX_DIMS];
    if (extra < 0 || dims > MAX_DIMS) return FALLBACK;
    for (Py_ssize_t d = 0; d < dims; d++) {
        int64_t length;
        if (!read_shift(list ? PyList_GetItem(args->sizes, d) : PyTuple_GetItem(args->sizes, d), &length)) return FALLBACK;
        const npy_intp have = d < extra ? 1 : PyArray_DIM(x, d - extra);
        const bool kept = d >= extra && (length == -1 || length == have);
        if (!kept && (length < 0 || have != 1)) return FALLBACK;
        shape[d] = kept ? have : (npy_intp)length;
        strides[d] = kept ? PyArray_STRIDE(x, d - extra) : 0;
    }
    return tt_view_of(x, (int)dims, shape, strides, 0);
}

// A tuple of `count` views along a dimension: of these sizes, or NULL: of slices without the dimension.
static PyObject *views(PyArrayObject *x, int dim, Py_ssize_t count, PyObject *sizes) {
    npy_intp shape[MAX_DIMS], strides[MAX_DIMS], at = 0, length = 1;
    const bool list = sizes && PyList_Check(sizes);
    PyObject *made = PyTuple_New(count);
    int dims = 0;
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        if (d == dim && !sizes) continue;
        shape[dims] = PyArray_DIM(x, d);
        strides[dims++] = PyArray_STRIDE(x, d);
    }
    for (Py_ssize_t k = 0; made && k < count; k++, at += length) {
        if (sizes) shape[dim] = length = read_int(list ? PyList_GetItem(sizes, k) : PyTuple_GetItem(sizes, k));
        const bool fits = length > 0 && at + length <= PyArray_DIM(x, dim);
        PyObject *view = fits ? tt_view_of(x, dims, shape, strides, at * PyArray_STRIDE(x, dim)) : NULL;
        if (view) PyTuple_SetItem(made, k, view);
        else Py_CLEAR(made);
    }
    if (made || PyErr_Occurred()) return made;
    return FALLBACK;
}

KERNEL(pieces, x, sizes, dim) {
    const bool list = PyList_Check(args->sizes);
    if (!PyArray_CheckExact(args->x) || !(list || PyTuple_Check(args->sizes))) return FALLBACK;
    const int dim = read_dim(args->dim, PyArray_NDIM(ARRAY(args->x)));
    if (dim < 0) return FALLBACK;
    return views(ARRAY(args->x), dim, list ? PyList_Size(args->sizes) : PyTuple_Size(args->sizes), args->sizes);
}

KERNEL(unbind, x, dim) {
    const int dim = PyArray_CheckExact(args->x) ? read_dim(args->dim, PyArray_NDIM(ARRAY(args->x))) : -1;
    return dim < 0 ? FALLBACK : views(ARRAY(args->x), dim, PyArray_DIM(ARRAY(args->x), dim), NULL);
}

FAMILY(rearrange, ENTRY(tril), ENTRY(triu), ENTRY(roll), ENTRY(flip), ENTRY(expand), ENTRY(pieces), ENTRY(unbind),
       ENTRY(concatenated), ENTRY(stacked));
