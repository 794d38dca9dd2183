// hone/hone.hpp: what is called by its arguments comes to the function of its parameters, and what goes wrong is thrown.
#include <hone/hone.hpp>

#include <cstdio>
#include <cstring>
#include <numeric>

static int failures = 0;

#define EXPECT(truth)                                                                                                  \
    do {                                                                                                               \
        if (!(truth)) std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #truth), failures++;           \
    } while (false)

template <class F> static std::string thrown(hone_status status, F &&body)
{
    try {
        body();
    } catch (const hone::error &failure) {
        if (failure.status() == status) return failure.what();
        return std::string("another status: ") + failure.what();
    }
    return "nothing was thrown";
}

static bool has(const std::string &text, const char *words)
{
    if (text.find(words) != std::string::npos) return true;
    std::fprintf(stderr, "'%s' has no '%s'\n", text.c_str(), words);
    return false;
}

static const char *const signature =
    "scale(x: f32[n], bias: f32[n]?, *, by: f64 = 2.0, plus: i64 = 0, twice: bool = false) -> y: f32[n]";

static void plain(
    hone::run &,
    hone::span<const float> x,
    const float *bias,
    hone::span<float> y,
    double by,
    std::int64_t plus,
    bool twice)
{
    for (std::size_t i = 0; i < x.size(); i++) {
        y[i] = static_cast<float>(by * x[i]) + static_cast<float>(plus) + (bias != nullptr ? bias[i] : 0);
        if (twice) y[i] *= 2;
    }
}

static void a_vector_is_a_tensor_and_a_lambda_a_kernel()
{
    hone::runtime rt;
    hone::operation scale = rt.algorithm(signature, plain);
    std::vector<float> x(10), y(10);
    std::array<float, 10> bias{};
    std::iota(x.begin(), x.end(), 0.0f);
    bias[9] = 100;
    scale(x, bias, y, 3, 1, true);
    EXPECT(y[9] == 256);
    scale(x, nullptr, hone::tensor(y));
    EXPECT(y[9] == 18);
    EXPECT(has(scale.explain(x, nullptr, y), "native/reference"));
    EXPECT(
        has(thrown(HONE_INVALID_ARGUMENT, [&] { scale(x, nullptr, y, std::string("much")); }),
            "by is \"much\" (a string)"));
    EXPECT(has(thrown(HONE_NOT_FOUND, [&] { rt.get("nowhere"); }), "nowhere"));
    EXPECT(has(thrown(HONE_INVALID_ARGUMENT, [&] { hone::tensor(x, {3, 4}); }), "12 elements, the data 10"));
    EXPECT(has(thrown(HONE_INVALID_ARGUMENT, [&] { rt.algorithm("scale(", plain); }), "signature"));
}

static void a_contest_runs_a_lambda_that_captures_nothing_in_a_process_of_its_own()
{
    hone_runtime_options zygote{};
    zygote.flags = HONE_RUNTIME_ZYGOTE;
    hone::runtime rt(zygote);
    hone::operation scale = rt.algorithm(signature, plain);
    hone::about threads;
    threads.space = "threads: 1 | 2";
    scale.kernel(
        "threaded",
        [](hone::run &run, const float *x, const float *, float *y, double by, std::int64_t plus, bool twice) {
            const std::int64_t n = run.dim("n");
            run.parallel_for(static_cast<std::int32_t>(run.config(0)), n, [&](std::int64_t i) {
                y[i] = static_cast<float>((by * x[i] + static_cast<double>(plus)) * (twice ? 2 : 1));
            });
        },
        threads);
    std::vector<float> x(100, 1), y(100);
    hone_tune_options options{};
    options.seconds = 0.5;
    const hone::result result = scale.tune(options, x, nullptr, y);
    EXPECT(result.kernel() == "threaded");
    EXPECT(result.decision().evidence.isolated);
    const hone::plan plan = scale.bind(x, nullptr, y);
    plan(x, nullptr, y);
    EXPECT(plan.kernel() == "threaded" && plan.is_current());
    EXPECT(y[99] == 2);
}

static void what_a_kernel_throws_comes_to_its_caller()
{
    hone::runtime rt;
    hone::operation scale = rt.algorithm(
        "fragile(x: f32[n], *, at: i64 = 0) -> y: f32[n]",
        [](hone::run &run, hone::span<const float> x, hone::span<float> y, std::int64_t at) {
            run.parallel_workers(3, static_cast<std::int64_t>(x.size()), [&](std::int64_t i, std::int32_t worker) {
                if (worker < 0 || worker > 2) throw std::runtime_error("a worker of another number");
                if (i == at) throw std::runtime_error("it broke at " + std::to_string(i));
                y[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i)];
            });
        });
    std::vector<float> x(50, 1), y(50);
    const hone::plan plan = scale.bind(x, y, -1);
    plan(x, y, -1);
    EXPECT(y[49] == 1);
    const std::string words = thrown(HONE_KERNEL_FAILED, [&] {
        const hone::plan fails = scale.bind(x, y, 7);
        fails(x, y, 7);
    });
    EXPECT(has(words, "it broke at 7"));
}

