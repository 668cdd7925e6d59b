// Correlations that read the source as it lies: a tile's sums add up numbers of the source times vectors of the weight,
// whose rows are packed side by side. Where a tile's places lie is free; so they are those that the same taps meet, and
// nothing is multiplied by padding, which a fifth would be of what 3 x 3 taps meet at 7 x 7 places. The sums, which lie
// place by place, are transposed into the result. An element's sum is the same whatever the blocks are.

// The largest tile, which fills the registers: vectors of rows, places.
enum { MOST_VECTORS = ROWS == 8 ? 4 : 3, MOST_PLACES = 8 };

// Terms of a sum that are worth transposing it; places of a block; floats that channels lie apart, or a multiple of them,
// so that they compete for few lines of the cache.
enum { LEAST_TERMS = 128, PLACES_OF_BLOCK = 1024, CROWDED = 128 };

// Places in one dimension that the same taps meet.
typedef struct {
    int64_t first, last, tap, taps;
} Range;

typedef struct {
    const Correlation *c;
    Range *range[3];
    int64_t ranges[3];
    int64_t chunks, vectors;        // of the rows of a group: each some vectors; vectors in all
    int64_t copied_at[2];           // strides of images and channels in a copy of the source, if there is to be one
    int64_t *tap_at;                // where a tap meets the source
    int64_t *tap_of, span, lowest;  // which tap an element of a kernel is, from its lowest on, or -1
    float *weight, *bias;           // by group and chunk; the weight by tap and channel
} Direct;

static int64_t set_ranges(const Axis *a, Range *to) {
    int64_t count = 0, next;
    for (int64_t place = 0; place < a->count; place = next, count++) {
        Range range = {.first = place};
        next = a->count;
        for (int64_t t = 0; t < a->taps; t++) {
            int64_t first = -below(a->offset[t], a->move), last = -below(a->offset[t] - a->size, a->move);
            if (place < last) next = least(next, place < first ? first : last);
            if (place >= first && place < last && !range.taps++) range.tap = t;
        }
        range.last = next;
        to[count] = range;
    }
    return count;
}

static int places_in_tile(int vectors) {
    if (MOST_VECTORS == 4) return vectors == 4 ? 6 : 8;
    return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}

// The places of a block in some range of each dimension, and the taps that meet them.
typedef struct {
    int64_t count, *at, *number;  // where they begin in the source; their numbers in the block
    int64_t taps, *tap;
    int64_t image_at, channel_at;  // strides of the source
} Places;

static void list_places(const Direct *s, const Block *b, const Range *const *range, Places *to) {
    const Correlation *c = s->c;
    const Axis *a = c->axis;
    Three first, last, at;
    for (int d = 0; d < 3; d++) {
        int64_t begin = d == c->split ? b->begin : 0;
        first[d] = most(range[d]->first - begin, 0);
        last[d] = least(range[d]->last - begin, b->count[d]);
        at[d] = a[d].move * c->source_at[2 + d];
    }
    int64_t origin = b->begin * at[c->split];
    to->count = to->taps = 0;
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t d = first[0]; d < last[0]; d++)
            for (int64_t h = first[1]; h < last[1]; h++) {
                int64_t from = origin + n * to->image_at + d * at[0] + h * at[1];
                int64_t number = ((n * b->count[0] + d) * b->count[1] + h) * b->count[2];
                for (int64_t w = first[2]; w < last[2]; w++, to->count++) {
                    to->at[to->count] = from + w * at[2];
                    to->number[to->count] = number + w;
                }
            }
    for (int64_t i = range[0]->tap; i < range[0]->tap + range[0]->taps; i++)
        for (int64_t j = range[1]->tap; j < range[1]->tap + range[1]->taps; j++)
            for (int64_t k = range[2]->tap; k < range[2]->tap + range[2]->taps; k++)
                to->tap[to->taps++] = (i * a[1].taps + j) * a[2].taps + k;
}

