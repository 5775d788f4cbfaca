/* What a feed's plan may hold: catalog lines alone, and in them no member that the format does not have. A scenario passes over those; a feed
 * that took a misspelled "trust" for one that is not there would run for long and give something else. The library reads the plans of views so,
 * here before anything is made. */
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

/* -> a member of the object that is neither in the list nor a comment nor `beside`; NULL: there is none. */
static const char *stranger(const json_t *object, const char *list, const char *beside)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char spaced[32];
        size_t size = (size_t)snprintf(spaced, sizeof spaced, " %s ", name);
        if (strcmp(name, "#") != 0 && strcmp(name, beside) != 0 && (size >= sizeof spaced || strchr(name, ' ') || !strstr(list, spaced))) {
            return name;
        }
    }
    return NULL;
}

/* Whether a line, unless it is no view's, has a plan that can be read. */
static bool view_reads(const scenario_line *line, ivm_error *error)
{
    const json_t *members = json_object_get(line->json, "view");
    ivm_plan *made = NULL;
    ivm_status status = members ? plan_read(json_object_get(members, "plan"), &made, error) : IVM_OK;
    ivm_plan_free(made);
    return status == IVM_OK;
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
        if (found) {
            usage_error("%s:%zu: %s has no member \"%s\"", plan->path, plan->lines[i].number, of, found);
            return false;
        }
        ivm_error error = IVM_ERROR_INIT;
        if (!view_reads(&plan->lines[i], &error)) {
            usage_error("%s:%zu: %s", plan->path, plan->lines[i].number, error.message);
            return false;
        }
    }
    return true;
}
