// Twins of kernels/rnn.py: all steps of a layer. Threads take some of the sequences each, through all steps; where
// there are few, one thread takes the steps, and each step is shared out.

typedef struct {
    Stack weights;  // the first factor of a step's product
    int64_t size, steps, batch, columns;
    const int64_t *begins, *widths, *bounds;
    Py_ssize_t parts;
    bool reverse;
    int threads;
    const float *h0, *c0, *upstream;            // of all sequences; rows of columns of the matrix
    float *gates, *before, *squashed;           // a piece per step and part
    float *matrix, *hidden, *out, *slopes;      // of all columns
    float *h_last, *c_last, *states, *scratch;  // `states`: h and c of all sequences, in a piece per part
    int64_t scratch_size;
} Recurrent;

// The sequences that a part has in a step: `count` of them, of columns from `at` on.
typedef struct {
    const Recurrent *layer;
    int64_t count, at, apart;  // from row to row of the states
    float *gates, *before, *squashed, *h, *c;
} CellStep;

// tanh(x), to 2 ulp: near 0 x + x^3 q(x^2), with a polynomial that interpolates q at Chebyshev's points.
INLINE vec squashed(vec x) {
    vec s = x * x, far = 1 - 2 / (exp_of(x + x) + 1);
    vec q = s * -0.006269119679927826f + 0.021110959351062775f;
    q = q * s - 0.053873948752880096f;
    q = q * s + 0.13332915306091309f;
    q = q * s - 0.3333333134651184f;
    return where((x > 0.6f) | (x < -0.6f), far, q * s * x + x);
}

// A step's cells are worked on in blocks of as many rows as a vector has numbers, for these are transposed.

static void lstm_rows(void *context, Py_ssize_t block, int worker) {
    const CellStep *s = context;
    const Recurrent *l = s->layer;
    int64_t first = block * WIDTH, rows = least(WIDTH, l->size - first), whole = l->size * s->count;
    float tile[WIDTH * COLUMNS] = {0};
    (void)worker;
    for (int64_t column = 0; column < s->count; column += COLUMNS) {
        int64_t columns = least(COLUMNS, s->count - column);
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = (first + row) * s->count + column, state_at = (first + row) * s->apart + column;
            for (int64_t k = 0; k < columns; k += WIDTH) {
                int64_t left = columns - k;
                float *i = s->gates + at + k, *f = i + whole, *o = f + whole, *n = o + whole, *c = s->c + state_at + k;
                vec in = 1 / (exp_of(part_of(i, left)) + 1), forget = 1 / (exp_of(part_of(f, left)) + 1);
                vec through = 1 / (exp_of(part_of(o, left)) + 1), fresh = squashed(part_of(n, left));
                vec old = part_of(c, left), state = forget * old + in * fresh, shown = squashed(state);
                put_part(i, in, left);
                put_part(f, forget, left);
                put_part(o, through, left);
                put_part(n, fresh, left);
                put_part(s->before + at + k, old, left);
                put_part(s->squashed + at + k, shown, left);
                put_part(c, state, left);
                put_part(s->h + state_at + k, through * shown, left);
                store(tile + row * COLUMNS + k, through * shown);
            }
        }
        write_across(tile, rows, columns, l->out + (s->at + column) * l->size + first, l->size);
    }
}

static void lstm_grad_rows(void *context, Py_ssize_t block, int worker) {
    const CellStep *s = context;
    const Recurrent *l = s->layer;
    int64_t first = block * WIDTH, rows = least(WIDTH, l->size - first), whole = l->size * s->count;
    (void)worker;
    for (int64_t k = 0; k < s->count; k += WIDTH) {
        int64_t left = least(WIDTH, s->count - k);
        vec upstream[WIDTH];
        if (l->upstream) {
            const float *from = l->upstream + (s->at + k) * l->size + first;
            for (int64_t j = 0; j < WIDTH; j++) upstream[j] = j < left ? part_of(from + j * l->size, rows) : (vec){0};
            transpose(upstream);
        }
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = (first + row) * s->count + k, state_at = (first + row) * s->apart + k;
            const float *i = s->gates + at, *f = i + whole, *o = f + whole, *n = o + whole;
            vec in = part_of(i, left), forget = part_of(f, left), through = part_of(o, left), fresh = part_of(n, left);
            vec shown = part_of(s->squashed + at, left), of_h = part_of(s->h + state_at, left);
            if (l->upstream) of_h += upstream[row];
            vec of_c = part_of(s->c + state_at, left) + of_h * through * (1 - shown * shown);
            float *slopes = l->slopes + (first + row) * l->columns + s->at + k;
            int64_t gate = l->size * l->columns;
            put_part(slopes, of_c * fresh * in * (1 - in), left);
            put_part(slopes + gate, of_c * part_of(s->before + at, left) * forget * (1 - forget), left);
            put_part(slopes + 2 * gate, of_c * in * (1 - fresh * fresh), left);
            put_part(slopes + 3 * gate, of_h * shown * through * (1 - through), left);
            put_part(s->c + state_at, of_c * forget, left);
        }
    }
}

