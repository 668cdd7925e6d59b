// Twins of kernels/attention.py. Forward, a part of the work is a block of queries of one head, whose scores stay in
// the cache until they have been multiplied by the values. Backward it is a head; or, where there are few heads, a
// block of queries, and after all of these a block of keys.
//
// With a causal mask most products with zeros are skipped: a row ends with the tile that contains its diagonal element.
#include "matmul.h"

enum {
    BLOCK_ROWS = 128,  // rows of a block
    FEW_HEADS = 8,     // fewer heads are cut into blocks backward
};

typedef struct {
    Matrices query, key, value, mask, keep, weights, out;  // `data` is NULL for an argument that is None
    Matrices grad_out, grad_query, grad_key, grad_value, grad_mask;
    bool bool_mask, causal;
    float scale;
    int64_t heads;
    float *scratch;                                              // of all workers
    float *grad_scores;                                          // of all heads, where there are few
    int64_t scratch_size, grad_scores_size, grad_scores_stride;  // per worker; per head; of a row
} Attention;

static Matrices rows_of(Matrices m, int64_t head, int64_t begin, int64_t rows) {
    m.data = matrix_data(&m, head) + begin * m.row_stride;
    m.rows = rows;
    return m;
}

static Matrices head_of(Matrices m, int64_t head) { return rows_of(m, head, 0, m.rows); }

// The number of keys that a query attends to.
static int64_t visible_keys(const Attention *a, int64_t query) {
    return a->causal ? imin(query + 1, a->weights.columns) : a->weights.columns;
}

// The tail of the visible part of a row. Where the row goes on, the last vector is a whole one, and only its visible
// lanes are `own`.
INLINE Tail visible_tail(int64_t visible, int64_t keys) {
    Tail tail = tail_of(imin(ceil_div(visible, WIDTH) * WIDTH, keys));
    for (int lane = 0; lane < WIDTH; lane++) tail.own[lane] &= -(tail.begin + lane < visible);
    return tail;
}

// Return the numbers that are added to rows of scores: the mask itself, or a copy in `scratch` if it has to be
// converted.
static Matrices bias_of(const Attention *a, int64_t head, int64_t begin, int64_t rows, float *scratch) {
    if (!a->mask.data) return (Matrices){0};
    int64_t keys = a->weights.columns, at = matrix_offset(&a->mask, head) + begin * a->mask.row_stride;
    int64_t step = a->mask.column_stride;
    Matrices bias = {.data = a->mask.data + at, .row_stride = a->mask.row_stride};
    if (step == 1 && !a->bool_mask) return bias;
    bias.data = scratch;
    bias.row_stride = a->mask.row_stride ? keys : 0;
    for (int64_t i = 0; i < (bias.row_stride ? rows : 1); i++, scratch += keys, at += a->mask.row_stride) {
        const char *allowed = (const char *)a->mask.data + at;
        int64_t j = 0;
        for (; step == 1 && j + WIDTH <= keys; j += WIDTH) {
            ints mask = __builtin_convertvector(*(const byte_vec *)(allowed + j), ints);
            store(scratch + j, where(mask != 0, broadcast(0), broadcast(-INFINITY)));
        }
        for (; j < keys; j++) {
            if (a->bool_mask) scratch[j] = allowed[j * step] ? 0 : -INFINITY;
            else scratch[j] = a->mask.data[at + j * step];
        }
    }
    return bias;
}

// Replace a row of scores by its softmax; the weights of invisible keys are zero.
static void softmax_scores(float *x, const float *bias, int64_t visible, int64_t keys, float scale) {
    Tail tail = visible_tail(visible, keys);
    vec last = load_tail(x, &tail) * scale;
    if (bias) last += load_tail(bias, &tail);
    vec largest = where(tail.own, last, broadcast(-INFINITY)), sums = {0};
    for (int64_t i = 0; i < tail.body; i += WIDTH) {
        vec score = load(x + i) * scale;
        if (bias) score += load(bias + i);
        store(x + i, score);
        largest = vmax(score, largest);
    }
    float max = horizontal_max(largest);
    if (max == -INFINITY) max = 0;  // the query may attend to no key
    for (int64_t i = 0; i < tail.body; i += WIDTH) {
        vec weight = vexp_flushed(load(x + i) - max);
        store(x + i, weight);
        sums += weight;
    }
    last = vexp_flushed(last - max);
    float sum = horizontal_sum(sums + mask_tail(last, &tail)), factor = sum == 0 ? 1 : 1 / sum;
    for (int64_t i = 0; i < tail.body; i += WIDTH) store(x + i, load(x + i) * factor);
    store_tail(x, last * factor, &tail);
    fill_zero(x + visible, keys - visible);
}

