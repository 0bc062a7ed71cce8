#include "gateway/base/user.h"

#include "codec/base/must.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool user_find(struct slice name, struct user *out)
{
	struct user user = { .name = "" };

	must(name.len <= USER_NAME_MAX);
	memcpy(user.name, name.at, name.len);
	const struct passwd *entry = getpwnam(user.name);
	if (entry == NULL)
		return false;
	user.uid = entry->pw_uid;
	user.gid = entry->pw_gid;
	*out = user;
	return true;
}

bool user_is_another(const struct user *user)
{
	return user->name[0] != '\0' && (getuid() != user->uid || geteuid() != user->uid);
}

static bool complain(const struct user *user, const char *what)
{
	(void)fprintf(stderr, "sluice: user: the server cannot become %s: %s: %s\n", user->name,
		      what, strerror(errno));
	return false;
}

static bool is_whole(const struct user *user)
{
	uid_t real, effective, saved;
	gid_t real_group, effective_group, saved_group;

	return getresuid(&real, &effective, &saved) == 0 && real == user->uid &&
	       effective == user->uid && saved == user->uid &&
	       getresgid(&real_group, &effective_group, &saved_group) == 0 &&
	       real_group == user->gid && effective_group == user->gid && saved_group == user->gid;
}

static uint64_t caps_permitted(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	must(syscall(SYS_capget, &header, caps) == 0);
	return (uint64_t)caps[1].permitted << 32 | caps[0].permitted;
}

/* Those of `kept` that may be used, no other, and none that a program would inherit; looks at the result.
 * False with errno. */
static bool caps_reduce(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	const uint32_t halves[] = { (uint32_t)kept, (uint32_t)(kept >> 32) };

	_Static_assert(COUNT_OF(halves) == COUNT_OF(caps), "64 bits");
	for (size_t i = 0; i < COUNT_OF(caps); i++)
		caps[i].effective = caps[i].permitted = halves[i];
	if (syscall(SYS_capset, &header, caps) != 0 || syscall(SYS_capget, &header, caps) != 0)
		return false;
	for (size_t i = 0; i < COUNT_OF(caps); i++)
		if (((caps[i].effective | caps[i].permitted) & ~halves[i]) != 0 ||
		    caps[i].inheritable != 0)
			return false;
	return true;
}

/* None is left that could be used; leaving user 0 takes them away unless somebody has arranged for them
 * to stay (securebits). */
static bool is_powerless(void)
{
	return caps_reduce(0);
}

static bool is_for_good(const struct user *user)
{
	return setresuid((uid_t)-1, 0, (uid_t)-1) != 0 && setgroups(0, NULL) != 0 &&
	       (user->gid == 0 || setresgid((gid_t)-1, 0, (gid_t)-1) != 0);
}

bool user_become(const struct user *user)
{
	must(user->name[0] != '\0');
	must(user->uid != 0);
	if (initgroups(user->name, user->gid) != 0)
		return complain(user, "its groups");
	if (setresgid(user->gid, user->gid, user->gid) != 0)
		return complain(user, "its group");
	if (setresuid(user->uid, user->uid, user->uid) != 0)
		return complain(user, "its user");
	if (!is_powerless())
		return complain(user, "capabilities are left");
	errno = 0;
	if (!is_whole(user) || !is_for_good(user))
		return complain(user, "the change could be undone");
	return true;
}

bool user_keep_reading(void)
{
	const uint64_t has = caps_permitted();
	const uint64_t search = UINT64_C(1) << CAP_DAC_READ_SEARCH;
	const uint64_t override = UINT64_C(1) << CAP_DAC_OVERRIDE;

	if (caps_reduce((has & search) != 0 ? search : has & override))
		return true;
	perror("sluice: user: the reader's capabilities");
	return false;
}

bool user_no_more_rights(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		return true;
	perror("sluice: user: PR_SET_NO_NEW_PRIVS");
	return false;
}
