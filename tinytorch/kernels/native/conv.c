// Twins of kernels/conv.py: the three sides of a convolution, as products whose columns are never stored.
//
// A correlation (correlation.c) that direct.c does not take lays a block out, and packs panels of COLUMNS places, which
// stay in the cache while they meet all rows of the weight.
//
// For `conv_weight` what is laid out is read as it lies: a tile of the weight's gradient, some taps by some outputs,
// adds up over the places numbers of the image times vectors of the output's gradient, which is transposed for that.

// Panels ----------------------------------------------------------------------------------------

typedef struct {
    int64_t at, length;
    int64_t number;  // of the first place, from the first of all runs on
    Three place;     // and where it is in an image
} Run;

// Where the places from `begin` on lie in what is laid out, and in the result.
static int find_runs(const Correlation *c, const Block *b, int64_t begin, int64_t count, Run *laid, Run *result,
                     int *results) {
    const Axis *a = c->axis;
    int64_t width = b->count[2], column = begin % width, row = begin / width, end = count;
    int runs = 0;
    *results = 0;
    while (count) {
        int64_t h = row % b->count[1], d = row / b->count[1] % b->count[0], n = row / b->count[1] / b->count[0];
        int64_t length = least(width - column, count), place[3] = {d, h, column};
        int64_t number = end - count, laid_at = n * c->laid_at[0] + d * c->laid_at[3] + h * c->laid_at[4] + column;
        place[c->split] += b->begin;
        laid[runs++] = (Run){laid_at, length, number, {place[0], place[1], place[2]}};
        int64_t at = (b->first + n) * c->result_at[0];
        for (int k = 0; k < 3; k++) at += (a[k].start + a[k].step * place[k]) * c->result_at[2 + k];
        Run *before = result + *results - 1;
        if (*results && a[2].step == 1 && c->result_at[4] == 1 && before->at + before->length == at)
            before->length += length;
        else result[(*results)++] = (Run){.at = at, .length = length};
        count -= length;
        column = 0;
        row++;
    }
    return runs;
}

INLINE void pack(const Correlation *c, const float *laid, int64_t length, float *to) {
    for (int64_t channel = 0; channel < c->channels; channel++, laid += c->laid_at[1])
        for (int64_t t = 0; t < c->taps; t++, to += COLUMNS) copy(to, laid + c->tap_at[t], length);
}

// Copy what the taps meet at some places: run by run, so that what depends on its length is decided once.
static void pack_panel(const Correlation *c, const float *laid, const Run *runs, int count, float *panel) {
    for (int r = 0; r < count; panel += runs[r++].length) {
        const float *from = laid + runs[r].at;
        int64_t length = runs[r].length;
        if (length == 3 * WIDTH) pack(c, from, 3 * WIDTH, panel);
        else if (length == 2 * WIDTH) pack(c, from, 2 * WIDTH, panel);
        else if (length == WIDTH) pack(c, from, WIDTH, panel);
        else if (length > WIDTH) pack(c, from, length, panel);
        else if (length >= 8) pack(c, from, length, panel);
        else if (length >= 4) pack(c, from, length, panel);
        else pack(c, from, length, panel);
    }
}

// Add to a tile the product of ROWS rows of the weight and `vectors` vectors of a panel. It begins with the bias, or
// with the sums so far.
INLINE void tile(int vectors, const float *weight, const float *panel, int64_t depth, const float *bias,
                 const float *sums, float *to, int64_t apart) {
    vec found[ROWS][VECTORS_IN_TILE];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < vectors; j++) found[i][j] = bias ? all(bias[i]) : load(sums + i * COLUMNS + j * WIDTH);
    for (int64_t k = 0; k < depth; k++, weight += ROWS, panel += COLUMNS) {
        vec b[VECTORS_IN_TILE];
        for (int j = 0; j < vectors; j++) b[j] = load(panel + j * WIDTH);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < vectors; j++) found[i][j] += weight[i] * b[j];
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < vectors; j++) store(to + i * apart + j * WIDTH, found[i][j]);
}

static void product(int64_t places, const float *weight, const float *panel, int64_t depth, const float *bias,
                    const float *sums, float *to, int64_t apart) {
    if (places > 2 * WIDTH) tile(3, weight, panel, depth, bias, sums, to, apart);
    else if (places > WIDTH) tile(2, weight, panel, depth, bias, sums, to, apart);
    else tile(1, weight, panel, depth, bias, sums, to, apart);
}

// Weights `(groups, tiles of rows, channels, taps, ROWS)`.
static void pack_weight(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Correlation *c = context;
    int64_t tiles = over(c->rows, ROWS), length = c->channels * c->taps, first = block % tiles * ROWS;
    float *to = c->packed + block * length * ROWS;
    for (int i = 0; i < ROWS; i++) {
        const float *from = c->weight + block / tiles * c->weight_at[5] + (first + i) * c->weight_at[0];
        for (int64_t channel = 0, k = i; channel < c->channels; channel++, from += c->weight_at[1])
            for (int64_t t = 0; t < c->taps; t++, k += ROWS)
                to[k] = first + i < c->rows ? from[c->weight_tap_at[t]] : 0;
    }
}

static float *scratch_of(const Correlation *c, int worker) { return c->scratch + worker * c->scratch_size; }

