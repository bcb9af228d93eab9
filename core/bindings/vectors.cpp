// Passes over the long vectors of the optimizers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "kernels/vector_passes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

using Vector = Array<double>;
template <class Number>
using Rows = nb::ndarray<Number, nb::numpy, nb::ndim<2>, nb::c_contig>;

std::int64_t length(const Vector& vector) { return static_cast<std::int64_t>(vector.size()); }

void check_threads(int n_threads) {
    if (n_threads < 1) throw std::invalid_argument("n_threads must be at least 1");
}

// The numbers of a vector that must have n of them.
const double* checked(const char* name, const Vector& vector, std::int64_t n) {
    check_size(name, vector.size(), n);
    return vector.data();
}

Strengths strengths(const Vector& l1, std::int64_t n) {
    return {length(l1) == 1 ? l1.data() : checked("l1", l1, n), length(l1) != 1};
}

template <class Number>
PairRows<Number> pair_rows(const Rows<Number>& rows, std::int64_t n_rows) {
    if (n_rows < 0 || n_rows % 2 || n_rows > static_cast<std::int64_t>(rows.shape(0)))
        throw std::invalid_argument("n_rows must be even and at most the number of rows");
    return {rows.data(), n_rows, static_cast<std::int64_t>(rows.shape(1))};
}

// Columns that are the given weights of n_weights, or all weights where none are given.
Columns columns_of(const Maybe<std::int64_t>& ids, std::int64_t n_columns, std::int64_t n_weights) {
    if (!ids) {
        if (n_weights != n_columns)
            throw std::invalid_argument("there are " + std::to_string(n_columns) + " columns for " +
                                        std::to_string(n_weights) + " weights");
        return {nullptr, n_columns};
    }
    const auto n = static_cast<std::int64_t>(ids->size());
    if (n > n_columns)
        throw std::invalid_argument("there are " + std::to_string(n) + " ids for " +
                                    std::to_string(n_columns) + " columns");
    for (const std::int64_t id : view(*ids))
        if (id < 0 || id >= n_weights)
            throw std::invalid_argument("the id " + std::to_string(id) + " is none of " +
                                        std::to_string(n_weights) + " weights");
    return {ids->data(), n};
}

// sums[first], sums[first + 2], … of the whole pairs.
nb::object every_second(const std::vector<double>& sums, std::size_t first) {
    std::vector<double> out;
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2) out.push_back(sums[i + first]);
    return new_array(out);
}

nb::tuple bound_products(const Vector& a, const Vector& b, int n_threads) {
    const double* other = checked("b", b, length(a));
    check_threads(n_threads);
    const auto sums = unlocked(
        [&] { return over_blocks({length(a), 2, n_threads}, vector_kernels().products, a.data(), other); });
    return nb::make_tuple(sums[0], sums[1]);
}

nb::object bound_step(const Vector& x, const Vector& direction, double t, int n_threads) {
    const double* along = checked("direction", direction, length(x));
    check_threads(n_threads);
    return filled<double>({x.size()}, [&](double* out) {
        over_blocks({length(x), 0, n_threads}, vector_kernels().step, x.data(), along, t, out);
    });
}

double bound_penalty(const Vector& x, const Vector& l1, int n_threads) {
    const Strengths by_weight = strengths(l1, length(x));
    check_threads(n_threads);
    return unlocked([&] {
        return over_blocks({length(x), 1, n_threads}, vector_kernels().penalty, x.data(), by_weight)[0];
    });
}

nb::tuple bound_pseudo_gradient(const Vector& x, const Vector& gradient, const Vector& l1, int n_threads) {
    const double* g = checked("gradient", gradient, length(x));
    const Strengths by_weight = strengths(l1, length(x));
    check_threads(n_threads);
    double square;
    const nb::object pseudo = filled<double>({x.size()}, [&](double* out) {
        const auto kernel = vector_kernels().pseudo_gradient;
        square = over_blocks({length(x), 1, n_threads}, kernel, x.data(), g, by_weight, out)[0];
    });
    return nb::make_tuple(pseudo, square);
}

nb::tuple bound_orthant_step(const Vector& x, const Vector& direction, const Vector& pseudo, const Vector& l1,
                             double t, bool aligned, int n_threads) {
    const std::int64_t n = length(x);
    const OrthantPath path{x.data(), checked("direction", direction, n), checked("pseudo", pseudo, n),
                           strengths(l1, n), aligned};
    check_threads(n_threads);
    std::vector<double> sums;
    const nb::object z = filled<double>({x.size()}, [&](double* out) {
        sums = over_blocks({n, 2, n_threads}, vector_kernels().orthant_step, path, t, out);
    });
    return nb::make_tuple(z, sums[0], sums[1]);
}

template <class Number>
nb::tuple bound_write_pair(const Rows<Number>& rows, std::int64_t n_rows, std::int64_t s_row, const Vector& x,
                           const Vector& x_before, const Vector& g, const Vector& g_before, const Vector& v,
                           int n_threads, const Maybe<std::int64_t>& ids) {
    const PairRows<Number> pairs = pair_rows(rows, n_rows);
    if (s_row < 0 || s_row % 2 || s_row >= n_rows)
        throw std::invalid_argument("s_row must be even and below n_rows");
    const std::int64_t n = length(x);
    const Columns columns = columns_of(ids, pairs.n_columns, n);
    NewArray<double> v_columns({static_cast<std::size_t>(columns.ids ? pairs.n_columns : 0)});
    if (columns.ids) std::fill(v_columns.data() + columns.n, v_columns.data() + pairs.n_columns, 0.0);
    const PairSource source{x.data(),           checked("x_before", x_before, n),
                            checked("g", g, n), checked("g_before", g_before, n),
                            checked("v", v, n), columns,
                            v_columns.data()};
    check_threads(n_threads);
    const VectorPass pass{columns.n, 2 * n_rows + 1, n_threads};
    const auto sums =
        unlocked([&] { return over_blocks(pass, pair_kernels<Number>().write_pair, pairs, s_row, source); });
    return nb::make_tuple(every_second(sums, 0), every_second(sums, 1), sums.back(), v_columns.take());
}

