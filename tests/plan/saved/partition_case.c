/* See partition_case.h. */
#include "partition_case.h"
#include "random.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Streams ------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status streams_write(void *context, uint32_t partition, const void *bytes, size_t size)
{
    streams *it = context;
    cr_assert(partition == IVM_PARTITION_SHARED || partition < PARTS);
    uint32_t order = partition + 1; /* the shared one is first */
    cr_assert_geq(order, it->last, "stream %u after %u", order, it->last);
    it->last = order;
    return tape_write(order ? &it->part[partition] : &it->shared, bytes, size);
}

void streams_free(streams *it)
{
    tape_free(&it->shared);
    for (uint32_t p = 0; p < PARTS; p++) {
        tape_free(&it->part[p]);
    }
}

ivm_status parts_save_range(fixture *it, streams *to, uint32_t first, uint32_t end, bool shared)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION,
                                       .compression = to->compression ? to->compression : IVM_COMPRESSION_NONE,
                                       .sort_bytes = to->sort_bytes };
    to->last = 0;
    to->shared.size = shared ? 0 : to->shared.size;
    for (uint32_t p = first; p < end && p < PARTS; p++) {
        to->part[p].size = 0;
    }
    return ivm_checkpoint_partitions(it->engine, (ivm_partition_range){ first, end, shared }, streams_write, to, &options, &it->error);
}

void parts_save(fixture *it, streams *to, uint32_t first, uint32_t end, bool shared)
{
    cr_assert_eq(parts_save_range(it, to, first, end, shared), IVM_OK, "%s", it->error.message);
}

ivm_status parts_read(ivm_restoring *restore, tape *from, ivm_error *error)
{
    from->at = 0;
    from->calls = 0;
    return ivm_restore_read(restore, tape_read, from, error);
}

ivm_status parts_restore(fixture *it, streams *from, const uint32_t *parts, uint32_t count)
{
    ivm_restoring *restore = NULL;
    ivm_status status = ivm_restore_open(it->engine, &restore, &it->error);
    if (status != IVM_OK) {
        return status;
    }
    status = parts_read(restore, &from->shared, &it->error);
    for (uint32_t i = 0; status == IVM_OK && i < count; i++) {
        status = parts_read(restore, &from->part[parts[i]], &it->error);
    }
    if (status == IVM_OK) {
        return ivm_restore_finish(restore, &it->error);
    }
    cr_assert_eq(ivm_restore_close(restore, NULL), IVM_OK);
    return status;
}

ivm_status parts_restore_all(fixture *it, streams *from)
{
    uint32_t parts[PARTS];
    for (uint32_t p = 0; p < PARTS; p++) {
        parts[p] = p;
    }
    return parts_restore(it, from, parts, PARTS);
}