static void elements_are_read_as_what_they_are()
{
    hone::runtime rt;
    hone::operation copy = rt.algorithm(
        "copy(x: T[n]) -> y: T[n] where T in f32, bf16",
        [](hone::run &, hone::span<const double> x, hone::span<double> y) {
            std::copy(x.begin(), x.end(), y.begin());
        });
    std::vector<float> x(8, 1), y(8);
    EXPECT(has(thrown(HONE_UNSUPPORTED, [&] { copy(x, y); }), "elements of f32"));
    EXPECT(y[0] == 0);
    hone::operation bits = rt.algorithm(
        "bits(x: bf16[n]) -> y: bf16[n]", [](hone::run &, const std::uint16_t *from, hone::span<std::uint16_t> to) {
            std::copy_n(from, to.size(), to.begin());
        });
    std::vector<std::uint16_t> a(8, 0x3f80), b(8);
    std::int64_t shape[] = {8};
    const hone_tensor given = hone_tensor_of(a.data(), HONE_BF16, 1, shape),
                      wanted = hone_tensor_of(b.data(), HONE_BF16, 1, shape);
    bits(&given, &wanted);
    EXPECT(b[7] == 0x3f80);
}

static void a_plan_and_what_a_kernel_captures_outlive_the_runtime()
{
    std::vector<float> x(4, 1), y(4);
    std::unique_ptr<hone::plan> plan;
    auto factor = std::make_shared<double>(6);
    const std::weak_ptr<double> seen = factor;
    {
        hone::runtime rt;
        hone::operation op = rt.algorithm(
            "held(x: f32[n]) -> y: f32[n]", [factor](hone::run &, hone::span<const float> from, hone::span<float> to) {
                for (std::size_t i = 0; i < from.size(); i++)
                    to[i] = static_cast<float>(*factor * from[i]);
            });
        factor.reset();
        plan = std::make_unique<hone::plan>(op.bind(x, y));
    }
    (*plan)(x, y);
    EXPECT(y[3] == 6 && !seen.expired());
    plan.reset();
    EXPECT(seen.expired());
}

static void a_scope_makes_a_context_the_threads_for_a_block()
{
    hone::runtime rt;
    hone::operation softmax = rt.get("softmax");
    std::vector<float> x(64, 1), y(64);
    hone_override choice{};
    choice.algorithm = "softmax";
    choice.kernel = "reference";
    const hone::context exact(rt, HONE_POLICY_DEFAULT, &choice);
    {
        const hone::scope inside(exact);
        EXPECT(hone_context_current() == exact.get());
        EXPECT(softmax.bind(hone::tensor(x, {4, 16}), hone::tensor(y, {4, 16})).kernel() == "reference");
    }
    EXPECT(hone_context_current() == nullptr);
    EXPECT(softmax.bind(hone::tensor(x, {4, 16}), hone::tensor(y, {4, 16})).kernel() != "reference");
}

static void a_function_that_takes_something_else_is_refused()
{
    hone::runtime rt;
    std::vector<float> x(10), y(10);
    const auto many = [](hone::run &, hone::span<const float>, hone::span<float>, double, double) {};
    hone::operation more = rt.algorithm("more(x: f32[n]) -> y: f32[n]", many);
    EXPECT(
        has(thrown(HONE_KERNEL_FAILED, [&] { more(x, y); }),
            "takes 4 arguments behind its hone::run &, and the signature has 2"));
    const auto turned = [](hone::run &, double, hone::span<const float>, hone::span<float>) {};
    hone::operation other = rt.algorithm("other(x: f32[n], *, by: f64 = 2.0) -> y: f32[n]", turned);
    EXPECT(
        has(thrown(HONE_KERNEL_FAILED, [&] { other(x, y); }),
            "stands where the kernel's function takes"));
}

int main()
{
    a_function_that_takes_something_else_is_refused();
    a_vector_is_a_tensor_and_a_lambda_a_kernel();
    a_contest_runs_a_lambda_that_captures_nothing_in_a_process_of_its_own();
    what_a_kernel_throws_comes_to_its_caller();
    elements_are_read_as_what_they_are();
    a_plan_and_what_a_kernel_captures_outlive_the_runtime();
    a_scope_makes_a_context_the_threads_for_a_block();
    return failures == 0 ? 0 : 1;
}
