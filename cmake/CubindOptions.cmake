# How every target is compiled and linked. Carried by the interface target cubind_options.
include(CMakeDependentOption)
if(PROJECT_IS_TOP_LEVEL)
  set(CUBIND_IS_PART OFF)
else()
  set(CUBIND_IS_PART ON) # of another project, by add_subdirectory
endif()
option(CUBIND_CLIENT_ONLY "Only the client library, which needs no CUDA headers" ${CUBIND_IS_PART})
cmake_dependent_option(CUBIND_BUILD_TESTS "Build the tests" ON "NOT CUBIND_CLIENT_ONLY" OFF)
option(CUBIND_WERROR "Warnings are errors in our own code" OFF)
set(CUBIND_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them (address,undefined or thread)")

# Several sources of a target are compiled as one file: most of the time goes into headers that they share. A name that two
# of them give to different things is then an error, also in anonymous namespaces. ./dev lint looks at the same batches, ./dev lint --all at each file.
cmake_dependent_option(CUBIND_UNITY "Compile the sources of a target sixteen at a time" ON "NOT CUBIND_IS_PART" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CUBIND_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

if(NOT CMAKE_BUILD_TYPE AND NOT CUBIND_IS_PART)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "Debug or Release" FORCE)
endif()
# Two cores build everything here: -g1 keeps line numbers in backtraces at a third of the cost of -g. g++ compiles as fast with
# -Og as with -O0, and daemons start in a third of the time; clang with its sanitizers takes more than twice as long.
set(CUBIND_DEBUG_LEVEL -O0)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CUBIND_DEBUG_LEVEL -Og)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "${CUBIND_DEBUG_LEVEL} -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -fno-semantic-interposition")

add_library(cubind_options INTERFACE)
target_include_directories(cubind_options INTERFACE "${PROJECT_SOURCE_DIR}" "${CUBIND_GENERATED_DIR}")
set(CUBIND_WARNINGS
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CUBIND_UNITY}>>:-Wno-subobject-linkage> # it takes a source for a header there
  $<$<BOOL:${CUBIND_WERROR}>:-Werror>)
if(CUBIND_IS_PART)
  # A project that links the client chooses its own warnings.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${CUBIND_WARNINGS}>")
  target_compile_features(cubind_options INTERFACE cxx_std_20)
else()
  target_compile_options(cubind_options INTERFACE ${CUBIND_WARNINGS})
endif()

# The same for every target, so that executables and libraries can share a precompiled header.
add_compile_options(-fPIC -pthread)
# Paths in messages and debug information are relative to the checkout.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")

if(CUBIND_SANITIZE)
  add_compile_options(-fsanitize=${CUBIND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CUBIND_SANITIZE})
  if(CUBIND_SANITIZE MATCHES "undefined")
    # vptr would look into classes of libgrpc++ and libprotobuf, which are not instrumented.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

# ---- The linker: the fastest that is installed ----
include(CheckCXXSourceCompiles)
function(cubind_try_linker flags result)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${flags})
  check_cxx_source_compiles("int main() { return 0; }" ${result})
  set(${result} "${${result}}" PARENT_SCOPE)
endfunction()
find_program(CUBIND_MOLD mold)
find_program(CUBIND_LLD ld.lld HINTS /usr/lib/llvm-16/bin)
if(CUBIND_MOLD)
  cubind_try_linker("-fuse-ld=mold" CUBIND_MOLD_WORKS)
endif()
if(CUBIND_MOLD AND CUBIND_MOLD_WORKS)
  add_link_options(-fuse-ld=mold)
elseif(CUBIND_LLD)
  get_filename_component(CUBIND_LLD_DIR "${CUBIND_LLD}" DIRECTORY)
  cubind_try_linker("-B${CUBIND_LLD_DIR};-fuse-ld=lld" CUBIND_LLD_WORKS)
  if(CUBIND_LLD_WORKS)
    add_link_options("-B${CUBIND_LLD_DIR}" -fuse-ld=lld)
  endif()
endif()

# ---- ccache, also across build folders and checkouts, and with precompiled headers ----
# It is not told to overlook headers that are newer than the compile (include_file_mtime): a header that changes while a compile runs
# would then be remembered with the old one's object.
find_program(CUBIND_CCACHE ccache)
if(CUBIND_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros "${CUBIND_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
