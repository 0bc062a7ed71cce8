#include "gateway/redis/redis_login.h"

#include <stdlib.h>
#include <string.h>

static bool same(struct slice a, struct slice b)
{
	return slice_absent(a) == slice_absent(b) && slice_eq(a, b);
}

bool redis_login_is(const struct redis_login *login, struct slice user, struct slice password)
{
	return same(login->user, user) && same(login->password, password);
}

static struct slice copy(char **at, struct slice s)
{
	const struct slice kept = slice_of(*at, s.len);

	if (slice_absent(s))
		return s;
	(void)memcpy(*at, s.at, s.len);
	*at += s.len;
	return kept;
}

bool redis_login_set(struct redis_login *login, struct slice user, struct slice password)
{
	struct redis_login fresh = { .len = user.len + password.len };

	fresh.text = malloc(fresh.len + 1);
	if (fresh.text == NULL)
		return false;
	char *at = fresh.text;
	fresh.user = copy(&at, user);
	fresh.password = copy(&at, password);
	redis_login_fini(login);
	*login = fresh;
	return true;
}

uint32_t redis_login_command(const struct redis_login *login, struct slice out[REDIS_LOGIN_WORDS])
{
	uint32_t count = 0;

	if (slice_absent(login->password))
		return 0;
	out[count++] = SLICE("AUTH");
	if (!slice_absent(login->user))
		out[count++] = login->user;
	out[count++] = login->password;
	return count;
}

void redis_login_fini(struct redis_login *login)
{
	if (login->text != NULL)
		explicit_bzero(login->text, login->len);
	free(login->text);
	*login = (struct redis_login){ 0 };
}
