/* See model.h. */
#include "model.h"

#include "need.h"

#include <string.h>

static uint32_t below(growth_model *it, uint32_t count)
{
    return (uint32_t)random_below(&it->random, count);
}

void growth_model_init(growth_model *it, uint64_t seed)
{
    memset(it, 0, sizeof *it);
    it->random = seed * 2654435761u;
    it->bag = random_below(&it->random, 2);
    it->values_most = 3;
    it->grows = 7;
    it->dims_of_eight = 7;
    it->few_until = 300 + 100 * below(it, 8);
}

int64_t growth_key(const growth_model *it, uint32_t id)
{
    return id == GROWTH_IDS - 1 ? it->special : (int64_t)id * 7919 - 1000;
}

void growth_text(uint32_t text, char out[GROWTH_TEXT_SIZE])
{
    snprintf(out, GROWTH_TEXT_SIZE, text % 3 ? "%u" : "a text longer than a word, %u", text);
}

/* ---- Changes --------------------------------------------------------------------------------------------------------------------------- */

static uint32_t value_draw(growth_model *it)
{
    return below(it, it->values_most ? it->values_most : GROWTH_IDS);
}

/* Texts that nobody has had for long come back under the same number. */
static uint32_t text_draw(growth_model *it)
{
    return it->texts_most ? below(it, it->texts_most) : it->texts_next++ % GROWTH_TEXTS;
}

static growth_change *change_add(growth_model *it, bool of_dim, ivm_change change, uint32_t id)
{
    growth_change *made = &it->changes[it->changes_count++];
    *made = (growth_change){ of_dim, change, id, 1, it->dims[id], it->facts[id] };
    return made;
}

/* An id with a row or without one; GROWTH_IDS where none was drawn. */
static uint32_t dim_find(growth_model *it, bool there)
{
    uint32_t first = below(it, GROWTH_IDS), id = first;
    while (it->dims[id].there != there) {
        id = (id + 1) % GROWTH_IDS;
        if (id == first) {
            return GROWTH_IDS;
        }
    }
    return id;
}

static uint32_t fact_find(growth_model *it, bool there)
{
    uint32_t first = below(it, GROWTH_IDS), id = first;
    while ((it->facts[id].weight != 0) != there) {
        id = (id + 1) % GROWTH_IDS;
        if (id == first) {
            return GROWTH_IDS;
        }
    }
    return id;
}

static void dim_come(growth_model *it, uint32_t id, growth_dim row)
{
    it->dims[id] = row;
    it->dims_count++;
    change_add(it, true, below(it, 2) ? IVM_INSERT : IVM_UPSERT, id);
}

static void dim_go(growth_model *it, uint32_t id)
{
    change_add(it, true, below(it, 2) ? IVM_DELETE : IVM_DELETE_KEY, id);
    it->dims[id].there = false;
    it->dims_count--;
}

static void dim_change(growth_model *it, bool comes)
{
    uint32_t id = dim_find(it, !comes), other = dim_find(it, false);
    if (id == GROWTH_IDS) {
        return;
    }
    if (comes) {
        dim_come(it, id, (growth_dim){ true, value_draw(it), text_draw(it) });
    } else if (below(it, 3) == 0) {
        it->dims[id].v = value_draw(it);
        it->dims[id].text = text_draw(it);
        change_add(it, true, IVM_UPSERT, id);
    } else if (!it->keeps || it->children[id] == 0) {
        growth_dim row = it->dims[id];
        dim_go(it, id);
        if (below(it, 3) == 0 && other != GROWTH_IDS) {
            dim_come(it, other, row);
        }
    }
}

/* Weights outside 31 bits now and then. */
static int64_t weight_draw(growth_model *it)
{
    return !it->bag || below(it, 3) ? 1 : below(it, 12) ? 1 + below(it, 3) : 5000000000;
}

static void fact_come(growth_model *it, uint32_t id, growth_fact row)
{
    it->facts[id] = row;
    it->facts_count++;
    it->children[row.k]++;
    change_add(it, false, IVM_WEIGHTED, id)->weight = row.weight;
}

static void fact_go(growth_model *it, uint32_t id)
{
    change_add(it, false, IVM_WEIGHTED, id)->weight = -it->facts[id].weight;
    it->children[it->facts[id].k]--;
    it->facts[id].weight = 0;
    it->facts_count--;
}

