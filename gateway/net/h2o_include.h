/* h2o_include.h - the only place that includes <h2o.h>.
 *
 * pkg-config does not name the loop that the package was built for; with another choice h2o.h
 * declares another ABI, so it is fixed here. The guard reads and replaces sock->_cb, a field of a
 * public struct: this code is for the packaged version alone. */
#ifndef GATEWAY_NET_H2O_INCLUDE_H
#define GATEWAY_NET_H2O_INCLUDE_H

#ifndef H2O_USE_EPOLL
#define H2O_USE_EPOLL 1
#endif
#ifndef H2O_USE_LIBUV
#define H2O_USE_LIBUV 0
#endif

#include <h2o.h>
#include <h2o/http1.h>
#include <h2o/http2.h>
#include <h2o/http2_internal.h>

_Static_assert(H2O_USE_EPOLL && !H2O_USE_LIBUV, "libh2o-evloop is built for epoll");
_Static_assert(H2O_LIBRARY_VERSION_MAJOR == 0 && H2O_LIBRARY_VERSION_MINOR == 13,
	       "the guard knows the insides of libh2o 2.2.5 (library version 0.13)");

#endif
