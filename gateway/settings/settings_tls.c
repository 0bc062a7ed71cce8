/* settings_tls.c - certificates, judged by making of them the context that they are for. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/attr.h"
#include "gateway/tls/tls.h"

/* One of the files: where it is named, how large it may be, and what should be in it. */
struct pem_file {
	const char *key;
	size_t bytes_max;
	const char *remedy;
	struct slice name; /* as in the file; absent: not given */
	struct slice path, text;
};

enum { PEM_CERT, PEM_KEY, PEM_CLIENT_CA, PEM_FILES };

/* Absent texts are no problem; false after one. */
static bool read_file(struct loader *l, const struct node *listen, struct pem_file *file)
{
	if (slice_absent(file->name))
		return true;
	const struct node *node = node_find(listen, file->key);
	file->path = loader_path(l, node, file->name);
	return !slice_absent(file->path) &&
	       loader_file(l, node, file->path, file->bytes_max, &file->text);
}

static void report(struct loader *l, const struct node *listen,
		   const struct pem_file files[PEM_FILES], const struct tls_problem *problem)
{
	static const int file_of[] = {
		[TLS_PART_CERT] = PEM_CERT,
		[TLS_PART_KEY] = PEM_KEY,
		[TLS_PART_CLIENT_CA] = PEM_CLIENT_CA,
	};

	if (problem->part == TLS_PART_OTHER) {
		problem_below(&l->problems, listen, "tls", "cannot be used (%s)", problem->text);
		return;
	}
	const struct pem_file *file = &files[file_of[problem->part]];
	problem_at(&l->problems, node_find(listen, file->key), "%.*s cannot be used (%s); %s",
		   (int)file->path.len, file->path.at, problem->text, file->remedy);
}

void loader_try_ca(struct loader *l, const struct node *node, struct slice path, struct slice pem)
{
	char problem[128];
	struct ssl_ctx_st *ctx = tls_client_new("localhost", pem, problem, sizeof(problem));

	if (ctx == NULL)
		problem_at(&l->problems, node,
			   "%.*s cannot be used (%s); name a PEM file with certificates of "
			   "authorities",
			   (int)path.len, path.at, problem);
	tls_client_free(ctx);
}

void loader_build_tls(struct loader *l, const struct listen_form *form, struct listen_address *out)
{
	struct pem_file files[PEM_FILES] = {
		[PEM_CERT] = { "tls.cert", FILE_CA_MAX,
			       "name a PEM file with the certificate, then its chain",
			       .name = form->tls_cert },
		[PEM_KEY] = { "tls.key", FILE_SECRET_MAX,
			      "name a PEM file with the key of cert, without a passphrase",
			      .name = form->tls_key },
		[PEM_CLIENT_CA] = { "tls.client_ca", FILE_CA_MAX,
				    "name a PEM file with certificates of authorities",
				    .name = form->tls_client_ca },
	};
	struct tls_problem problem;
	bool read = true;

	for (size_t i = 0; i < COUNT_OF(files); i++)
		read &= read_file(l, form->node, &files[i]);
	/* What is missing of the two was reported when the map was read. */
	if (!read || slice_absent(files[PEM_CERT].text) || slice_absent(files[PEM_KEY].text))
		return;
	const struct tls_server_texts texts = {
		.listener = form->address,
		.cert = files[PEM_CERT].text,
		.key = files[PEM_KEY].text,
		.client_ca = files[PEM_CLIENT_CA].text,
	};
	out->tls = tls_server_new(&texts, l->source->tickets, &problem);
	if (out->tls == NULL)
		report(l, form->node, files, &problem);
}
