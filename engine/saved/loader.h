/* What the operators of a program just made are to hold, from the sections of a framed stream that saver_stream.h wrote. */
#ifndef IVM__LOADER_H
#define IVM__LOADER_H

#include "block.h"
#include "program.h"

/* The holdings of a program's operators, in their order. */
typedef struct ivm__program_loader {
    ivm__saver saver; /* what operators tell their holdings to */
    ivm__sink nowhere;
    const ivm__program *program;
    ivm__memory *memory;
    struct ivm__holding *holdings;
    uint32_t holdings_count, holdings_capacity;
    uint32_t place; /* in the program, of the operator whose holdings are listed */
} ivm__program_loader;

typedef enum ivm__holding_kind {
    IVM__HOLDING_AT_ONCE, /* rows with a payload, and bytes */
    IVM__HOLDING_LATER    /* rows alone */
} ivm__holding_kind;

/* Asks each operator what it would save: none holds anything yet. Fails for memory alone. Deinit it, whatever the outcome. */
ivm_status ivm__program_loader_init(ivm__program_loader *loader, ivm__memory *memory, const ivm__program *program) IVM_MUST_CHECK;
/* Loads the holdings of one kind, as a saver wrote those of this view. step->error is the reader's. On failure the program is to be freed. */
ivm_status ivm__program_loader_load(ivm__program_loader *loader, ivm__step *step, ivm__block_reader *reader, uint32_t view,
                                    ivm__holding_kind kind) IVM_MUST_CHECK;
void ivm__program_loader_deinit(ivm__program_loader *loader); /* a zeroed one is fine */

/* Once both kinds are loaded: lets every operator make what follows from its holdings, in the order in which they run. corrupt names the
 * section of the operator that could not. */
ivm_status ivm__program_settle(const ivm__program *program, ivm__step *step, uint32_t view) IVM_MUST_CHECK;

#endif
