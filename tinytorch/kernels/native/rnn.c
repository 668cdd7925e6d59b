// Twins of kernels/rnn.py: all time steps of an LSTM layer. Of many sequences each part takes some through all steps;
// few sequences are one part, which shares the work of each step among the threads.
#include "matmul.h"

typedef struct {
    Matrices weights;  // the first factor of a step's product
    int64_t size, steps, batch, columns;
    const int64_t *begins, *widths,
        *bounds;  // per step: the first column, the number of sequences; per part: sequences
    Py_ssize_t parts;
    bool reverse;
    int threads;
    const float *h0, *c0, *grad_out;            // of all sequences; (columns, size), NULL without a gradient
    float *gates, *before, *squashed;           // a block per step and part
    float *matrix, *hidden, *out, *grad_gates;  // of all columns
    float *h_last, *c_last, *states, *scratch;  // `states`: h and c of all sequences, in a block per part
    int64_t scratch_size;                       // per worker
} Layer;

// A part's sequences in one step: `count` of them, in the columns from `first` on.
typedef struct {
    const Layer *layer;
    int64_t count, first, state_stride;
    float *gates, *before, *squashed, *h, *c;
    float *next;  // the hidden states among the inputs of the next step, if that has as many sequences; or NULL
} Step;

// The cells of a step are processed in blocks of WIDTH rows (units of the hidden state), which are transposed to or
// from the rows of the output.

static void lstm_part(void *context, Py_ssize_t part, int worker) {
    const Step *s = context;
    const Layer *l = s->layer;
    int64_t first = part * WIDTH, rows = imin(WIDTH, l->size - first), gate = l->size * s->count;
    float tile[WIDTH * TILE_COLUMNS] = {0};
    (void)worker;
    for (int64_t column = 0; column < s->count; column += TILE_COLUMNS) {
        int64_t columns = imin(TILE_COLUMNS, s->count - column);
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = (first + row) * s->count + column, state_at = (first + row) * s->state_stride + column;
            for (int64_t k = 0; k < columns; k += WIDTH) {
                int64_t left = columns - k;
                float *i = s->gates + at + k, *f = i + gate, *o = f + gate, *n = o + gate, *c = s->c + state_at + k;
                // The weights of i, f and o have been negated.
                vec input = 1 / (vexp(load_up_to(i, left)) + 1), forget = 1 / (vexp(load_up_to(f, left)) + 1);
                vec output = 1 / (vexp(load_up_to(o, left)) + 1), cell = vtanh(load_up_to(n, left));
                vec old_c = load_up_to(c, left), new_c = forget * old_c + input * cell, tanh_c = vtanh(new_c);
                store_up_to(i, input, left);
                store_up_to(f, forget, left);
                store_up_to(o, output, left);
                store_up_to(n, cell, left);
                store_up_to(s->before + at + k, old_c, left);
                store_up_to(s->squashed + at + k, tanh_c, left);
                store_up_to(c, new_c, left);
                store_up_to(s->h + state_at + k, output * tanh_c, left);
                if (s->next) store_up_to(s->next + (first + row) * l->columns + column + k, output * tanh_c, left);
                store(tile + row * TILE_COLUMNS + k, output * tanh_c);
            }
        }
        store_transposed(tile, rows, columns, l->out + (s->first + column) * l->size + first, l->size);
    }
}

static void lstm_grad_part(void *context, Py_ssize_t part, int worker) {
    const Step *s = context;
    const Layer *l = s->layer;
    int64_t first = part * WIDTH, rows = imin(WIDTH, l->size - first), gate = l->size * s->count;
    int64_t grad_gate = l->size * l->columns;
    (void)worker;
    for (int64_t k = 0; k < s->count; k += WIDTH) {
        int64_t left = imin(WIDTH, s->count - k);
        vec grad_out[WIDTH];
        if (l->grad_out) {
            const float *from = l->grad_out + (s->first + k) * l->size + first;
            for (int64_t j = 0; j < WIDTH; j++) {
                grad_out[j] = j < left ? load_up_to(from + j * l->size, rows) : (vec){0};
            }
            transpose(grad_out);
        }
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = (first + row) * s->count + k, state_at = (first + row) * s->state_stride + k;
            const float *i = s->gates + at, *f = i + gate, *o = f + gate, *n = o + gate;
            vec input = load_up_to(i, left), forget = load_up_to(f, left);
            vec output = load_up_to(o, left), cell = load_up_to(n, left);
            vec tanh_c = load_up_to(s->squashed + at, left), grad_h = load_up_to(s->h + state_at, left);
            if (l->grad_out) grad_h += grad_out[row];
            vec grad_c = load_up_to(s->c + state_at, left) + grad_h * output * (1 - tanh_c * tanh_c);
            float *to = l->grad_gates + (first + row) * l->columns + s->first + k;
            store_up_to(to, grad_c * cell * input * (1 - input), left);
            store_up_to(to + grad_gate, grad_c * load_up_to(s->before + at, left) * forget * (1 - forget), left);
            store_up_to(to + 2 * grad_gate, grad_c * input * (1 - cell * cell), left);
            store_up_to(to + 3 * grad_gate, grad_h * tanh_c * output * (1 - output), left);
            store_up_to(s->c + state_at, grad_c * forget, left);
        }
    }
}

