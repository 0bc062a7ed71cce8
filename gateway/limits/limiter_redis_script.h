/* limiter_redis_script.h - limits/limits.lua, state/state_load.lua, state_save.lua and idempotency.lua as texts, and their SHA-1, by which Redis
 * knows them.
 *
 * The definitions are made by CMake from redis/script.c.in. */
#ifndef GATEWAY_LIMITS_LIMITER_REDIS_SCRIPT_H
#define GATEWAY_LIMITS_LIMITER_REDIS_SCRIPT_H

#include <stddef.h>

extern const char limits_lua[], recall_lua[], remember_lua[], once_lua[]; /* NUL-terminated */
extern const size_t limits_lua_len, recall_lua_len, remember_lua_len, once_lua_len;
extern const char limits_lua_sha1[], recall_lua_sha1[], remember_lua_sha1[],
	once_lua_sha1[]; /* 40 hex digits */

#endif
