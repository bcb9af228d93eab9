#include "bindings/bindings.hpp"
#include "bindings/path_questions.hpp"
#include "chain/scaled_chain.hpp"
#include "kernels/kernels.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// Start and end scores and allowed labels are already folded into the states. Sums are made by the scaled
// kernels where these are exact, else in log space.
class ScoredChain {
  public:
    static constexpr const char* kOutput = "label sequence";

    // states [T, L], arcs [L, L] or [T − 1, L, L].
    ScoredChain(Matrix<double> states, AnyArray<double> arcs)
        : states_(std::move(states)), arcs_(std::move(arcs)) {
        const auto T = static_cast<std::int64_t>(states_.shape(0));
        const auto L = static_cast<std::int64_t>(states_.shape(1));
        const bool by_position = arcs_.ndim() == 3;
        if (L < 1 || arcs_.ndim() < 2 || arcs_.ndim() > 3 ||
            static_cast<std::int64_t>(arcs_.size()) !=
                (by_position ? std::max<std::int64_t>(T - 1, 0) : 1) * L * L)
            throw std::invalid_argument("the arcs must have the shape [L, L] or [T − 1, L, L]");
        chain_ = {T, static_cast<std::int32_t>(L), states_.data(), arcs_.data(), by_position};
    }
    ChainGraph graph() const { return ChainGraph(chain_); }
    bool empty() const { return chain_.n_positions == 0; }
    Shapes shapes() const {
        const std::size_t T = states_.shape(0), L = states_.shape(1);
        return {{T, L}, {T > 0 ? T - 1 : 0, L, L}};
    }
    bool fits(const ScoredChain& direction) const {
        return direction.chain_.n_positions == chain_.n_positions &&
               direction.chain_.n_labels == chain_.n_labels;
    }
    double log_partition(bool in_log_space) const {
        return scaled(in_log_space) ? scaled_log_partition(chain_) : crfkit::log_partition(chain_);
    }
    void marginals(bool in_log_space, const PartNumbers& parts) const {
        if (scaled(in_log_space))
            scaled_marginals(chain_, parts[0], parts[1]);
        else
            require_possible(log_marginals(chain_, parts[0], parts[1]));
    }
    void hessian_vector(const ScoredChain& direction, bool in_log_space, const PartNumbers& parts) const {
        const auto product = scaled(in_log_space) ? scaled_hessian_vector : log_hessian_vector;
        product(chain_, direction.chain_, parts[0], parts[1]);
    }

  private:
    bool scaled(bool in_log_space) const { return !in_log_space && scaled_is_exact(chain_); }

    Matrix<double> states_;
    AnyArray<double> arcs_;
    ChainView chain_;
};

}  // namespace

void bind_chain(nb::module_& m) {
    m.def("instruction_set", &instruction_set, "The instruction set of the kernels in use.");
    nb::class_<ScoredChain> scored(m, "ScoredChain");
    scored.def(nb::init<Matrix<double>, AnyArray<double>>(), "states"_a, "arcs"_a);
    bind_path_questions(scored);
}

}  // namespace crfkit
