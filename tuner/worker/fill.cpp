#include "tuner/worker/fill.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>
#include <string>
#include <utility>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/unique_fd.hpp"
#include "launch/pack.hpp"

namespace cubind::worker {
namespace {

// The distribution of a choice is a table on the device.
constexpr double kMaxChoices = 1 << 24;

[[noreturn]] void refuse_fill(const v1::FillSpec& fill, const std::string& cause) {
  throw Error(ErrorCode::InvalidArgument, "fill " + fill.kind(), cause);
}

double parameter(const v1::FillSpec& fill, int index, double absent) {
  return index < fill.parameters_size() ? fill.parameters(index) : absent;
}

std::uint64_t whole_parameter(const v1::FillSpec& fill, const char* name, double most) {
  const double value = parameter(fill, 0, -1);
  if (!(value >= 1 && value <= most) || value != std::floor(value)) {
    refuse_fill(fill, std::string("its first parameter, ") + name + ", must be a whole number from 1 to " +
                          std::to_string(static_cast<std::uint64_t>(most)));
  }
  return static_cast<std::uint64_t>(value);
}

// Normal draws by Box and Muller.
void fill_lognormal(std::vector<std::uint64_t>& offsets, std::uint64_t total, double sigma, Random& random) {
  std::vector<double> ends(offsets.size(), 0);
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const double normal =
        std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * std::numbers::pi * random.uniform());
    ends[i] = ends[i - 1] + std::exp(sigma * normal);
  }
  for (std::size_t i = 1; i < ends.size(); ++i) {
    offsets[i] =
        static_cast<std::uint64_t>(std::floor(ends[i] / ends.back() * static_cast<double>(total) + 0.5));
  }
}

}  // namespace

FillWork plan_fill(const v1::FillSpec& fill, std::uint64_t seed) {
  FillWork work;
  work.seed = seed;
  const std::string& kind = fill.kind();
  if (kind == "normal" || kind.empty()) {
    work.kind = FillKind::Normal;
    work.a = parameter(fill, 0, 0);
    work.b = parameter(fill, 1, 1);
  } else if (kind == "uniform") {
    work.kind = FillKind::Uniform;
    work.a = parameter(fill, 0, 0);
    work.b = parameter(fill, 1, 1);
  } else if (kind == "constant") {
    work.a = parameter(fill, 0, 0);
  } else if (kind == "iota") {
    work.kind = FillKind::Iota;
    work.a = parameter(fill, 0, 0);
    work.b = parameter(fill, 1, 1);
  } else if (kind == "permutation") {
    work.kind = FillKind::Permutation;
  } else if (kind == "choice") {
    work.kind = FillKind::Choice;
    work.cumulative =
        zipf_distribution(whole_parameter(fill, "the count", kMaxChoices), parameter(fill, 1, 0));
  } else {
    refuse_fill(fill,
                "unknown kind (known: normal, uniform, constant, iota, permutation, choice, offsets, file)");
  }
  return work;
}

namespace {

HostContent content_of(std::vector<std::byte> made) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(made));
  return {owner, *owner};
}

[[noreturn]] void refuse_memory(const v1::FillSpec& fill) {
  refuse_fill(fill, "the array in " + fill.memory() + " cannot be read");
}

HostContent map_memory(const v1::FillSpec& fill, int memory, std::uint64_t size) {
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, memory, 0);
  if (start == MAP_FAILED) {
    refuse_memory(fill);
  }
  return {{start, [size](void* mapped) { ::munmap(mapped, size); }},
          {static_cast<const std::byte*>(start), size}};
}

