#include "data/touched_lists.hpp"

#include <algorithm>
#include <vector>

#include "base/threads.hpp"

namespace crfkit {

TouchedLists::TouchedLists(const ActiveIds& active, const Design& design, std::int64_t n_ids, int n_threads) {
    const std::int64_t n_sequences = design.n_sequences();
    const auto& first_place = design.sequence_ptr;
    const std::int64_t n_active = active.ptr[active.ptr.size() - 1];
    sequence_ptr.assign(n_sequences + 1, 0);
    numbers.resize(n_active);
    const auto sequences_of = [&](std::int64_t task, std::int64_t n_tasks) {
        return std::pair(n_sequences * task / n_tasks, n_sequences * (task + 1) / n_tasks);
    };
    // Numbers the things of each sequence in the order in which they first fire.
    const std::int64_t n_tasks = std::max(n_threads, 1);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        std::vector<std::int32_t> number(static_cast<std::size_t>(n_ids));
        std::vector<std::int64_t> seen_in(static_cast<std::size_t>(n_ids), -1);
        const auto [begin, end] = sequences_of(task, n_tasks);
        for (std::int64_t n = begin; n < end; ++n) {
            std::int32_t count = 0;
            for (std::int64_t i = active.ptr[first_place[n]]; i < active.ptr[first_place[n + 1]]; ++i) {
                const std::int32_t id = active.ids[i];
                if (seen_in[id] != n) {
                    seen_in[id] = n;
                    number[id] = count++;
                }
                numbers[i] = number[id];
            }
            sequence_ptr[n + 1] = count;
        }
    });
    for (std::int64_t n = 0; n < n_sequences; ++n) sequence_ptr[n + 1] += sequence_ptr[n];
    const std::int64_t n_things = sequence_ptr[n_sequences];
    ids.resize(n_things);
    ptr.assign(n_things + 1, 0);
    ptr[n_things] = n_active;
    places.resize(n_active);
    const bool valued = active.values.size() > 0;
    if (valued) values.resize(n_active);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        std::vector<std::int64_t> next;
        const auto [begin, end] = sequences_of(task, n_tasks);
        for (std::int64_t n = begin; n < end; ++n) {
            const std::int64_t first = first_place[n], last = first_place[n + 1], things = sequence_ptr[n];
            next.assign(static_cast<std::size_t>(sequence_ptr[n + 1] - things + 1), 0);
            for (std::int64_t i = active.ptr[first]; i < active.ptr[last]; ++i) {
                ids[things + numbers[i]] = active.ids[i];
                ++next[numbers[i] + 1];
            }
            next[0] = active.ptr[first];
            for (std::size_t u = 1; u < next.size(); ++u) next[u] += next[u - 1];
            for (std::size_t u = 0; u + 1 < next.size(); ++u)
                ptr[things + static_cast<std::int64_t>(u)] = next[u];
            for (std::int64_t place = first; place < last; ++place)
                for (std::int64_t i = active.ptr[place]; i < active.ptr[place + 1]; ++i) {
                    const std::int64_t at = next[numbers[i]]++;
                    places[at] = static_cast<std::int32_t>(place - first);
                    if (valued) values[at] = active.values[i];
                }
        }
    });
}

}  // namespace crfkit
