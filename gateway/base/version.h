/* version.h - the product's version, as --version, serverInfo and sluice_build_info say it. */
#ifndef GATEWAY_BASE_VERSION_H
#define GATEWAY_BASE_VERSION_H

#define SLUICE_VERSION "0.1.0"

#endif
