#include "base/scratch_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace crfkit {
namespace {

constexpr std::int64_t kLine = 64;  // arrays begin at multiples of this, as those of buffers do

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

bool write_all(int file, const void* data, std::int64_t n_bytes, std::int64_t offset) {
    const char* from = static_cast<const char*>(data);
    while (n_bytes > 0) {
        const ssize_t written = pwrite(file, from, static_cast<std::size_t>(n_bytes), offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        from += written;
        offset += written;
        n_bytes -= written;
    }
    return true;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& folder) {
    std::string path = folder + "/.crfkit-scratch-XXXXXX";
    file_ = mkstemp(path.data());
    if (file_ < 0)
        throw std::runtime_error(folder + ": no scratch file can be written there (" + std::strerror(errno) +
                                 ")");
    unlink(path.c_str());
}

ScratchFile::~ScratchFile() { close(file_); }

ScratchMemory::~ScratchMemory() {
    for (const Region& region : regions_) munmap(region.memory, region.n_bytes);
}

// Written by pwrite, so that no page of the mapping is dirty: dropping it costs nothing.
bool ScratchMemory::store() {
    const auto taken = std::move(taken_);
    taken_.clear();
    std::vector<std::int64_t> places;
    std::int64_t n_bytes = 0;
    for (const Taken& one : taken) {
        places.push_back(n_bytes);
        n_bytes = round_up(n_bytes + one.n_bytes, kLine);
    }
    if (taken.empty()) return true;
    n_bytes = round_up(n_bytes, sysconf(_SC_PAGESIZE));
    const std::int64_t begin = file_->size_;
    bool written = ftruncate(file_->file_, begin + n_bytes) == 0;
    for (std::size_t i = 0; written && i < taken.size(); ++i)
        written = write_all(file_->file_, taken[i].data, taken[i].n_bytes, begin + places[i]);
    void* const memory =
        written ? mmap(nullptr, static_cast<std::size_t>(n_bytes), PROT_READ, MAP_SHARED, file_->file_, begin)
                : MAP_FAILED;
    if (memory == MAP_FAILED) {
        [[maybe_unused]] const int undone = ftruncate(file_->file_, begin);
        return false;
    }
    file_->size_ = begin + n_bytes;
    regions_.push_back({memory, static_cast<std::size_t>(n_bytes)});
    for (std::size_t i = 0; i < taken.size(); ++i)
        taken[i].point(taken[i].buffer, static_cast<char*>(memory) + places[i]);
    return true;
}

void ScratchMemory::expect() const {
    for (const Region& region : regions_) madvise(region.memory, region.n_bytes, MADV_WILLNEED);
}

void ScratchMemory::drop() const {
    for (const Region& region : regions_) madvise(region.memory, region.n_bytes, MADV_DONTNEED);
}

}  // namespace crfkit
