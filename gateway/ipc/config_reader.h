/* config_reader.h - the process that reads the configuration for a server that may not (setting `user`).
 *
 * Certificate keys, secrets and tenant files may be root's alone, and the server is not root. So the
 * supervisor, which is, keeps a second child: asked by the server, it loads the configuration that was
 * named on the command line, as it was at the start, and hands over the texts of all files that make it
 * up. A question names no file: who has taken the server over learns nothing that the server did not
 * have. It keeps no listening socket and hears nobody but the server. */
#ifndef GATEWAY_IPC_CONFIG_READER_H
#define GATEWAY_IPC_CONFIG_READER_H

#include "codec/base/sha256.h"
#include "gateway/ipc/server_report.h"

/* A pair for as long as the supervisor lives: [0] the reader's, [1] the server's. Whichever of the two
 * dies, its next life goes on with the same end. False with errno. */
MUST_USE bool reader_pair(int fds[2]);

/* The reader's life: answers until its end of the pair breaks. */
void reader_run(int socket, const char *config_path);

/* ---- server's side; these wait for the answer ---- */

/* What is on disk now. *whole: `out` has the files of a configuration that loads; else one text, lines
 * that say why none does (settings.h). The caller's: report_texts_free. False with errno: there is no
 * answer; ECONNABORTED: two readers in a row died over it. */
MUST_USE bool reader_load(int socket, struct report_texts *out, bool *whole);

/* settings_seen_look, of the last reader_load. A reader that has begun since then finds everything
 * changed. False with errno: there is no answer. */
MUST_USE bool reader_look(int socket, uint64_t wall_ns, bool *changed, uint8_t state[SHA256_BYTES]);

#endif
