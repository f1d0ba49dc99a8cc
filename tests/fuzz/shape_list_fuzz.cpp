// A list of shapes in each of its formats: refused with its place, or problems with the same names.
#include <cstdint>
#include <string_view>

#include "client/cubindctl/tune/shape_list.hpp"
#include "tests/fuzz/refusal.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubind;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"shapes.json", "shapes.jsonl", "shapes.csv"}) {
    fuzz::refuse_or([&] {
      const ctl::ShapeList list = ctl::read_shape_list(text, file);
      fuzz::require(!list.empty());
      for (const ctl::KernelShapes& kernel : list) {
        fuzz::require(!kernel.shapes.empty());
        for (const ctl::Shape& shape : kernel.shapes) {
          const Problem& problem = shape.problem;
          fuzz::require(problem.dims.size() + problem.types.size() + problem.flags.size() > 0);
        }
      }
    });
  }
  return 0;
}
