#include "server/service/known_answer.hpp"

#include "server/service/reply_cache.hpp"

namespace cubind {
namespace {

/// The cubin made room for others: its bytes are read again, and nothing is looked up.
bool read_cubin(ServiceContext& context, std::string_view request, const ReplyState& state,
                KnownReply& known) {
  known.blob = context.blobs.find(known.cubin->cubin);
  if (!known.blob || !known.cubin->is(*known.blob)) {
    return false;
  }
  context.replies.keep(request, state, {known.head, known.cubin, known.quality}, known.blob);
  ++context.hits;
  return true;
}

}  // namespace

// No message in wire format begins with a zero byte: a limited caller's key is no other caller's request.
KeptAs::KeptAs(const Caller& caller, std::string_view request) : request_(request) {
  if (caller.has_all_namespaces()) {
    return;
  }
  own_.append(1, '\0').append(std::to_string(caller.namespaces.size()));  // so no list is another's beginning
  const auto add = [&](std::string_view part) {
    own_.append(1, '\0').append(std::to_string(part.size())).append(1, ':').append(part);
  };
  for (const std::string& name : caller.namespaces) {
    add(name);
  }
  own_.append(1, '\0').append(request);
}

std::optional<AnswerQuality> answer_again(ServiceContext& context, std::string_view request,
                                          grpc::ByteBuffer& reply) {
  if (context.draining) {
    return std::nullopt;
  }
  const ReplyState state = reply_state(context);
  auto known = context.replies.find(request, state);
  if (!known || (known->cubin && !known->blob && !read_cubin(context, request, state, *known))) {
    return std::nullopt;
  }
  reply = assemble(known->head, std::move(known->blob));
  return known->quality;
}

}  // namespace cubind
