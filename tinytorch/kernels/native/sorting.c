// Twin of `few` in kernels/sort.py: the k first elements of each row in sorted order, by insertion in one pass.
#include "helpers.h"

enum { MAX_KEPT = 256, ELEMENTS_PER_PART = 1 << 15 };

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

FAMILY(sorting, ENTRY(few));
