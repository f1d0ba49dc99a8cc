#include "tuner/agent/lease/gpu_lends.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/process_host.hpp"

namespace cubind {
namespace {

v1::LentGpu lent_by(std::uint32_t process, std::uint64_t bytes = 0, const std::string& host = "here") {
  v1::LentGpu lent;
  lent.set_uuid("GPU-1");
  lent.set_pid(process);
  lent.set_host(host);
  lent.set_memory_bytes(bytes);
  return lent;
}

v1::Lends all(const std::vector<v1::LentGpu>& lent) {
  v1::Lends lends;
  lends.mutable_gpus()->Assign(lent.begin(), lent.end());
  return lends;
}

const auto kSelf = static_cast<std::uint32_t>(::getpid());
const auto kParent = static_cast<std::uint32_t>(::getppid());

TEST_CASE("a living process of the same user and pid namespace may lend") {
  CHECK(lend_refusal(lent_by(kSelf), "here").empty());
  CHECK_FALSE(process_host().empty());
  CHECK(lend_refusal(lent_by(kSelf, 0, process_host()), process_host()).empty());
}

TEST_CASE("a process elsewhere and one that is gone may not lend and the reason says which") {
  CHECK(lend_refusal(lent_by(kSelf, 0, "elsewhere"), "here").find("another machine") != std::string::npos);
  CHECK(lend_refusal(lent_by(4'190'000), "here").find("no such process") != std::string::npos);
  CHECK(lend_refusal(lent_by(kSelf, 0, ""), "").find("/proc") != std::string::npos);
}

TEST_CASE("a process of another user may not lend") {
  const std::string refusal = lend_refusal(lent_by(1), "here");
  CHECK((::geteuid() == 0 ? refusal.empty() : refusal.find("another user") != std::string::npos));
}

TEST_CASE("a GPU is lent by the processes of the last message") {
  GpuLends lends("here");
  lends.replace(all({lent_by(kSelf, 5), lent_by(kParent), lent_by(kSelf, 7)}));
  const GpuLend lend = lends.of("GPU-1");
  REQUIRE(lend.lenders.size() == 2);
  CHECK(lend.lenders[0].memory_bytes() == 7);
  CHECK(lends.of("GPU-2").lenders.empty());
  lends.replace({});
  CHECK_FALSE(lends.of("GPU-1").is_lent());
}

TEST_CASE("the end of a lend is counted though another process goes on lending") {
  GpuLends lends("here");
  lends.replace(all({lent_by(kSelf), lent_by(kParent)}));
  const std::uint64_t before = lends.of("GPU-1").ended;
  lends.replace(all({lent_by(kSelf)}));
  CHECK(lends.of("GPU-1").ended == before + 1);
  lends.replace(all({lent_by(kSelf), lent_by(kSelf)}));
  CHECK(lends.of("GPU-1").ended == before + 1);
  lends.replace({});
  CHECK(lends.of("GPU-1").ended == before + 2);
}

TEST_CASE("a lend is as old as its latest process") {
  GpuLends lends("here");
  lends.replace(all({lent_by(kSelf)}));
  const auto first = lends.of("GPU-1").since;
  lends.replace(all({lent_by(kSelf), lent_by(kSelf)}));
  CHECK(lends.of("GPU-1").since == first);
  lends.replace(all({lent_by(kSelf), lent_by(kParent)}));
  CHECK(lends.of("GPU-1").since > first);
}

TEST_CASE("a refused lend leaves its reason and no lender") {
  GpuLends lends("here");
  lends.replace(all({lent_by(kSelf, 0, "elsewhere")}));
  const GpuLend lend = lends.of("GPU-1");
  CHECK(lend.lenders.empty());
  CHECK(lend.is_lent());
  CHECK(lend.refused.starts_with("process " + std::to_string(kSelf) + " lends the GPU, but"));
}

}  // namespace
}  // namespace cubind
