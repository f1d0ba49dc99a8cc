#include "plan/dtype.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {

TEST_CASE("the spellings of torch and NumPy and Triton and CUDA name the same types") {
  const std::pair<DType, std::vector<const char*>> spellings[] = {
      {DType::F64,
       {"f64", "torch.float64", "torch.double", "np.float64", "numpy.double", "np.float_", "tl.float64",
        "fp64", "float64", "<f8"}},
      {DType::F32,
       {"f32", "torch.float32", "torch.float", "np.float32", "np.single", "tl.float32", "fp32", "float32",
        "<f4", "=f4", "F32", "dtype('float32')"}},
      {DType::F16,
       {"f16", "torch.float16", "torch.half", "np.float16", "np.half", "tl.float16", "fp16", "half", "<f2",
        "__half", "numpy.dtype('float16')", "<class 'numpy.float16'>", "dtype('<f2')"}},
      {DType::Bf16,
       {"bf16", "torch.bfloat16", "ml_dtypes.bfloat16", "jnp.bfloat16", "tl.bfloat16",
        "triton.language.bfloat16", "bfloat16", "__nv_bfloat16", "dtype(bfloat16)",
        "<class 'ml_dtypes.bfloat16'>"}},
      {DType::E4m3,
       {"e4m3", "torch.float8_e4m3fn", "tl.float8e4nv", "fp8e4nv", "ml_dtypes.float8_e4m3fn",
        "jnp.float8_e4m3fn", "float8_e4m3fn", "__nv_fp8_e4m3"}},
      {DType::E5m2,
       {"e5m2", "torch.float8_e5m2", "tl.float8e5", "fp8e5", "ml_dtypes.float8_e5m2", "float8_e5m2"}},
      {DType::I64,
       {"i64", "torch.int64", "torch.long", "np.int64", "np.longlong", "np.intp", "tl.int64", "<i8"}},
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

TEST_CASE("words that mean different types to different libraries are no types") {
  for (const char* text : {"float", "int", "long", "np.float", "np.int", "np.int_", "numpy.long", "tl.float",
                           "byte", "torch.byte", "float8_e4m3", "ml_dtypes.float8_e4m3"}) {
    INFO(text);
    CHECK(!parse_dtype(text));
  }
}

TEST_CASE("formats of eight bits that CUDA does not have are no types") {
  for (const char* text : {"torch.float8_e4m3fnuz", "torch.float8_e5m2fnuz", "tl.float8e4b15",
                           "tl.float8e4b8", "ml_dtypes.float8_e3m4", "fp8"}) {
    INFO(text);
    CHECK(!parse_dtype(text));
  }
}

TEST_CASE("what is no type is absent") {
  for (const char* text :
       {"", "torch.", "torch", "f", "f33", "float3", "<f", "<", "<bf16", ">f4", "bool", "|b1",
        "torch.torch.float32", "dtype()", "dtype('')", "<class 'numpy.float16'", "np.dtype"}) {
    INFO(text);
    CHECK(!parse_dtype(text));
  }
}

TEST_CASE("a word on which libraries disagree is answered with the types that it may mean") {
  for (const char* text : {"float", "Int", "long", "byte", "float8_e4m3"}) {
    INFO(text);
    CHECK(!parse_dtype(text));
    CHECK_THAT(dtype_suggestion(text), Catch::StartsWith(": libraries disagree on it, write "));
  }
  CHECK_THAT(dtype_suggestion("float"), Catch::Contains("f32 (torch") && Catch::Contains("f64 (NumPy"));
  CHECK(dtype_suggestion("bf166") == ", did you mean \"bf16\"?");
  CHECK(dtype_suggestion("Tx", std::vector<std::string>{"T"}) == ", did you mean \"T\"?");
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

TEST_CASE("scalars have types that no buffer has") {
  for (const auto& [text, type] :
       {std::pair("u32", DType::U32), std::pair("torch.uint32", DType::U32), std::pair("uint64", DType::U64),
        std::pair("np.int16", DType::I16), std::pair("U16", DType::U16), std::pair("bool", DType::Bool)}) {
    INFO(text);
    CHECK(parse_scalar_type(text) == type);
    CHECK_FALSE(parse_dtype(text));
    CHECK_FALSE(is_element_type(type));
    CHECK(parse_scalar_type(to_string(type)) == type);
  }
  CHECK(parse_scalar_type("bf16") == DType::Bf16);
  CHECK(size_of(DType::U64) == 8);
  CHECK(cuda_name(DType::U32) == "unsigned int");
}

}  // namespace cubind::test
