/* `ivm bench tpch`: tpch_data.c makes rows, tpch_engine.c holds tables and views and pushes, tpch_plans.c has the queries, tpch_check.c computes two of
 * them by a loop of its own, tpch.c measures.
 *
 * Rows follow the distributions of the TPC-H specification (4.2.3) for the columns that the queries read, from a generator of our own: they are not dbgen's,
 * and no figure here is a TPC-H result. Money and quantities are in hundredths, dates days since 1970. */
#ifndef IVM_BENCH_TPCH_H
#define IVM_BENCH_TPCH_H

#include "ivm/ivm.h"

#include <stddef.h>
#include <stdint.h>

#define TPCH_NATIONS 25
#define TPCH_REGIONS 5

typedef struct tpch_customer {
    int64_t balance;
    uint8_t nation, segment;
} tpch_customer;

typedef struct tpch_item { /* a part */
    uint8_t brand, container, size;
} tpch_item;

typedef struct tpch_line {
    int64_t price; /* l_extendedprice */
    int32_t part, supplier, ship, commit, receipt;
    uint8_t number, quantity, discount, tax, flag, instruct, mode; /* quantity in units */
} tpch_line;

typedef struct tpch_order {
    int64_t key;
    int32_t customer, date;
    uint32_t line_first;
    uint8_t lines_count, priority;
} tpch_order;

/* Keys of customers, parts and suppliers are their positions + 1. The first `loaded` orders are the population; behind them stand those that the
 * first refresh function brings, `refresh_orders` a set. The second takes as many away from the front. */
typedef struct tpch_data {
    uint32_t customers_count, items_count, suppliers_count, loaded, refresh_orders, refresh_sets, orders_count, lines_count;
    tpch_customer *customers;
    tpch_item *items;
    uint8_t *supplier_nations;
    tpch_order *orders;
    tpch_line *lines;
} tpch_data;

void tpch_data_make(tpch_data *data, double scale, uint32_t refresh_sets);
void tpch_data_free(tpch_data *data);

extern const char *const tpch_nations[TPCH_NATIONS],
    *const tpch_regions[TPCH_REGIONS], *const tpch_segments[], *const tpch_priorities[], *const tpch_instructs[], *const tpch_modes[];
extern const uint8_t tpch_nation_regions[TPCH_NATIONS];
/* Text of at most 16 bytes with the null byte. */
void tpch_brand(char *text, uint8_t brand);
void tpch_container(char *text, uint8_t container);
static inline const char *tpch_flag(const tpch_line *line)
{
    return line->flag == 'R' ? "R" : line->flag == 'A' ? "A" : "N";
}
/* 1995-06-17, "now" in the specification; a line shipped later is open. */
#define TPCH_NOW 9298
static inline const char *tpch_status(const tpch_line *line)
{
    return line->ship > TPCH_NOW ? "O" : "F";
}

/* ---- Queries --------------------------------------------------------------------------------------------------------------------- */

typedef struct tpch_query {
    const char *name, *plan; /* as JSON */
} tpch_query;
#define TPCH_QUERIES 7
extern const tpch_query tpch_queries[TPCH_QUERIES];

/* ---- The engine ------------------------------------------------------------------------------------------------------------------ */

enum { TPCH_REGION, TPCH_NATION, TPCH_SUPPLIER, TPCH_CUSTOMER, TPCH_PART, TPCH_ORDERS, TPCH_LINEITEM, TPCH_TABLES };

typedef struct tpch_engine {
    ivm_engine *engine;
    ivm_table *tables[TPCH_TABLES];
    ivm_view *views[TPCH_QUERIES]; /* NULL where it was not asked for */
} tpch_engine;

/* Ends the process with one line where the status is not OK, as what is below does. */
void tpch_must(ivm_status status, const ivm_error *error);
/* All queries, or, from 0 on, one. */
void tpch_open(tpch_engine *engine, const ivm_planner_options *planner, int query);
void tpch_close(tpch_engine *engine);
/* Everything but orders and lines. */
void tpch_push_others(tpch_engine *engine, const tpch_data *data);
/* The orders [first, end) and their lines in one batch: they come, or they go. Nanoseconds of the push; adds to *rows. */
uint64_t tpch_push_orders(tpch_engine *engine, const tpch_data *data, ivm_change change, uint32_t first, uint32_t end, uint64_t *rows);

/* Views that are not what ivm_audit_view() computes, and q1 and q6 where they are not what a loop over the orders [first, end) gives. */
uint64_t tpch_unequal(tpch_engine *engine, const tpch_data *data, uint32_t first, uint32_t end);

#endif
