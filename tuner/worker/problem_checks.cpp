// What a run has left behind in the buffers of a problem.
#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tuner/verify/compare_sums.hpp"
#include "tuner/worker/fill.hpp"
#include "tuner/worker/problem_setup.hpp"

namespace cubind::worker {
namespace {

// Small outputs, as an index of a maximum, are equal by chance for some of them.
constexpr std::uint64_t kSeedsTried = 8;

bool is_output(v1::Role role) { return role == v1::OUT || role == v1::INOUT || role == v1::ZERO; }

bool should_depend(const v1::BufferSpec& spec) {
  return is_output(spec.role()) && !spec.constant_output() && spec.elements() > 0;
}

}  // namespace

std::vector<ZoneOnDevice> ProblemSetup::zones() const {
  std::vector<ZoneOnDevice> zones;
  const auto add = [&zones](const GuardedBuffer& buffer) {
    zones.push_back(buffer.front_zone());
    zones.push_back(buffer.back_zone());
  };
  for (const Buffer& buffer : buffers_) {
    if (buffer.variant.has_zones()) {
      add(buffer.variant);
    }
    if (buffer.reference) {
      add(*buffer.reference);
    }
  }
  return zones;
}

// Buffers are numbered in pairs: the variant's, the reference's.
std::string ProblemSetup::owner_of(verify::Zone zone) const {
  const std::string& name = buffers_[zone.buffer / 2].variant.name();
  return zone.buffer % 2 == 0 ? name : "the reference's " + name;
}

std::vector<const ProblemSetup::Buffer*> ProblemSetup::inputs() const {
  std::vector<const Buffer*> inputs;
  for (const Buffer& buffer : buffers_) {
    if (buffer.variant.role() == v1::IN) {
      inputs.push_back(&buffer);
    }
  }
  return inputs;
}

std::vector<std::uint64_t> ProblemSetup::hash_inputs() {
  std::vector<BytesOnDevice> wanted;
  for (const Buffer* input : inputs()) {
    wanted.push_back({input->variant.address(), input->variant.bytes()});
  }
  return kernels_.hash(wanted);
}

// Whether an output of the reference differs from that for the first inputs, of which `first` holds copies.
// One that is updated in place must also differ from what it was before.
bool ProblemSetup::depends_on_inputs(const std::map<std::string, DeviceMemory>& first) {
  const auto differs = [this](const Buffer& buffer, const DeviceMemory& other) {
    const TypedAddress out = buffer.reference->typed();
    return kernels_.compare({other.address(), out.type}, out, buffer.variant.elements(), {}).mismatches > 0;
  };
  return std::ranges::any_of(buffers_, [&](const Buffer& buffer) {
    const auto copy = first.find(buffer.variant.name());
    return copy != first.end() && differs(buffer, copy->second) &&
           (buffer.variant.role() != v1::INOUT || differs(buffer, buffer.pristine));
  });
}

std::map<std::string, DeviceMemory> ProblemSetup::copy_reference() {
  std::map<std::string, DeviceMemory> copies;
  for (const Buffer& buffer : buffers_) {
    if (should_depend(buffer.spec) && buffer.reference) {
      DeviceMemory& copy =
          copies.emplace(buffer.variant.name(), DeviceMemory(budget_, buffer.variant.bytes())).first->second;
      context_.copy(copy.address(), buffer.reference->address(), buffer.variant.bytes());
    }
  }
  return copies;
}

std::optional<std::string> ProblemSetup::find_vacuity() {
  prepare_verification(0);
  std::map<std::string, DeviceMemory> first;
  if (!allocates([&] { first = copy_reference(); })) {
    return std::nullopt;
  }
  for (std::uint64_t seed = 1; seed < kSeedsTried && !first.empty(); ++seed) {
    prepare_verification(seed);
    if (depends_on_inputs(first)) {
      return std::nullopt;
    }
  }
  if (first.empty()) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const auto& [name, copy] : first) {
    names.push_back(name);
  }
  return "the outputs (" + join(names, ", ") + ") are the same for " + std::to_string(kSeedsTried) +
         " different random inputs";
}

