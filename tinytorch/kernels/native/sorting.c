// Twin of `few` in kernels/indexing.py: what comes first in rows, kept in order while a row is read once.

enum { MOST_KEPT = 256, ROWS_AT_ONCE = 1 << 15 };

typedef struct {
    const float *x;
    float *values;
    int64_t *indices;
    int64_t rows, length, kept;
    bool largest;
} Few;

// Does x come before y? NaN counts as the largest, and ties keep their order.
INLINE bool comes_before(float x, float y, bool largest) {
    return largest ? x > y || (x != x && y == y) : x < y || (x == x && y != y);
}

// From `i` on, where the first element may be that comes before `last`.
INLINE int64_t skip(const float *x, int64_t i, int64_t length, float last, bool largest) {
    for (; i + ABREAST <= length; i += ABREAST) {
        ints found = {0};
        for (int j = 0; j < TOGETHER; j++) {
            vec v = load(x + i + j * WIDTH), other = all(last);
            found |= largest ? (v > other) | (v != v) : (v < other) | (other != other);
        }
        int32_t lanes[WIDTH], any = 0;
        memcpy(lanes, &found, sizeof lanes);
        for (int j = 0; j < WIDTH; j++) any |= lanes[j];
        if (any) break;
    }
    return i;
}

static void few_rows(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Few *f = context;
    int64_t step = over(ROWS_AT_ONCE, f->length), begin = block * step, end = least(begin + step, f->rows);
    for (int64_t row = begin; row < end; row++) {
        const float *x = f->x + row * f->length;
        float *values = f->values + row * f->kept;
        int64_t *indices = f->indices + row * f->kept, count = 0;
        for (int64_t i = 0; i < f->length;) {
            if (count == f->kept) i = skip(x, i, f->length, values[count - 1], f->largest);
            int64_t until = least(i + ABREAST, f->length);
            for (; i < until; i++) {
                int64_t place = count;
                if (count == f->kept) {
                    if (!comes_before(x[i], values[count - 1], f->largest)) continue;
                    place--;
                } else count++;
                for (; place && comes_before(x[i], values[place - 1], f->largest); place--) {
                    values[place] = values[place - 1];
                    indices[place] = indices[place - 1];
                }
                values[place] = x[i];
                indices[place] = i;
            }
        }
    }
}

KERNEL(few) {
    if (count != 3 || out || !tt_float32(args[0]) || !tt_contiguous(args[0])) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int dims = PyArray_NDIM(x);
    Py_ssize_t kept = int_of(args[1]);
    if (dims < 1 || kept < 1 || kept > MOST_KEPT || kept > PyArray_DIM(x, dims - 1)) return PASS;
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(x), sizeof(npy_intp) * (size_t)dims);
    Few f = {.x = PyArray_DATA(x), .length = shape[dims - 1], .kept = kept, .largest = PyObject_IsTrue(args[2]) == 1};
    f.rows = PyArray_SIZE(x) / f.length;
    shape[dims - 1] = kept;
    PyObject *values = PyArray_SimpleNew(dims, shape, NPY_FLOAT), *indices = PyArray_SimpleNew(dims, shape, NPY_INT64);
    PyObject *both = values && indices ? PyTuple_Pack(2, values, indices) : NULL;
    if (both) {
        f.values = floats_of(values);
        f.indices = PyArray_DATA((PyArrayObject *)indices);
        tt_share(few_rows, &f, over(f.rows, over(ROWS_AT_ONCE, f.length)), f.rows * f.length, tt_threads());
    }
    Py_XDECREF(values);
    Py_XDECREF(indices);
    return both;
}
