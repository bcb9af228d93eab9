#include "base/processors.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace crfkit {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// quota / period; no limit where the quota is "max" or −1, or a file is missing.
double share(const std::string& quota, const std::string& period) {
    std::istringstream quota_text(quota), period_text(period);
    double time = 0, length = 0;
    if (!(quota_text >> time) || !(period_text >> length) || time <= 0 || length <= 0) return no_limit;
    return time / length;
}

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// The limit in one folder: cpu.max has quota and period (version 2), in version 1 each has a file.
double limit_in(const std::string& folder) {
    const std::string both = first_line(folder + "/cpu.max");
    const std::size_t gap = both.find(' ');
    if (gap != std::string::npos) return share(both.substr(0, gap), both.substr(gap));
    return share(first_line(folder + "/cpu.cfs_quota_us"), first_line(folder + "/cpu.cfs_period_us"));
}

// The lowest limit of a group and of those that it is in. Inside a container the path of the group may not
// exist; the group itself is then at the top.
double limit_along(const std::string& mount, std::string group) {
    double lowest = limit_in(mount);
    for (; group.size() > 1; group.resize(group.rfind('/')))
        lowest = std::min(lowest, limit_in(mount + group));
    return lowest;
}

bool has_item(std::istringstream list, const std::string& wanted) {
    for (std::string item; std::getline(list, item, ',');)
        if (item == wanted) return true;
    return false;
}

int affinity() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

// Lines of /proc/self/cgroup are number:controllers:group; version 2 has no controllers there.
int control_group_limit(const std::string& root) {
    const std::string mounts = root + "/sys/fs/cgroup";
    double lowest = no_limit;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string group = line.substr(second + 1);
        if (group.empty() || group[0] != '/') continue;
        if (controllers.empty())
            lowest = std::min(lowest, limit_along(mounts, group));
        else if (has_item(std::istringstream(controllers), "cpu"))
            for (const std::string& name : {std::string("cpu"), controllers})
                lowest = std::min(lowest, limit_along(mounts + "/" + name, group));
    }
    if (lowest == no_limit) return 0;
    return static_cast<int>(std::clamp(lowest, 1.0, 1e6));
}

int available_processors() {
    static std::atomic<std::int64_t> looked_at{-1};  // in seconds; two threads that look at once are no harm
    static std::atomic<int> limit{0};
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    if (looked_at.load(std::memory_order_acquire) != now) {
        limit.store(control_group_limit(""), std::memory_order_relaxed);
        looked_at.store(now, std::memory_order_release);
    }
    const int allowed = limit.load(std::memory_order_relaxed);
    return std::max(1, allowed > 0 ? std::min(allowed, affinity()) : affinity());
}

}  // namespace crfkit
