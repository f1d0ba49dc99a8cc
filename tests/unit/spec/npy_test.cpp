#include "tuner/spec/npy.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/spec/spec_builder.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

std::string header_of(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// As numpy.save() writes it.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string padded = header;
  while ((padded.size() + 1 + (version == 1 ? 10 : 12)) % 64 != 0) {
    padded += ' ';
  }
  padded += '\n';
  std::string text = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    text.push_back(static_cast<char>(padded.size() >> (8 * i) & 255));
  }
  return text + padded + data;
}

std::string floats(std::size_t count, char byte = 1) { return std::string(4 * count, byte); }

std::string refusal(const std::string& text) {
  return refusal_of([&] { read_npy(text, "x.npy"); });
}

/// "scale" with x from a file, for one size.
struct OwnData {
  OwnData() {
    builder.json["problem"]["bucket"].erase("N");
    builder.json["arguments"]["x"]["fill"] = {{"npy", "x.npy"}};
    builder.files.push_back({"x.npy", npy(header_of("'<f4'", "False", "(100, 64)"), floats(6400))});
  }
  std::string refusal() const {
    return message_of([&] { builder.parse(); });
  }
  std::string data(const std::string& problem) const {
    const auto spec = builder.parse();
    const ArgumentSpec& x = *spec->argument("x");
    const Problem asked = problem_of(*spec, problem);
    return std::string(spec->file_data(x, asked).data);
  }
  Digest trial() const {
    const auto spec = builder.parse();
    const Problem asked = problem_of(*spec);
    const TrialContext context{spec.get(), asked, Digest::of("device"), {}, "580"};
    return trial_key(context, {}, {}).digest;
  }

  SpecBuilder builder;
};

}  // namespace

TEST_CASE("an array in another process's memory is named by its header, and keyed by its content") {
  const auto header = [](const std::string& path, const std::string& digest) {
    return npy("{'descr': '<f4', 'fortran_order': False, 'shape': (100, 64), 'memory': '" + path +
                   "', 'sha256': '" + digest + "', }",
               "");
  };
  const Digest content = Digest::of("content");
  const std::string text = header("/proc/12/fd/3", content.hex());
  const NpyArray array = read_npy(text, "x.npy");
  CHECK((array.memory == "/proc/12/fd/3" && array.memory_digest == content && array.elements == 6400));
  for (const char* path :
       {"/etc/passwd", "x.npy.data", "/proc/12/fd/", "/proc//fd/3", "/proc/12/mem", "/proc/self/fd/3", ""}) {
    INFO(path);
    CHECK(refusal(header(path, content.hex())).find("names no file") != std::string::npos);
  }
  CHECK(read_npy(header("/kernels/add/x.npy.data", content.hex()), "").memory == "/kernels/add/x.npy.data");
  CHECK(refusal(header("/proc/12/fd/3", "12")).find("names no file") != std::string::npos);
  OwnData data;
  data.builder.files.back().content = text;
  const Digest trial = data.trial();
  data.builder.files.back().content = header("/proc/99/fd/7", content.hex());
  CHECK(data.trial() == trial);
  data.builder.files.back().content = header("/proc/12/fd/3", Digest::of("other").hex());
  CHECK(data.trial() != trial);
}

TEST_CASE("arrays of numpy.save() are read with type, shape and data") {
  const std::string text = npy(header_of("'<f4'", "False", "(3, 4)"), floats(12));
  const NpyArray array = read_npy(text, "x.npy");
  CHECK(
      (array.type == DType::F32 && array.shape == std::vector<std::uint64_t>{3, 4} && array.elements == 12));
  CHECK(array.data == floats(12));
  for (const char version : {char{1}, char{2}, char{3}}) {
    const std::string scalar = npy(header_of("'<f8'", "False", "()"), std::string(8, 'x'), version);
    CHECK((read_npy(scalar, "").elements == 1 && read_npy(scalar, "").type == DType::F64));
  }
  CHECK(read_npy(npy(header_of("'|b1'", "False", "(5,)"), "12345"), "").type == DType::U8);
  CHECK(read_npy(npy(header_of("'<u2'", "False", "(2,)"), "1234"), "").type == DType::Bf16);
  CHECK(read_npy(npy(header_of("'<i8'", "False", "(0, 7)"), ""), "").elements == 0);
}

