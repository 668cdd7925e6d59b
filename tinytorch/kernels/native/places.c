// Twins of kernels that read and write small arrays of any numbers by indices and masks, in kernels/indexing.py, and of
// `one_hot` in kernels/embedding.py, `unique2` in kernels/sort.py and others. Large arrays are NumPy's, or those of kernels in indexing.c.
#include "helpers.h"

enum { MAX_BYTES = 1 << 16, MAX_RANK = 16 };

static int kind_of(PyObject *x) {
    const int type = PyArray_TYPE(ARRAY(x));
    return type == NPY_FLOAT ? F32 : type == NPY_DOUBLE ? F64 : type == NPY_INT64 ? I64 : -1;
}

// Read a number, or that of a 0-d array of the same dtype, as an element of an array.
static bool read_element(PyObject *x, PyObject *value, char *element) {
    if (!PyArray_CheckExact(value)) return kind_of(x) >= 0 && tt_read_as(value, kind_of(x), element);
    if (PyArray_NDIM(ARRAY(value)) || PyArray_TYPE(ARRAY(value)) != PyArray_TYPE(ARRAY(x))) return false;
    if (!PyArray_ISCARRAY_RO(ARRAY(value))) return false;
    memcpy(element, PyArray_DATA(ARRAY(value)), (size_t)PyArray_ITEMSIZE(ARRAY(x)));
    return true;
}

static void repeat_element(char *to, Py_ssize_t count, const char *element, Py_ssize_t itemsize) {
    if (itemsize == 4) {
        for (Py_ssize_t i = 0; i < count; i++) memcpy(to + 4 * i, element, 4);
    } else if (itemsize == 8) {
        for (Py_ssize_t i = 0; i < count; i++) memcpy(to + 8 * i, element, 8);
    } else {
        for (Py_ssize_t i = 0; i < count; i++) memcpy(to + itemsize * i, element, (size_t)itemsize);
    }
}

KERNEL(masked_fill, x, mask, value) {
    char element[32];
    PyObject *mask = args->mask;
    if (!holds_numbers(args->x, true) || !holds_numbers(mask, false) || PyArray_TYPE(ARRAY(mask)) != NPY_BOOL) return FALLBACK;
    const Py_ssize_t size = PyArray_SIZE(ARRAY(mask)), itemsize = PyArray_ITEMSIZE(ARRAY(args->x));
    if (!same_shape(args->x, mask) || size > MAX_BYTES || !disjoint(args->x, mask)) return FALLBACK;
    if (!read_element(args->x, args->value, element)) return FALLBACK;
    const npy_bool *here = PyArray_DATA(ARRAY(mask));
    char *to = PyArray_DATA(ARRAY(args->x));
    for (Py_ssize_t i = 0; i < size; i++) {
        if (here[i]) memcpy(to + i * itemsize, element, (size_t)itemsize);
    }
    Py_RETURN_NONE;
}

// The rows of an array (before, length, after) that a vector of indices names.
typedef struct {
    const int64_t *index;
    Py_ssize_t before, length, count, after;
} NamedRows;

static bool are_within(const int64_t *index, Py_ssize_t count, Py_ssize_t length) {
    bool within = true;
    for (Py_ssize_t i = 0; i < count; i++) within = within && index[i] >= 0 && index[i] < length;
    return within;
}

// Set the rows of an array that a vector of indices names; false for other arguments, and for indices out of range.
static bool set_rows(NamedRows *rows, PyObject *x, PyObject *dim, PyObject *index) {
    if (!holds_numbers(x, true) || !is_index_array(index) || PyArray_NDIM(ARRAY(index)) != 1 || !disjoint(x, index)) return false;
    const int dims = PyArray_NDIM(ARRAY(x)), at = read_dim(dim, dims);
    if (at < 0 || PyArray_SIZE(ARRAY(x)) > MAX_BYTES) return false;
    *rows = (NamedRows){.before = 1, .length = PyArray_DIM(ARRAY(x), at), .after = 1};
    for (int d = 0; d < dims; d++) {
        if (d < at) rows->before *= PyArray_DIM(ARRAY(x), d);
        if (d > at) rows->after *= PyArray_DIM(ARRAY(x), d);
    }
    rows->index = PyArray_DATA(ARRAY(index));
    rows->count = PyArray_SIZE(ARRAY(index));
    return are_within(rows->index, rows->count, rows->length);
}

