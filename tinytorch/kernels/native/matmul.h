// Products of matrices, which are read as they lie in memory.
//
// The result is computed in register tiles: a few rows of one factor, x, whose numbers are broadcast, times a panel of
// the other factor, y, which is a few columns wide and is read as vectors. A panel is read in place where few rows
// meet it; otherwise it is packed, i.e. copied or transposed into contiguous memory. Where transposing the other factor
// costs less, the transposed product is computed, and its tiles are transposed into the result.
//
// In large products threads pack all panels first, and then take the same number of tiles each; in small ones, and
// where there are many matrices, each thread packs the panels that it needs. Where the rows of x are columns in memory
// and x is large, x is packed first, too.
//
// An element's sum is the same however the work is cut, so the parts may depend on the number of threads.
#ifndef TINYTORCH_MATMUL_H
#define TINYTORCH_MATMUL_H

#include "epilogues.h"

enum {
    FEW_ROWS = 24,             // panels that meet fewer rows are read in place
    MANY_MATRICES = 4,         // from this number of matrices per thread on, threads pack their own panels
    PANELS_PER_THREAD = 4,     // fewer panels are cut into bands of rows, so that all threads have work
    PARTS_PER_THREAD = 16,     // of a product whose panels are packed already: small parts balance the load
    THREAD_WORK = 1 << 19,     // multiplications that are worth another thread
    PACK_FIRST = 1 << 21,      // multiplications from which on all panels are packed first
    CACHED_COLUMNS = 1 << 20,  // elements of x from which on its columns do not stay in the cache, and x is packed
    CONFLICTS = 1 << 8,        // columns of x that are multiples of this apart share a few lines of the cache: x is packed
    MAX_PACKED = 1 << 24,      // floats that are packed first at most
    PREFETCH_DISTANCE = 8,     // terms of a sum
    MIN_MATRIX = 1 << 11,      // multiplications of one matrix below which NumPy is faster
    MAX_DEPTH = 1 << 12,       // terms of a sum that are added at a time: the rows of a panel stay in the cache
    MAX_LEADING = 4,           // leading dimensions of a stack of matrices
};

// The rows of a tile of a product: at most WIDTH, since tiles are transposed WIDTH rows at a time.
#define PRODUCT_ROWS (TILE_ROWS < WIDTH ? TILE_ROWS : WIDTH)

// A stack of matrices, with its strides in elements.
typedef struct {
    float *data;
    int64_t leading_stride[MAX_LEADING], row_stride, column_stride;
    int64_t leading[MAX_LEADING], rows, columns;
} Matrices;

// The triangle of a product that need not be computed: the upper triangle of the result; or the zeros of the first
// factor in its upper triangle (LOWER_FACTOR) or its lower one (UPPER_FACTOR).
typedef enum { FULL, LOWER_RESULT, LOWER_FACTOR, UPPER_FACTOR } Triangle;

typedef struct {
    Matrices x, y, result;     // x is read as numbers, y as vectors
    const float *bias;         // one number per column of the result, or NULL
    const Epilogue *epilogue;  // or NULL
    const float *residual;     // an array like the result, or NULL; only with an epilogue
    Triangle triangle;
    int64_t diagonal;  // the column of the first row's diagonal element
    bool transposed;   // x and y are the transposed factors in reverse order: tiles are transposed into the result
    bool in_place;     // panels of y are not packed
    int64_t matrices, panels, vectors;   // per matrix, per panel: the last panel may have fewer vectors
    int64_t bands, bands_per_part;       // a band is WIDTH rows of one panel of the result
    float *packed_panels, *packed_rows;  // all panels of y, and x by groups of rows, if they are packed first
    float *scratch;
    int64_t scratch_size;  // per worker
} Product;

static inline Matrices matrix(float *data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    return (Matrices){data, {0}, row_stride, column_stride, {1, 1, 1, 1}, rows, columns};
}

