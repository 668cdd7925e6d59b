// Correlations that read the source without a copy. A tile adds up numbers of the source times vectors of the weight,
// whose rows are packed side by side. The positions of a tile may be any; so they are positions that the same taps
// meet, and nothing is multiplied by padding (with 3 x 3 taps and 7 x 7 positions, a fifth of the products would be).
// The sums, which lie position after position, are then transposed into the result. An element's sum is the same
// whatever the blocks are.
#ifndef TINYTORCH_DIRECT_H
#define TINYTORCH_DIRECT_H

#include "correlation.h"

enum {
    MAX_TILE_VECTORS = TILE_ROWS == 8 ? 4 : 3,  // the largest tile fills the registers: vectors of rows,
    MAX_TILE_POSITIONS = 8,                     // positions
    MIN_TERMS = 128,                            // terms of a sum that are worth transposing it
    BLOCK_POSITIONS = 1024,                     // positions of a block
    CROWDED_STRIDE = 128,  // channels a multiple of so many floats apart compete for few sets of the cache
};

// Positions of one dimension, `first` to `last`, that the same taps meet: `taps` of them, from `tap` on.
typedef struct {
    int64_t first, last, tap, taps;
} TapRange;

typedef struct {
    const Correlation *c;
    TapRange *range[3];
    int64_t ranges[3];
    int64_t chunks, vectors;                // of a group's rows: chunks of some vectors each, vectors in all
    int64_t copy_stride[2];                 // of images and channels in a dense copy of the source; 0 without a copy
    int64_t *tap_offset;                    // per tap, in the source
    int64_t *tap_of_element, span, lowest;  // the tap that an element of a kernel is, from its lowest one on, or -1
    float *weight, *bias;                   // packed by group and chunk; the weight then by tap and channel
} Direct;

static int64_t find_ranges(const Axis *a, TapRange *to) {
    int64_t count = 0, next;
    for (int64_t position = 0; position < a->positions; position = next, count++) {
        TapRange range = {.first = position};
        next = a->positions;
        for (int64_t t = 0; t < a->taps; t++) {
            int64_t first = -floor_div(a->offset[t], a->stride), last = -floor_div(a->offset[t] - a->size, a->stride);
            if (position < last) next = imin(next, position < first ? first : last);
            if (position >= first && position < last && !range.taps++) range.tap = t;
        }
        range.last = next;
        to[count] = range;
    }
    return count;
}

static int positions_in_tile(int vectors) {
    if (MAX_TILE_VECTORS == 4) return vectors == 4 ? 6 : 8;
    return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}

// The positions of a block in one range of each dimension, and the taps that meet them.
typedef struct {
    int64_t count, *source, *index;  // per position: its offset in the source, its index in the block
    int64_t taps, *tap;
    int64_t image_stride, channel_stride;  // of the source
} Positions;

static void list_positions(const Direct *s, const Block *b, const TapRange *const *range, Positions *to) {
    const Correlation *c = s->c;
    const Axis *a = c->axis;
    Three first, last, step;
    for (int d = 0; d < 3; d++) {
        int64_t begin = d == c->split ? b->begin : 0;
        first[d] = imax(range[d]->first - begin, 0);
        last[d] = imin(range[d]->last - begin, b->count[d]);
        step[d] = a[d].stride * c->source_stride[2 + d];
    }
    int64_t origin = b->begin * step[c->split];
    to->count = to->taps = 0;
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t d = first[0]; d < last[0]; d++)
            for (int64_t h = first[1]; h < last[1]; h++) {
                int64_t from = origin + n * to->image_stride + d * step[0] + h * step[1];
                int64_t index = ((n * b->count[0] + d) * b->count[1] + h) * b->count[2];
                for (int64_t w = first[2]; w < last[2]; w++, to->count++) {
                    to->source[to->count] = from + w * step[2];
                    to->index[to->count] = index + w;
                }
            }
    for (int64_t i = range[0]->tap; i < range[0]->tap + range[0]->taps; i++)
        for (int64_t j = range[1]->tap; j < range[1]->tap + range[1]->taps; j++)
            for (int64_t k = range[2]->tap; k < range[2]->tap + range[2]->taps; k++)
                to->tap[to->taps++] = (i * a[1].taps + j) * a[2].taps + k;
}

// Tiles -----------------------------------------------------------------------------------------

