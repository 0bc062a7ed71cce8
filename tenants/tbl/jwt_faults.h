/* jwt_faults.h - why a token is not accepted: JWT_FAULT(symbol, reason, text)
 *
 * `reason` is the stable name: data.token of the 401, and the label of sluice_jwt_checks_total. `text` is
 * for who sent the token. The order is that of the checks (an issuer's own algorithms come after it): a
 * token that breaks two rules is always refused for the same one, and the signature, which costs most,
 * is looked at when the rest was right. */

JWT_FAULT(TOO_LARGE, "too_large", "The token is over 8 KiB")
JWT_FAULT(MALFORMED, "malformed", "The token is not a signed JWT: three parts in base64url without padding, JSON without duplicate names in the first two")
JWT_FAULT(ALGORITHM, "algorithm", "The token's alg is not one that its issuer may use here")
JWT_FAULT(CRITICAL, "critical", "The token's header has crit, and no extension is understood here")
JWT_FAULT(ISSUER, "issuer", "The token's iss is not an issuer that this gateway trusts")
JWT_FAULT(AUDIENCE, "audience", "The token's aud does not name this gateway")
JWT_FAULT(NO_EXPIRY, "no_expiry", "The token has no exp")
JWT_FAULT(EXPIRED, "expired", "The token has expired")
JWT_FAULT(EARLY, "early", "The token is not valid yet: its nbf or iat lies in the future")
JWT_FAULT(NO_TENANT, "no_tenant", "The token does not say its tenant: the claim is not there, or is no text of 1 to 512 bytes")
JWT_FAULT(SERVER, "server", "The token's claim for the MCP server is no name of 1 to 128 visible ASCII characters without quotes and backslashes")
JWT_FAULT(NO_KEYS, "no_keys", "The keys of the token's issuer are not known: they could not be fetched yet, or not for a day")
JWT_FAULT(KEY_UNKNOWN, "key_unknown", "The token's key is not among its issuer's; they are fetched again")
JWT_FAULT(KEY_MISFIT, "key_misfit", "The token's alg does not fit the key that it names")
JWT_FAULT(BUSY, "busy", "Too many wrong tokens arrive; try again in a second")
JWT_FAULT(SIGNATURE, "signature", "The token's signature is wrong")
JWT_FAULT(TENANT_UNKNOWN, "tenant_unknown", "The token's tenant is unknown or disabled")