/* ---- The program ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_table *table_of(fixture *it, const char *name, const char *columns, ivm_table_options like)
{
    like.version = IVM_TABLE_OPTIONS_VERSION;
    like.partition = "part";
    return fixture_table_like(it, name, columns, &like);
}

void parts_declare(fixture *it)
{
    ivm_table_options grows = { .key = "id", .append_only = true };
    ivm_table *e = fixture_table_like(it, "e", "id int64; name string", &grows);
    ivm_table *d = fixture_table_like(it, "d", "id int64; name string; e int64", &grows);
    ivm_table *f = table_of(it, "f", "id int64; part int64; d int64; n int64; x float64", (ivm_table_options){ .key = "id" });
    ivm_table *p = table_of(it, "p", "part int64; id int64; s string", (ivm_table_options){ .key = "part, id" });
    ivm_table *c = table_of(it, "c", "part int64; p int64; n int64", (ivm_table_options){ 0 });
    table_of(it, "bag", "n int64; part int64", (ivm_table_options){ .allow_negative = true });
    ivm_table *seen = table_of(it, "seen", "part int64; d int64; n int64; x float64; s string", (ivm_table_options){ .transient = true });
    fixture_table(it, "plain", "s string; n int64", NULL);
    fixture_fact(it, f, "d", d, "id", IVM_TRACKED);
    fixture_fact(it, c, "part, p", p, "part, id", IVM_ENFORCED);
    fixture_fact(it, seen, "d", d, "id", IVM_TRACKED);
    fixture_fact(it, d, "e", e, "id", IVM_TRACKED);
}

static ivm_plan *seen_with_d(void)
{
    return ivm_plan_join(scan_of("seen", NULL), scan_of("d", NULL), "seen.d = d.id");
}

static ivm_plan *totals(ivm_plan *input, const char *groups)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(input, groups), "c");
    plan = ivm_plan_add(plan, "total", "sum", ivm_column("n"));
    return ivm_plan_add(plan, "least", "min", ivm_column("n"));
}

static ivm_plan *seen_far(void)
{
    ivm_plan *inputs[] = { scan_of("seen", NULL), scan_of("d", NULL), scan_of("e", NULL) };
    return totals(ivm_plan_join_many(inputs, 3, "seen.d = d.id, d.e = e.id"), "e.name, part");
}

static ivm_plan *seen_totals(void)
{
    ivm_plan *plan = totals(seen_with_d(), "seen.part, d.name");
    plan = ivm_plan_add(plan, "exact", "sum", ivm_column("x"));
    plan = ivm_plan_add(plan, "first", "min", ivm_column("s"));
    return ivm_plan_add(plan, "each", "count_distinct", ivm_column("s"));
}

static ivm_plan *seen_above(void)
{
    ivm_plan *inputs[] = { ivm_plan_project(ivm_plan_filter(scan_of("seen", NULL), call_of(">", "n", 3)), "part, n"),
                           ivm_plan_project(scan_of("seen", "again"), "part, n") };
    ivm_plan *groups = ivm_plan_having(totals(ivm_plan_set(IVM_UNION_ALL, inputs, 2), "part"), call_of(">", "c", 1));
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(groups, NULL), "parts");
    return ivm_plan_add(plan, "all", "sum", ivm_column("total"));
}

static const char *const names[] = { "joined", "by_name", "distinct", "top",        "left",      "children",  "signed",
                                     "over",   "late",    "seen_by",  "seen_above", "seen_rows", "seen_over", "seen_far" };

void parts_open(fixture *it)
{
    ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    fixture_open(it);
    parts_declare(it);
    fixture_make(it, "joined", ivm_plan_project(ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id"), "f.id, d.name"));
    fixture_make(it, "by_name", totals(ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id"), "d.name"));
    fixture_make(it, "distinct", ivm_plan_distinct(ivm_plan_project(scan_of("f", NULL), "n")));
    fixture_make(it, "top", ivm_plan_order_by(ivm_plan_top_k(scan_of("f", NULL), 3, 1), ivm_column("n"), true, false));
    fixture_make(
        it, "left",
        ivm_plan_project(ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("f", NULL), scan_of("plain", NULL), "f.n = plain.n"), "f.id, plain.s"));
    fixture_make(it, "children",
                 ivm_plan_project(ivm_plan_join(scan_of("c", NULL), scan_of("p", NULL), "c.part = p.part, c.p = p.id"), "c.p, c.n, p.s"));
    fixture_make(it, "signed", totals(scan_of("bag", NULL), "n"));
    fixture_make(it, "over",
                 ivm_plan_project(ivm_plan_join(scan_of("by_name", "a"), scan_of("by_name", "b"), "a.c = b.c"), "a.name, b.total"));
    fixture_make_with(it, "late", totals(scan_of("bag", NULL), "part"), &late);
    fixture_make(it, "seen_by", seen_totals());
    fixture_make(it, "seen_above", seen_above());
    fixture_make(it, "seen_far", seen_far());
    fixture_make(it, "seen_rows", ivm_plan_project(seen_with_d(), "n, d.name, seen.part"));
    fixture_make(it, "seen_over", ivm_plan_project(ivm_plan_filter(scan_of("seen_by", NULL), call_of(">", "c", 1)), "name, total"));
}

void parts_refresh(fixture *it)
{
    case_refresh(it, "late");
}

char *parts_contents(fixture *it)
{
    char *text = calloc(1, 1 << 20);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ivm_view *view = fixture_view_find(it, names[i]);
        sprintf(text + strlen(text), "%s: %s\n", names[i], fixture_view(it, view));
    }
    return text;
}

/* ---- Random rows ------------------------------------------------------------------------------------------------------------------------------ */

