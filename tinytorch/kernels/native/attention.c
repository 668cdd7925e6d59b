// Twins of kernels/attention.py. Forward, a part is a block of a head's queries: its scores stay in the cache until
// they have met the values. Backward it is a head; of few heads blocks of queries, and then of keys.
//
// Under `causal` the products leave out most of what is zero: a row ends with the tile that has its diagonal.

enum { AT_A_TIME = 128, FEW_HEADS = 8 };  // rows

typedef struct {
    Stack query, key, value, mask, keep, weights, out;  // without data where there is none
    Stack upstream, of_query, of_key, of_value, of_mask;
    bool booleans, causal;  // what the mask is made of
    float scale;
    int64_t heads;
    float *scratch, *slopes;  // what each worker has; the gradients of all scores, where these are few heads'
    int64_t scratch_size, slopes_size, slopes_at;  // of a head's gradients, and from row to row
} Attention;

static Stack rows_of(Stack s, int64_t number, int64_t begin, int64_t rows) {
    s.data = matrix_at(&s, number) + begin * s.row_at;
    s.rows = rows;
    return s;
}

static Stack head_of(Stack s, int64_t number) { return rows_of(s, number, 0, s.rows); }

// How many keys a query sees.
static int64_t seen_by(const Attention *a, int64_t query) {
    return a->causal ? least(query + 1, a->weights.columns) : a->weights.columns;
}

// The ends of what is seen of a row; where the row goes on, the last vector is a whole one.
INLINE Ends ends_in(int64_t seen, int64_t keys) {
    Ends ends = ends_of(least(over(seen, WIDTH) * WIDTH, keys));
    for (int lane = 0; lane < WIDTH; lane++) ends.own[lane] &= -(ends.begin + lane < seen);
    return ends;
}

// Return what is added to some rows of scores; what it has to make of the mask goes to `spare`.
static Stack bias_of(const Attention *a, int64_t head, int64_t begin, int64_t rows, float *spare) {
    if (!a->mask.data) return (Stack){0};
    int64_t keys = a->weights.columns, at = place_of(&a->mask, head) + begin * a->mask.row_at,
            apart = a->mask.column_at;
    Stack bias = {.data = a->mask.data + at, .row_at = a->mask.row_at};
    if (apart == 1 && !a->booleans) return bias;
    bias.data = spare;
    bias.row_at = a->mask.row_at ? keys : 0;
    for (int64_t i = 0; i < (bias.row_at ? rows : 1); i++, spare += keys, at += a->mask.row_at) {
        const char *sees = (const char *)a->mask.data + at;
        int64_t j = 0;
        for (; apart == 1 && j + WIDTH <= keys; j += WIDTH) {
            ints seen = __builtin_convertvector(*(const bytes *)(sees + j), ints);
            store(spare + j, where(seen != 0, all(0), all(-INFINITY)));
        }
        for (; j < keys; j++) {
            if (a->booleans) spare[j] = sees[j * apart] ? 0 : -INFINITY;
            else spare[j] = a->mask.data[at + j * apart];
        }
    }
    return bias;
}

// exp(x) for x up to 0; zero where it is below normal numbers, on the way to which the processor is slow.
INLINE vec exp_or_zero(vec x) {
    ints n;
    vec less_one = exp_parts(at_least(x, -87), &n);
    return where(x < -87, all(0), (less_one + 1) * (vec)((n + 127) << 23));
}

// Turn scores into weights: those that are seen, the rest are zeros.
static void softmax_scores(float *x, const float *bias, int64_t seen, int64_t keys, float scale) {
    Ends ends = ends_in(seen, keys);
    vec last = load_last(x, &ends) * scale;
    if (bias) last += load_last(bias, &ends);
    vec largest = where(ends.own, last, all(-INFINITY)), sums = {0};
    for (int64_t i = 0; i < ends.whole; i += WIDTH) {
        vec score = load(x + i) * scale;
        if (bias) score += load(bias + i);
        store(x + i, score);
        largest = larger(score, largest);
    }
    float top = largest_of(largest);
    if (top == -INFINITY) top = 0;  // it may attend to nothing
    for (int64_t i = 0; i < ends.whole; i += WIDTH) {
        vec weight = exp_or_zero(load(x + i) - top);
        store(x + i, weight);
        sums += weight;
    }
    last = exp_or_zero(last - top);
    float sum = sum_of(sums + own_of(last, &ends)), factor = sum == 0 ? 1 : 1 / sum;
    for (int64_t i = 0; i < ends.whole; i += WIDTH) store(x + i, load(x + i) * factor);
    store_last(x, last * factor, &ends);
    zero(x + seen, keys - seen);
}