static inline Matrices transposed(Matrices m) {
    Matrices t = m;
    t.rows = m.columns, t.columns = m.rows, t.row_stride = m.column_stride, t.column_stride = m.row_stride;
    return t;
}

// The offset of matrix number `index` of a stack.
static inline int64_t matrix_offset(const Matrices *m, int64_t index) {
    int64_t offset = 0;
    for (int d = MAX_LEADING; d--; index /= m->leading[d]) offset += index % m->leading[d] * m->leading_stride[d];
    return offset;
}

static inline float *matrix_data(const Matrices *m, int64_t index) {
    return index ? m->data + matrix_offset(m, index) : m->data;
}

// View an array of elements of any size as a stack of matrices; false if it has too few or too many dimensions.
static inline bool view_as_matrices(PyArrayObject *array, Matrices *m) {
    int leading = PyArray_NDIM(array) - 2, size = (int)PyArray_ITEMSIZE(array);
    if (leading < 0 || leading > MAX_LEADING) return false;
    m->data = PyArray_DATA(array);
    for (int d = 0; d < MAX_LEADING; d++) {
        bool exists = d >= MAX_LEADING - leading;
        m->leading[d] = exists ? PyArray_DIM(array, d - MAX_LEADING + leading) : 1;
        m->leading_stride[d] = exists ? PyArray_STRIDE(array, d - MAX_LEADING + leading) / size : 0;
    }
    m->rows = PyArray_DIM(array, leading);
    m->columns = PyArray_DIM(array, leading + 1);
    m->row_stride = PyArray_STRIDE(array, leading) / size;
    m->column_stride = PyArray_STRIDE(array, leading + 1) / size;
    return true;
}

// Read a float32 array as a stack of matrices.
static inline bool read_matrices(PyObject *object, Matrices *m) {
    return tt_is_float32(object) && view_as_matrices(ARRAY(object), m);
}

// Packing ---------------------------------------------------------------------------------------

// Pack a panel where each column of y is contiguous. `stride` is that of the panel's rows.
static void pack_transposed(const Matrices *y, const float *from, int64_t columns, int64_t stride, float *panel) {
    for (int64_t j = 0; j < stride; j += WIDTH, from += WIDTH * y->column_stride) {
        for (int64_t k = 0; k < y->rows; k += WIDTH) {
            int64_t left = imin(WIDTH, y->rows - k);
            vec block[WIDTH];
            for (int i = 0; i < WIDTH; i++) {
                const float *column = from + i * y->column_stride + k;
                block[i] = j + i >= columns ? (vec){0} : left == WIDTH ? load(column) : load_partial(column, left);
            }
            transpose(block);
            for (int64_t i = 0; i < left; i++) store(panel + (k + i) * stride + j, block[i]);
        }
    }
}

static void pack_copied(const Matrices *y, const float *from, int64_t columns, int64_t stride, float *panel) {
    for (int64_t k = 0; k < y->rows; k++, panel += stride, from += y->row_stride) {
        if (y->column_stride == 1) copy_floats(panel, from, columns);
        else
            for (int64_t j = 0; j < columns; j++) panel[j] = from[j * y->column_stride];
        for (int64_t j = columns; j < stride; j++) panel[j] = 0;
    }
}

// Pack a panel of `columns` columns, the first of which begins at `from`; its last vector is filled up with zeros.
static void pack_panel(const Matrices *y, const float *from, int64_t columns, float *panel) {
    int64_t stride = ceil_div(columns, WIDTH) * WIDTH;
    if (y->row_stride == 1 && y->column_stride != 1) pack_transposed(y, from, columns, stride, panel);
    else pack_copied(y, from, columns, stride, panel);
}

// The packed panel of matrix `index` that begins at column `first`.
static float *packed_panel(const Product *p, int64_t index, int64_t first) {
    return p->packed_panels + p->y.rows * (index * ceil_div(p->y.columns, WIDTH) * WIDTH + first);
}

