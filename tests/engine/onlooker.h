/* Onlookers: views by hand, of tables, whose program holds nothing and does nothing but look at the step under way. */
#ifndef TEST_ONLOOKER_H
#define TEST_ONLOOKER_H

#include "pending.h"

/* Called in every step of the view; what it returns is what the step comes to. */
typedef ivm_status onlooker_look(void *context, ivm__step *step);

/* The engine owns the view. */
ivm_view *onlooker_make(ivm_engine *engine, const char *name, ivm_refresh refresh, ivm_table *const *tables, uint32_t tables_count,
                        onlooker_look *look, void *context);

#endif