// Compute a tile: the sums of `positions` positions, from number `first` of the list on, for a chunk of rows.
INLINE void correlate_tile(int vectors, int positions, const Direct *s, const Positions *p, int64_t first,
                           const float *source, const float *weight, const float *bias, float *sums) {
    const Correlation *c = s->c;
    vec acc[MAX_TILE_POSITIONS][MAX_TILE_VECTORS];
    int64_t at[MAX_TILE_POSITIONS], channel_stride = p->channel_stride;
    float *to[MAX_TILE_POSITIONS];
    for (int i = 0; i < positions; i++) {  // positions of the tile beyond the last one repeat it
        int64_t position = imin(first + i, p->count - 1);
        at[i] = p->source[position];
        to[i] = sums + p->index[position] * vectors * WIDTH;
        for (int j = 0; j < vectors; j++) acc[i][j] = load(bias + j * WIDTH);
    }
    for (int64_t t = 0; t < p->taps; t++) {
        const float *row[MAX_TILE_POSITIONS], *w = weight + p->tap[t] * c->channels * vectors * WIDTH;
        for (int i = 0; i < positions; i++) row[i] = source + (at[i] + s->tap_offset[p->tap[t]]);
        for (int64_t channel = 0, k = 0; channel < c->channels; channel++, k += channel_stride, w += vectors * WIDTH) {
            vec b[MAX_TILE_VECTORS];
            for (int j = 0; j < vectors; j++) b[j] = load(w + j * WIDTH);
            for (int i = 0; i < positions; i++)
                for (int j = 0; j < vectors; j++) acc[i][j] += row[i][k] * b[j];
        }
    }
    for (int i = 0; i < positions; i++)
        for (int j = 0; j < vectors; j++) store(to[i] + j * WIDTH, acc[i][j]);
}

typedef void (*Tile)(const Direct *, const Positions *, int64_t, const float *, const float *, const float *, float *);

// Whole and half tiles of so many vectors. They are not inlined, for the sake of registers.
#define TILES(vectors)                                                                                                 \
    static __attribute__((noinline)) void tile_##vectors(const Direct *s, const Positions *p, int64_t first,           \
                                                         const float *source, const float *weight, const float *bias,  \
                                                         float *sums) {                                                \
        correlate_tile(vectors, positions_in_tile(vectors), s, p, first, source, weight, bias, sums);                  \
    }                                                                                                                  \
    static __attribute__((noinline)) void half_tile_##vectors(const Direct *s, const Positions *p, int64_t first,      \
                                                              const float *source, const float *weight,                \
                                                              const float *bias, float *sums) {                        \
        correlate_tile(vectors, positions_in_tile(vectors) / 2, s, p, first, source, weight, bias, sums);              \
    }
TILES(1)
TILES(2)
TILES(3)
#if TILE_ROWS == 8
TILES(4)
#else
#define tile_4 NULL
#define half_tile_4 NULL
#endif
#undef TILES

// The first vector of a chunk of rows.
static int64_t first_vector(const Direct *s, int64_t chunk) { return chunk * s->vectors / s->chunks; }

// Transpose the sums of a chunk's rows, which lie position after position, into the result.
static void store_rows(const Direct *s, const Block *b, int64_t rows, int64_t sums_stride, const float *sums,
                       float *to) {
    const Correlation *c = s->c;
    const Axis *a = c->axis;
    const int64_t *stride = c->result_stride;
    int64_t length = b->count[2], runs = b->count[1], planes = b->count[0], step = a[2].result_step * stride[4];
    Three start, next;
    for (int d = 0; d < 3; d++) {
        start[d] = (a[d].result_start + (d == c->split ? a[d].result_step * b->begin : 0)) * stride[2 + d];
        next[d] = a[d].result_step * stride[2 + d];
    }
    to += start[0] + start[1] + start[2];
    if (step == 1 && next[1] == length) length *= runs, runs = 1;
    if (step == 1 && runs == 1 && next[0] == length) length *= planes, planes = 1;
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t d = 0; d < planes; d++)
            for (int64_t h = 0; h < runs; h++, sums += length * sums_stride) {
                float *run = to + n * stride[0] + d * next[0] + h * next[1];
                for (int64_t p = 0; p < length; p += WIDTH) {
                    if (length >= WIDTH) p = imin(p, length - WIDTH);
                    int64_t positions = imin(WIDTH, length - p);
                    for (int64_t j = 0; j < rows; j += WIDTH) {
                        vec block[WIDTH];
                        for (int i = 0; i < WIDTH; i++) block[i] = load(sums + (p + i) * sums_stride + j);
                        transpose(block);
                        if (step == 1 && positions == WIDTH && rows - j >= WIDTH) {
                            for (int i = 0; i < WIDTH; i++) store(run + (j + i) * stride[1] + p, block[i]);
                            continue;
                        }
                        for (int64_t i = 0; i < imin(WIDTH, rows - j); i++) {
                            float *row = run + (j + i) * stride[1] + p * step;
                            if (step != 1)
                                for (int64_t k = 0; k < positions; k++) row[k * step] = block[i][k];
                            else store_up_to(row, block[i], positions);
                        }
                    }
                }
            }
}

