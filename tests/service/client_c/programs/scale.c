/* The whole way from a question to a launch, in C. Prints what it was answered and says what fails. */
#include <cubind.h>
#include <inttypes.h>
#include <stdio.h>

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, cubind_last_error());
  return 1;
}

static int launch(const cubind_variant *variant) {
  cubind_kernel *kernel = NULL;
  cubind_binding *binding = NULL;
  if (cubind_load(variant, &kernel) != CUBIND_OK) {
    return failed("loading");
  }
  const cubind_code bound = cubind_bind(kernel, NULL, 0, &binding);
  cubind_kernel_free(kernel); /* the binding keeps what it needs */
  if (bound != CUBIND_OK) {
    return failed("binding");
  }
  cubind_code code = cubind_set_buffer(binding, "x", (const void *)0x1000);
  code = code != CUBIND_OK ? code : cubind_set_buffer(binding, "y", (const void *)0x2000);
  code = code != CUBIND_OK ? code : cubind_set_buffer(binding, "partial", (const void *)0x3000);
  code = code != CUBIND_OK ? code : cubind_set_float(binding, "alpha", 0.5);
  code = code != CUBIND_OK ? code : cubind_launch(binding, NULL);
  cubind_binding_free(binding);
  return code != CUBIND_OK ? failed("launching") : 0;
}

int main(void) {
  cubind_client *client = NULL;
  cubind_variant *variant = NULL;
  cubind_query query = CUBIND_QUERY_INIT;
  query.kernel = "scale";
  query.problem = "N=1024,D=4096,T=f16";
  if (cubind_connect(NULL, 0, &client) != CUBIND_OK) {
    return failed("connecting");
  }
  const cubind_code code = cubind_get(client, &query, &variant);
  cubind_client_free(client);
  if (code != CUBIND_OK) {
    return failed("asking");
  }
  cubind_launch_info info = {.size = sizeof info};
  if (cubind_variant_launch(variant, 1, &info) != CUBIND_OK) {
    return failed("describing");
  }
  printf("%s %s %s grid %" PRIu32 " x %" PRIu32 "\n", cubind_variant_problem(variant),
         cubind_variant_configuration(variant), info.symbol, info.grid[0], info.grid[1]);
  const int status = launch(variant);
  cubind_variant_free(variant);
  return status;
}
