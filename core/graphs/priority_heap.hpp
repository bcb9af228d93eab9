// Numbers 0 … n − 1 with priorities that change; the highest is found in a step.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace crfkit {

class PriorityHeap {
  public:
    explicit PriorityHeap(std::vector<double> priorities)
        : priorities_(std::move(priorities)), heap_(priorities_.size()), places_(priorities_.size()) {
        for (std::size_t i = 0; i < heap_.size(); ++i) heap_[i] = places_[i] = i;
        for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
    }
    std::size_t top() const { return heap_[0]; }
    double priority(std::size_t item) const { return priorities_[item]; }
    void change(std::size_t item, double priority) {
        const bool higher = priority > priorities_[item];
        priorities_[item] = priority;
        if (higher)
            rise(places_[item]);
        else
            sink(places_[item]);
    }

  private:
    // Whether item a comes before item b; among equals the one with the lower number does.
    bool before(std::size_t a, std::size_t b) const {
        return priorities_[a] > priorities_[b] || (priorities_[a] == priorities_[b] && a < b);
    }
    void put(std::size_t place, std::size_t item) {
        heap_[place] = item;
        places_[item] = place;
    }
    void rise(std::size_t place) {
        const std::size_t item = heap_[place];
        for (; place > 0 && before(item, heap_[(place - 1) / 2]); place = (place - 1) / 2)
            put(place, heap_[(place - 1) / 2]);
        put(place, item);
    }
    void sink(std::size_t place) {
        const std::size_t item = heap_[place];
        for (;;) {
            std::size_t child = 2 * place + 1;
            if (child >= heap_.size()) break;
            if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
            if (!before(heap_[child], item)) break;
            put(place, heap_[child]);
            place = child;
        }
        put(place, item);
    }

    std::vector<double> priorities_;
    std::vector<std::size_t> heap_, places_;
};

}  // namespace crfkit