static void attend_part(void *context, Py_ssize_t part, int worker) {
    const Attention *a = context;
    int64_t blocks = ceil_div(a->weights.rows, BLOCK_ROWS), head = part / blocks, begin = part % blocks * BLOCK_ROWS;
    int64_t rows = imin(BLOCK_ROWS, a->weights.rows - begin), keys = a->weights.columns;
    float *scratch = a->scratch + worker * a->scratch_size,
          *mask_scratch = scratch + product_scratch(imax(keys, a->key.columns)),
          *kept = mask_scratch + BLOCK_ROWS * keys;
    Matrices weights = rows_of(a->weights, head, begin, rows), factor = weights, value = head_of(a->value, head);
    multiply_single(rows_of(a->query, head, begin, rows), transposed(head_of(a->key, head)), weights,
                    a->causal ? LOWER_RESULT : FULL, begin, scratch);
    Matrices bias = bias_of(a, head, begin, rows, mask_scratch);
    for (int64_t i = 0; i < rows; i++) {
        float *x = weights.data + i * weights.row_stride;
        softmax_scores(x, a->mask.data ? bias.data + i * bias.row_stride : NULL, visible_keys(a, begin + i), keys,
                       a->scale);
        if (!a->keep.data) continue;
        const float *keep = matrix_data(&a->keep, head) + (begin + i) * a->keep.row_stride;
        for (int64_t j = 0; j < keys; j++) kept[i * keys + j] = x[j] * keep[j];
    }
    if (a->keep.data) factor.data = kept, factor.row_stride = keys;
    multiply_single(factor, value, rows_of(a->out, head, begin, rows), a->causal ? LOWER_FACTOR : FULL, begin, scratch);
}

// Backward --------------------------------------------------------------------------------------

// Replace the gradient of a row of weights by that of its scores. `sum` is the sum of its products with the weights.
static void softmax_scores_grad(float *x, const float *weights, float *grad_mask, int64_t visible, int64_t keys,
                                float sum, float scale) {
    Tail tail = visible_tail(visible, keys);
    vec last = (load_tail(x, &tail) - sum) * load_tail(weights, &tail);
    for (int64_t i = 0; i < tail.body; i += WIDTH) {
        vec grad = (load(x + i) - sum) * load(weights + i);
        if (grad_mask) store(grad_mask + i, grad);
        store(x + i, grad * scale);
    }
    if (grad_mask) store_tail(grad_mask, last, &tail);
    store_tail(x, last * scale, &tail);
    fill_zero(x + visible, keys - visible);
}

static float dot(const float *x, const float *y, int64_t count) {
    Tail tail = tail_of(count);
    vec sums = mask_tail(load_tail(x, &tail) * load_tail(y, &tail), &tail);
    for (int64_t i = 0; i < tail.body; i += WIDTH) sums += load(x + i) * load(y + i);
    return horizontal_sum(sums);
}

// Compute the gradients of some rows of scores (and the weights after dropout, which follow all of the head's gradients
// in memory), and those of the rows' queries.
static void query_grad(const Attention *a, int64_t head, int64_t begin, int64_t rows, Matrices grad_scores,
                       float *scratch) {
    int64_t keys = a->weights.columns;
    if (!a->keep.data && !a->grad_query.data && !a->grad_key.data && !a->grad_mask.data) return;
    Matrices grad_out = rows_of(a->grad_out, head, begin, rows), out = rows_of(a->out, head, begin, rows);
    Matrices weights = rows_of(a->weights, head, begin, rows), value = transposed(head_of(a->value, head));
    grad_scores = rows_of(grad_scores, 0, begin, rows);
    multiply_single(grad_out, value, grad_scores, a->causal ? LOWER_RESULT : FULL, begin, scratch);
    for (int64_t i = 0; i < rows; i++) {
        int64_t visible = visible_keys(a, begin + i);
        float *x = grad_scores.data + i * grad_scores.row_stride, *grad_mask = NULL;
        const float *w = weights.data + i * weights.row_stride;
        if (a->keep.data) {
            const float *keep = matrix_data(&a->keep, head) + (begin + i) * a->keep.row_stride;
            float *kept = x + a->grad_scores_size;
            for (int64_t j = 0; j < keys; j++) kept[j] = w[j] * keep[j];
            for (int64_t j = 0; j < visible; j++) x[j] *= keep[j];
        }
        if (a->grad_mask.data) grad_mask = matrix_data(&a->grad_mask, head) + (begin + i) * a->grad_mask.row_stride;
        float sum = dot(grad_out.data + i * grad_out.row_stride, out.data + i * out.row_stride, grad_out.columns);
        softmax_scores_grad(x, w, grad_mask, visible, keys, sum, a->scale);
    }
    if (a->grad_query.data)
        multiply_single(grad_scores, head_of(a->key, head), rows_of(a->grad_query, head, begin, rows),
                        a->causal ? LOWER_FACTOR : FULL, begin, scratch);
}

