/* Recovery: the newest checkpoint, then the records of the segments after it, one by one, as far as they are whole and right.
 *
 * Where something is not right, it is damage (corrupt) if it can be told that it was on the disk, else a torn tail that is cut. It was on the disk
 *     if a later segment is there: a segment is ended only once all of it is on the disk; or
 *     if further on in the file a fragment of this segment says that its record was: `synced` in its head is past the record's number.
 * A log that was closed has a mark at its end that says so of all its records. Of one that was not, damage to the records that shared the last sync
 * cannot be told from a torn tail. Of none can it be told that the end of the last segment, or all of it, was taken away. A hole in what was not
 * synced, with right fragments behind it, is a torn tail. What stands in a segment behind the record before the next one's first is none of the log. */
#ifndef IVM__LOG_READ_H
#define IVM__LOG_READ_H

#include "log_inside.h"

/* Opens the newest checkpoint of reader.list and finds where the segments after it begin. */
ivm_status ivm__log_reader_open(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
void ivm__log_reader_close(ivm__log *log);

#endif
