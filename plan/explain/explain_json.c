/* Explain as JSON; the members are documented at ivm_explain(). */
#include "explain.h"

#include <stdlib.h>

/* One past int64 is a string of digits. */
static void write_count(ivm__writer *writer, const char *name, uint64_t count)
{
    const char *quote = count > INT64_MAX ? "\"" : "";
    ivm__write(writer, ", \"%s\": %s%llu%s", name, quote, (unsigned long long)count, quote);
}

static void write_quoted_mask(ivm__writer *writer, uint64_t mask, uint32_t leaves_count)
{
    ivm__write(writer, "\"");
    ivm__write_mask(writer, mask, leaves_count);
    ivm__write(writer, "\"");
}

static void write_leaf(ivm__writer *writer, const ivm__told_join *join, uint32_t leaf)
{
    const ivm__graph_leaf *at = &join->graph->leaves[leaf];
    const char *name;
    size_t size;
    ivm__leaf_name(join->graph, leaf, &name, &size);
    ivm__write(writer, "{\"leaf\": %u, \"name\": ", leaf);
    ivm__write_quoted(writer, name, size);
    if (at->table) {
        ivm__write(writer, ", \"table\": ");
        ivm__write_quoted(writer, at->table->name, strlen(at->table->name));
    }
    ivm__write(writer, ", \"columns\": [");
    for (uint32_t i = 0; i < at->columns_count; i++) {
        ivm__write(writer, i ? ", " : "");
        ivm__write_quoted(writer, at->node->columns[i].name, strlen(at->node->columns[i].name));
    }
    const ivm__leaf_delta *delta = &join->decision.leaves[leaf];
    ivm__write(writer, "], \"delta\": \"%s\"", ivm__leaf_shape(join, leaf));
    write_count(writer, "fresh", delta->fresh);
    write_count(writer, "awaited", delta->awaited);
    write_count(writer, "gone", delta->gone);
    write_count(writer, "kept", delta->kept);
    write_count(writer, "changed", delta->changed);
    write_count(writer, "delta_rows", delta->rows_count);
    ivm__write(writer, ", \"skipped\": %s}", join->decision.skip >> leaf & 1 ? "true" : "false");
}

static void write_pair(ivm__writer *writer, const ivm__graph *graph, uint32_t a, uint32_t b)
{
    const char *first = ivm__join_column_name(graph, a), *second = ivm__join_column_name(graph, b);
    ivm__write(writer, "[");
    ivm__write_quoted(writer, first, strlen(first));
    ivm__write(writer, ", ");
    ivm__write_quoted(writer, second, strlen(second));
    ivm__write(writer, "]");
}

static void write_facts(ivm__writer *writer, const ivm__told_join *join)
{
    ivm__write(writer, "], \"facts\": [");
    uint32_t written = 0;
    for (uint32_t e = 0; e < join->edges->count; e++) {
        const ivm__edge *edge = &join->edges->edge[e];
        if (edge->unused_told) {
            continue;
        }
        ivm__write(writer, "%s{\"child\": %u, \"parent\": %u, \"trust\": \"%s\", \"on\": [", written++ ? ", " : "", edge->child,
                   edge->parent, ivm__trust_word(edge->trust));
        for (uint32_t i = 0; i < edge->pairs_count; i++) {
            const ivm__equality *pair = &join->edges->pairs[edge->pairs_first + i];
            ivm__write(writer, i ? ", " : "");
            write_pair(writer, join->graph, pair->a, pair->b);
        }
        ivm__write(writer, "]}");
    }
    ivm__write(writer, "]");
}

static void write_columns(ivm__writer *writer, const char *name, const ivm_table *table, const uint32_t *columns, uint32_t count)
{
    ivm__write(writer, ", \"%s\": [", name);
    for (uint32_t i = 0; i < count; i++) {
        const char *column = table->columns[columns[i]].name;
        ivm__write(writer, i ? ", " : "");
        ivm__write_quoted(writer, column, strlen(column));
    }
    ivm__write(writer, "]");
}