// Compute a tile: the sums of places, from the one numbered `first` on, for a chunk of rows.
INLINE void meet_places(int vectors, int places, const Direct *s, const Places *p, int64_t first, const float *source,
                        const float *weight, const float *bias, float *sums) {
    const Correlation *c = s->c;
    vec found[MOST_PLACES][MOST_VECTORS];
    int64_t at[MOST_PLACES], channel_at = p->channel_at;
    float *to[MOST_PLACES];
    for (int i = 0; i < places; i++) {  // beyond the last place it stands in for others
        int64_t place = least(first + i, p->count - 1);
        at[i] = p->at[place];
        to[i] = sums + p->number[place] * vectors * WIDTH;
        for (int j = 0; j < vectors; j++) found[i][j] = load(bias + j * WIDTH);
    }
    for (int64_t t = 0; t < p->taps; t++) {
        const float *row[MOST_PLACES], *w = weight + p->tap[t] * c->channels * vectors * WIDTH;
        for (int i = 0; i < places; i++) row[i] = source + (at[i] + s->tap_at[p->tap[t]]);
        for (int64_t channel = 0, k = 0; channel < c->channels; channel++, k += channel_at, w += vectors * WIDTH) {
            vec b[MOST_VECTORS];
            for (int j = 0; j < vectors; j++) b[j] = load(w + j * WIDTH);
            for (int i = 0; i < places; i++)
                for (int j = 0; j < vectors; j++) found[i][j] += row[i][k] * b[j];
        }
    }
    for (int i = 0; i < places; i++)
        for (int j = 0; j < vectors; j++) store(to[i] + j * WIDTH, found[i][j]);
}

typedef void (*Meet)(const Direct *, const Places *, int64_t, const float *, const float *, const float *, float *);

// (Functions of their own, for the sake of registers.)
#define TILES(vectors)                                                                                                 \
    static __attribute__((noinline)) void meet_##vectors(const Direct *s, const Places *p, int64_t first,              \
                                                         const float *source, const float *weight, const float *bias,  \
                                                         float *sums) {                                                \
        meet_places(vectors, places_in_tile(vectors), s, p, first, source, weight, bias, sums);                        \
    }                                                                                                                  \
    static __attribute__((noinline)) void meet_half_##vectors(const Direct *s, const Places *p, int64_t first,         \
                                                              const float *source, const float *weight,                \
                                                              const float *bias, float *sums) {                        \
        meet_places(vectors, places_in_tile(vectors) / 2, s, p, first, source, weight, bias, sums);                    \
    }
TILES(1)
TILES(2)
TILES(3)
#if ROWS == 8
TILES(4)
#else
#define meet_4 NULL
#define meet_half_4 NULL
#endif
#undef TILES

// A chunk of rows: its first vector, and how many it has.
static int64_t first_vector(const Direct *s, int64_t chunk) { return chunk * s->vectors / s->chunks; }

// Write the sums of a chunk's rows, which lie place after place, into the result.
static void write_rows(const Direct *s, const Block *b, int64_t rows, int64_t apart, const float *sums,
                       float *to) {
    const Correlation *c = s->c;
    const Axis *a = c->axis;
    const int64_t *at = c->result_at;
    int64_t length = b->count[2], runs = b->count[1], planes = b->count[0], step = a[2].step * at[4];
    Three start, move;
    for (int d = 0; d < 3; d++) {
        start[d] = (a[d].start + (d == c->split ? a[d].step * b->begin : 0)) * at[2 + d];
        move[d] = a[d].step * at[2 + d];
    }
    to += start[0] + start[1] + start[2];
    if (step == 1 && move[1] == length) length *= runs, runs = 1;
    if (step == 1 && runs == 1 && move[0] == length) length *= planes, planes = 1;
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t d = 0; d < planes; d++)
            for (int64_t h = 0; h < runs; h++, sums += length * apart) {
                float *run = to + n * at[0] + d * move[0] + h * move[1];
                for (int64_t p = 0; p < length; p += WIDTH) {
                    if (length >= WIDTH) p = least(p, length - WIDTH);
                    int64_t places = least(WIDTH, length - p);
                    for (int64_t j = 0; j < rows; j += WIDTH) {
                        vec block[WIDTH];
                        for (int i = 0; i < WIDTH; i++) block[i] = load(sums + (p + i) * apart + j);
                        transpose(block);
                        if (step == 1 && places == WIDTH && rows - j >= WIDTH) {
                            for (int i = 0; i < WIDTH; i++) store(run + (j + i) * at[1] + p, block[i]);
                            continue;
                        }
                        for (int64_t i = 0; i < least(WIDTH, rows - j); i++) {
                            float *row = run + (j + i) * at[1] + p * step;
                            if (step != 1)
                                for (int64_t k = 0; k < places; k++) row[k * step] = block[i][k];
                            else if (places == WIDTH) store(row, block[i]);
                            else store_some(row, block[i], places);
                        }
                    }
                }
            }
}

