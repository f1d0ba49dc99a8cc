#include "tuner/worker/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/unique_fd.hpp"

namespace cubind::worker {
namespace {

// A C function has no other way to its state.
struct Served {
  std::string name;  // empty: nothing is served
  UniqueFd file;     // absent: not written yet
};

Served& served() {
  static Served one;
  return one;
}

std::string secret() {
  std::string bytes(16, '\0');
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    throw system_error("compile worker", "getentropy", errno);
  }
  return hex(bytes);
}

UniqueFd new_memory() { return UniqueFd(::memfd_create("nvrtc", MFD_CLOEXEC)); }

std::FILE* stream_of(UniqueFd file, const char* mode) {
  std::FILE* stream = file ? ::fdopen(file.get(), mode) : nullptr;
  if (stream != nullptr) {
    std::ignore = file.release();
  }
  return stream;
}

std::FILE* open_served(const char* mode) {
  UniqueFd& file = served().file;
  if (*mode == 'w') {
    file = new_memory();
  }
  if (!file) {
    errno = ENOENT;
    return nullptr;
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return stream_of(UniqueFd(::dup(file.get())), mode);
}

}  // namespace

MemoryFile::MemoryFile() : name_("/" + secret() + ".pch") { served().name = name_; }

MemoryFile::~MemoryFile() { served() = {}; }

void MemoryFile::clear() { served().file.reset(); }

}  // namespace cubind::worker

extern "C" std::FILE* fopen(const char* path, const char* mode) {
  using cubind::worker::new_memory, cubind::worker::open_served, cubind::worker::served;
  if (!served().name.empty() && std::string_view(mode) == "w+b") {
    return cubind::worker::stream_of(new_memory(), mode);
  }
  return !served().name.empty() && path == served().name ? open_served(mode) : ::fopen64(path, mode);
}

// NVRTC asks whether a precompiled header is a regular file, while it reads it.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): glibc's name of stat()
extern "C" int __xstat(int /*version*/, const char* path, struct stat* facts) {
  using cubind::worker::served;
  if (served().file && path == served().name) {
    *facts = {};
    facts->st_mode = S_IFREG | S_IRUSR | S_IWUSR;
    const off_t position = ::lseek(served().file.get(), 0, SEEK_CUR);
    facts->st_size = ::lseek(served().file.get(), 0, SEEK_END);
    ::lseek(served().file.get(), position, SEEK_SET);
    return 0;
  }
  return ::fstatat(AT_FDCWD, path, facts, 0);
}
