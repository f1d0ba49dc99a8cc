# Two precompiled headers, compiled once and shared by every target that names one as its PCH:
#   std      the standard library; the default
#   proto    that and the messages of schemas/: pays where most files of a target include them
# A header belongs here only where it is cheap for those who do not need it: gRPC and nlohmann/json.hpp cost each file more
# (0.6 and 0.4 s for an empty one) than they save. Every file still includes what it uses: the lint-all preset goes without, file by file.
function(cubind_use_precompiled target pch)
  if(NOT TARGET cubind_pch_${pch})
    message(FATAL_ERROR "${target}: PCH is '${pch}', which is none of them")
  endif()
  target_precompile_headers(${target} REUSE_FROM cubind_pch_${pch})
  cubind_pch_options(${target})
endfunction()

# Precompiled headers that ccache can see through.
function(cubind_pch_options target)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  else()
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# cubind_precompile(name [LIBS ...] HEADERS ...): the header that PCH name stands for.
function(cubind_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS")
  set(source "${PROJECT_BINARY_DIR}/precompiled/${name}.cpp") # CMake compiles a header only together with a source
  file(CONFIGURE OUTPUT "${source}" CONTENT "// ${name}\n")
  add_library(cubind_pch_${name} OBJECT "${source}")
  target_link_libraries(cubind_pch_${name} PRIVATE cubind_options ${arg_LIBS})
  target_precompile_headers(cubind_pch_${name} PRIVATE ${arg_HEADERS})
  cubind_pch_options(cubind_pch_${name})
  set(launcher "${PROJECT_SOURCE_DIR}/cmake/compile_pch.sh" ${CMAKE_CXX_COMPILER_LAUNCHER})
  set_target_properties(cubind_pch_${name} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
endfunction()

set(CUBIND_STANDARD_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <deque> <filesystem> <functional> <iostream>
  <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility>
  <variant> <vector>)
set(CUBIND_MESSAGE_HEADERS <schemas/cubind.pb.h> <schemas/facts.pb.h> <schemas/agent.pb.h> <schemas/worker.pb.h>)
cubind_precompile(std HEADERS ${CUBIND_STANDARD_HEADERS})
cubind_precompile(proto LIBS cubind_proto HEADERS ${CUBIND_STANDARD_HEADERS} ${CUBIND_MESSAGE_HEADERS})