std::optional<std::string> ProblemSetup::find_damage() {
  const std::vector<ZoneOnDevice> all = zones();
  const auto damages = kernels_.check(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (damages[i]) {
      return verify::describe(*damages[i], all[i].zone, owner_of(all[i].zone));
    }
  }
  return changed_input(input_hashes_.at(inputs_of_.value().set), hash_inputs());
}

std::optional<std::string> ProblemSetup::changed_input(const std::vector<std::uint64_t>& made,
                                                       const std::vector<std::uint64_t>& found) const {
  const auto changed = std::ranges::mismatch(found, made).in1 - found.begin();
  if (changed < std::ssize(found)) {
    return inputs()[static_cast<std::size_t>(changed)]->variant.name() + ": the input was overwritten";
  }
  return std::nullopt;
}

std::vector<std::byte> ProblemSetup::download(const GuardedBuffer& buffer) const {
  std::vector<std::byte> data(buffer.bytes());
  cuda::check(context_.api(), context_.api().memcpy_dtoh(data.data(), buffer.address(), data.size()),
              "download of an output");
  return data;
}

// Element by element, else by sums, where the spec allows it.
verify::Comparison ProblemSetup::compare(const Buffer& buffer, TypedAddress reference, bool exactly) {
  const verify::Bounds bounds =
      exactly ? verify::Bounds{} : verify::Bounds{buffer.spec.rtol(), buffer.spec.atol()};
  const verify::Comparison result =
      kernels_.compare(buffer.variant.typed(), reference, buffer.variant.elements(), bounds);
  if (exactly || result.passed() || buffer.spec.summed_shape().empty() || !buffer.reference) {
    return result;
  }
  const std::vector<std::uint64_t> shape(buffer.spec.summed_shape().begin(),
                                         buffer.spec.summed_shape().end());
  return verify::compare_sums(buffer.variant.type(), download(buffer.variant), download(*buffer.reference),
                              shape, poison_, bounds)
      .value_or(result);
}

std::vector<OutputComparison> ProblemSetup::compare_outputs(bool exactly) {
  std::vector<OutputComparison> results;
  for (const Buffer& buffer : buffers_) {
    if (!is_output(buffer.variant.role())) {
      continue;
    }
    TypedAddress reference;
    if (buffer.reference) {
      reference = buffer.reference->typed();
    } else if (buffer.expected_type) {
      reference = {buffer.expected.address(), *buffer.expected_type};
    } else {
      continue;  // nothing was recorded of this output
    }
    results.push_back({buffer.variant.name(), compare(buffer, reference, exactly)});
  }
  return results;
}

std::vector<std::uint64_t> ProblemSetup::output_hashes() {
  std::vector<BytesOnDevice> outputs;
  for (const Buffer& buffer : buffers_) {
    if (is_output(buffer.variant.role())) {
      outputs.push_back({buffer.variant.address(), buffer.variant.bytes()});
    }
  }
  return kernels_.hash(outputs);
}

std::uint64_t ProblemSetup::hash_of(const v1::OutputParts& parts) {
  std::vector<BytesOnDevice> wanted;
  for (const v1::OutputParts::Part& part : parts.parts()) {
    const GuardedBuffer& buffer = find(part.output()).variant;
    if (!is_output(buffer.role()) || part.elements() > buffer.elements()) {
      throw Error(
          ErrorCode::InvalidArgument, "verify.hashed",
          std::to_string(part.elements()) + " elements of " + part.output() + " are not part of an output");
    }
    wanted.push_back({buffer.address(), part.elements() * size_of(buffer.type())});
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t one : kernels_.hash(wanted)) {
    hash = mix_seeds(hash, one);
  }
  return hash;
}

}  // namespace cubind::worker