// The packed rows of matrix `index` from `row` on.
static float *packed_rows(const Product *p, int64_t index, int64_t row) {
    return p->packed_rows + p->x.columns * (index * ceil_div(p->x.rows, PRODUCT_ROWS) * PRODUCT_ROWS + row);
}

static void pack_panel_part(void *context, Py_ssize_t part, int worker) {
    const Product *p = context;
    int64_t index = part / p->panels, width = p->vectors * WIDTH, first = part % p->panels * width;
    (void)worker;
    pack_panel(&p->y, matrix_data(&p->y, index) + first * p->y.column_stride, imin(width, p->y.columns - first),
               packed_panel(p, index, first));
}

// Pack some columns of x, each of which is contiguous.
static void pack_rows_part(void *context, Py_ssize_t part, int worker) {
    const Product *p = context;
    int64_t parts = ceil_div(p->x.columns, WIDTH), index = part / parts, begin = part % parts * WIDTH;
    int64_t end = imin(begin + WIDTH, p->x.columns);
    const float *from = matrix_data(&p->x, index);
    (void)worker;
    for (int64_t row = 0; row < p->x.rows; row += PRODUCT_ROWS) {
        int64_t left = imin(PRODUCT_ROWS, p->x.rows - row);
        float *to = packed_rows(p, index, row) + begin * PRODUCT_ROWS;
        for (int64_t k = begin; k < end; k++, to += PRODUCT_ROWS) {
            const float *column = from + row + k * p->x.column_stride;
            if (left == PRODUCT_ROWS) memcpy(to, column, sizeof(float) * PRODUCT_ROWS);
            else
                for (int i = 0; i < PRODUCT_ROWS; i++) to[i] = i < left ? column[i] : 0;
        }
    }
}

// Tiles -----------------------------------------------------------------------------------------

// Compute a tile: PRODUCT_ROWS rows x, whose numbers are `x_step` apart, times `vectors` vectors of y, whose rows are
// `y_step` apart; plus a bias per row and one per column.
INLINE void multiply_tile(int vectors, const float *const *x, int64_t x_step, const float *y, int64_t y_step,
                          int64_t depth, const float *row_bias, const float *column_bias, float *to,
                          int64_t to_stride) {
    vec sums[PRODUCT_ROWS][TILE_VECTORS];
    const float *row[PRODUCT_ROWS];
    for (int i = 0; i < PRODUCT_ROWS; i++) {
        row[i] = x[i];
        for (int j = 0; j < vectors; j++) sums[i][j] = (vec){0};
    }
    for (int64_t k = 0, at = 0; k < depth; k++, at += x_step, y += y_step) {
        vec b[TILE_VECTORS];
        // (One row is enough: where x is not contiguous, the numbers of the other rows are beside it.)
        __builtin_prefetch(row[0] + at + PREFETCH_DISTANCE * x_step);
        for (int j = 0; j < vectors; j++) {
            b[j] = load(y + j * WIDTH);
            __builtin_prefetch(y + PREFETCH_DISTANCE * y_step + j * WIDTH);
        }
        for (int i = 0; i < PRODUCT_ROWS; i++)
            for (int j = 0; j < vectors; j++) sums[i][j] += row[i][at] * b[j];
    }
    for (int i = 0; i < PRODUCT_ROWS; i++)
        for (int j = 0; j < vectors; j++)
            store(to + i * to_stride + j * WIDTH, sums[i][j] + (row_bias[i] + load(column_bias + j * WIDTH)));
}

// Transpose up to WIDTH rows of tiles into the result.
static void store_transposed(const float *tiles, int64_t rows, int64_t columns, float *to, int64_t stride) {
    for (int64_t j = 0; j < columns; j += WIDTH) {
        vec block[WIDTH];
        for (int i = 0; i < WIDTH; i++) block[i] = load(tiles + i * TILE_COLUMNS + j);
        transpose(block);
        for (int64_t i = 0; i < imin(WIDTH, columns - j); i++) {
            if (rows == WIDTH) store(to + (j + i) * stride, block[i]);
            else store_partial(to + (j + i) * stride, block[i], rows);
        }
    }
}

