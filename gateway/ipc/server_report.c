#include "gateway/ipc/server_report.h"

#include "gateway/base/fd_message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- messages ------------------------------------------------------------------------------- */

bool report_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0;
}

static bool send_report(int fd, const struct report *report)
{
	return fd_message_send(fd, report, sizeof(*report), report->texts_fd);
}

bool report_ready(int fd)
{
	struct report report = { .kind = REPORT_READY, .texts_fd = -1 };

	return send_report(fd, &report);
}

bool report_stop(int fd)
{
	struct report report = { .kind = REPORT_STOP, .texts_fd = -1 };

	return send_report(fd, &report);
}

bool report_config(int fd, const struct config *config)
{
	struct report report = {
		.kind = REPORT_CONFIG,
		.drain = config->drain,
		.texts_fd = report_texts_save(config->files, config->file_count),
	};

	_Static_assert(sizeof(report.digest) == sizeof(config->digest), "the same name");
	if (report.texts_fd < 0)
		return false;
	memcpy(report.digest, config->digest, sizeof(report.digest));
	bool sent = send_report(fd, &report);
	int error = errno;
	(void)close(report.texts_fd);
	errno = error;
	return sent;
}

bool report_receive(int fd, struct report *out)
{
	int texts_fd;

	do {
		if (fd_message_receive(fd, out, sizeof(*out), &texts_fd)) {
			out->texts_fd = texts_fd;
			return true;
		}
	} while (errno == EBADMSG); /* not by this program's doing */
	return false;
}

/* ---- texts ----------------------------------------------------------------------------------
 * A header, then per file its two lengths, its path and its text. */

struct texts_header {
	char magic[8];
	uint64_t count;
};
struct texts_file {
	uint64_t path_len, text_len;
};
static const char texts_magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 't', '1' };

static bool write_all(int fd, const void *bytes, size_t len)
{
	for (const char *at = bytes; len > 0;) {
		ssize_t written = write(fd, at, len);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		at += written;
		len -= (size_t)written;
	}
	return true;
}

static bool write_texts(int fd, const struct config_file *files, uint32_t count)
{
	struct texts_header header = { .count = count };

	memcpy(header.magic, texts_magic, sizeof(header.magic));
	if (!write_all(fd, &header, sizeof(header)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct texts_file file = { files[i].path.len, files[i].text.len };
		if (!write_all(fd, &file, sizeof(file)) ||
		    !write_all(fd, files[i].path.at, files[i].path.len) ||
		    !write_all(fd, files[i].text.at, files[i].text.len))
			return false;
	}
	return true;
}

int report_texts_save(const struct config_file *files, uint32_t count)
{
	int fd = memfd_create("sluice-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (write_texts(fd, files, count) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		return fd;
	int error = errno;
	(void)close(fd);
	errno = error;
	return -1;
}

/* The next `len` bytes of *rest; false when there are fewer. */
static bool cut(struct slice *rest, uint64_t len, struct slice *out)
{
	if (len > rest->len)
		return false;
	*out = slice_of(rest->at, (size_t)len);
	*rest = slice_of(rest->at + len, rest->len - (size_t)len);
	return true;
}

static bool parse(struct slice rest, struct report_texts *out)
{
	struct texts_header header;
	struct texts_file file;
	struct slice part;

	if (!cut(&rest, sizeof(header), &part))
		return false;
	memcpy(&header, part.at, sizeof(header));
	if (memcmp(header.magic, texts_magic, sizeof(header.magic)) != 0 ||
	    header.count > rest.len / sizeof(file))
		return false;
	out->files = calloc(header.count + 1, sizeof(*out->files));
	if (out->files == NULL)
		return false;
	for (out->count = 0; out->count < header.count; out->count++) {
		if (!cut(&rest, sizeof(file), &part))
			return false;
		memcpy(&file, part.at, sizeof(file));
		if (!cut(&rest, file.path_len, &out->files[out->count].path) ||
		    !cut(&rest, file.text_len, &out->files[out->count].text))
			return false;
	}
	return rest.len == 0;
}

bool report_texts_load(int fd, struct report_texts *out)
{
	struct report_texts texts = { .files = NULL };
	struct stat stat;

	if (fstat(fd, &stat) != 0)
		return false;
	if (stat.st_size < (off_t)sizeof(struct texts_header)) {
		errno = EBADMSG;
		return false;
	}
	texts.size = (size_t)stat.st_size;
	texts.map = mmap(NULL, texts.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (texts.map == MAP_FAILED)
		return false;
	if (!parse(slice_of(texts.map, texts.size), &texts)) {
		report_texts_free(&texts);
		errno = EBADMSG;
		return false;
	}
	*out = texts;
	return true;
}

void report_texts_free(struct report_texts *texts)
{
	free(texts->files);
	(void)munmap(texts->map, texts->size);
	*texts = (struct report_texts){ .files = NULL };
}