static void attend_part(void *context, Py_ssize_t part, int worker) {
    const Attention *a = context;
    int64_t blocks = over(a->weights.rows, AT_A_TIME), head = part / blocks, begin = part % blocks * AT_A_TIME;
    int64_t rows = least(AT_A_TIME, a->weights.rows - begin), keys = a->weights.columns;
    float *scratch = a->scratch + worker * a->scratch_size,
          *spare = scratch + product_scratch(most(keys, a->key.columns)), *kept = spare + AT_A_TIME * keys;
    Stack weights = rows_of(a->weights, head, begin, rows), factor = weights, value = head_of(a->value, head);
    multiply_one(rows_of(a->query, head, begin, rows), transposed(head_of(a->key, head)), weights,
                 a->causal ? LOWER_RESULT : WHOLE, begin, scratch);
    Stack bias = bias_of(a, head, begin, rows, spare);
    for (int64_t i = 0; i < rows; i++) {
        float *x = weights.data + i * weights.row_at;
        softmax_scores(x, a->mask.data ? bias.data + i * bias.row_at : NULL, seen_by(a, begin + i), keys, a->scale);
        if (!a->keep.data) continue;
        const float *keep = matrix_at(&a->keep, head) + (begin + i) * a->keep.row_at;
        for (int64_t j = 0; j < keys; j++) kept[i * keys + j] = x[j] * keep[j];
    }
    if (a->keep.data) factor.data = kept, factor.row_at = keys;
    multiply_one(factor, value, rows_of(a->out, head, begin, rows), a->causal ? LOWER_FACTOR : WHOLE, begin, scratch);
}

// Turn the gradients of the weights, before dropout, into those of the scores.
static void softmax_slopes(float *x, const float *weights, float *of_mask, int64_t seen, int64_t keys, float sum,
                           float scale) {
    Ends ends = ends_in(seen, keys);
    vec last = (load_last(x, &ends) - sum) * load_last(weights, &ends);
    for (int64_t i = 0; i < ends.whole; i += WIDTH) {
        vec slope = (load(x + i) - sum) * load(weights + i);
        if (of_mask) store(of_mask + i, slope);
        store(x + i, slope * scale);
    }
    if (of_mask) store_last(of_mask, last, &ends);
    store_last(x, last * scale, &ends);
    zero(x + seen, keys - seen);
}

static float dot(const float *x, const float *y, int64_t count) {
    Ends ends = ends_of(count);
    vec sums = own_of(load_last(x, &ends) * load_last(y, &ends), &ends);
    for (int64_t i = 0; i < ends.whole; i += WIDTH) sums += load(x + i) * load(y + i);
    return sum_of(sums);
}

// The gradients by rows of the scores, and by their queries; and the weights after dropout, which follow in `slopes`.
static void back_to_queries(const Attention *a, int64_t head, int64_t begin, int64_t rows, Stack slopes,
                            float *scratch) {
    int64_t keys = a->weights.columns;
    if (!a->keep.data && !a->of_query.data && !a->of_key.data && !a->of_mask.data) return;
    Stack upstream = rows_of(a->upstream, head, begin, rows), out = rows_of(a->out, head, begin, rows);
    Stack weights = rows_of(a->weights, head, begin, rows), value = transposed(head_of(a->value, head));
    slopes = rows_of(slopes, 0, begin, rows);
    multiply_one(upstream, value, slopes, a->causal ? LOWER_RESULT : WHOLE, begin, scratch);
    for (int64_t i = 0; i < rows; i++) {
        int64_t seen = seen_by(a, begin + i);
        float *x = slopes.data + i * slopes.row_at, *of_mask = NULL;
        const float *w = weights.data + i * weights.row_at;
        if (a->keep.data) {
            const float *keep = matrix_at(&a->keep, head) + (begin + i) * a->keep.row_at;
            float *kept = x + a->slopes_size;
            for (int64_t j = 0; j < keys; j++) kept[j] = w[j] * keep[j];
            for (int64_t j = 0; j < seen; j++) x[j] *= keep[j];
        }
        if (a->of_mask.data) of_mask = matrix_at(&a->of_mask, head) + (begin + i) * a->of_mask.row_at;
        float sum = dot(upstream.data + i * upstream.row_at, out.data + i * out.row_at, upstream.columns);
        softmax_slopes(x, w, of_mask, seen, keys, sum, a->scale);
    }
    if (a->of_query.data)
        multiply_one(slopes, head_of(a->key, head), rows_of(a->of_query, head, begin, rows),
                     a->causal ? LOWER_FACTOR : WHOLE, begin, scratch);
}

