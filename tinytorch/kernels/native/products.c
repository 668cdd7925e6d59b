// Twins of kernels/products.py: products of matrices, which are read as they lie.
//
// A tile of the result is ROWS rows of one factor, of which numbers are taken, times a panel of the other, of which
// vectors are. What lies in a row is read in place where few rows meet it; else panels are copied, or transposed. Where
// it costs less to transpose the other factor, the result's tiles are transposed instead: it is computed `across`.
//
// Threads make all panels first, then take the same number of tiles each; in small products, and where there are many
// matrices, each makes those of its own. Numbers that lie in columns are copied first, too, if they are many.
//
// An element's sum is the same whatever the parts are, so these may depend on the number of threads.

// Rows below which vectors are read in place; matrices for each thread from which on these make their own panels;
// products that are worth another thread, and to make panels first; elements of x whose columns do not stay in the
// cache, and of what is copied first at most; how many numbers of a sum ahead what it needs is fetched. Few products in
// all, or in a matrix, and long sums are left to NumPy.
enum { FEW = 24, MANY = 4, WORTH = 1 << 19, MUCH = 1 << 21, LARGE = 1 << 20, PACKED = 1 << 24, AHEAD = 8 };
enum { LEAST = 1 << 15, SMALLEST = 1 << 11, DEEPEST = 1 << 12, LEADING = 4 };

// A stack of matrices, and its strides: of leading dimensions, from row to row, from column to column.
typedef struct {
    float *data;
    int64_t leading_at[LEADING], row_at, column_at;
    int64_t leading[LEADING], rows, columns;
} Stack;

// Of what a product need not compute: of the result what is right of its diagonal, or where the first factor is zeros,
// right of its diagonal or left of it.
typedef enum { WHOLE, LOWER_RESULT, LOWER_FACTOR, UPPER_FACTOR } Triangle;

typedef struct {
    Stack x, y, result;  // numbers, vectors
    const float *bias;   // per column of the result
    Triangle triangle;
    int64_t diagonal;  // the column where the diagonal begins
    bool across, in_place;
    int64_t matrices, panels, vectors;  // panels of a matrix, vectors of one: the last one may have fewer
    int64_t bands, part;                // groups of WIDTH rows, of a panel; in a part
    float *panel, *tile;                // all panels of y, all rows of x by ROWS, if they are copied first
    float *scratch;
    int64_t scratch_size;
} Product;

static Stack transposed(Stack s) {
    Stack t = s;
    t.rows = s.columns, t.columns = s.rows, t.row_at = s.column_at, t.column_at = s.row_at;
    return t;
}

static int64_t place_of(const Stack *s, int64_t number) {
    int64_t at = 0;
    for (int d = LEADING; d--; number /= s->leading[d]) at += number % s->leading[d] * s->leading_at[d];
    return at;
}

static float *matrix_at(const Stack *s, int64_t number) { return number ? s->data + place_of(s, number) : s->data; }

// Write a panel, where y's columns lie in one piece each.
static void transpose_panel(const Stack *y, const float *from, int64_t there, int64_t apart, float *panel) {
    for (int64_t j = 0; j < apart; j += WIDTH, from += WIDTH * y->column_at) {
        for (int64_t k = 0; k < y->rows; k += WIDTH) {
            int64_t left = least(WIDTH, y->rows - k);
            vec block[WIDTH];
            for (int i = 0; i < WIDTH; i++) {
                const float *column = from + i * y->column_at + k;
                block[i] = j + i >= there ? (vec){0} : left == WIDTH ? load(column) : load_some(column, left);
            }
            transpose(block);
            for (int64_t i = 0; i < left; i++) store(panel + (k + i) * apart + j, block[i]);
        }
    }
}