// Write a row of places to where they lie in the result.
INLINE void put(float *to, const float *from, int64_t count, int64_t step) {
    if (step == 1) copy(to, from, count);
    else if (step == 2)
        for (int64_t i = 0; i < count; i++) to[2 * i] = from[i];
    else
        for (int64_t i = 0; i < count; i++) to[i * step] = from[i];
}

// Compute some rows of a group's result for a block.
static void correlate_part(void *context, Py_ssize_t part, int worker) {
    const Correlation *c = context;
    int64_t blocks = c->blocks * c->cuts, group = part / blocks % c->groups, tiles = over(c->rows, ROWS);
    int64_t begin = part / blocks / c->groups * c->row_part, end = least(begin + c->row_part, tiles);
    int64_t length = c->channels * c->taps, step = c->axis[2].step;
    Block b = block_of(c, part % blocks);
    float *own = scratch_of(c, worker), *panel = own + c->row_part * ROWS * COLUMNS,
          *to_lay = panel + (length + 1) * COLUMNS;
    const float *laid = to_lay, *source = c->source + group * c->channels * c->source_at[1];
    if (c->in_place) laid = source + b.first * c->source_at[0] + b.begin;
    else lay_out(c, &b, source, c->channels, to_lay);
    int64_t places = b.images * b.count[0] * b.count[1] * b.count[2];
    for (int64_t at = 0; at < places; at += COLUMNS) {
        Run runs[COLUMNS], results[COLUMNS];
        int64_t count = least(COLUMNS, places - at);
        int result_runs, laid_runs = find_runs(c, &b, at, count, runs, results, &result_runs);
        pack_panel(c, laid, runs, laid_runs, panel);
        bool direct = result_runs == 1 && step == 1 && count % WIDTH == 0;
        for (int64_t k = 0; k < most(length, 1); k += DEPTH) {
            int64_t depth = least(DEPTH, length - k);
            for (int64_t t = begin; t < end; t++) {
                const float *weight = c->packed + ((group * tiles + t) * length + k) * ROWS;
                const float *bias = k ? NULL : c->bias + (group * tiles + t) * ROWS;
                float *to = c->result + (group * c->rows + t * ROWS) * c->result_at[1];
                float *sums = own + (t - begin) * ROWS * COLUMNS;
                if (k + depth == length && direct && (t + 1) * ROWS <= c->rows) {
                    product(count, weight, panel + k * COLUMNS, depth, bias, sums, to + results[0].at, c->result_at[1]);
                    continue;
                }
                product(count, weight, panel + k * COLUMNS, depth, bias, sums, sums, COLUMNS);
                if (k + depth < length) continue;
                for (int64_t i = 0; i < least(ROWS, c->rows - t * ROWS); i++) {
                    const float *from = sums + i * COLUMNS;
                    for (int r = 0; r < result_runs; from += results[r++].length) {
                        put(to + i * c->result_at[1] + results[r].at, from, results[r].length, step);
                    }
                }
            }
        }
    }
}

// Depthwise ---------------------------------------------------------------------------------------

enum { GROUPS = 4, UNROLLED = 8 };

// Add up what the taps give for `count` places that lie side by side in what is laid out.
INLINE void add_taps(int vectors, const Correlation *c, const float *laid, const float *weight, float bias, float *to) {
    vec sums[UNROLLED];
    for (int j = 0; j < vectors; j++) sums[j] = all(bias);
    for (int64_t channel = 0; channel < c->channels; channel++, laid += c->laid_at[1])
        for (int64_t t = 0; t < c->taps; t++, weight++)
            for (int j = 0; j < vectors; j++) sums[j] += *weight * load(laid + c->tap_at[t] + j * WIDTH);
    for (int j = 0; j < vectors; j++) store(to + j * WIDTH, sums[j]);
}

static void depthwise_part(void *context, Py_ssize_t part, int worker) {
    const Correlation *c = context;
    const Axis *a = c->axis;
    int64_t blocks = c->blocks * c->cuts, first = part / blocks * GROUPS, padded = over(c->rows, ROWS) * ROWS;
    Block b = block_of(c, part % blocks);
    int64_t start = b.first * c->result_at[0] + b.begin * a[c->split].step * c->result_at[2 + c->split];
    int64_t depth_at = a[0].step * c->result_at[2], row_at = a[1].step * c->result_at[3], step = a[2].step;
    for (int d = 0; d < 3; d++) start += a[d].start * c->result_at[2 + d];
    float *laid = scratch_of(c, worker), *weight = laid + c->laid + UNROLLED * WIDTH;
    float *joined = weight + c->channels * c->taps;
    int64_t count =
        (b.count[1] - 1) * c->laid_at[4] + b.count[2];  // rows are computed as one, with what lies between them
    for (int64_t group = first; group < least(first + GROUPS, c->groups); group++) {
        lay_out(c, &b, c->source + group * c->channels * c->source_at[1], c->channels, laid);
        for (int64_t row = 0; row < c->rows; row++) {
            const float *from = c->weight + group * c->weight_at[5] + row * c->weight_at[0];
            float bias = c->bias[group * padded + row], *own = weight;
            for (int64_t channel = 0; channel < c->channels; channel++, from += c->weight_at[1])
                for (int64_t t = 0; t < c->taps; t++) *own++ = from[c->weight_tap_at[t]];
            float *result = c->result + start + (group * c->rows + row) * c->result_at[1];
            for (int64_t n = 0; n < b.images; n++)
                for (int64_t d = 0; d < b.count[0]; d++) {
                    const float *image = laid + n * c->laid_at[0] + d * c->laid_at[3];
                    for (int64_t i = 0; i < count;) {
                        int64_t left = count - i;
                        if (left > UNROLLED / 2 * WIDTH) {
                            add_taps(UNROLLED, c, image + i, weight, bias, joined + i);
                            i += UNROLLED * WIDTH;
                        } else if (left > WIDTH) {
                            add_taps(UNROLLED / 2, c, image + i, weight, bias, joined + i);
                            i += UNROLLED / 2 * WIDTH;
                        } else {
                            add_taps(1, c, image + i, weight, bias, joined + i);
                            i += WIDTH;
                        }
                    }
                    float *to = result + n * c->result_at[0] + d * depth_at;
                    const float *found = joined;
                    for (int64_t h = 0; h < b.count[1]; h++, to += row_at, found += c->laid_at[4])
                        put(to, found, b.count[2], step);
                }
        }
    }
}

