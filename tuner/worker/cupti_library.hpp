// libcupti, opened at run time. Only this and cupti_timer.cpp know CUPTI.
#pragma once

#include <cupti.h>

#include <memory>
#include <string>
#include <vector>

namespace cubind::worker {

struct CuptiLibrary {
  decltype(&cuptiActivityEnable) activity_enable = nullptr;
  decltype(&cuptiActivityDisable) activity_disable = nullptr;
  decltype(&cuptiActivitySetAttribute) activity_set_attribute = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) activity_register_callbacks = nullptr;
  decltype(&cuptiActivityFlushAll) activity_flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) activity_get_next_record = nullptr;
  decltype(&cuptiGetResultString) get_result_string = nullptr;
  std::string path;

  std::string describe(CUptiResult result) const;
};

/// Where libcupti is looked for: CUBIND_CUDA_HOME, CUDA_HOME, the usual toolkit folder (extras/CUPTI too),
/// the Python wheels, the folder that the package brings, and at last the loader's own search.
std::vector<std::string> cupti_candidates();

/// Null if none loads or one lacks a function; `tried` then says why.
std::unique_ptr<CuptiLibrary> find_cupti(std::string& tried);

}  // namespace cubind::worker