// The gradients by some keys and values, of all queries.
static void back_to_keys(const Attention *a, int64_t head, int64_t begin, int64_t rows, Stack slopes, float *scratch) {
    Triangle triangle = a->causal ? UPPER_FACTOR : WHOLE;
    Stack kept = head_of(a->weights, head);
    if (a->keep.data) kept = slopes, kept.data += a->slopes_size;
    if (a->of_value.data)
        multiply_one(rows_of(transposed(kept), 0, begin, rows), head_of(a->upstream, head),
                     rows_of(a->of_value, head, begin, rows), triangle, begin, scratch);
    if (a->of_key.data)
        multiply_one(rows_of(transposed(slopes), 0, begin, rows), head_of(a->query, head),
                     rows_of(a->of_key, head, begin, rows), triangle, begin, scratch);
}

// Gradients of a head's scores, and what follows them.
static Stack slopes_in(const Attention *a, float *slopes) {
    Stack s = a->weights;
    memset(s.leading_at, 0, sizeof s.leading_at);
    s.data = slopes;
    s.row_at = a->slopes_at;
    return s;
}

static void head_part(void *context, Py_ssize_t head, int worker) {
    const Attention *a = context;
    float *own = a->scratch + worker * a->scratch_size, *scratch = own + 2 * a->slopes_size;
    for (int64_t i = 0; i < a->weights.rows; i += AT_A_TIME)
        back_to_queries(a, head, i, least(AT_A_TIME, a->weights.rows - i), slopes_in(a, own), scratch);
    back_to_keys(a, head, 0, a->weights.columns, slopes_in(a, own), scratch);
}

static void queries_part(void *context, Py_ssize_t part, int worker) {
    const Attention *a = context;
    int64_t blocks = over(a->weights.rows, AT_A_TIME), head = part / blocks, begin = part % blocks * AT_A_TIME;
    back_to_queries(a, head, begin, least(AT_A_TIME, a->weights.rows - begin),
                    slopes_in(a, a->slopes + 2 * head * a->slopes_size), a->scratch + worker * a->scratch_size);
}

static void keys_part(void *context, Py_ssize_t part, int worker) {
    const Attention *a = context;
    int64_t blocks = over(a->weights.columns, AT_A_TIME), head = part / blocks, begin = part % blocks * AT_A_TIME;
    back_to_keys(a, head, begin, least(AT_A_TIME, a->weights.columns - begin),
                 slopes_in(a, a->slopes + 2 * head * a->slopes_size), a->scratch + worker * a->scratch_size);
}

// Read an array of matrices of some size, as many as there are of the weights, or None; false if it is none.
static bool take(const Attention *a, PyObject *object, Stack *s, int64_t rows, int64_t columns, bool written) {
    if (object == Py_None) return true;
    return stack_of(object, s) && s->rows == rows && s->columns == columns && s->column_at == 1 &&
           (!written || PyArray_ISWRITEABLE((PyArrayObject *)object)) &&
           !memcmp(s->leading, a->weights.leading, sizeof s->leading);
}

