#include "server/prebuild.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

/// The question that a record answers exactly, as a rank with such a GPU would ask it.
std::optional<Question> question_of(ServiceContext& context, const RecordRow& record) {
  const auto snapshot = context.index.snapshot();
  const DeviceClass* device = snapshot->device(record.question.device_class);
  const auto agents = context.fleet.agents();
  const auto driver = offered_driver(*agents, record.question.device_class);
  if (!device || !driver) {
    return std::nullopt;
  }
  const auto kernel = context.kernels.find(record.question.kernel);
  if (kernel->interface != record.question.interface) {
    return std::nullopt;
  }
  Question question;
  question.spec = kernel->spec;
  question.spec_revision = kernel->revision;
  question.is_foreign = context.defined.is_foreign(kernel->name);
  question.verification = kernel->verification;
  question.key = record.question;
  question.device = *device;
  question.driver = driver;
  question.toolchain = toolchain_of_today(*agents, toolchain_need(question));
  return question;
}

}  // namespace

std::string offer_of(const AgentProfiles& agents) {
  std::vector<std::string> parts;
  for (const OfferedDevice& device : devices_of(agents)) {
    parts.push_back(device.device.digest.hex() + device.driver.version);
  }
  for (const AgentProfile& agent : agents) {
    for (const OfferedToolchain& toolchain : agent.toolchains) {
      parts.push_back(toolchain.name + toolchain.nvrtc.hex() + toolchain.builtins.hex() +
                      join(toolchain.assemblers, " "));
    }
  }
  std::ranges::sort(parts);
  std::string offer;
  for (const std::string& part : parts) {
    offer += part + "\n";
  }
  return offer;
}

std::vector<CompileOrder> missing_winners(ServiceContext& context) {
  std::vector<CompileOrder> orders;
  std::set<Digest> seen;
  const auto snapshot = context.index.snapshot();
  for (const RecordPtr& record : snapshot->all()) {
    if (!seen.insert(record->key).second) {
      continue;
    }
    try {
      if (const auto question = question_of(context, *record)) {
        const Resolution resolution = context.answerer.resolve(*question, *snapshot, std::nullopt, {});
        if (resolution.compile && resolution.any_record) {
          orders.push_back(*resolution.compile);
        }
      }
    } catch (const Error& error) {
      log_debug("a winner is not compiled ahead: " + std::string(error.what()));
    }
  }
  return orders;
}

void prebuild(ServiceContext& context) {
  context.background.post("", [&context] {
    std::vector<CompileOrder> orders = missing_winners(context);
    if (orders.empty()) {
      return;
    }
    log_info("compiling " + std::to_string(orders.size()) + " winners ahead");
    context.jobs.post([&context, orders = std::move(orders)] {
      for (const CompileOrder& order : orders) {
        context.scheduler.submit_compile(order);
      }
    });
  });
}

}  // namespace cubind