static void copy_transposed(const float *from, int64_t rows, int64_t columns, int64_t from_stride, float *to,
                            int64_t to_stride) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * to_stride + r] = from[r * from_stride + c];
}

static void multiply_step(const Layer *l, Matrices factor, Matrices result, float *scratch) {
    Product p = {.result = result, .scratch = scratch, .scratch_size = l->scratch_size};
    plan(&p, &l->weights, &factor);
    int64_t parts = cut(&p, 1, l->threads), multiplications = factor.rows * factor.columns * result.rows;
    tt_parallel_for_unlocked(product_part, &p, parts, multiplications / WIDTH, l->threads);
}

// Run all steps of a part. Sequences that have not begun yet, or have ended, keep their states.
static void steps_part(void *context, Py_ssize_t part, int worker) {
    const Layer *l = context;
    int64_t low = l->bounds[part], sequences = l->bounds[part + 1] - low, size = l->size;
    bool forward = !l->grad_gates;
    float *scratch = l->scratch + worker * l->scratch_size;
    Step s = {.layer = l, .state_stride = sequences, .h = l->states + 2 * size * low};
    s.c = s.h + size * sequences;
    copy_transposed(l->h0 + low * size, sequences, size, size, s.h, sequences);
    copy_transposed(l->c0 + low * size, sequences, size, size, s.c, sequences);
    for (int64_t k = 0; k < l->steps; k++) {
        int64_t step = l->reverse == forward ? l->steps - 1 - k : k;
        s.count = imin(l->widths[step] - low, sequences), s.first = l->begins[step] + low;
        if (s.count <= 0) continue;
        s.gates = l->gates + 4 * size * s.first, s.before = l->before + size * s.first;
        s.squashed = l->squashed + size * s.first;
        int64_t blocks = ceil_div(size, WIDTH), elements = size * s.count;
        if (forward) {
            for (int64_t r = 0; !s.next && r < size; r++) {
                copy_floats(l->hidden + r * l->columns + s.first, s.h + r * sequences, s.count);
            }
            const int64_t next = step + (l->reverse ? -1 : 1);
            const bool alike = k + 1 < l->steps && imin(l->widths[next] - low, sequences) == s.count;
            s.next = alike ? l->hidden + l->begins[next] + low : NULL;
            multiply_step(l, matrix(l->matrix + s.first, l->weights.columns, s.count, l->columns, 1),
                          matrix(s.gates, 4 * size, s.count, s.count, 1), scratch);
            tt_parallel_for_unlocked(lstm_part, &s, blocks, elements, l->threads);
        } else {
            tt_parallel_for_unlocked(lstm_grad_part, &s, blocks, elements, l->threads);
            multiply_step(l, matrix(l->grad_gates + s.first, 4 * size, s.count, l->columns, 1),
                          matrix(s.h, size, s.count, sequences, 1), scratch);
        }
    }
    copy_transposed(s.h, size, sequences, sequences, l->h_last + low * size, size);
    copy_transposed(s.c, size, sequences, sequences, l->c_last + low * size, size);
}

// Read the number of sequences of each step, the direction, and the bounds of the parts; false if the kernel does not
// take the layer. The caller frees `sizes`.
static bool read_steps(Layer *l, PyObject *widths, PyObject *reverse, PyObject *bounds, int64_t **sizes) {
    *sizes = NULL;
    if (!PyTuple_Check(widths) || !is_index_array(bounds) || PyArray_NDIM(ARRAY(bounds)) != 1 ||
        PyArray_SIZE(ARRAY(bounds)) < 2)
        return false;
    l->steps = PyTuple_Size(widths);
    l->reverse = reverse == Py_True;
    l->bounds = PyArray_DATA(ARRAY(bounds));
    l->parts = PyArray_SIZE(ARRAY(bounds)) - 1;
    l->threads = l->parts > 1 ? 1 : tt_threads();
    *sizes = malloc((size_t)l->steps * 2 * sizeof(int64_t));
    if (!*sizes || !tt_read_sizes(widths, l->steps, *sizes)) return false;
    l->widths = *sizes, l->begins = *sizes + l->steps;
    for (int64_t k = 0; k < l->steps; k++) {
        (*sizes)[l->steps + k] = l->columns;
        l->columns += l->widths[k];
        l->batch = imax(l->batch, l->widths[k]);
    }
    return l->size && l->weights.columns <= MAX_DEPTH && l->bounds[l->parts] == l->batch;
}

// Run the layer if its arguments fit, and free what has been allocated for it.
static PyObject *run_layer(Layer *l, bool fits, int64_t *sizes) {
    l->scratch_size = product_scratch(l->weights.columns);
    int64_t workers = imax(l->threads, l->parts);
    l->scratch = fits ? alloc_floats((size_t)(workers * l->scratch_size)) : NULL;
    l->states = l->scratch ? malloc((size_t)(2 * l->size * l->batch + 1) * sizeof(float)) : NULL;
    bool done = l->states != NULL;
    if (done) {
        int64_t multiplications = l->weights.rows * l->weights.columns * l->columns;
        tt_parallel_for(steps_part, l, l->parts, multiplications / WIDTH, (int)l->parts);
    }
    free(l->states);
    free(l->scratch);
    free(sizes);
    return done ? Py_NewRef(Py_None) : FALLBACK;
}

