// Every document of --json and of a report, as tests/golden/documents.json holds it: a change of what
// programs read shows there. `unit_cubindctl "[write]"` writes that file again.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cubindctl/answers/answer_json.hpp"
#include "client/cubindctl/answers/explanation_output.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "tests/support/filled_message.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/reported.hpp"

namespace cubind::ctl {
namespace {

void make_valid(v1::Provenance& provenance) {
  v1::LibraryComparison& comparison = *provenance.add_over_library();
  comparison.set_library("torch 2.11.0");
  comparison.set_gain_low(1.25);
  comparison.set_gain(1.5);
  comparison.set_gain_high(1.75);
  comparison.set_samples(30);
}
void make_valid(v1::TuneEvent& event) {
  make_valid(*event.mutable_provenance());
  make_valid(*event.mutable_before()->mutable_provenance());
}
void make_valid(google::protobuf::Message&) {}

void make_parts_valid(google::protobuf::Message& message) {
  if (auto* binding = dynamic_cast<v1::TypeBinding*>(&message)) {
    binding->set_type("bf16");
  }
  if (auto* problem = dynamic_cast<v1::Problem*>(&message); problem && problem->dims_size() > 0) {
    problem->mutable_dims(0)->set_name("N");
    problem->mutable_types(0)->set_name("T");
    problem->mutable_flags(0)->set_name("IS_CAUSAL");
  }
  if (auto* parameter = dynamic_cast<v1::Parameter*>(&message)) {
    parameter->set_type("bf16");
    parameter->mutable_tensor_map()->clear_strides();  // it has one axis
    parameter->mutable_tensor_map()->mutable_modes()->Resize(3, 32);
  }
  if (auto* policy = dynamic_cast<v1::Policy*>(&message)) {
    policy->set_flush_method(3);
  }
  const google::protobuf::Reflection& access = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  access.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    for (int i = 0; field->is_repeated() && i < access.FieldSize(message, field); ++i) {
      make_parts_valid(*access.MutableRepeatedMessage(&message, field, i));
    }
    if (!field->is_repeated()) {
      make_parts_valid(*access.MutableMessage(&message, field));
    }
  }
}

/// With every field of its message, and with none.
template <typename Message>
void add(OutputJson& documents, const std::string& name) {
  Message message;
  make_valid(message);
  test::fill(message);
  make_parts_valid(message);
  documents[name] = json_of(message);
  documents[name + ", nothing set"] = json_of(Message());
}

OutputJson documents() {
  OutputJson all;
  add<v1::Provenance>(all, "provenance");
  add<v1::ArtifactInfo>(all, "artifact");
  add<v1::Job>(all, "job");
  add<v1::TuneEvent>(all, "tune");
  add<v1::Kernel>(all, "kernel");
  add<v1::CheckKernelReply>(all, "kernels check");
  add<v1::DeviceClass>(all, "device");
  add<v1::GetStatusReply>(all, "status");
  all["report"] = test::Reported().data();
  all["report"].erase("cubindctl");
  return all;
}

std::filesystem::path golden_file() { return test::source_dir() / "tests/golden/documents.json"; }

TEST_CASE("every document of --json and of a report is as its golden file has it") {
  const OutputJson golden = OutputJson::parse(read_file(golden_file()));
  const OutputJson found = documents();
  INFO(OutputJson::diff(golden, found).dump(1));
  CHECK(found == golden);
}

TEST_CASE("the golden file of the documents is written again", "[.][write]") {
  const std::string text = documents().dump(1) + "\n";
  std::ofstream(golden_file()) << text;
}

}  // namespace
}  // namespace cubind::ctl
