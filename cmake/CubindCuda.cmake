# Finds the CUDA headers, which only tuner/worker includes. No CUDA library is ever linked: all are opened at run time.
#   cubind_cuda_headers      interface target with the include folders (cuda.h, nvrtc.h, cupti.h, nvml.h)
#   CUBIND_TEST_CUDA_HOME    a folder whose lib/ holds NVRTC of the newest major version, for the tests
#   CUBIND_TEST_CUDA12_HOME  the same with NVRTC 12.x; it may come while the tests are built, or never
# The first of these folders that has every header is taken: a toolkit without NVRTC is passed over for the Python
# wheels that ./dev deps unpacks into .deps.
set(CUBIND_DEPS_DIR "${PROJECT_SOURCE_DIR}/.deps" CACHE PATH "Where ./dev deps puts what Debian does not package")

function(cubind_find_cuda_home out)
  foreach(home IN ITEMS "$ENV{CUBIND_CUDA_HOME}" "$ENV{CUDA_HOME}" "/usr/local/cuda" "${CUBIND_DEPS_DIR}/cuda")
    if(home AND EXISTS "${home}/include/cuda.h" AND EXISTS "${home}/include/nvrtc.h" AND EXISTS "${home}/include/nvml.h"
       AND (EXISTS "${home}/include/cupti.h" OR EXISTS "${home}/extras/CUPTI/include/cupti.h"))
      set(${out} "${home}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

cubind_find_cuda_home(CUBIND_CUDA_HOME)
if(CUBIND_CUDA_HOME)
  message(STATUS "CUDA headers: ${CUBIND_CUDA_HOME}")
  set(CUBIND_CUDA_INCLUDE "${CUBIND_CUDA_HOME}/include")
  if(NOT EXISTS "${CUBIND_CUDA_HOME}/include/cupti.h")
    list(APPEND CUBIND_CUDA_INCLUDE "${CUBIND_CUDA_HOME}/extras/CUPTI/include")
  endif()
  add_library(cubind_cuda_headers INTERFACE)
  target_include_directories(cubind_cuda_headers SYSTEM INTERFACE ${CUBIND_CUDA_INCLUDE})
else()
  message(FATAL_ERROR "No folder has all of cuda.h, nvrtc.h, cupti.h and nvml.h. Run ./dev deps, which unpacks NVIDIA's "
                      "Python wheels into .deps/cuda, or name a CUDA 13 toolkit by CUBIND_CUDA_HOME.")
endif()

set(CUBIND_TEST_CUDA_HOME "${CUBIND_CUDA_HOME}")
set(CUBIND_TEST_CUDA12_HOME "${CUBIND_DEPS_DIR}/cuda12")