static void write_unused_one(ivm__writer *writer, const ivm__told_join *join, const ivm__told_unused *told)
{
    const ivm_fact *fact = told->fact;
    ivm__write(writer, "{\"child\": %u, \"parent\": %u, \"trust\": \"%s\", \"child_table\": ", told->child, told->parent,
               ivm__trust_word(fact->trust));
    ivm__write_quoted(writer, fact->child->name, strlen(fact->child->name));
    write_columns(writer, "columns", fact->child, fact->child_columns, fact->columns_count);
    ivm__write(writer, ", \"parent_table\": ");
    ivm__write_quoted(writer, fact->parent->name, strlen(fact->parent->name));
    write_columns(writer, "parent_columns", fact->parent, fact->parent_columns, fact->columns_count);
    ivm__write(writer, ", \"reason\": \"%s\", \"why\": ", ivm__unused_word(told->why));
    ivm__writer why = { 0 };
    ivm__write_unused_why(&why, join, told);
    ivm__write_quoted(writer, why.text, why.size);
    writer->failed |= why.failed;
    free(why.text);
    ivm__write(writer, "}");
}

static void write_unused(ivm__writer *writer, const ivm__told_join *join)
{
    ivm__unused_walk walk = { 0 };
    ivm__told_unused told;
    ivm__write(writer, ", \"unused\": [");
    for (uint32_t i = 0; i < IVM__EXPLAIN_UNUSED_MAX && ivm__told_unused_next(join, &walk, &told); i++) {
        ivm__write(writer, i ? ", " : "");
        write_unused_one(writer, join, &told);
    }
    ivm__write(writer, "]");
}

static void write_masks(ivm__writer *writer, const ivm__told_join *join)
{
    uint32_t leaves_count = join->graph->leaves_count;
    uint64_t masks[IVM__EXPLAIN_MASKS_MAX];
    uint32_t count = ivm__masks_run(join, masks);
    ivm__write(writer, ", \"masks\": [");
    for (uint32_t i = 0; i < count; i++) {
        ivm__write(writer, i ? ", " : "");
        write_quoted_mask(writer, masks[i], leaves_count);
    }
    ivm__write(writer, "]");
    if (leaves_count > IVM__EXPLAIN_ALL_LEAVES_MAX) {
        return;
    }
    ivm__write(writer, ", \"all_masks\": [");
    for (uint64_t mask = 1; mask < 1ull << leaves_count; mask++) {
        ivm__write(writer, "%s{\"mask\": ", mask > 1 ? ", " : "");
        write_quoted_mask(writer, mask, leaves_count);
        ivm__write(writer, ", \"state\": \"%s\"}", ivm__mask_state(join, mask, "run"));
    }
    ivm__write(writer, "]");
}

static void write_probes(ivm__writer *writer, const ivm__graph *graph, uint32_t driver)
{
    const ivm__probe_order *order = &graph->orders[driver];
    ivm__write(writer, "], \"probes\": [");
    for (uint32_t i = 0; i < order->probes_count; i++) {
        const ivm__probe_spec *probe = &order->probes[i];
        ivm__write(writer, "%s{\"leaf\": %u, \"on\": [", i ? ", " : "", probe->leaf);
        for (uint32_t k = 0; k < probe->keys_count; k++) {
            ivm__write(writer, k ? ", " : "");
            write_pair(writer, graph, probe->keys[k].from, graph->leaves[probe->leaf].columns_first + probe->keys[k].to);
        }
        ivm__write(writer, "]}");
    }
    ivm__write(writer, "]}");
}

