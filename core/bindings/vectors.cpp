#include "bindings.hpp"

namespace crfkit {

void bind_vectors(nanobind::module_&) {}

}  // namespace crfkit
