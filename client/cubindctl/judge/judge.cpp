// cubindctl judge: an untrusted source, against a task.
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/judge/verdict_file.hpp"
#include "client/cubindctl/report/report_page.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::chrono::minutes kPatience{10};  // for a GPU that others use, too
const std::string kSpecSuffix = ".json";

void add_file(const std::string& file, google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (valid_utf8(name) != name) {
    throw Error(ErrorCode::InvalidArgument, file, "the file's name is not UTF-8");
  }
  v1::SourceFile& added = *files.Add();
  added.set_path(name);
  added.set_content(read_file(file));
}

void set_task(const std::string& task, v1::EvaluateRequest& request) {
  if (!task.ends_with(kSpecSuffix)) {
    request.set_kernel(task);
    return;
  }
  const auto spec = load_kernel_spec(task);
  v1::SpecBundle bundle;
  to_wire(spec->bundle, bundle);
  request.set_spec_json(bundle.spec_json());
  *request.mutable_task_files() = bundle.files();
}

v1::EvaluateRequest request_of(const JudgeOptions& options) {
  if (options.task.empty() || options.source.empty() || options.problems.empty()) {
    throw Error(ErrorCode::InvalidArgument, "judge",
                "name a task and a source, with --problem, or a verdict with --verify");
  }
  v1::EvaluateRequest request;
  set_task(options.task, request);
  add_file(options.source, *request.mutable_files());
  for (const std::string& header : options.headers) {
    add_file(header, *request.mutable_files());
  }
  for (const std::string& problem : options.problems) {
    to_wire(parse_problem(problem), *request.add_problems());
  }
  request.mutable_grid()->Assign(options.grid.begin(), options.grid.end());
  request.mutable_block()->Assign(options.block.begin(), options.block.end());
  request.set_shared_bytes(options.shared_bytes);
  if (!options.baseline.empty()) {
    to_wire(Configuration{parse_problem(options.baseline).dims}, *request.mutable_baseline());
  }
  if (!options.device.empty()) {
    request.mutable_device()->set_label(options.device);
  }
  request.set_namespace_(options.name_space);
  request.set_rounds(options.rounds);
  request.set_keep(options.keep);
  request.set_deterministic(options.deterministic);
  return request;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::string gain_text(const OutputJson& json) {
  return number(json["gain"]) + " (" + number(json["gain_low"]) + " to " + number(json["gain_high"]) + ")";
}

// "N=4096,T=f32".
std::string problem_text(const OutputJson& problem) {
  std::vector<std::string> parts;
  for (const char* section : {"dims", "types", "flags"}) {
    for (const auto& [name, value] : problem[section].items()) {
      parts.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  return join(parts, ",");
}

void print(const OutputJson& verdict, const std::string& signer) {
  std::cout << verdict["outcome"].get<std::string>();
  if (verdict.contains("gain")) {
    std::cout << ": the baseline takes " << gain_text(verdict) << " times as long";
  }
  std::cout << (signer.empty() ? "" : ", signed by " + signer) << "\n";
  for (const OutputJson& one : verdict["problems"]) {
    std::cout << "  " << problem_text(one["problem"]) << ": " << one["outcome"].get<std::string>();
    if (one.contains("gain")) {
      std::cout << ", " << gain_text(one);
    }
    if (one.contains("detail")) {
      std::cout << ": " << one_line(one["detail"].get<std::string>());
    }
    if (one.contains("note")) {
      std::cout << "; " << one_line(one["note"].get<std::string>());
    }
    std::cout << "\n";
  }
}

ExitCode show(const OutputJson& verdict, const std::string& signer, const JudgeOptions& options,
              const CommonOptions& common) {
  if (common.json) {
    print_json(verdict);
  } else {
    print(verdict, signer);
  }
  if (!options.html.empty()) {
    write_output(options.html, verdict_page(verdict));
  }
  return verdict["outcome"] == "correct" ? ExitCode::Ok : ExitCode::Failure;
}

}  // namespace

ExitCode run(const JudgeOptions& options, const CommonOptions& common) {
  if (!options.verify.empty()) {
    const SignedVerdict verified = verify_verdict(options.verify, read_trust_file(options.trust));
    return show(verified.verdict, verified.signer, options, common);
  }
  const v1::EvaluateRequest request = request_of(options);
  const auto key = options.key.empty() ? std::nullopt : std::optional(SecretKey::read(options.key));
  const Connection connection(resolve_address(common.address));
  const std::string text = connection.evaluate(request, common.timeout.value_or(kPatience)).verdict_json();
  // First: a file that cannot be written loses no verdict.
  const ExitCode shown = show(OutputJson::parse(text), "", options, common);
  if (!options.out.empty()) {
    write_verdict(text, options.out, key);
  }
  return shown;
}

}  // namespace cubind::ctl
