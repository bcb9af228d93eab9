// How many processors this process may use.
#pragma once

#include <string>

namespace crfkit {

// Those that it may run on (affinity), at most as many as the limits of its control group allow; at least 1.
// A limit of 2.5 processors is 2: a thread more would only be paused, with the others waiting for it. Limits
// are looked up again after a second.
int available_processors();

// The limit of CPU time of the control group, of version 1 or 2, and of those that it is in, in whole
// processors and at least 1; 0 where there is none. `root` is where /proc and /sys are.
int control_group_limit(const std::string& root);

}  // namespace crfkit
