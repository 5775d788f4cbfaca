/* JSON, inside: expressions (json_expr.c) as plans (json.c) read them. Only where the library is built with JSON. */
#ifndef IVM__JSON_H
#define IVM__JSON_H

#include <jansson.h>

#include "build.h"

/* A string as a name; NULL for anything else, NULL itself and a string with a null byte in it too. */
const char *ivm__json_name(const json_t *json);
/* NULL: the cause is set. */
ivm_expr *ivm__json_expr(const json_t *json);

#endif