// The two sides that are correlations ---------------------------------------------------------------

static bool is_depthwise(const Correlation *c) { return c->groups > 1 && (c->channels == 1 || c->rows == 1); }

// Compute a correlation whose axes have been set, or nothing if memory is short. `bias` may be NULL.
static bool correlate(Correlation *c, const float *bias) {
    int64_t tiles = over(c->rows, ROWS), length, products;
    int threads = tt_threads();
    if (!is_depthwise(c) && is_direct(c) && correlate_direct(c, bias)) return true;
    for (int d = 0; d < 3; d++)
        if (!set_axis(&c->axis[d])) return false;
    if (!set_blocks(c) || !set_taps(c)) return false;
    length = c->channels * c->taps;
    products = c->samples * c->groups * c->rows * length * c->axis[0].count * c->axis[1].count * c->axis[2].count;
    int64_t parts = c->blocks * c->cuts * c->groups;
    int64_t wanted = threads > 1 ? 4 * threads : 1;  // each part of the rows packs the panels anew
    c->row_parts = most(least(over(wanted, parts), tiles / 4), 1);
    c->row_part = over(tiles, c->row_parts);
    c->row_parts = over(tiles, c->row_part);
    c->scratch_size = over(c->laid + (length + 2 + c->row_part * ROWS) * COLUMNS + WIDTH, 16) * 16;
    if (is_depthwise(c)) c->scratch_size = over(2 * c->laid + length + 3 * UNROLLED * WIDTH, 16) * 16;
    c->scratch = aligned((size_t)(threads * c->scratch_size));
    c->packed = is_depthwise(c) ? NULL : aligned((size_t)(c->groups * tiles * length * ROWS));
    float *padded = calloc((size_t)(c->groups * tiles * ROWS), sizeof(float));
    bool fine = c->scratch && padded && (c->packed || is_depthwise(c));
    if (fine) {
        for (int64_t i = 0; bias && i < c->groups * c->rows; i++)
            padded[i / c->rows * tiles * ROWS + i % c->rows] = bias[i];
        c->bias = padded;
        if (is_depthwise(c)) {
            tt_share(depthwise_part, c, c->blocks * c->cuts * over(c->groups, GROUPS), products, threads);
        } else {
            tt_share(pack_weight, c, c->groups * tiles, c->groups * c->rows * length, threads);
            tt_share(correlate_part, c, parts * c->row_parts, products, threads);
        }
    }
    free(c->scratch);
    free(c->packed);
    free(padded);
    free(c->tap_at);
    return fine;
}

// The side of the weight -----------------------------------------------------------------------------

typedef struct {
    Correlation c;       // how the input is laid out, and where the output's gradient lies
    const float *y;      // that gradient,
    const float *y_end;  // where its memory ends
    float *sums;         // by part and group: chunks of rows, tiles, vectors of rows
    int64_t parts, tile_parts, chunks, tiles;
    int vectors;   // of rows, in a chunk
    bool by_taps;  // tiles are one tap of ROWS channels, which meets no padding then; else ROWS taps, of any channels
    float *result;
} WeightSide;

// Write a chunk of rows of the output's gradient, place after place. Whole vectors of places are written: what is too
// much the next run overwrites.
static void transpose_rows(const WeightSide *s, int64_t group, int64_t chunk, const Run *runs, int count, float *to) {
    const Correlation *c = &s->c;
    int64_t apart = s->vectors * WIDTH, unit = c->result_at[4];
    for (int j = 0; j < s->vectors; j++) {
        int64_t first = (chunk * s->vectors + j) * WIDTH, rows = most(least(c->rows - first, WIDTH), 0);
        const float *source = s->y + (group * c->rows + first) * c->result_at[1];
        float *place = to + j * WIDTH;
        for (int r = 0; r < count; r++) {
            for (int64_t w = 0; w < runs[r].length; w += WIDTH, place += WIDTH * apart) {
                vec block[WIDTH];
                for (int i = 0; i < WIDTH; i++) {
                    const float *from = source + i * c->result_at[1] + runs[r].at + w * unit;
                    block[i] = (vec){0};
                    if (i >= rows) continue;
                    if (unit == 1 && from + WIDTH <= s->y_end) block[i] = load(from);
                    else
                        for (int64_t k = 0; k < least(WIDTH, runs[r].length - w); k++) block[i][k] = from[k * unit];
                }
                transpose(block);
                for (int i = 0; i < WIDTH; i++) store(place + i * apart, block[i]);
            }
            place -= (over(runs[r].length, WIDTH) * WIDTH - runs[r].length) * apart;
        }
    }
}

