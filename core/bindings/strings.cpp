#include "bindings.hpp"

namespace crfkit {

void bind_strings(nanobind::module_&) {}

}  // namespace crfkit
