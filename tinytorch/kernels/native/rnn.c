// Twins of kernels/rnn.py: what a step does with its gates beside the products. Matrices have the features before the
// batch, and lie in one piece, so that rows need not fill vectors; those that do not are written from a piece that does.

enum { CHUNK = 1024 };  // elements at a time: they stay in the cache until they are copied

typedef struct {
    float *data;
    Py_ssize_t stride;
} Matrix;

typedef struct {
    float *gates, *before, *c, *t;
    Matrix h, out, slopes;
    Py_ssize_t size, width, chunk;
} Cell;

#define ROW(matrix, row) ((matrix).data + (row) * (matrix).stride)

// Is it a matrix of rows that lie in one piece each? None is a matrix without data, if it `may_be_none`.
static bool matrix_of(PyObject *object, Py_ssize_t rows, Py_ssize_t width, bool may_be_none, Matrix *matrix) {
    PyArrayObject *array = (PyArrayObject *)object;
    matrix->data = NULL;
    if (object == Py_None) return may_be_none;
    if (!tt_float32(object) || PyArray_NDIM(array) != 2 || PyArray_DIM(array, 0) != rows || PyArray_DIM(array, 1) != width ||
        (rows && width > 1 && PyArray_STRIDE(array, 1) != 4)) {
        return false;
    }
    matrix->data = PyArray_DATA(array);
    matrix->stride = PyArray_STRIDE(array, 0) / 4;
    return true;
}

static bool piece_of(PyObject *object, Py_ssize_t rows, Py_ssize_t width, float **data) {
    Matrix matrix;
    if (!matrix_of(object, rows, width, false, &matrix) || !tt_contiguous(object)) return false;
    *data = matrix.data;
    return true;
}

static bool measure_cell(Cell *cell, PyObject *state) {
    if (!tt_float32(state) || PyArray_NDIM((PyArrayObject *)state) != 2) return false;
    cell->size = PyArray_DIM((PyArrayObject *)state, 0);
    cell->width = PyArray_DIM((PyArrayObject *)state, 1);
    // Whole rows, or one in several parts.
    cell->chunk = cell->width && cell->width < CHUNK ? CHUNK / cell->width * cell->width : CHUNK;
    return true;
}

// The blocks of a step are rows, of some chunks each.
static Py_ssize_t rows_of_block(const Cell *cell) { return 1 + (1 << 14) / (cell->width + 1); }

static PyObject *do_step(Work work, Cell *cell) {
    Py_ssize_t rows = rows_of_block(cell);
    tt_share(work, cell, cell->width ? (cell->size + rows - 1) / rows : 0, cell->size * cell->width, tt_threads());
    Py_INCREF(Py_None);
    return Py_None;
}

// The chunks of a block: `count` elements from `at` on, the first of them in column `column` of row `row`; `rows` are
// whole, or the only one has `columns`.
#define EACH_CHUNK(cell, block)                                                                                        \
    const Py_ssize_t size = (cell)->size, width = (cell)->width, whole = size * width, per = rows_of_block(cell);      \
    const Py_ssize_t stop = (block + 1) * per < size ? (block + 1) * per * width : whole;                              \
    (void)worker;                                                                                                      \
    for (Py_ssize_t at = block * per * width, count, row, column, rows, columns;                                       \
         row = at / width, column = at % width, count = width < CHUNK ? stop - at : width - column,                    \
                    count = count < (cell)->chunk ? count : (cell)->chunk, rows = width < CHUNK ? count / width : 1,   \
                    columns = width < CHUNK ? width : count, at < stop;                                                \
         at += count)

static void copy_rows(Matrix to, Py_ssize_t row, Py_ssize_t column, const float *from, Py_ssize_t rows, Py_ssize_t columns) {
    for (Py_ssize_t r = 0; r < rows; r++) memcpy(ROW(to, row + r) + column, from + r * columns, 4 * (size_t)columns);
}

INLINE vec part_of(const float *from, Py_ssize_t count) { return count >= WIDTH ? load(from) : load_some(from, count); }
INLINE void put_part(float *to, vec x, Py_ssize_t count) { count >= WIDTH ? store(to, x) : store_some(to, x, count); }

// tanh(x), to 2 ulp: near 0 x + x^3 q(x^2), with a polynomial that interpolates q at Chebyshev's points.
INLINE vec squashed(vec x) {
    vec s = x * x, far = 1 - 2 / (exp_of(x + x) + 1);
    vec q = s * -0.006269119679927826f + 0.021110959351062775f;
    q = q * s - 0.053873948752880096f;
    q = q * s + 0.13332915306091309f;
    q = q * s - 0.3333333134651184f;
    return where((x > 0.6f) | (x < -0.6f), far, q * s * x + x);
}