uint32_t world_draw(world *it, uint32_t below)
{
    return (uint32_t)random_below(&it->state, below);
}

/* Parents of ids from 10 on come one by one, and may be waited for until then. */
static void parent_write(world *it, change *one)
{
    bool far = world_draw(it, 2);
    uint32_t id = 10 + (far ? it->e_count++ : it->d_count++);
    *one = (change){ .table = far ? "e" : "d", .partition = UINT32_MAX, .what = IVM_INSERT };
    snprintf(one->rows, sizeof one->rows, far ? "%u,e%u" : "%u,d%u,%u", id, id % 3, 8 + world_draw(it, 8));
}

static void row_write(world *it, change *one)
{
    uint32_t p = world_draw(it, PARTS), d = world_draw(it, 18), n = world_draw(it, 8), id = ++it->next_id;
    one->what = IVM_INSERT;
    one->partition = p;
    switch (world_draw(it, 8)) {
    case 0:
    case 1:
        one->table = "f";
        snprintf(one->rows, sizeof one->rows, "%u,%u,%u,%u,%u.25", id, p, d, n, n);
        return;
    case 2:
        one->table = "p";
        snprintf(one->rows, sizeof one->rows, "%u,%u,s%u", p, id, n);
        return;
    case 3:
        one->table = "bag";
        one->what = world_draw(it, 2) ? IVM_INSERT : IVM_DELETE;
        snprintf(one->rows, sizeof one->rows, "%u,%u %u,%u", n, p, n / 2, p);
        return;
    case 4:
        one->table = "plain";
        one->partition = UINT32_MAX;
        snprintf(one->rows, sizeof one->rows, "t%u,%u", n, n);
        return;
    default:
        one->table = "seen";
        snprintf(one->rows, sizeof one->rows, "%u,%u,%u,%u.5e%u,u%u", p, d, n, n, n * 30, n);
        return;
    }
}

/* A child of a row of p that is there. */
static bool child_write(world *it, change *one)
{
    uint32_t at = world_draw(it, it->live_count), part, id;
    const change *parent = &it->live[at];
    if (strcmp(parent->table, "p") != 0 || sscanf(parent->rows, "%u,%u", &part, &id) != 2) {
        return false;
    }
    *one = (change){ .table = "c", .partition = part, .what = IVM_INSERT };
    snprintf(one->rows, sizeof one->rows, "%u,%u,%u", part, id, world_draw(it, 5));
    it->live[at] = it->live[--it->live_count]; /* it stays */
    return true;
}

change world_next(world *it)
{
    change one = { 0 };
    if (world_draw(it, 10) == 0) {
        parent_write(it, &one);
        return one;
    }
    if (it->live_count && world_draw(it, 6) == 0 && child_write(it, &one)) {
        return one;
    }
    if (it->live_count && world_draw(it, 4) == 0) {
        uint32_t at = world_draw(it, it->live_count);
        one = it->live[at];
        it->live[at] = it->live[--it->live_count];
        one.what = IVM_DELETE;
        return one;
    }
    row_write(it, &one);
    if (strcmp(one.table, "bag") != 0 && it->live_count < sizeof it->live / sizeof *it->live) {
        it->live[it->live_count++] = one;
    }
    return one;
}

void change_push(fixture *it, const change *one)
{
    case_push(it, one->table, one->what, one->rows);
}
