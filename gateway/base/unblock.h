/* unblock.h - stderr that never blocks: whoever does not read it loses lines, and stops nobody.
 *
 * libh2o prints a line to stderr for frames that it does not know, on the worker's thread. */
#ifndef GATEWAY_BASE_UNBLOCK_H
#define GATEWAY_BASE_UNBLOCK_H

/* What is written to stderr from now on, by this process and its children, is dropped where it would
 * have to wait. Files are left as they are. */
void unblock_stderr(void);

#endif
