# Checks who may include what (STYLE.md 1, Direction). Prints each breach with its file, fails on any.
# cmake -DROOT=<checkout> -P layers.cmake
cmake_minimum_required(VERSION 3.25)

# A folder, and the folders that its files may include from beside itself; of several rows that fit a file the longest
# prefix counts. `codec`, `gateway`: the few files at the top, which may see all of theirs; with a slash: all below.
set(layers
	"codec/tbl"
	"codec/isa"
	"codec/base                codec/tbl"
	"codec/json                codec/base codec/isa codec/tbl"
	"codec/sse                 codec/base codec/isa codec/json"
	"codec/schema              codec/base codec/json codec/tbl"
	"codec/mcp                 codec/base codec/json codec/tbl"
	"codec/dialect             codec/base codec/isa codec/json codec/sse codec/schema codec/mcp codec/tbl"
	"codec/dialect/anthropic   codec/base codec/isa codec/json codec/sse codec/schema codec/mcp codec/tbl codec/dialect"
	"codec/dialect/openai      codec/base codec/isa codec/json codec/sse codec/schema codec/mcp codec/tbl codec/dialect"
	"codec/dialect/responses   codec/base codec/isa codec/json codec/sse codec/schema codec/mcp codec/tbl codec/dialect"
	"codec/api                 codec/base codec/isa codec/json codec/mcp codec/sse"
	"codec/cross               codec/base codec/json codec/mcp codec/api codec/dialect"
	"codec                     codec/"
	"tenants                   codec/"
	"routing                   codec/"
	"gateway/base              tenants/ routing/ codec/"
	"gateway/tls               gateway/base codec/"
	"gateway/telemetry         gateway/base codec/"
	"gateway/net               gateway/base gateway/tls codec/"
	"gateway/http              gateway/base gateway/tls gateway/net codec/"
	"gateway/upstream          gateway/base gateway/tls gateway/net codec/"
	"gateway/redis             gateway/base gateway/tls gateway/net codec/"
	"gateway/providers         gateway/base routing/ codec/"
	"gateway/identity          gateway/base gateway/tls tenants/ codec/"
	"gateway/limits            gateway/base gateway/net gateway/redis gateway/telemetry tenants/ codec/"
	"gateway/state             gateway/base gateway/net gateway/redis gateway/telemetry codec/"
	"gateway/flow              gateway/base gateway/telemetry gateway/upstream gateway/identity gateway/providers gateway/limits gateway/state tenants/ routing/ codec/"
	"gateway/sampling          gateway/base gateway/net gateway/telemetry gateway/upstream gateway/identity gateway/providers gateway/limits gateway/state gateway/flow tenants/ routing/ codec/"
	"gateway/front             gateway/base gateway/net gateway/http gateway/telemetry gateway/identity gateway/sampling tenants/ codec/"
	"gateway/front/rpc         gateway/front gateway/base gateway/net gateway/http gateway/telemetry gateway/identity gateway/state gateway/sampling tenants/ codec/"
	"gateway/front/mcp         gateway/front gateway/base gateway/net gateway/http gateway/telemetry gateway/identity gateway/limits gateway/state gateway/upstream gateway/sampling tenants/ codec/"
	"gateway/front/api         gateway/front gateway/base gateway/net gateway/http gateway/telemetry gateway/identity gateway/sampling tenants/ codec/"
	"gateway/front/approvals   gateway/front gateway/base gateway/net gateway/http gateway/telemetry gateway/identity gateway/state tenants/ codec/"
	"gateway/worker            gateway/base gateway/tls gateway/net gateway/redis gateway/http gateway/upstream gateway/telemetry gateway/providers gateway/identity gateway/limits gateway/state gateway/flow gateway/sampling gateway/front/ tenants/ routing/ codec/"
	"gateway/settings          gateway/base gateway/tls gateway/providers gateway/state tenants/ routing/ codec/"
	"gateway/ipc               gateway/base gateway/settings codec/"
	"gateway/fetch             gateway/tls gateway/upstream codec/"
	"gateway/control           gateway/base gateway/tls gateway/net gateway/http gateway/upstream gateway/fetch gateway/telemetry gateway/identity gateway/limits gateway/state gateway/worker gateway/settings gateway/ipc tenants/ codec/"
	"gateway/process           gateway/base gateway/tls gateway/telemetry gateway/limits gateway/state gateway/worker gateway/settings gateway/ipc gateway/control codec/"
	"gateway/command           gateway/base gateway/telemetry gateway/providers gateway/flow gateway/sampling gateway/settings gateway/front/ tenants/ routing/ codec/"
	"gateway/wrap              gateway/tls gateway/fetch gateway/settings routing/ codec/"
	"gateway                   gateway/ codec/"
	"bench/sim                 codec/base"
	"bench/load                codec/base"
	"bench                     bench/ gateway/ tenants/ routing/ codec/"
	"tests                     tests/ bench/ gateway/ tenants/ routing/ codec/")

# A system or third-party header, and the files that may name it; the rest must go through those.
set(owned_headers
	"h2o(\\.h|/.*)                     gateway/net/h2o_include\\.h"
	"hiredis/.*|hiredis\\.h            (gateway/redis/.*|gateway/(limits|state)/[a-z_]*redis[a-z0-9_]*\\.[ch]|tests/unit/gateway/(redis|limits|state)/.*)"
	"event2/.*|event\\.h               gateway/(control|fetch|wrap)/.*"
	"yaml\\.h                          gateway/settings/.*"
	"openssl/.*                        (codec/base/sha256\\.c|gateway/(tls|identity)/.*|(bench|tests)/.*)"
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
set(h2o_users "(gateway/http/.*|gateway/net/(net_h2o\\.[ch]|override_mem\\.c)|bench/attacks/plain_h2o\\.c)")

set(seen "")
foreach(layer IN LISTS layers)
	string(REGEX MATCHALL "[a-z0-9_/]+" row ${layer})
	list(POP_FRONT row folder)
	set("allowed_${folder}" ${row})
	list(APPEND folders ${folder})
endforeach()
foreach(top codec tenants routing gateway bench tests)
	file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${top}/*.c ${ROOT}/${top}/*.h)
	list(APPEND seen ${found})
endforeach()

# The row that a file belongs to: its folder's, else that of the nearest one above.
function(row_of file out)
	get_filename_component(at "${file}" DIRECTORY)
	while(NOT at IN_LIST folders AND at MATCHES "/")
		get_filename_component(at "${at}" DIRECTORY)
	endwhile()
	set(${out} ${at} PARENT_SCOPE)
endfunction()

# Whether a file of row `from` may include one of row `to`.
function(may_see from to out)
	set(${out} FALSE PARENT_SCOPE)
	if(from STREQUAL to OR to IN_LIST "allowed_${from}")
		set(${out} TRUE PARENT_SCOPE)
		return()
	endif()
	foreach(one IN LISTS "allowed_${from}")
		if(one MATCHES "/$" AND "${to}/" MATCHES "^${one}")
			set(${out} TRUE PARENT_SCOPE)
		endif()
	endforeach()
endfunction()
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
	row_of(${file} folder)

	if(bracket STREQUAL "\"")
		row_of("${name}" target)
		may_see("${folder}" "${target}" allowed)
		if(NOT EXISTS ${ROOT}/${name})
			breach(${place} "\"${name}\" is not a path from the root of the checkout")
		elseif(NOT allowed)
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