// Of runs of places, what a tap meets outside of the padding.
static int find_met(const Correlation *c, int64_t tap, const Run *runs, int count, Run *met) {
    const Axis *a = c->axis;
    Three chosen = {tap / a[2].taps / a[1].taps, tap / a[2].taps % a[1].taps, tap % a[2].taps}, first, last;
    for (int d = 0; d < 3; d++) {
        int64_t offset = a[d].offset[chosen[d]];
        first[d] = -below(offset, a[d].move);
        last[d] = -below(offset - a[d].size, a[d].move);
    }
    int found = 0;
    for (const Run *run = runs; run < runs + count; run++) {
        int64_t d = run->place[0], h = run->place[1], w = run->place[2];
        int64_t skipped = most(first[2] - w, 0), length = least(last[2] - w, run->length) - skipped;
        if (d < first[0] || d >= last[0] || h < first[1] || h >= last[1] || length <= 0) continue;
        met[found++] = (Run){.at = run->at + skipped, .length = length, .number = run->number + skipped};
    }
    return found;
}

// Add to a tile of sums, ROWS taps by `vectors` vectors of rows, what some places give.
INLINE void add_places(int vectors, float *sums, const float *y, const float *laid, const int64_t *tap_at,
                       const Run *runs, int count) {
    vec found[ROWS][VECTORS_IN_TILE];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < vectors; j++) found[i][j] = load(sums + (i * vectors + j) * WIDTH);
    for (int r = 0; r < count; r++) {
        const float *from = laid + runs[r].at, *end = from + runs[r].length;
        const float *by = y + runs[r].number * vectors * WIDTH;
        for (; from < end; from++, by += vectors * WIDTH) {
            vec b[VECTORS_IN_TILE];
            for (int j = 0; j < vectors; j++) b[j] = load(by + j * WIDTH);
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < vectors; j++) found[i][j] += from[tap_at[i]] * b[j];
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < vectors; j++) store(sums + (i * vectors + j) * WIDTH, found[i][j]);
}

static void weight_part(void *context, Py_ssize_t number, int worker) {
    const WeightSide *s = context;
    const Correlation *c = &s->c;
    int64_t part = number / s->tile_parts / c->groups, group = number / s->tile_parts % c->groups;
    int64_t step = over(s->tiles, s->tile_parts), begin = number % s->tile_parts * step,
            end = least(begin + step, s->tiles);
    int64_t length = c->channels * c->taps, apart = s->vectors * WIDTH, tile = ROWS * apart;
    int64_t tiles_apart = s->by_taps ? c->taps : 1;  // tiles of the same tap
    if (begin >= end) return;
    int64_t channel = s->by_taps ? begin / c->taps * ROWS : begin * ROWS / c->taps;
    int64_t channels = s->by_taps ? over(end, c->taps) * ROWS : over(end * ROWS, c->taps);
    channels = least(channels, c->channels) - channel;
    float *y = scratch_of(c, worker), *to_lay = y + (POSITIONS + WIDTH) * apart;
    float *sums = s->sums + (part * c->groups + group) * s->chunks * s->tiles * tile;
    for (int64_t k = 0; k < s->chunks; k++) {
        memset(sums + (k * s->tiles + begin) * tile, 0, sizeof(float) * (size_t)((end - begin) * tile));
    }
    int64_t blocks = c->blocks * c->cuts;
    for (int64_t block = part * blocks / s->parts; block < (part + 1) * blocks / s->parts; block++) {
        Block b = block_of(c, block);
        const float *laid = to_lay, *source = c->source + (group * c->channels + channel) * c->source_at[1];
        if (c->in_place) laid = source + b.first * c->source_at[0] + b.begin;
        else lay_out(c, &b, source, channels, to_lay);
        int64_t places = b.images * b.count[0] * b.count[1] * b.count[2];
        for (int64_t at = 0; at < places; at += POSITIONS) {
            Run runs[POSITIONS], y_runs[POSITIONS], met[POSITIONS];
            int y_count, count = find_runs(c, &b, at, least(POSITIONS, places - at), runs, y_runs, &y_count);
            for (int64_t chunk = 0; chunk < s->chunks; chunk++) {
                transpose_rows(s, group, chunk, y_runs, y_count, y);
                for (int64_t tap = 0; tap < tiles_apart; tap++) {
                    int some = s->by_taps ? find_met(c, tap, runs, count, met) : count;
                    const Run *these = s->by_taps ? met : runs;
                    int64_t first = begin + (tap - begin % tiles_apart + tiles_apart) % tiles_apart;
                    for (int64_t t = first; t < end; t += tiles_apart) {
                        int64_t tap_at[ROWS];
                        for (int64_t i = 0; i < ROWS; i++) {
                            int64_t k = least(t * ROWS + i, length - 1);
                            if (s->by_taps) k = least(t / c->taps * ROWS + i, c->channels - 1) * c->taps + tap;
                            tap_at[i] = (k / c->taps - channel) * c->laid_at[1] + c->tap_at[k % c->taps];
                        }
                        float *place = sums + (chunk * s->tiles + t) * tile;
                        if (s->vectors == 3) add_places(3, place, y, laid, tap_at, these, some);
                        else if (s->vectors == 2) add_places(2, place, y, laid, tap_at, these, some);
                        else add_places(1, place, y, laid, tap_at, these, some);
                    }
                }
            }
        }
    }
}

