#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/service/cubindctl/ctl.hpp"

namespace cubind::test {

TEST_CASE("export prints the daemon's bytes unchanged or writes them to a file") {
  std::string table = "{\"format\": \"cubind-table\"}\n";
  FakeDaemon daemon;
  v1::ExportTableRequest asked;
  daemon.scripts.export_table = [&](const v1::ExportTableRequest& request) {
    asked = request;
    v1::TableChunk chunk;
    chunk.set_json(table);
    return chunk;
  };
  const TempDir folder;
  const std::string file = (folder.path() / "t.json").string();
  CHECK(ctl(daemon, {"export", "--kernel", "scale", "--all-trials", "--replayed", "--shipped"}).out == table);
  CHECK(asked.kernels(0) == "scale");
  CHECK(asked.all_trials());
  CHECK(asked.include_replayed());
  CHECK(asked.include_shipped());
  CHECK(ctl(daemon, {"export", "-o", file}).exit_code == 0);
  CHECK(read_file(file) == table);
}

TEST_CASE("export says on standard error what it left out and which option includes it") {
  FakeDaemon daemon;
  v1::TableChunk chunk;
  chunk.set_json("{}\n");
  daemon.scripts.export_table = [&](const v1::ExportTableRequest&) { return chunk; };
  CHECK(ctl(daemon, {"export"}).err.empty());
  chunk.set_replayed_left_out(13);
  chunk.set_provisional_left_out(1);
  chunk.set_shipped_left_out(317);
  const ProgramResult result = ctl(daemon, {"export"});
  CHECK(result.out == "{}\n");
  CHECK(result.err ==
        "left out 13 rows of a replay device: --replayed includes them\n"
        "left out 1 row measured next to other processes: --provisional includes it\n"
        "left out 317 records that came with cubind: --shipped includes them\n");
  const TempDir folder;
  const ProgramResult json = ctl(daemon, {"export", "--json", "-o", (folder.path() / "t.json").string()});
  CHECK(Json::parse(json.out)["replayed_left_out"] == 13);
  CHECK(Json::parse(json.out)["shipped_left_out"] == 317);
}

TEST_CASE("export says on standard error which rows it lacks because their device class is damaged") {
  FakeDaemon daemon;
  daemon.scripts.export_table = [](const v1::ExportTableRequest&) {
    v1::TableChunk chunk;
    chunk.set_damaged_left_out(2);
    return chunk;
  };
  CHECK(ctl(daemon, {"export"}).err ==
        "left out 2 rows whose device class is damaged in the store: the next tuning job for that device "
        "mends it, then export again\n");
  const TempDir folder;
  const ProgramResult json = ctl(daemon, {"export", "--json", "-o", (folder.path() / "t.json").string()});
  CHECK(Json::parse(json.out)["damaged_left_out"] == 2);
}

TEST_CASE("import sends the file in chunks with its name and prints the counts") {
  const std::string table(3 << 20, ' ');
  FakeDaemon daemon;
  std::string got, name;
  daemon.scripts.import_table = [&](const std::string& json, const std::string& file) {
    got = json;
    name = file;
    v1::ImportTableReply reply;
    reply.set_records_added(14);
    return reply;
  };
  const TempDir folder;
  const std::string file = (folder.path() / "t.json").string();
  write_file_atomic(file, table);
  CHECK_THAT(ctl(daemon, {"import", file}).out, Catch::Contains("14 records added"));
  CHECK(got == table);
  CHECK(name == file);
  CHECK(Json::parse(ctl(daemon, {"import", file, "--json"}).out)["imported"][0]["records_added"] == 14);
}

}  // namespace cubind::test