// Copy what a block meets of the source's channels. Return the address at which the copy's first channel would begin.
static const float *copy_channels(const Direct *s, const Block *b, const float *source, float *to) {
    const Correlation *c = s->c;
    const Axis *a = &c->axis[c->split];
    int64_t lowest = a->offset[0], highest = lowest, stride = c->source_stride[2 + c->split];
    for (int64_t t = 0; t < a->taps; t++) {
        lowest = imin(lowest, a->offset[t]);
        highest = imax(highest, a->offset[t]);
    }
    int64_t first = imax(b->begin * a->stride + lowest, 0) * stride;
    int64_t end = imin((b->begin + b->count[c->split] - 1) * a->stride + highest + 1, a->size) * stride;
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t channel = 0; channel < c->channels && first < end; channel++)
            copy_floats(to + n * s->copy_stride[0] + channel * s->copy_stride[1],
                        source + n * c->source_stride[0] + channel * c->source_stride[1] + first, end - first);
    return to - first;
}

// Compute a chunk of a group's rows for a block.
static void direct_part(void *context, Py_ssize_t part, int worker) {
    const Direct *s = context;
    const Correlation *c = s->c;
    int64_t blocks = c->blocks * c->cuts, chunk = part / blocks % s->chunks, group = part / blocks / s->chunks;
    int64_t vector = first_vector(s, chunk), vectors = first_vector(s, chunk + 1) - vector, row = vector * WIDTH;
    Block b = nth_block(c, part % blocks);
    const float *source = c->source + b.first * c->source_stride[0] + group * c->channels * c->source_stride[1];
    const float *weight = s->weight + (group * s->vectors + vector) * WIDTH * c->taps * c->channels;
    const float *bias = s->bias + (group * s->vectors + vector) * WIDTH;
    float *sums = c->scratch + worker * c->scratch_size;
    int64_t positions = positions_of(&b);
    Positions p = {.source = (int64_t *)(sums + (positions + WIDTH) * vectors * WIDTH)};
    p.index = p.source + positions;
    p.tap = p.index + positions;
    p.image_stride = c->source_stride[0];
    p.channel_stride = c->source_stride[1];
    if (s->copy_stride[0]) {
        source = copy_channels(s, &b, source, (float *)(p.tap + c->taps));
        p.image_stride = s->copy_stride[0];
        p.channel_stride = s->copy_stride[1];
    }
    const Tile tile = (const Tile[]){tile_1, tile_2, tile_3, tile_4}[vectors - 1];
    const Tile half_tile = (const Tile[]){half_tile_1, half_tile_2, half_tile_3, half_tile_4}[vectors - 1];
    int64_t step = positions_in_tile((int)vectors);
    for (int64_t i = 0; i < s->ranges[0]; i++)
        for (int64_t j = 0; j < s->ranges[1]; j++)
            for (int64_t k = 0; k < s->ranges[2]; k++) {
                const TapRange *ranges[] = {s->range[0] + i, s->range[1] + j, s->range[2] + k};
                list_positions(s, &b, ranges, &p);
                for (int64_t n = 0; n < p.count; n += step)
                    (p.count - n <= step / 2 ? half_tile : tile)(s, &p, n, source, weight, bias, sums);
            }
    store_rows(s, &b, imin(vectors * WIDTH, c->rows - row), vectors * WIDTH, sums,
               c->result + b.first * c->result_stride[0] + (group * c->rows + row) * c->result_stride[1]);
}

