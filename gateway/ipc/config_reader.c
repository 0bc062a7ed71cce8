#include "gateway/ipc/config_reader.h"

#include "codec/base/must.h"
#include "gateway/base/fd_message.h"
#include "gateway/settings/settings.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LOAD_PATIENCE (60 * SEC) /* millions of tenants are read in less */
#define LOOK_PATIENCE (5 * SEC)

enum { TRIES = 2 }; /* a second time when the reader has died over the first, or before it */

enum question_kind { QUESTION_LOAD = 1, QUESTION_LOOK };

struct question {
	uint64_t number;  /* when it was asked: no two servers use the same */
	uint64_t wall_ns; /* of QUESTION_LOOK */
	uint64_t kind;
};

/* Of a reader that tells that it has begun, and knows of no question that came before. */
#define NUMBER_BEGUN 0

struct answer {
	uint64_t number; /* of its question, or NUMBER_BEGUN */
	uint64_t yes; /* QUESTION_LOAD: the configuration is whole; QUESTION_LOOK: it has changed */
	uint8_t state[SHA256_BYTES]; /* of QUESTION_LOOK */
};

bool reader_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0;
}

/* ---- the reader --------------------------------------------------------------------------------- */

struct reader {
	const char *config_path;
	struct settings_seen *seen; /* by the last load; NULL: there was none yet */
};

/* A memfd with the texts, or with the reasons why there is no configuration; -1 after a line on stderr. */
static int load(struct reader *reader, bool *whole)
{
	struct config_file reasons = { .path = SLICE("(problems)") };
	char *text = NULL;
	size_t len = 0;
	FILE *problems = open_memstream(&text, &len);

	if (problems == NULL)
		return -1;
	settings_seen_free(&reader->seen);
	reader->seen = settings_seen_new();
	const struct settings_source source = { .path = reader->config_path, .seen = reader->seen };
	struct config *config = settings_load(&source, problems);
	*whole = config != NULL;
	int fd = -1;
	if (fclose(problems) == 0) {
		reasons.text = slice_of(text, len);
		fd = *whole ? report_texts_save(config->files, config->file_count)
			    : report_texts_save(&reasons, 1);
	}
	if (fd < 0)
		perror("sluice: the configuration cannot be handed to the server");
	free(text);
	settings_free(&config);
	return fd;
}

static void answer(struct reader *reader, int socket, const struct question *question)
{
	struct answer out = { .number = question->number };
	bool yes = false;
	int fd = -1;

	if (question->kind == QUESTION_LOAD)
		fd = load(reader, &yes);
	else if (question->kind == QUESTION_LOOK)
		yes = reader->seen == NULL ||
		      settings_seen_look(reader->seen, question->wall_ns, out.state);
	out.yes = yes;
	if (!fd_message_send(socket, &out, sizeof(out), fd))
		perror("sluice: the server cannot be answered"); /* it stops waiting by itself */
	if (fd >= 0)
		(void)close(fd);
}

/* All that waits there; to whoever asked, the reader before this one is dead. */
static void forget(int socket, void *message, size_t len)
{
	int fd;

	do {
		while (fd_message_receive(socket, message, len, &fd))
			if (fd >= 0)
				(void)close(fd);
	} while (errno == EBADMSG);
}

static void begin(int socket)
{
	const struct answer begun = { .number = NUMBER_BEGUN };
	struct question old;

	forget(socket, &old, sizeof(old));
	if (!fd_message_send(socket, &begun, sizeof(begun), -1) && errno != EAGAIN)
		perror("sluice: the server cannot be told of its reader");
}

void reader_run(int socket, const char *config_path)
{
	struct reader reader = { .config_path = config_path };
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	struct question question;
	int fd;

	begin(socket);
	for (;;) {
		if (poll(&ready, 1, -1) < 0 && errno != EINTR)
			break;
		if (fd_message_receive(socket, &question, sizeof(question), &fd)) {
			if (fd >= 0)
				(void)close(fd); /* nobody of ours sends one */
			answer(&reader, socket, &question);
		} else if (errno != EAGAIN && errno != EINTR && errno != EBADMSG) {
			break;
		}
	}
	settings_seen_free(&reader.seen);
}

/* ---- the server --------------------------------------------------------------------------------- */

static nsec_t now_ns(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}

/* Waits for the next message until `due`; false with errno. */
static bool hear(int socket, nsec_t due, struct answer *out, int *fd)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };

	for (;;) {
		nsec_t now = now_ns();
		if (now >= due) {
			errno = ETIMEDOUT;
			return false;
		}
		if (poll(&ready, 1, (int)((due - now) / MSEC) + 1) < 0 && errno != EINTR)
			return false;
		if (fd_message_receive(socket, out, sizeof(*out), fd))
			return true;
		if (errno != EAGAIN && errno != EINTR)
			return false;
	}
}

/* Answers to questions that nobody waits for any more, a dead server's among them, are dropped. False with
 * errno; ECONNABORTED: the reader that was asked is dead, and there is another. */
static bool ask_once(int socket, struct question *question, nsec_t patience, struct answer *out,
		     int *fd)
{
	forget(socket, out, sizeof(*out));
	question->number = now_ns();
	if (!fd_message_send(socket, question, sizeof(*question), -1))
		return false;
	while (hear(socket, question->number + patience, out, fd)) {
		if (out->number == question->number)
			return true;
		if (*fd >= 0)
			(void)close(*fd);
		if (out->number == NUMBER_BEGUN) {
			errno = ECONNABORTED;
			return false;
		}
	}
	return false;
}

static bool ask(int socket, struct question *question, nsec_t patience, struct answer *out, int *fd)
{
	for (int i = 0; i < TRIES; i++) {
		if (ask_once(socket, question, patience, out, fd))
			return true;
		if (errno != ECONNABORTED)
			return false;
	}
	return false;
}

bool reader_load(int socket, struct report_texts *out, bool *whole)
{
	struct question question = { .kind = QUESTION_LOAD };
	struct answer answer;
	int fd;

	if (!ask(socket, &question, LOAD_PATIENCE, &answer, &fd))
		return false;
	if (fd < 0) {
		errno = ENOMEM; /* the reader has told stderr */
		return false;
	}
	bool loaded = report_texts_load(fd, out);
	int error = errno;
	(void)close(fd);
	errno = error;
	*whole = answer.yes != 0;
	return loaded;
}

bool reader_look(int socket, uint64_t wall_ns, bool *changed, uint8_t state[SHA256_BYTES])
{
	struct question question = { .kind = QUESTION_LOOK, .wall_ns = wall_ns };
	struct answer answer;
	int fd;

	if (!ask(socket, &question, LOOK_PATIENCE, &answer, &fd))
		return false;
	if (fd >= 0)
		(void)close(fd);
	*changed = answer.yes != 0;
	memcpy(state, answer.state, sizeof(answer.state));
	return true;
}