// Add up the parts of a vector of rows, and write them into the result.
static void sum_parts(void *context, Py_ssize_t number, int worker) {
    (void)worker;
    const WeightSide *s = context;
    const Correlation *c = &s->c;
    int64_t vector = number % (s->chunks * s->vectors), group = number / (s->chunks * s->vectors);
    int64_t apart = s->vectors * WIDTH, length = c->channels * c->taps, rows = least(c->rows - vector * WIDTH, WIDTH);
    int64_t size = s->chunks * s->tiles * ROWS * apart, channel = 0, tap = 0;
    const float *from =
        s->sums + group * size + vector / s->vectors * s->tiles * ROWS * apart + vector % s->vectors * WIDTH;
    float *to = s->result + (group * c->rows + vector * WIDTH) * length;
    for (int64_t k = 0; rows > 0 && k < length; k += WIDTH) {
        vec block[WIDTH] = {0};
        for (int64_t i = 0; i < least(WIDTH, length - k); i++) {
            int64_t place = s->by_taps ? (channel / ROWS * c->taps + tap) * ROWS + channel % ROWS : k + i;
            if (++tap == c->taps) tap = 0, channel++;
            for (int64_t part = 0; part < s->parts; part++)
                block[i] += load(from + part * c->groups * size + place * apart);
        }
        transpose(block);
        for (int64_t i = 0; i < rows; i++) {
            if (length - k >= WIDTH) store(to + i * length + k, block[i]);
            else store_some(to + i * length + k, block[i], length - k);
        }
    }
}

// Add to the sums of some taps of one channel the products with a block's rows of the output's gradient.
INLINE void add_rows(int taps, const WeightSide *s, const Block *b, const float *y, const float *laid,
                     const int64_t *tap_at, float *sums) {
    const Correlation *c = &s->c;
    int64_t unit = c->result_at[4], rest = b->count[2] % WIDTH;
    ints there = {0};  // in the last vector of a row: what lies behind may be infinite
    for (int64_t i = 0; i < rest; i++) there[i] = -1;
    vec found[9];
    for (int t = 0; t < taps; t++) found[t] = load(sums + t * WIDTH);
    y += b->begin * c->result_at[2 + c->split];
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t d = 0; d < b->count[0]; d++) {
            const float *row = y + n * c->result_at[0] + d * c->result_at[2];
            const float *from = laid + n * c->laid_at[0] + d * c->laid_at[3];
            for (int64_t h = 0; h < b->count[1]; h++, row += c->result_at[3], from += c->laid_at[4]) {
                int64_t w = 0;
                for (; unit == 1 && w + WIDTH <= b->count[2]; w += WIDTH) {
                    vec g = load(row + w);
                    for (int t = 0; t < taps; t++) found[t] += g * load(from + tap_at[t] + w);
                }
                for (; w < b->count[2]; w += WIDTH) {
                    ints mask = w + WIDTH <= b->count[2] ? (ints){0} - 1 : there;
                    vec g = {0};
                    if (unit == 1 && row + w + WIDTH <= s->y_end) g = (vec)(mask & (ints)load(row + w));
                    else
                        for (int64_t i = 0; i < least(WIDTH, b->count[2] - w); i++) g[i] = row[(w + i) * unit];
                    for (int t = 0; t < taps; t++) found[t] += g * (vec)(mask & (ints)load(from + tap_at[t] + w));
                }
            }
        }
    for (int t = 0; t < taps; t++) store(sums + t * WIDTH, found[t]);
}

// Depthwise: per tap of each channel one scalar product.
static void depthwise_weight_part(void *context, Py_ssize_t group, int worker) {
    const WeightSide *s = context;
    const Correlation *c = &s->c;
    float *laid = scratch_of(c, worker), *sums = laid + c->laid + WIDTH;
    memset(sums, 0, sizeof(float) * (size_t)(c->rows * c->taps * WIDTH));
    for (int64_t block = 0; block < c->blocks * c->cuts; block++) {
        Block b = block_of(c, block);
        lay_out(c, &b, c->source + group * c->source_at[1], 1, laid);
        for (int64_t row = 0; row < c->rows; row++) {
            const float *y = s->y + b.first * c->result_at[0] + (group * c->rows + row) * c->result_at[1];
            for (int64_t t = 0; t < c->taps;) {
                float *place = sums + (row * c->taps + t) * WIDTH;
                if (c->taps - t >= 9) {
                    add_rows(9, s, &b, y, laid, c->tap_at + t, place);
                    t += 9;
                } else if (c->taps - t >= 3) {
                    add_rows(3, s, &b, y, laid, c->tap_at + t, place);
                    t += 3;
                } else {
                    add_rows(1, s, &b, y, laid, c->tap_at + t, place);
                    t += 1;
                }
            }
        }
    }
    for (int64_t k = 0; k < c->rows * c->taps; k++) {
        float sum = 0;
        for (int i = 0; i < WIDTH; i++) sum += sums[k * WIDTH + i];
        s->result[group * c->rows * c->taps + k] = sum;
    }
}