// Pack WIDTH rows of the weight side by side. A row is contiguous over its whole kernels, or over the elements of one.
static void pack_weight_part(void *context, Py_ssize_t index, int worker) {
    (void)worker;
    const Direct *s = context;
    const Correlation *c = s->c;
    const int64_t *stride = c->weight_stride;
    int64_t group = index / s->vectors, vector = index % s->vectors;
    int64_t chunk = ((vector + 1) * s->chunks - 1) / s->vectors, first = first_vector(s, chunk);
    int64_t channel_size = (first_vector(s, chunk + 1) - first) * WIDTH, tap_size = c->channels * channel_size;
    int64_t rows = imin(c->rows - vector * WIDTH, WIDTH);
    int64_t together = stride[1] == s->span ? c->channels : 1, length = together * s->span;
    float *to = s->weight + (group * s->vectors + first) * WIDTH * c->taps * c->channels + (vector - first) * WIDTH;
    const float *from = c->weight + group * stride[5] + vector * WIDTH * stride[0] + s->lowest;
    for (int64_t channel = 0; channel < c->channels; channel += together, from += stride[1])
        for (int64_t k = 0, element = 0, at = channel * channel_size; k < length; k += WIDTH) {
            int64_t count = imin(length - k, WIDTH);
            vec block[WIDTH];
            // (Beyond the end of a row there is the next one, but for the weight's last row.)
            if (rows == WIDTH && (count == WIDTH || from + k + (WIDTH - 1) * stride[0] + WIDTH <= c->weight_end))
                for (int i = 0; i < WIDTH; i++) block[i] = load(from + k + i * stride[0]);
            else
                for (int i = 0; i < WIDTH; i++)
                    block[i] = i >= rows ? (vec){0} : load_up_to(from + k + i * stride[0], count);
            transpose(block);
            for (int64_t i = 0; i < count; i++) {
                if (s->tap_of_element[element] >= 0) store(to + s->tap_of_element[element] * tap_size + at, block[i]);
                if (++element == s->span) element = 0, at += channel_size;
            }
        }
}

// Planning --------------------------------------------------------------------------------------

// True if this is faster than packed panels. Those are for few rows, which would leave vectors partly empty, for few
// channels, and for sums of few terms.
static bool is_direct(const Correlation *c) {
    int64_t taps = c->axis[0].taps * c->axis[1].taps * c->axis[2].taps, padded = ceil_div(c->rows, WIDTH) * WIDTH;
    return taps > 1 && c->channels >= 8 && c->channels * taps >= MIN_TERMS && padded * 4 <= c->rows * 5;
}

// Cut the work into blocks, of several images or of some positions of one image.
static void cut_direct_blocks(Direct *s, Correlation *c, int threads) {
    const Axis *a = c->axis;
    int64_t positions = a[0].positions * a[1].positions * a[2].positions, min_parts = threads > 1 ? 4 * threads : 1;
    c->split = a[0].positions > 1 ? 0 : a[1].positions > 1 ? 1 : 2;
    int64_t count = a[c->split].positions, before = 1, stride = c->source_stride[2 + c->split];
    c->blocks =
        imax(ceil_div(c->samples, ceil_div(BLOCK_POSITIONS, positions)), ceil_div(min_parts, c->groups * s->chunks));
    c->blocks = imin(c->blocks, c->samples);
    c->images = ceil_div(c->samples, c->blocks);
    c->blocks = ceil_div(c->samples, c->images);
    c->cut = ceil_div(count, imax(imin(positions / BLOCK_POSITIONS, count), 1));
    c->cuts = ceil_div(count, c->cut);

    // Copy the source if its channels would compete for the cache, and a block's channel is contiguous.
    for (int d = 0; d < c->split; d++) before *= a[d].size;
    bool dense = before == 1 && c->source_stride[4] == 1 && (c->split == 2 || c->source_stride[3] == a[2].size) &&
                 (c->split || stride == a[1].size * a[2].size);
    if (!dense || c->source_stride[1] % CROWDED_STRIDE) return;
    int64_t reach = a[c->split].offset[0] - a[c->split].offset[a[c->split].taps - 1];
    int64_t size = imin((c->cut - 1) * a[c->split].stride + 1 + imax(reach, -reach), a[c->split].size) * stride;
    s->copy_stride[1] = (ceil_div(size, CACHE_LINE) | 1) * CACHE_LINE;  // an odd number of cache lines
    s->copy_stride[0] = c->channels * s->copy_stride[1];
}

