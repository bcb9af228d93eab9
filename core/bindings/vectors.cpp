#include "kernels/vectors.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

using Vector = Array<double>;
using Rows = nb::ndarray<float, nb::numpy, nb::ndim<2>, nb::c_contig>;

std::int64_t length(const Vector& vector) { return static_cast<std::int64_t>(vector.size()); }

void check_length(const Vector& vector, std::int64_t n, const char* name) {
    if (length(vector) != n)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(length(vector)) +
                                    " numbers, expected " + std::to_string(n));
}

void check_threads(int n_threads) {
    if (n_threads < 1) throw std::invalid_argument("n_threads must be at least 1");
}

Strengths strengths(const Vector& l1, std::int64_t n) {
    if (length(l1) != 1) check_length(l1, n, "l1");
    return {l1.data(), length(l1) != 1};
}

PairRows pair_rows(const Rows& rows, std::int64_t n_rows) {
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
        return {};
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

nb::tuple bound_products(const Vector& a, const Vector& b, int n_threads) {
    check_length(b, length(a), "b");
    check_threads(n_threads);
    std::vector<double> sums;
    {
        const LockRelease release;
        sums = products(a.data(), b.data(), length(a), n_threads);
    }
    return nb::make_tuple(sums[0], sums[1]);
}

nb::object bound_step(const Vector& x, const Vector& direction, double t, int n_threads) {
    check_length(direction, length(x), "direction");
    check_threads(n_threads);
    NewArray<double> out({x.size()});
    {
        const LockRelease release;
        step(x.data(), direction.data(), t, length(x), out.data(), n_threads);
    }
    return out.take();
}

double bound_penalty(const Vector& x, const Vector& l1, int n_threads) {
    const Strengths checked = strengths(l1, length(x));
    check_threads(n_threads);
    const LockRelease release;
    return penalty(x.data(), checked, length(x), n_threads);
}

nb::tuple bound_pseudo_gradient(const Vector& x, const Vector& gradient, const Vector& l1, int n_threads) {
    check_length(gradient, length(x), "gradient");
    const Strengths checked = strengths(l1, length(x));
    check_threads(n_threads);
    NewArray<double> out({x.size()});
    double square;
    {
        const LockRelease release;
        square = pseudo_gradient(x.data(), gradient.data(), checked, length(x), out.data(), n_threads);
    }
    return nb::make_tuple(out.take(), square);
}

nb::tuple bound_orthant_step(const Vector& x, const Vector& direction, const Vector& pseudo, const Vector& l1,
                             double t, bool aligned, int n_threads) {
    check_length(direction, length(x), "direction");
    check_length(pseudo, length(x), "pseudo");
    const OrthantPath path{x.data(), direction.data(), pseudo.data(), strengths(l1, length(x)), aligned};
    check_threads(n_threads);
    NewArray<double> out({x.size()});
    std::vector<double> sums;
    {
        const LockRelease release;
        sums = orthant_step(path, t, length(x), out.data(), n_threads);
    }
    return nb::make_tuple(out.take(), sums[0], sums[1]);
}

nb::tuple bound_write_pair(const Rows& rows, std::int64_t n_rows, std::int64_t s_row, const Vector& x,
                           const Vector& x_before, const Vector& g, const Vector& g_before, const Vector& v,
                           int n_threads, const Maybe<std::int64_t>& ids) {
    const PairRows pairs = pair_rows(rows, n_rows);
    if (s_row < 0 || s_row % 2 || s_row >= n_rows)
        throw std::invalid_argument("s_row must be even and below n_rows");
    const Columns columns = columns_of(ids, pairs.n_columns, length(x));
    check_length(x_before, length(x), "x_before");
    check_length(g, length(x), "g");
    check_length(g_before, length(x), "g_before");
    check_length(v, length(x), "v");
    check_threads(n_threads);
    NewArray<double> v_columns({static_cast<std::size_t>(columns.ids ? pairs.n_columns : 0)});
    const PairSource source{x.data(), x_before.data(), g.data(),        g_before.data(),
                            v.data(), columns,         v_columns.data()};
    std::vector<double> sums;
    {
        const LockRelease release;
        sums = write_pair(pairs, s_row, source, n_threads);
    }
    NewArray<double> with_y({static_cast<std::size_t>(n_rows)}), with_v({static_cast<std::size_t>(n_rows)});
    for (std::int64_t row = 0; row < n_rows; ++row) {
        with_y.data()[row] = sums[static_cast<std::size_t>(2 * row)];
        with_v.data()[row] = sums[static_cast<std::size_t>(2 * row + 1)];
    }
    return nb::make_tuple(with_y.take(), with_v.take(), sums.back(), v_columns.take());
}

nb::object bound_row_products(const Rows& rows, std::int64_t n_rows, const Vector& v, int n_threads) {
    const PairRows pairs = pair_rows(rows, n_rows);
    check_length(v, pairs.n_columns, "v");
    check_threads(n_threads);
    std::vector<double> sums;
    {
        const LockRelease release;
        sums = row_products(pairs, v.data(), n_threads);
    }
    NewArray<double> out({sums.size()});
    for (std::size_t row = 0; row < sums.size(); ++row) out.data()[row] = sums[row];
    return out.take();
}

nb::object bound_gram(const Rows& rows, std::int64_t n_rows, int n_threads) {
    const PairRows pairs = pair_rows(rows, n_rows);
    check_threads(n_threads);
    std::vector<double> sums;
    {
        const LockRelease release;
        sums = gram(pairs, n_threads);
    }
    const auto n = static_cast<std::size_t>(n_rows);
    NewArray<double> out({n / 2, n, 2});
    std::copy(sums.begin(), sums.end(), out.data());
    return out.take();
}

nb::tuple bound_combine(const Rows& rows, const Vector& coefficients, const Vector& v, double factor,
                        int n_threads, const Maybe<std::int64_t>& ids, std::int64_t n_weights) {
    const PairRows pairs = pair_rows(rows, length(coefficients));
    check_length(v, pairs.n_columns, "v");
    check_threads(n_threads);
    const Columns columns = columns_of(ids, pairs.n_columns, ids ? n_weights : pairs.n_columns);
    const Combination combination{coefficients.data(), factor, v.data(), columns};
    NewArray<double> out({static_cast<std::size_t>(ids ? n_weights : pairs.n_columns)});
    if (ids) std::fill_n(out.data(), n_weights, 0.0);
    double slope;
    {
        const LockRelease release;
        slope = combine(pairs, combination, out.data(), n_threads);
    }
    return nb::make_tuple(out.take(), slope);
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
    m.def("pairs_write", &bound_write_pair, "rows"_a.noconvert(), "n_rows"_a, "s_row"_a, "x"_a, "x_before"_a,
          "g"_a, "g_before"_a, "v"_a, "n_threads"_a, "ids"_a = nb::none(),
          "Writes s = x − x_before and y = g − g_before to rows s_row and s_row + 1. Returns the products of "
          "the first n_rows rows with y (as rounded in its row) and with v, s·s, and with ids, "
          "where column j of the rows is weight ids[j], v in these columns.");
    m.def("pairs_gram", &bound_gram, "rows"_a.noconvert(), "n_rows"_a, "n_threads"_a,
          "[pairs, n_rows, 2]: the products of the first n_rows rows with y and with s of each pair.");
    m.def("pairs_products", &bound_row_products, "rows"_a.noconvert(), "n_rows"_a, "v"_a, "n_threads"_a,
          "The products of the first n_rows rows with v.");
    m.def(
        "pairs_combine", &bound_combine, "rows"_a.noconvert(), "coefficients"_a, "v"_a, "factor"_a,
        "n_threads"_a, "ids"_a = nb::none(), "n_weights"_a = 0,
        "(d, d·v): d = Σ_k coefficients_k rows_k + factor·v. With ids, d has n_weights numbers, and column j "
        "is that of weight ids[j].");
}

}  // namespace crfkit