// Apply the epilogue to a part of a matrix of the result.
static void finish_rows(const Product *p, float *result, int64_t begin, int64_t end, int64_t column, int64_t columns) {
    int64_t offset = result - p->result.data;
    for (int64_t row = begin; row < end; row++) {
        float *to = result + row * p->result.row_stride + column;
        finish_sums(p->epilogue, to, p->residual ? p->residual + offset + (to - result) : NULL, columns);
    }
}

// Compute rows `begin` to `end` of the panel of the result that begins at column `first`, in matrix `index`. `scratch`
// has room for WIDTH rows of a tile and for a packed panel.
static void multiply_rows(const Product *p, int64_t index, int64_t first, int64_t begin, int64_t end, float *scratch) {
    const float *x = matrix_data(&p->x, index), *y = matrix_data(&p->y, index);
    float *result = matrix_data(&p->result, index), *tiles = scratch;
    int64_t rows = p->x.rows, columns = imin(p->vectors * WIDTH, p->y.columns - first);
    int64_t vectors = ceil_div(columns, WIDTH), width = vectors * WIDTH, y_step = width;
    if (p->triangle == LOWER_RESULT) begin += imax(first - p->diagonal - begin, 0) / PRODUCT_ROWS * PRODUCT_ROWS;
    if (begin >= end) return;
    y += first * p->y.column_stride;
    if (p->packed_panels) y = packed_panel(p, index, first);
    else if (p->in_place && columns == width) y_step = p->y.row_stride;
    else {
        pack_panel(&p->y, y, columns, scratch + WIDTH * TILE_COLUMNS);
        y = scratch + WIDTH * TILE_COLUMNS;
    }

    int64_t x_step = p->packed_rows ? PRODUCT_ROWS : p->x.column_stride;
    float row_bias[PRODUCT_ROWS] = {0}, column_bias[TILE_COLUMNS] = {0};
    if (p->bias && !p->transposed) memcpy(column_bias, p->bias + first, sizeof(float) * (size_t)columns);
    for (int64_t r = begin; r < end; r += PRODUCT_ROWS) {
        int64_t from = p->triangle == UPPER_FACTOR ? imin(r + p->diagonal, p->y.rows) : 0, depth = p->y.rows - from;
        if (p->triangle == LOWER_FACTOR) depth = imin(r + PRODUCT_ROWS + p->diagonal, depth);
        const float *row_data[PRODUCT_ROWS], *y_from = y + from * y_step;
        for (int i = 0; i < PRODUCT_ROWS; i++) {
            int64_t row = imin(r + i, rows - 1);  // rows of the tile beyond the last row repeat it
            row_data[i] =
                p->packed_rows ? packed_rows(p, index, r) + i : x + row * p->x.row_stride + from * p->x.column_stride;
            if (p->bias && p->transposed) row_bias[i] = p->bias[row];
        }
        bool direct = !p->transposed && columns == width && r + PRODUCT_ROWS <= rows;
        int64_t done = p->transposed ? (r - begin) % WIDTH : 0,
                to_stride = direct ? p->result.row_stride : TILE_COLUMNS;
        float *to = direct ? result + r * p->result.row_stride + first : tiles + done * TILE_COLUMNS;
        if (vectors == 3)
            multiply_tile(3, row_data, x_step, y_from, y_step, depth, row_bias, column_bias, to, to_stride);
        else if (vectors == 2)
            multiply_tile(2, row_data, x_step, y_from, y_step, depth, row_bias, column_bias, to, to_stride);
        else multiply_tile(1, row_data, x_step, y_from, y_step, depth, row_bias, column_bias, to, to_stride);
        if (direct) {
            if (p->epilogue) finish_rows(p, result, r, r + PRODUCT_ROWS, first, columns);
            continue;
        }
        if (!p->transposed) {
            for (int64_t i = 0; i < imin(PRODUCT_ROWS, rows - r); i++)
                copy_floats(result + (r + i) * p->result.row_stride + first, tiles + i * TILE_COLUMNS, columns);
            if (p->epilogue) finish_rows(p, result, r, imin(r + PRODUCT_ROWS, rows), first, columns);
        } else if (done + PRODUCT_ROWS == WIDTH || r + PRODUCT_ROWS >= end) {
            int64_t row = r - done;
            store_transposed(tiles, imin(WIDTH, end - row), columns, result + row + first * p->result.row_stride,
                             p->result.row_stride);
            if (p->epilogue) finish_rows(p, result, first, first + columns, row, imin(WIDTH, end - row));
        }
    }
}

