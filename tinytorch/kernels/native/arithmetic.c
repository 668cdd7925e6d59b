// Twins of kernels/arithmetic.py, and `add_to_rows` of kernels/reduce.py: operations of two arrays, one of which may
// broadcast to the other's shape.
#include "helpers.h"

POINTWISE(addcmul, (x, a, b), (value), x + a * (float)value * b)

typedef enum { ADD, SUBTRACT, MULTIPLY, DIVIDE } Operation;

enum {
    REPEATED_ROW = 256,  // floats of a row that is made of several short ones
    MIN_INNER = 16,      // shorter runs that meet one number each are left to NumPy
    MAX_SHORT_ROW = REPEATED_ROW / 4,
};

// An operation of an array of shape (outer, middle, inner) and a smaller one of shape (middle), which broadcasts.
// Either inner is 1, and each line is a row that meets the whole small array; or each line of `inner` elements meets
// one number.
typedef struct {
    const float *x, *small;
    float *out;
    Py_ssize_t outer, middle, inner, size;
    Py_ssize_t line, lines_per_part;  // the length of a line
    Operation operation;
    bool swapped;  // the small array is the first operand
} Broadcast;

INLINE vec combine(vec x, vec y, Operation operation, bool swapped) {
    if (operation == ADD) return x + y;
    if (operation == MULTIPLY) return x * y;
    if (operation == SUBTRACT) return swapped ? y - x : x - y;
    return swapped ? y / x : x / y;
}

INLINE void combine_rows(const Broadcast *b, Py_ssize_t begin, Py_ssize_t end, Operation operation, bool swapped) {
    const Py_ssize_t count = b->middle;
    const float *x = b->x + begin * count, *row = b->small;
    float *out = b->out + begin * count;
    for (Py_ssize_t line = begin; line < end; line++, x += count, out += count) {
        Py_ssize_t i = 0;
        for (; i + WIDTH <= count; i += WIDTH) store(out + i, combine(load(x + i), load(row + i), operation, swapped));
        if (i == count) continue;
        vec last = combine(load_partial(x + i, count - i), load_partial(row + i, count - i), operation, swapped);
        store_partial(out + i, last, count - i);
    }
}

INLINE void combine_numbers(const Broadcast *b, Py_ssize_t begin, Py_ssize_t end, Operation operation, bool swapped) {
    Tail tail = tail_of(b->line);
    for (Py_ssize_t line = begin; line < end; line++) {
        const float *x = b->x + line * b->line;
        float *out = b->out + line * b->line;
        const vec number = broadcast(b->small[line % b->middle]);
        if (b->size - line * b->line < b->line) tail = tail_of(b->size - line * b->line);
        const vec last = load_tail(x, &tail);  // read before the body is written: `out` may be `x`
        for (Py_ssize_t i = 0; i < tail.body; i += WIDTH) {
            store(out + i, combine(load(x + i), number, operation, swapped));
        }
        store_tail(out, combine(last, number, operation, swapped), &tail);
    }
}

INLINE void combine_lines(const Broadcast *b, Py_ssize_t part, Operation operation, bool swapped) {
    Py_ssize_t begin = part * b->lines_per_part, end = imin(begin + b->lines_per_part, ceil_div(b->size, b->line));
    if (b->inner == 1) {
        combine_rows(b, begin, end, operation, swapped);
    } else {
        combine_numbers(b, begin, end, operation, swapped);
    }
}

// (The constants let the compiler write a loop for each operation.)
static void combine_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Broadcast *b = context;
    if (b->operation == ADD) {
        combine_lines(b, part, ADD, false);
    } else if (b->operation == MULTIPLY) {
        combine_lines(b, part, MULTIPLY, false);
    } else if (b->operation == SUBTRACT) {
        b->swapped ? combine_lines(b, part, SUBTRACT, true) : combine_lines(b, part, SUBTRACT, false);
    } else {
        b->swapped ? combine_lines(b, part, DIVIDE, true) : combine_lines(b, part, DIVIDE, false);
    }
}

static void run_broadcast(Broadcast *b) {
    float repeated[REPEATED_ROW];
    b->size = b->outer * b->middle * b->inner;
    if (b->inner == 1 && b->middle < MAX_SHORT_ROW && b->outer > 4) {  // treat several short rows as one
        Py_ssize_t rows = imin(REPEATED_ROW / b->middle, b->outer);
        for (Py_ssize_t k = 0; k < rows; k++) memcpy(repeated + k * b->middle, b->small, 4 * (size_t)b->middle);
        Broadcast rest = *b;  // the rows at the end, fewer than `rows`, are one row
        rest.outer = b->outer % rows;
        rest.size = rest.outer * b->middle;
        rest.x += b->size - rest.size;
        rest.out += b->size - rest.size;
        rest.line = rest.middle = rest.size;
        rest.lines_per_part = 1;
        rest.small = repeated;
        if (rest.size) combine_part(&rest, 0, 0);
        b->outer /= rows;
        b->middle *= rows;
        b->size -= rest.size;
        b->small = repeated;
    }
    b->line = b->inner == 1 ? b->middle : b->middle == 1 ? PART_SIZE : b->inner;
    b->lines_per_part = 2 * PART_SIZE / b->line + 1;
    Py_ssize_t parts = ceil_div(ceil_div(b->size, b->line), b->lines_per_part);
    tt_parallel_for(combine_part, b, parts, b->size, tt_threads());
}