static bool compute_weight(WeightSide *s) {
    Correlation *c = &s->c;
    int threads = tt_threads();
    for (int d = 0; d < 3; d++)
        if (!set_axis(&c->axis[d])) return false;
    if (!set_blocks(c) || !set_taps(c)) return false;
    int64_t length = c->channels * c->taps, vectors = over(c->rows, WIDTH), blocks = c->blocks * c->cuts;
    int64_t products =
        c->samples * c->groups * c->rows * length * c->axis[0].count * c->axis[1].count * c->axis[2].count;
    bool depthwise = c->groups > 1 && c->channels == 1, fine;
    s->vectors = vectors % 3 == 0 ? 3 : vectors % 2 == 0 ? 2 : vectors == 1 ? 1 : 3;
    s->chunks = over(vectors, s->vectors);
    s->by_taps = over(c->channels, ROWS) * ROWS * 8 <= c->channels * 9;
    s->tiles = s->by_taps ? over(c->channels, ROWS) * c->taps : over(length, ROWS);
    int64_t size = c->groups * s->chunks * s->tiles * ROWS * s->vectors * WIDTH;
    s->parts = most(least(least(blocks, PARTS), SUMS / size), 1);
    s->tile_parts = most(least(over(PARTS, s->parts * c->groups), s->tiles / 4), 1);
    c->scratch_size = c->laid + WIDTH + (POSITIONS + WIDTH) * s->vectors * WIDTH;
    if (depthwise) c->scratch_size = c->laid + WIDTH + c->rows * c->taps * WIDTH;
    c->scratch_size = over(c->scratch_size, 16) * 16;
    c->scratch = aligned((size_t)(threads * c->scratch_size));
    s->sums = depthwise ? NULL : aligned((size_t)(s->parts * size));
    fine = c->scratch && (depthwise || s->sums);
    if (fine && depthwise) {
        tt_share(depthwise_weight_part, s, c->groups, products, threads);
    } else if (fine) {
        tt_share(weight_part, s, s->parts * c->groups * s->tile_parts, products, threads);
        tt_share(sum_parts, s, c->groups * s->chunks * s->vectors, s->parts * size, threads);
    }
    free(c->scratch);
    free(s->sums);
    free(c->tap_at);
    return fine;
}

// The arguments of the three, as one form of input `x`, weight `w` and output `y`.
typedef struct {
    int dims;
    int64_t samples, groups, channels, rows;  // of each group: channels of x, rows of w
    int64_t x_at[5], w_at[5], y_at[5];
    Three x, kernel, y, stride, padding, dilation;  // three dimensions, the first of which may be 1
} Form;

// Read an array of floats with channels; false if it is none, or empty.
static bool read_array(PyObject *object, int dims, int64_t *front, int64_t *sizes, int64_t *at) {
    if (!tt_float32(object) || PyArray_NDIM((PyArrayObject *)object) != dims + 2) return false;
    PyArrayObject *array = (PyArrayObject *)object;
    for (int d = 0; d < 5; d++) {
        int dim = d < 2 ? d : d - 3 + dims;
        bool there = d < 2 || dim >= 2;
        int64_t size = there ? PyArray_DIM(array, dim) : 1;
        at[d] = there ? PyArray_STRIDE(array, dim) / (int64_t)sizeof(float) : 0;
        *(d < 2 ? front + d : sizes + d - 2) = size;
        if (!size) return false;
    }
    return true;
}

static bool read_three(PyObject *tuple, int dims, int64_t filler, int64_t lowest, Three to) {
    for (int d = 0; d < 3; d++) to[d] = filler;
    if (!tt_sizes(tuple, dims, to + 3 - dims)) return false;
    for (int d = 0; d < 3; d++)
        if (to[d] < lowest || to[d] > 1 << 24) return false;
    return true;
}

// Read `stride`, `padding`, `dilation` and `groups`.
static bool read_settings(Form *f, PyObject *const *args) {
    if (!read_three(args[0], f->dims, 1, 1, f->stride) || !read_three(args[1], f->dims, 0, 0, f->padding)) return false;
    if (!read_three(args[2], f->dims, 1, 1, f->dilation) || !PyLong_Check(args[3])) return false;
    f->groups = PyLong_AsLongLong(args[3]);
    if (f->groups == -1 && PyErr_Occurred()) PyErr_Clear();
    return f->groups > 0;
}

// Is BLAS better at it? At one product for the whole batch; where a large weight, which would have to be packed, meets
// few places; and, in registers of AVX2, at plain products.
static bool is_for_blas(const Form *f) {
    int64_t places = f->samples, weights = f->rows * f->channels * f->groups;
    bool one_place = f->groups == 1, plain = true;
    for (int d = 0; d < 3; d++) {
        places *= f->y[d];
        weights *= f->kernel[d];
        one_place = one_place && f->kernel[d] == f->x[d] && f->y[d] == 1 && !f->padding[d];
        plain = plain && f->kernel[d] == 1 && f->stride[d] == 1 && !f->padding[d];
    }
    return one_place || (places < 128 && weights >= 1 << 16) || (WIDTH == 8 && plain && f->rows > 1);
}

static PyObject *new_like(PyObject *like, const Form *f, int64_t first, int64_t second, const int64_t *sizes,
                          int64_t *at) {
    int64_t shape[5] = {first, second};
    for (int d = 0; d < f->dims; d++) shape[2 + d] = sizes[3 - f->dims + d];
    at[4] = 1;
    for (int d = 4; d > 1; d--) at[d - 1] = at[d] * sizes[d - 2];
    at[0] = at[1] * second;
    return tt_new(like, 2 + f->dims, shape);
}

