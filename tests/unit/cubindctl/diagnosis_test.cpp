#include "client/cubindctl/profile/diagnosis.hpp"

#include <catch2/catch.hpp>

namespace cubind::ctl {
namespace {

using Catch::Contains;

// One launch of 100 us that moves what it must, 100 MB, and keeps nothing busy.
VariantProfile profile() {
  ProfiledLaunch launch;
  launch.entry_symbol = "slow";
  launch.time_us = 100;
  launch.read_bytes = 60e6;
  launch.write_bytes = 40e6;
  launch.memory_share = 0.3;
  launch.sm_share = 0.3;
  launch.occupancy = 0.9;
  launch.tensor_share = 0;
  launch.waves = 4;
  VariantProfile profile;
  profile.launches = {launch};
  profile.work.bytes = 100'000'000;
  profile.work.flops = 200'000'000;
  return profile;
}

// The diagnosis of profile() after `change`.
template <typename Change>
Diagnosis diagnosis_after(Change change) {
  VariantProfile changed = profile();
  change(changed, changed.launches.front());
  return diagnose(changed);
}

}  // namespace

TEST_CASE("memory at its peak is told apart by the bytes that it moves") {
  const Diagnosis peak = diagnosis_after([](auto&, auto& launch) { launch.memory_share = 0.9; });
  CHECK(peak.rule == DiagnosisRule::MemoryPeak);
  CHECK_THAT(peak.sentence, Contains("90 % of its peak and moves 1.00 x the bytes that must move"));
  const Diagnosis excess = diagnosis_after([](auto&, auto& launch) {
    launch.memory_share = 0.9;
    launch.read_bytes = 110e6;
  });
  CHECK(excess.rule == DiagnosisRule::ExcessTraffic);
  CHECK_THAT(excess.sentence, Contains("1.50 x the bytes that must move"));
}

TEST_CASE("memory at its peak is the diagnosis also if the spec does not say what must move") {
  const Diagnosis peak = diagnosis_after([](auto& profile, auto& launch) {
    launch.memory_share = 0.9;
    profile.work = {};
  });
  CHECK(peak.rule == DiagnosisRule::MemoryPeak);
  CHECK_THAT(peak.sentence, !Contains("must move"));
}

TEST_CASE("tensor cores rest only where the work is that of matrix products") {
  const auto with_flops = [](double per_byte, std::optional<double> tensor_share) {
    return diagnosis_after([&](auto& profile, auto& launch) {
             profile.work.flops = static_cast<std::uint64_t>(per_byte * 1e8);
             launch.tensor_share = tensor_share;
             launch.sm_share = 0.9;
           })
        .rule;
  };
  CHECK(with_flops(300, 0) == DiagnosisRule::TensorIdle);
  CHECK(with_flops(2, 0) == DiagnosisRule::ComputePeak);
  CHECK(with_flops(300, 0.3) == DiagnosisRule::ComputePeak);
  CHECK(with_flops(300, 0.8) == DiagnosisRule::TensorPeak);
  CHECK(with_flops(300, std::nullopt) == DiagnosisRule::ComputePeak);
}

TEST_CASE("a kernel that keeps nothing busy is bound by latency for the first reason that holds") {
  CHECK(diagnosis_after([](auto& profile, auto& launch) {
          launch.waves = 0.2;
          profile.spilled_bytes = 64;
        }).rule == DiagnosisRule::FewBlocks);
  const Diagnosis spills = diagnosis_after([](auto& profile, auto& launch) {
    profile.spilled_bytes = 64;
    launch.occupancy = 0.1;
  });
  CHECK(spills.rule == DiagnosisRule::Spills);
  CHECK_THAT(spills.sentence, Contains("64 bytes"));
  const Diagnosis occupancy = diagnosis_after([](auto&, auto& launch) {
    launch.occupancy = 0.1;
    launch.block_limits = {{"shared_mem", 1}, {"registers", 2}};
  });
  CHECK(occupancy.rule == DiagnosisRule::LowOccupancy);
  CHECK_THAT(occupancy.sentence,
             Contains("10 % of the warps are active, and shared mem allow 1 block per SM"));
}

TEST_CASE("the longest stall is named in words where nothing else holds") {
  const auto stalled = [](std::vector<Stall> stalls) {
    return diagnosis_after([&](auto&, auto& launch) { launch.stalls = std::move(stalls); });
  };
  const Diagnosis known = stalled({{"long_scoreboard", 12.34}, {"wait", 2}});
  CHECK(known.rule == DiagnosisRule::Stalls);
  CHECK_THAT(known.sentence, Contains("loads from global or local memory (long_scoreboard), 12.3 cycles"));
  CHECK_THAT(stalled({{"novel", 1}}).sentence, Contains("for novel, 1.0 cycles"));
  CHECK_THAT(stalled({}).sentence, !Contains("warps wait"));
}

TEST_CASE("the slowest launch decides and the bytes of all launches count") {
  VariantProfile two = profile();
  two.launches.push_back(two.launches.front());
  two.launches.back().time_us = 200;
  two.launches.back().memory_share = 0.9;
  CHECK(two.time_us() == 300);
  CHECK(two.traffic_ratio() == 2.0);
  CHECK(diagnose(two).rule == DiagnosisRule::ExcessTraffic);
  two.launches.back().time_us = 1;
  CHECK(diagnose(two).rule == DiagnosisRule::Stalls);
}

TEST_CASE("a bound itself counts as reached") {
  const auto at = [](double share) {
    return diagnosis_after([&](auto&, auto& launch) { launch.memory_share = share; }).rule;
  };
  CHECK(at(0.7) == DiagnosisRule::MemoryPeak);
  CHECK(at(0.699) == DiagnosisRule::Stalls);
}

}  // namespace cubind::ctl
