// tiny_files FOLDER: writes the tiny kernel (FOLDER/kernels), a table that a replay device plays for
// N=4096,K=2,T=f32 and N=4096,K=3,T=f32 (FOLDER/table.json), and the replay device's settings
// (FOLDER/faults.json).
#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/file.hpp"
#include "tests/support/tiny_kernel.hpp"
#include "tuner/table/table.hpp"

namespace {

void write_files(const std::filesystem::path& folder) {
  namespace test = cubind::test;
  test::write_tiny_kernel(folder / "kernels");
  cubind::create_folders(folder / "locks");
  const std::string table =
      cubind::print_table(test::tiny_table({test::tiny_problem(2), test::tiny_problem(3)}));
  cubind::write_file_atomic(folder / "table.json", table);
  cubind::write_file_atomic(folder / "faults.json",
                            R"({"lock": ")" + (folder / "locks").string() + R"(", "faults": []})");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) {
      std::fprintf(stderr, "usage: tiny_files FOLDER\n");
      return 2;
    }
    write_files(argv[1]);
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "tiny_files: %s\n", fault.what());
    return 1;
  }
}