static void write_terms(ivm__writer *writer, const ivm__told_join *join)
{
    static const char *const readings[] = { "delta", "cur", "old" };
    uint64_t next = 0;
    ivm__term term;
    ivm__write(writer, ", \"terms\": [");
    for (uint32_t t = 0; t < IVM__EXPLAIN_MASKS_MAX && ivm__decision_term(&join->decision, join->graph->leaves_count, &next, &term); t++) {
        ivm__write(writer, "%s{\"mask\": ", t ? ", " : "");
        write_quoted_mask(writer, term.mask, join->graph->leaves_count);
        ivm__write(writer, ", \"sign\": %d, \"driver\": %u, \"readings\": [", term.sign, term.driver);
        for (uint32_t i = 0; i < join->graph->leaves_count; i++) {
            ivm__write(writer, "%s\"%s\"", i ? ", " : "", readings[term.readings[i]]);
        }
        write_probes(writer, join->graph, term.driver);
    }
    ivm__write(writer, "]");
}

static void write_index(ivm__writer *writer, const ivm__graph *graph, const ivm__told_index *told)
{
    const ivm__join_index *index = &told->index;
    ivm__write(writer, "{\"leaf\": %u, \"columns\": [", index->leaf);
    for (uint32_t k = 0; k < index->columns_count; k++) {
        const char *name = graph->leaves[index->leaf].node->columns[index->columns[k]].name;
        ivm__write(writer, k ? ", " : "");
        ivm__write_quoted(writer, name, strlen(name));
    }
    ivm__write(writer, "], \"built\": %s", index->index ? "true" : "false");
    write_count(writer, "bytes", told->bytes);
    ivm__write(writer, ", \"drivers\": [");
    for (uint64_t left = told->drivers; left; left &= left - 1) {
        ivm__write(writer, "%s%d", left == told->drivers ? "" : ", ", __builtin_ctzll(left));
    }
    ivm__write(writer, "]}");
}

static void write_indexes(ivm__writer *writer, const ivm__told_join *join)
{
    ivm__told_index told;
    const char *comma = "";
    ivm__write(writer, ", \"indexes\": [");
    for (uint32_t next = 0; ivm__told_index_next(join, &next, &told); comma = ", ") {
        ivm__write(writer, "%s", comma);
        write_index(writer, join->graph, &told);
    }
    ivm__write(writer, "]");
}

static void write_join(ivm__writer *writer, const ivm__told_join *join)
{
    const ivm__decision *decision = &join->decision;
    ivm__write(writer, "{\"inputs\": %u, \"leaves\": [", join->graph->leaves_count);
    for (uint32_t i = 0; i < join->graph->leaves_count; i++) {
        ivm__write(writer, i ? ", " : "");
        write_leaf(writer, join, i);
    }
    write_facts(writer, join);
    write_unused(writer, join);
    ivm__write(writer, ", \"skip_mask\": ");
    write_quoted_mask(writer, decision->skip, join->graph->leaves_count);
    write_count(writer, "all", decision->counts.all);
    write_count(writer, "pruned", decision->counts.pruned);
    write_count(writer, "empty", decision->counts.empty);
    write_count(writer, "run", decision->counts.run);
    write_masks(writer, join);
    ivm__write(writer, ", \"fk_pruning\": \"%s\", \"join_rule\": \"%s\", \"estimated_probes\": {\"mobius\": %.17g, \"telescoping\": %.17g}",
               ivm__pruning_word(decision->options.fk_pruning), decision->telescoping ? "telescoping" : "mobius", decision->estimate_mobius,
               decision->estimate_telescoping);
    write_count(writer, "rows_probed", decision->rows_probed);
    write_count(writer, "rows_matched", decision->rows_matched);
    write_terms(writer, join);
    write_indexes(writer, join);
    ivm__write(writer, "}");
}

void ivm__explain_json(ivm__writer *writer, const ivm__told *told)
{
    ivm__write(writer, "{\"view\": ");
    ivm__write_quoted(writer, told->view, strlen(told->view));
    ivm__write(writer, ", \"stated\": %s, \"pushed\": %s, \"joins\": [", told->stated ? "true" : "false", told->pushed ? "true" : "false");
    for (uint32_t i = 0; i < told->joins_count; i++) {
        ivm__write(writer, i ? ", " : "");
        write_join(writer, &told->joins[i]);
    }
    ivm__write(writer, "]}");
}
