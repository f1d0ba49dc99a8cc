#include "client/request.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/text.hpp"
#include "client/gpu.hpp"
#include "plan/answer.hpp"
#include "plan/answer_wire.hpp"
#include "plan/facts/gpu_facts.hpp"
#include "plan/wire.hpp"

namespace cubind {
namespace {

void gpu_to_wire(const Gpu& from, v1::Device& to) {
  facts_to_wire(from.facts, *to.mutable_facts());
  to.mutable_driver()->set_cuda(from.driver.cuda);
  to.mutable_driver()->set_version(from.driver.version);
}

void accept_to_wire(const std::string& from, v1::GetVariantRequest& to) {
  const std::optional<Match> accepted = parse_match(from);
  if (!accepted) {
    throw Error(ErrorCode::InvalidArgument, "accept",
                quoted(from) + " is not a match: \"exact\", or departures joined by + (" +
                    to_string(all_departures()) + ")");
  }
  to.set_restrict_accept(true);
  for (const Departure departure : accepted->departures()) {
    to.add_accept(to_wire(departure));
  }
}

static_assert(static_cast<int>(TuneMode::Auto) == v1::AUTO &&
              static_cast<int>(TuneMode::Never) == v1::NEVER &&
              static_cast<int>(TuneMode::Sealed) == v1::SEALED);
v1::TuneMode to_wire(TuneMode mode) { return static_cast<v1::TuneMode>(mode); }

std::optional<std::int64_t> find_value(const Problem& problem, const std::string& name) {
  const auto dim = problem.dim(name);
  return dim ? dim : problem.flag(name);
}

}  // namespace

void to_wire(const DeviceChoice& from, v1::Device& to) {
  if (const auto* label = std::get_if<DeviceLabel>(&from)) {
    to.set_label(label->label);
  } else if (const auto* gpu = std::get_if<Gpu>(&from)) {
    gpu_to_wire(*gpu, to);
  } else {
    gpu_to_wire(current_gpu(), to);
  }
}

std::string generation_text(const v1::Generation& generation) {
  return std::to_string(generation.number()) + "@" + hex(generation.store_id());
}

v1::Generation generation_from_text(const std::string& text) {
  v1::Generation generation;
  const std::size_t at = std::min(text.find('@'), text.size());
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + at, number);
  generation.set_number(number);
  generation.set_store_id(
      bytes_from_hex(std::string_view(text).substr(std::min(at + 1, text.size()))).value_or(""));
  // What was not read comes out otherwise.
  if (error != std::errc{} || stop != text.data() + at || generation.store_id().empty() ||
      generation_text(generation) != text) {
    throw Error(ErrorCode::InvalidArgument, "generation",
                quoted(text) +
                    " is not a generation as an answer names it: its number, @ and the store's id, as in "
                    "12@9f86d081884c7d65");
  }
  return generation;
}

v1::Numerics make_numerics(bool reproducible, const std::string& invariant_dim) {
  v1::Numerics numerics;
  if (!invariant_dim.empty()) {
    numerics.set_kind(v1::Numerics::INVARIANT);
    numerics.set_invariant_dim(invariant_dim);
  } else if (reproducible) {
    numerics.set_kind(v1::Numerics::REPRODUCIBLE);
  }
  return numerics;
}

v1::GetVariantRequest make_request(const Query& query) {
  v1::GetVariantRequest request;
  request.set_kernel(query.kernel);
  to_wire(query.problem, *request.mutable_problem());
  to_wire(query.device, *request.mutable_device());
  request.mutable_policy()->set_warm_l2(query.warm_l2);
  request.mutable_policy()->set_graph_launch(query.graph_launch);
  *request.mutable_numerics() = make_numerics(query.reproducible, query.invariant_dim);
  request.set_namespace_(query.name_space);
  request.set_job(query.job);
  if (!query.generation.empty()) {
    *request.mutable_locked() = generation_from_text(query.generation);
  }
  request.set_on_miss(to_wire(query.on_miss));
  request.set_tune(to_wire(query.tune));
  if (query.accept) {
    accept_to_wire(*query.accept, request);
  }
  return request;
}

std::string question_key(const v1::GetVariantRequest& request) {
  v1::GetVariantRequest key = request;
  for (v1::NamedValue& dim : *key.mutable_problem()->mutable_dims()) {
    dim.clear_value();
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name() < b.name(); };
  std::ranges::sort(*key.mutable_problem()->mutable_dims(), by_name);
  std::ranges::sort(*key.mutable_problem()->mutable_types(), by_name);
  std::ranges::sort(*key.mutable_problem()->mutable_flags(), by_name);
  return key.SerializeAsString();  // no maps in it: the same bytes within one process
}

Problem arranged_like(const Problem& canonical, const Problem& problem) {
  Problem arranged = canonical;
  arranged.scenario = problem.scenario;
  for (NamedValue& dim : arranged.dims) {
    dim.value = find_value(problem, dim.name).value_or(dim.value);
  }
  for (NamedValue& flag : arranged.flags) {
    flag.value = find_value(problem, flag.name).value_or(flag.value);
  }
  for (TypeBinding& type : arranged.types) {
    type.type = problem.type(type.name).value_or(type.type);
  }
  return arranged;
}

}  // namespace cubind