static void copy_panel(const Stack *y, const float *from, int64_t there, int64_t apart, float *panel) {
    for (int64_t k = 0; k < y->rows; k++, panel += apart, from += y->row_at) {
        if (y->column_at == 1) copy(panel, from, there);
        else
            for (int64_t j = 0; j < there; j++) panel[j] = from[j * y->column_at];
        for (int64_t j = there; j < apart; j++) panel[j] = 0;
    }
}

// Write the panel whose first column is at `from`, and which has `there` columns.
static void make_panel(const Stack *y, const float *from, int64_t there, float *panel) {
    int64_t apart = over(there, WIDTH) * WIDTH;
    if (y->row_at == 1 && y->column_at != 1) transpose_panel(y, from, there, apart, panel);
    else copy_panel(y, from, there, apart, panel);
}

// A tile: ROWS rows, whose numbers lie `step` apart, times `vectors` vectors, `apart` from each other, plus biases.
INLINE void meet(int vectors, const float *const *x, int64_t step, const float *y, int64_t apart, int64_t depth,
                 const float *of_rows, const float *of_columns, float *to, int64_t to_at) {
    vec found[ROWS][VECTORS_IN_TILE];
    const float *row[ROWS];
    for (int i = 0; i < ROWS; i++) {
        row[i] = x[i];
        for (int j = 0; j < vectors; j++) found[i][j] = (vec){0};
    }
    for (int64_t k = 0, at = 0; k < depth; k++, at += step, y += apart) {
        vec b[VECTORS_IN_TILE];
        __builtin_prefetch(row[0] + at + AHEAD * step);  // the other rows' numbers lie beside it, where they need that
        for (int j = 0; j < vectors; j++) {
            b[j] = load(y + j * WIDTH);
            __builtin_prefetch(y + AHEAD * apart + j * WIDTH);
        }
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < vectors; j++) found[i][j] += row[i][at] * b[j];
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < vectors; j++)
            store(to + i * to_at + j * WIDTH, found[i][j] + (of_rows[i] + load(of_columns + j * WIDTH)));
}

// Write rows of tiles, up to WIDTH of them, as columns of the result.
static void write_across(const float *tiles, int64_t rows, int64_t columns, float *to, int64_t apart) {
    for (int64_t j = 0; j < columns; j += WIDTH) {
        vec block[WIDTH];
        for (int i = 0; i < WIDTH; i++) block[i] = load(tiles + i * COLUMNS + j);
        transpose(block);
        for (int64_t i = 0; i < least(WIDTH, columns - j); i++) {
            if (rows == WIDTH) store(to + (j + i) * apart, block[i]);
            else store_some(to + (j + i) * apart, block[i], rows);
        }
    }
}

// Where the panel of a matrix is, from column `first` on, and where its rows are from `row` on, if they are copied
// first.
static float *panel_at(const Product *p, int64_t number, int64_t first) {
    return p->panel + p->y.rows * (number * over(p->y.columns, WIDTH) * WIDTH + first);
}

static float *tile_at(const Product *p, int64_t number, int64_t row) {
    return p->tile + p->x.columns * (number * over(p->x.rows, ROWS) * ROWS + row);
}

static void panel_part(void *context, Py_ssize_t part, int worker) {
    const Product *p = context;
    int64_t number = part / p->panels, width = p->vectors * WIDTH, first = part % p->panels * width;
    (void)worker;
    make_panel(&p->y, matrix_at(&p->y, number) + first * p->y.column_at, least(width, p->y.columns - first),
               panel_at(p, number, first));
}

// Copy some columns of x, where they lie in one piece each.
static void tile_part(void *context, Py_ssize_t part, int worker) {
    const Product *p = context;
    int64_t parts = over(p->x.columns, WIDTH), number = part / parts, begin = part % parts * WIDTH;
    int64_t end = least(begin + WIDTH, p->x.columns);
    const float *from = matrix_at(&p->x, number);
    (void)worker;
    for (int64_t row = 0; row < p->x.rows; row += ROWS) {
        int64_t left = least(ROWS, p->x.rows - row);
        float *to = tile_at(p, number, row) + begin * ROWS;
        for (int64_t k = begin; k < end; k++, to += ROWS) {
            const float *column = from + row + k * p->x.column_at;
            if (left == ROWS) memcpy(to, column, sizeof(float) * ROWS);
            else
                for (int i = 0; i < ROWS; i++) to[i] = i < left ? column[i] : 0;
        }
    }
}

