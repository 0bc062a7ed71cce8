/* settings_identity.c - identity.jwt: issuers, and where their keys are. */
#include "gateway/settings/settings_loader.h"

#include "gateway/settings/settings_url.h"

/* "URL|sha256 of the CA" */
static struct slice place_name(struct loader *l, const struct jwks_place *place)
{
	const struct slice url = place->endpoint.url;
	uint8_t digest[SHA256_BYTES];
	char *text = loader_zero(l, &l->config->arena, url.len + 1 + 64 + 1, 1);
	size_t len = url.len + 1;

	if (text == NULL)
		return (struct slice){ NULL, 0 };
	(void)memcpy(text, url.at, url.len);
	text[url.len] = '|';
	if (!slice_absent(place->endpoint.ca_pem)) {
		sha256(place->endpoint.ca_pem, digest);
		sha256_hex(digest, 64, text + len);
		len += 64;
	}
	return slice_of(text, len);
}

static void build_place(struct loader *l, const struct issuer_form *form, struct jwks_place *out)
{
	const struct node *node = node_find(form->node, "jwks");
	struct url_parts parts;

	loader_ca(l, form->node, form->ca, &out->endpoint.ca_path, &out->endpoint.ca_pem);
	if (slice_absent(form->jwks))
		return;
	const char *wrong = url_parse(form->jwks, &parts);
	if (wrong != NULL) {
		problem_at(&l->problems, node, "%s", wrong);
		return;
	}
	if (!parts.tls && !slice_absent(form->ca))
		problem_at(&l->problems, node,
			   "is not https, and there is a ca; write https:// or remove ca");
	out->endpoint.url = loader_keep(l, form->jwks);
	loader_name_endpoint(l, &parts, &out->endpoint);
	/* with its last slash, which url_parse drops */
	const size_t before = (size_t)(parts.path.at - form->jwks.at);
	const struct slice path = slice_of(parts.path.at, form->jwks.len - before);
	out->path = path.len == 0 ? SLICE("/") : loader_keep(l, path);
	if (!slice_absent(out->endpoint.url))
		out->name = place_name(l, out);
}

/* Without the key: all that there are. */
static uint32_t algorithms_of(struct loader *l, const struct issuer_form *form)
{
	const struct node *node = node_find(form->node, "algorithms");
	uint32_t bits = 0;
	enum jwt_alg alg;

	if (node == NULL)
		return (UINT32_C(1) << JWT_ALGS) - 1;
	if (node->kind == NODE_LIST && node->count == 0)
		problem_at(&l->problems, node,
			   "names none; write a list of RS256, ES256 or EdDSA, or remove it");
	for (uint32_t i = 0; i < form->algorithms.count; i++)
		if (jwt_alg_find(form->algorithms.at[i], &alg))
			bits |= UINT32_C(1) << alg;
	return bits;
}

static void build_issuer(struct loader *l, const struct issuer_form *form, struct jwt_issuer *out,
			 struct jwks_place *place)
{
	*out = (struct jwt_issuer){
		.issuer = loader_keep(l, form->issuer),
		.audience = loader_keep(l, form->audience),
		.tenant_claim = loader_keep(l, form->tenant_claim),
		.server_claim = loader_keep(l, form->server_claim),
		.algorithms = algorithms_of(l, form),
		.skew_s = form->skew / SEC,
	};
	place->refresh = form->refresh;
	if (form->skew % SEC != 0)
		problem_at(&l->problems, node_find(form->node, "skew"),
			   "is not in whole seconds; write one such as 60s");
	build_place(l, form, place);
}

/* A token's iss must lead to one of them. */
static void refuse_twice(struct loader *l, const struct issuer_form *forms, uint32_t i)
{
	for (uint32_t j = 0; j < i && !slice_absent(forms[i].issuer); j++)
		if (slice_eq(forms[i].issuer, forms[j].issuer)) {
			problem_at(&l->problems, node_find(forms[i].node, "issuer"),
				   "is the same as that of line %u; remove one",
				   node_find(forms[j].node, "issuer")->line);
			return;
		}
}

/* One place cannot be trusted in two ways. */
static void refuse_other_ca(struct loader *l, const struct issuer_form *forms,
			    const struct jwks_place *places, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (!slice_absent(places[i].name) && !slice_absent(places[j].name) &&
		    slice_eq(places[i].endpoint.url, places[j].endpoint.url) &&
		    !slice_eq(places[i].name, places[j].name)) {
			problem_at(&l->problems, node_find(forms[i].node, "jwks"),
				   "is that of line %u, which has another ca; write the same",
				   node_find(forms[j].node, "jwks")->line);
			return;
		}
}

void loader_build_issuers(struct loader *l, const struct main_form *form)
{
	const struct issuer_form *forms = form->jwt.at;
	struct arena *into = &l->config->arena;
	struct jwt_issuer *issuers = loader_zero(l, into, form->jwt.count, sizeof(*issuers));
	struct jwks_place *places = loader_zero(l, into, form->jwt.count, sizeof(*places));

	if (issuers == NULL || places == NULL)
		return;
	for (uint32_t i = 0; i < form->jwt.count && !l->failed; i++) {
		build_issuer(l, &forms[i], &issuers[i], &places[i]);
		refuse_twice(l, forms, i);
		refuse_other_ca(l, forms, places, i);
	}
	l->config->jwt_issuers = issuers;
	l->config->jwks = places;
	l->config->jwt_issuer_count = form->jwt.count;
}
