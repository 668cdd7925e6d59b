// Twins of kernels/rearrange.py, for contiguous arrays of any numbers: elements are moved as bytes.
#include "helpers.h"

static bool holds_numbers(PyObject *x) {
    if (!PyArray_CheckExact(x) || !PyArray_ISCARRAY_RO(ARRAY(x))) return false;
    return PyTypeNum_ISNUMBER(PyArray_TYPE(ARRAY(x))) || PyTypeNum_ISBOOL(PyArray_TYPE(ARRAY(x)));
}

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
    if (!holds_numbers(x) || !read_shift(diagonal, &shift)) return FALLBACK;
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
    if (!holds_numbers(args->x) || !PyTuple_Check(args->shifts) || !PyTuple_Check(args->dims)) return FALLBACK;
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

FAMILY(rearrange, ENTRY(tril), ENTRY(triu), ENTRY(roll));
