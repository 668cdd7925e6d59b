// Twins of `few` in kernels/sort.py (the k first elements of each row in sorted order, by insertion in one pass) and of
// `search` there, of the medians in kernels/statistics.py, and of the extremes of small arrays in kernels/reduce.py.
#include "helpers.h"

enum { MAX_KEPT = 256, ELEMENTS_PER_PART = 1 << 15, SEARCHES_PER_PART = 1 << 12, MAX_RANKED = 1 << 12 };

typedef struct {
    const float *x;
    float *values;
    int64_t *indices;
    int64_t rows, length, kept;
    bool largest;
} TopK;

// True if x is sorted before y. NaN counts as the largest number; ties keep their order.
INLINE bool comes_before(float x, float y, bool largest) {
    return largest ? x > y || (x != x && y == y) : x < y || (x == x && y != y);
}

// Skip elements from `i` on, a few vectors at a time, while none of them comes before `last`.
INLINE int64_t skip(const float *x, int64_t i, int64_t length, float last, bool largest) {
    for (; i + UNROLLED_WIDTH <= length; i += UNROLLED_WIDTH) {
        ints before = {0};
        for (int j = 0; j < UNROLL; j++) {
            vec v = load(x + i + j * WIDTH), other = broadcast(last);
            before |= largest ? (v > other) | (v != v) : (v < other) | (other != other);
        }
        int32_t lanes[WIDTH], any = 0;
        memcpy(lanes, &before, sizeof lanes);
        for (int j = 0; j < WIDTH; j++) any |= lanes[j];
        if (any) break;
    }
    return i;
}

static void few_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const TopK *t = context;
    int64_t rows = ceil_div(ELEMENTS_PER_PART, t->length), begin = part * rows, end = imin(begin + rows, t->rows);
    for (int64_t row = begin; row < end; row++) {
        const float *x = t->x + row * t->length;
        float *values = t->values + row * t->kept;
        int64_t *indices = t->indices + row * t->kept, count = 0;
        for (int64_t i = 0; i < t->length;) {
            if (count == t->kept) i = skip(x, i, t->length, values[count - 1], t->largest);
            int64_t stop = imin(i + UNROLLED_WIDTH, t->length);
            for (; i < stop; i++) {
                int64_t place = count;
                if (count == t->kept) {
                    if (!comes_before(x[i], values[count - 1], t->largest)) continue;
                    place--;
                } else count++;
                for (; place && comes_before(x[i], values[place - 1], t->largest); place--) {
                    values[place] = values[place - 1];
                    indices[place] = indices[place - 1];
                }
                values[place] = x[i];
                indices[place] = i;
            }
        }
    }
}

KERNEL(few, x, k, largest) {
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    int dims = PyArray_NDIM(x);
    Py_ssize_t kept = read_int(args->k);
    if (dims < 1 || kept < 1 || kept > MAX_KEPT || kept > PyArray_DIM(x, dims - 1)) return FALLBACK;
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(x), sizeof(npy_intp) * (size_t)dims);
    TopK t = {.x = PyArray_DATA(x), .length = shape[dims - 1], .kept = kept};
    t.largest = PyObject_IsTrue(args->largest) == 1;
    t.rows = PyArray_SIZE(x) / t.length;
    shape[dims - 1] = kept;
    PyObject *values = PyArray_SimpleNew(dims, shape, NPY_FLOAT), *indices = PyArray_SimpleNew(dims, shape, NPY_INT64);
    if (values && indices) {
        t.values = float_data(values);
        t.indices = PyArray_DATA(ARRAY(indices));
        int64_t parts = ceil_div(t.rows, ceil_div(ELEMENTS_PER_PART, t.length));
        tt_parallel_for(few_part, &t, parts, t.rows * t.length, tt_threads());
    }
    return new_tuple(2, (PyObject *[]){values, indices});
}

// The median ------------------------------------------------------------------------------------

// As `std::nth_element` of the GNU library does it: of equal numbers PyTorch's median has the index that this leaves in
// the middle. NaN counts as the largest number.
INLINE bool is_less(const float *x, int64_t stride, int64_t i, int64_t j) {
    const float a = x[i * stride], b = x[j * stride];
    return a < b || (a == a && b != b);
}

INLINE void swap(int64_t *i, int64_t *j) {
    const int64_t other = *i;
    *i = *j;
    *j = other;
}

#define LESS(i, j) is_less(x, stride, i, j)