// The same with the rows to be written: an array of the same dtype and, but for their number, shape.
static bool set_rows_and_source(NamedRows *rows, PyObject *x, PyObject *dim, PyObject *index, PyObject *source) {
    if (!set_rows(rows, x, dim, index) || !holds_numbers(source, false) || !disjoint(x, source)) return false;
    if (PyArray_TYPE(ARRAY(x)) != PyArray_TYPE(ARRAY(source)) || PyArray_NDIM(ARRAY(x)) != PyArray_NDIM(ARRAY(source))) return false;
    const int at = read_dim(dim, PyArray_NDIM(ARRAY(x)));
    for (int d = 0; d < PyArray_NDIM(ARRAY(x)); d++) {
        if (PyArray_DIM(ARRAY(source), d) != (d == at ? rows->count : PyArray_DIM(ARRAY(x), d))) return false;
    }
    return true;
}

KERNEL(index_add, x, dim, index, source, alpha) {
    NamedRows rows;
    if (!set_rows_and_source(&rows, args->x, args->dim, args->index, args->source)) return FALLBACK;
    if (kind_of(args->x) != F32 || !PyLong_CheckExact(args->alpha) || PyLong_AsLong(args->alpha) != 1) {
        if (PyErr_Occurred()) PyErr_Clear();
        return FALLBACK;
    }
    const float *from = float_data(args->source);
    for (Py_ssize_t i = 0; i < rows.before; i++) {
        float *to = float_data(args->x) + i * rows.length * rows.after;
        for (Py_ssize_t k = 0; k < rows.count; k++, from += rows.after) {
            for (Py_ssize_t j = 0; j < rows.after; j++) to[rows.index[k] * rows.after + j] += from[j];
        }
    }
    Py_RETURN_NONE;
}

KERNEL(index_copy, x, dim, index, source) {
    NamedRows rows;
    if (!set_rows_and_source(&rows, args->x, args->dim, args->index, args->source)) return FALLBACK;
    const Py_ssize_t bytes = rows.after * PyArray_ITEMSIZE(ARRAY(args->x));
    const char *from = PyArray_DATA(ARRAY(args->source));
    for (Py_ssize_t i = 0; i < rows.before; i++) {
        char *to = PyArray_BYTES(ARRAY(args->x)) + i * rows.length * bytes;
        for (Py_ssize_t k = 0; k < rows.count; k++, from += bytes) memcpy(to + rows.index[k] * bytes, from, (size_t)bytes);
    }
    Py_RETURN_NONE;
}

KERNEL(index_fill, x, dim, index, value) {
    NamedRows rows;
    char element[32];
    if (!set_rows(&rows, args->x, args->dim, args->index) || !read_element(args->x, args->value, element)) return FALLBACK;
    const Py_ssize_t itemsize = PyArray_ITEMSIZE(ARRAY(args->x)), bytes = rows.after * itemsize;
    for (Py_ssize_t i = 0; i < rows.before; i++) {
        char *to = PyArray_BYTES(ARRAY(args->x)) + i * rows.length * bytes;
        for (Py_ssize_t k = 0; k < rows.count; k++) {
            repeat_element(to + rows.index[k] * bytes, rows.after, element, itemsize);
        }
    }
    Py_RETURN_NONE;
}

// The places that a mask, or arrays of ints, select in the first dimensions of an array; or one array in a later one.
typedef struct {
    int first, used, dims;  // the indexed dimensions, and those of the result in their place
    npy_intp shape[MAX_RANK];
    Py_ssize_t before, span, count, bytes;  // `count` of `span` places; bytes of each
    int64_t *places;
} Selection;

