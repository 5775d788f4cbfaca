/* What builders take, counted: the suite of tests of plans that belong to no engine. */
#ifndef TEST_PLAN_BUILDER_CASE_H
#define TEST_PLAN_BUILDER_CASE_H

#include "allocator.h"
#include "build.h"

#include <criterion/criterion.h>

static test_allocator builder_allocator;
static ivm_allocator builder_usual;

static inline void builder_count(void)
{
    test_allocator_init(&builder_allocator);
    builder_usual = ivm__builder_memory.allocator;
    ivm__builder_memory.allocator = test_allocator_functions(&builder_allocator);
}

static inline void builder_assert_nothing(void)
{
    ivm__builder_memory.allocator = builder_usual;
    cr_expect(test_allocator_is_clean(&builder_allocator), "%ld blocks left, %lu faults", (long)builder_allocator.blocks,
              (unsigned long)builder_allocator.faults);
    cr_expect_eq(ivm__builder_cause_exchange((ivm_error)IVM_ERROR_INIT).status, IVM_OK, "a cause is left");
}

#endif
