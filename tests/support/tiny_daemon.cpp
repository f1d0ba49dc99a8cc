#include "tests/support/tiny_daemon.hpp"

#include <sstream>

#include "tuner/spec/todays_terms.hpp"

namespace cubind::test {
namespace {

// The class is a part of the trial's key.
void move_to(TableContext& context, const KernelSpec& spec, const DeviceClass& device) {
  context.device_class = device.digest;
  context.trial = trial_key_under(spec, context.configuration,
                                  {context.problem, device.digest, device_constants(device.facts), Policy{},
                                   context.driver, context.architecture, context.toolchain})
                      .value();
}

}  // namespace

TinyDaemon::TinyDaemon(TinyDaemonOptions options, bool start)
    : options_(std::move(options)),
      folder_("cubind-test"),
      daemon_({.folder = folder() / "daemon",
               .kernels = {kernels()},
               .replay = folder() / "table.json",
               .faults = folder() / "faults.json",
               .arguments = options_.arguments,
               .failpoints = options_.failpoints,
               .environment = options_.environment,
               .patience = options_.patience}) {
  write_tiny_kernel(kernels());
  create_folders(folder() / "locks");
  Table table = tiny_table(options_.problems);
  if (options_.edit_table) {
    options_.edit_table(table);
  }
  write_file_atomic(folder() / "table.json", print_table(std::move(table)));
  write_faults(options_.faults);
  if (start) {
    daemon_.start();
  }
}

void TinyDaemon::write_faults(const std::string& faults) {
  std::string text = R"({"pace_us": )" + std::to_string(options_.pace_us);
  text += R"(, "log": ")" + (folder() / "blocks").string() + '"';
  text += R"(, "lock": ")" + (folder() / "locks").string() + '"';
  if (options_.free_memory > 0) {
    text += R"(, "free_memory_bytes": )" + std::to_string(options_.free_memory);
  }
  std::string users;
  for (const std::uint32_t user : options_.users) {
    users += (users.empty() ? "" : ", ") + std::to_string(user);
  }
  text += R"(, "users": [)" + users + "]";
  if (options_.hold) {
    text += R"(, "hold": ")" + (folder() / "go").string() + '"';
  }
  write_file_atomic(folder() / "faults.json", text + R"(, "faults": )" + faults + "}\n");
}

void TinyDaemon::set_free_memory(std::uint64_t bytes) {
  options_.free_memory = bytes;
  write_faults(options_.faults);
}

Table TinyDaemon::as_of_a_real_gpu() const {
  Table table = read_table(export_everything(daemon_.connect()), "export");
  DeviceFacts facts = table.devices.at(0).facts;
  facts.clear_replay_table();
  const DeviceClass real = derive_device_class(facts, "facts");
  table.devices = {{real.digest, real.label, real.facts}};
  const auto spec = load_kernel_spec((kernels() / "scale.json").string());
  for (TableRecord& record : table.records) {
    move_to(record.context, *spec, real);
    record.evidence = Evidence::Measured;
  }
  for (TableTrial& trial : table.trials) {
    move_to(trial.context, *spec, real);
  }
  return table;
}

v1::CheckKernelRequest TinyDaemon::check_request() const {
  v1::CheckKernelRequest request;
  request.set_file("scale.json");
  request.set_spec_json(read_file(kernels() / "scale.json"));
  request.add_files()->set_path("scale.cu");
  request.mutable_files(0)->set_content(read_file(kernels() / "scale.cu"));
  *request.add_problems() = wire(tiny_problem(2));
  return request;
}

void TinyDaemon::hold() {
  options_.hold = true;
  write_faults(options_.faults);
}

void TinyDaemon::let_go() { write_file_atomic(folder() / "go", ""); }

std::vector<std::string> TinyDaemon::measured_blocks() const {
  std::vector<std::string> lines;
  if (!std::filesystem::exists(folder() / "blocks")) {
    return lines;
  }
  std::istringstream text(read_file(folder() / "blocks"));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace cubind::test
