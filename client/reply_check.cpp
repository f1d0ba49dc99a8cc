#include "client/reply_check.hpp"

#include <algorithm>
#include <concepts>
#include <protozero/pbf_reader.hpp>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// ---- Fields ----

/// Where field `tag` of a message goes. Others are skipped, as are those of another wire type.
template <typename To>
struct Field {
  std::uint32_t tag;
  To& to;
};
template <typename To>
Field(std::uint32_t, To&) -> Field<To>;

template <typename... To>
void read(std::string_view message, const Field<To>&... fields);

std::string_view view_of(pbf_reader& from) {
  const auto view = from.get_view();
  return {view.data(), view.size()};
}

template <std::integral To>
void take(pbf_reader& from, To& to) {
  to = static_cast<To>(from.get_uint64());
}

/// An enumerator whose number is that of the message.
template <typename To>
void take_enumerator(pbf_reader& from, std::initializer_list<To> known, const char* what, To& to) {
  const std::uint64_t number = from.get_uint64();
  const auto found = std::ranges::find(known, number, [](To one) { return static_cast<std::uint64_t>(one); });
  if (found == known.end()) {
    refuse(what, std::to_string(number) + " is not known");
  }
  to = *found;
}

void take(pbf_reader& from, ParameterSource& to) {
  using enum ParameterSource;
  take_enumerator(from, {Buffer, Value, Caller, Symbol, TensorMap}, "source", to);
}

void take(pbf_reader& from, Role& to) {
  using enum Role;
  take_enumerator(from, {None, In, Out, InOut, Zero, Scratch}, "role", to);
}

void take(pbf_reader& from, Evidence& to) {
  using enum Evidence;
  take_enumerator(from, {None, Shipped, Replayed, Imported, Measured}, "evidence", to);
}

// In one piece or one by one; 0 is "unspecified".
void take(pbf_reader& from, Match& to) {
  const auto add = [&](std::uint64_t number) {
    const auto known = all_departures().departures();
    const auto found = std::ranges::find(known, number - 1, [](Departure one) { return std::uint64_t(one); });
    if (found == known.end()) {
      refuse("departures", std::to_string(number) + " is not known");
    }
    to.add(*found);
  };
  if (from.wire_type() == pbf_wire_type::varint) {
    add(from.get_uint64());
  } else {
    std::ranges::for_each(from.get_packed_uint64(), add);
  }
}

void take(pbf_reader& from, std::string& to) { to = view_of(from); }

void take(pbf_reader& from, DType& to) {
  const std::string_view text = view_of(from);
  const auto type = parse_scalar_type(text);
  if (!type) {
    refuse("type", quoted(text) + " is not a type");
  }
  to = *type;
}

void take(pbf_reader& from, Digest& to) {
  const auto digest = Digest::from_bytes(view_of(from));
  if (!digest) {
    refuse("digest", "has other than 32 bytes");
  }
  to = *digest;
}

template <std::invocable<std::string_view> To>
void take(pbf_reader& from, To& nested) {
  nested(view_of(from));
}

// ---- Messages of schemas/cubind.proto ----

void take(pbf_reader& from, NamedValue& to) { read(view_of(from), Field{1, to.name}, Field{2, to.value}); }

void take(pbf_reader& from, TypeBinding& to) { read(view_of(from), Field{1, to.name}, Field{2, to.type}); }

void take(pbf_reader& from, DimInterval& to) {
  read(view_of(from), Field{1, to.dim}, Field{2, to.lower}, Field{3, to.upper});
}

void take(pbf_reader& from, std::pair<std::string, std::uint64_t>& generation) {
  read(view_of(from), Field{1, generation.first}, Field{2, generation.second});
}

template <typename Named>
void refuse_twice(const std::vector<Named>& values) {
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (value->name.empty() || std::ranges::find(values.begin(), value, value->name, &Named::name) != value) {
      refuse("name", quoted(value->name) + " is empty or given twice");
    }
  }
}

void take(pbf_reader& from, Problem& to) {
  read(view_of(from), Field{1, to.dims}, Field{2, to.types}, Field{3, to.flags}, Field{4, to.scenario});
  refuse_twice(to.dims);
  refuse_twice(to.types);
  refuse_twice(to.flags);
}

void take(pbf_reader& from, Configuration& to) {
  read(view_of(from), Field{1, to.values});
  refuse_twice(to.values);
}

void take(pbf_reader& from, TensorMapType& to) {
  const std::uint64_t number = from.get_uint64();
  if (number > static_cast<std::uint64_t>(TensorMapType::Tf32Ftz)) {
    refuse("tensor_map.type", std::to_string(number) + " is not known");
  }
  to = static_cast<TensorMapType>(number);
}

void take(pbf_reader& from, TensorMapTemplate& to) {
  to.modes.clear();
  read(view_of(from), Field{1, to.argument}, Field{2, to.type}, Field{3, to.nan_fill}, Field{4, to.sizes},
       Field{5, to.strides}, Field{6, to.box}, Field{7, to.element_strides}, Field{8, to.modes});
}

void take(pbf_reader& from, ParameterTemplate& to) {
  read(view_of(from), Field{1, to.name}, Field{2, to.source}, Field{3, to.type}, Field{4, to.role},
       Field{5, to.extent}, Field{6, to.align_bytes}, Field{7, to.value}, Field{8, to.shape},
       Field{9, to.variable}, Field{10, to.symbol}, Field{11, to.tensor_map});
}

void take(pbf_reader& from, LaunchAttributes& to) {
  read(view_of(from), Field{1, to.cooperative}, Field{2, to.programmatic_stream_serialization},
       Field{3, to.priority});
}