// Copy a matrix to its transpose.
static void turn(const float *from, int64_t rows, int64_t columns, int64_t from_at, float *to, int64_t to_at) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * to_at + r] = from[r * from_at + c];
}

static void multiply_step(const Recurrent *l, Stack factor, Stack result, float *scratch) {
    Product p = {.result = result, .scratch = scratch, .scratch_size = l->scratch_size};
    plan(&p, &l->weights, &factor);
    int64_t parts = cut(&p, 1, l->threads), products = factor.rows * factor.columns * result.rows;
    tt_share_unlocked(product_part, &p, parts, products / WIDTH, l->threads);
}

// All steps of a part. Sequences that have not begun or have ended keep their states.
static void steps_part(void *context, Py_ssize_t part, int worker) {
    const Recurrent *l = context;
    int64_t low = l->bounds[part], sequences = l->bounds[part + 1] - low, size = l->size;
    bool forward = !l->slopes;
    float *scratch = l->scratch + worker * l->scratch_size;
    CellStep s = {.layer = l, .apart = sequences, .h = l->states + 2 * size * low};
    s.c = s.h + size * sequences;
    turn(l->h0 + low * size, sequences, size, size, s.h, sequences);
    turn(l->c0 + low * size, sequences, size, size, s.c, sequences);
    for (int64_t k = 0; k < l->steps; k++) {
        int64_t step = l->reverse == forward ? l->steps - 1 - k : k;
        s.count = least(l->widths[step] - low, sequences), s.at = l->begins[step] + low;
        if (s.count <= 0) continue;
        s.gates = l->gates + 4 * size * s.at, s.before = l->before + size * s.at,
        s.squashed = l->squashed + size * s.at;
        int64_t blocks = over(size, WIDTH), elements = size * s.count;
        if (forward) {
            for (int64_t r = 0; r < size; r++) copy(l->hidden + r * l->columns + s.at, s.h + r * sequences, s.count);
            multiply_step(l, matrix_in(l->matrix + s.at, l->weights.columns, s.count, l->columns, 1),
                          matrix_in(s.gates, 4 * size, s.count, s.count, 1), scratch);
            tt_share_unlocked(lstm_rows, &s, blocks, elements, l->threads);
        } else {
            tt_share_unlocked(lstm_grad_rows, &s, blocks, elements, l->threads);
            multiply_step(l, matrix_in(l->slopes + s.at, 4 * size, s.count, l->columns, 1),
                          matrix_in(s.h, size, s.count, sequences, 1), scratch);
        }
    }
    turn(s.h, size, sequences, sequences, l->h_last + low * size, size);
    turn(s.c, size, sequences, sequences, l->c_last + low * size, size);
}

// A contiguous array of so many elements; None is one without data, if it `may_be_none`.
static bool elements_of(PyObject *object, int64_t size, bool may_be_none, float **data) {
    *data = NULL;
    if (object == Py_None) return may_be_none;
    if (!tt_float32(object) || !tt_contiguous(object) || PyArray_SIZE((PyArrayObject *)object) != size) return false;
    *data = PyArray_DATA((PyArrayObject *)object);
    return true;
}

