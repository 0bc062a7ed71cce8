/* wrap_options.h - the command line of `sluice wrap`, and what of the environment goes no further. */
#ifndef GATEWAY_WRAP_WRAP_OPTIONS_H
#define GATEWAY_WRAP_WRAP_OPTIONS_H

#include "gateway/wrap/wrap_own.h"
#include "gateway/wrap/wrap_session.h"

#include <stdio.h>

enum { WRAP_KEY_MAX = 256, WRAP_PROBLEM_MAX = 256 };

struct wrap_options {
	enum wrap_mode mode;
	bool help;
	const char *gateway;     /* NULL: none is needed, or one of its own */
	struct wrap_own_ask own; /* provider NULL: no gateway of its own */
	char key[WRAP_KEY_MAX + 1];
	char **command; /* of argv; ends in NULL */
};

/* argv as in main: argv[1] is "wrap". Reads the key from --key-file or SLUICE_KEY. False: `problem`, of
 * WRAP_PROBLEM_MAX bytes, says what is wrong; no key is in it. Texts are borrowed of argv. */
MUST_USE bool wrap_options_read(int argc, char **argv, struct wrap_options *out, char *problem);

void wrap_options_help(FILE *out);

/* Takes SLUICE_KEY and the keys of providers out of this process's environment, and so of its child's. */
void wrap_options_forget_keys(void);

#endif
