#include "server/store/postgresql/postgres_presence.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind::store {
namespace {

constexpr std::chrono::seconds kBetweenBeats{1};
/// A daemon that is silent for so long has lost its jobs. The interval in kBeat is the same.
constexpr std::chrono::seconds kAlive{6};

const std::string kBeat =
    "INSERT INTO daemons (id, name, alive_until, compiles, classes) VALUES (?, ?, clock_timestamp() + "
    "interval '6 seconds', ?, ?) ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, compiles "
    "= excluded.compiles, classes = excluded.classes";
const std::string kAlivePeers =
    "SELECT id, name, compiles, classes FROM daemons WHERE id <> ? AND alive_until > clock_timestamp() ORDER "
    "BY name, id";
const std::string kLeave = "DELETE FROM daemons WHERE id = ?";

std::string bytes_of(const std::vector<Digest>& digests) {
  std::string bytes;
  for (const Digest& digest : digests) {
    bytes += digest.view();
  }
  return bytes;
}

std::vector<Digest> digests_in(std::string_view bytes) {
  std::vector<Digest> digests;
  constexpr std::size_t kDigestBytes = 32;
  for (; bytes.size() >= kDigestBytes; bytes.remove_prefix(kDigestBytes)) {
    digests.push_back(Digest::from_bytes(bytes.substr(0, kDigestBytes)).value());
  }
  return digests;
}

}  // namespace

PostgresPresence::PostgresPresence(std::string id, std::string name, Connect connect)
    : id_(std::move(id)),
      name_(std::move(name)),
      connect_(std::move(connect)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  connect_again();
  thread_ = std::thread([this] { run(); });
}

PostgresPresence::~PostgresPresence() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  try {
    if (connection_) {
      connection_->query(kLeave).bind(Statement::bytes(id_)).run();
    }
  } catch (const std::exception& fault) {
    log_info(std::string("store: the others notice by themselves that this daemon ends: ") + fault.what());
  }
}

void PostgresPresence::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
}

bool PostgresPresence::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void PostgresPresence::connect_again() {
  connection_ = connect_();
  // Nothing is lost with the last beats: the next ones say the same.
  connection_->execute("SET synchronous_commit = off; LISTEN cubind_changes");
  ++interruptions_;
  {
    const std::lock_guard lock(mutex_);
    trusted_from_ = std::chrono::steady_clock::now() + kAlive;
  }
  beat();
}

void PostgresPresence::beat() {
  Offer offer;
  {
    const std::lock_guard lock(mutex_);
    offer = offer_;
  }
  const std::string classes = bytes_of(offer.classes);
  connection_->query(kBeat)
      .bind(Statement::bytes(id_), name_, offer.compiles, Statement::bytes(classes))
      .run();
  std::vector<Peer> alive;
  Statement query = connection_->query(kAlivePeers);
  query.bind(Statement::bytes(id_));
  while (query.step()) {
    Peer& peer = alive.emplace_back();
    peer.id = query.blob();
    peer.name = query.text();
    peer.offer.compiles = query.flag();
    peer.offer.classes = digests_in(query.blob());
  }
  const std::lock_guard lock(mutex_);
  alive_ = std::move(alive);
}

void PostgresPresence::run() {
  Time next_beat{};
  while (!is_stopping()) {
    try {
      if (!connection_) {
        connect_again();
      }
      const Time now = std::chrono::steady_clock::now();
      if (now >= next_beat) {
        beat();
        next_beat = now + kBetweenBeats;
      }
      tell();
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(next_beat - std::chrono::steady_clock::now());
      connection_->wait_for_notification(std::max(left, std::chrono::milliseconds(0)), wake_.get());
    } catch (const Error& error) {
      // The next write says so, too.
      log_debug(std::string("store: changes of other daemons are not read: ") + error.what());
      connection_.reset();
      pollfd ready{wake_.get(), POLLIN, 0};
      ::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(kBetweenBeats).count()));
    }
    std::array<char, 8> drained{};
    if (pollfd ready{wake_.get(), POLLIN, 0}; ::poll(&ready, 1, 0) > 0 && !is_stopping()) {
      [[maybe_unused]] const auto taken = ::read(wake_.get(), drained.data(), drained.size());
      next_beat = {};  // this daemon offers something else
    }
  }
}

void PostgresPresence::tell() {
  const std::lock_guard lock(telling_);
  if (changed_) {
    changed_();
  }
}

std::vector<Peer> PostgresPresence::alive() const {
  const std::lock_guard lock(mutex_);
  return alive_;
}

bool PostgresPresence::is_gone(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return id != id_ && std::chrono::steady_clock::now() >= trusted_from_ &&
         std::ranges::find(alive_, id, &Peer::id) == alive_.end();
}

void PostgresPresence::offer(const Offer& offer) {
  {
    const std::lock_guard lock(mutex_);
    if (offer_ == offer) {
      return;
    }
    offer_ = offer;
  }
  wake();
}

void PostgresPresence::follow(std::function<void()> changed) {
  const std::lock_guard lock(telling_);
  changed_ = std::move(changed);
}

}  // namespace cubind::store
