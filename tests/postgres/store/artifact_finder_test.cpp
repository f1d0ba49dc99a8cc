// Which artifacts are found while PostgreSQL is away.
#include "server/answer/artifact_finder.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/unit/server/lookup_fixture.hpp"

namespace cubind::test {
namespace {

/// An imported record of a toolchain that no agent has, and the artifact of another one that answers for it.
struct ImportedRecord : LookupFixture {
  ImportedRecord() {
    imported.evidence = Evidence::Imported;
    ArtifactRow row = artifact_row("", "cubin");
    row.kernel = question.key.kernel;
    row.toolchain = toolchain();
    row.key = artifact_key(artifact_source(*spec, question.key.problem, imported.configuration, "sm_90"),
                           row.toolchain);
    shared->write([&](StoreWriter& writer) {
      writer.put_blob(blob_of("cubin"));
      writer.put_artifact(row);
    });
    artifact = row;
  }
  AnswerCandidate candidate() const {
    return {Match{}, imported.evidence, std::make_shared<RecordRow>(imported), imported.configuration};
  }

  PostgresServer server;
  std::unique_ptr<Store> shared =
      Store::open({.path = folder.path() / "unused", .url = server.create_database()});
  BlobCache blobs{*shared, 1 << 20};
  ArtifactFinder finder{*shared, blobs};
  Question question = ask(4096);
  RecordRow imported = record(4096, h200_class(), {}, "nvrtc 12.9");
  ArtifactRow artifact;
};

TEST_CASE_METHOD(ImportedRecord, "an artifact that was found is found again while the database is away") {
  REQUIRE(finder.find(question, candidate()).artifact == artifact);
  REQUIRE(blobs.find(artifact.cubin));
  finder.note_others();  // who may have stored what was not stored then
  server.stop();
  CHECK(finder.find(question, candidate()).artifact == artifact);
  imported.configuration.values[0].value /= 2;
  CHECK_THROWS_AS(finder.find(question, candidate()), Error);
}

TEST_CASE_METHOD(ImportedRecord, "what another daemon has stored since is found") {
  imported.toolchain = artifact.toolchain;
  imported.configuration.values[0].value /= 2;
  CHECK_FALSE(finder.find(question, candidate()).artifact);
  ArtifactRow another = artifact;
  another.key = artifact_key(artifact_source(*spec, question.key.problem, imported.configuration, "sm_90"),
                             another.toolchain);
  shared->write([&](StoreWriter& writer) { writer.put_artifact(another); });
  CHECK_FALSE(finder.find(question, candidate()).artifact);
  GENERATE(0, 1) == 0 ? finder.note_others() : finder.note(another);
  CHECK(finder.find(question, candidate()).artifact == another);
}

}  // namespace
}  // namespace cubind::test
