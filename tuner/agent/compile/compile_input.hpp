#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "schemas/worker.pb.h"
#include "tuner/includes/compiler_file.hpp"

namespace cubind {

/// The headers of a closure. Immutable, and shared by all requests of a kernel.
struct SharedHeaders {
  Digest digest;
  std::vector<SharedFile> files;
};

/// What a compile worker is asked, and the headers that go with it: each worker gets them once.
struct CompileInput {
  v1::CompileRequest request;
  std::shared_ptr<const SharedHeaders> headers;  // null: none

  CompileInput() = default;
  CompileInput(v1::CompileRequest asked, std::shared_ptr<const SharedHeaders> shared = nullptr)  // NOLINT
      : request(std::move(asked)), headers(std::move(shared)) {}
};

}  // namespace cubind
