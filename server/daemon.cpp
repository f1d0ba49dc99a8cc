#include "server/daemon.hpp"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "server/access/audit_log.hpp"
#include "server/access/caller_limits.hpp"
#include "server/access/gate.hpp"
#include "server/answer/artifact_budget.hpp"
#include "server/defined_kernels.hpp"
#include "server/definitions_folder.hpp"
#include "server/grpc_limits.hpp"
#include "server/listener.hpp"
#include "server/metrics_page.hpp"
#include "server/own_process.hpp"
#include "server/prebuild.hpp"
#include "server/served_bundle.hpp"
#include "server/service/cubind_service.hpp"
#include "server/service/first_agent.hpp"
#include "server/service/idle_verification.hpp"
#include "server/service/reply_cache.hpp"
#include "server/shipped_tables.hpp"
#include "server/store/peers.hpp"
#include "server/store/store.hpp"
#include "server/tls_credentials.hpp"
#include "server/user_watch.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::seconds kRecovery{1}, kMostRecovery{60};
constexpr std::chrono::seconds kAgentStarts{20};
constexpr std::chrono::seconds kBudget{30};  // from one look at the room for cubins to the next one
constexpr std::chrono::seconds kFirstAnswer{5};
constexpr std::chrono::seconds kDrain{5};
constexpr std::chrono::seconds kLastCalls{1};
constexpr std::size_t kReplyCacheBytes = std::size_t{64} << 20;

SchedulerOptions scheduler_options(const Config& config, CallerLimits& limits, DefinedKernels& defined) {
  SchedulerOptions options;
  options.is_foreign = [&defined](const std::string& kernel) { return defined.is_foreign(kernel); };
  options.lease = config.lease;
  options.limits = &limits;
  return options;
}

StoreOptions store_options(const Config& config, const std::string& address) {
  constexpr std::uint64_t kPageBytes = 4096;
  StoreOptions options;
  options.path = config.database;
  options.url = config.store_url;
  options.address = address;
  const std::uint64_t pages =
      config.database_bytes / kPageBytes + (config.database_bytes % kPageBytes > 0 ? 1 : 0);
  options.max_pages = static_cast<std::uint32_t>(std::min<std::uint64_t>(pages, UINT32_MAX));
  return options;
}

std::vector<std::filesystem::path> with(std::vector<std::filesystem::path> folders,
                                        const std::filesystem::path& last) {
  folders.push_back(last);
  return folders;
}

/// Next to the daemon's own socket: "cubind-ml.sock".
std::unique_ptr<SocketFile> group_socket_of(const Config& config) {
  if (!config.socket_group) {
    return nullptr;
  }
  std::string name = config.socket.stem().string() + "-" + config.socket_group->name;
  name += config.socket.extension().string();
  return std::make_unique<SocketFile>(config.socket.parent_path() / name);
}

std::shared_ptr<grpc::ServerCredentials> listen_credentials(const Config& config) {
  return config.tls_certificate.empty()
             ? grpc::InsecureServerCredentials()
             : tls_credentials({config.tls_certificate, config.tls_key, config.tls_client_ca});
}

}  // namespace

/// The parts in the order of their construction; they are destroyed the other way round.
struct Daemon::Parts {
  explicit Parts(const Config& settings)
      : bundle(settings.bundle.empty() ? nullptr
                                       : std::make_unique<ServedBundle>(settings, clock.wall_now())),
        config(bundle ? bundle->settings(settings) : settings),
        socket(config.socket),
        group_socket(group_socket_of(config)),
        gate(config.tokens, clock, config.socket_group),
        audit(config.audit_log, clock),
        store(Store::open(store_options(config, socket.address()))),
        definitions(definitions_folder(config, socket.address())),
        defined(definitions.folder),
        kernels(with(config.kernels, defined.folder()), clock, config.headers),
        blobs(*store, config.cache_bytes),
        artifacts(*store, blobs),
        pins(*store, index),
        budget(*store, blobs, config.artifact_bytes),
        entries(blobs),
        answerer(artifacts, entries),
        replies(kReplyCacheBytes),
        questions(kernels, defined, index, fleet),
        scheduler(*store, index, kernels, clock, scheduler_options(config, limits, defined)),
        context{.store = *store,
                .index = index,
                .kernels = kernels,
                .defined = defined,
                .fleet = fleet,
                .scheduler = scheduler,
                .artifacts = artifacts,
                .pins = pins,
                .answerer = answerer,
                .blobs = blobs,
                .budget = budget,
                .replies = replies,
                .questions = questions,
                .clock = clock,
                .jobs = jobs,
                .background = background,
                .walks = walks,
                .gate = gate,
                .audit = audit,
                .limits = limits},
        service(context),
        agent_service(context) {}

