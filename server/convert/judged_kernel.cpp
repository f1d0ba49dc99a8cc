#include "server/convert/judged_kernel.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"

namespace cubind {
namespace {

constexpr const char* kSource = "judged.cu";
const std::string kFolder = "judged/";

// Headers of other folders come into the kernel's own, which is all that a definition has.
void take_headers(const KernelSpec& task, OrderedJson& json, std::vector<SourceFile>& files) {
  for (std::size_t i = 0; i < task.headers.size(); ++i) {
    const std::string folder = "headers/" + std::to_string(i);
    json["headers"][i] = folder;
    for (SourceFile& file : files) {
      if (file.path.starts_with(task.headers[i] + "/")) {
        file.path = folder + file.path.substr(task.headers[i].size());
      }
    }
  }
}

void choose(OrderedJson& baseline, const std::vector<std::string>& own) {
  if (own.empty()) {
    return;
  }
  OrderedJson both = OrderedJson::array();
  for (std::size_t i = 0; i < std::max(own.size(), baseline.size()); ++i) {
    const std::string theirs = i < baseline.size() ? baseline[i].get<std::string>() : "1";
    const std::string ours = i < own.size() ? own[i] : "1";
    both.push_back(
        std::string(kBaselineTunable).append(" ? (").append(theirs).append(") : (").append(ours).append(")"));
  }
  baseline = std::move(both);
}

void set_launch(const JudgedLaunch& launch, OrderedJson& launches) {
  if (launch.grid.empty() && launch.block.empty() && launch.shared_bytes.empty()) {
    return;
  }
  if (launches.size() != 1) {
    throw Error(
        ErrorCode::InvalidArgument, "grid",
        "the task has " + std::to_string(launches.size()) + " launches: the source is launched like it");
  }
  OrderedJson& only = launches[0];
  choose(only["grid"], launch.grid);
  choose(only["block"], launch.block);
  if (!launch.shared_bytes.empty()) {
    only["shared_bytes"] = std::string(kBaselineTunable) + " ? (" + only.value("shared_bytes", "0") +
                           ") : (" + launch.shared_bytes + ")";
  }
}

// The source's own launch, without the baseline's.
void set_own(const JudgedLaunch& launch, OrderedJson& only) {
  if (!launch.grid.empty()) {
    only["grid"] = launch.grid;
  }
  if (!launch.block.empty()) {
    only["block"] = launch.block;
  }
  if (!launch.shared_bytes.empty()) {
    only["shared_bytes"] = launch.shared_bytes;
  }
}

// Baseline and source are compiled with the same headers: what the compiler would not take fails both.
void check_text(const SourceFile& file) {
  if (file.content.find('\0') != std::string::npos) {
    throw Error(ErrorCode::InvalidArgument, file.path, "holds a zero byte: a source is text");
  }
}

}  // namespace

Configuration judged_configuration(const Configuration& baseline, bool is_baseline) {
  Configuration configuration = baseline;
  configuration.values.push_back({kBaselineTunable, is_baseline ? 1 : 0});
  return configuration;
}

std::shared_ptr<const KernelSpec> judged_kernel(const std::string& name, const KernelSpec& task,
                                                const Configuration& baseline,
                                                const std::vector<SourceFile>& files,
                                                const JudgedLaunch& launch) {
  if (task.triton) {
    throw Error(ErrorCode::InvalidArgument, "kernel", task.name + " is a Triton kernel: a task is CUDA C++");
  }
  OrderedJson json = parse_json_strict(task.bundle.spec_json, task.file);
  SpecBundle bundle{"the task " + task.name, "", task.bundle.files};
  json["name"] = name;
  json["source"] = kSource;
  if (json["reference"].is_object() && !json["reference"].contains("source")) {
    json["reference"]["source"] = task.source;  // by default it would be the one that is judged
  }
  json["problem"].erase("bucket");
  json["tunables"] = OrderedJson::object();
  OrderedJson preset = OrderedJson::object();
  for (const NamedValue& value : baseline.values) {
    json["tunables"][value.name] = {value.value};
    preset[value.name] = value.value;
  }
  json["tunables"][kBaselineTunable] = {0, 1};
  preset[kBaselineTunable] = 1;
  json["default"] = OrderedJson::array({std::move(preset)});
  json["defines"].push_back(std::string(kBaselineTunable) + "={" + kBaselineTunable + "}");
  set_launch(launch, json["launches"]);
  take_headers(task, json, bundle.files);
  for (const SourceFile& file : files) {
    check_text(file);
    bundle.files.push_back({kFolder + file.path, file.content});
  }
  // The name makes each text another, so that no two verdicts share a measurement.
  bundle.files.push_back({kSource, "// " + name + "\n#if " + kBaselineTunable + "\n#include \"" +
                                       task.source + "\"\n#else\n#include \"" + kFolder + files.at(0).path +
                                       "\"\n#endif\n"});
  bundle.spec_json = json.dump(1);
  try {
    return parse_kernel_spec(bundle);
  } catch (const Error&) {
    // A fault of the source's expressions is shown in them alone.
    set_own(launch, json["launches"][0]);
    bundle.spec_json = json.dump(1);
    parse_kernel_spec(std::move(bundle));
    throw;
  }
}

}  // namespace cubind