// Copy what a block meets of the source's channels, and return where the source would begin.
static const float *copy_source(const Direct *s, const Block *b, const float *source, float *to) {
    const Correlation *c = s->c;
    const Axis *a = &c->axis[c->split];
    int64_t lowest = a->offset[0], highest = lowest, at = c->source_at[2 + c->split];
    for (int64_t t = 0; t < a->taps; t++) {
        lowest = least(lowest, a->offset[t]);
        highest = most(highest, a->offset[t]);
    }
    int64_t first = most(b->begin * a->move + lowest, 0) * at;
    int64_t end = least((b->begin + b->count[c->split] - 1) * a->move + highest + 1, a->size) * at;
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t channel = 0; channel < c->channels && first < end; channel++)
            copy(to + n * s->copied_at[0] + channel * s->copied_at[1],
                 source + n * c->source_at[0] + channel * c->source_at[1] + first, end - first);
    return to - first;
}

// Compute a chunk of a group's rows for a block.
static void direct_part(void *context, Py_ssize_t part, int worker) {
    const Direct *s = context;
    const Correlation *c = s->c;
    int64_t blocks = c->blocks * c->cuts, chunk = part / blocks % s->chunks, group = part / blocks / s->chunks;
    int64_t vector = first_vector(s, chunk), vectors = first_vector(s, chunk + 1) - vector, row = vector * WIDTH;
    Block b = block_of(c, part % blocks);
    const float *source = c->source + b.first * c->source_at[0] + group * c->channels * c->source_at[1];
    const float *weight = s->weight + (group * s->vectors + vector) * WIDTH * c->taps * c->channels;
    const float *bias = s->bias + (group * s->vectors + vector) * WIDTH;
    float *sums = c->scratch + worker * c->scratch_size;
    int64_t places = b.images * b.count[0] * b.count[1] * b.count[2];
    Places p = {.at = (int64_t *)(sums + (places + WIDTH) * vectors * WIDTH)};
    p.number = p.at + places;
    p.tap = p.number + places;
    p.image_at = c->source_at[0];
    p.channel_at = c->source_at[1];
    if (s->copied_at[0]) {
        source = copy_source(s, &b, source, (float *)(p.tap + c->taps));
        p.image_at = s->copied_at[0];
        p.channel_at = s->copied_at[1];
    }
    const Meet meet = (const Meet[]){meet_1, meet_2, meet_3, meet_4}[vectors - 1];
    const Meet meet_half = (const Meet[]){meet_half_1, meet_half_2, meet_half_3, meet_half_4}[vectors - 1];
    int64_t step = places_in_tile((int)vectors);
    for (int64_t i = 0; i < s->ranges[0]; i++)
        for (int64_t j = 0; j < s->ranges[1]; j++)
            for (int64_t k = 0; k < s->ranges[2]; k++) {
                list_places(s, &b, (const Range *[]){s->range[0] + i, s->range[1] + j, s->range[2] + k}, &p);
                for (int64_t n = 0; n < p.count; n += step)
                    (p.count - n <= step / 2 ? meet_half : meet)(s, &p, n, source, weight, bias, sums);
            }
    write_rows(s, &b, least(vectors * WIDTH, c->rows - row), vectors * WIDTH, sums,
               c->result + b.first * c->result_at[0] + (group * c->rows + row) * c->result_at[1]);
}

