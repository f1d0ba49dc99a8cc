// The same in C++, with handles that free themselves.
#include <cubind.h>

#include <iostream>
#include <memory>
#include <stdexcept>

namespace {

template <auto free_handle>
struct Free {
  template <typename Handle>
  void operator()(Handle* handle) const {
    free_handle(handle);
  }
};

void check(cubind_code code) {
  if (code != CUBIND_OK) {
    throw std::runtime_error(cubind_code_name(code) + (": " + std::string(cubind_last_error())));
  }
}

template <typename Handle, auto free_handle, typename Make>
std::unique_ptr<Handle, Free<free_handle>> make(const Make& how) {
  Handle* handle = nullptr;
  check(how(&handle));
  return std::unique_ptr<Handle, Free<free_handle>>(handle);
}

void run() {
  const auto client = make<cubind_client, cubind_client_free>(
      [](cubind_client** to) { return cubind_connect(nullptr, 0, to); });
  cubind_query query = CUBIND_QUERY_INIT;
  query.kernel = "scale";
  query.problem = "N=1024,D=4096,T=f16";
  const auto variant = make<cubind_variant, cubind_variant_free>(
      [&](cubind_variant** to) { return cubind_get(client.get(), &query, to); });
  const auto kernel = make<cubind_kernel, cubind_kernel_free>(
      [&](cubind_kernel** to) { return cubind_load(variant.get(), to); });
  const auto binding = make<cubind_binding, cubind_binding_free>(
      [&](cubind_binding** to) { return cubind_bind(kernel.get(), nullptr, 0, to); });
  std::cout << cubind_variant_match(variant.get()) << " with " << cubind_binding_arguments(binding.get())
            << " arguments\n";
  check(cubind_launch(binding.get(), nullptr));
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
