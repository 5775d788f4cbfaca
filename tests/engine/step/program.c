/* tests engine/step/program.c */
#include "program.h"

#include <criterion/criterion.h>

#include "allocator.h"

static test_allocator counted;
static ivm__memory memory;
static char trace[200]; /* what ran: a letter for the hook, a digit for the operator */
static uint32_t failing = 99;

typedef struct probe {
    ivm__operator head;
    uint32_t number;
} probe;

static void note(ivm__operator *self, char hook)
{
    size_t size = strlen(trace);
    trace[size] = hook;
    trace[size + 1] = (char)('0' + ((probe *)self)->number);
}

static ivm_status consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    (void)step;
    cr_assert(port == 1 && chunk->rows_count == 1);
    note(self, 'c');
    return IVM_OK;
}

static ivm_status finish(ivm__operator *self, ivm__step *step)
{
    note(self, 'f');
    ivm__chunk chunk = { .rows_count = 1 };
    IVM_TRY(ivm__emit(self, step, &chunk));
    return ((probe *)self)->number == failing ? IVM_OVERFLOW : IVM_OK;
}

static void commit(ivm__operator *self)
{
    note(self, 'k');
}

static void undo(ivm__operator *self)
{
    note(self, 'u');
}

static void probe_free(ivm__operator *self, ivm__memory *from)
{
    note(self, 'x');
    ivm__release(from, self, sizeof(probe));
}

static const ivm__operator_class full = { .consume = consume, .finish = finish, .commit = commit, .undo = undo, .free = probe_free };
static const ivm__operator_class plain = { .consume = consume, .free = probe_free };

static ivm__operator *probe_make(const ivm__operator_class *class, uint32_t number)
{
    probe *made = ivm__allocate_zeroed(&memory, sizeof *made);
    cr_assert_not_null(made);
    made->head.class = class;
    made->number = number;
    return &made->head;
}

/* Operator 0 feeds 1, which has no hooks but consume; 2 feeds nothing. */
static void program_make(ivm__program *program)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    *program = (ivm__program){ .memory = &memory };
    ivm__operator *first = probe_make(&full, 0), *second = probe_make(&plain, 1);
    first->next = second;
    first->next_port = 1;
    cr_assert_eq(ivm__program_add(program, first), IVM_OK);
    cr_assert_eq(ivm__program_add(program, second), IVM_OK);
    cr_assert_eq(ivm__program_add(program, probe_make(&full, 2)), IVM_OK);
}

Test(engine_program, runs_in_order_and_undoes_backwards)
{
    ivm__program program;
    ivm__step step = { 0 };
    program_make(&program);
    cr_assert_eq(ivm__program_run(&program, &step), IVM_OK);
    cr_assert_str_eq(trace, "f0c1f2");
    ivm__program_commit(&program);
    cr_assert_str_eq(trace, "f0c1f2k0k2");
    memset(trace, 0, sizeof trace);
    failing = 0;
    cr_assert_eq(ivm__program_run(&program, &step), IVM_OVERFLOW);
    ivm__program_undo(&program);
    cr_assert_str_eq(trace, "f0c1u2u0");
    memset(trace, 0, sizeof trace);
    ivm__program_deinit(&program);
    cr_assert_str_eq(trace, "x2x1x0");
    cr_assert(test_allocator_is_clean(&counted));
}

Test(engine_program, add_takes_the_operator_when_it_fails)
{
    ivm__program program;
    program_make(&program);
    for (uint32_t i = 3; i < 8; i++) {
        cr_assert_eq(ivm__program_add(&program, probe_make(&plain, i)), IVM_OK);
    }
    ivm__operator *ninth = probe_make(&plain, 8);
    test_allocator_arm(&counted, 1);
    cr_assert_eq(ivm__program_add(&program, ninth), IVM_OUT_OF_MEMORY);
    cr_assert(test_allocator_disarm(&counted));
    cr_assert_str_eq(trace, "x8");
    cr_assert_eq(program.operators_count, 8);
    ivm__program_deinit(&program);
    cr_assert(test_allocator_is_clean(&counted));
}