static bool find_selection(PyObject *x, PyObject *indices, Selection *p) {
    *p = (Selection){.before = 1, .span = 1, .bytes = PyArray_ITEMSIZE(ARRAY(x))};
    Py_ssize_t parts = PyTuple_CheckExact(indices) ? PyTuple_Size(indices) : 0;
    while (p->first < parts && PyTuple_GetItem(indices, p->first) == Py_None) p->first++;
    PyObject *index = p->first < parts ? PyTuple_GetItem(indices, p->first) : NULL;
    const bool mask = index && holds_numbers(index, false) && PyArray_TYPE(ARRAY(index)) == NPY_BOOL;
    const int own = PyArray_NDIM(ARRAY(x)), arrays = (int)parts - p->first;
    if (!index || !(mask || is_index_array(index)) || (arrays > 1 && (mask || p->first)) || (mask && p->first)) return false;
    p->used = mask ? PyArray_NDIM(ARRAY(index)) : arrays;
    p->dims = mask ? 1 : PyArray_NDIM(ARRAY(index));
    if (p->first + p->used > own || own + p->dims > MAX_RANK || !p->dims || !p->used) return false;
    const npy_intp *shape = PyArray_DIMS(ARRAY(x));
    for (int d = 0; d < own; d++) {
        if (d < p->first) p->before *= shape[d];
        else if (d < p->first + p->used) p->span *= shape[d];
        else p->bytes *= shape[d];
    }
    const Py_ssize_t size = PyArray_SIZE(ARRAY(index));
    if (size > MAX_BYTES || p->before * size * p->bytes > 16 * MAX_BYTES || !(p->places = malloc(8 * (size_t)(size + 1)))) {
        return false;
    }
    if (mask) {
        const npy_bool *here = PyArray_DATA(ARRAY(index));
        bool fits = PyArray_CompareLists(PyArray_DIMS(ARRAY(index)), (npy_intp *)shape, p->used);
        for (Py_ssize_t i = 0; fits && i < size; i++) {
            p->places[p->count] = i;
            p->count += here[i] != 0;
        }
        p->shape[0] = p->count;
        return fits;
    }
    p->count = size;
    memcpy(p->shape, PyArray_DIMS(ARRAY(index)), sizeof(npy_intp) * (size_t)p->dims);
    memset(p->places, 0, 8 * (size_t)size);
    for (int k = 0; k < arrays; k++) {
        PyObject *each = PyTuple_GetItem(indices, p->first + k);
        if (!is_index_array(each) || !same_shape(each, index)) return false;
        const int64_t *at = PyArray_DATA(ARRAY(each)), length = shape[p->first + k];
        for (Py_ssize_t i = 0; i < size; i++) {
            const int64_t place = at[i] < 0 ? at[i] + length : at[i];
            if (place < 0 || place >= length) return false;
            p->places[i] = p->places[i] * length + place;
        }
    }
    return true;
}

// The shape of what is selected; the number of its dimensions.
static int selected_shape(PyObject *x, const Selection *p, npy_intp *shape) {
    const npy_intp *own = PyArray_DIMS(ARRAY(x));
    int dims = 0;
    for (int d = 0; d < p->first; d++) shape[dims++] = own[d];
    for (int d = 0; d < p->dims; d++) shape[dims++] = p->shape[d];
    for (int d = p->first + p->used; d < PyArray_NDIM(ARRAY(x)); d++) shape[dims++] = own[d];
    return dims;
}

KERNEL(take, x, indices) {
    Selection p = {0};
    PyObject *result = FALLBACK;
    if (!holds_numbers(args->x, false)) return FALLBACK;
    if (find_selection(args->x, args->indices, &p)) {
        npy_intp shape[2 * MAX_RANK];
        const int dims = selected_shape(args->x, &p, shape);
        result = PyArray_SimpleNew(dims, shape, PyArray_TYPE(ARRAY(args->x)));
        char *to = result ? PyArray_DATA(ARRAY(result)) : NULL;
        for (Py_ssize_t row = 0; to && row < p.before; row++) {
            const char *from = PyArray_BYTES(ARRAY(args->x)) + row * p.span * p.bytes;
            for (Py_ssize_t k = 0; k < p.count; k++, to += p.bytes) memcpy(to, from + p.places[k] * p.bytes, (size_t)p.bytes);
        }
    }
    free(p.places);
    return result;
}

