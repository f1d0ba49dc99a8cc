#include "server/grpc_limits.hpp"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "schemas/keepalive.hpp"
#include "server/convert/limits.hpp"

namespace cubind {
namespace {

/// A message is inflated before its size is compared with a limit: half a megabyte of gzip would become a
/// gigabyte. So a call that says it is compressed is refused, and whatever comes compressed nevertheless
/// stays as it is.
void refuse_compression(grpc::ServerBuilder& builder) {
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

/// A call costs about 15 KiB until its caller has read the answer. gRPC enforces the number of streams only
/// for clients that acknowledge its settings and reset no stream (docs/security.md names the remedy), and the
/// sum over all connections by refusing and closing some when memory is short.
void limit_streams(grpc::ServerBuilder& builder) {
  constexpr std::size_t kBytesOfAllConnections = std::size_t{512} << 20;
  constexpr int kStreamsOfConnection = 1000;
  grpc::ResourceQuota quota("connections");
  builder.SetResourceQuota(quota.Resize(kBytesOfAllConnections));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsOfConnection);
}

/// Only gRPC's log has this; clients that are connected do not notice, nor do those that the kernel queues.
void end_without_listener(const std::string& cause) {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  log_error("no connection is accepted any more (" + cause +
            "), and the daemon ends, so that a supervisor starts it "
            "again: its limit is " +
            std::to_string(descriptors.rlim_cur) + " open files (ulimit -n, LimitNOFILE=)");
  ::kill(::getpid(), kListenerLost);
}

}  // namespace

void set_limits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  refuse_compression(builder);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMs);
  limit_streams(builder);
}

// A call's thread would write gRPC's own words to stderr, and wait until they are read.
void log_words_of_grpc() {
  gpr_set_log_function([](gpr_log_func_args* words) {
    const std::string text = std::string("gRPC: ") + words->message;
    words->severity == GPR_LOG_SEVERITY_ERROR ? log_warning(text) : log_debug(text);
    if (constexpr std::string_view kLost = "Failed accept4: ";
        std::string_view(words->message).starts_with(kLost)) {
      end_without_listener(words->message + kLost.size());
    }
  });
  // The caller gets an error for a text that is not UTF-8: anyone could fill the log with such texts.
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel, const char*, int, const std::string& words) {
    log_debug("protobuf: " + words);
  });
}

}  // namespace cubind
