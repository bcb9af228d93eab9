#include "bindings.hpp"

namespace crfkit {

void bind_chain(nanobind::module_&) {}

}  // namespace crfkit