// Sort so that the index of the element number `nth` is in its place. False where the numbers lie so that this would
// take more than a few passes.
COMPACT static bool select_index(const float *x, int64_t stride, int64_t *index, int64_t count, int64_t nth) {
    int64_t *first = index, *last = index + count, *const middle = index + nth;
    int rounds = 2 * (63 - __builtin_clzll((uint64_t)count));
    while (last - first > 3) {
        if (!rounds--) return false;
        int64_t *a = first + 1, *b = first + (last - first) / 2, *c = last - 1;
        if (LESS(*a, *b)) swap(first, LESS(*b, *c) ? b : LESS(*a, *c) ? c : a);
        else swap(first, LESS(*a, *c) ? a : LESS(*b, *c) ? c : b);
        int64_t *left = first + 1, *right = last;
        const int64_t pivot = *first;
        for (;; swap(left++, right)) {
            while (LESS(*left, pivot)) left++;
            for (right--; LESS(pivot, *right);) right--;
            if (left >= right) break;
        }
        if (left <= middle) first = left;
        else last = left;
    }
    for (int64_t *i = first + 1; i < last; i++) {
        for (int64_t *j = i; j > first && LESS(*j, j[-1]); j--) swap(j, j - 1);
    }
    return true;
}
#undef LESS

// The index of the median of a row; -1 where the selection is left to NumPy. `scratch` has room for a row of indices.
COMPACT static int64_t median_of(const float *x, int64_t stride, int64_t length, bool skip_nan, int64_t *scratch) {
    int64_t numbers = 0, nan = -1;
    for (int64_t i = 0; i < length; i++) {
        const float value = x[i * stride];
        scratch[i] = i;
        numbers += value == value;
        if (value != value && nan < 0) nan = i;
    }
    if (nan >= 0 && !skip_nan) return nan;
    const int64_t middle = imax((skip_nan ? numbers : length) - 1, 0) / 2;
    return select_index(x, stride, scratch, length, middle) ? scratch[middle] : -1;
}

COMPACT static PyObject *medians(PyObject *x, PyObject *dim, PyObject *keepdim, PyObject *skip_nan, bool indexed) {
    Reduction r;
    // (NumPy sorts indices by vectors, which is faster where there are many.)
    if (!tt_is_float32(x) || !read_reduction(x, dim, keepdim, &r)) return FALLBACK;
    if (PyArray_SIZE(ARRAY(x)) > MAX_RANKED) return FALLBACK;
    const bool skips = PyObject_IsTrue(skip_nan) == 1;
    PyObject *values = new_reduced(&r, NPY_FLOAT), *indices = indexed ? new_reduced(&r, NPY_INT64) : NULL;
    int64_t *scratch = malloc(sizeof(int64_t) * (size_t)r.count), at = 0;
    const bool room = values && scratch && (indices || !indexed);
    for (int64_t row = 0; room && at >= 0 && row < r.before * r.after; row++) {
        const float *from = ROW(r, float_data(x), row);
        at = median_of(from, r.after, r.count, skips, scratch);
        // (Which of equal elements PyTorch takes is known of NumPy's selection.)
        for (int64_t i = 0; indexed && at >= 0 && i < r.count; i++) {
            if (i != at && from[i * r.after] == from[at * r.after]) at = -1;
        }
        if (at >= 0) float_data(values)[row] = from[at * r.after];
        if (indexed) ((int64_t *)PyArray_DATA(ARRAY(indices)))[row] = at;
    }
    free(scratch);
    if (room && at >= 0) return indexed ? new_tuple(2, (PyObject *[]){values, indices}) : values;
    Py_XDECREF(values);
    Py_XDECREF(indices);
    return room ? FALLBACK : PyErr_NoMemory();
}

KERNEL(median_dim, x, dim, keepdim, skip_nan) {
    if (!PyLong_CheckExact(args->dim)) return FALLBACK;
    return medians(args->x, args->dim, args->keepdim, args->skip_nan, true);
}

KERNEL(median_all, x, skip_nan) { return medians(args->x, Py_None, Py_False, args->skip_nan, false); }

// Extremes --------------------------------------------------------------------------------------

// The extreme of each row, and its index, of equal ones the first: a NaN, if there is one.
#define EXTREMES(type)                                                                                                \
    COMPACT static void extremes_##type(const Reduction *r, const type *x, bool largest, type *values,                 \
                                        int64_t *indices) {                                                            \
        EACH_ROW(*r, row) {                                                                                            \
            const type *from = ROW(*r, x, row);                                                                        \
            type best = *from;                                                                                         \
            int64_t at = 0;                                                                                            \
            for (int64_t i = 1; i < r->count && best == best; i++) {                                                   \
                const type value = from[i * r->after];                                                                 \
                if (value != value || (largest ? value > best : value < best)) {                                       \
                    best = value;                                                                                      \
                    at = i;                                                                                            \
                }                                                                                                      \
            }                                                                                                          \
            values[row] = best;                                                                                        \
            if (indices) indices[row] = at;                                                                            \
        }                                                                                                              \
    }
