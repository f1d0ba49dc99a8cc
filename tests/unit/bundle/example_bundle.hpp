// A bundle of the tiny kernel for two problems, whose cubins are texts.
#pragma once

#include <chrono>
#include <string>

#include "bundle/bundle.hpp"

namespace cubind::test {

BundleContent example_content(const std::string& name_space = "team");
/// acme 7 until 2027-03-01.
BundleTerms example_terms();
/// Of both, signed by signing_key().
std::string example_bundle();
/// Before these expire.
std::chrono::system_clock::time_point example_now();

/// The layers of a bundle, to change them.
struct BundleLayers {
  std::string manifest, signature;
  Members files;
};
BundleLayers layers_of(const std::string& bundle);
std::string bundle_of(const BundleLayers& layers);
/// Signed again, with files as they are in the layers now.
std::string signed_again(BundleLayers layers, BundleManifest manifest);

}  // namespace cubind::test