void take(pbf_reader& from, LaunchTemplate& to) {
  read(view_of(from), Field{1, to.entry}, Field{2, to.entry_symbol}, Field{3, to.grid}, Field{4, to.block},
       Field{6, to.shared_bytes}, Field{8, to.parameters}, Field{9, to.cluster}, Field{10, to.attributes});
}

void take(pbf_reader& from, RuleParts& to) {
  std::vector<NamedValue> constants;
  read(view_of(from), Field{1, to.intervals}, Field{2, to.own_records}, Field{3, to.plan.constraints},
       Field{4, to.plan.launches}, Field{5, constants}, Field{8, to.plan.static_shared_bytes},
       Field{9, to.conditions});
  to.device = device_constants_of(constants, "rule.device_constants");
}

// ---- What the functions above need of each other: they find what is declared before this line. ----

template <typename T>
void take(pbf_reader& from, std::vector<T>& to) {
  take(from, to.emplace_back());
}

template <typename T>
void take(pbf_reader& from, std::optional<T>& to) {
  take(from, to ? *to : to.emplace());
}

template <typename To>
bool take_field(pbf_reader& from, const Field<To>& field) {
  constexpr bool is_text = !std::is_integral_v<To> && (!std::is_enum_v<To> || std::is_same_v<To, DType>);
  const bool fits = from.wire_type() == (is_text ? pbf_wire_type::length_delimited : pbf_wire_type::varint) ||
                    (std::is_same_v<To, Match> && from.wire_type() == pbf_wire_type::varint);
  if (from.tag() != field.tag || !fits) {
    return false;
  }
  take(from, field.to);
  return true;
}

template <typename... To>
void read(std::string_view message, const Field<To>&... fields) {
  for (pbf_reader from(message.data(), message.size()); from.next();) {
    if (!(take_field(from, fields) || ...)) {
      from.skip();
    }
  }
}

template <typename... To>
void read_whole(std::string_view message, const char* what, const Field<To>&... fields) {
  try {
    read(message, fields...);
  } catch (const protozero::exception& fault) {
    throw Error(ErrorCode::DataLoss, what, std::string("is no message of cubind: ") + fault.what());
  }
}

/// Whether the daemon's problem has each value that was asked for.
bool answers(const Problem& answered, const Problem& asked) {
  const auto is_there = [&](const NamedValue& value) {
    const auto dim = answered.dim(value.name);
    return (dim ? dim : answered.flag(value.name)) == value.value;
  };
  return answered.scenario == asked.scenario && std::ranges::all_of(asked.dims, is_there) &&
         std::ranges::all_of(asked.flags, is_there) &&
         std::ranges::all_of(asked.types,
                             [&](const TypeBinding& type) { return answered.type(type.name) == type.type; });
}

}  // namespace

Asked read_asked(std::string_view request) {
  Asked to;
  Match accept;
  bool restrict_accept = false;
  std::uint32_t kind = 0;
  std::string invariant_dim;
  auto policy = [&](std::string_view bytes) { read(bytes, Field{1, to.warm_l2}, Field{3, to.graph_launch}); };
  auto numerics = [&](std::string_view bytes) { read(bytes, Field{1, kind}, Field{2, invariant_dim}); };
  read_whole(request, "question", Field{1, to.kernel}, Field{2, to.problem}, Field{4, policy},
             Field{5, numerics}, Field{6, to.name_space}, Field{8, accept}, Field{9, restrict_accept},
             Field{17, to.locked});
  to.numerics = kind == 0 ? "tolerance" : kind == 1 ? "reproducible" : "invariant:" + invariant_dim;
  to.accepted = restrict_accept ? std::optional(accept) : std::nullopt;
  return to;
}

Told read_told(std::string_view reply) {
  Told to;
  auto artifact = [&](std::string_view bytes) {
    read(bytes, Field{2, to.architecture}, Field{5, to.artifact}, Field{6, to.toolchain});
  };
  auto provenance = [&](std::string_view bytes) {
    read(bytes, Field{1, to.match}, Field{2, to.evidence}, Field{3, to.provisional}, Field{4, to.generation},
         Field{5, to.measured_problem}, Field{7, to.measured_device_class});
  };
  read_whole(reply, "reply", Field{1, to.rule.kernel}, Field{2, to.rule.asked},
             Field{3, to.rule.configuration}, Field{5, artifact}, Field{6, provenance}, Field{7, to.rule},
             Field{9, to.device_class}, Field{10, to.job_id}, Field{12, to.signature},
             Field{15, to.fingerprint});
  if (to.rule.plan.launches.empty()) {
    refuse("rule", "has no launch");
  }
  return to;
}

void check_reply(const Asked& asked, const Told& told) {
  const auto fail = [](const std::string& field, const std::string& cause) {
    throw Error(ErrorCode::DataLoss, field, cause);
  };
  const RuleParts& rule = told.rule;
  if (rule.kernel != asked.kernel) {
    fail("kernel", "asked for " + asked.kernel + ", the answer is for " + rule.kernel);
  }
  if (!answers(rule.asked, asked.problem)) {
    fail("problem", "asked for " + to_string(asked.problem) + ", the answer is for " + to_string(rule.asked));
  }
  if (asked.locked && told.generation != *asked.locked) {
    fail("provenance.generation", "the answer is of another generation than the locked one");
  }
  if (asked.accepted && !told.match.within(*asked.accepted)) {
    fail("provenance.departures",
         "accepted " + to_string(*asked.accepted) + ", the answer is " + to_string(told.match));
  }
}

bool is_unsettled(const Told& told) {
  return !told.job_id.empty() || told.provisional ||
         !told.match.within({Departure::Bucket, Departure::Stale});
}

}  // namespace cubind
