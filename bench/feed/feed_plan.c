/* What a feed's plan may hold: catalog lines alone, and in them and in the plans of views no member that the format does not have. A scenario passes
 * over those; a feed that took a misspelled "trust" or "where" for one that is not there would run for long and give something else. */
#include "feed.h"

#include "option.h"

#include <string.h>

typedef struct member_list {
    const char *of;
    const char *members; /* with a space before and behind each */
} member_list;

static const member_list lines[] = { { "table", " name columns key append_only retain allow_negative " },
                                     { "foreign_key", " child columns parent parent_columns trust " },
                                     { "view", " name plan refresh " },
                                     { "set", " fk_pruning join_rule skip_empty " },
                                     { NULL, NULL } };
static const member_list nodes[] = { { "scan", " table as " },
                                     { "filter", " input where " },
                                     { "project", " input columns " },
                                     { "join", " kind inputs on where " },
                                     { "aggregate", " input group_by aggregates having " },
                                     { "distinct", " input " },
                                     { "union_all", " inputs " },
                                     { "union", " inputs " },
                                     { "except_all", " inputs " },
                                     { "except", " inputs " },
                                     { "intersect_all", " inputs " },
                                     { "intersect", " inputs " },
                                     { "top_k", " input partition_by order_by limit offset " },
                                     { NULL, NULL } };

/* -> a member of the object that is neither in the list nor a comment nor `beside`; NULL: there is none. */
static const char *stranger(const json_t *object, const char *list, const char *beside)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char spaced[32];
        size_t size = (size_t)snprintf(spaced, sizeof spaced, " %s ", name);
        if (strcmp(name, "#") != 0 && strcmp(name, beside) != 0 && (size >= sizeof spaced || !strstr(list, spaced))) {
            return name;
        }
    }
    return NULL;
}

static const char *array_stranger(const json_t *array, const char *list)
{
    const char *found = NULL;
    for (size_t i = 0; !found && i < json_array_size(array); i++) {
        found = stranger(json_array_get(array, i), list, "");
    }
    return found;
}

/* Of a plan and those below it: the member, and in *of the operator that does not have it. What is no plan is left to who reads it. */
static const char *plan_stranger(const json_t *plan, const char **of)
{
    const char *op = member_text(plan, "op"), *found = NULL;
    size_t n = 0;
    while (op && nodes[n].of && strcmp(nodes[n].of, op) != 0) {
        n++;
    }
    if (!op || !nodes[n].of) {
        return NULL;
    }
    *of = nodes[n].of;
    found = stranger(plan, nodes[n].members, "op");
    found = found ? found : array_stranger(json_object_get(plan, "aggregates"), " as fn arg where ");
    found = found ? found : strcmp(op, "project") == 0 ? array_stranger(json_object_get(plan, "columns"), " as expr ") : NULL;
    found = found ? found : array_stranger(json_object_get(plan, "group_by"), " as expr ");
    found = found ? found : array_stranger(json_object_get(plan, "order_by"), " expr desc nulls lit type ");
    const json_t *inputs = json_object_get(plan, "inputs");
    found = found ? found : plan_stranger(json_object_get(plan, "input"), of);
    for (size_t i = 0; !found && i < json_array_size(inputs); i++) {
        found = plan_stranger(json_array_get(inputs, i), of);
    }
    return found;
}

bool plan_is_catalog(const scenario_file *plan)
{
    for (size_t i = 0; i < plan->lines_count; i++) {
        const json_t *line = plan->lines[i].json;
        size_t c = 0;
        while (lines[c].of && !json_object_get(line, lines[c].of)) {
            c++;
        }
        if (lines[c].of ? json_object_get(line, "error") != NULL : !json_object_get(line, "#")) {
            usage_error("%s:%zu: a feed's plan has table, foreign_key, view and set lines alone", plan->path, plan->lines[i].number);
            return false;
        }
        const char *of = lines[c].of, *found = of ? stranger(json_object_get(line, of), lines[c].members, "") : NULL;
        found = found || !of ? found : stranger(line, " ", of);
        found = found || !of ? found : plan_stranger(json_object_get(json_object_get(line, "view"), "plan"), &of);
        if (found) {
            usage_error("%s:%zu: %s has no member \"%s\"", plan->path, plan->lines[i].number, of, found);
            return false;
        }
    }
    return true;
}
