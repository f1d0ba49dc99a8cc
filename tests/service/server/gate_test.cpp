// Callers by TCP with tokens: who gets through, and what a reader's question starts.
#include <catch2/catch.hpp>

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/json.hpp"
#include "base/text.hpp"
#include "schemas/agent.grpc.pb.h"
#include "server/access/caller.hpp"
#include "tests/service/server/any_call.hpp"
#include "tests/service/server/team_daemon.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {
namespace {

constexpr auto kUnauthenticated = grpc::StatusCode::UNAUTHENTICATED;
constexpr auto kDenied = grpc::StatusCode::PERMISSION_DENIED;

/// An agent measures for all namespaces, and a store is copied whole.
bool needs_all_namespaces(const CallRule& rule) {
  return rule.call == Call::Serve || rule.call == Call::PutArtifact || rule.call == Call::Backup;
}

bool may_in(const Token& token, const CallRule& rule, const std::string& name_space) {
  const Caller caller = caller_of_token(token);
  const bool in_scope =
      !has_namespace(method_of(std::string(rule.name))) || covers(caller.namespaces, name_space);
  return may(caller, rule.call) && in_scope && (caller.has_all_namespaces() || !needs_all_namespaces(rule));
}

std::map<std::string, std::string> requests_for_job(const std::string& id) {
  v1::ListJobsRequest list;
  v1::WatchJobRequest watch;
  v1::CancelJobRequest cancel;
  list.set_id(id);
  watch.set_id(id);
  cancel.set_id(id);
  return {{"ListJobs", list.SerializeAsString()},
          {"WatchJob", watch.SerializeAsString()},
          {"CancelJob", cancel.SerializeAsString()}};
}

}  // namespace

TEST_CASE("every rpc has one rule") {
  std::vector<std::string> called, ruled;
  for (const Method method : all_methods()) {
    called.push_back(method->name());
  }
  for (const CallRule& rule : call_rules()) {
    ruled.emplace_back(rule.name);
  }
  CHECK_THAT(called, Catch::UnorderedEquals(ruled));
}

TEST_CASE("no rpc is answered without a token or with a wrong or expired or revoked one") {
  TeamDaemon daemon;
  const std::string revoked = daemon.issue({.name = "gone", .roles = {CallerRole::Admin}});
  daemon.tokens.clear();
  const std::string expired =
      daemon.issue({.name = "late",
                    .roles = {CallerRole::Admin},
                    .expires = std::chrono::system_clock::now() + std::chrono::seconds(2)});
  DaemonFixture::eventually(
      [&] { return daemon.call("GetStatus", expired).error_code() == kUnauthenticated; });
  for (const Method method : all_methods()) {
    for (const std::string& token :
         {std::string(), std::string("x"), issue_token({}).text, revoked, expired}) {
      CAPTURE(method->name(), token);
      bool is_marked = false;
      const grpc::Status status = call(daemon.channel, method, token, message_in(method, "team"), &is_marked);
      CHECK(status.error_code() == kUnauthenticated);
      CHECK(is_marked);
      CHECK_THAT(status.error_message(), Catch::StartsWith("token: "));
    }
  }
}

TEST_CASE("every rpc is open to the roles of its rule and the namespaces of the token alone") {
  TeamDaemon daemon;
  for (const CallerRole role : kCallerRoles) {
    for (const Scope& scope : {Scope{kEverything}, Scope{"team"}}) {
      const Token token{.name = "one", .roles = {role}, .namespaces = scope};
      const std::string text = daemon.issue(token);
      for (const CallRule& rule : call_rules()) {
        for (const std::string name_space : {"team", "other"}) {
          CAPTURE(rule.name, role_name(role), scope, name_space);
          const Method method = method_of(std::string(rule.name));
          bool is_marked = false;
          const grpc::Status status =
              call(daemon.channel, method, text, message_in(method, name_space), &is_marked);
          CHECK(is_marked);
          CHECK((status.error_code() == kDenied) == !may_in(token, rule, name_space));
          CHECK(status.error_code() != kUnauthenticated);
          CHECK(status.error_code() != grpc::StatusCode::UNIMPLEMENTED);
        }
      }
    }
  }
}

TEST_CASE("a revoked token is refused") {
  TeamDaemon daemon;
  const std::string token = daemon.issue({.name = "gone", .roles = {CallerRole::Admin}});
  CHECK(daemon.call("GetStatus", token).ok());
  write_token_file(daemon.config().tokens, {});
  DaemonFixture::eventually([&] { return daemon.call("GetStatus", token).error_code() == kUnauthenticated; });
}

TEST_CASE("a message that does not parse is refused in every rpc with a word") {
  DaemonFixture daemon;
  const auto channel = grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials());
  for (const Method method : all_methods()) {
    for (const std::string message : {"\xff\xff", "\x0a\x7f"}) {
      CAPTURE(method->name());
      const grpc::Status status = call(channel, method, "", message);
      CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
      CHECK_THAT(status.error_message(),
                 Catch::EndsWith("is not a " + method->input_type()->name() + " in protobuf's wire format"));
    }
  }
}