template <class Number>
nb::object bound_row_products(const Rows<Number>& rows, std::int64_t n_rows, const Vector& v, int n_threads) {
    const PairRows<Number> pairs = pair_rows(rows, n_rows);
    const double* columns = checked("v", v, pairs.n_columns);
    check_threads(n_threads);
    const VectorPass pass{pairs.n_columns, 2 * n_rows, n_threads};
    return every_second(
        unlocked([&] { return over_blocks(pass, pair_kernels<Number>().row_products, pairs, columns); }), 0);
}

template <class Number>
nb::object bound_gram(const Rows<Number>& rows, std::int64_t n_rows, std::int64_t n_columns, int n_threads) {
    const PairRows<Number> pairs = pair_rows(rows, n_rows);
    if (n_columns < 0 || n_columns > pairs.n_columns)
        throw std::invalid_argument("n_columns must be at most the number of columns");
    check_threads(n_threads);
    const auto n = static_cast<std::size_t>(n_rows);
    return filled<double>({n / 2, n, 2}, [&](double* out) {
        const auto sums =
            over_blocks({n_columns, n_rows * n_rows, n_threads}, pair_kernels<Number>().gram, pairs);
        std::copy(sums.begin(), sums.end(), out);
    });
}

template <class Number>
nb::tuple bound_combine(const Rows<Number>& rows, const Vector& coefficients, const Vector& v, double factor,
                        int n_threads, const Maybe<std::int64_t>& ids, std::int64_t n_weights) {
    const PairRows<Number> pairs = pair_rows(rows, length(coefficients));
    if (!ids) n_weights = pairs.n_columns;
    const Combination combination{coefficients.data(), factor, checked("v", v, pairs.n_columns),
                                  columns_of(ids, pairs.n_columns, n_weights)};
    check_threads(n_threads);
    double slope;
    const nb::object d = filled<double>({static_cast<std::size_t>(n_weights)}, [&](double* out) {
        if (ids) std::fill_n(out, n_weights, 0.0);
        // Backward, because the rows that write_pair has read last are still in the cache.
        const VectorPass pass{combination.columns.n, 1, n_threads, true};
        slope = over_blocks(pass, pair_kernels<Number>().combine, pairs, combination, out)[0];
    });
    return nb::make_tuple(d, slope);
}

// For pairs that are stored so; calls choose by the type of their rows.
template <class Number>
void bind_pairs(nb::module_& m) {
    m.def("pairs_write", &bound_write_pair<Number>, "rows"_a.noconvert(), "n_rows"_a, "s_row"_a, "x"_a,
          "x_before"_a, "g"_a, "g_before"_a, "v"_a, "n_threads"_a, "ids"_a = nb::none(),
          "Writes s = x − x_before and y = g − g_before to rows s_row and s_row + 1. Returns the products of "
          "the first n_rows rows with y (as rounded in its row) and with v, s·s, and with ids, "
          "where column j of the rows is weight ids[j], v in these columns.");
    m.def(
        "pairs_gram", &bound_gram<Number>, "rows"_a.noconvert(), "n_rows"_a, "n_columns"_a, "n_threads"_a,
        "[pairs, n_rows, 2]: the products of the first n_rows rows with y and with s of each pair, over the "
        "first n_columns columns.");
    m.def("pairs_products", &bound_row_products<Number>, "rows"_a.noconvert(), "n_rows"_a, "v"_a,
          "n_threads"_a, "The products of the first n_rows rows with v.");
    m.def(
        "pairs_combine", &bound_combine<Number>, "rows"_a.noconvert(), "coefficients"_a, "v"_a, "factor"_a,
        "n_threads"_a, "ids"_a = nb::none(), "n_weights"_a = 0,
        "(d, d·v): d = Σ_k coefficients_k rows_k + factor·v. With ids, d has n_weights numbers, and column j "
        "is that of weight ids[j].");
}

}  // namespace

void bind_vectors(nb::module_& m) {
    m.def("vector_products", &bound_products, "a"_a, "b"_a, "n_threads"_a, "(a·b, a·a)");
    m.def("vector_step", &bound_step, "x"_a, "direction"_a, "t"_a, "n_threads"_a, "x + t·direction");
    m.def("vector_penalty", &bound_penalty, "x"_a, "l1"_a, "n_threads"_a,
          "Σ l1_i |x_i|; l1 has one number for each weight, or one for all.");
    m.def("vector_pseudo_gradient", &bound_pseudo_gradient, "x"_a, "gradient"_a, "l1"_a, "n_threads"_a,
          "(p, p·p): the smallest subgradient of f + Σ l1_i |x_i|; −p is the direction of steepest descent.");
    m.def("vector_orthant_step", &bound_orthant_step, "x"_a, "direction"_a, "pseudo"_a, "l1"_a, "t"_a,
          "aligned"_a, "n_threads"_a,
          "(z, Σ l1_i |z_i|, pseudo·(z − x)): z = x + t·direction, where a penalised weight stops at 0 "
          "instead of "
          "changing its sign, and one that is 0 only goes against the pseudo-gradient.");
    bind_pairs<float>(m);
    bind_pairs<BFloat16>(m);
}

}  // namespace crfkit
