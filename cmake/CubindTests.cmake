# cubind_add_test(NAME unit_expr LABEL unit|unit_native|nvrtc|postgres|service|report|slow|gpu SOURCES a_test.cpp ... [LIBS ...] [PCH std|proto]
#                 [APART] [TIMEOUT seconds] [PROPERTIES name value ...])
#   One Catch2 executable, <build>/tests/<NAME>; each of its test cases is a CTest test with the label and its timeout.
#   main() comes with it (tests/support), and so does catch.hpp, precompiled with what PCH names
#   (cmake/CubindPrecompiled.cmake; default: std). APART: each source is compiled alone, since they give one name to
#   different things. An executable or filter that selects no test fails. `tests/support/paths.hpp` says where sources,
#   programs and CUDA libraries are.
include(Catch)

cubind_precompile(test_std LIBS Catch2::Catch2 HEADERS ${CUBIND_STANDARD_HEADERS} <catch2/catch.hpp>)
cubind_precompile(test_proto LIBS Catch2::Catch2 cubind_proto
  HEADERS ${CUBIND_STANDARD_HEADERS} ${CUBIND_MESSAGE_HEADERS} <catch2/catch.hpp>)

set(CUBIND_TIMEOUT_unit 60)
set(CUBIND_TIMEOUT_unit_native 60)
set(CUBIND_TIMEOUT_nvrtc 180)
set(CUBIND_TIMEOUT_service 180)
set(CUBIND_TIMEOUT_postgres 180)
set(CUBIND_TIMEOUT_report 120)
set(CUBIND_TIMEOUT_slow 1800)
set(CUBIND_TIMEOUT_gpu 300)

function(cubind_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "APART" "NAME;LABEL;PCH;TIMEOUT" "SOURCES;LIBS;PROPERTIES")
  cubind_check_arguments(cubind_add_test)
  if(NOT DEFINED CUBIND_TIMEOUT_${arg_LABEL})
    message(FATAL_ERROR "cubind_add_test(${arg_NAME}): LABEL is '${arg_LABEL}', it must be unit, unit_native, nvrtc, postgres, service, report, slow or gpu")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${CUBIND_TIMEOUT_${arg_LABEL}})
  endif()
  if(CUBIND_SANITIZE)
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  if(NOT arg_APART)
    cubind_batches(${arg_NAME} arg_SOURCES)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${arg_NAME} PRIVATE cubind_options cubind_test_main ${arg_LIBS})
  if(NOT arg_PCH)
    set(arg_PCH std)
  endif()
  cubind_use_precompiled(${arg_NAME} test_${arg_PCH})
  if(arg_LABEL STREQUAL "gpu")
    cubind_ship(${arg_NAME} tests tests)
  endif()
  set_property(GLOBAL APPEND PROPERTY CUBIND_TESTS_${arg_LABEL} ${arg_NAME})
  catch_discover_tests(${arg_NAME}
    TEST_PREFIX "${arg_NAME}: "
    EXTRA_ARGS -w NoTests
    # What may take longest begins first, so that it does not run alone at the end.
    # The line is that of skip_test() in tests/support/skip.hpp.
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} SKIP_REGULAR_EXPRESSION "test skipped: "
               ${arg_PROPERTIES})
endfunction()