// The axis of a correlation by which the output comes from the input.
static void set_forward_axis(const Form *f, int d, Axis *a, int64_t *memory) {
    *a = (Axis){.size = f->x[d], .count = f->y[d], .move = f->stride[d], .step = 1, .taps = f->kernel[d]};
    a->tap = memory;
    a->offset = memory + a->taps;
    a->phase = memory + 2 * a->taps;
    for (int64_t k = 0; k < a->taps; k++) {
        a->tap[k] = k;
        a->offset[k] = k * f->dilation[d] - f->padding[d];
    }
}

// The axis by which those places of the input come from the output that lie `phase` beyond the kernel's moves.
static void set_backward_axis(const Form *f, int d, int64_t phase, Axis *a, int64_t *memory) {
    int64_t s = f->stride[d], start = ((phase - f->padding[d]) % s + s) % s;
    *a = (Axis){
        .size = f->y[d], .count = start < f->x[d] ? over(f->x[d] - start, s) : 0, .move = 1, .start = start, .step = s};
    a->tap = memory;
    a->offset = memory + f->kernel[d];
    a->phase = memory + 2 * f->kernel[d];
    int64_t first = (start + f->padding[d] - phase) / s;
    for (int64_t k = 0; k < f->kernel[d]; k++) {
        if (k * f->dilation[d] % s != phase) continue;
        a->tap[a->taps] = k;
        a->offset[a->taps++] = first - (k * f->dilation[d] - phase) / s;
    }
}

// Does a tap meet every place of the input, padding aside?
static bool meets_all(const Form *f) {
    for (int d = 0; d < 3; d++) {
        int64_t phases = 0;
        while (phases < f->kernel[d] && (!phases || phases * f->dilation[d] % f->stride[d])) phases++;
        if (phases < f->stride[d]) return false;
    }
    return true;
}

static int64_t *axis_memory(const Form *f) {
    return malloc(sizeof(int64_t) * 3 * (size_t)(f->kernel[0] + f->kernel[1] + f->kernel[2]));
}

// A kernel of one tap that moves by one takes the source as it is; an image may then be taken for one row.
static void set_in_place(Correlation *c) {
    Axis *a = c->axis;
    int64_t *at = c->source_at, *to = c->result_at;
    for (int d = 0; d < 3; d++)
        if (a[d].taps != 1 || a[d].move != 1 || a[d].step != 1 || a[d].offset[0] || a[d].count != a[d].size) return;
    if (at[4] != 1 || at[3] != a[2].size || (a[0].size > 1 && at[2] != a[1].size * at[3])) return;
    if (to[4] != 1 || to[3] != a[2].size || (a[0].size > 1 && to[2] != a[1].size * to[3])) return;
    a[2].size = a[2].count = a[0].size * a[1].size * a[2].size;
    a[0].size = a[0].count = a[1].size = a[1].count = 1;
    c->in_place = true;
}

KERNEL(conv) {
    Form f = {0};
    int64_t front[2];
    if (count < 7 || count > 8 || out || !PyArray_Check(args[0])) return PASS;
    f.dims = PyArray_NDIM((PyArrayObject *)args[0]) - 2;
    if (f.dims < 1 || f.dims > 3 || !read_settings(&f, args + 3)) return PASS;
    if (!read_array(args[0], f.dims, front, f.x, f.x_at)) return PASS;
    f.samples = front[0];
    f.channels = front[1] / f.groups;
    if (!read_array(args[1], f.dims, front, f.kernel, f.w_at) || front[1] != f.channels) return PASS;
    f.rows = front[0] / f.groups;
    PyObject *bias = args[2] == Py_None ? NULL : args[2];
    if (bias && !(tt_float32(bias) && tt_contiguous(bias) && PyArray_SIZE((PyArrayObject *)bias) == front[0]))
        return PASS;
    for (int d = 0; d < 3; d++) {
        f.y[d] = (f.x[d] + 2 * f.padding[d] - f.dilation[d] * (f.kernel[d] - 1) - 1) / f.stride[d] + 1;
    }
    if (count == 8 && args[7] != Py_None && !read_three(args[7], f.dims, 1, 1, f.y)) return PASS;
    if (f.y[0] < 1 || f.y[1] < 1 || f.y[2] < 1 || !f.rows || !f.channels || is_for_blas(&f)) return PASS;
    PyObject *y = new_like(args[0], &f, f.samples, f.groups * f.rows, f.y, f.y_at);
    int64_t *memory = axis_memory(&f);
    bool fine = y && memory;
    if (fine) {
        Correlation c = {.samples = f.samples, .groups = f.groups, .channels = f.channels, .rows = f.rows};
        c.source = PyArray_DATA((PyArrayObject *)args[0]);
        c.weight = c.weight_end = PyArray_DATA((PyArrayObject *)args[1]);
        if (tt_contiguous(args[1])) c.weight_end += PyArray_SIZE((PyArrayObject *)args[1]);
        c.result = PyArray_DATA((PyArrayObject *)y);
        memcpy(c.source_at, f.x_at, sizeof f.x_at);
        memcpy(c.result_at, f.y_at, sizeof f.y_at);
        memcpy(c.weight_at, f.w_at, sizeof f.w_at);
        c.weight_at[5] = f.rows * f.w_at[0];
        int64_t *part = memory;
        for (int d = 0; d < 3; part += 3 * f.kernel[d++]) set_forward_axis(&f, d, &c.axis[d], part);
        if (!is_depthwise(&c)) set_in_place(&c);
        fine = correlate(&c, bias ? PyArray_DATA((PyArrayObject *)bias) : NULL);
    }
    free(memory);
    if (fine) return y;
    Py_XDECREF(y);
    return PyErr_Occurred() ? NULL : PASS;
}

