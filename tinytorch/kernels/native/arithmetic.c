// Twins of kernels/arithmetic.py, and what adds a row to all of a matrix (kernels/reduce.py).

POINTWISE(addcmul, 3, 1, a[0] + a[1] * number[0] * a[2])

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, MOST_TILES = 256 };

// An array (outer, middle, inner), and another one (middle) that is spread out to its shape.
typedef struct {
    const float *x, *few;
    float *out;
    Py_ssize_t outer, middle, inner, size;
    Py_ssize_t length, lines;  // of a line, which is a row or meets one number; lines of a part
    int how;
    bool turned;  // the second operand is the larger one
} Spread;

INLINE vec combine(vec x, vec y, int how, bool turned) {
    if (how == ADD) return x + y;
    if (how == MULTIPLY) return x * y;
    if (how == SUBTRACT) return turned ? y - x : x - y;
    return turned ? y / x : x / y;
}

INLINE void combine_rows(const Spread *of, Py_ssize_t begin, Py_ssize_t end, int how, bool turned) {
    const Py_ssize_t count = of->middle;
    const float *x = of->x + begin * count, *row = of->few;
    float *out = of->out + begin * count;
    for (Py_ssize_t line = begin; line < end; line++, x += count, out += count) {
        Py_ssize_t i = 0;
        for (; i + WIDTH <= count; i += WIDTH) store(out + i, combine(load(x + i), load(row + i), how, turned));
        if (i == count) continue;
        vec last = combine(load_some(x + i, count - i), load_some(row + i, count - i), how, turned);
        store_some(out + i, last, count - i);
    }
}

INLINE void combine_numbers(const Spread *of, Py_ssize_t begin, Py_ssize_t end, int how, bool turned) {
    Ends ends = ends_of(of->length);
    for (Py_ssize_t line = begin; line < end; line++) {
        const float *x = of->x + line * of->length;
        float *out = of->out + line * of->length;
        const vec number = all(of->few[line % of->middle]);
        if (of->size - line * of->length < of->length) ends = ends_of(of->size - line * of->length);
        const vec last = load_last(x, &ends);  // before it is written to, where `out` is `x`
        for (Py_ssize_t i = 0; i < ends.whole; i += WIDTH) store(out + i, combine(load(x + i), number, how, turned));
        store_last(out, combine(last, number, how, turned), &ends);
    }
}

INLINE void combine_lines(const Spread *of, Py_ssize_t block, int how, bool turned) {
    Py_ssize_t lines = (of->size + of->length - 1) / of->length, begin = block * of->lines;
    Py_ssize_t end = begin + of->lines < lines ? begin + of->lines : lines;
    if (of->inner == 1) {
        combine_rows(of, begin, end, how, turned);
    } else {
        combine_numbers(of, begin, end, how, turned);
    }
}

static void combine_part(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Spread *of = context;
    if (of->how == ADD) {
        combine_lines(of, block, ADD, false);
    } else if (of->how == MULTIPLY) {
        combine_lines(of, block, MULTIPLY, false);
    } else if (of->how == SUBTRACT) {
        of->turned ? combine_lines(of, block, SUBTRACT, true) : combine_lines(of, block, SUBTRACT, false);
    } else {
        of->turned ? combine_lines(of, block, DIVIDE, true) : combine_lines(of, block, DIVIDE, false);
    }
}

static void spread(Spread *of) {
    float tiles[MOST_TILES];
    of->size = of->outer * of->middle * of->inner;
    if (of->inner == 1 && of->middle < MOST_TILES / 4 && of->outer > 4) {  // several short rows as one
        Py_ssize_t several = MOST_TILES / of->middle < of->outer ? MOST_TILES / of->middle : of->outer;
        for (Py_ssize_t k = 0; k < several; k++) memcpy(tiles + k * of->middle, of->few, 4 * (size_t)of->middle);
        Spread rest = *of;
        rest.outer = of->outer % several;
        rest.size = rest.outer * of->middle;
        rest.x += of->size - rest.size;
        rest.out += of->size - rest.size;
        rest.length = rest.size;  // as one row
        rest.middle = rest.size;
        rest.lines = 1;
        rest.few = tiles;
        if (rest.size) combine_part(&rest, 0, 0);
        of->outer /= several;
        of->middle *= several;
        of->size -= rest.size;
        of->few = tiles;
    }
    of->length = of->inner == 1 ? of->middle : of->middle == 1 ? PART : of->inner;
    of->lines = 2 * PART / of->length + 1;
    Py_ssize_t lines = (of->size + of->length - 1) / of->length;
    tt_share(combine_part, of, (lines + of->lines - 1) / of->lines, of->size, tt_threads());
}