KERNEL(lstm_steps, weights, w_hr, h0, c0, widths, reverse, bounds, matrix, gates, before, squashed, out, h_n, c_n) {
    Layer l = {0};
    Matrices weights, matrix;
    int64_t *sizes;
    if (args->w_hr != Py_None || !read_matrices(args->weights, &weights) || !read_matrices(args->matrix, &matrix))
        return FALLBACK;
    l.weights = weights, l.size = weights.rows / 4;
    bool fits = read_steps(&l, args->widths, args->reverse, args->bounds, &sizes);
    l.matrix = matrix.data, l.hidden = matrix.data + (matrix.rows - l.size) * matrix.row_stride;
    int64_t state = l.batch * l.size, total = l.columns * l.size;
    fits = fits && matrix.rows == weights.columns && matrix.columns == l.columns && tt_is_contiguous(args->matrix) &&
           read_floats(args->h0, state, false, (float **)&l.h0) &&
           read_floats(args->c0, state, false, (float **)&l.c0) &&
           read_floats(args->gates, 4 * total, false, &l.gates) && read_floats(args->before, total, false, &l.before) &&
           read_floats(args->squashed, total, false, &l.squashed) && read_floats(args->out, total, false, &l.out) &&
           read_floats(args->h_n, state, false, &l.h_last) && read_floats(args->c_n, state, false, &l.c_last);
    return run_layer(&l, fits, sizes);
}

KERNEL(lstm_steps_grad, w_hh, projection, g_out, g_h, g_c, widths, reverse, bounds, gates, before, squashed, slopes,
       grad_h0, grad_c0) {
    Layer l = {0};
    Matrices weights;
    int64_t *sizes;
    if (args->projection != Py_None || !read_matrices(args->w_hh, &weights)) return FALLBACK;
    l.weights = transposed(weights), l.size = weights.columns;
    bool fits = read_steps(&l, args->widths, args->reverse, args->bounds, &sizes);
    int64_t state = l.batch * l.size, total = l.columns * l.size;
    fits = fits && weights.rows == 4 * l.size && read_floats(args->g_out, total, true, (float **)&l.grad_out) &&
           read_floats(args->g_h, state, false, (float **)&l.h0) &&
           read_floats(args->g_c, state, false, (float **)&l.c0) &&
           read_floats(args->gates, 4 * total, false, &l.gates) && read_floats(args->before, total, false, &l.before) &&
           read_floats(args->squashed, total, false, &l.squashed) &&
           read_floats(args->slopes, 4 * total, false, &l.grad_gates) &&
           read_floats(args->grad_h0, state, false, &l.h_last) && read_floats(args->grad_c0, state, false, &l.c_last);
    return run_layer(&l, fits, sizes);
}

// The weights of all gates beside each other: see the definition.
SMALL_KERNEL(lstm_weights, w_ih, w_hh, b_ih, b_hh) {
    if (!is_float_array(args->w_ih, false) || !is_float_array(args->w_hh, false)) return FALLBACK;
    if (PyArray_NDIM(ARRAY(args->w_ih)) != 2 || PyArray_NDIM(ARRAY(args->w_hh)) != 2) return FALLBACK;
    const int64_t rows = PyArray_DIM(ARRAY(args->w_ih), 0), size = rows / 4;
    const int64_t features = PyArray_DIM(ARRAY(args->w_ih), 1), hidden = PyArray_DIM(ARRAY(args->w_hh), 1);
    const int64_t width = features + 1 + hidden, shape[] = {rows, width};
    float *b_ih, *b_hh;
    if (rows % 4 || PyArray_DIM(ARRAY(args->w_hh), 0) != rows) return FALLBACK;
    if (!read_floats(args->b_ih, rows, true, &b_ih) || !read_floats(args->b_hh, rows, true, &b_hh)) return FALLBACK;
    if (!b_ih != !b_hh) return FALLBACK;
    PyObject *whole = tt_new_array(args->w_ih, 2, shape);
    if (!whole) return NULL;
    const int64_t from[] = {0, 1, 3, 2};  // PyTorch's order is i, f, g, o
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = from[i / size] * size + i % size;
        const float *of_input = float_data(args->w_ih) + row * features;
        const float *of_state = float_data(args->w_hh) + row * hidden;
        const float sign = i < 3 * size ? -1 : 1;
        float *to = float_data(whole) + i * width;
        for (int64_t k = 0; k < features; k++) to[k] = sign * of_input[k];
        to[features] = b_ih ? sign * (b_ih[row] + b_hh[row]) : 0;
        for (int64_t k = 0; k < hidden; k++) to[features + 1 + k] = sign * of_state[k];
    }
    return whole;
}

FAMILY(rnn, ENTRY(lstm_weights), ENTRY(lstm_steps), ENTRY(lstm_steps_grad));
