/* Programs of feeds and operators saved, loaded into fresh ones, and taken on: what tests of every such operator have in common. */
#ifndef TEST_RELOAD_H
#define TEST_RELOAD_H

#include "feed.h"
#include "holdings.h"

typedef struct reload {
    size_t size;                                                           /* of a case */
    void (*open)(void *at, uint64_t seed, const ivm_allocator *allocator); /* the same one for the same seed */
    void (*close)(void *at);
    hand *(*hand_of)(void *at);
    void (*draw)(void *at, uint64_t *random); /* rows to the feeds */
    ivm_status (*step)(void *at, bool initial, bool keep);
    bool (*holds)(void *at);                     /* what its model says, and it is sound */
    hand_bag *(*rows)(void *at, uint32_t input); /* what the model says that the n-th feed has sent */
    const ivm__store *(*result)(void *at);
} reload;

/* Random steps; then saved, loaded, and both take the same steps: equal content and equal bytes. The same rows by other steps: equal bytes. */
void reload_go_on(const reload *of, uint64_t seed);
/* Bytes that are spoilt are corrupt, or load into something that further steps do not break and that is saved as what it was loaded from. Returns how
 * many loaded. */
uint32_t reload_spoilt(const reload *of, uint64_t seed, uint32_t rounds);
/* Each allocation of loading fails once. */
void reload_out_of_memory(const reload *of, uint64_t seed);

#endif
