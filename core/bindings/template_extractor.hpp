// A template's extractor with the Python object that computes its transforms.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/forks.hpp"
#include "text/extractor.hpp"
#include "text/row_extraction.hpp"

namespace crfkit {

class TemplateExtractor {
  public:
    // `computed`: its functions are those of text/transforms.hpp, which need no Python where they can be
    // computed.
    TemplateExtractor(const nanobind::object& source, bool computed);

    // (sequence_ptr, (position_ptr, ids, None) of states, the same of arcs or None, number of columns or
    // None)
    nanobind::tuple extract(nanobind::handle sequences, Vocabulary& states, Vocabulary& arcs, bool grow,
                            std::optional<std::int64_t> n_columns, bool more_columns, int n_threads);
    nanobind::tuple finish(RowExtraction& extraction, std::optional<std::int64_t> n_columns, int n_threads);

    Extractor& extractor() { return extractor_; }
    nanobind::object& source() { return template_; }
    // Transforms by Python, for any thread, with the interpreter's lock or without it. Results are kept for
    // all threads.
    ApplyTransform transforms();

  private:
    static constexpr std::size_t most_known_bytes = std::size_t{32} << 20;

    std::optional<std::string> transformed(std::int32_t transform, std::string_view value) const;

    nanobind::object template_;
    Extractor extractor_;
    ForkMutex known_mutex_;
    std::map<std::pair<std::int32_t, std::string>, std::optional<std::string>> known_;
    std::size_t n_known_bytes_ = 0;  // roughly
};

}  // namespace crfkit
