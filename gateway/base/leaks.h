/* leaks.h - the leak check of a process that ends by _exit, in builds with AddressSanitizer. */
#ifndef GATEWAY_BASE_LEAKS_H
#define GATEWAY_BASE_LEAKS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_SEEN
#include <sanitizer/lsan_interface.h>
#endif
#endif

/* Ends the process with a report when something was lost; what the caller's frames and other threads
 * reach is in use. Nothing in other builds. */
static inline void leaks_check(void)
{
#ifdef LEAKS_ARE_SEEN
	__lsan_do_leak_check();
#endif
}

#endif