// Compute rows `begin` to `end` of a panel of a matrix of the result, the columns from `first` on.
static void multiply_rows(const Product *p, int64_t number, int64_t first, int64_t begin, int64_t end, float *tiles) {
    const float *x = matrix_at(&p->x, number), *y = matrix_at(&p->y, number);
    float *result = matrix_at(&p->result, number);
    int64_t rows = p->x.rows, there = least(p->vectors * WIDTH, p->y.columns - first), vectors = over(there, WIDTH);
    int64_t width = vectors * WIDTH, apart = width;
    if (p->triangle == LOWER_RESULT) begin += most(first - p->diagonal - begin, 0) / ROWS * ROWS;
    if (begin >= end) return;
    y += first * p->y.column_at;
    if (p->panel) y = panel_at(p, number, first);
    else if (p->in_place && there == width) apart = p->y.row_at;
    else {
        make_panel(&p->y, y, there, tiles + WIDTH * COLUMNS);
        y = tiles + WIDTH * COLUMNS;
    }

    int64_t step = p->tile ? ROWS : p->x.column_at;
    float of_rows[ROWS] = {0}, of_columns[COLUMNS] = {0};
    if (p->bias && !p->across) memcpy(of_columns, p->bias + first, sizeof(float) * (size_t)there);
    for (int64_t r = begin; r < end; r += ROWS) {
        int64_t from = p->triangle == UPPER_FACTOR ? least(r + p->diagonal, p->y.rows) : 0, depth = p->y.rows - from;
        if (p->triangle == LOWER_FACTOR) depth = least(r + ROWS + p->diagonal, depth);
        const float *at[ROWS], *y_from = y + from * apart;  // beyond the last row it stands in for others
        for (int i = 0; i < ROWS; i++) {
            int64_t row = least(r + i, rows - 1);
            at[i] = p->tile ? tile_at(p, number, r) + i : x + row * p->x.row_at + from * p->x.column_at;
            if (p->bias && p->across) of_rows[i] = p->bias[row];
        }
        bool direct = !p->across && there == width && r + ROWS <= rows;
        int64_t done = p->across ? (r - begin) % WIDTH : 0, to_at = direct ? p->result.row_at : COLUMNS;
        float *to = direct ? result + r * p->result.row_at + first : tiles + done * COLUMNS;
        if (vectors == 3) meet(3, at, step, y_from, apart, depth, of_rows, of_columns, to, to_at);
        else if (vectors == 2) meet(2, at, step, y_from, apart, depth, of_rows, of_columns, to, to_at);
        else meet(1, at, step, y_from, apart, depth, of_rows, of_columns, to, to_at);
        if (direct) continue;
        if (!p->across) {
            for (int64_t i = 0; i < least(ROWS, rows - r); i++)
                copy(result + (r + i) * p->result.row_at + first, tiles + i * COLUMNS, there);
        } else if (done + ROWS == WIDTH || r + ROWS >= end) {
            int64_t row = r - done;
            write_across(tiles, least(WIDTH, end - row), there, result + row + first * p->result.row_at,
                         p->result.row_at);
        }
    }
}

static void product_part(void *context, Py_ssize_t part, int worker) {
    const Product *p = context;
    int64_t at = part * p->part, end = least(at + p->part, p->matrices * p->panels * p->bands);
    while (at < end) {
        int64_t panel = at / p->bands, band = at % p->bands, bands = least(p->bands - band, end - at);
        int64_t number = panel / p->panels, first = panel % p->panels * p->vectors * WIDTH;
        multiply_rows(p, number, first, band * WIDTH, least((band + bands) * WIDTH, p->x.rows),
                      p->scratch + worker * p->scratch_size);
        at += bands;
    }
}

