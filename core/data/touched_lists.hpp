// What is active in each sequence of a data set, every thing once, with the places where it is.
#pragma once

#include <cstdint>

#include "base/buffer.hpp"
#include "data/design.hpp"

namespace crfkit {

// Letters: N sequences, U things counted once for each sequence they are active in, E active ids.
struct TouchedLists {
    TouchedLists() = default;
    // What is active at the positions of a design. Ids are below n_ids.
    TouchedLists(const ActiveIds& active, const Design& design, std::int64_t n_ids, int n_threads);

    Buffer<std::int64_t> sequence_ptr;  // [N + 1] sequence n has the things sequence_ptr[n]..[n+1]−1
    Buffer<std::int32_t> ids;           // [U]
    Buffer<std::int64_t> ptr;           // [U + 1] where thing u is active: ptr[u]..ptr[u+1]−1
    Buffer<std::int32_t> places;        // [E] counted from the first place of the sequence
    Buffer<double> values;              // [E] empty: all 1
    // [E] in the order of `active`: the number of each active id among the things of its sequence
    Buffer<std::int32_t> numbers;

    void move_to(ScratchMemory& memory) {
        for (Buffer<std::int64_t>* of : {&sequence_ptr, &ptr}) memory.take(*of);
        for (Buffer<std::int32_t>* of : {&ids, &places, &numbers}) memory.take(*of);
        memory.take(values);
    }
    std::int64_t begin(std::int64_t n) const { return sequence_ptr.size() > 0 ? sequence_ptr[n] : 0; }
    std::int64_t end(std::int64_t n) const { return sequence_ptr.size() > 0 ? sequence_ptr[n + 1] : 0; }
};

}  // namespace crfkit