  void prepare();
  void remove_unreadable_definitions();
  void load_bundle();
  void follow_peers();
  void listen();
  void start_agent();
  void start_web();
  void start_watch();
  void set_not_serving();
  void schedule_tick();
  void tick();
  void recover();
  void keep_budget();
  void agents_changed();
  void drain();

  const RealClock clock;
  const std::unique_ptr<const ServedBundle> bundle;  // null: the daemon has a store of its own
  const Config config;
  SocketFile socket;
  const std::unique_ptr<SocketFile> group_socket;  // null: the socket is the daemon's own user's alone
  Gate gate;
  AuditLog audit;
  CallerLimits limits;
  std::unique_ptr<Store> store;
  Index index;
  Fleet fleet;
  const DefinitionsFolder definitions;
  DefinedKernels defined;
  KernelLibrary kernels;
  BlobCache blobs;
  ArtifactFinder artifacts;
  Pins pins;
  ArtifactBudget budget;
  ArtifactEntries entries;
  Answerer answerer;
  SignedRecords signed_records;
  ReplyCache replies;
  QuestionReader questions;
  Scheduler scheduler;
  FairStrand background;
  FairStrand walks;
  Strand jobs;
  ServiceContext context;
  CubindService service;
  AgentService agent_service;
  std::unique_ptr<store::Following> following;           // null: no other daemon can use the store
  std::shared_ptr<grpc::ServerCredentials> credentials;  // of --listen; null: none
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<MetricsPage> metrics;  // null: off
  std::unique_ptr<OwnProcess> agent;
  std::unique_ptr<OwnProcess> web;  // null: off
  std::unique_ptr<UserWatch> users;
  std::shared_ptr<IdleVerification> idle_verification;  // null: stale records stay
  std::string address;
  int port = 0;
  // Used on the job thread:
  std::string offer;
  std::chrono::steady_clock::time_point next_recovery{}, next_budget{};
  std::chrono::seconds recovery = kRecovery;  // from one that succeeded to the next one
  bool stopped = false;
};

void Daemon::Parts::prepare() {
  context.started_at = clock.steady_now();
  context.heartbeat = config.heartbeat;
  context.sealed = config.sealed;
  remove_unreadable_definitions();
  load_bundle();
  scheduler.outcomes().on_artifact([this](const ArtifactRow& artifact) { artifacts.note(artifact); });
  scheduler.agents().on_change([this] { agents_changed(); });
  jobs.run([this] {
    failpoint("daemon.load");
    index.load(*store);
    if (config.local_agent) {
      scheduler.agents().expect_until(clock.steady_now() + kAgentStarts);
    }
    scheduler.load();
  });
  follow_peers();
  import_shipped_tables(context, config);
  context.prebuild = [this] { prebuild(context); };
  if (config.idle_verify) {
    IdleVerificationOptions options;
    options.idle = *config.idle_verify;
    idle_verification = std::make_shared<IdleVerification>(context, options);
  }
  schedule_tick();
}

