/* dialect_blame.h - the blame for an error answer: the request, a key, the model or the provider; private to
 * codec/.
 *
 * What the request says wrong is looked at before what may be wrong with the key, because providers answer both with
 * the same statuses: a prompt that one tenant wrote must not take a key from the others. */
#ifndef CODEC_DIALECT_DIALECT_BLAME_H
#define CODEC_DIALECT_DIALECT_BLAME_H

#include "codec/dialect/dialect_error_body.h"

enum failure_class {
	CLASS_NONE,
	CLASS_CONTEXT,
	CLASS_BILLING,
	CLASS_KEY,
	CLASS_PERMISSION,
	CLASS_FORBIDDEN,
	CLASS_MODEL,
	CLASS_UNABLE,
	CLASS_REDIRECT,
	CLASS_RATE,
	CLASS_DAY,
	CLASS_DOWN,
	CLASS_TOO_LARGE,
	CLASS_CREDIT,
	CLASS_MINUTE,
	CLASS_REJECTED,
	CLASS_BAD_CALL,
	CLASS_REFUSAL,
};

/* `status` 200: an error object without a status of its own. *open: the status of a refused request is all that says
 * why, or that this model cannot, so that the request may have to be sent otherwise. */
enum failure_class blame_class(const struct error_body *body, int status, bool *open);

/* The same where `wrapped` is what somebody behind the provider said, whose keys and rates are not ours: CLASS_CONTEXT,
 * CLASS_REFUSAL or CLASS_NONE. */
enum failure_class blame_class_wrapped(const struct error_body *wrapped, int status);

#endif