// Scratch space of a product whose sums have so many terms.
static int64_t product_scratch(int64_t depth) { return over(WIDTH * COLUMNS + depth * COLUMNS, 16) * 16; }

// What it costs to make panels of y, and to copy numbers of x that do not lie in a row: half as much as to transpose.
static int64_t cost(const Stack *x, const Stack *y) {
    int64_t panels = y->column_at != 1 ? 2 * y->rows * y->columns : x->rows < FEW ? 0 : y->rows * y->columns;
    return panels + (x->column_at == 1 ? 0 : x->rows * x->columns);
}

// Say how to compute `a b`. What is not in rows of vectors is transposed: b; or a instead, and the result.
static void plan(Product *p, const Stack *a, const Stack *b) {
    Stack x = transposed(*b), y = transposed(*a);
    p->across = !p->triangle && cost(&x, &y) + 4 * a->rows * b->columns < cost(a, b);
    p->x = p->across ? x : *a;
    p->y = p->across ? y : *b;
    int64_t vectors = over(p->y.columns, WIDTH);
    p->panels = over(vectors, VECTORS_IN_TILE);
    p->vectors = over(vectors, p->panels);
    p->panels = over(vectors, p->vectors);
    p->bands = over(p->x.rows, WIDTH);
    p->in_place = p->y.column_at == 1 && p->x.rows < FEW;
}

// Cut a product that is planned, of so many matrices, into parts; return how many.
static int64_t cut(Product *p, int64_t matrices, int64_t threads) {
    int64_t panels = matrices * p->panels, all = panels * p->bands;
    int64_t parts = p->panel || p->in_place ? 16 * threads : panels < MANY * threads ? 2 * threads : panels;
    p->matrices = matrices;
    p->part = over(all, threads > 1 ? parts : panels);  // (else each part makes its panel)
    return over(all, p->part);
}

static Stack matrix_in(float *data, int64_t rows, int64_t columns, int64_t row_at, int64_t column_at) {
    return (Stack){data, {0}, row_at, column_at, {1, 1, 1, 1}, rows, columns};
}

// Compute `a b` of single matrices, in work that has been shared out.
static void multiply_one(Stack a, Stack b, Stack result, Triangle triangle, int64_t diagonal, float *scratch) {
    Product p = {.result = result, .triangle = triangle, .diagonal = diagonal};
    plan(&p, &a, &b);
    for (int64_t first = 0; first < p.y.columns; first += p.vectors * WIDTH)
        multiply_rows(&p, 0, first, 0, p.x.rows, scratch);
}

// Read a stack of matrices, of elements of any size, which strides count; false if it is none.
static bool read_stack(PyArrayObject *array, Stack *s) {
    int leading = PyArray_NDIM(array) - 2, size = (int)PyArray_ITEMSIZE(array);
    if (leading < 0 || leading > LEADING) return false;
    s->data = PyArray_DATA(array);
    for (int d = 0; d < LEADING; d++) {
        bool there = d >= LEADING - leading;
        s->leading[d] = there ? PyArray_DIM(array, d - LEADING + leading) : 1;
        s->leading_at[d] = there ? PyArray_STRIDE(array, d - LEADING + leading) / size : 0;
    }
    s->rows = PyArray_DIM(array, leading);
    s->columns = PyArray_DIM(array, leading + 1);
    s->row_at = PyArray_STRIDE(array, leading) / size;
    s->column_at = PyArray_STRIDE(array, leading + 1) / size;
    return true;
}

static bool stack_of(PyObject *object, Stack *s) {
    return tt_float32(object) && read_stack((PyArrayObject *)object, s);
}

