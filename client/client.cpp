#include "client/client.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "client/answer_cache.hpp"
#include "client/answer_trust.hpp"
#include "client/connection.hpp"
#include "client/held_gpu.hpp"
#include "client/reply_check.hpp"
#include "client/request.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "schemas/limits.hpp"

namespace cubind {
namespace {

// Digests sent along so that known bytes are not sent back; of one kernel and device there are few.
constexpr std::size_t kMaxHeldArtifacts = 32;

Match accepted_departures(const v1::GetVariantRequest& request) {
  return request.restrict_accept() ? match_from_wire(request.accept(), "accept") : all_departures();
}

void lend_gpu(std::uint64_t held_bytes, v1::GetVariantRequest& request) {
  const std::optional<HeldGpu> held = synchronized_gpu();
  if (!held) {
    return;
  }
  request.mutable_lent()->set_uuid(held->uuid);
  request.mutable_lent()->set_pid(held->process);
  request.mutable_lent()->set_host(held->host);
  request.mutable_lent()->set_memory_bytes(held_bytes);
}

}  // namespace

struct Client::Impl {
  ClientOptions options;
  Connection connection;
  AnswerCache cache;
  std::shared_ptr<const AnswerTrust> trust;  // null: answers need no signature
  std::atomic<std::uint64_t> calls{0};

  explicit Impl(ClientOptions given)
      : options(std::move(given)),
        connection(resolve_address(options.address)),
        cache(options.cached_answers),
        trust(AnswerTrust::of(options.trust)) {}

  v1::GetVariantRequest request_for(const Query& query) const;
  /// And whether the answer will get better.
  std::pair<Answer, bool> ask(v1::GetVariantRequest request, const std::string& key, Milliseconds deadline);
  std::shared_ptr<const std::string> cubin_of(const v1::ArtifactInfo& artifact, std::string compressed,
                                              const std::vector<Answer>& held, Milliseconds deadline);
};

v1::GetVariantRequest Client::Impl::request_for(const Query& query) const {
  try {
    return make_request(query);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::FailedPrecondition) {  // no GPU is here
      connection.require_kernel(query.kernel, query.deadline.value_or(options.deadline));
    }
    throw;
  }
}

// The compressed cubin leaves the reply, which is kept.
std::pair<Answer, bool> Client::Impl::ask(v1::GetVariantRequest request, const std::string& key,
                                          Milliseconds deadline) {
  const std::vector<Answer> held = cache.of_key(key, kMaxHeldArtifacts);
  for (const Answer& answer : held) {
    request.add_have_artifacts(bytes_of(answer.cubin_digest()));
  }
  ++calls;
  auto reply = std::make_shared<v1::GetVariantReply>(connection.get_variant(request, deadline));
  const std::unique_ptr<std::string> compressed(reply->mutable_artifact()->release_zstd_cubin());
  const Asked asked = read_asked(request.SerializeAsString());
  const Told told = read_told(reply->SerializeAsString());
  check_reply(asked, told);
  auto cubin = cubin_of(reply->artifact(), compressed ? std::move(*compressed) : "", held, deadline);
  if (trust) {
    trust->check(asked, told, *cubin, std::chrono::system_clock::now());
  }
  return {Answer(std::move(reply), std::move(cubin)), is_unsettled(told)};
}

// From the reply, from an earlier answer, or by a call of its own, in this order.
std::shared_ptr<const std::string> Client::Impl::cubin_of(const v1::ArtifactInfo& artifact,
                                                          std::string compressed,
                                                          const std::vector<Answer>& held,
                                                          Milliseconds deadline) {
  const Digest digest = digest_from_wire(artifact.digest(), "artifact.digest");
  if (compressed.empty()) {
    const auto same = std::ranges::find(held, digest, &Answer::cubin_digest);
    if (same != held.end()) {
      return same->shared_cubin();
    }
    ++calls;
    compressed = connection.get_artifact(digest, deadline);
  }
  const std::uint64_t size = artifact.cubin_bytes();
  if (size > kMaxCubinBytes) {  // a wrong size must not take the process's memory
    throw Error(ErrorCode::ResourceExhausted, "artifact.cubin_bytes",
                std::to_string(size) + " bytes, a cubin may have at most " + std::to_string(kMaxCubinBytes));
  }
  return std::make_shared<const std::string>(zstd_decompress(compressed, static_cast<std::size_t>(size)));
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Answer Client::get(const Query& query) {
  v1::GetVariantRequest request = impl_->request_for(query);
  const std::string key = question_key(request);
  const auto now = std::chrono::steady_clock::now();
  if (auto known = impl_->cache.find(key, query.problem, accepted_departures(request), now)) {
    return *known;
  }
  if (query.on_miss == OnMiss::Wait && query.lend) {
    lend_gpu(query.held_bytes, request);
  }
  auto [answer, gets_better] = impl_->ask(request, key, query.deadline.value_or(impl_->options.deadline));
  impl_->cache.add(key, answer,
                   gets_better ? std::optional(now + impl_->options.unsettled_for) : std::nullopt);
  return answer;
}

std::uint64_t Client::calls() const { return impl_->calls; }

}  // namespace cubind