// The name of a sealed memfd has the digest of a content that cannot change. Of another file it is computed.
HostContent read_memory(const v1::FillSpec& fill, std::uint64_t size) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  const UniqueFd memory(::open(fill.memory().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  // Of what was opened: the process may have put another file there. A file that has no seals gives -1.
  std::error_code failed;
  const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(memory.get()), failed);
  const int seals = std::max(::fcntl(memory.get(), F_GET_SEALS), 0);
  struct stat status {};
  if (!memory || ::fstat(memory.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != size) {
    refuse_fill(fill, "the array is not in " + fill.memory() +
                          " (its process has ended, or runs elsewhere): tune the kernel again where it is");
  }
  if (size > 0 && name == "/memfd:" + fill.memory_name() + " (deleted)" && (seals & kSeals) == kSeals) {
    return map_memory(fill, memory.get(), size);
  }
  std::vector<std::byte> bytes(size);
  for (std::uint64_t at = 0; at < size;) {
    const ssize_t count = ::pread(memory.get(), bytes.data() + at, size - at, static_cast<off_t>(at));
    if (count <= 0) {
      refuse_memory(fill);
    }
    at += static_cast<std::uint64_t>(count);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (fill.memory_name() != "cubind-" + Digest::of(text).hex()) {
    refuse_fill(fill, fill.memory() + " has another content than the array that the kernel names");
  }
  return content_of(std::move(bytes));
}

}  // namespace

bool has_independent_elements(const v1::FillSpec& fill) {
  const std::string& kind = fill.kind();
  return kind.empty() || kind == "normal" || kind == "uniform" || kind == "constant" || kind == "choice";
}

bool is_host_fill(const v1::FillSpec& fill) { return fill.kind() == "offsets" || fill.kind() == "file"; }

HostContent fill_on_host(const v1::FillSpec& fill, DType type, std::uint64_t elements, std::uint64_t seed) {
  if (!fill.memory().empty()) {
    return read_memory(fill, elements * size_of(type));
  }
  std::vector<std::byte> bytes(elements * size_of(type));
  if (fill.kind() == "file") {
    if (fill.file_content().size() != bytes.size()) {
      refuse_fill(fill, "the file has " + std::to_string(fill.file_content().size()) + " bytes, the buffer " +
                            std::to_string(bytes.size()));
    }
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), fill.file_content().data(), bytes.size());
    }
    return content_of(std::move(bytes));
  }
  const std::uint64_t total = whole_parameter(fill, "the total", 0x1p53);
  if (!holds_value(type, static_cast<std::int64_t>(total))) {
    refuse_fill(fill, "the total " + std::to_string(total) + " does not fit " + std::string(to_string(type)));
  }
  const auto sigma = fill.parameters_size() > 1 ? std::optional(fill.parameters(1)) : std::nullopt;
  const std::vector<std::uint64_t> offsets = make_offsets(elements, total, seed, sigma);
  for (std::uint64_t i = 0; i < elements; ++i) {
    const ParameterBytes element = pack_number(type, static_cast<std::int64_t>(offsets[i]));
    std::memcpy(bytes.data() + i * size_of(type), element.data(), size_of(type));
  }
  return content_of(std::move(bytes));
}

std::vector<std::uint64_t> make_offsets(std::uint64_t elements, std::uint64_t total, std::uint64_t seed,
                                        std::optional<double> sigma) {
  std::vector<std::uint64_t> offsets(elements, 0);
  Random random(seed);
  if (sigma) {
    fill_lognormal(offsets, total, *sigma, random);
    return offsets;
  }
  for (std::uint64_t i = 1; i + 1 < elements; ++i) {
    offsets[i] = random.below(total + 1);
  }
  if (elements > 1) {
    offsets.back() = total;
  }
  std::ranges::sort(offsets);
  return offsets;
}

std::vector<double> zipf_distribution(std::uint64_t count, double exponent) {
  std::vector<double> cumulative(count);
  double sum = 0;
  for (std::uint64_t k = 0; k < count; ++k) {
    sum += std::pow(static_cast<double>(k + 1), -exponent);
    cumulative[k] = sum;
  }
  for (double& value : cumulative) {
    value /= sum;
  }
  return cumulative;
}

std::uint64_t mix_seeds(std::uint64_t buffer_seed, std::uint64_t input_seed) {
  Random random(buffer_seed ^ (input_seed * 0x9e3779b97f4a7c15ULL));
  return random.next();
}

}  // namespace cubind::worker
