/* Explain as a DOT graph: leaves as boxes, facts as arrows from child to parent, terms as a list. `dot -Tsvg` draws it. */
#include "explain.h"

static void write_leaf(ivm__writer *writer, const ivm__told_join *join, uint32_t number, uint32_t leaf)
{
    const char *name;
    size_t size;
    ivm__leaf_name(join->graph, leaf, &name, &size);
    ivm__write(writer, "  j%u_l%u [label=", number, leaf);
    ivm__write_quoted(writer, name, size);
    ivm__write(writer, ", xlabel=\"%s\"%s];\n", ivm__leaf_shape(join, leaf),
               join->decision.skip >> leaf & 1    ? ", style=dashed"
               : join->decision.empty >> leaf & 1 ? ""
                                                  : ", style=bold");
}

static void write_edge(ivm__writer *writer, uint32_t number, const ivm__edge *edge)
{
    ivm__write(writer, "  j%u_l%u -> j%u_l%u;\n", number, edge->child, number, edge->parent);
}

static void write_terms(ivm__writer *writer, const ivm__told_join *join, uint32_t number)
{
    const ivm__mask_counts *counts = &join->decision.counts;
    ivm__write(writer, "  j%u_terms [shape=note, label=\"%llu masks, %llu pruned, %llu empty, %llu left\\l", number,
               (unsigned long long)counts->all, (unsigned long long)counts->pruned, (unsigned long long)counts->empty,
               (unsigned long long)counts->run);
    uint64_t next = 0;
    ivm__term term;
    for (uint32_t t = 0; t < IVM__EXPLAIN_MASKS_MAX && ivm__decision_term(&join->decision, join->graph->leaves_count, &next, &term); t++) {
        ivm__write(writer, "%c ", term.sign > 0 ? '+' : '-');
        ivm__write_mask(writer, term.mask, join->graph->leaves_count);
        ivm__write(writer, "\\l");
    }
    ivm__write(writer, "\"];\n");
}

void ivm__explain_dot(ivm__writer *writer, const ivm__told *told)
{
    ivm__write(writer, "digraph ");
    ivm__write_quoted(writer, told->view, strlen(told->view));
    ivm__write(writer, " {\n  node [shape=box];\n");
    for (uint32_t i = 0; i < told->joins_count; i++) {
        const ivm__told_join *join = &told->joins[i];
        for (uint32_t leaf = 0; leaf < join->graph->leaves_count; leaf++) {
            write_leaf(writer, join, i, leaf);
        }
        for (uint32_t e = 0; e < join->edges->count; e++) {
            if (!join->edges->edge[e].unused_told) {
                write_edge(writer, i, &join->edges->edge[e]);
            }
        }
        write_terms(writer, join, i);
    }
    ivm__write(writer, "}\n");
}
