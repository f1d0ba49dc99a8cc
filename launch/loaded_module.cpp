#include "launch/loaded_module.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {

LoadedModule::LoadedModule(const cuda::DriverApi& api, const std::string& cubin,
                           std::vector<std::string> symbols, const std::string& owner)
    : api_(api), symbols_(std::move(symbols)) {
  cuda::check(api_, api_.module_load_data(&module_, cubin.data()), "loading the cubin of " + owner);
  try {
    find_functions();
  } catch (...) {
    api_.module_unload(module_);
    throw;
  }
}

LoadedModule::~LoadedModule() { api_.module_unload(module_); }

void LoadedModule::find_functions() {
  for (const std::string& symbol : symbols_) {
    cuda::Function& function = functions_.emplace_back(nullptr);
    cuda::check(api_, api_.module_get_function(&function, module_, symbol.c_str()), "finding " + symbol);
  }
}

std::size_t LoadedModule::number_of(const std::string& symbol) const {
  const auto found = std::ranges::find(symbols_, symbol);
  if (found == symbols_.end()) {
    throw Error(ErrorCode::InvalidArgument, "launch plan", "symbol " + quoted(symbol) + " was not loaded");
  }
  return static_cast<std::size_t>(found - symbols_.begin());
}

ModuleVariable LoadedModule::variable(const std::string& symbol) const {
  ModuleVariable found;
  std::size_t bytes = 0;
  cuda::check(api_, api_.module_get_global(&found.address, &bytes, module_, symbol.c_str()),
              "finding the variable " + symbol);
  found.bytes = bytes;
  return found;
}

void check_content(const std::string& argument, std::uint64_t bytes, const ModuleVariable& variable,
                   const std::string& symbol) {
  if (bytes > variable.bytes) {
    throw Error(ErrorCode::InvalidArgument, "argument " + argument,
                "has " + std::to_string(bytes) + " bytes, the variable " + symbol + " holds " +
                    std::to_string(variable.bytes));
  }
}

int LoadedModule::attribute(std::size_t index, cuda::FunctionAttribute which) const {
  int value = 0;
  cuda::check(api_, api_.func_get_attribute(&value, which, functions_[index]), "cuFuncGetAttribute");
  return value;
}

}  // namespace cubind