static void product_part(void *context, Py_ssize_t part, int worker) {
    const Product *p = context;
    int64_t at = part * p->bands_per_part, end = imin(at + p->bands_per_part, p->matrices * p->panels * p->bands);
    while (at < end) {
        int64_t panel = at / p->bands, band = at % p->bands, bands = imin(p->bands - band, end - at);
        int64_t index = panel / p->panels, first = panel % p->panels * p->vectors * WIDTH;
        multiply_rows(p, index, first, band * WIDTH, imin((band + bands) * WIDTH, p->x.rows),
                      p->scratch + worker * p->scratch_size);
        at += bands;
    }
}

// Planning --------------------------------------------------------------------------------------

// The scratch space, in floats, of a product whose sums have `depth` terms.
static inline int64_t product_scratch(int64_t depth) {
    return round_to_lines(WIDTH * TILE_COLUMNS + depth * TILE_COLUMNS);
}

// The cost of packing: an element of y costs 2 if it has to be transposed, 1 if it is copied; a strided one of x
// costs 1.
static int64_t packing_cost(const Matrices *x, const Matrices *y) {
    int64_t panels = y->column_stride != 1 ? 2 * y->rows * y->columns : x->rows < FEW_ROWS ? 0 : y->rows * y->columns;
    return panels + (x->column_stride == 1 ? 0 : x->rows * x->columns);
}

// Plan the product `a b`: choose which factor is read as vectors, and the size of panels.
static void plan(Product *p, const Matrices *a, const Matrices *b) {
    Matrices x = transposed(*b), y = transposed(*a);
    p->transposed = !p->triangle && packing_cost(&x, &y) + 4 * a->rows * b->columns < packing_cost(a, b);
    p->x = p->transposed ? x : *a;
    p->y = p->transposed ? y : *b;
    int64_t vectors = ceil_div(p->y.columns, WIDTH);
    p->panels = ceil_div(vectors, TILE_VECTORS);
    p->vectors = ceil_div(vectors, p->panels);
    p->panels = ceil_div(vectors, p->vectors);
    p->bands = ceil_div(p->x.rows, WIDTH);
    p->in_place = p->y.column_stride == 1 && p->x.rows < FEW_ROWS;
}

// Cut a planned product of `matrices` matrices into parts, and return their number. One thread takes whole panels, each
// of which is then packed once.
static int64_t cut(Product *p, int64_t matrices, int64_t threads) {
    int64_t panels = matrices * p->panels, bands = panels * p->bands, parts = panels;
    if (threads > 1 && (p->packed_panels || p->in_place)) parts = PARTS_PER_THREAD * threads;
    else if (threads > 1 && panels < PANELS_PER_THREAD * threads) parts = 2 * threads;
    p->matrices = matrices;
    p->bands_per_part = ceil_div(bands, parts);
    return ceil_div(bands, p->bands_per_part);
}

// Compute `a b` of single matrices on the calling thread, inside a parallel loop.
static inline void multiply_single(Matrices a, Matrices b, Matrices result, Triangle triangle, int64_t diagonal,
                                   float *scratch) {
    Product p = {.result = result, .triangle = triangle, .diagonal = diagonal};
    plan(&p, &a, &b);
    for (int64_t first = 0; first < p.y.columns; first += p.vectors * WIDTH)
        multiply_rows(&p, 0, first, 0, p.x.rows, scratch);
}

#endif