// Compute the gradients of some keys and values, from those of all scores of a head.
static void key_grad(const Attention *a, int64_t head, int64_t begin, int64_t rows, Matrices grad_scores,
                     float *scratch) {
    Triangle triangle = a->causal ? UPPER_FACTOR : FULL;
    Matrices kept = head_of(a->weights, head);
    if (a->keep.data) kept = grad_scores, kept.data += a->grad_scores_size;
    if (a->grad_value.data)
        multiply_single(rows_of(transposed(kept), 0, begin, rows), head_of(a->grad_out, head),
                        rows_of(a->grad_value, head, begin, rows), triangle, begin, scratch);
    if (a->grad_key.data)
        multiply_single(rows_of(transposed(grad_scores), 0, begin, rows), head_of(a->query, head),
                        rows_of(a->grad_key, head, begin, rows), triangle, begin, scratch);
}

// The matrix of a head's gradients of scores at `data`.
static Matrices grad_scores_at(const Attention *a, float *data) {
    Matrices m = a->weights;
    memset(m.leading_stride, 0, sizeof m.leading_stride);
    m.data = data;
    m.row_stride = a->grad_scores_stride;
    return m;
}

static void head_grad_part(void *context, Py_ssize_t head, int worker) {
    const Attention *a = context;
    float *grad_scores = a->scratch + worker * a->scratch_size, *scratch = grad_scores + 2 * a->grad_scores_size;
    for (int64_t i = 0; i < a->weights.rows; i += BLOCK_ROWS)
        query_grad(a, head, i, imin(BLOCK_ROWS, a->weights.rows - i), grad_scores_at(a, grad_scores), scratch);
    key_grad(a, head, 0, a->weights.columns, grad_scores_at(a, grad_scores), scratch);
}

static void query_grad_part(void *context, Py_ssize_t part, int worker) {
    const Attention *a = context;
    int64_t blocks = ceil_div(a->weights.rows, BLOCK_ROWS), head = part / blocks, begin = part % blocks * BLOCK_ROWS;
    query_grad(a, head, begin, imin(BLOCK_ROWS, a->weights.rows - begin),
               grad_scores_at(a, a->grad_scores + 2 * head * a->grad_scores_size),
               a->scratch + worker * a->scratch_size);
}

static void key_grad_part(void *context, Py_ssize_t part, int worker) {
    const Attention *a = context;
    int64_t blocks = ceil_div(a->weights.columns, BLOCK_ROWS), head = part / blocks, begin = part % blocks * BLOCK_ROWS;
    key_grad(a, head, begin, imin(BLOCK_ROWS, a->weights.columns - begin),
             grad_scores_at(a, a->grad_scores + 2 * head * a->grad_scores_size), a->scratch + worker * a->scratch_size);
}

// Calls -----------------------------------------------------------------------------------------

// Read matrices of a given size, as many as `weights` has, or None; false for anything else.
static bool read_sized(const Attention *a, PyObject *object, Matrices *m, int64_t rows, int64_t columns,
                       bool writable) {
    if (object == Py_None) return true;
    return read_matrices(object, m) && m->rows == rows && m->columns == columns && m->column_stride == 1 &&
           (!writable || PyArray_ISWRITEABLE(ARRAY(object))) &&
           !memcmp(m->leading, a->weights.leading, sizeof m->leading);
}

// The first arguments of both kernels.
typedef struct {
    Argument query, key, value, keep, is_causal, scale, weights, out;
} CommonArguments;

// Read them; false if they are left to the definition. Forward, `weights` and `out` are written.
static bool read_common(Attention *a, const CommonArguments *args, bool forward) {
    if (!PyFloat_Check(args->scale) || !read_matrices(args->weights, &a->weights) ||
        !read_sized(a, args->weights, &a->weights, a->weights.rows, a->weights.columns, forward) ||
        !read_matrices(args->query, &a->query) || !read_matrices(args->value, &a->value))
        return false;
    int64_t rows = a->weights.rows, keys = a->weights.columns, features = a->query.columns, results = a->value.columns;
    a->heads = 1;
    for (int d = 0; d < MAX_LEADING; d++) a->heads *= a->weights.leading[d];
    a->causal = args->is_causal == Py_True;
    a->scale = (float)PyFloat_AsDouble(args->scale);
    return rows && keys && features && results && read_sized(a, args->query, &a->query, rows, features, false) &&
           read_sized(a, args->key, &a->key, keys, features, false) && a->key.data &&
           read_sized(a, args->value, &a->value, keys, results, false) &&
           read_sized(a, args->keep, &a->keep, rows, keys, false) &&
           read_sized(a, args->out, &a->out, rows, results, forward) && a->out.data;
}

