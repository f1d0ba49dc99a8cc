// cubind.h: clients and questions.
#include <memory>

#include "client/c/calling.hpp"
#include "client/c/handles.hpp"

namespace cubind::c {
namespace {

// What the caller does not know of the struct keeps its default; what this library does not know of it must
// be unused.
cubind_query known_part(const cubind_query* from) {
  const std::size_t size = given(from, "query").size;
  if (size < sizeof from->size || size > 4096) {
    throw Error(ErrorCode::InvalidArgument, "query.size",
                std::to_string(size) + ": begin with CUBIND_QUERY_INIT");
  }
  cubind_query query = CUBIND_QUERY_INIT;
  std::memcpy(&query, from, std::min(size, sizeof query));
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  if (size > sizeof query &&
      std::any_of(bytes + sizeof query, bytes + size, [](unsigned char byte) { return byte != 0; })) {
    throw Error(ErrorCode::Unimplemented, "query",
                std::string("a field is set that libcubind ") + cubind_version() + " does not know");
  }
  return query;
}

OnMiss on_miss_of(std::int32_t value) {
  switch (value) {
    case CUBIND_SERVE:
      return OnMiss::Serve;
    case CUBIND_WAIT:
      return OnMiss::Wait;
    case CUBIND_FAIL:
      return OnMiss::Fail;
    default:
      throw Error(ErrorCode::InvalidArgument, "query.on_miss",
                  std::to_string(value) + " is not one of CUBIND_SERVE, CUBIND_WAIT and CUBIND_FAIL");
  }
}

TuneMode tune_mode_of(std::uint32_t flags) {
  if ((flags & CUBIND_SEALED) != 0) {
    return TuneMode::Sealed;
  }
  return (flags & CUBIND_NO_TUNING) != 0 ? TuneMode::Never : TuneMode::Auto;
}

Query question(const cubind_query& asked) {
  constexpr std::uint32_t kKnown =
      CUBIND_NO_TUNING | CUBIND_WARM_L2 | CUBIND_GRAPH | CUBIND_REPRODUCIBLE | CUBIND_SEALED;
  if ((asked.flags & ~kKnown) != 0) {
    throw Error(ErrorCode::InvalidArgument, "query.flags",
                std::to_string(asked.flags) + " has bits of no known meaning");
  }
  Query query;
  query.kernel = &given(asked.kernel, "query.kernel");
  query.problem = parse_problem(&given(asked.problem, "query.problem"));
  if (asked.device != nullptr) {
    query.device = DeviceLabel{asked.device};
  }
  if (asked.accept != nullptr) {
    query.accept = asked.accept;
  }
  query.on_miss = on_miss_of(asked.on_miss);
  query.tune = tune_mode_of(asked.flags);
  query.warm_l2 = (asked.flags & CUBIND_WARM_L2) != 0;
  query.graph_launch = (asked.flags & CUBIND_GRAPH) != 0;
  query.reproducible = (asked.flags & CUBIND_REPRODUCIBLE) != 0;
  query.invariant_dim = text(asked.invariant_dim);
  query.name_space = text(asked.name_space);
  query.job = text(asked.job);
  return query;
}

}  // namespace
}  // namespace cubind::c

using namespace cubind::c;  // NOLINT(google-build-using-namespace): the functions below have C's names

cubind_code cubind_connect(const char* address, uint32_t timeout_ms, cubind_client** client) {
  return guarded([&] {
    cubind::ClientOptions options{.address = text(address)};
    if (timeout_ms != 0) {
      options.deadline = std::chrono::milliseconds(timeout_ms);
    }
    cubind_client*& to = given(client, "client");
    to = new cubind_client{cubind::Client(std::move(options))};
  });
}

void cubind_client_free(cubind_client* client) { delete client; }

uint64_t cubind_client_calls(const cubind_client* client) {
  return gotten([&] { return given(client, "client").client.calls(); });
}

cubind_code cubind_get(cubind_client* client, const cubind_query* query, cubind_variant** variant) {
  return guarded([&] {
    cubind_variant*& to = given(variant, "variant");
    cubind::Answer answer = given(client, "client").client.get(question(known_part(query)));
    auto made = std::make_unique<cubind_variant>(cubind_variant{answer, {}, {}, {}});
    made->problem = to_string(answer.problem());
    made->configuration = to_string(answer.configuration());
    made->match = to_string(answer.match());
    to = made.release();
  });
}

void cubind_variant_free(cubind_variant* variant) { delete variant; }
