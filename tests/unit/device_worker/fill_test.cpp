#include "tuner/worker/fill.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace cubind::worker {
namespace {

using Catch::Matchers::Contains;

v1::FillSpec fill(const std::string& kind, const std::vector<double>& parameters = {}) {
  v1::FillSpec made;
  made.set_kind(kind);
  for (const double parameter : parameters) {
    made.add_parameters(parameter);
  }
  return made;
}

TEST_CASE("offsets start at zero end at the total and never fall") {
  const auto offsets = make_offsets(65, 4096, 7);
  CHECK(offsets.size() == 65);
  CHECK(offsets.front() == 0);
  CHECK(offsets.back() == 4096);
  CHECK(std::ranges::is_sorted(offsets));
  CHECK(offsets == make_offsets(65, 4096, 7));
  CHECK(offsets != make_offsets(65, 4096, 8));
}

TEST_CASE("offsets with a sigma have equal parts or lognormal ones") {
  CHECK(make_offsets(5, 4096, 7, 0.0) == std::vector<std::uint64_t>{0, 1024, 2048, 3072, 4096});
  const auto offsets = make_offsets(1001, 1 << 20, 7, 1.0);
  CHECK(offsets.front() == 0);
  CHECK(offsets.back() == 1 << 20);
  CHECK(std::ranges::is_sorted(offsets));
  CHECK(offsets != make_offsets(1001, 1 << 20, 8, 1.0));
  std::vector<double> lengths;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    lengths.push_back(static_cast<double>(offsets[i] - offsets[i - 1]));
  }
  std::ranges::sort(lengths);
  // The median is e^(-1/2) of the mean, a sixth is below e^-1 of the median.
  CHECK(lengths[500] / 1048.576 == Approx(0.607).epsilon(0.1));
  CHECK(lengths[159] / lengths[500] == Approx(0.368).epsilon(0.15));
}

TEST_CASE("a Zipf choice weighs number k by a power of k plus one") {
  const auto even = zipf_distribution(4, 0);
  CHECK(even == std::vector<double>{0.25, 0.5, 0.75, 1.0});
  const auto skewed = zipf_distribution(3, 1);
  CHECK(skewed[0] == Approx(6.0 / 11));
  CHECK(skewed[1] == Approx(9.0 / 11));
  CHECK(skewed[2] == 1.0);
}

TEST_CASE("parameters that are absent have their defaults") {
  const FillWork normal = plan_fill(fill("normal"), 5);
  CHECK(normal.kind == FillKind::Normal);
  CHECK(normal.a == 0);
  CHECK(normal.b == 1);
  CHECK(normal.seed == 5);
  CHECK(plan_fill(fill("constant", {2.5}), 0).a == 2.5);
}

TEST_CASE("a fill that makes no sense is refused by name") {
  CHECK_THROWS_WITH(plan_fill(fill("gaussian"), 0), Contains("fill gaussian: unknown kind"));
  CHECK_THROWS_WITH(plan_fill(fill("choice"), 0), Contains("the count"));
  CHECK_THROWS_WITH(plan_fill(fill("choice", {2.5}), 0), Contains("whole number"));
  CHECK_THROWS_WITH(fill_on_host(fill("offsets"), DType::I32, 4, 0), Contains("the total"));
  CHECK_THROWS_WITH(fill_on_host(fill("offsets", {4096}), DType::I8, 4, 0), Contains("4096 does not fit i8"));
}

TEST_CASE("a file must have the bytes of its buffer") {
  v1::FillSpec file = fill("file");
  file.set_file_content("abcd");
  CHECK(fill_on_host(file, DType::U8, 4, 0).bytes.size() == 4);
  CHECK_THROWS_WITH(fill_on_host(file, DType::F32, 4, 0), Contains("the file has 4 bytes, the buffer 16"));
}

UniqueFd memory_of(const char* name, const char* content, int seals) {
  UniqueFd memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::write(memory.get(), content, 4) == 4);
  REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, seals) == 0);
  return memory;
}

v1::FillSpec fill_of(const UniqueFd& memory) {
  v1::FillSpec file = fill("file");
  file.set_memory("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory.get()));
  file.set_memory_name("cubind-12");
  return file;
}

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

TEST_CASE("a file may lie in a sealed memfd of its name") {
  const UniqueFd memory = memory_of("cubind-12", "abcd", 0);
  v1::FillSpec file = fill_of(memory);
  // It is not sealed, so its content counts.
  CHECK_THROWS_WITH(fill_on_host(file, DType::U8, 4, 0), Contains("has another content"));
  file.set_memory_name("cubind-" + Digest::of("abcd").hex());
  CHECK(fill_on_host(file, DType::U8, 4, 0).bytes[3] == std::byte{'d'});
  file.set_memory_name("cubind-12");
  REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, kSeals) == 0);
  CHECK(fill_on_host(file, DType::U8, 4, 0).bytes[3] == std::byte{'d'});
  CHECK_THROWS_WITH(fill_on_host(file, DType::F32, 4, 0), Contains("has ended, or runs elsewhere"));
  file.set_memory_name("cubind-13");
  CHECK_THROWS_WITH(fill_on_host(file, DType::U8, 4, 0), Contains("has another content"));
}

TEST_CASE("another file that is put in a memfd's place meanwhile is not read for it") {
  const UniqueFd memory = memory_of("cubind-12", "abcd", kSeals),
                 other = memory_of("cubind-13", "evil", kSeals);
  const UniqueFd descriptor(::dup(memory.get()));
  const v1::FillSpec file = fill_of(descriptor);
  std::atomic<bool> is_over = false;
  std::thread swapping([&] {
    while (!is_over) {
      ::dup2(other.get(), descriptor.get());
      ::dup2(memory.get(), descriptor.get());
    }
  });
  int right = 0, wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    try {
      ++(fill_on_host(file, DType::U8, 4, 0).bytes.front() == std::byte{'a'} ? right : wrong);
    } catch (const Error&) {
      // The other file was there.
    }
  }
  is_over = true;
  swapping.join();
  CHECK(right > 0);
  CHECK(wrong == 0);
}

TEST_CASE("other inputs and other buffers have other seeds") {
  CHECK(mix_seeds(1, 0) != mix_seeds(2, 0));
  CHECK(mix_seeds(1, 0) != mix_seeds(1, 1));
  CHECK(mix_seeds(3, 9) == mix_seeds(3, 9));
}

}  // namespace
}  // namespace cubind::worker