// Pack WIDTH rows of the weight. What lies in a row side by side are kernels, or the elements of one.
static void pack_rows(void *context, Py_ssize_t number, int worker) {
    (void)worker;
    const Direct *s = context;
    const Correlation *c = s->c;
    const int64_t *at = c->weight_at;
    int64_t group = number / s->vectors, vector = number % s->vectors;
    int64_t chunk = ((vector + 1) * s->chunks - 1) / s->vectors, first = first_vector(s, chunk);
    int64_t apart = (first_vector(s, chunk + 1) - first) * WIDTH, tap_size = c->channels * apart;
    int64_t rows = least(c->rows - vector * WIDTH, WIDTH);
    int64_t together = at[1] == s->span ? c->channels : 1, length = together * s->span;
    float *to =
        s->weight + (group * s->vectors + first) * WIDTH * c->taps * c->channels + (vector - first) * WIDTH;
    const float *from = c->weight + group * at[5] + vector * WIDTH * at[0] + s->lowest;
    for (int64_t channel = 0; channel < c->channels; channel += together, from += at[1])
        for (int64_t k = 0, element = 0, place = channel * apart; k < length; k += WIDTH) {
            int64_t there = least(length - k, WIDTH);
            vec block[WIDTH];
            if (rows == WIDTH && (there == WIDTH || from + k + (WIDTH - 1) * at[0] + WIDTH <= c->weight_end))
                for (int i = 0; i < WIDTH; i++) block[i] = load(from + k + i * at[0]);
            else
                for (int i = 0; i < WIDTH; i++)
                    block[i] = i >= rows        ? (vec){0}
                               : there == WIDTH ? load(from + k + i * at[0])
                                                : load_some(from + k + i * at[0], there);
            transpose(block);
            for (int64_t i = 0; i < there; i++) {
                if (s->tap_of[element] >= 0) store(to + s->tap_of[element] * tap_size + place, block[i]);
                if (++element == s->span) element = 0, place += apart;
            }
        }
}

// Is it better than panels? These are for few rows, which leave vectors empty, for few channels, and for sums of few terms.
static bool is_direct(const Correlation *c) {
    int64_t taps = c->axis[0].taps * c->axis[1].taps * c->axis[2].taps, padded = over(c->rows, WIDTH) * WIDTH;
    return taps > 1 && c->channels >= 8 && c->channels * taps >= LEAST_TERMS && padded * 4 <= c->rows * 5;
}

// Cut the work into blocks, of whole images or of places in one.
static void set_direct_blocks(Direct *s, Correlation *c, int threads) {
    const Axis *a = c->axis;
    int64_t places = a[0].count * a[1].count * a[2].count, wanted = threads > 1 ? 4 * threads : 1;
    c->split = a[0].count > 1 ? 0 : a[1].count > 1 ? 1 : 2;
    int64_t count = a[c->split].count, before = 1, at = c->source_at[2 + c->split];
    c->blocks = most(over(c->samples, over(PLACES_OF_BLOCK, places)), over(wanted, c->groups * s->chunks));
    c->blocks = least(c->blocks, c->samples);
    c->images = over(c->samples, c->blocks);
    c->blocks = over(c->samples, c->images);
    c->cut = over(count, most(least(places / PLACES_OF_BLOCK, count), 1));
    c->cuts = over(count, c->cut);

    // Channels that lie a power of two apart compete for few places of the cache.
    for (int d = 0; d < c->split; d++) before *= a[d].size;
    bool dense = before == 1 && c->source_at[4] == 1 && (c->split == 2 || c->source_at[3] == a[2].size) &&
                 (c->split || at == a[1].size * a[2].size);
    if (!dense || c->source_at[1] % CROWDED) return;
    int64_t reach = a[c->split].offset[0] - a[c->split].offset[a[c->split].taps - 1];
    int64_t size = least((c->cut - 1) * a[c->split].move + 1 + most(reach, -reach), a[c->split].size) * at;
    s->copied_at[1] = (over(size, 16) | 1) * 16;
    s->copied_at[0] = c->channels * s->copied_at[1];
}