void Daemon::Parts::follow_peers() {
  if (store->peers() == nullptr) {
    return;
  }
  scheduler.peers().on_job_ended([this] { artifacts.note_others(); });
  const auto is_due = std::make_shared<std::atomic<bool>>(false);
  const auto catch_up = [this, is_due] {
    *is_due = false;
    try {
      scheduler.catch_up();
    } catch (const Error& error) {
      log_debug(std::string("other daemons' changes are not read: ") + error.what());
    }
  };
  following = std::make_unique<store::Following>(*store->peers(), [this, is_due, catch_up] {
    if (!is_due->exchange(true)) {
      jobs.post(catch_up);
    }
  });
}

void Daemon::Parts::load_bundle() {
  if (bundle) {
    bundle->put_into(*store);
    signed_records = bundle->records();
    context.signed_records = &signed_records;
    log_info("serves the bundle " + bundle->text());
  }
}

// Callers send a definition that is missing, and never one that is there.
void Daemon::Parts::remove_unreadable_definitions() {
  bool any = false;
  for (const auto& entry : *kernels.kernels()) {
    if (!entry->spec && defined.holds(entry->file)) {
      any = defined.remove(fs::path(entry->file).parent_path().filename().string()) || any;
      log_warning("kernels: the definition " + entry->file +
                  " was removed, and its callers send it again: " + entry->error);
    }
  }
  if (any) {
    kernels.reload();
  }
}

void Daemon::Parts::agents_changed() {
  fleet.set(scheduler.agents().profiles());
  release_from_first_agent(context);
  const std::string now = offer_of(scheduler.agents().profiles());
  if (std::exchange(offer, now) != now && context.prebuild && !now.empty()) {
    context.prebuild();
  }
}

void Daemon::Parts::schedule_tick() {
  jobs.post_at(clock.steady_now() + kTick, [this] {
    schedule_tick();  // first: a tick that throws is not the last one
    tick();
  });
}

void Daemon::Parts::tick() {
  recover();
  keep_budget();
  if (!context.draining) {
    socket.watch();
  }
  scheduler.tick();
  release_from_first_agent(context);
  if (idle_verification) {
    idle_verification->tick();
  }
}

void Daemon::Parts::keep_budget() {
  if (const auto now = clock.steady_now(); now >= next_budget) {
    next_budget = now + kBudget;
    background.post("", [this] {
      budget.keep();
      context.saved.keep();
    });
  }
}

void Daemon::Parts::recover() {
  const auto now = clock.steady_now();
  if (!store->read_only_reason()) {
    // It may have room for little and refuse the next job's results at once: that is tried ever less often.
    recovery = now >= next_recovery + kMostRecovery ? kRecovery : recovery;
  } else if (now >= next_recovery) {
    next_recovery = now + kRecovery;
    if (store->try_recover()) {
      next_recovery = now + recovery;
      recovery = std::min<std::chrono::seconds>(2 * recovery, kMostRecovery);
    }
  }
}

void Daemon::Parts::listen() {
  log_words_of_grpc();
  // Not undone: grpc_shutdown would wait 10 s for connections that no thread reads from.
  grpc_init();
  raise_descriptor_limit();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  address = socket.address();
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  // Clients need not know of local credentials, which send nothing; calls tell them apart.
  if (group_socket) {
    builder.AddListeningPort(group_socket->address(), grpc::experimental::LocalServerCredentials(UDS));
  }
  if (!config.listen.empty()) {
    credentials = listen_credentials(config);
    builder.AddListeningPort(config.listen, credentials, &port);
  }
  set_limits(builder);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(&service);
  builder.RegisterService(&agent_service);
  {
    const PrivateBind for_this_user_alone;
    server = builder.BuildAndStart();
  }
  if (!server || (!config.listen.empty() && port == 0)) {
    throw Error(ErrorCode::FailedPrecondition, config.listen.empty() ? address : config.listen,
                "cannot be listened on");
  }
  socket.restrict_access();
  if (group_socket) {
    group_socket->open_to(*config.socket_group);
    log_info("members of the group " + config.socket_group->name + " reach it as " +
             std::string(role_name(config.socket_group->role)) + " on " + group_socket->address());
  }
  socket.require_answer(kFirstAnswer);  // gRPC goes on without the threads that it could not make
  if (!config.metrics.empty()) {
    metrics = std::make_unique<MetricsPage>(config.metrics, context);
  }
  if (port != 0) {
    const std::string host = config.listen.substr(0, config.listen.rfind(':') + 1);
    const std::string where = "listening on " + host + std::to_string(port);
    if (!config.tls_certificate.empty()) {
      log_info(where + " with TLS");
    } else {
      log_warning(where + (config.tokens.empty() ? " without TLS and tokens"
                                                 : " without TLS: tokens travel in clear"));
    }
  }
  log_info(std::string("cubind ") + kVersion + " listens on " + address +
           (config.store_url.empty() ? "" : ", its store is " + config.store_url));
}

