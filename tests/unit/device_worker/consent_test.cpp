#include "tuner/worker/consent.hpp"

#include <catch2/catch.hpp>

namespace cubind::worker {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kOurContext = 600 * kMiB;

TEST_CASE("a GPU without processes is free") { CHECK_FALSE(Consent({}).is_foreign({}, 0, true)); }

TEST_CASE("a listed process is foreign before we have a context") {
  const GpuUse busy{.processes = {4711}};
  CHECK(Consent(busy).is_foreign(busy, 0, true));
  CHECK(Consent(busy).rule() == "processes");
}

TEST_CASE("our own process is the newcomer of the list whatever its number") {
  Consent consent({});
  consent.context_made({.processes = {99}, .memory_bytes = kOurContext});
  CHECK(consent.rule() == "processes");
  CHECK_FALSE(consent.is_foreign({.processes = {99}, .memory_bytes = 50'000 * kMiB}, 0, true));
  CHECK(consent.is_foreign({.processes = {99, 100}}, 0, true));
}

TEST_CASE("a process that was there before stays foreign") {
  const GpuUse before{.processes = {50}};
  Consent consent(before);
  consent.context_made({.processes = {50, 99}});
  CHECK(consent.is_foreign({.processes = {50, 99}}, 0, true));
  CHECK_FALSE(consent.is_foreign({.processes = {99}}, 0, true));
}

TEST_CASE("of two newcomers the one with the larger number is ours and the other is foreign") {
  Consent consent({});
  consent.context_made({.processes = {99, 70}});
  CHECK(consent.is_foreign({.processes = {99, 70}}, 0, true));
  CHECK(consent.is_foreign({.processes = {70}}, 0, true));
  CHECK_FALSE(consent.is_foreign({.processes = {99}}, 0, true));
}

TEST_CASE("where no process is listed memory beyond our own is foreign") {
  Consent consent({});
  consent.context_made({.memory_bytes = kOurContext});
  CHECK(consent.rule() == "memory and utilization");
  CHECK_FALSE(consent.is_foreign({.memory_bytes = kOurContext + 4000 * kMiB}, 4000 * kMiB, false));
  CHECK(consent.is_foreign({.memory_bytes = kOurContext + 4600 * kMiB}, 4000 * kMiB, false));
}

TEST_CASE("where no process is listed and the GPU is busy while we are idle little memory is enough") {
  Consent consent({});
  consent.context_made({.memory_bytes = kOurContext});
  const GpuUse busy{.memory_bytes = kOurContext + 100 * kMiB, .utilization_percent = 60};
  CHECK(consent.is_foreign(busy, 0, true));
  CHECK_FALSE(consent.is_foreign(busy, 0, false));
  CHECK_FALSE(
      consent.is_foreign({.memory_bytes = kOurContext + 100 * kMiB, .utilization_percent = 0}, 0, true));
}

TEST_CASE("a GPU without a context is free though NVML still shows the work of one that has ended") {
  CHECK_FALSE(Consent({}).is_foreign({.memory_bytes = kMiB, .utilization_percent = 60}, 0, true));
}

TEST_CASE("where no process is listed memory in use before our context is foreign") {
  CHECK(Consent({}).is_foreign({.memory_bytes = 2000 * kMiB}, 0, true));
  CHECK_FALSE(Consent({}).is_foreign({.memory_bytes = 4 * kMiB}, 0, true));
}

}  // namespace
}  // namespace cubind::worker
