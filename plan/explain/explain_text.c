/* Explain as text, for a person at a terminal. */
#include "explain.h"

/* So many of the rows before it, for this reason. */
static void write_held(ivm__writer *writer, uint64_t count, const char *why)
{
    if (count) {
        ivm__write(writer, " (%llu %s)", (unsigned long long)count, why);
    }
}

static void write_fates(ivm__writer *writer, const ivm__leaf_delta *delta)
{
    ivm__write(writer, ", %llu fresh", (unsigned long long)delta->fresh);
    write_held(writer, delta->awaited, "awaited");
    ivm__write(writer, ", %llu gone", (unsigned long long)delta->gone);
    write_held(writer, delta->kept, "still referred to");
    ivm__write(writer, ", %llu changed", (unsigned long long)delta->changed);
}

/* Nobody has stated how many rows there would be. */
static void write_leaf(ivm__writer *writer, const ivm__told_join *join, uint32_t leaf, bool stated)
{
    const ivm__graph_leaf *at = &join->graph->leaves[leaf];
    const char *name;
    size_t size;
    ivm__leaf_name(join->graph, leaf, &name, &size);
    ivm__write(writer, "  leaf %u  %.*s", leaf, (int)size, name);
    if (at->table) {
        ivm__write(writer, " (table %s)", at->table->name);
    }
    ivm__write(writer, ": %s", ivm__leaf_shape(join, leaf));
    const ivm__leaf_delta *delta = &join->decision.leaves[leaf];
    if (delta->fresh + delta->gone + delta->changed) {
        write_fates(writer, delta);
    }
    if (delta->rows_count && !stated) {
        ivm__write(writer, ", %llu delta row%s", (unsigned long long)delta->rows_count, delta->rows_count == 1 ? "" : "s");
    }
    ivm__write(writer, "%s\n", join->decision.skip >> leaf & 1 ? ", skipped" : "");
}

static void write_fact(ivm__writer *writer, const ivm__told_join *join, const ivm__edge *edge)
{
    ivm__write(writer, "  fact    leaf %u -> leaf %u, %s:", edge->child, edge->parent, ivm__trust_word(edge->trust));
    for (uint32_t i = 0; i < edge->pairs_count; i++) {
        const ivm__equality *pair = &join->edges->pairs[edge->pairs_first + i];
        ivm__write(writer, "%s %s = %s", i ? "," : "", ivm__join_column_name(join->graph, pair->a),
                   ivm__join_column_name(join->graph, pair->b));
    }
    ivm__write(writer, "\n");
}

static void write_columns(ivm__writer *writer, const ivm_table *table, const uint32_t *columns, uint32_t count)
{
    ivm__write(writer, "%s(", table->name);
    for (uint32_t i = 0; i < count; i++) {
        ivm__write(writer, "%s%s", i ? ", " : "", table->columns[columns[i]].name);
    }
    ivm__write(writer, ")");
}

static void write_unused(ivm__writer *writer, const ivm__told_join *join)
{
    ivm__unused_walk walk = { 0 };
    ivm__told_unused told;
    uint64_t count = 0;
    for (; ivm__told_unused_next(join, &walk, &told); count++) {
        if (count >= IVM__EXPLAIN_UNUSED_MAX) {
            continue;
        }
        ivm__write(writer, "  unused  leaf %u -> leaf %u, %s: ", told.child, told.parent, ivm__trust_word(told.fact->trust));
        write_columns(writer, told.fact->child, told.fact->child_columns, told.fact->columns_count);
        ivm__write(writer, " -> ");
        write_columns(writer, told.fact->parent, told.fact->parent_columns, told.fact->columns_count);
        ivm__write(writer, ": ");
        ivm__write_unused_why(writer, join, &told);
        ivm__write(writer, "\n");
    }
    if (count > IVM__EXPLAIN_UNUSED_MAX) {
        ivm__write(writer, "    and %llu more\n", (unsigned long long)(count - IVM__EXPLAIN_UNUSED_MAX));
    }
}

static void write_masks(ivm__writer *writer, const ivm__told_join *join)
{
    uint32_t leaves_count = join->graph->leaves_count;
    const ivm__mask_counts *counts = &join->decision.counts;
    ivm__write(writer, "  masks (Moebius count) %llu in all, %llu pruned, %llu empty, %llu left; skip mask ",
               (unsigned long long)counts->all, (unsigned long long)counts->pruned, (unsigned long long)counts->empty,
               (unsigned long long)counts->run);
    ivm__write_mask(writer, join->decision.skip, leaves_count);
    ivm__write(writer, "\n");
    if (leaves_count <= IVM__EXPLAIN_ALL_LEAVES_MAX) {
        for (uint64_t mask = 1; mask < 1ull << leaves_count; mask++) {
            ivm__write(writer, "    ");
            ivm__write_mask(writer, mask, leaves_count);
            ivm__write(writer, " %s\n", ivm__mask_state(join, mask, "left"));
        }
        return;
    }
    uint64_t masks[IVM__EXPLAIN_MASKS_MAX];
    uint32_t count = ivm__masks_run(join, masks);
    for (uint32_t i = 0; i < count; i++) {
        ivm__write(writer, "    ");
        ivm__write_mask(writer, masks[i], leaves_count);
        ivm__write(writer, " left\n");
    }
    if (counts->run > count) {
        ivm__write(writer, "    and %llu more\n", (unsigned long long)(counts->run - count));
    }
}

