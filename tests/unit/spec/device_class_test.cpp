#include "tuner/spec/device_class.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/support/example_facts.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {

namespace {

Digest class_of(const DeviceFacts& facts) { return derive_device_class(facts, "device.facts").digest; }

}  // namespace

TEST_CASE("the encoding of a device class is pinned by golden digests") {
  const Json golden = Json::parse(read_file(test::source_dir() / "tests/golden/keys.json"));
  CHECK(class_of(example_facts()).hex() == golden.at("device_class_h200").get<std::string>());
  DeviceFacts mig = example_facts();
  mig.set_mig_profile("1g.18gb");
  CHECK(class_of(mig).hex() == golden.at("device_class_h200_mig").get<std::string>());
  const DeviceClass derived = derive_device_class(example_facts(), "");
  CHECK(Digest::of(derived.full) == derived.digest);
}

TEST_CASE("the name and the validators of a device are in no key") {
  DeviceFacts facts = example_facts();
  facts.set_name("NVIDIA H200 NVL");
  facts.set_power_limit_mw(500000);
  facts.set_max_sm_mhz(1700);
  CHECK(class_of(facts) == class_of(example_facts()));
}

TEST_CASE("each of the other facts makes another device class") {
  const auto differs = [](auto edit) {
    DeviceFacts facts = example_facts();
    edit(facts);
    return class_of(facts) != class_of(example_facts());
  };
  CHECK(differs([](DeviceFacts& facts) { facts.set_pci_device_id(facts.pci_device_id() + 1); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_cc_major(facts.cc_major() + 1); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_cc_minor(facts.cc_minor() + 1); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_sm_count(facts.sm_count() - 1); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_l2_bytes(facts.l2_bytes() / 2); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_shared_optin_bytes(facts.shared_optin_bytes() / 2); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_memory_bytes(facts.memory_bytes() / 2); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_memory_bus_bits(facts.memory_bus_bits() / 2); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_mig_profile("1g.18gb"); }));
  CHECK(differs([](DeviceFacts& facts) { facts.set_replay_table("1a2b3c4d5e"); }));
}

TEST_CASE("memory counts to the nearest power of 2^(1/4) GiB") {
  const auto with_gib = [](double gib) {
    DeviceFacts facts = example_facts();
    facts.set_memory_bytes(static_cast<std::uint64_t>(gib * 1073741824.0));
    return class_of(facts);
  };
  CHECK(with_gib(139.8) == with_gib(141));  // what ECC or firmware reserves
  CHECK(with_gib(128) == with_gib(139.5));  // 2^7 reaches to 2^7.125 = 139.58
  CHECK(with_gib(139.5) != with_gib(139.7));
  CHECK(with_gib(80) != with_gib(96));
}

TEST_CASE("a missing fact is refused by its field") {
  DeviceFacts facts = example_facts();
  facts.set_sm_count(0);
  CHECK(refused_at([&] { derive_device_class(facts, "device.facts"); }) == "device.facts.sm_count");
}

TEST_CASE("labels are the names in lower case and say what is replayed") {
  CHECK(derive_device_class(example_facts(), "").label == "nvidia-h200");
  DeviceFacts facts = example_facts();
  facts.set_mig_profile("1g.18gb");
  CHECK(derive_device_class(facts, "").label == "nvidia-h200-mig-1g-18gb");
  facts.set_replay_table("1a2b3c4d5e6f");
  CHECK(derive_device_class(facts, "").label == "replay-1a2b3c4d");
}

TEST_CASE("a cubin serves its own compute capability and later minors unless a suffix binds it") {
  struct Case {
    const char* architecture;
    std::uint32_t major, minor;
    bool runs;
  };
  for (const Case& rule :
       {Case{"sm_90", 9, 0, true}, Case{"sm_80", 8, 0, true}, Case{"sm_80", 8, 6, true},
        Case{"sm_80", 8, 9, true}, Case{"sm_86", 8, 0, false}, Case{"sm_80", 9, 0, false},
        Case{"sm_90", 8, 9, false}, Case{"sm_90", 10, 0, false}, Case{"sm_90a", 9, 0, true},
        Case{"sm_100a", 10, 0, true}, Case{"sm_100a", 10, 3, false}, Case{"sm_100", 10, 3, true},
        Case{"sm_120", 12, 1, true}, Case{"sm_100f", 10, 3, false}, Case{"compute_90", 9, 0, false},
        Case{"sm_", 9, 0, false}, Case{"sm_9", 0, 9, false}, Case{"sm_90ab", 9, 0, false}}) {
    INFO(rule.architecture << " on " << rule.major << "." << rule.minor);
    CHECK(cubin_runs_on(rule.architecture, rule.major, rule.minor) == rule.runs);
  }
}

TEST_CASE("a driver loads what the NVRTC of its own major version or an older one makes") {
  CHECK(driver_loads(13000, 13));
  CHECK(driver_loads(13000, 12));
  CHECK(driver_loads(12080, 12));
  CHECK(!driver_loads(12080, 13));
  CHECK(!driver_loads(0, 12));
}

TEST_CASE("the branch of a driver is the first number of its version") {
  CHECK(driver_branch("580.159.04") == "580");
  CHECK(driver_branch("580") == "580");
  CHECK(driver_branch("").empty());
}

TEST_CASE("an NVRTC compiles for the architectures that it names with or without a suffix and no others") {
  const std::vector<std::string> known{"sm_75", "sm_90", "sm_100"};
  CHECK(knows_architecture(known, "sm_90"));
  CHECK(knows_architecture(known, "sm_90a"));
  CHECK(knows_architecture(known, "sm_100f"));
  CHECK_FALSE(knows_architecture(known, "sm_70"));
  CHECK_FALSE(knows_architecture(known, "sm_9"));
  CHECK_FALSE(knows_architecture({}, "sm_90"));
}

TEST_CASE("the architecture has a suffix where the spec asks for architecture features") {
  CHECK(architecture(example_facts(), false) == "sm_90");
  CHECK(architecture(example_facts(), true) == "sm_90a");
  DeviceFacts ampere = example_facts();
  ampere.set_cc_major(8);
  CHECK(architecture(ampere, true) == "sm_80");
  CHECK(device_constants(example_facts()) == DeviceConstants{132, 232448, 62914560, 90});
}

TEST_CASE("facts that no GPU can have are refused with their place and range") {
  const auto fault = [](auto edit) {
    DeviceFacts facts = example_facts();
    edit(facts);
    return [facts] { class_of(facts); };
  };
  CHECK_THROWS_WITH(fault([](DeviceFacts& facts) { facts.set_l2_bytes(UINT64_MAX); })(),
                    Catch::StartsWith("device.facts.l2_bytes: "));
  CHECK_THROWS_WITH(fault([](DeviceFacts& facts) { facts.set_cc_major(UINT32_MAX); })(),
                    Catch::Contains("device.facts.cc_major") && Catch::Contains("5 to 19"));
  CHECK_THROWS_WITH(fault([](DeviceFacts& facts) { facts.set_cc_major(1); })(), Catch::Contains("cc_major"));
}

}  // namespace cubind::test
