/* What an Arrow format says: how values lie in buffers, and which column they make. */
#ifndef IVM__ARROW_FORM_H
#define IVM__ARROW_FORM_H

#include "ivm/arrow.h"
#include "memory.h"

typedef enum ivm__arrow_layout {
    IVM__ARROW_NULLS,   /* no buffers */
    IVM__ARROW_BITS,    /* one bit a value */
    IVM__ARROW_WHOLE,   /* whole numbers of `width` bytes, two's complement where signed: integers, and decimals of a scale */
    IVM__ARROW_FLOATS,  /* of `width` bytes */
    IVM__ARROW_DAYS,    /* int32 */
    IVM__ARROW_TICKS,   /* int64, of dates and timestamps in another unit: times `multiplier` or divided by `divisor` */
    IVM__ARROW_STRINGS, /* offsets of `width` bytes into bytes */
    IVM__ARROW_VIEWS    /* 16 bytes a value, and any number of buffers */
} ivm__arrow_layout;

typedef struct ivm__arrow_form {
    ivm__arrow_layout layout;
    ivm_type type; /* the column that it makes; 0: any (NULLS) */
    uint32_t width;
    bool is_signed;
    uint32_t scale; /* of WHOLE */
    int64_t multiplier, divisor;
} ivm__arrow_form;

/* False: none that can be read. */
bool ivm__arrow_form_parse(const char *format, ivm__arrow_form *form);
/* Of a field: that of its values where it is a dictionary, whose indexes' form is *indexes (layout NULLS: no dictionary). Fails with unsupported, and
 * invalid_argument where the schema is not built as it must be; the message begins with `where`. */
ivm_status ivm__arrow_field_parse(const struct ArrowSchema *field, const char *where, ivm__arrow_form *form, ivm__arrow_form *indexes,
                                  ivm_error *error) IVM_MUST_CHECK;
/* Whether values of this form may be a column's of this type. */
bool ivm__arrow_form_fits(const ivm__arrow_form *form, ivm_type type);
/* Whether they lie as the column's do. */
bool ivm__arrow_form_serves(const ivm__arrow_form *form, ivm_type type);

/* A struct with children that are there: what record batches are. */
ivm_status ivm__arrow_schema_check(const struct ArrowSchema *schema, const char *where, ivm_error *error) IVM_MUST_CHECK;
static inline const char *ivm__arrow_name(const struct ArrowSchema *field)
{
    return field->name ? field->name : "";
}
/* Whether a field has the name of the weights. */
bool ivm__arrow_is_weight(const struct ArrowSchema *field, const ivm_arrow_options *options);

/* Longest format of a column, null byte included. */
#define IVM__ARROW_FORMAT_SIZE 16
void ivm__arrow_format_write(ivm_type type, bool strings_binary, char format[IVM__ARROW_FORMAT_SIZE]);

#endif