TEST_CASE("an agent takes the place of no other token's agent by its id") {
  TeamDaemon daemon;
  const FakeAgent first(daemon.address(), hello_with(h200_facts(), "gpu7"));
  const std::string token = daemon.issue({.name = "elsewhere", .roles = {CallerRole::Agent}});
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token);
  const auto stub = v1::AgentService::NewStub(daemon.channel);
  const auto stream = stub->Serve(&context);
  v1::AgentMessage message;
  *message.mutable_hello() = compiling_hello("gpu7");
  stream->Write(message);
  v1::DaemonMessage welcome;
  REQUIRE(stream->Read(&welcome));
  CHECK(welcome.has_welcome());
  CHECK(daemon.status().agents() == 2);
  context.TryCancel();
}

TEST_CASE("a job of a namespace that is not the caller's does not exist for it") {
  TeamDaemon daemon;
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_namespace_("team");
  request.set_detach(true);
  daemon.tune(request);
  const std::string id = daemon.jobs().at(0).id();
  const std::string other =
      daemon.issue({.name = "other", .roles = {CallerRole::Tuner}, .namespaces = {"other"}});
  const std::string member =
      daemon.issue({.name = "member", .roles = {CallerRole::Tuner}, .namespaces = {"team"}});
  const auto refused = [&] {
    for (const auto& [name, message] : requests_for_job(id)) {
      CAPTURE(name);
      const grpc::Status status = call(daemon.channel, method_of(name), other, message);
      CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
      CHECK(status.error_message() == "id: there is no job \"" + id + "\"");
    }
  };
  refused();
  CHECK(daemon.jobs().size() == 1);
  CHECK(call(daemon.channel, method_of("CancelJob"), member, requests_for_job(id).at("CancelJob")).ok());
  refused();
}

TEST_CASE("a kept reply is sent to no caller of another namespace") {
  TeamDaemon daemon;
  const AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  const std::string anywhere = daemon.issue({.name = "any", .roles = {CallerRole::Reader}});
  const std::string team =
      daemon.issue({.name = "team", .roles = {CallerRole::Reader}, .namespaces = {"team"}});
  v1::GetVariantRequest request = vector_add(4096);
  for (int i = 0; i < 3; ++i) {
    CHECK(daemon.get(request, anywhere).status.ok());
    CHECK(daemon.get(request, "").status.error_code() == kUnauthenticated);
    const Got got = daemon.get(request, team);
    CHECK(got.status.error_code() == kDenied);
    CHECK_THAT(got.status.error_message(), Catch::Contains("\"team\""));
  }
  request.set_namespace_("team");
  CHECK(daemon.get(request, team).status.error_code() != kDenied);
}

TEST_CASE("the audit log has the calls that change something and those that were refused") {
  TeamDaemon daemon;
  const std::string reader = daemon.issue({.name = "reader", .roles = {CallerRole::Reader}});
  daemon.config().audit_log = daemon.folder() / "audit.jsonl";
  daemon.start_again();
  CHECK(daemon.call("GetStatus", reader).ok());
  CHECK(daemon.call("Tune", reader).error_code() == kDenied);
  grpc::ClientContext context;
  v1::CancelJobReply reply;
  daemon.stub().CancelJob(&context, {}, &reply);
  const std::string log = read_file(daemon.config().audit_log);
  REQUIRE(std::ranges::count(log, '\n') == 2);
  const Json refused = Json::parse(log.substr(0, log.find('\n')));
  CHECK(refused.at("call") == "Tune");
  CHECK_THAT(refused.at("caller").get<std::string>(), Catch::StartsWith("reader (token "));
  CHECK_THAT(refused.at("outcome").get<std::string>(), Catch::Contains("needs the role tuner"));
  const Json admitted = Json::parse(log.substr(log.find('\n') + 1));
  CHECK(admitted.at("caller") == "owner of the socket");
  CHECK(admitted.at("outcome") == "admitted");
}

TEST_CASE("the audit log has refusals that come within a call too") {
  TeamDaemon daemon;
  const std::string member = daemon.issue(
      {.name = "member", .roles = {CallerRole::Publisher, CallerRole::Tuner}, .namespaces = {"team"}});
  daemon.config().audit_log = daemon.folder() / "audit.jsonl";
  daemon.start_again();
  const auto last_line = [&] {
    const std::string log = read_file(daemon.config().audit_log);
    const std::size_t before = log.rfind('\n', log.size() - 2);
    return Json::parse(log.substr(before == std::string::npos ? 0 : before + 1));
  };
  for (const std::string name : {"GetVariant", "ImportTable"}) {
    const Method method = method_of(name);
    CHECK(call(daemon.channel, method, member, message_in(method, "other")).error_code() == kDenied);
    DaemonFixture::eventually([&] { return last_line().at("outcome") != "admitted"; });
    CHECK(last_line().at("call") == name);
    CHECK(last_line().at("namespace") == "other");
    CHECK_THAT(last_line().at("outcome").get<std::string>(), Catch::Contains("is not open to"));
  }
}