// View the shape of `x` as (outer, middle, inner), where `small` has the shape of the middle dimensions (and 1 in the
// others). False if its shape is another one, or if NumPy is as fast.
static bool read_shapes(Broadcast *b, PyArrayObject *x, PyArrayObject *small) {
    int d = PyArray_NDIM(x), missing = d - PyArray_NDIM(small);
    b->outer = b->middle = b->inner = 1;
    if (missing < 0 || !d || !PyArray_SIZE(x)) return false;
#define SMALL_DIM(d) PyArray_DIM(small, (d) - 1 - missing)
    for (; d > missing && SMALL_DIM(d) == 1; d--) b->inner *= PyArray_DIM(x, d - 1);
    for (; d > missing && SMALL_DIM(d) == PyArray_DIM(x, d - 1); d--) b->middle *= PyArray_DIM(x, d - 1);
    for (; d > 0; d--) {
        if (d > missing && SMALL_DIM(d) != 1) return false;
        b->outer *= PyArray_DIM(x, d - 1);
    }
#undef SMALL_DIM
    if (b->middle == 1) {
        b->inner *= b->outer;
        b->outer = 1;
    }
    return b->inner == 1 || b->inner >= MIN_INNER;
}

static PyObject *broadcast_call(PyObject *x1, PyObject *x2, PyObject *out, Operation operation) {
    if (!is_float_array(x1, false) || !is_float_array(x2, false)) return FALLBACK;
    Broadcast b = {.operation = operation, .swapped = PyArray_SIZE(ARRAY(x2)) > PyArray_SIZE(ARRAY(x1))};
    PyObject *large = b.swapped ? x2 : x1, *small = b.swapped ? x1 : x2;
    if (!read_shapes(&b, ARRAY(large), ARRAY(small))) return FALLBACK;
    bool has_out = out != Py_None;
    if (has_out && (out != large || !is_float_array(out, true) || !disjoint(out, small))) return FALLBACK;
    PyObject *result = has_out ? Py_NewRef(out) : new_like(large);
    if (!result) return NULL;
    b.x = float_data(large);
    b.small = float_data(small);
    b.out = float_data(result);
    run_broadcast(&b);
    return result;
}

#define BINARY(name, operation, operator)                                                                              \
    POINTWISE_BLOCK(name, (x1, x2), (), x1 operator x2)                                                                \
    KERNEL(name, x1, x2, out) {                                                                                        \
        PyObject *result = tt_pointwise(&args->x1, 2, 0, args->out, name##_block);                                     \
        return result == FALLBACK ? broadcast_call(args->x1, args->x2, args->out, operation) : result;                 \
    }

BINARY(add, ADD, +)
BINARY(subtract, SUBTRACT, -)
BINARY(multiply, MULTIPLY, *)
BINARY(divide, DIVIDE, /)

KERNEL(add_to_rows, out, row) {
    if (!is_float_array(args->out, true) || !is_float_array(args->row, false) || !disjoint(args->out, args->row)) {
        return FALLBACK;
    }
    PyArrayObject *x = ARRAY(args->out), *row = ARRAY(args->row);
    if (PyArray_NDIM(x) != 2 || PyArray_NDIM(row) != 1 || PyArray_DIM(row, 0) != PyArray_DIM(x, 1) ||
        !PyArray_SIZE(x)) {
        return FALLBACK;
    }
    Broadcast b = {
        .operation = ADD, .x = float_data(args->out), .small = float_data(args->row), .out = float_data(args->out)};
    b.outer = PyArray_DIM(x, 0);
    b.middle = PyArray_DIM(x, 1);
    b.inner = 1;
    run_broadcast(&b);
    Py_RETURN_NONE;
}

// A square of a small array: other exponents, and larger arrays, are NumPy's.
KERNEL(power, a, b) {
    double exponent;
    if (!is_float_array(args->a, false) || !tt_read_double(args->b, &exponent) || exponent != 2) return FALLBACK;
    const Py_ssize_t size = PyArray_SIZE(ARRAY(args->a));
    if (size > 1 << 15) return FALLBACK;
    PyObject *result = PyArray_SimpleNew(PyArray_NDIM(ARRAY(args->a)), PyArray_DIMS(ARRAY(args->a)), NPY_FLOAT);
    if (!result) return NULL;
    const float *from = float_data(args->a);
    float *to = float_data(result);
    for (Py_ssize_t i = 0; i < size; i++) to[i] = from[i] * from[i];
    return result;
}

POINTWISE(sign, (a), (), where(a > 0, broadcast(1), where(a < 0, broadcast(-1), broadcast(0))))

// (NaN stays, and the upper bound wins.)
INLINE vec clamped(vec x, vec low, vec high) {
    x = where(x < low, low, x);
    return where(x > high, high, x);
}
POINTWISE_BLOCK(clamp, (x), (min, max), clamped(x, broadcast((float)min), broadcast((float)max)))

// Bounds may be None.
SMALL_KERNEL(clamp, x, min, max) {
    static PyObject *lowest, *highest;
    if (!lowest) lowest = PyFloat_FromDouble(-INFINITY);
    if (!highest) highest = PyFloat_FromDouble(INFINITY);
    PyObject *low = args->min == Py_None ? lowest : args->min, *high = args->max == Py_None ? highest : args->max;
    PyObject *given[] = {args->x, low, high};
    for (int i = 1; i < 3; i++) {
        double bound;
        if (!given[i] || !tt_read_double(given[i], &bound)) return FALLBACK;
        if (given[i] == args->min || given[i] == args->max) {
            if (!(fabs(bound) < 1e38)) return FALLBACK;  // (an error, or NaN)
        }
    }
    return tt_pointwise(given, 1, 2, Py_None, clamp_block);
}

FAMILY(arithmetic, ENTRY(addcmul), ENTRY(sign), ENTRY(add), ENTRY(subtract), ENTRY(multiply), ENTRY(divide),
       ENTRY(add_to_rows), ENTRY(power), ENTRY(clamp));