static bool broadcast_dim(int64_t *size, int64_t *stride, int64_t target) {
    if (*size == 1) *size = target, *stride = 0;
    return *size == target;
}

// Read a mask of booleans or float32 numbers that broadcasts to the scores, or None; false for anything else.
static bool read_mask(Attention *a, PyObject *object) {
    if (object == Py_None) return true;
    Matrices *m = &a->mask;
    a->bool_mask = PyArray_CheckExact(object) && PyArray_TYPE(ARRAY(object)) == NPY_BOOL;
    bool fits = (a->bool_mask || tt_is_float32(object)) && !a->causal && view_as_matrices(ARRAY(object), m) &&
                broadcast_dim(&m->rows, &m->row_stride, a->weights.rows) &&
                broadcast_dim(&m->columns, &m->column_stride, a->weights.columns);
    for (int d = 0; d < MAX_LEADING; d++)
        fits = fits && broadcast_dim(&m->leading[d], &m->leading_stride[d], a->weights.leading[d]);
    return fits;
}

// Run parallel loops one after another (`works` ends with NULL), with `scratch` floats for each worker; false if there
// is no memory.
static bool run_loops(Attention *a, const Work *works, const int64_t *parts, int64_t scratch) {
    const int threads = tt_threads();
    a->scratch_size = round_to_lines(scratch);
    a->scratch = alloc_floats((size_t)(threads * a->scratch_size));
    if (!a->scratch) return false;
    int64_t elements = a->heads * a->weights.rows * a->weights.columns;
    for (; *works; works++, parts++) tt_parallel_for(*works, a, *parts, elements, threads);
    free(a->scratch);
    return true;
}

KERNEL(attend, query, key, value, keep, is_causal, scale, weights, out, mask) {
    Attention a = {0};
    if (!read_common(&a, (const CommonArguments *)args, true) || !read_mask(&a, args->mask)) return FALLBACK;
    int64_t keys = a.weights.columns, scratch = product_scratch(imax(keys, a.key.columns));
    if (a.mask.data || a.keep.data) scratch += 2 * BLOCK_ROWS * keys;
    int64_t parts = a.heads * ceil_div(a.weights.rows, BLOCK_ROWS);
    if (!run_loops(&a, (Work[]){attend_part, NULL}, &parts, scratch)) return FALLBACK;
    Py_RETURN_NONE;
}

KERNEL(attend_grad, query, key, value, keep, is_causal, scale, weights, out, g, of_query, of_key, of_value, of_mask) {
    Attention a = {0};
    if (!read_common(&a, (const CommonArguments *)args, false)) return FALLBACK;
    int64_t rows = a.weights.rows, keys = a.weights.columns, features = a.query.columns, results = a.value.columns;
    if (!read_sized(&a, args->g, &a.grad_out, rows, results, false) || !a.grad_out.data ||
        !read_sized(&a, args->of_query, &a.grad_query, rows, features, true) ||
        !read_sized(&a, args->of_key, &a.grad_key, keys, features, true) ||
        !read_sized(&a, args->of_value, &a.grad_value, keys, results, true) ||
        !read_sized(&a, args->of_mask, &a.grad_mask, rows, keys, true) || (a.causal && a.grad_mask.data))
        return FALLBACK;
    a.grad_scores_stride =
        round_to_lines(keys) + CACHE_LINE;  // a power of two would map columns to few sets of the cache
    a.grad_scores_size = rows * a.grad_scores_stride;
    int64_t scratch = product_scratch(imax(imax(rows, keys), imax(features, results)));
    bool done;
    if (a.heads >= FEW_HEADS) {
        done = run_loops(&a, (Work[]){head_grad_part, NULL}, &a.heads, 2 * a.grad_scores_size + scratch);
    } else {
        a.grad_scores = alloc_floats((size_t)(2 * a.heads * a.grad_scores_size));
        int64_t parts[] = {a.heads * ceil_div(rows, BLOCK_ROWS), a.heads * ceil_div(keys, BLOCK_ROWS)};
        done = a.grad_scores && run_loops(&a, (Work[]){query_grad_part, key_grad_part, NULL}, parts, scratch);
        free(a.grad_scores);
    }
    if (!done) return FALLBACK;
    Py_RETURN_NONE;
}

FAMILY(attention, ENTRY(attend), ENTRY(attend_grad));
