/* store_redis_script.h - lua/limits.lua as text, and its SHA-1, by which Redis knows it.
 *
 * The definitions are made by CMake from lua/limits.c.in. */
#ifndef GATEWAY_STORE_REDIS_SCRIPT_H
#define GATEWAY_STORE_REDIS_SCRIPT_H

#include <stddef.h>

extern const char limits_lua[]; /* NUL-terminated */
extern const size_t limits_lua_len;
extern const char limits_lua_sha1[]; /* 40 hex digits */

#endif
