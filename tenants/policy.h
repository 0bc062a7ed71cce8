/* policy.h - whether a request may pass: an ordered table of rules to a verdict.
 *
 * The order is part of the contract: a request that breaks two rules is always refused for the same
 * one, and the refusal names the rule. */
#ifndef TENANTS_POLICY_H
#define TENANTS_POLICY_H

#include "codec/mcp/sampling.h"
#include "tenants/tenant.h"

struct verdict {
	enum err err;        /* ERR_OK: may pass */
	const char *rule;    /* name of the rule that refused; NULL when passed */
	const char *detail;  /* its words for the caller; NULL: those of `err` */
	uint32_t max_tokens; /* maxTokens after the tenant's clamp */
	bool final_round;    /* tool_rounds reached, tool_rounds_action: final */
	adjust_set adjustments;
};

/* Of a plan that says nothing about requests: no bounds, everything as sent. */
struct policy policy_defaults(void);

/* `plan` is the tenant's, or that of its MCP server (plan_for). */
struct verdict policy_check(const struct tenant *tenant, const struct plan *plan,
			    const struct sampling_request *request);

/* What a verdict that passed changes in the request: its system prompt and metadata. ERR_BUSY when
 * `into` is full. Nothing in it points to the plan afterwards. */
MUST_USE enum err policy_apply(const struct plan *plan, struct arena *into,
			       struct sampling_request *request);

/* Name of the n-th rule in order, NULL past the end; for `sluice explain` and tests. */
const char *policy_rule_name(size_t n);

/* The n-th rule alone. */
struct verdict policy_rule_check(size_t n, const struct tenant *tenant, const struct plan *plan,
				 const struct sampling_request *request);

#endif