static void fact_change(growth_model *it, bool comes)
{
    uint32_t id = fact_find(it, !comes), k = dim_find(it, it->keeps || below(it, 8));
    if (id == GROWTH_IDS || k == GROWTH_IDS) {
        return;
    }
    growth_fact row = it->facts[id];
    if (comes) {
        fact_come(it, id, (growth_fact){ weight_draw(it), k, below(it, 1000), text_draw(it) });
        return;
    }
    if (row.weight > 1 && below(it, 2)) { /* some of the copies */
        int64_t gone = 1 + (int64_t)random_below(&it->random, (uint64_t)row.weight - 1);
        change_add(it, false, IVM_WEIGHTED, id)->weight = -gone;
        it->facts[id].weight -= gone;
        return;
    }
    fact_go(it, id);
    if (below(it, 3) == 0) {
        row.k = k;
        row.text = text_draw(it);
        fact_come(it, id, row);
    }
}

void growth_draw(growth_model *it, uint32_t count)
{
    it->changes_count = 0;
    for (uint32_t i = 0; i < count && it->changes_count + 2 <= GROWTH_CHANGES_MAX; i++) {
        bool comes = below(it, 8) < it->grows;
        if (below(it, 8) < it->dims_of_eight) {
            dim_change(it, comes);
        } else {
            fact_change(it, comes);
        }
    }
}

void growth_drift(growth_model *it, uint32_t often)
{
    static const uint32_t values[] = { 2, 3, 5, 8, 12, 20, 40, 0 }, of_eight[] = { 0, 2, 4, 7, 8, 8 };
    if (it->turned > 0) {
        it->turned--;
        it->values_most = it->turned == GROWTH_TURN / 2 ? it->values_before : it->values_most;
        return;
    }
    if (below(it, 60) < often) { /* of one table alone, too: what stands at the other is not looked at for a while */
        it->dims_of_eight = of_eight[below(it, 6)];
    }
    if (it->dims_count >= it->few_until && below(it, 80) < often) {
        it->values_most = values[below(it, it->few_until ? 7 : 8)];
        it->few_until = it->few_until && below(it, 4) ? it->few_until + 100 : 0;
    }
    if (below(it, 80) < often) {
        it->texts_most = below(it, 2) ? 3 : 0;
    }
    if (it->dims_count >= it->few_until && below(it, 300) < often) {
        it->grows = below(it, 3) ? 7 : 2 + below(it, 3);
    }
}

void growth_turn(growth_model *it, bool many)
{
    it->turned = GROWTH_TURN;
    it->values_before = it->values_most;
    it->values_most = many ? 0 : 2;
    it->dims_of_eight = 8;
    it->grows = 8;
}

/* ---- Digests --------------------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u + 1;
    return hash ^ hash >> 29;
}

uint64_t growth_hash_int(uint64_t hash, int64_t value)
{
    return mix(hash, mix(1, (uint64_t)value));
}

uint64_t growth_hash_bytes(uint64_t hash, const char *bytes, size_t size)
{
    uint64_t word = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) {
        word = (word ^ (uint8_t)bytes[i]) * 1099511628211u;
    }
    return mix(hash, mix(2, word));
}

uint64_t growth_hash_null(uint64_t hash)
{
    return mix(hash, 3);
}

static uint64_t hash_text(uint64_t hash, uint32_t text)
{
    char bytes[GROWTH_TEXT_SIZE];
    growth_text(text, bytes);
    return growth_hash_bytes(hash, bytes, strlen(bytes));
}

/* A group: count, sum, least and greatest of m. */
typedef struct group {
    bool there;
    uint32_t least, greatest;
    int64_t n, sum;
} group;

static void group_add(group *it, const growth_fact *fact)
{
    it->least = !it->there || fact->m < it->least ? fact->m : it->least;
    it->greatest = !it->there || fact->m > it->greatest ? fact->m : it->greatest;
    it->there = true;
    it->n += fact->weight;
    it->sum += fact->weight * fact->m;
}

static uint64_t group_hash(uint64_t hash, const group *it)
{
    return growth_hash_int(growth_hash_int(hash, it->n), it->sum);
}

static uint64_t text_group_hash(uint32_t text, const group *it)
{
    return growth_hash_int(growth_hash_int(group_hash(hash_text(0, text), it), it->least), it->greatest);
}

static uint64_t hash_ints(uint64_t hash, int64_t a, int64_t b)
{
    return growth_hash_int(growth_hash_int(hash, a), b);
}

