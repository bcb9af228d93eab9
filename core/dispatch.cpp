// Chooses the kernels for the processor at hand, once.
#include <cstdlib>
#include <cstring>

#include "kernels.hpp"

namespace crfkit {

#define CRFKIT_DECLARE(isa)                      \
    namespace isa {                              \
    extern const Kernels<float> float_kernels;   \
    extern const Kernels<double> double_kernels; \
    }
CRFKIT_DECLARE(baseline)
#ifdef CRFKIT_HAS_V3
CRFKIT_DECLARE(v3)
CRFKIT_DECLARE(v4)
#endif
#undef CRFKIT_DECLARE

namespace {

struct Choice {
    const char* name;
    const Kernels<float>* single;
    const Kernels<double>* twofold;
};

// CRFKIT_INSTRUCTION_SET may name a lower level than the processor has (for tests); a higher one is ignored.
Choice choose() {
#ifdef CRFKIT_HAS_V3
    __builtin_cpu_init();
    const char* wish = std::getenv("CRFKIT_INSTRUCTION_SET");
    const bool low = wish && std::strcmp(wish, "baseline") == 0;
    const bool middle = wish && std::strcmp(wish, "x86-64-v3") == 0;
    const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (has_v4 && !low && !middle) return {"x86-64-v4", &v4::float_kernels, &v4::double_kernels};
    if (has_v3 && !low) return {"x86-64-v3", &v3::float_kernels, &v3::double_kernels};
#endif
    return {"baseline", &baseline::float_kernels, &baseline::double_kernels};
}

const Choice& choice() {
    static const Choice chosen = choose();
    return chosen;
}

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
    return *choice().single;
}

template <>
const Kernels<double>& kernels<double>() {
    return *choice().twofold;
}

const char* instruction_set() { return choice().name; }

}  // namespace crfkit
