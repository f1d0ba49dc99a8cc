#include "tuner/plan/dtype.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {

TEST_CASE("the spellings of torch and NumPy and Triton and CUDA name the same types") {
  const std::pair<DType, std::vector<const char*>> spellings[] = {
      {DType::F64,
       {"f64", "torch.float64", "torch.double", "np.float64", "numpy.double", "tl.float64", "fp64", "<f8"}},
      {DType::F32,
       {"f32", "torch.float32", "torch.float", "np.float32", "np.single", "tl.float32", "fp32", "<f4",
        "F32"}},
      {DType::F16,
       {"f16", "torch.float16", "torch.half", "np.float16", "np.half", "tl.float16", "fp16", "<f2",
        "__half"}},
      {DType::Bf16,
       {"bf16", "torch.bfloat16", "ml_dtypes.bfloat16", "tl.bfloat16", "bfloat16", "__nv_bfloat16"}},
      {DType::E4m3, {"e4m3", "torch.float8_e4m3fn", "tl.float8e4nv", "fp8e4nv", "ml_dtypes.float8_e4m3fn"}},
      {DType::E5m2, {"e5m2", "torch.float8_e5m2", "tl.float8e5", "fp8e5", "ml_dtypes.float8_e5m2"}},
      {DType::I64, {"i64", "torch.int64", "torch.long", "np.int64", "tl.int64", "<i8"}},
      {DType::I32, {"i32", "torch.int32", "torch.int", "np.int32", "np.intc", "tl.int32", "<i4"}},
      {DType::I8, {"i8", "torch.int8", "np.int8", "np.byte", "tl.int8", "|i1"}},
      {DType::U8, {"u8", "torch.uint8", "np.uint8", "np.ubyte", "tl.uint8", "|u1"}},
  };
  for (const auto& [type, texts] : spellings) {
    for (const char* text : texts) {
      INFO(text);
      CHECK(parse_dtype(text) == type);
    }
  }
}

TEST_CASE("one spelling is printed and read back") {
  for (const std::string& name : dtype_names()) {
    const auto type = parse_dtype(name);
    REQUIRE(type);
    CHECK(to_string(*type) == name);
  }
  CHECK(dtype_names().size() == 10);
}

TEST_CASE("words that mean different sizes to different libraries are no types") {
  for (const char* text : {"float", "int", "long", "np.float", "np.int", "numpy.long", "tl.float"}) {
    INFO(text);
    CHECK(!parse_dtype(text));
  }
}

TEST_CASE("what is no type is absent") {
  for (const char* text :
       {"", "torch.", "torch", "f", "f33", "float3", "<f", "<", "<bf16", "torch.torch.float32", "bool"}) {
    INFO(text);
    CHECK(!parse_dtype(text));
  }
}

TEST_CASE("sizes and CUDA names of the types") {
  CHECK(size_of(DType::F64) == 8);
  CHECK(size_of(DType::Bf16) == 2);
  CHECK(size_of(DType::E4m3) == 1);
  CHECK(size_of(DType::I64) == 8);
  CHECK(cuda_name(DType::Bf16) == "__nv_bfloat16");
  CHECK(cuda_name(DType::I64) == "long long");
  CHECK(is_floating(DType::E5m2));
  CHECK(!is_floating(DType::U8));
}

}  // namespace cubind::test