static void fact_expect(const growth_model *it, uint32_t id, growth_digests *out)
{
    const growth_fact *fact = &it->facts[id];
    const growth_dim *dim = &it->dims[fact->k];
    int64_t key = growth_key(it, id), k = growth_key(it, fact->k);
    uint64_t weight = (uint64_t)fact->weight, row = hash_ints(0, key, fact->m);
    out->fact += weight * hash_text(growth_hash_int(hash_ints(0, key, k), fact->m), fact->text);
    if (dim->there) {
        out->views[GROWTH_SEMI] += weight * row;
        out->views[GROWTH_FULL] += weight * hash_ints(row, k, dim->v);
        out->views[GROWTH_JOINED] += weight * hash_text(hash_ints(0, key, dim->v), dim->text);
    } else {
        out->views[GROWTH_ANTI] += weight * row;
        out->views[GROWTH_FULL] += weight * growth_hash_null(growth_hash_null(row));
        out->orphans += weight * growth_hash_int(0, k);
    }
}

static void facts_expect(const growth_model *it, bool *seen, growth_digests *out)
{
    static group by_value[GROWTH_IDS], by_text[GROWTH_TEXTS];
    memset(by_value, 0, sizeof by_value);
    memset(by_text, 0, sizeof by_text);
    for (uint32_t id = 0; id < GROWTH_IDS; id++) {
        const growth_fact *fact = &it->facts[id];
        if (fact->weight == 0) {
            continue;
        }
        fact_expect(it, id, out);
        group_add(&by_text[fact->text], fact);
        seen[fact->text] = true;
        if (it->dims[fact->k].there) {
            group_add(&by_value[it->dims[fact->k].v], fact);
        }
    }
    for (uint32_t v = 0; v < GROWTH_IDS; v++) {
        out->views[GROWTH_GROUPED] += by_value[v].there ? group_hash(growth_hash_int(0, v), &by_value[v]) : 0;
    }
    for (uint32_t text = 0; text < GROWTH_TEXTS; text++) {
        out->views[GROWTH_BY_TEXT] += by_text[text].there ? text_group_hash(text, &by_text[text]) : 0;
    }
}

/* The greatest two keys of each value, and so many there are. */
typedef struct top {
    uint32_t count;
    int64_t keys[2];
} top;

static void top_add(top *it, int64_t key)
{
    if (it->count == 0 || key > it->keys[0]) {
        it->keys[1] = it->keys[0];
        it->keys[0] = key;
    } else if (it->count == 1 || key > it->keys[1]) {
        it->keys[1] = key;
    }
    it->count++;
}

static void dims_expect(const growth_model *it, bool *seen, growth_digests *out)
{
    static top tops[GROWTH_IDS];
    memset(tops, 0, sizeof tops);
    for (uint32_t id = 0; id < GROWTH_IDS; id++) {
        const growth_dim *dim = &it->dims[id];
        if (!dim->there) {
            continue;
        }
        int64_t key = growth_key(it, id);
        seen[dim->text] = true;
        out->dim += hash_text(hash_ints(0, key, dim->v), dim->text);
        out->views[GROWTH_FULL] += it->children[id] ? 0 : hash_ints(growth_hash_null(growth_hash_null(0)), key, dim->v);
        top_add(&tops[dim->v], key);
    }
    for (uint32_t v = 0; v < GROWTH_IDS; v++) {
        for (uint32_t i = 0; i < tops[v].count && i < 2; i++) {
            out->views[GROWTH_TOP] += hash_ints(0, tops[v].keys[i], v);
        }
    }
}

void growth_expect(const growth_model *it, growth_digests *out)
{
    bool seen[GROWTH_TEXTS] = { false };
    memset(out, 0, sizeof *out);
    facts_expect(it, seen, out);
    dims_expect(it, seen, out);
    for (uint32_t text = 0; text < GROWTH_TEXTS; text++) {
        out->views[GROWTH_TEXTS_ALL] += seen[text] ? hash_text(0, text) : 0;
    }
}

uint64_t growth_expect_text(const growth_model *it, uint32_t text)
{
    group of_text = { 0 };
    for (uint32_t id = 0; id < GROWTH_IDS; id++) {
        if (it->facts[id].weight != 0 && it->facts[id].text == text) {
            group_add(&of_text, &it->facts[id]);
        }
    }
    return of_text.there ? text_group_hash(text, &of_text) : 0;
}