TEST_CASE("a table with trials is taken of no caller who is limited to namespaces") {
  TeamDaemon daemon;
  const std::string member =
      daemon.issue({.name = "member", .roles = {CallerRole::Publisher}, .namespaces = {"team"}});
  v1::TableChunk table;
  table.set_namespace_("team");
  table.set_json(read_file(source_dir() / "tests" / "golden" / "replay" / "rmsnorm.json"));
  const grpc::Status status =
      call(daemon.channel, method_of("ImportTable"), member, table.SerializeAsString());
  CHECK(status.error_code() == kDenied);
  CHECK_THAT(status.error_message(), Catch::Contains("leave out `trials`"));
  table.set_json(read_file(source_dir() / "variants" / "tables" / "nvidia-h200.json"));
  CHECK(call(daemon.channel, method_of("ImportTable"), member, table.SerializeAsString()).ok());
}

TEST_CASE("records are listed to callers of their namespace alone") {
  TeamDaemon daemon;
  const std::string admin = daemon.issue({.name = "admin", .roles = {CallerRole::Admin}});
  v1::TableChunk table;
  table.set_json(read_file(source_dir() / "variants" / "tables" / "nvidia-h200.json"));
  const auto import_all = [&] {
    for (const char* name_space : {"other", "team", "third"}) {
      table.set_namespace_(name_space);
      CHECK(call(daemon.channel, method_of("ImportTable"), admin, table.SerializeAsString()).ok());
    }
  };
  import_all();
  const std::string member =
      daemon.issue({.name = "member", .roles = {CallerRole::Reader}, .namespaces = {"team", "third"}});
  const auto total = static_cast<int>(2 * read_table(table.json(), "table").records.size());
  v1::ListRecordsRequest request;
  const auto list = [&] {
    grpc::ClientContext context;
    TeamDaemon::add(context, member);
    v1::ListRecordsReply reply;
    REQUIRE(v1::Cubind::NewStub(daemon.channel)->ListRecords(&context, request, &reply).ok());
    request.set_after(reply.last());
    return reply;
  };
  const v1::ListRecordsReply reply = list();
  CHECK(reply.records_size() == total);
  CHECK(std::ranges::none_of(reply.records(), [](const auto& one) { return one.namespace_() == "other"; }));
  CHECK(list().records().empty());
  request.set_after(reply.last() - 1);
  CHECK(list().records_size() == 1);
  request = {};
  request.set_superseded(true);
  CHECK(list().records().empty());
  table.set_json(replaced(table.json(), "\"time_us\":15.776", "\"time_us\":15.777"));
  import_all();
  request.set_after(0);
  const v1::ListRecordsReply superseded = list();
  REQUIRE(superseded.records_size() == 2);
  CHECK(superseded.records(0).namespace_() == "team");
  CHECK(superseded.records(1).namespace_() == "third");
}

TEST_CASE("a reader's miss is wanted and starts no job") {
  TeamDaemon daemon;
  const AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  const std::string reader = daemon.issue({.name = "reader", .roles = {CallerRole::Reader}});
  const std::string tuner = daemon.issue({.name = "tuner", .roles = {CallerRole::Tuner}});
  const Got got = daemon.get(vector_add(4096), reader);
  CHECK_THAT(got.status.ok() ? got.reply.why() : got.status.error_message(),
             Catch::Contains("the caller is a reader"));
  CHECK(daemon.jobs(true).empty());
  v1::ListWantedReply wanted;
  DaemonFixture::eventually([&] {
    grpc::ClientContext context;
    return daemon.stub().ListWanted(&context, {}, &wanted).ok() && wanted.total() == 1;
  });
  daemon.get(vector_add(4096), tuner);
  CHECK_FALSE(daemon.jobs(true).empty());
}

TEST_CASE("a tuner's Triton kernel is refused where no sandbox is whole and the daemon's own user's is not") {
  TeamDaemon daemon;
  const std::string tuner = daemon.issue({.name = "alice", .roles = {CallerRole::Tuner}});
  const auto spec = TritonSpec().parse();
  v1::Hello hello = compiling_hello();
  offer_triton(hello, spec->triton->version);
  for (v1::Toolchain& toolchain : *hello.mutable_toolchains()) {
    toolchain.add_sandbox_lacks("Landlock: the kernel has none");
  }
  {
    const FakeAgent agent(daemon.address(), hello);
    const grpc::Status status = daemon.define(spec->bundle, tuner);
    CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK_THAT(status.error_message(), Catch::Matchers::Contains("Landlock: the kernel has none") &&
                                           Catch::Matchers::Contains("--allow-partial-sandbox"));
    CHECK_THAT(daemon.status().sandbox_lacks(0), Catch::Matchers::Contains("Landlock: the kernel has none"));
    CHECK(daemon.DaemonFixture::define(spec->bundle).ok());
  }
  hello.set_allows_partial_sandbox(true);
  const FakeAgent agent(daemon.address(), hello);
  CHECK(daemon.define(spec->bundle, tuner).ok());
}

}  // namespace cubind::test