// See the shape of `x` as that of `few` among outer and inner dimensions, where that is so, and worth the while.
static bool see_spread(Spread *of, PyArrayObject *x, PyArrayObject *few) {
    int d = PyArray_NDIM(x), missing = d - PyArray_NDIM(few);
    of->outer = of->middle = of->inner = 1;
    if (missing < 0 || !d || !PyArray_SIZE(x)) return false;
#define OF_FEW(d) PyArray_DIM(few, (d) - 1 - missing)
    for (; d > missing && OF_FEW(d) == 1; d--) of->inner *= PyArray_DIM(x, d - 1);
    for (; d > missing && OF_FEW(d) == PyArray_DIM(x, d - 1); d--) of->middle *= PyArray_DIM(x, d - 1);
    for (; d > 0; d--) {
        if (d > missing && OF_FEW(d) != 1) return false;
        of->outer *= PyArray_DIM(x, d - 1);
    }
#undef OF_FEW
    if (of->middle == 1) {
        of->inner *= of->outer;
        of->outer = 1;
    }
    return of->inner == 1 || of->inner >= 16;
}

static PyObject *spread_call(PyObject *const *args, Py_ssize_t count, PyObject *out, int how) {
    if (count != 2 || !float_array(args[0], false) || !float_array(args[1], false)) return PASS;
    Spread of = {.how = how, .turned = PyArray_SIZE((PyArrayObject *)args[1]) > PyArray_SIZE((PyArrayObject *)args[0])};
    PyObject *larger = args[of.turned], *few = args[!of.turned];
    if (!see_spread(&of, (PyArrayObject *)larger, (PyArrayObject *)few)) return PASS;
    if (out && (out != larger || !float_array(out, true) || !apart(out, few))) return PASS;
    PyObject *result = out ? Py_NewRef(out) : PyArray_NewLikeArray((PyArrayObject *)larger, NPY_CORDER, NULL, 0);
    if (!result) return NULL;
    of.x = floats_of(larger);
    of.few = floats_of(few);
    of.out = floats_of(result);
    spread(&of);
    return result;
}

#define OF_TWO(name, how, operation)                                                                                   \
    POINTWISE(name##_alike, 2, 0, a[0] operation a[1])                                                                 \
    KERNEL(name) {                                                                                                     \
        PyObject *alike = name##_alike_call(args, count, out);                                                         \
        return alike == PASS ? spread_call(args, count, out, how) : alike;                                             \
    }

OF_TWO(add, ADD, +)
OF_TWO(subtract, SUBTRACT, -)
OF_TWO(multiply, MULTIPLY, *)
OF_TWO(divide, DIVIDE, /)

KERNEL(add_to_rows) {
    if (out || count != 2 || !float_array(args[0], true) || !float_array(args[1], false) || !apart(args[0], args[1])) {
        return PASS;
    }
    PyArrayObject *x = (PyArrayObject *)args[0], *row = (PyArrayObject *)args[1];
    if (PyArray_NDIM(x) != 2 || PyArray_NDIM(row) != 1 || PyArray_DIM(row, 0) != PyArray_DIM(x, 1) || !PyArray_SIZE(x)) {
        return PASS;
    }
    Spread of = {.how = ADD, .x = floats_of(args[0]), .few = floats_of(args[1]), .out = floats_of(args[0])};
    of.outer = PyArray_DIM(x, 0);
    of.middle = PyArray_DIM(x, 1);
    of.inner = 1;
    spread(&of);
    return nothing();
}
