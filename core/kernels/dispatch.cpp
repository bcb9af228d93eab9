// Chooses the kernels for the processor at hand, once.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/eisner_rows.hpp"
#include "kernels/graph_rows.hpp"
#include "kernels/hyperpath_rows.hpp"
#include "kernels/kernels.hpp"
#include "kernels/sibling_rows.hpp"
#include "kernels/tables.hpp"
#include "kernels/tree_rows.hpp"
#include "kernels/update_kernels.hpp"
#include "kernels/vectors.hpp"

namespace crfkit {

#define CRFKIT_DECLARE(isa)                          \
    namespace isa {                                  \
    extern const Kernels<float> float_kernels;       \
    extern const Kernels<double> double_kernels;     \
    extern const VectorKernels vector_kernels;       \
    extern const TreeKernels tree_kernels;           \
    extern const TableKernels table_kernels;         \
    extern const StepKernels step_kernels;           \
    extern const SiblingKernels sibling_kernels;     \
    extern const EisnerKernels eisner_kernels;       \
    extern const GraphKernels graph_kernels;         \
    extern const HyperpathKernels hyperpath_kernels; \
    }
CRFKIT_DECLARE(baseline)
#ifdef CRFKIT_HAS_V3
CRFKIT_DECLARE(v3)
CRFKIT_DECLARE(v4)
#endif
#undef CRFKIT_DECLARE
#ifdef CRFKIT_HAS_V4
namespace v4_narrow {
extern const Kernels<float> float_kernels;
}
#endif

namespace {

// How many of the tables in kTables, from the lowest, this processor can run. CRFKIT_INSTRUCTION_SET may name
// a lower level than the processor has (for tests); a higher one is ignored.
int usable_tables() {
#ifdef CRFKIT_HAS_V3
    __builtin_cpu_init();
    const char* wish = std::getenv("CRFKIT_INSTRUCTION_SET");
    const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    const int most = wish && std::strcmp(wish, "baseline") == 0    ? 1
                     : wish && std::strcmp(wish, "x86-64-v3") == 0 ? 2
                                                                   : 3;
    return std::min(most, has_v4 ? 3 : has_v3 ? 2 : 1);
#else
    return 1;
#endif
}

constexpr const char* kNames[] = {"baseline", "x86-64-v3", "x86-64-v4"};
#ifdef CRFKIT_HAS_V3
#define CRFKIT_TABLES(name) {&baseline::name, &v3::name, &v4::name}
#else
#define CRFKIT_TABLES(name) {&baseline::name}
#endif
constexpr const Kernels<float>* kSingle[] = CRFKIT_TABLES(float_kernels);
constexpr const Kernels<double>* kDouble[] = CRFKIT_TABLES(double_kernels);
constexpr const VectorKernels* kVectors[] = CRFKIT_TABLES(vector_kernels);
constexpr const TreeKernels* kTrees[] = CRFKIT_TABLES(tree_kernels);
constexpr const TableKernels* kBlocks[] = CRFKIT_TABLES(table_kernels);
constexpr const EisnerKernels* kEisner[] = CRFKIT_TABLES(eisner_kernels);
constexpr const SiblingKernels* kSiblings[] = CRFKIT_TABLES(sibling_kernels);
constexpr const StepKernels* kSteps[] = CRFKIT_TABLES(step_kernels);
constexpr const GraphKernels* kGraphs[] = CRFKIT_TABLES(graph_kernels);
constexpr const HyperpathKernels* kHyperpaths[] = CRFKIT_TABLES(hyperpath_kernels);
#undef CRFKIT_TABLES

// Found when the module is loaded: a static inside a function has a lock, which a fork may leave taken.
const int n_usable = usable_tables();

}  // namespace

// The highest table, or that of the same instructions and half the vectors where this saves a quarter of
// every row.
template <>
const Kernels<float>& kernels_for<float>(std::int32_t n_labels) {
    const Kernels<float>& widest = *kSingle[n_usable - 1];
#ifdef CRFKIT_HAS_V4
    const Kernels<float>& narrow = v4_narrow::float_kernels;
    if (n_usable == 3 && 4 * stride_for(narrow, n_labels) <= 3 * stride_for(widest, n_labels)) return narrow;
#endif
    return widest;
}

template <>
const Kernels<double>& kernels_for<double>(std::int32_t /*n_labels*/) {
    return *kDouble[n_usable - 1];
}

const VectorKernels& vector_kernels() { return *kVectors[n_usable - 1]; }

const TreeKernels& tree_kernels() { return *kTrees[n_usable - 1]; }
const TableKernels& table_kernels() { return *kBlocks[n_usable - 1]; }
const EisnerKernels& eisner_kernels() { return *kEisner[n_usable - 1]; }
const SiblingKernels& sibling_kernels() { return *kSiblings[n_usable - 1]; }
const StepKernels& step_kernels() { return *kSteps[n_usable - 1]; }
const GraphKernels& graph_kernels() { return *kGraphs[n_usable - 1]; }
const HyperpathKernels& hyperpath_kernels() { return *kHyperpaths[n_usable - 1]; }

const char* instruction_set() { return kNames[n_usable - 1]; }

}  // namespace crfkit
