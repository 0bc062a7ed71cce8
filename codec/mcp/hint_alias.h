/* hint_alias.h - what else a hint of modelPreferences may mean: a name of one vendor's model, and the
 * models of others that do as well. Tenants say which; routing follows. */
#ifndef CODEC_MCP_HINT_ALIAS_H
#define CODEC_MCP_HINT_ALIAS_H

#include "codec/base/bitset.h"
#include "codec/base/slice.h"

struct hint_alias {
	struct slice hint;    /* glob over the whole hint, ASCII letters in lower case */
	struct bitset models; /* by catalogue index */
};

#endif