KERNEL(conv_input) {
    Form f = {0};
    int64_t front[2];
    if (count != 7 || out || !PyArray_Check(args[0])) return PASS;
    f.dims = PyArray_NDIM((PyArrayObject *)args[0]) - 2;
    if (f.dims < 1 || f.dims > 3 || !read_settings(&f, args + 3) || !read_three(args[2], f.dims, 1, 1, f.x))
        return PASS;
    if (!read_array(args[0], f.dims, front, f.y, f.y_at)) return PASS;
    f.samples = front[0];
    f.rows = front[1] / f.groups;
    if (!read_array(args[1], f.dims, front, f.kernel, f.w_at) || !f.rows || front[0] != f.rows * f.groups) return PASS;
    f.channels = front[1];
    if (is_for_blas(&f)) return PASS;
    PyObject *x = new_like(args[0], &f, f.samples, f.groups * f.channels, f.x, f.x_at);
    int64_t *memory = axis_memory(&f), phases = f.stride[0] * f.stride[1] * f.stride[2];
    bool fine = x && memory;
    if (fine && !meets_all(&f)) memset(PyArray_DATA((PyArrayObject *)x), 0, (size_t)PyArray_NBYTES((PyArrayObject *)x));
    for (int64_t p = 0; fine && p < phases; p++) {
        Correlation c = {.samples = f.samples, .groups = f.groups, .channels = f.rows, .rows = f.channels};
        c.source = PyArray_DATA((PyArrayObject *)args[0]);
        c.weight = c.weight_end = PyArray_DATA((PyArrayObject *)args[1]);
        if (tt_contiguous(args[1])) c.weight_end += PyArray_SIZE((PyArrayObject *)args[1]);
        c.result = PyArray_DATA((PyArrayObject *)x);
        memcpy(c.source_at, f.y_at, sizeof f.y_at);
        memcpy(c.result_at, f.x_at, sizeof f.x_at);
        memcpy(c.weight_at, f.w_at, sizeof f.w_at);
        c.weight_at[0] = f.w_at[1];
        c.weight_at[1] = f.w_at[0];
        c.weight_at[5] = f.rows * f.w_at[0];
        int64_t *part = memory, left = p, places = 1;
        for (int d = 2; d >= 0; part += 3 * f.kernel[d--], left /= f.stride[d + 1]) {
            set_backward_axis(&f, d, left % f.stride[d], &c.axis[d], part);
            places *= c.axis[d].count;
        }
        if (!places) continue;
        if (!c.axis[0].taps || !c.axis[1].taps || !c.axis[2].taps) continue;
        if (!is_depthwise(&c)) set_in_place(&c);
        fine = correlate(&c, NULL);
    }
    free(memory);
    if (fine) return x;
    Py_XDECREF(x);
    return PyErr_Occurred() ? NULL : PASS;
}

KERNEL(conv_weight) {
    Form f = {0};
    int64_t front[2], outputs[2];
    if (count != 7 || out || !PyArray_Check(args[0])) return PASS;
    f.dims = PyArray_NDIM((PyArrayObject *)args[0]) - 2;
    if (f.dims < 1 || f.dims > 3 || !read_settings(&f, args + 3) || !read_three(args[2], f.dims, 1, 1, f.kernel))
        return PASS;
    if (!read_array(args[0], f.dims, front, f.x, f.x_at) || !read_array(args[1], f.dims, outputs, f.y, f.y_at))
        return PASS;
    f.samples = front[0];
    f.channels = front[1] / f.groups;
    f.rows = outputs[1] / f.groups;
    if (!f.channels || !f.rows || outputs[0] != f.samples || is_for_blas(&f)) return PASS;
    PyObject *w = new_like(args[0], &f, f.groups * f.rows, f.channels, f.kernel, f.w_at);
    int64_t *memory = axis_memory(&f);
    bool fine = w && memory;
    if (fine) {
        WeightSide s = {.c = {.samples = f.samples, .groups = f.groups, .channels = f.channels, .rows = f.rows}};
        s.c.source = PyArray_DATA((PyArrayObject *)args[0]);
        s.y = s.y_end = PyArray_DATA((PyArrayObject *)args[1]);
        if (tt_contiguous(args[1])) s.y_end += PyArray_SIZE((PyArrayObject *)args[1]);
        s.result = PyArray_DATA((PyArrayObject *)w);
        memcpy(s.c.source_at, f.x_at, sizeof f.x_at);
        memcpy(s.c.result_at, f.y_at, sizeof f.y_at);
        int64_t *part = memory;
        for (int d = 0; d < 3; part += 3 * f.kernel[d++]) set_forward_axis(&f, d, &s.c.axis[d], part);
        if (f.groups == 1 || f.channels > 1) set_in_place(&s.c);
        fine = compute_weight(&s);
    }
    free(memory);
    if (fine) return w;
    Py_XDECREF(w);
    return PyErr_Occurred() ? NULL : PASS;
}
