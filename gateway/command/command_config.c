#include "gateway/command/command_config.h"

#include "codec/base/sha256.h"
#include "gateway/command/command_server.h"
#include "gateway/settings/settings.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum {
	KEY_BYTES = 32,
	KEY_PREFIX = 7,                                 /* "sk-slu-" */
	KEY_LEN = KEY_PREFIX + (KEY_BYTES * 8 + 5) / 6, /* base64url without padding: 43 */
};

static int usage(const char *line)
{
	(void)fprintf(stderr, "usage: sluice %s\n", line);
	return 2;
}

/* A full disk or a closed pipe must not look like success. */
static int written(FILE *out)
{
	if (fflush(out) == 0 && ferror(out) == 0)
		return 0;
	(void)fprintf(stderr, "sluice: cannot write: %s\n", strerror(errno));
	return 1;
}

int command_check(int argc, char **argv)
{
	const bool verbose = argc == 4 && strcmp(argv[2], "--verbose") == 0;

	if (argc != 3 && !verbose)
		return usage("check [--verbose] FILE");
	const char *path = argv[argc - 1];
	struct settings_source source = { .path = path,
					  .warnings = stderr,
					  .models = verbose ? stdout : NULL };
	struct config *config = settings_load(&source, stdout);
	if (config == NULL) {
		(void)written(stdout);
		return 1;
	}
	for (uint32_t i = 0; verbose && i < config->mcp_server_count; i++)
		server_print(config, &config->mcp_servers[i]);
	(void)printf("%s: ok (%u providers, %u models, ", path, config->provider_count,
		     config->catalog.count);
	if (config->mcp_server_count != 0)
		(void)printf("%u MCP servers, ", config->mcp_server_count);
	(void)printf("%zu tenants)\n", config->tenants.count);
	settings_free(&config);
	return written(stdout);
}

int command_settings(int argc, char **argv)
{
	(void)argv;
	if (argc != 2)
		return usage("settings");
	settings_print_manual(stdout);
	return written(stdout);
}

int command_schema(int argc, char **argv)
{
	(void)argv;
	if (argc != 2)
		return usage("schema");
	settings_print_schema(stdout);
	return written(stdout);
}

static void base64url(const uint8_t bytes[KEY_BYTES], char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t held = 0;
	int bits = 0;

	for (size_t i = 0; i < KEY_BYTES; i++) {
		held = held << 8 | bytes[i];
		for (bits += 8; bits >= 6; bits -= 6)
			*out++ = digits[held >> (bits - 6) & 63];
		held &= 63;
	}
	if (bits > 0)
		*out = digits[held << (6 - bits) & 63];
}

int command_key(int argc, char **argv)
{
	uint8_t bytes[KEY_BYTES], digest[SHA256_BYTES];
	char key[KEY_LEN + 1] = "sk-slu-", hex[2 * SHA256_BYTES + 1] = "";

	(void)argv;
	if (argc != 2)
		return usage("key");
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		(void)fprintf(stderr, "sluice: no random bytes: %s\n", strerror(errno));
		return 1;
	}
	base64url(bytes, key + KEY_PREFIX);
	sha256(slice_of(key, KEY_LEN), digest);
	sha256_hex(digest, 2 * SHA256_BYTES, hex);
	(void)printf("key:    %s\n"
		     "sha256: %s\n",
		     key, hex);
	int code = written(stdout);
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(key, sizeof(key));
	return code;
}