// `a b + bias`, or PASS.
static PyObject *multiply(PyObject *like, Stack a, Stack b, const float *bias, PyObject *out) {
    int dims = PyArray_NDIM((PyArrayObject *)like);
    int64_t m = a.rows, n = b.columns, k = a.columns, count = 1, threads = tt_threads();
    for (int d = 0; d < LEADING; d++) {
        if (a.leading[d] != b.leading[d]) return PASS;
        count *= a.leading[d];
    }
    double products = (double)m * (double)n * (double)k;
    if (WIDTH < 8 || k != b.rows || m < 4 || n < 4 || k > DEEPEST) return PASS;
    if (products < SMALLEST || products * (double)count < LEAST) return PASS;
    int64_t shape[LEADING + 2] = {0};
    for (int d = 0; d < dims - 2; d++) shape[d] = a.leading[LEADING - dims + 2 + d];
    shape[dims - 2] = m;
    shape[dims - 1] = n;
    Product p = {.bias = bias};
    PyObject *result = out;
    Py_XINCREF(out);
    if (!out) result = tt_new(like, dims, shape);
    if (!result) return NULL;
    bool fits = stack_of(result, &p.result) && p.result.rows == m && p.result.columns == n && p.result.column_at == 1 &&
                PyArray_ISWRITEABLE((PyArrayObject *)result);
    for (int d = 0; d < LEADING; d++) fits = fits && p.result.leading[d] == a.leading[d];

    plan(&p, &a, &b);
    products *= (double)count;
    threads = most(least(threads, (int64_t)products / WORTH), 1);
    int64_t panels = count * k * over(p.y.columns, WIDTH) * WIDTH, tiles = count * k * over(p.x.rows, ROWS) * ROWS;
    if (products < MUCH || threads == 1 || count >= MANY * threads || p.in_place || panels > PACKED) panels = 0;
    if (p.x.row_at != 1 || p.x.rows * k < LARGE || tiles > PACKED) tiles = 0;
    p.scratch_size = product_scratch(k);
    p.scratch = fits ? aligned((size_t)(threads * p.scratch_size + panels + tiles)) : NULL;
    if (!p.scratch) {
        Py_DECREF(result);
        return PASS;
    }
    if (panels) {
        p.panel = p.scratch + threads * p.scratch_size;
        tt_share(panel_part, &p, count * p.panels, panels, (int)threads);
    }
    if (tiles) {
        p.tile = p.scratch + threads * p.scratch_size + panels;
        tt_share(tile_part, &p, count * over(k, WIDTH), tiles, (int)threads);
    }
    tt_share(product_part, &p, cut(&p, count, threads), count * m * n * k / WIDTH, (int)threads);
    free(p.scratch);
    return result;
}

KERNEL(product) {
    Stack a, b;
    if (count != 2 || !stack_of(args[0], &a) || !stack_of(args[1], &b)) return PASS;
    if (PyArray_NDIM((PyArrayObject *)args[0]) != PyArray_NDIM((PyArrayObject *)args[1])) return PASS;
    return multiply(args[0], a, b, NULL, out);
}

KERNEL(linear) {
    Stack x, weight;
    if (count != 3 || out || !stack_of(args[0], &x) || !stack_of(args[1], &weight)) return PASS;
    if (PyArray_NDIM((PyArrayObject *)args[0]) != 2 || PyArray_NDIM((PyArrayObject *)args[1]) != 2) return PASS;
    if (args[2] == Py_None) return multiply(args[0], x, transposed(weight), NULL, NULL);
    PyArrayObject *bias = (PyArrayObject *)args[2];
    if (!tt_float32(args[2]) || !tt_contiguous(args[2]) || PyArray_NDIM(bias) != 1 ||
        PyArray_DIM(bias, 0) != weight.rows)
        return PASS;
    return multiply(args[0], x, transposed(weight), PyArray_DATA(bias), NULL);
}