// Find the offsets of the taps in the source, and which element of a kernel each tap is; false if the elements are far
// apart in memory, or if some coincide.
static bool find_direct_taps(Direct *s, Correlation *c) {
    const Axis *a = c->axis;
    int64_t t = 0, highest, max_ranges = 3 + 2 * (a[0].taps + a[1].taps + a[2].taps);
    s->tap_offset = malloc(sizeof(int64_t) * 2 * (size_t)c->taps);
    s->range[0] = malloc(sizeof(TapRange) * (size_t)max_ranges);
    if (!s->tap_offset || !s->range[0]) return false;
    for (int d = 0; d < 3; d++) {
        if (d) s->range[d] = s->range[d - 1] + s->ranges[d - 1];
        s->ranges[d] = find_ranges(&a[d], s->range[d]);
    }
    c->weight_tap_offset = s->tap_offset + c->taps;
    Three k;
    for (k[0] = 0; k[0] < a[0].taps; k[0]++)
        for (k[1] = 0; k[1] < a[1].taps; k[1]++)
            for (k[2] = 0; k[2] < a[2].taps; k[2]++, t++) {
                s->tap_offset[t] = c->weight_tap_offset[t] = 0;
                for (int d = 0; d < 3; d++) {
                    s->tap_offset[t] += a[d].offset[k[d]] * c->source_stride[2 + d];
                    c->weight_tap_offset[t] += a[d].tap[k[d]] * c->weight_stride[2 + d];
                }
            }
    s->lowest = highest = c->weight_tap_offset[0];
    for (t = 0; t < c->taps; t++) {
        s->lowest = imin(s->lowest, c->weight_tap_offset[t]);
        highest = imax(highest, c->weight_tap_offset[t]);
    }
    s->span = highest - s->lowest + 1;
    if (s->span > 8 * c->taps + WIDTH) return false;
    s->tap_of_element = malloc(sizeof(int64_t) * (size_t)s->span);
    if (!s->tap_of_element) return false;
    for (t = 0; t < s->span; t++) s->tap_of_element[t] = -1;
    for (t = 0; t < c->taps; t++) {
        int64_t *tap = s->tap_of_element + (c->weight_tap_offset[t] - s->lowest);
        if (*tap >= 0) return false;
        *tap = t;
    }
    return true;
}

// Compute a correlation; false if the weight's layout does not suit, or memory is short. `bias` may be NULL.
static bool correlate_direct(Correlation *c, const float *bias) {
    int threads = tt_threads();
    Direct s = {.c = c, .vectors = ceil_div(c->rows, WIDTH)};
    s.chunks = ceil_div(s.vectors, MAX_TILE_VECTORS);
    c->taps = c->axis[0].taps * c->axis[1].taps * c->axis[2].taps;
    bool done = find_direct_taps(&s, c);
    if (done) {
        cut_direct_blocks(&s, c, threads);
        int64_t vectors = c->groups * s.vectors, length = c->channels * c->taps, positions = c->images * c->cut;
        for (int d = 0; d < 3; d++) positions *= d == c->split ? 1 : c->axis[d].positions;
        c->scratch_size = (positions + WIDTH) * ceil_div(s.vectors, s.chunks) * WIDTH + 2 * (2 * positions + c->taps);
        c->scratch_size = round_to_lines(c->scratch_size + c->images * s.copy_stride[0]);
        c->scratch = alloc_floats((size_t)(threads * c->scratch_size));
        s.weight = alloc_floats((size_t)(vectors * WIDTH * length));
        s.bias = calloc((size_t)(vectors * WIDTH), sizeof(float));
        done = c->scratch && s.weight && s.bias;
        for (int64_t i = 0; done && bias && i < c->groups * c->rows; i++)
            s.bias[i / c->rows * s.vectors * WIDTH + i % c->rows] = bias[i];
        if (done) {
            tt_parallel_for(pack_weight_part, &s, vectors, c->groups * c->rows * length, threads);
            tt_parallel_for(direct_part, &s, c->blocks * c->cuts * c->groups * s.chunks,
                            c->samples * positions / c->images * c->cuts * c->groups * c->rows * length, threads);
        }
    }
    free(c->scratch);
    free(s.weight);
    free(s.bias);
    free(s.tap_offset);
    free(s.range[0]);
    free(s.tap_of_element);
    return done;
}

#endif
