#include "codec/json/schema_odd.h"

#include "codec/json/json_scan.h"

#include <string.h>

enum { KEY_BLOCK = 16 };
typedef unsigned char key_bytes __attribute__((vector_size(KEY_BLOCK)));
typedef signed char key_numbers __attribute__((vector_size(KEY_BLOCK)));
typedef uint64_t key_words __attribute__((vector_size(KEY_BLOCK)));

/* Of a block: which bytes are letters, digits or underscores. */
static inline key_words good_in_key(const char *at)
{
	key_bytes block;

	(void)memcpy(&block, at, sizeof(block));
	/* vectors are compared as signed: the first letter and the first digit become the least number */
	const key_numbers letter = (key_numbers)((block | 0x20) - ('a' + 128)),
			  digit = (key_numbers)(block - ('0' + 128));
	return (key_words)((letter < -128 + 26) | (digit < -128 + 10) |
			   (key_numbers)(block == '_'));
}

bool schema_keys_odd(const struct json_key *key, const struct json_key *end)
{
	static const char behind[2 * KEY_BLOCK] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
						  "\xff\xff\xff\xff\xff\xff\xff\xff"
						  "\xff\xff\xff\xff\xff\xff\xff";
	key_words good = { UINT64_MAX, UINT64_MAX };

	for (; key < end; key++) {
		const size_t len = key->len;
		key_words beyond;
		if (len - 1 >= KEY_BLOCK) { /* empty ones, too */
			if (len == 0 || len > SCHEMA_KEY_MAX)
				return true;
			for (size_t i = 0; i + KEY_BLOCK < len; i += KEY_BLOCK)
				good &= good_in_key(key->at + i);
			good &= good_in_key(key->at + len - KEY_BLOCK);
			continue;
		}
		(void)memcpy(&beyond, behind + KEY_BLOCK - len, sizeof(beyond));
		good &= good_in_key(key->at) | beyond;
	}
	return (good[0] & good[1]) != UINT64_MAX;
}

bool schema_keys_odd_slowly(const struct json_key *key, const struct json_key *end)
{
	for (; key < end; key++) {
		if (key->len == 0 || key->len > SCHEMA_KEY_MAX)
			return true;
		for (uint32_t i = 0; i < key->len; i++)
			if (!scan_is_digit(key->at[i]) && key->at[i] != '_' &&
			    (unsigned char)((key->at[i] | 0x20) - 'a') >= 26)
				return true;
	}
	return false;
}

bool schema_array_odd(const char *at, const struct json_key *key, const struct json_key *end)
{
	static const char array[] = "\"array\"", next[] = "\"items\":";
	const char *behind = at + sizeof(array) - 1;

	if (memcmp(at, array, sizeof(array) - 1) != 0)
		return false;
	if (*behind == ',') {
		behind += behind[1] == ' ' ? 2 : 1;
		if (memcmp(behind, next, sizeof(next) - 1) == 0)
			return false;
	}
	for (; key < end; key++)
		if (key->len == 5 && memcmp(key->at, next + 1, 5) == 0)
			return false;
	return true;
}

bool schema_null_odd(const struct json_key *key)
{
	return !(key->len == 7 && memcmp(key->at, "default", 7) == 0) &&
	       !(key->len == 5 && memcmp(key->at, "const", 5) == 0);
}
