/* See side.h: what grows beside. */
#include "side.h"

#include "catalog.h"
#include "cover.h"
#include "finder.h"
#include "hash.h"
#include "index.h"

static void sound(const char *wrong)
{
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
}

static void cover_look(const ivm__cover *cover, bool validate, growth_beside *beside)
{
    const ivm__cover_words *words = cover->words;
    beside->pairs += cover->larger != NULL;
    beside->words += words && words->larger;
    beside->words_failed += words && words->larger && words->failed;
    if (validate && !words) {
        sound(ivm__cover_validate(cover));
    }
}

static void store_look(const ivm__store *store, bool validate, growth_beside *beside)
{
    beside->finders += store->finder && store->finder->larger;
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        beside->slots += index->larger != NULL;
        beside->wide_from_narrow += index->narrow && index->larger && !index->larger->narrow;
        if (validate) {
            sound(ivm__index_validate(index));
        }
        for (const ivm__cover *cover = index->covers; cover; cover = cover->next) {
            cover_look(cover, validate, beside);
        }
    }
}

bool growth_look(const growth_side *it, bool validate, growth_beside *beside)
{
    growth_beside now = { .texts = it->engine->texts.larger != NULL };
    if (validate) {
        sound(ivm__texts_validate(&it->engine->texts));
    }
    store_look(&it->dim->store, validate, &now);
    store_look(&it->fact->store, validate, &now);
    for (int v = 0; v < GROWTH_VIEWS; v++) {
        store_look(it->views[v]->program.result, validate, &now);
    }
    beside->slots += now.slots;
    beside->wide_from_narrow += now.wide_from_narrow;
    beside->pairs += now.pairs;
    beside->words += now.words;
    beside->words_failed += now.words_failed;
    beside->texts += now.texts;
    beside->finders += now.finders;
    return now.slots + now.pairs + now.words + now.texts + now.finders > 0;
}

int64_t growth_special(const growth_side *it)
{
    return (int64_t)ivm__hash_word(1, it->engine->seed);
}
