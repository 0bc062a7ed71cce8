# Checks that the core speaks nobody's protocol: what is below gateway/front/ names no HTTP request, header, status or path of
# ours, and no JSON-RPC. Prints each line that does, fails on any.
# cmake -DROOT=<checkout> -P core.cmake
cmake_minimum_required(VERSION 3.25)

# The rooms of the core, and what none of their lines may match. Providers' answers are read in flow/ too: their
# statuses are compared as classes (/ 100, >= 400), and their headers have names in upstream/.
set(rooms flow sampling identity limits state providers)
set(words
	"http_(incoming|exchange|field|header|handler|answer|refuse|more|end)"
	"HTTP_[A-Z]"
	"gateway/(http|front)/"
	"\"/v1/"
	"\\\\\"jsonrpc|jsonrpc_|RPC_[A-Z]|(^|[^0-9a-zA-Z_])rpc_"
	"(mcp-session-id|mcp-protocol-version|sluice-timeout|sluice-request-id|idempotency-key|www-authenticate|\"retry-after|cache-control|x-accel-buffering|\"origin)"
	"err_info\\([^;]*->status"
	"(^|[^0-9a-zA-Z_.,])(202|204|401|403|404|405|406|409|413|415|429|499|503|504)([^0-9a-zA-Z_.,]|$)")

# Each of these lines must be found, or the words above are worth nothing.
set(samples
	"	const struct http_incoming *in"
	"	name = in->headers[HTTP_ORIGIN]"
	"#include \"gateway/http/http.h\""
	"	path = SLICE(\"/v1/sampling\")"
	"	gather_lit(body, \"{\\\"jsonrpc\\\":\\\"2.0\\\"\")"
	"	struct rpc_error_data data"
	"	add(SLICE(\"mcp-session-id\"), id)"
	"	status = err_info(err)->status"
	"	return answer_empty(flow, 202)")

function(find_word line out)
	set(${out} "" PARENT_SCOPE)
	foreach(word IN LISTS words)
		if(line MATCHES "${word}")
			set(${out} "${CMAKE_MATCH_0}" PARENT_SCOPE)
			return()
		endif()
	endforeach()
endfunction()

foreach(sample IN LISTS samples)
	find_word("${sample}" found)
	if(found STREQUAL "")
		message(FATAL_ERROR "nothing is found in: ${sample}")
	endif()
endforeach()

set(breaches 0)
set(count 0)
foreach(room IN LISTS rooms)
	file(GLOB files RELATIVE ${ROOT} ${ROOT}/gateway/${room}/*.[ch] ${ROOT}/gateway/${room}/tbl/*.h)
	foreach(file IN LISTS files)
		math(EXPR count "${count} + 1")
		foreach(word IN LISTS words)
			file(STRINGS ${ROOT}/${file} lines REGEX "${word}")
			foreach(line IN LISTS lines)
				string(REGEX REPLACE "(/\\*|^[ \t]*\\*).*$" "" code "${line}") # a comment may speak of anything
				if(NOT code MATCHES "${word}")
					continue()
				endif()
				message("${file}: ${line}")
				math(EXPR breaches "${breaches} + 1")
			endforeach()
		endforeach()
	endforeach()
endforeach()
if(count LESS 50)
	message(FATAL_ERROR "only ${count} files of the core under ${ROOT}")
endif()
if(breaches)
	message(FATAL_ERROR "${breaches} lines of the core speak a protocol: that is a front's (gateway/front/)")
endif()
message(STATUS "${count} files of the core speak no protocol")
