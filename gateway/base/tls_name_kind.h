/* tls_name_kind.h - which of a certificate's names lead to a tenant. */
#ifndef GATEWAY_BASE_TLS_NAME_KIND_H
#define GATEWAY_BASE_TLS_NAME_KIND_H

enum tls_name_kind { TLS_NAME_URI, TLS_NAME_DNS };

#endif
