#include "base/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include "base/buffer.hpp"

namespace crfkit {

namespace {

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

class OpenFile {
  public:
    OpenFile(const char* path, const std::function<void()>& interrupted) : interrupted_(interrupted) {
        while ((descriptor_ = open(path, O_RDONLY | O_CLOEXEC)) < 0) check();
    }
    ~OpenFile() { close(descriptor_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    std::size_t size() const {
        struct stat about;
        if (fstat(descriptor_, &about) < 0) fail();
        return S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) : 0;
    }
    // Reads up to n bytes; fewer only at the end of the file.
    std::size_t read(char* to, std::size_t n) const {
        std::size_t done = 0;
        while (done < n) {
            const ssize_t some = ::read(descriptor_, to + done, n - done);
            if (some == 0) break;
            if (some < 0) {
                check();
            } else {
                done += static_cast<std::size_t>(some);
            }
        }
        return done;
    }

  private:
    // After a call that failed: throws unless a signal interrupted it.
    void check() const {
        if (errno != EINTR) fail();
        interrupted_();
    }

    const std::function<void()>& interrupted_;
    int descriptor_ = -1;
};

}  // namespace

// Memory that malloc keeps from one file to the next has its pages already. Larger blocks than glibc's malloc
// ever keeps come from the system page by page, and huge pages make that faster.
FileBytes::FileBytes(std::size_t size) : size_(size) {
    constexpr std::size_t most_kept = std::size_t(32) << 20;
    if (size >= most_kept) {
        memory_.reset(static_cast<char*>(allocate(size)));
    } else {
        memory_.reset(static_cast<char*>(std::malloc(size)));
        if (!memory_) throw std::bad_alloc();
    }
}

FileBytes read_file(const char* path, const std::function<void()>& interrupted) {
    const OpenFile file(path, interrupted);
    const std::size_t expected = file.size();
    FileBytes bytes(expected + 1);  // one more tells whether the file ends where it should
    const std::size_t n = file.read(bytes.data(), expected + 1);
    if (n <= expected) {
        bytes.shrink(n);
        return bytes;
    }
    std::string all(bytes.view());  // a pipe, or a file that grows
    constexpr std::size_t step = 1 << 20;
    for (std::size_t more = step; more == step;) {
        const std::size_t size = all.size();
        all.resize(size + step);
        more = file.read(all.data() + size, step);
        all.resize(size + more);
    }
    bytes = FileBytes(all.size());
    std::copy(all.begin(), all.end(), bytes.data());
    return bytes;
}

}  // namespace crfkit