static void lstm_chunks(void *context, Py_ssize_t block, int worker) {
    const Cell *cell = context;
    float h[CHUNK];
    EACH_CHUNK(cell, block) {
        float *i = cell->gates + at, *f = i + whole, *o = f + whole, *n = o + whole, *c = cell->c + at, *t = cell->t + at;
        for (Py_ssize_t k = 0; k < count; k += WIDTH) {
            const Py_ssize_t left = count - k;
            vec in = 1 / (exp_of(part_of(i + k, left)) + 1), forget = 1 / (exp_of(part_of(f + k, left)) + 1);
            vec through = 1 / (exp_of(part_of(o + k, left)) + 1), fresh = squashed(part_of(n + k, left));
            vec state = forget * part_of(cell->before + at + k, left) + in * fresh, shown = squashed(state);
            put_part(i + k, in, left);
            put_part(f + k, forget, left);
            put_part(o + k, through, left);
            put_part(n + k, fresh, left);
            put_part(c + k, state, left);
            put_part(t + k, shown, left);
            put_part(h + k, through * shown, left);
        }
        if (!cell->h.data) continue;
        copy_rows(cell->h, row, column, h, rows, columns);
        for (Py_ssize_t j = 0; j < columns; j++) {
            float *to = ROW(cell->out, column + j) + row;
            for (Py_ssize_t r = 0; r < rows; r++) to[r] = h[r * columns + j];
        }
    }
}

KERNEL(lstm_cell) {
    Cell cell;
    if (count != 6 || out || !measure_cell(&cell, args[1])) return PASS;
    Py_ssize_t size = cell.size, width = cell.width;
    if (!piece_of(args[0], 4 * size, width, &cell.gates) || !piece_of(args[1], size, width, &cell.before) ||
        !piece_of(args[2], size, width, &cell.c) || !piece_of(args[3], size, width, &cell.t) ||
        !matrix_of(args[4], size, width, true, &cell.h) || !matrix_of(args[5], width, size, !cell.h.data, &cell.out)) {
        return PASS;
    }
    return do_step(lstm_chunks, &cell);
}

static void lstm_grad_chunks(void *context, Py_ssize_t block, int worker) {
    const Cell *cell = context;
    float slopes[4][CHUNK];
    EACH_CHUNK(cell, block) {
        const float *i = cell->gates + at, *f = i + whole, *o = f + whole, *n = o + whole, *t = cell->t + at;
        float *dh = cell->h.data + at, *dc = cell->c + at;
        for (Py_ssize_t j = 0; cell->out.data && j < columns; j++) {
            const float *from = ROW(cell->out, column + j) + row;
            for (Py_ssize_t r = 0; r < rows; r++) dh[r * columns + j] += from[r];
        }
        for (Py_ssize_t k = 0; k < count; k += WIDTH) {
            const Py_ssize_t left = count - k;
            vec in = part_of(i + k, left), forget = part_of(f + k, left), through = part_of(o + k, left);
            vec fresh = part_of(n + k, left), shown = part_of(t + k, left), of_h = part_of(dh + k, left);
            vec of_c = part_of(dc + k, left) + of_h * through * (1 - shown * shown);
            put_part(slopes[0] + k, of_c * fresh * in * (1 - in), left);
            put_part(slopes[1] + k, of_c * part_of(cell->before + at + k, left) * forget * (1 - forget), left);
            put_part(slopes[2] + k, of_c * in * (1 - fresh * fresh), left);
            put_part(slopes[3] + k, of_h * shown * through * (1 - through), left);
            put_part(dc + k, of_c * forget, left);
        }
        for (int gate = 0; gate < 4; gate++) copy_rows(cell->slopes, gate * size + row, column, slopes[gate], rows, columns);
    }
}

KERNEL(lstm_cell_grad) {
    Cell cell;
    if (count != 7 || out || !measure_cell(&cell, args[1])) return PASS;
    Py_ssize_t size = cell.size, width = cell.width;
    if (!piece_of(args[0], 4 * size, width, &cell.gates) || !piece_of(args[1], size, width, &cell.before) ||
        !piece_of(args[2], size, width, &cell.t) || !matrix_of(args[3], width, size, true, &cell.out) ||
        !piece_of(args[4], size, width, &cell.h.data) || !piece_of(args[5], size, width, &cell.c) ||
        !matrix_of(args[6], 4 * size, width, false, &cell.slopes)) {
        return PASS;
    }
    return do_step(lstm_grad_chunks, &cell);
}
