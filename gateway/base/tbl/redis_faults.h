/* redis_faults.h - why Redis is not in use: STORE_FAULT(symbol, value of the metric's label, words)
 *
 * The words follow "not in use: " and stand in /readyz and on stderr. */
STORE_FAULT(CONNECTING, "connecting", "its first connection is being made")
STORE_FAULT(UNREACHABLE, "unreachable", "no connection can be made")
STORE_FAULT(SILENT, "silent", "it does not answer")
STORE_FAULT(LATE, "late", "it answers later than store.deadline")
STORE_FAULT(ERROR, "error", "it answers with an error")
STORE_FAULT(PROTOCOL, "protocol", "what answers is no Redis")
STORE_FAULT(CLUSTER, "cluster", "this is a Redis Cluster; Sluice needs a single primary that has all keys, or a proxy in front of the cluster")
STORE_FAULT(TLS_PORT, "tls_port", "this port speaks TLS; write rediss:// in store.url")
STORE_FAULT(PLAIN_PORT, "plain_port", "this port does not speak TLS; write redis:// in store.url, or the port that does")