// Write a number, one row for all places, or an array of what is selected.
static PyObject *put_at(PyObject *x, PyObject *indices, PyObject *values, PyObject *accumulate) {
    Selection p = {0};
    char element[32];
    const bool array = PyArray_CheckExact(values) && PyArray_NDIM(ARRAY(values));
    if (accumulate != Py_False || !holds_numbers(x, true) || !PyTuple_CheckExact(indices)) return FALLBACK;
    if (array ? !holds_numbers(values, false) || PyArray_TYPE(ARRAY(values)) != PyArray_TYPE(ARRAY(x)) || !disjoint(x, values)
              : !read_element(x, values, element)) {
        return FALLBACK;
    }
    for (Py_ssize_t k = PyTuple_Size(indices); k-- > 0;) {
        PyObject *index = PyTuple_GetItem(indices, k);
        if (PyArray_CheckExact(index) && !disjoint(x, index)) return FALLBACK;
    }
    bool fits = find_selection(x, indices, &p);
    Py_ssize_t step = array ? p.bytes : 0, itemsize = PyArray_ITEMSIZE(ARRAY(x));
    if (fits && array) {
        npy_intp shape[2 * MAX_RANK];
        const int dims = selected_shape(x, &p, shape), own = PyArray_NDIM(ARRAY(values)), rest = dims - p.first - p.dims;
        fits = (own == dims || (own == rest && !p.first)) && PyArray_CompareLists(shape + dims - own, PyArray_DIMS(ARRAY(values)), own);
        if (own != dims) step = 0;
    }
    const char *from = array ? PyArray_DATA(ARRAY(values)) : NULL;
    for (Py_ssize_t row = 0; fits && row < p.before; row++) {
        char *to = PyArray_BYTES(ARRAY(x)) + row * p.span * p.bytes;
        for (Py_ssize_t k = 0; k < p.count; k++) {
            if (array) memcpy(to + p.places[k] * p.bytes, from, (size_t)p.bytes), from += step;
            else repeat_element(to + p.places[k] * p.bytes, p.bytes / itemsize, element, itemsize);
        }
    }
    free(p.places);
    return fits ? Py_NewRef(Py_None) : FALLBACK;
}

KERNEL(put, x, indices, values, accumulate) { return put_at(args->x, args->indices, args->values, args->accumulate); }
KERNEL(index_put, x, indices, y, accumulate) {
    return PyArray_CheckExact(args->y) ? put_at(args->x, args->indices, args->y, args->accumulate) : FALLBACK;
}

KERNEL(one_hot, labels, num_classes) {
    const Py_ssize_t classes = PyLong_CheckExact(args->num_classes) ? read_int(args->num_classes) : 0;
    if (classes < 1 || !is_index_array(args->labels) || PyArray_NDIM(ARRAY(args->labels)) + 1 > MAX_RANK) return FALLBACK;
    PyArrayObject *labels = ARRAY(args->labels);
    const int64_t *label = PyArray_DATA(labels);
    const Py_ssize_t count = PyArray_SIZE(labels);
    if (!are_within(label, count, classes)) return FALLBACK;
    npy_intp shape[MAX_RANK];
    memcpy(shape, PyArray_DIMS(labels), sizeof(npy_intp) * (size_t)PyArray_NDIM(labels));
    shape[PyArray_NDIM(labels)] = classes;
    PyObject *result = PyArray_ZEROS(PyArray_NDIM(labels) + 1, shape, NPY_INT64, 0);
    if (!result) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) ((int64_t *)PyArray_DATA(ARRAY(result)))[i * classes + label[i]] = 1;
    return result;
}

// Distinct numbers in order, for each element its place among them, and counts.
typedef struct {
    int64_t value;
    Py_ssize_t at;
} Placed;

static int compare_placed(const void *x, const void *y) {
    const int64_t a = ((const Placed *)x)->value, b = ((const Placed *)y)->value;
    return (a > b) - (a < b);
}

