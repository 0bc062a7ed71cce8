/* steps.h - the walk of a request, in order: STEP(symbol, name, meaning)
 *
 * One function each in flow*.c; the name is the panic line's and the log's word for where a request
 * stood. */
STEP(HOLD, "hold", "its tenant's share of the bytes that requests hold")
STEP(RECALL, "recall", "what is known of its session, its tool loop and private blocks; what needs no sample ends here")
STEP(JOIN, "join", "a copy of a request waits for the first, and is answered like it")
STEP(POLICY, "policy", "whether it may pass, and clamps")
STEP(ROUTE, "route", "model, endpoint and key")
STEP(ENCODE, "encode", "the provider's request as a gather list")
STEP(RESERVE, "reserve", "the tenant's limits take their share")
STEP(SEND, "send", "one attempt at the provider")
STEP(READ, "read", "the provider's answer to a result")
STEP(SETTLE, "settle", "what was reserved becomes what was used")
STEP(RETRY, "retry", "after a failure: whether, when and where the next attempt is made, from ROUTE")
STEP(REMEMBER, "remember", "what it leaves to its session and its tool loop")
STEP(ANSWER, "answer", "the outcome is told")
STEP(OVER, "over", "nothing is left to do")
