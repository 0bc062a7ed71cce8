# layers.cmake must refuse each of these one-line trees, and accept the good one.
# cmake -DSCRATCH=<directory to overwrite> -P layers_refusals.cmake
cmake_minimum_required(VERSION 3.25)

# Writes `file` with the one line `text`, runs the check over that tree alone, wants `verdict`.
function(expect verdict file text)
	file(REMOVE_RECURSE ${SCRATCH})
	file(WRITE ${SCRATCH}/codec/base/slice.h "#include <stddef.h>\n")
	file(WRITE ${SCRATCH}/tenants/tenant.h "#include \"codec/base/slice.h\"\n")
	file(WRITE ${SCRATCH}/gateway/net/h2o_include.h "#include <h2o.h>\n")
	foreach(header net/net http/http worker/worker front/rpc/rpc)
		file(WRITE ${SCRATCH}/gateway/${header}.h "#include <stddef.h>\n")
	endforeach()
	file(WRITE ${SCRATCH}/codec/dialect/dialect.h "#include <stddef.h>\n")
	file(WRITE ${SCRATCH}/${file} "${text}\n")
	execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/layers.cmake
		RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
	if(verdict STREQUAL "good" AND result)
		message(FATAL_ERROR "${file} with ${text} was refused:\n${output}")
	elseif(verdict STREQUAL "bad" AND NOT (result AND output MATCHES "1 breaches"))
		message(FATAL_ERROR "${file} with ${text} was not refused as one breach:\n${output}")
	endif()
endfunction()

expect(good gateway/flow/flow.c        "#include \"tenants/tenant.h\"")
expect(good gateway/http/http_h2o.c    "#include \"gateway/net/h2o_include.h\"")
expect(good tests/t.c                  "#include <time.h>")
expect(bad  codec/sse/sse.c            "#include \"tenants/tenant.h\"")  # upward
expect(bad  routing/route.c            "#include \"tenants/tenant.h\"")  # sideways
expect(bad  codec/sse/sse.c            "#include \"slice.h\"")  # not from the root
expect(bad  tenants/tenant.c           "#include \"codec/base/slice.h\"")  # own header not first
expect(bad  gateway/worker/w.c         "#include \"gateway/net/h2o_include.h\"")  # h2o through the back door
expect(bad  gateway/flow/flow.c        "#include <event2/event.h>")
expect(bad  gateway/limits/limiter.c   "#include <hiredis/hiredis.h>")
expect(bad  gateway/flow/flow.c        "  #  include <yaml.h>")
expect(bad  tenants/quota.c            "#include <time.h>")  # a clock below gateway/
expect(bad  codec/sse/sse.c            "#include <pthread.h>")
expect(bad  tenants/auth.c             "#include <openssl/crypto.h>")
expect(good gateway/worker/w.c         "#include \"gateway/net/net.h\"")
expect(bad  gateway/front/mcp/m.c      "#include \"gateway/front/rpc/rpc.h\"")  # fronts do not see each other
expect(bad  gateway/flow/flow.c        "#include \"gateway/http/http.h\"")  # the flow knows no HTTP
expect(bad  gateway/limits/l.c         "#include \"gateway/worker/worker.h\"")  # upward, inside gateway/
expect(bad  codec/json/j.c             "#include \"codec/dialect/dialect.h\"")
expect(bad  bench/sim/s.c              "#include \"codec/dialect/dialect.h\"")  # it must not share what it is to test
file(REMOVE_RECURSE ${SCRATCH})
