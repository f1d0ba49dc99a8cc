// What an agent would send for a lease, made up: keys and messages are the real ones, cubins and times are
// not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "tuner/spec/keys.hpp"

namespace cubind::test {

v1::DeviceFacts h200_facts();
v1::DriverVersion driver_580();

/// A hello of today's protocol with one GPU of these facts and NVRTC 13.0.
v1::Hello hello_with(const v1::DeviceFacts& facts, const std::string& agent_id = "fake");
/// The same without a GPU: it compiles.
v1::Hello compiling_hello(const std::string& agent_id = "fake-compiler");

/// Adds a Triton with this ptxas for sm_80 and sm_90 to what the agent compiles with.
void offer_triton(v1::Hello& hello, const std::string& version = "3.6.0", const std::string& ptxas = "12.9");

ToolchainIdentity fake_toolchain(std::string_view name = "nvrtc 13.0");
/// NVRTC 13.0, or the Triton that the lease's kernel names.
ToolchainIdentity toolchain_for(const v1::LeaseGrant& lease);

inline constexpr unsigned kFakeSamples = 12;  // of a block
inline constexpr const char* kFakeDriver = "580.159.04";

/// Everything about one configuration of a lease.
struct FakeTrial {
  Configuration configuration;
  Key artifact_key;
  Key trial_key;
  v1::ArtifactUpload artifact;
  v1::TrialHeader header;
  Digest verification;  // of the spec's reference and tolerance
};

/// The first `count` valid configurations of the lease's problem, the default first. `driver`: a version.
std::vector<FakeTrial> fake_trials(const v1::LeaseGrant& lease, std::size_t count,
                                   const ToolchainIdentity& toolchain = fake_toolchain(),
                                   const std::string& driver = kFakeDriver);
/// The trial of one configuration.
FakeTrial fake_trial(const v1::LeaseGrant& lease, const Configuration& configuration,
                     const ToolchainIdentity& toolchain = fake_toolchain(),
                     const std::string& driver = kFakeDriver);

/// Artifact, header and a passed verification, then with `samples` blocks a final block each.
v1::Batch batch_of(const std::vector<FakeTrial>& trials, unsigned blocks = 1, double time_us = 20.0);
/// Passed.
v1::VerificationResult verification_of(const FakeTrial& trial);
v1::SampleBlock block_of(const FakeTrial& trial, unsigned index, double time_us = 20.0);

/// DONE with this winner, verified, with the samples of one block.
v1::JobResult result_of(const v1::LeaseGrant& lease, const FakeTrial& winner, double median_us = 20.0);

/// A made-up cubin: the same bytes for the same seed, incompressible.
std::string fake_cubin(std::string_view seed, std::size_t bytes);
/// Gives the upload other bytes.
void set_cubin(v1::ArtifactUpload& upload, const std::string& cubin, bool inline_bytes);

}  // namespace cubind::test
