/* A dashboard: one thread pushes, another reads snapshots as often as it likes. Neither waits for the other, and each snapshot is what the view held
 * after some push, whole: here every push sells as much in the north as in the south, so that no snapshot may show a difference. Two tiles, sales by region and by
 * shop, are read at once, as of one push, and come to the same sum, which is that of the push whose number came with it as its position. A third view is of the
 * best three shops, over the view of all shops.
 *
 * It prints:
 *
 *     no snapshot showed half a push, no two showed different ones
 *     shop 9 with 18000
 *     shop 8 with 16000
 *     shop 7 with 14000
 *     shop 4 has sold 8000
 */
#include <ivm/ivm.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define PUSHES 1000
#define SHOPS 10
#define BEST 3

static ivm_engine *engine;
static ivm_table *sales;
static ivm_view *by_region, *by_shop, *best;
static atomic_bool done;

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        fprintf(stderr, "%s: %s\n", ivm_status_name(status), error->message);
        exit(1);
    }
}

static ivm_plan *sums_by(const char *column)
{
    return ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(sales, NULL), column), "sold", "sum", ivm_column("amount"));
}

static void views_make(void)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_column_definition columns[] = { { "region", IVM_STRING }, { "shop", IVM_INT64 }, { "amount", IVM_INT64 } };
    must(ivm_engine_open(NULL, &engine, &error), &error);
    must(ivm_table_create(engine, "sales", &(ivm_table_options){ .columns = columns, .columns_count = 3 }, &sales, &error), &error);
    must(ivm_view_create(engine, "by_region", sums_by("region"), NULL, &by_region, &error), &error);
    must(ivm_view_create(engine, "by_shop", sums_by("shop"), NULL, &by_shop, &error), &error);
    ivm_plan *first = ivm_plan_order_by(ivm_plan_top_k(ivm_plan_scan_view(by_shop, NULL), BEST, 0), ivm_column("sold"), true, false);
    must(ivm_view_create(engine, "best", first, NULL, &best, &error), &error);
}

/* ---- The thread that pushes -------------------------------------------------------------------------------------------------------- */

static void *push_all(void *context)
{
    (void)context;
    ivm_error error = IVM_ERROR_INIT;
    for (int n = 0; n < PUSHES; n++) {
        ivm_batch *batch;
        must(ivm_batch_create(engine, &batch, &error), &error);
        for (int64_t shop = 0; shop < SHOPS; shop++) {
            ivm_batch_insert(batch, sales, ivm_string("north"), ivm_int64(shop), ivm_int64(shop));
            ivm_batch_insert(batch, sales, ivm_string("south"), ivm_int64(shop), ivm_int64(shop));
        }
        int number = n + 1;
        ivm_batch_position(batch, &number, sizeof number);
        must(ivm_push_batch(engine, batch, NULL, &error), &error);
    }
    atomic_store(&done, true);
    return NULL;
}

/* ---- The thread that reads --------------------------------------------------------------------------------------------------------- */

/* One number by its key: a look-up, not a scan. 0 where the key is not there yet. */
static int64_t sold(ivm_snapshot *snapshot, ivm_value key)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows found;
    ivm_status status = ivm_snapshot_find(snapshot, &key, 1, &found, &error);
    if (status == IVM_ROW_NOT_FOUND) {
        return 0;
    }
    must(status, &error);
    return ivm_rows_value(&found, IVM_INT64, 0, 1).as.int64;
}

static void tiles_compare(void)
{
    enum { BY_REGION, BY_SHOP, TILES };
    ivm_error error = IVM_ERROR_INIT;
    ivm_view *const views[TILES] = { by_region, by_shop };
    ivm_snapshot *now[TILES];
    int number = 0; /* of the push that both show; none yet: 0 */
    size_t size;
    must(ivm_read_views(views, TILES, now, &error), &error);
    must(ivm_snapshot_position(now[BY_SHOP], &number, sizeof number, &size, &error), &error);
    int64_t north = sold(now[BY_REGION], ivm_string("north")), south = sold(now[BY_REGION], ivm_string("south")), shops = 0;
    for (int64_t shop = 0; shop < SHOPS; shop++) {
        shops += sold(now[BY_SHOP], ivm_int64(shop));
    }
    ivm_snapshot_close(now[BY_REGION]);
    ivm_snapshot_close(now[BY_SHOP]);
    if (north != south || north + south != shops || shops != (int64_t)number * SHOPS * (SHOPS - 1)) {
        fprintf(stderr, "push %d: %" PRId64 " in the north, %" PRId64 " in the south, %" PRId64 " in all shops\n", number, north, south,
                shops);
        exit(1);
    }
}

typedef struct shop_line {
    int64_t shop, sold;
} shop_line;

static int more_first(const void *a, const void *b)
{
    const shop_line *x = a, *y = b;
    return (x->sold < y->sold) - (x->sold > y->sold);
}

/* The view knows which rows; in which order they are shown is the reader's matter. */
static void best_print(void)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_snapshot *now;
    shop_line lines[BEST] = { { 0, 0 } };
    size_t count = 0;
    must(ivm_read_view(best, &now, &error), &error);
    for (ivm_rows rows; ivm_snapshot_next(now, &rows);) {
        for (size_t i = 0; i < rows.rows_count && count < BEST; i++) {
            lines[count++] =
                (shop_line){ ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64, ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64 };
        }
    }
    ivm_snapshot_close(now);
    qsort(lines, count, sizeof *lines, more_first);
    for (size_t i = 0; i < count; i++) {
        printf("shop %" PRId64 " with %" PRId64 "\n", lines[i].shop, lines[i].sold);
    }
}

int main(void)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_snapshot *shops;
    pthread_t pusher;
    views_make();
    if (pthread_create(&pusher, NULL, push_all, NULL) != 0) {
        return 1;
    }
    while (!atomic_load(&done)) {
        tiles_compare();
    }
    pthread_join(pusher, NULL);
    printf("no snapshot showed half a push, no two showed different ones\n");
    best_print();
    must(ivm_read_view(by_shop, &shops, &error), &error);
    printf("shop 4 has sold %" PRId64 "\n", sold(shops, ivm_int64(4)));
    ivm_snapshot_close(shops);
    must(ivm_engine_close(engine, &error), &error);
    return 0;
}
