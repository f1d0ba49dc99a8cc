#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "fake_cupti.hpp"
#include "tuner/worker/activity_buffers.hpp"
#include "tuner/worker/cupti_timer.hpp"

namespace cubind::worker {
namespace {

// The fake libcupti, found as any other: in CUBIND_CUDA_HOME.
class Fake {
 public:
  Fake() : library_(::dlopen(CUBIND_FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library_ != nullptr);
    const char* home = std::getenv("CUBIND_CUDA_HOME");
    const std::string before = home == nullptr ? "" : home;
    const auto folder = std::filesystem::path(CUBIND_FAKE_CUPTI).parent_path().parent_path();
    ::setenv("CUBIND_CUDA_HOME", folder.c_str(), 1);
    recorder_ = CuptiRecorder::open(why_);
    before.empty() ? ::unsetenv("CUBIND_CUDA_HOME") : ::setenv("CUBIND_CUDA_HOME", before.c_str(), 1);
    INFO(why_);
    REQUIRE(recorder_ != nullptr);
  }
  ~Fake() {
    recorder_.reset();
    ::dlclose(library_);
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  CuptiRecorder& recorder() { return *recorder_; }
  FakeCupti state() const {
    FakeCupti state;
    reinterpret_cast<void (*)(FakeCupti*)>(::dlsym(library_, "fake_state"))(&state);
    return state;
  }
  void kernels(std::size_t count, bool complete = true) const {
    reinterpret_cast<void (*)(std::size_t, bool)>(::dlsym(library_, "fake_kernels"))(count, complete);
  }

 private:
  void* library_;
  std::string why_;
  std::unique_ptr<CuptiRecorder> recorder_;
};

TEST_CASE("records are taken without a forced flush") {
  Fake fake;
  const FakeCupti before = fake.state();
  fake.kernels(3);
  CHECK(fake.recorder().take(3).size() == 3);
  CHECK(fake.recorder().take(0).empty());
  CHECK(fake.state().flushes == before.flushes + 2);
  CHECK(fake.state().forced == before.forced);
}

TEST_CASE("a flush is forced for records that are not complete") {
  Fake fake;
  const FakeCupti before = fake.state();
  fake.kernels(2, false);
  CHECK(fake.recorder().take(2).size() == 2);
  CHECK(fake.state().forced == before.forced + 1);
}

TEST_CASE("a record has its kernel's times and its place in the order of launches") {
  Fake fake;
  fake.kernels(2);
  const auto records = fake.recorder().take(2);
  REQUIRE(records.size() == 2);
  CHECK(records[1].correlation == records[0].correlation + 1);
  CHECK(records[0].end_ns - records[0].start_ns == 7);
}

TEST_CASE("CUPTI gets buffers of zeros and knows it, and more than one where records are many") {
  Fake fake;
  CHECK(fake.state().gives_zeros);
  const FakeCupti before = fake.state();
  for (int i = 0; i < 3; ++i) {
    fake.kernels(1000);
    CHECK(fake.recorder().take(1000).size() == 1000);
  }
  CHECK(fake.state().delivered >= before.delivered + 6);
  CHECK(fake.state().unclean == 0);
}

TEST_CASE("a buffer that was given back is given again, cleared") {
  ActivityBuffers buffers;
  std::uint8_t* first = buffers.give();
  REQUIRE(first != nullptr);
  first[0] = 1;
  first[ActivityBuffers::kBytes - 1] = 1;
  buffers.take_back(first);
  std::uint8_t* again = buffers.give();
  CHECK(again == first);
  CHECK(again[0] == 0);
  CHECK(again[ActivityBuffers::kBytes - 1] == 0);
  std::uint8_t* second = buffers.give();
  CHECK(second != again);
  buffers.take_back(again);
  buffers.take_back(second);
}

}  // namespace
}  // namespace cubind::worker
