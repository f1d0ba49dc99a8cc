#include "tuner/agent/compile_input.hpp"

#include "tuner/plan/answer_wire.hpp"

namespace cubind {

v1::CompileRequest request_with_headers(const CompileInput& input, bool worker_has_them) {
  v1::CompileRequest request = input.request;
  if (!input.headers) {
    return request;
  }
  v1::HeaderSet& set = *request.mutable_header_set();
  set.set_digest(bytes_of(input.headers->digest));
  if (!worker_has_them) {
    for (const SharedFile& file : input.headers->files) {
      v1::SourceFile& header = *set.add_files();
      header.set_path(file->name);
      header.set_content(file->content);
    }
  }
  return request;
}

}  // namespace cubind
