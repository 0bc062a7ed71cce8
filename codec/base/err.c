#include "codec/base/err.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

static const struct err_info err_table[ERR_COUNT] = {
	[ERR_OK] = { 0, 200, "ok", "" },
#define ERROR(symbol, code, status, reason, text) [ERR_##symbol] = { code, status, reason, text },
#include "codec/tbl/errors.h"
#undef ERROR
};

const struct error_data error_data_none = { .retry_after_ms = -1, .retryable = -1 };

const struct err_info *err_info(enum err err)
{
	must((unsigned)err < ERR_COUNT);
	return &err_table[err];
}