KERNEL(unique2, x) {
    if (!is_index_array(args->x) || PyArray_SIZE(ARRAY(args->x)) > MAX_BYTES / 16) return FALLBACK;
    const npy_intp size = PyArray_SIZE(ARRAY(args->x));
    const int64_t *x = PyArray_DATA(ARRAY(args->x));
    Placed *placed = malloc(sizeof(Placed) * (size_t)(size + 1));
    PyObject *inverse = placed ? new_like(args->x) : NULL;
    if (!inverse) {
        free(placed);
        return NULL;
    }
    for (npy_intp i = 0; i < size; i++) placed[i] = (Placed){x[i], i};
    qsort(placed, (size_t)size, sizeof(Placed), compare_placed);
    npy_intp found = 0;
    for (npy_intp i = 0; i < size; i++) {
        found += !i || placed[i].value != placed[i - 1].value;
        ((int64_t *)PyArray_DATA(ARRAY(inverse)))[placed[i].at] = found - 1;
    }
    PyObject *arrays[] = {PyArray_SimpleNew(1, &found, NPY_INT64), inverse, PyArray_ZEROS(1, &found, NPY_INT64, 0)};
    int64_t *values = arrays[0] ? PyArray_DATA(ARRAY(arrays[0])) : NULL, *counts = arrays[2] ? PyArray_DATA(ARRAY(arrays[2])) : NULL;
    for (npy_intp i = 0, at = -1; values && counts && i < size; i++) {
        at += !i || placed[i].value != placed[i - 1].value;
        values[at] = placed[i].value;
        counts[at]++;
    }
    free(placed);
    return new_tuple(3, arrays);
}

// Of the flattened array.
KERNEL(taken, x, index) {
    PyObject *index = args->index;
    if (!holds_numbers(args->x, false) || !is_index_array(index) || PyArray_SIZE(ARRAY(index)) > MAX_BYTES) return FALLBACK;
    const int64_t length = PyArray_SIZE(ARRAY(args->x)), *at = PyArray_DATA(ARRAY(index));
    for (npy_intp i = 0; i < PyArray_SIZE(ARRAY(index)); i++) {
        if (at[i] < -length || at[i] >= length) return FALLBACK;
    }
    PyObject *out = PyArray_SimpleNew(PyArray_NDIM(ARRAY(index)), PyArray_DIMS(ARRAY(index)), PyArray_TYPE(ARRAY(args->x)));
    const npy_intp itemsize = PyArray_ITEMSIZE(ARRAY(args->x));
    for (npy_intp i = 0; out && i < PyArray_SIZE(ARRAY(index)); i++) {
        const char *from = PyArray_BYTES(ARRAY(args->x)) + (at[i] < 0 ? at[i] + length : at[i]) * itemsize;
        memcpy(PyArray_BYTES(ARRAY(out)) + i * itemsize, from, (size_t)itemsize);
    }
    return out;
}

KERNEL(count_nonzero, x, dim) {
    if (args->dim != Py_None || !holds_numbers(args->x, false) || PyArray_SIZE(ARRAY(args->x)) > MAX_BYTES) return FALLBACK;
    const int kind = kind_of(args->x);
    if (kind < 0 && PyArray_TYPE(ARRAY(args->x)) != NPY_BOOL) return FALLBACK;
    PyObject *out = PyArray_ZEROS(0, NULL, NPY_INT64, 0);
    const void *x = PyArray_DATA(ARRAY(args->x));
    int64_t count = 0;
    for (npy_intp i = 0; i < PyArray_SIZE(ARRAY(args->x)); i++) {
        count += kind == F32 ? ((const float *)x)[i] != 0 : kind == F64 ? ((const double *)x)[i] != 0
               : kind == I64 ? ((const int64_t *)x)[i] != 0 : ((const npy_bool *)x)[i] != 0;
    }
    if (out) *(int64_t *)PyArray_DATA(ARRAY(out)) = count;
    return out;
}

FAMILY(places, ENTRY(masked_fill), ENTRY(index_add), ENTRY(index_copy), ENTRY(index_fill), ENTRY(take), ENTRY(put),
       ENTRY(index_put), ENTRY(one_hot), ENTRY(unique2), ENTRY(taken),
       ENTRY(count_nonzero));