static void write_term(ivm__writer *writer, const ivm__graph *graph, const ivm__term *term)
{
    static const char *const readings[] = { "delta", "cur", "old" };
    const ivm__probe_order *order = &graph->orders[term->driver];
    const char *name;
    size_t size;
    ivm__leaf_name(graph, term->driver, &name, &size);
    ivm__write(writer, "  term    %c delta(%.*s)", term->sign > 0 ? '+' : '-', (int)size, name);
    for (uint32_t i = 0; i < order->probes_count; i++) {
        const ivm__probe_spec *probe = &order->probes[i];
        ivm__leaf_name(graph, probe->leaf, &name, &size);
        ivm__write(writer, " x %s(%.*s", readings[term->readings[probe->leaf]], (int)size, name);
        for (uint32_t k = 0; k < probe->keys_count; k++) {
            ivm__write(writer, "%s %s = %s", k ? "," : ":", ivm__join_column_name(graph, probe->keys[k].from),
                       ivm__join_column_name(graph, graph->leaves[probe->leaf].columns_first + probe->keys[k].to));
        }
        ivm__write(writer, "%s)", probe->keys_count ? "" : ": every row");
    }
    ivm__write(writer, "\n");
}

static void write_index(ivm__writer *writer, const ivm__graph *graph, const ivm__told_index *told)
{
    const ivm__join_index *index = &told->index;
    const char *name;
    size_t size;
    ivm__leaf_name(graph, index->leaf, &name, &size);
    ivm__write(writer, "  index   leaf %u  %.*s:", index->leaf, (int)size, name);
    for (uint32_t k = 0; k < index->columns_count; k++) {
        ivm__write(writer, "%s %s", k ? "," : "", graph->leaves[index->leaf].node->columns[index->columns[k]].name);
    }
    if (index->index) {
        ivm__write(writer, "; %llu bytes", (unsigned long long)told->bytes);
    } else {
        ivm__write(writer, "; built when first read");
    }
    ivm__write(writer, "; for lea%s", told->drivers & (told->drivers - 1) ? "ves" : "f");
    for (uint64_t left = told->drivers; left; left &= left - 1) {
        ivm__write(writer, "%s %d", left == told->drivers ? "" : ",", __builtin_ctzll(left));
    }
    ivm__write(writer, "\n");
}

static void write_rule(ivm__writer *writer, const ivm__decision *decision)
{
    uint64_t terms = decision->telescoping ? decision->order_count : decision->counts.run;
    ivm__write(writer, "  rule    %s, %llu term%s (estimated probes: mobius %.0f, telescoping %.0f)\n",
               decision->telescoping ? "telescoping" : "mobius", (unsigned long long)terms, terms == 1 ? "" : "s",
               decision->estimate_mobius, decision->estimate_telescoping);
}

/* What the step's terms came to. */
static void write_probes(ivm__writer *writer, const ivm__decision *decision)
{
    ivm__write(writer, "  probes  %llu row%s probed for, %llu matched\n", (unsigned long long)decision->rows_probed,
               decision->rows_probed == 1 ? "" : "s", (unsigned long long)decision->rows_matched);
}

static void write_join(ivm__writer *writer, const ivm__told_join *join, bool stated)
{
    for (uint32_t i = 0; i < join->graph->leaves_count; i++) {
        write_leaf(writer, join, i, stated);
    }
    ivm__write(writer, "  pruning %s\n", ivm__pruning_word(join->decision.options.fk_pruning));
    for (uint32_t e = 0; e < join->edges->count; e++) {
        const ivm__edge *edge = &join->edges->edge[e];
        if (!edge->unused_told && !(join->entries >> edge->parent & 1)) {
            write_fact(writer, join, edge);
        }
    }
    write_unused(writer, join);
    write_masks(writer, join);
    write_rule(writer, &join->decision);
    if (join->made && !stated) {
        write_probes(writer, &join->decision);
    }
    uint64_t next = 0;
    ivm__term term;
    for (uint32_t t = 0; t < IVM__EXPLAIN_MASKS_MAX && ivm__decision_term(&join->decision, join->graph->leaves_count, &next, &term); t++) {
        write_term(writer, join->graph, &term);
    }
    ivm__told_index told;
    for (uint32_t at = 0; ivm__told_index_next(join, &at, &told);) {
        write_index(writer, join->graph, &told);
    }
}

static bool tells_tracked(const ivm__told *told)
{
    for (uint32_t i = 0; i < told->joins_count; i++) {
        const ivm__edges *edges = told->joins[i].edges;
        for (uint32_t e = 0; e < edges->count; e++) {
            if (!edges->edge[e].unused_told && edges->edge[e].trust == IVM_TRACKED) {
                return true;
            }
        }
    }
    return false;
}

static void write_legend(ivm__writer *writer)
{
    ivm__write(writer, "delta = a leaf's change, the first of a term drives it; old = the leaf before the step, cur = after it, both with\n"
                       "the rows set aside; sign - = what other terms counted twice is taken off (Moebius)\n");
}

void ivm__explain_text(ivm__writer *writer, const ivm__told *told)
{
    const char *of = told->stated ? "from stated facts" : told->pushed ? "last push" : "before its first push: nothing has changed";
    ivm__write(writer, "view %s, %s\n", told->view, of);
    if (!told->joins_count) {
        ivm__write(writer, "  no inner join: each operator makes its delta from that of its input or inputs\n");
    }
    if (told->stated && tells_tracked(told)) {
        ivm__write(writer, "  tracked facts are planned as if no child waited for a parent or still referred to one that went\n");
    }
    for (uint32_t i = 0; i < told->joins_count; i++) {
        ivm__write(writer, "join %u of %u leaves\n", i, told->joins[i].graph->leaves_count);
        write_join(writer, &told->joins[i], told->stated);
    }
    if (told->joins_count) {
        write_legend(writer);
    }
}
