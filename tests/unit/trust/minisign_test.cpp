#include "trust/minisign.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/signing_keys.hpp"
#include "tests/support/skip.hpp"

namespace cubind {
namespace {

constexpr const char* kText = "hello bundle\n";
// minisign -S -s acme.key -m FILE -t 'cubind bundle acme 7', by minisign 0.11.
constexpr const char* kSignedByMinisign =
    "untrusted comment: signature of acme\n"
    "RUSTusczmS7QH38ermAU8UmPx6RZH8UIENpKLnVY+wZm2GAM00ZHmMRgTObfVNAX76Ixp+dwB6vGSXweBPuZfPSYr8WE2Jz3Ago=\n"
    "trusted comment: cubind bundle acme 7\n"
    "/W24/fM5m8m7/B72CigBPMEJyYvFF1qHRDBKSKUVKyuphnFS8EsWb678mkbMgXU034vBTyBnTNamk/2PksGWDQ==\n";
// The secret key of a password.
constexpr const char* kEncryptedKey =
    "untrusted comment: minisign encrypted secret key\n"
    "RWRTY0Iy8TRNcwhmPUibrFYxNtv7uzfrQQVUuMy0rN4XkQdQeVIAAAACAAAAAAAAAEAAAAAArvo6X2kGKt/+1yOc+wqRP/"
    "I2W0Y5H4CXYZoB"
    "GjN96fTaWXr/XnzAFnf4Q1KCC0RKkMuR4cSTisFUsjxiUZSN3jpBW8zdDTujd56R3qUXI/1S51p+dUFU2/pR1bEFc1SN0LO/"
    "kbvUeHU=\n";

PublicKey public_key() { return PublicKey::parse(test::kPublicKey, "key"); }

std::string fault_of_key(const std::string& text) {
  return test::message_of([&] { SecretKey::parse(text, "acme.key"); });
}

}  // namespace

TEST_CASE("a key has the id that minisign prints") {
  CHECK(public_key().id().text() == "1FD02E9933C7BA93");
  CHECK(test::signing_key().public_key() == public_key());
}

TEST_CASE("a signature that minisign has made is verified") {
  const SignatureFile file = parse_signature_file(kSignedByMinisign, "F.minisig");
  CHECK(file.comment == "cubind bundle acme 7");
  CHECK(has_signed(public_key(), kText, file));
  CHECK(!has_signed(public_key(), "hello bundle", file));
  CHECK(!has_signed(PublicKey::parse(test::kOtherPublicKey, "key"), kText, file));
}

TEST_CASE("the same text gets the signature that minisign gives it") {
  const std::string own = print_signature_file(test::signing_key(), kText, "cubind bundle acme 7");
  const std::string theirs(kSignedByMinisign);
  CHECK(own.substr(own.find('\n')) == theirs.substr(theirs.find('\n')));
}

TEST_CASE("a changed comment makes a signature wrong") {
  const std::string changed = replaced(kSignedByMinisign, "acme 7", "acme 8");
  CHECK(!has_signed(public_key(), kText, parse_signature_file(changed, "F.minisig")));
}

TEST_CASE("minisign verifies what is signed here") {
  const char* const program = "/usr/bin/minisign";
  if (!std::filesystem::exists(program)) {
    return test::skip_test("minisign is not installed");
  }
  const TempDir folder;
  const std::string file = (folder.path() / "manifest.json").string();
  write_file_atomic(file, kText);
  write_file_atomic(file + ".minisig", print_signature_file(test::signing_key(), kText, "acme 7"));
  SubprocessOptions options;
  options.program = program;
  options.arguments = {"-V", "-H", "-P", test::kPublicKey, "-m", file};
  CHECK(Subprocess::spawn(options).wait().success());
  write_file_atomic(file, "another text");
  CHECK(!Subprocess::spawn(options).wait().success());
}

TEST_CASE("a secret key of a password is refused with the way out") {
  CHECK_THAT(fault_of_key(kEncryptedKey), Catch::StartsWith("acme.key: a password protects this key") &&
                                              Catch::Contains("minisign -C -W"));
}

TEST_CASE("text that is no secret key is refused") {
  CHECK_THAT(fault_of_key(""), Catch::StartsWith("acme.key: is not a secret key of minisign"));
  for (const auto& [half, other] : {std::pair("hEFsMX", "hEFsMY"), std::pair("yiwD7i8", "yiwD7j8")}) {
    CHECK_THAT(fault_of_key(replaced(test::kSecretKey, half, other)),
               Catch::Contains("its secret and its public half do not belong together"));
  }
}

TEST_CASE("text that is no public key is refused at its place") {
  const auto parse = [](const std::string& text) { return PublicKey::parse(text, "trust line 3"); };
  CHECK_THROWS_WITH(parse("RWSTusczmS7Q"), Catch::StartsWith("trust line 3: "));
  CHECK_THROWS_WITH(parse(""), Catch::StartsWith("trust line 3: "));
  CHECK_THROWS_WITH(parse(std::string(test::kPublicKey) + "="), Catch::StartsWith("trust line 3: "));
}

TEST_CASE("a legacy signature of minisign is refused") {
  const std::string legacy = replaced(kSignedByMinisign, "RUST", "RWST");
  CHECK_THROWS_WITH(parse_signature_file(legacy, "F.minisig"),
                    "F.minisig: holds no prehashed signature of minisign");
}

}  // namespace cubind
