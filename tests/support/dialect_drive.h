/* dialect_drive.h - one arbitrary input through a dialect, with every check that holds for all
 * inputs. For the fuzz targets; a broken promise ends the process by must(). */
#ifndef TESTS_SUPPORT_DIALECT_DRIVE_H
#define TESTS_SUPPORT_DIALECT_DRIVE_H

#include "codec/dialect/dialect.h"

enum { DRIVE_HEADER = 3 };

/* The first DRIVE_HEADER bytes choose: [0] bit 0 answer or request, the rest the model's profile or
 * the answer's context; [1] status, retry headers or revision; [2] which take of memory fails, '0'
 * none. What follows is the answer's body, or the JSON-RPC body of a sampling request. */
void dialect_drive(enum dialect_id id, const uint8_t *data, size_t size);

#endif