// Say where taps meet the source, and which elements of a kernel they are; false if these lie far apart, or together.
static bool set_direct_taps(Direct *s, Correlation *c) {
    const Axis *a = c->axis;
    int64_t t = 0, highest, all_ranges = 3 + 2 * (a[0].taps + a[1].taps + a[2].taps);
    s->tap_at = malloc(sizeof(int64_t) * 2 * (size_t)c->taps);
    s->range[0] = malloc(sizeof(Range) * (size_t)all_ranges);
    if (!s->tap_at || !s->range[0]) return false;
    for (int d = 0; d < 3; d++) {
        if (d) s->range[d] = s->range[d - 1] + s->ranges[d - 1];
        s->ranges[d] = set_ranges(&a[d], s->range[d]);
    }
    c->weight_tap_at = s->tap_at + c->taps;
    Three k;
    for (k[0] = 0; k[0] < a[0].taps; k[0]++)
        for (k[1] = 0; k[1] < a[1].taps; k[1]++)
            for (k[2] = 0; k[2] < a[2].taps; k[2]++, t++) {
                s->tap_at[t] = c->weight_tap_at[t] = 0;
                for (int d = 0; d < 3; d++) {
                    s->tap_at[t] += a[d].offset[k[d]] * c->source_at[2 + d];
                    c->weight_tap_at[t] += a[d].tap[k[d]] * c->weight_at[2 + d];
                }
            }
    s->lowest = highest = c->weight_tap_at[0];
    for (t = 0; t < c->taps; t++) {
        s->lowest = least(s->lowest, c->weight_tap_at[t]);
        highest = most(highest, c->weight_tap_at[t]);
    }
    s->span = highest - s->lowest + 1;
    if (s->span > 8 * c->taps + WIDTH) return false;
    s->tap_of = malloc(sizeof(int64_t) * (size_t)s->span);
    if (!s->tap_of) return false;
    for (t = 0; t < s->span; t++) s->tap_of[t] = -1;
    for (t = 0; t < c->taps; t++) {
        int64_t *tap = s->tap_of + (c->weight_tap_at[t] - s->lowest);
        if (*tap >= 0) return false;
        *tap = t;
    }
    return true;
}

static bool correlate_direct(Correlation *c, const float *bias) {
    int threads = tt_threads();
    Direct s = {.c = c, .vectors = over(c->rows, WIDTH)};
    s.chunks = over(s.vectors, MOST_VECTORS);
    c->taps = c->axis[0].taps * c->axis[1].taps * c->axis[2].taps;
    bool fine = set_direct_taps(&s, c);
    if (fine) {
        set_direct_blocks(&s, c, threads);
        int64_t all_vectors = c->groups * s.vectors, length = c->channels * c->taps, places = c->images * c->cut;
        for (int d = 0; d < 3; d++) places *= d == c->split ? 1 : c->axis[d].count;
        c->scratch_size = (places + WIDTH) * over(s.vectors, s.chunks) * WIDTH + 2 * (2 * places + c->taps);
        c->scratch_size = over(c->scratch_size + c->images * s.copied_at[0], 16) * 16;
        c->scratch = aligned((size_t)(threads * c->scratch_size));
        s.weight = aligned((size_t)(all_vectors * WIDTH * length));
        s.bias = calloc((size_t)(all_vectors * WIDTH), sizeof(float));
        fine = c->scratch && s.weight && s.bias;
        for (int64_t i = 0; fine && bias && i < c->groups * c->rows; i++)
            s.bias[i / c->rows * s.vectors * WIDTH + i % c->rows] = bias[i];
        if (fine) {
            tt_share(pack_rows, &s, all_vectors, c->groups * c->rows * length, threads);
            tt_share(direct_part, &s, c->blocks * c->cuts * c->groups * s.chunks,
                     c->samples * places / c->images * c->cuts * c->groups * c->rows * length, threads);
        }
    }
    free(c->scratch);
    free(s.weight);
    free(s.bias);
    free(s.tap_at);
    free(s.range[0]);
    free(s.tap_of);
    return fine;
}