EXTREMES(float)
EXTREMES(double)
EXTREMES(int64_t)

// The extremes of a small array, and with `indexed` their indices. (NumPy's loops are faster where they are long.)
COMPACT static PyObject *extremes(PyObject *x, PyObject *dim, PyObject *keepdim, bool largest, bool indexed) {
    Reduction r;
    if (!read_reduction(x, dim, keepdim, &r) || PyArray_SIZE(ARRAY(x)) > MAX_RANKED) return FALLBACK;
    const int type = PyArray_TYPE(ARRAY(x));
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64) return FALLBACK;
    PyObject *values = new_reduced(&r, type), *indices = indexed ? new_reduced(&r, NPY_INT64) : NULL;
    const void *from = PyArray_DATA(ARRAY(x));
    if (values && (indices || !indexed)) {
        void *to = PyArray_DATA(ARRAY(values));
        int64_t *places = indexed ? PyArray_DATA(ARRAY(indices)) : NULL;
        if (type == NPY_FLOAT) extremes_float(&r, from, largest, to, places);
        else if (type == NPY_DOUBLE) extremes_double(&r, from, largest, to, places);
        else extremes_int64_t(&r, from, largest, to, places);
    }
    return indexed ? new_tuple(2, (PyObject *[]){values, indices}) : values;
}

KERNEL(max_all, x) { return extremes(args->x, Py_None, Py_False, true, false); }
KERNEL(min_all, x) { return extremes(args->x, Py_None, Py_False, false, false); }
KERNEL(amax, x, dim, keepdim) { return extremes(args->x, args->dim, args->keepdim, true, false); }
KERNEL(amin, x, dim, keepdim) { return extremes(args->x, args->dim, args->keepdim, false, false); }
KERNEL(max_dim, x, dim, keepdim) { return extremes(args->x, args->dim, args->keepdim, true, true); }
KERNEL(min_dim, x, dim, keepdim) { return extremes(args->x, args->dim, args->keepdim, false, true); }

// Places in sorted rows -------------------------------------------------------------------------

typedef struct {
    const float *sequence, *values;
    int64_t *out;
    int64_t length, row, size;  // of a row of the sequence, of one of the values, and of all values
    bool right;
} Search;

static void search_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Search *s = context;
    const int64_t last = imin((part + 1) * SEARCHES_PER_PART, s->size);
    for (int64_t i = part * SEARCHES_PER_PART; i < last; i++) {
        const float *from = s->sequence + i / s->row * s->length, value = s->values[i];
        int64_t begin = 0, end = s->length;
        while (begin < end) {  // (NaN is greater than all numbers as a value, and less in the sequence)
            const int64_t middle = (begin + end) / 2;
            if (s->right ? !(from[middle] > value) : !(from[middle] >= value)) begin = middle + 1;
            else end = middle;
        }
        s->out[i] = begin;
    }
}

KERNEL(search, sorted_sequence, values, right) {
    if (!is_float_array(args->sorted_sequence, false) || !is_float_array(args->values, false)) return FALLBACK;
    PyArrayObject *sequence = ARRAY(args->sorted_sequence), *values = ARRAY(args->values);
    const int dims = PyArray_NDIM(sequence);
    if (dims < 1 || (dims > 1 && dims != PyArray_NDIM(values))) return FALLBACK;
    Search s = {.sequence = PyArray_DATA(sequence), .values = PyArray_DATA(values), .size = PyArray_SIZE(values)};
    s.length = PyArray_DIM(sequence, dims - 1);
    s.row = dims > 1 ? PyArray_DIM(values, dims - 1) : imax(s.size, 1);
    s.right = PyObject_IsTrue(args->right) == 1;
    PyObject *result = PyArray_SimpleNew(PyArray_NDIM(values), PyArray_DIMS(values), NPY_INT64);
    if (!result) return NULL;
    s.out = PyArray_DATA(ARRAY(result));
    tt_parallel_for(search_part, &s, ceil_div(s.size, SEARCHES_PER_PART), 8 * s.size, tt_threads());
    return result;
}

FAMILY(sorting, ENTRY(few), ENTRY(median_dim), ENTRY(median_all), ENTRY(search), ENTRY(max_all), ENTRY(min_all),
       ENTRY(amax), ENTRY(amin), ENTRY(max_dim), ENTRY(min_dim));
