#include "tuner/worker/precompiled_headers.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "tuner/includes/header_prefix.hpp"

namespace cubind::worker {
namespace {

// cuda_fp16.h and what it includes (1.3 MB) take 0.02 s to read, the smallest parts of CCCL (2.6 MB) 0.4 s.
constexpr std::size_t kLargeHeaders = std::size_t{2} << 20;

// Suppresses a warning that #line forbids a precompiled header: by then the header has been made.
constexpr const char* kQuietLine = "#pragma nv_diag_suppress 20283\n";

std::size_t bytes_of(const v1::HeaderSet& headers) {
  std::size_t bytes = 0;
  for (const v1::SourceFile& header : headers.files()) {
    bytes += header.content().size();
  }
  return bytes;
}

std::string name_of(const std::string& define) { return define.substr(0, define.find('=')); }

// Of --define-macro=NAME or NAME=VALUE.
std::string directive(const std::string& define) {
  const std::size_t equals = define.find('=');
  const std::string value = equals == std::string::npos ? "1" : define.substr(equals + 1);
  return "#define " + name_of(define) + " " + value + "\n";
}

bool has_comment(const std::string& define) {
  return define.find("//") != std::string::npos || define.find("/*") != std::string::npos;
}

}  // namespace

std::optional<PrecompiledHeaders::Attempt> PrecompiledHeaders::attempt(const v1::CompileRequest& request,
                                                                       const v1::HeaderSet& headers,
                                                                       std::vector<std::string> options) {
  if (!request.headers().empty() || bytes_of(headers) < kLargeHeaders ||
      std::ranges::any_of(request.defines(), has_comment)) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  std::string behind;
  for (const std::string& define : request.defines()) {
    if (is_mentioned(name_of(define), headers)) {
      options.push_back("--define-macro=" + define);
    } else {
      names.push_back(name_of(define));
      behind += directive(define);
    }
  }
  const std::string& source = request.source();
  const std::string prefix = source.substr(0, header_prefix(source, names));
  Attempt attempt;
  attempt.key = headers.digest() + join(options, "\n") + "\n" + prefix;
  const bool follows_its_like = attempt.key == std::exchange(last_key_, attempt.key);
  attempt.makes = attempt.key != key_;
  const bool is_worth_it = follows_its_like || (request.others_follow() && (key_.empty() || is_used_));
  if (prefix.empty() || attempt.key == refused_key_ || (attempt.makes && !is_worth_it)) {
    return std::nullopt;
  }
  attempt.source = prefix + "#pragma nv_hdrstop\n" + behind + kQuietLine + "#line " +
                   std::to_string(std::ranges::count(prefix, '\n') + 1) + "\n" + source.substr(prefix.size());
  if (attempt.makes) {
    forget();  // NVRTC would delete a file of this name first, which it cannot
  }
  options.push_back((attempt.makes ? "--create-pch=" : "--use-pch=") + file_.name());
  options.insert(options.end(), {"--pch-verbose=true", "--pch-messages=true"});
  attempt.options = std::move(options);
  return attempt;
}

bool PrecompiledHeaders::accept(const Attempt& attempt, std::string& log) {
  // NVRTC prints the file's name after it has read the headers: messages before that are about the headers.
  const std::size_t name = log.find(file_.name());
  const std::size_t line = name == std::string::npos ? 0 : log.rfind('\n', name) + 1;
  if (name == std::string::npos || !trimmed(std::string_view(log).substr(0, line)).empty()) {
    refuse(attempt.key);
    return false;
  }
  is_used_ = !attempt.makes;
  key_ = attempt.key;
  log.erase(line, log.find('\n', line) + 1 - line);
  return true;
}

void PrecompiledHeaders::refuse(const std::string& key) {
  refused_key_ = key;
  forget();
}

void PrecompiledHeaders::forget() {
  key_.clear();
  file_.clear();
}

bool PrecompiledHeaders::is_mentioned(const std::string& name, const v1::HeaderSet& headers) {
  const auto [entry, is_new] = mentioned_.emplace(name, false);
  if (is_new) {
    entry->second = std::ranges::any_of(
        headers.files(), [&](const v1::SourceFile& header) { return has_word(header.content(), name); });
  }
  return entry->second;
}

}  // namespace cubind::worker