void Daemon::Parts::start_agent() {
  if (!config.local_agent) {
    if (!bundle) {
      log_info("starts no agent of its own (--no-local-agent): nothing is measured until one connects");
    }
    return;
  }
  OwnProcessOptions options;
  options.program = config.agent_program;
  options.arguments = config.agent_arguments;
  options.address = address;
  agent = std::make_unique<OwnProcess>(std::move(options), [this] {
    jobs.post([this] { scheduler.agents().expect_until(clock.steady_now() + kAgentStarts); });
  });
}

void Daemon::Parts::start_web() {
  if (config.web.empty()) {
    return;
  }
  OwnProcessOptions options;
  options.name = "server of the pages";
  options.program = config.web_program;
  options.arguments = {config.web};
  options.address = address;
  web = std::make_unique<OwnProcess>(std::move(options), [] {});
}

void Daemon::Parts::start_watch() {
  if (!config.until_unlocked.empty()) {
    users = std::make_unique<UserWatch>(config.until_unlocked, std::chrono::seconds(1),
                                        [] { ::kill(::getpid(), SIGTERM); });
  }
}

void Daemon::Parts::set_not_serving() {
  if (auto* health = server ? server->GetHealthCheckService() : nullptr) {
    health->SetServingStatus(false);
  }
}

void Daemon::Parts::drain() {
  context.draining = true;
  set_not_serving();
  jobs.run([this] {
    scheduler.drain();
    release_from_first_agent(context);
  });
  const auto deadline = clock.steady_now() + kDrain;
  bool idle = false;
  while (!idle && clock.steady_now() < deadline) {
    jobs.run([&] { idle = scheduler.leases().held().empty(); });
    if (!idle) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  if (!idle) {
    log_warning("some leases were not handed back in time: their jobs are queued again");
  }
}

Daemon::Daemon(const Config& config) : parts_(std::make_unique<Parts>(config)) {}

void Daemon::start() {
  parts_->prepare();
  parts_->listen();
  parts_->start_agent();
  parts_->start_web();
  parts_->start_watch();
}

Daemon::~Daemon() {
  try {
    stop();
  } catch (const std::exception& fault) {
    log_error(std::string("stopping failed: ") + fault.what());
  }
}

const std::string& Daemon::address() const { return parts_->address; }

int Daemon::port() const { return parts_->port; }

int Daemon::metrics_port() const { return parts_->metrics ? parts_->metrics->port() : 0; }

ServiceContext& Daemon::context() { return parts_->context; }

void Daemon::stop() {
  if (std::exchange(parts_->stopped, true)) {
    return;
  }
  parts_->metrics.reset();
  parts_->web.reset();
  parts_->drain();
  if (parts_->agent) {
    parts_->agent->stop();
  }
  if (parts_->server) {
    parts_->server->Shutdown(std::chrono::system_clock::now() + kLastCalls);
    parts_->server->Wait();
  }
  parts_->agent.reset();
  parts_->context.saved.keep();
  parts_->following.reset();
  // Each posts to the other: what comes after this is dropped.
  parts_->walks.close();
  parts_->background.close();
  parts_->jobs.close();
  log_info("stopped");
}

}  // namespace cubind
