/* ca_pem.h - a certificate for settings that name one; its key is nobody's. */
#ifndef TESTS_UNIT_GATEWAY_CA_PEM_H
#define TESTS_UNIT_GATEWAY_CA_PEM_H

/* clang-format off */
static const char test_ca[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBiTCCAS+gAwIBAgIUYKcMZYj0scvAnoM0MnDsEBCgj7gwCgYIKoZIzj0EAwIw\n"
	"GTEXMBUGA1UEAwwOQSBDQSBmb3IgdGVzdHMwIBcNMjYxMTI3MDEyMjAwWhgPMjEy\n"
	"NjExMDMwMTIyMDBaMBkxFzAVBgNVBAMMDkEgQ0EgZm9yIHRlc3RzMFkwEwYHKoZI\n"
	"zj0CAQYIKoZIzj0DAQcDQgAE6Flxk2YfD6oz+jhu9sMJlt408N5GafgLWZnaLzO2\n"
	"ZXiRQwQrBWdE3OAAXT0JT/2JBRHqhFOm4yzu1vDmrIWy5qNTMFEwHQYDVR0OBBYE\n"
	"FMCi+YsbDpQ7RrOURViTu45XxTO1MB8GA1UdIwQYMBaAFMCi+YsbDpQ7RrOURViT\n"
	"u45XxTO1MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIga+IjcLxn\n"
	"qOyAs3vwamwYJ3sxOT4moGq3RSf57W3xpbsCIQCndC0jN28OQqBhf/Zn5I2PmLSy\n"
	"sRhusUkx2pUh/p7AVQ==\n"
	"-----END CERTIFICATE-----\n";
/* clang-format on */

#endif
