#include "tests/service/server/any_call.hpp"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <future>
#include <stdexcept>

#include "schemas/agent.pb.h"
#include "schemas/cubind.pb.h"
#include "schemas/status_mark.hpp"
#include "tests/fakes/agent/fake_agent.hpp"

namespace cubind::test {
namespace {

const google::protobuf::FieldDescriptor* namespace_in(const google::protobuf::Descriptor* message) {
  return message->FindFieldByName("namespace");
}

const google::protobuf::FieldDescriptor* question_in(const google::protobuf::Descriptor* message) {
  return message->FindFieldByName("question");
}

}  // namespace

std::vector<Method> all_methods() {
  std::vector<Method> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::GetVariantRequest::descriptor()->file(), v1::Hello::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}

Method method_of(const std::string& name) {
  for (const Method method : all_methods()) {
    if (method->name() == name) {
      return method;
    }
  }
  throw std::runtime_error("there is no rpc " + name);
}

bool has_namespace(Method method) {
  const auto* question = question_in(method->input_type());
  return namespace_in(method->input_type()) != nullptr ||
         (question != nullptr && namespace_in(question->message_type()) != nullptr);
}

std::string message_in(Method method, const std::string& name_space) {
  const std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(method->input_type())->New());
  google::protobuf::Message* holder = request.get();
  if (namespace_in(method->input_type()) == nullptr && has_namespace(method)) {
    holder = request->GetReflection()->MutableMessage(holder, question_in(method->input_type()));
  }
  if (const auto* field = namespace_in(holder->GetDescriptor())) {
    holder->GetReflection()->SetString(holder, field, name_space);
  }
  return request->SerializeAsString();
}

grpc::Status call(const std::shared_ptr<grpc::Channel>& channel, Method method, const std::string& token,
                  const std::string& message, bool* is_marked) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  if (!token.empty()) {
    context.AddMetadata("authorization", "Bearer " + token);
  }
  const grpc::Slice bytes(message);
  const grpc::ByteBuffer request(&bytes, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> ended;
  grpc::GenericStub(channel).UnaryCall(&context, "/" + method->service()->full_name() + "/" + method->name(),
                                       grpc::StubOptions(), &request, &reply,
                                       [&](grpc::Status status) { ended.set_value(std::move(status)); });
  grpc::Status status = ended.get_future().get();
  if (is_marked != nullptr) {
    *is_marked = context.GetServerTrailingMetadata().contains(kStatusMark);
  }
  return status;
}

}  // namespace cubind::test
