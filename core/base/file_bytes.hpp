// The bytes of a file.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

namespace crfkit {

// Bytes in memory of their own.
class FileBytes {
  public:
    FileBytes() = default;
    explicit FileBytes(std::size_t size);  // unspecified ones

    char* data() { return memory_.get(); }
    std::size_t size() const { return size_; }
    void shrink(std::size_t size) { size_ = size; }
    std::string_view view() const { return {memory_.get(), size_}; }

  private:
    struct Free {
        void operator()(char* memory) const { std::free(memory); }
    };
    std::unique_ptr<char, Free> memory_;
    std::size_t size_ = 0;
};

// All bytes of a file. Throws std::system_error with the number of the system's error. A pipe may have to be
// waited for: after a signal, interrupted() is called, and may throw.
FileBytes read_file(const char* path, const std::function<void()>& interrupted);

}  // namespace crfkit
