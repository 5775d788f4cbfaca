/* Programs: the operators of one view, run in order. Inputs stand before their readers, so that when an operator's finish() runs all it
 * reads has been consumed. Cost: one indirect call an operator a step. */
#include "program.h"

ivm_status ivm__program_add(ivm__program *program, ivm__operator *operator)
{
    const ivm__operator_class *class = operator->class;
    assert(class->consume || class->finish);
    assert(!class->save == !class->load && (class->save || !class->bytes));
    (void)class;
    void **array = (void **)&program->operators;
    ivm_status status =
        ivm__grow(program->memory, array, &program->operators_capacity, (uint64_t)program->operators_count + 1, sizeof(ivm__operator *));
    if (status != IVM_OK) {
        operator->class->free(operator, program->memory);
        return status;
    }
    program->operators[program->operators_count++] = operator;
    return IVM_OK;
}

ivm_status ivm__program_run(ivm__program *program, ivm__step *step)
{
    for (uint32_t i = 0; i < program->operators_count; i++) {
        ivm__operator *operator= program->operators[i];
        if (operator->class->begin) {
            IVM_TRY(operator->class->begin(operator, step));
        }
    }
    for (uint32_t i = 0; i < program->operators_count; i++) {
        ivm__operator *operator= program->operators[i];
        if (operator->class->finish) {
            IVM_TRY(operator->class->finish(operator, step));
        }
    }
    return IVM_OK;
}

void ivm__program_commit(ivm__program *program)
{
    for (uint32_t i = 0; i < program->operators_count; i++) {
        ivm__operator *operator= program->operators[i];
        if (operator->class->commit) {
            operator->class->commit(operator);
        }
    }
}

void ivm__program_undo(ivm__program *program)
{
    for (uint32_t i = program->operators_count; i > 0; i--) {
        ivm__operator *operator= program->operators[i - 1];
        if (operator->class->undo) {
            operator->class->undo(operator);
        }
    }
}

void ivm__program_deinit(ivm__program *program)
{
    for (uint32_t i = program->operators_count; i > 0; i--) {
        ivm__operator *operator= program->operators[i - 1];
        operator->class->free(operator, program->memory);
    }
    ivm__release(program->memory, program->operators, program->operators_capacity * sizeof(ivm__operator *));
    *program = (ivm__program){ .memory = program->memory };
}
