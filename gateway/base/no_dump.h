/* no_dump.h - keeps this process's memory, which has keys and prompts in it, to itself. */
#ifndef GATEWAY_BASE_NO_DUMP_H
#define GATEWAY_BASE_NO_DUMP_H

/* From now on no crash of this process or its children leaves a core file or is piped to a collector of
 * them, and nobody but root may trace them or read their memory. A change of the user or group undoes it:
 * to be called again after one (prctl(2), PR_SET_DUMPABLE). Where a sandbox forbids it, a line on stderr
 * says so. */
void no_dump(void);

#endif