// Read three arguments that follow each other: the widths of the steps, the direction and the bounds of the parts;
// false if the layer is none for this kernel. The sizes are to be freed.
static bool read_steps(Recurrent *l, PyObject *const *args, int64_t **sizes) {
    PyArrayObject *bounds = (PyArrayObject *)args[2];
    *sizes = NULL;
    if (!PyTuple_Check(args[0]) || !PyArray_Check(args[2]) || !tt_contiguous(args[2]) ||
        PyArray_TYPE(bounds) != NPY_INT64 || PyArray_NDIM(bounds) != 1 || PyArray_SIZE(bounds) < 2)
        return false;
    l->steps = PyTuple_Size(args[0]);
    l->reverse = args[1] == Py_True;
    l->bounds = PyArray_DATA(bounds);
    l->parts = PyArray_SIZE(bounds) - 1;
    l->threads = l->parts > 1 ? 1 : tt_threads();
    *sizes = malloc((size_t)l->steps * 2 * sizeof(int64_t));
    if (!*sizes || !tt_sizes(args[0], l->steps, *sizes)) return false;
    l->widths = *sizes, l->begins = *sizes + l->steps;
    for (int64_t k = 0; k < l->steps; k++) {
        (*sizes)[l->steps + k] = l->columns;
        l->columns += l->widths[k];
        l->batch = most(l->batch, l->widths[k]);
    }
    return l->size && l->weights.columns <= DEEPEST && l->bounds[l->parts] == l->batch;
}

// Do all steps, and free what was made for them.
static PyObject *do_layer(Recurrent *l, bool fits, int64_t *sizes) {
    l->scratch_size = product_scratch(l->weights.columns);
    int64_t workers = most(l->threads, l->parts);
    l->scratch = fits ? aligned((size_t)(workers * l->scratch_size)) : NULL;
    l->states = l->scratch ? malloc((size_t)(2 * l->size * l->batch + 1) * sizeof(float)) : NULL;
    PyObject *result = PASS;
    if (l->states) {
        int64_t products = l->weights.rows * l->weights.columns * l->columns;
        tt_share(steps_part, l, l->parts, products / WIDTH, (int)l->parts);
        result = Py_None;
        Py_INCREF(result);
    }
    free(l->states);
    free(l->scratch);
    free(sizes);
    return result;
}

KERNEL(lstm_steps) {
    Recurrent l = {0};
    Stack weights, matrix;
    int64_t *sizes;
    if (count != 14 || out || args[1] != Py_None || !stack_of(args[0], &weights) || !stack_of(args[7], &matrix))
        return PASS;
    l.weights = weights, l.size = weights.rows / 4;
    bool fits = read_steps(&l, args + 4, &sizes);
    l.matrix = matrix.data, l.hidden = matrix.data + (matrix.rows - l.size) * matrix.row_at;
    int64_t states = l.batch * l.size, all = l.columns * l.size;
    fits = fits && matrix.rows == weights.columns && matrix.columns == l.columns && tt_contiguous(args[7]) &&
           elements_of(args[2], states, false, (float **)&l.h0) &&
           elements_of(args[3], states, false, (float **)&l.c0) && elements_of(args[8], 4 * all, false, &l.gates) &&
           elements_of(args[9], all, false, &l.before) && elements_of(args[10], all, false, &l.squashed) &&
           elements_of(args[11], all, false, &l.out) && elements_of(args[12], states, false, &l.h_last) &&
           elements_of(args[13], states, false, &l.c_last);
    return do_layer(&l, fits, sizes);
}

KERNEL(lstm_steps_grad) {
    Recurrent l = {0};
    Stack weights;
    int64_t *sizes;
    if (count != 14 || out || args[1] != Py_None || !stack_of(args[0], &weights)) return PASS;
    l.weights = transposed(weights), l.size = weights.columns;
    bool fits = read_steps(&l, args + 5, &sizes);
    int64_t states = l.batch * l.size, all = l.columns * l.size;
    fits = fits && weights.rows == 4 * l.size && elements_of(args[2], all, true, (float **)&l.upstream) &&
           elements_of(args[3], states, false, (float **)&l.h0) &&
           elements_of(args[4], states, false, (float **)&l.c0) && elements_of(args[8], 4 * all, false, &l.gates) &&
           elements_of(args[9], all, false, &l.before) && elements_of(args[10], all, false, &l.squashed) &&
           elements_of(args[11], 4 * all, false, &l.slopes) && elements_of(args[12], states, false, &l.h_last) &&
           elements_of(args[13], states, false, &l.c_last);
    return do_layer(&l, fits, sizes);
}
