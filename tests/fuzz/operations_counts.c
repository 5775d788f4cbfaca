/* What operation sequences met, by name, and whether that is all there is to meet. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 256u
#define KINDS_MAX 16u

static struct {
    const char *name;
    uint64_t count;
} counts[NAMES_MAX];

static const char *const wanted[] = {
    "engine of one thread",
    "engine of two threads",
    "planner set",
    "table of one key",
    "table of two keys",
    "table without a key",
    "table append_only",
    "table allow_negative",
    "table transient",
    "fact rely",
    "fact enforced",
    "fact tracked",
    "fact: ok",
    "fact: fk_violation",
    "fact: invalid_argument",
    "fact: unsupported",
    "remove_fact: ok",
    "remove_fact: in_use",
    "orphans",
    "told of orphans",
    "column_add: ok",
    "column_rename: ok",
    "column_drop: ok",
    "column_drop: in_use",
    "drop_table: ok",
    "drop_table: in_use",
    "drop_view: ok",
    "drop_view: in_use",
    "view immediate",
    "view deferred",
    "view over a transient table",
    "view refused over a transient table",
    "view: ok",
    "view: ambiguous_column",
    "view: overflow",
    "op scan",
    "op scan of a view",
    "op filter",
    "op project",
    "op join inner",
    "op join left",
    "op join right",
    "op join full",
    "op join semi",
    "op join anti",
    "join along a fact",
    "join along half a fact",
    "join with a condition",
    "op aggregate by groups",
    "op aggregate of all",
    "aggregate with a condition",
    "having",
    "op distinct",
    "op union_all",
    "op union",
    "op except_all",
    "op except",
    "op intersect_all",
    "op intersect",
    "op top_k",
    "op top_k of partitions",
    "case",
    "cast",
    "change insert",
    "change delete",
    "change weighted",
    "change upsert",
    "change delete_key",
    "batch of columns",
    "batch with a position",
    "batch of a stated shape",
    "push with parents of its children",
    "push without the children of parents that go",
    "push with an allocation that fails",
    "push: ok",
    "push: append_only_violation",
    "push: duplicate_key",
    "push: fk_violation",
    "push: invalid_argument",
    "push: null_violation",
    "push: overflow",
    "push: row_not_found",
    "push: type_mismatch",
    "push: unsupported",
    "refresh: ok",
    "refresh: overflow",
    "refresh of an immediate view: ok",
    "refresh with an allocation that fails",
    "find: ok",
    "find: row_not_found",
    "snapshot held",
    "audit: ok",
    "audit: unsupported",
    "explain and prepare",
    "checkpoint",
    "restore in place",
    "restore into a new engine",
    "restore with an allocation that fails",
    "checkpoint that was changed",
    "checkpoint that was cut",
    "restore of what is broken: corrupt",
};

static size_t place(const char *name)
{
    size_t at = 0;
    while (at < NAMES_MAX && counts[at].name && strcmp(counts[at].name, name) != 0) {
        at++;
    }
    return at;
}

void operations_count(const char *name)
{
    size_t at = place(name);
    if (at < NAMES_MAX) {
        counts[at].name = name;
        counts[at].count++;
    }
}

void operations_count_status(const char *name, ivm_status status)
{
    static char texts[KINDS_MAX][IVM_STATUS_COUNT][48];
    static const char *names[KINDS_MAX];
    size_t at = 0;
    while (at < KINDS_MAX - 1 && names[at] && strcmp(names[at], name) != 0) {
        at++;
    }
    names[at] = name;
    snprintf(texts[at][status], sizeof texts[at][status], "%s: %s", name, ivm_status_name(status));
    operations_count(texts[at][status]);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void operations_counts_print(void)
{
    size_t count = 0;
    while (count < NAMES_MAX && counts[count].name) {
        count++;
    }
    qsort(counts, count, sizeof *counts, by_name);
    for (size_t i = 0; i < count; i++) {
        printf("%12llu  %s\n", (unsigned long long)counts[i].count, counts[i].name);
    }
}

static bool met(const char *name)
{
    size_t at = place(name);
    bool is = at < NAMES_MAX && counts[at].name;
    if (!is) {
        printf("never met: %s\n", name);
    }
    return is;
}

bool operations_counts_complete(void)
{
    bool all = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        all &= met(wanted[i]);
    }
    for (size_t i = 0; i < NAIVE_FUNCTIONS_COUNT; i++) {
        all &= met(naive_function_names[i]);
    }
    for (size_t i = 0; i < NAIVE_AGGREGATES_COUNT; i++) {
        all &= met(naive_aggregate_names[i]);
    }
    return all;
}
