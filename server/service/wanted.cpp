#include "server/service/wanted.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "server/convert/limits.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

struct Wanted {
  WantRow row;
  std::string device;                // label
  std::optional<Question> question;  // absent: there is an obstacle
  std::string obstacle;
};

bool is_offered(const AgentProfiles& agents, const Digest& device_class) {
  return std::ranges::any_of(agents, [&](const AgentProfile& agent) {
    return std::ranges::any_of(agent.devices, [&](const OfferedDevice& device) {
      return device.device.digest == device_class && may_measure(device);
    });
  });
}

void find_question(const ServiceContext& context, const DeviceClass& device, Wanted& wanted) {
  try {
    Question question = context.questions.read(wanted.row.question, device);
    const auto agents = context.fleet.agents();
    wanted.obstacle = is_offered(*agents, device.digest)
                          ? no_compiler_because(*agents, device.digest, kernel_need(question))
                          : "no agent offers " + device.label;
    if (wanted.obstacle.empty()) {
      wanted.question = std::move(question);
    }
  } catch (const Error& error) {
    wanted.obstacle = error.what();
  }
}

/// Most asked first.
std::vector<Wanted> read_wanted(ServiceContext& context, const std::string& kernel) {
  std::vector<WantRow> rows;
  std::map<Digest, DeviceClass> devices;
  context.store.read([&](StoreReader& reader) {
    rows = reader.wants();
    devices = reader.device_classes();
  });
  for (DeviceClass& device : known_devices(*context.fleet.agents(), *context.index.snapshot())) {
    devices.emplace(device.digest, std::move(device));
  }
  std::vector<Wanted> wanted;
  for (WantRow& row : rows) {
    if (!kernel.empty() && row.question.kernel != kernel) {
      continue;
    }
    Wanted& one = wanted.emplace_back();
    one.row = std::move(row);
    const auto device = devices.find(one.row.question.device_class);
    if (device == devices.end()) {
      one.device = "@" + one.row.question.device_class.hex().substr(0, 8);
      one.obstacle = "no agent has offered its GPU, nor does a table or a record name it";
      continue;
    }
    one.device = device->second.label;
    find_question(context, device->second, one);
  }
  return wanted;
}

void to_wire(const Wanted& from, v1::Want& to) {
  const RecordQuestion& question = from.row.question;
  to.set_kernel(question.kernel);
  cubind::to_wire(question.problem, *to.mutable_problem());
  to.set_device(from.device);
  to.set_device_class(bytes_of(question.device_class));
  cubind::to_wire(question.policy, *to.mutable_policy());
  cubind::to_wire(question.numerics, *to.mutable_numerics());
  to.set_namespace_(question.name_space);
  to.set_count(from.row.count);
  to.set_first_at(from.row.first_at);
  to.set_last_at(from.row.last_at);
  to.set_obstacle(from.obstacle);
}

/// Each entry of the list has its own.
void refuse_what_entries_have(const v1::TuneRequest& request) {
  const auto refuse = [](bool given, const char* field) {
    if (given) {
      throw Error(ErrorCode::InvalidArgument, field,
                  "stays empty with `wanted`: each entry of the list has its own");
    }
  };
  refuse(request.problems_size() > 0, "problems");
  refuse(request.has_device(), "device");
  refuse(
      request.policy().warm_l2() || request.policy().graph_launch() || request.policy().flush_method() != 0,
      "policy");
  refuse(request.numerics().kind() != v1::Numerics::TOLERANCE, "numerics");
  refuse(!request.namespace_().empty(), "namespace");
}

std::vector<Question> wanted_questions(ServiceContext& context, const v1::TuneRequest& request) {
  refuse_what_entries_have(request);
  check_text(request.kernel(), "kernel");
  check_count(static_cast<int>(std::min<std::uint32_t>(request.wanted().top(), INT32_MAX)), kMaxProblems,
              "wanted.top");
  const std::size_t limit = request.wanted().top() > 0 ? request.wanted().top() : kMaxProblems;
  const std::vector<Wanted> wanted = read_wanted(context, request.kernel());
  std::vector<Question> questions;
  for (const Wanted& one : wanted) {
    if (one.question && questions.size() < limit) {
      questions.push_back(*one.question);
    }
  }
  if (questions.empty()) {
    const std::string whose = request.kernel().empty() ? "" : " of " + request.kernel();
    throw Error(ErrorCode::NotFound, "wanted",
                wanted.empty()
                    ? "nothing" + whose + " is wanted"
                    : "nothing" + whose + " can be tuned of the wanted problems: " + wanted.front().obstacle);
  }
  return questions;
}

}  // namespace

void list_wanted(ServiceContext& context, const Caller& caller, const v1::ListWantedRequest& request,
                 v1::ListWantedReply& reply) {
  check_text(request.kernel(), "kernel");
  context.kernels.reload();
  std::vector<Wanted> wanted = read_wanted(context, request.kernel());
  std::erase_if(wanted,
                [&](const Wanted& one) { return !covers(caller.namespaces, one.row.question.name_space); });
  reply.set_total(wanted.size());
  const std::size_t limit = request.top() > 0 ? request.top() : wanted.size();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < std::min(limit, wanted.size()); ++i) {
    v1::Want want;
    to_wire(wanted[i], want);
    bytes += want.ByteSizeLong();
    if (bytes > kMaxListBytes) {
      break;
    }
    *reply.add_wants() = std::move(want);
  }
}

std::vector<Question> questions_of(ServiceContext& context, const v1::TuneRequest& request) {
  context.kernels.reload();
  return request.has_wanted() ? wanted_questions(context, request) : context.questions.read(request);
}

}  // namespace cubind
