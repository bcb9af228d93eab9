#include "bindings.hpp"

namespace crfkit {

void bind_objective(nanobind::module_&) {}

}  // namespace crfkit