// Read query, key, value, keep, is_causal, scale, weights and out; false if they are left to the definition.
static bool take_all(Attention *a, PyObject *const *args, bool written) {
    if (!PyFloat_Check(args[5]) || !stack_of(args[6], &a->weights) ||
        !take(a, args[6], &a->weights, a->weights.rows, a->weights.columns, written) || !stack_of(args[0], &a->query) ||
        !stack_of(args[2], &a->value))
        return false;
    int64_t rows = a->weights.rows, keys = a->weights.columns, features = a->query.columns, results = a->value.columns;
    a->heads = 1;
    for (int d = 0; d < LEADING; d++) a->heads *= a->weights.leading[d];
    a->causal = args[4] == Py_True;
    a->scale = (float)PyFloat_AsDouble(args[5]);
    return rows && keys && features && results && take(a, args[0], &a->query, rows, features, false) &&
           take(a, args[1], &a->key, keys, features, false) && a->key.data &&
           take(a, args[2], &a->value, keys, results, false) && take(a, args[3], &a->keep, rows, keys, false) &&
           take(a, args[7], &a->out, rows, results, written) && a->out.data;
}

static bool broadcast(int64_t *size, int64_t *at, int64_t wanted) {
    if (*size == 1) *size = wanted, *at = 0;
    return *size == wanted;
}

// Read a mask of booleans or numbers, which broadcasts; false if it is none.
static bool take_mask(Attention *a, PyObject *object) {
    if (object == Py_None) return true;
    Stack *s = &a->mask;
    a->booleans = PyArray_CheckExact(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_BOOL;
    bool fits = (a->booleans || tt_float32(object)) && !a->causal && read_stack((PyArrayObject *)object, s) &&
                broadcast(&s->rows, &s->row_at, a->weights.rows) &&
                broadcast(&s->columns, &s->column_at, a->weights.columns);
    for (int d = 0; d < LEADING; d++)
        fits = fits && broadcast(&s->leading[d], &s->leading_at[d], a->weights.leading[d]);
    return fits;
}

// Share work out, once each worker has so much scratch space.
static bool attend_shared(Attention *a, const Work *works, const int64_t *parts, int64_t scratch) {
    const int threads = tt_threads();
    a->scratch_size = over(scratch, 16) * 16;
    a->scratch = aligned((size_t)(threads * a->scratch_size));
    if (!a->scratch) return false;
    int64_t elements = a->heads * a->weights.rows * a->weights.columns;
    for (; *works; works++, parts++) tt_share(*works, a, *parts, elements, threads);
    free(a->scratch);
    return true;
}

KERNEL(attend) {
    Attention a = {0};
    if (count != 9 || out) return PASS;
    if (!take_all(&a, args, true) || !take_mask(&a, args[8])) return PASS;
    int64_t keys = a.weights.columns, scratch = product_scratch(most(keys, a.key.columns));
    if (a.mask.data || a.keep.data) scratch += 2 * AT_A_TIME * keys;
    int64_t parts = a.heads * over(a.weights.rows, AT_A_TIME);
    if (!attend_shared(&a, (Work[]){attend_part, NULL}, &parts, scratch)) return PASS;
    Py_RETURN_NONE;
}

KERNEL(attend_grad) {
    Attention a = {0};
    if (count != 13 || out || !take_all(&a, args, false)) return PASS;
    int64_t rows = a.weights.rows, keys = a.weights.columns, features = a.query.columns, results = a.value.columns;
    if (!take(&a, args[8], &a.upstream, rows, results, false) || !a.upstream.data ||
        !take(&a, args[9], &a.of_query, rows, features, true) || !take(&a, args[10], &a.of_key, keys, features, true) ||
        !take(&a, args[11], &a.of_value, keys, results, true) || !take(&a, args[12], &a.of_mask, rows, keys, true) ||
        (a.causal && a.of_mask.data))
        return PASS;
    a.slopes_at = over(keys, 16) * 16 + 16;  // (Columns of powers of two would share few places in the cache.)
    a.slopes_size = rows * a.slopes_at;
    int64_t scratch = product_scratch(most(most(rows, keys), most(features, results)));
    bool done;
    if (a.heads >= FEW_HEADS) {
        done = attend_shared(&a, (Work[]){head_part, NULL}, &a.heads, 2 * a.slopes_size + scratch);
    } else {
        a.slopes = aligned((size_t)(2 * a.heads * a.slopes_size));
        int64_t parts[] = {a.heads * over(rows, AT_A_TIME), a.heads * over(keys, AT_A_TIME)};
        done = a.slopes && attend_shared(&a, (Work[]){queries_part, keys_part, NULL}, parts, scratch);
        free(a.slopes);
    }
    if (!done) return PASS;
    Py_RETURN_NONE;
}