TEST_CASE("what is no array of numbers is refused with what to do") {
  CHECK_THAT(refusal("PK\x03\x04"), Contains("x.npy: this is no .npy file: write it with numpy.save()"));
  CHECK_THAT(refusal(""), Contains("no .npy file"));
  const std::string good = npy(header_of("'<f4'", "False", "(3,)"), floats(3));
  for (std::size_t size = 6; size + 12 < good.size(); ++size) {
    CHECK(!refusal(good.substr(0, size)).empty());
  }
  CHECK_THAT(refusal(good + "x"), Contains("its shape [3] needs 12 bytes, and 13 follow the header"));
  CHECK_THAT(refusal(npy(header_of("'<f4'", "True", "(3, 1)"), floats(3))), Contains("ascontiguousarray"));
  CHECK_THAT(refusal(npy(header_of("'>f4'", "False", "(3,)"), floats(3))),
             Contains("\">f4\": little-endian"));
  CHECK_THAT(refusal(npy(header_of("'|O'", "False", "(3,)"), floats(3))), Contains("\"|O\""));
  CHECK_THAT(refusal(npy(header_of("[('a', '<f4')]", "False", "(3,)"), floats(3))), Contains("records"));
  CHECK_THAT(refusal(npy(header_of("'<f4'", "False", "(99999999999, 99999999999)"), "")),
             Contains("more elements than a file may"));
  CHECK_THAT(refusal(npy(header_of("'<f4'", "False", "(-3,)"), floats(3))), Contains("not one of numbers"));
  CHECK_THAT(refusal(npy("{'descr': '<f4'}", floats(3))), Contains("no \"fortran_order\""));
}

TEST_CASE("a fill from a file gives its data for the size that it has") {
  const OwnData own;
  CHECK(own.data("N=100,D=64,T=f32") == floats(6400));
  CHECK_THROWS_WITH(
      own.data("N=50,D=64,T=f32"),
      Contains("scale.json /arguments/x/fill/npy: \"x.npy\" has the shape [100, 64], 6400 elements; "
               "the buffer has 3200 for N=50"));
  CHECK_THROWS_WITH(own.data("N=100,D=64,T=bf16"), Contains("elements of f32, the buffer has bf16"));
}

TEST_CASE("a fill from a file is refused where it can be of no use") {
  OwnData bucketed;
  bucketed.builder.json["problem"]["bucket"]["N"] = "pow2";
  CHECK_THAT(bucketed.refusal(), Contains("/arguments/x/fill: a file has one size, and \"N\" is bucketed"));
  OwnData missing;
  missing.builder.files.pop_back();
  CHECK_THAT(missing.refusal(),
             Contains("/arguments/x/fill/npy: there is no \"x.npy\" in the spec's folder"));
  OwnData large;
  large.builder.files.back().content = std::string(33u << 20, 'x');
  CHECK_THAT(large.refusal(), Contains("/arguments/x/fill/npy: the arrays of a kernel have at most 32 MiB"));
  OwnData outside;
  outside.builder.json["arguments"]["x"]["fill"] = {{"npy", "../x.npy"}};
  CHECK_THAT(outside.refusal(), Contains("leaves the spec's folder"));
  OwnData damaged;
  damaged.builder.files.back().content.pop_back();
  CHECK_THAT(damaged.refusal(),
             Contains("/arguments/x/fill/npy (x.npy): its shape [100, 64] needs 25600 bytes"));
}

TEST_CASE("other data is another trial and another verification") {
  const OwnData own;
  OwnData other;
  other.builder.files.back().content.back() = 2;
  CHECK(own.trial() == OwnData().trial());
  CHECK(own.trial() != other.trial());
  CHECK(verification_digest(*own.builder.parse()) != verification_digest(*other.builder.parse()));
}

}  // namespace cubind::test
