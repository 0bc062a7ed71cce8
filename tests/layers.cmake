# Checks who may include what (STYLE.md 1, Direction). Prints each breach with its file, fails on any.
# cmake -DROOT=<checkout> -P layers.cmake
cmake_minimum_required(VERSION 3.25)

# A folder, and the folders its files may include from.
set(layers
	"codec    codec"
	"tenants  tenants codec"
	"routing  routing codec"
	"gateway  gateway tenants routing codec"
	"bench    bench gateway tenants routing codec"
	"tests    tests bench gateway tenants routing codec")

# A system or third-party header, and the files that may name it; the rest must go through those.
set(owned_headers
	"h2o(\\.h|/.*)                     gateway/(h2o|http_h2o|h2_guard|net_h2o)[a-z0-9_]*\\.h"
	"hiredis/.*|hiredis\\.h            (gateway|tests/unit/gateway)/(test_)?(store|state)_redis[a-z0-9_]*\\.[ch]"
	"event2/.*|event\\.h               gateway/(control|admin)[a-z0-9_]*\\.[ch]"
	"yaml\\.h                          gateway/settings[a-z0-9_]*\\.[ch]"
	"openssl/.*                        (codec/base/sha256\\.c|gateway/(tls|jwt)[a-z0-9_]*\\.[ch]|(bench|tests)/.*)"
	"cmocka\\.h                        tests/.*"
	"pthread\\.h|threads\\.h|time\\.h|unistd\\.h|poll\\.h|netdb\\.h|arpa/.*|netinet/.*|sys/(socket|epoll|time|un)\\.h
	                                   (gateway|bench|tests)/.*")

set(breaches 0)
function(breach place text)
	message("${place}: ${text}")
	math(EXPR breaches "${breaches} + 1")
	set(breaches ${breaches} PARENT_SCOPE)
endfunction()

# The one header that includes h2o.h is h2o as far as the rest is concerned.
set(h2o_headers "")
set(h2o_users "(gateway/(http_h2o|h2_guard|net_h2o)[a-z0-9_]*\\.[ch]|bench/plain_h2o\\.c)")

set(seen "")
foreach(layer IN LISTS layers)
	string(REGEX MATCHALL "[a-z]+" row ${layer})
	list(POP_FRONT row folder)
	set(allowed_${folder} ${row})
	file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${folder}/*.c ${ROOT}/${folder}/*.h)
	list(APPEND seen ${found})
endforeach()
list(FILTER seen EXCLUDE REGEX "/node_modules/")

# First pass: every include as "file|number|bracket|name".
set(includes "")
foreach(file IN LISTS seen)
	file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include")
	set(number 0)
	foreach(line IN LISTS lines)
		math(EXPR number "${number} + 1")
		if(line MATCHES "include[ \t]*([<\"])([^>\"]+)[>\"]")
			list(APPEND includes "${file}|${number}|${CMAKE_MATCH_1}|${CMAKE_MATCH_2}")
			if(CMAKE_MATCH_2 MATCHES "^h2o(\\.h|/)")
				list(APPEND h2o_headers ${file})
			endif()
		endif()
	endforeach()
endforeach()
list(REMOVE_DUPLICATES h2o_headers)

foreach(include IN LISTS includes)
	string(REPLACE "|" ";" parts "${include}")
	list(GET parts 0 file)
	list(GET parts 1 number)
	list(GET parts 2 bracket)
	list(GET parts 3 name)
	set(place "${file}: include ${number}")
	string(REGEX MATCH "^[a-z]+" folder ${file})

	if(bracket STREQUAL "\"")
		string(REGEX MATCH "^[a-z0-9_]+/" target ${name})
		string(REPLACE "/" "" target "${target}")
		if(NOT EXISTS ${ROOT}/${name})
			breach(${place} "\"${name}\" is not a path from the root of the checkout")
		elseif(NOT target IN_LIST allowed_${folder})
			string(REPLACE ";" ", " names "${allowed_${folder}}")
			breach(${place} "${folder}/ may include from ${names}, not \"${name}\"")
		endif()
		if(name IN_LIST h2o_headers AND NOT file MATCHES "^${h2o_users}$")
			breach(${place} "\"${name}\" shows h2o; only ${h2o_users} may see it")
		endif()
	endif()

	# Included first, a header cannot lean on what another brought in before it.
	if(number EQUAL 1 AND file MATCHES "\\.c$")
		string(REGEX REPLACE "\\.c$" ".h" own ${file})
		if(EXISTS ${ROOT}/${own} AND NOT name STREQUAL own)
			breach(${place} "the first include must be its own header, \"${own}\"")
		endif()
	endif()

	foreach(rule IN LISTS owned_headers)
		string(REGEX MATCH "^([^ \t\n]+)[ \t\n]+(.*)$" whole "${rule}")
		set(headers "${CMAKE_MATCH_1}")
		set(owners "${CMAKE_MATCH_2}")
		if(name MATCHES "^(${headers})$" AND NOT file MATCHES "^${owners}$")
			breach(${place} "<${name}> belongs to ${owners}")
		endif()
	endforeach()
endforeach()

list(LENGTH h2o_headers count)
if(count GREATER 1)
	string(REPLACE ";" ", " names "${h2o_headers}")
	breach("gateway" "h2o.h is included by ${count} files (${names}); one header does, the others include that")
endif()

list(LENGTH seen count)
if(count EQUAL 0)
	message(FATAL_ERROR "no sources under ${ROOT}")
endif()
if(breaches)
	message(FATAL_ERROR "${breaches} breaches of the layering in ${count} files")
endif()
message(STATUS "${count} files keep to the layering")
