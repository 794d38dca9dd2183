// hone for C++17: contexts, operations and plans that release themselves, vectors and arrays as tensors, lambdas as kernels.
//
//   hone::runtime rt;
//   hone::operation scale = rt.algorithm("scale(x: f32[n], *, by: f64 = 2) -> y: f32[n]",
//       [](hone::run &, hone::span<const float> x, hone::span<float> y, double by) {
//           for (std::size_t i = 0; i < x.size(); i++) y[i] = float(by * x[i]);
//       });
//   std::vector<float> x(1000, 1), y(1000);
//   scale(x, y, 3.0);
//
// What fails throws hone::error. Only this file's own members are here; all functions of hone/hone.h take what they wrap:
// get() of each. Objects may be moved; a runtime lives until the last operation and plan of it is gone.
#ifndef HONE_HONE_HPP
#define HONE_HONE_HPP

#include "hone/hone.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hone
{

// What hone answers but HONE_OK.
class error : public std::runtime_error
{
  public:
    error(hone_status status, const std::string &words) : std::runtime_error(words), status_(status)
    {
    }
    hone_status status() const noexcept
    {
        return status_;
    }

  private:
    hone_status status_;
};

inline void check(hone_status status, const hone_error &err)
{
    if (status != HONE_OK) throw error(status, std::string(err.where) + ": " + err.message);
}

// Elements that lie behind each other; C++20's std::span where there is one is taken, too.
template <class T> class span
{
  public:
    span() = default;
    span(T *data, std::size_t size) : data_(data), size_(size)
    {
    }
    T *data() const
    {
        return data_;
    }
    std::size_t size() const
    {
        return size_;
    }
    T *begin() const
    {
        return data_;
    }
    T *end() const
    {
        return data_ + size_;
    }
    T &operator[](std::size_t i) const
    {
        return data_[i];
    }
    explicit operator bool() const
    {
        return data_ != nullptr;
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// The id of an element type of C++.
template <class T> constexpr hone_dtype_id dtype()
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, bool>)
        return HONE_BOOL;
    else if constexpr (std::is_same_v<U, float>)
        return HONE_F32;
    else if constexpr (std::is_same_v<U, double>)
        return HONE_F64;
    else {
        static_assert(std::is_integral_v<U>, "hone has no element type for this one of C++; use hone_tensor");
        constexpr bool is_signed = std::is_signed_v<U>;
        if constexpr (sizeof(U) == 1)
            return is_signed ? HONE_I8 : HONE_U8;
        else if constexpr (sizeof(U) == 2)
            return is_signed ? HONE_I16 : HONE_U16;
        else if constexpr (sizeof(U) == 4)
            return is_signed ? HONE_I32 : HONE_U32;
        else
            return is_signed ? HONE_I64 : HONE_U64;
    }
}

// A row-major tensor of the CPU over memory of the caller's.
class tensor
{
  public:
    template <class T> tensor(T *data, std::initializer_list<std::int64_t> shape)
    {
        if (shape.size() > HONE_MAX_RANK) throw error(HONE_INVALID_ARGUMENT, "tensor: more than 8 dims");
        std::copy(shape.begin(), shape.end(), shape_.begin());
        view_ = hone_tensor_of(
            const_cast<std::remove_cv_t<T> *>(data), dtype<T>(), static_cast<std::int32_t>(shape.size()), nullptr);
    }
    // A vector, an array or a span; with a shape, whose elements must be as many.
    template <class C, class = decltype(std::declval<C &>().data())>
    explicit tensor(C &&of) : tensor(of.data(), {static_cast<std::int64_t>(of.size())})
    {
    }
    template <class C, class = decltype(std::declval<C &>().data())>
    tensor(C &&of, std::initializer_list<std::int64_t> shape) : tensor(of.data(), shape)
    {
        if (hone_tensor_elements(get()) != static_cast<std::int64_t>(of.size()))
            throw error(
                HONE_INVALID_ARGUMENT, "tensor: the shape has " + std::to_string(hone_tensor_elements(get())) +
                                           " elements, the data " + std::to_string(of.size()));
    }
    // Until it is moved or copied.
    const hone_tensor *get() const
    {
        view_.shape = shape_.data();
        return &view_;
    }

  private:
    mutable std::array<std::int64_t, HONE_MAX_RANK> shape_{};
    mutable hone_tensor view_{};
};

// One argument: a tensor, whatever tensor takes, a number, a bool, a string, nullptr for none, or a hone_value.
class argument
{
  public:
    template <class T> argument(T &&from)
    {
        using U = std::remove_cv_t<std::remove_reference_t<T>>;
        if constexpr (std::is_same_v<U, hone_value>)
            value_ = from;
        else if constexpr (std::is_same_v<U, std::nullptr_t>)
            value_ = hone_of_none();
        else if constexpr (std::is_same_v<U, bool>)
            value_ = hone_of_bool(from);
        else if constexpr (std::is_integral_v<U>)
            value_ = hone_of_int(static_cast<std::int64_t>(from));
        else if constexpr (std::is_floating_point_v<U>)
            value_ = hone_of_float(from);
        else if constexpr (std::is_convertible_v<T, const char *>)
            value_ = hone_of_string(from);
        else if constexpr (std::is_same_v<U, std::string>)
            value_ = hone_of_string(from.c_str());
        else if constexpr (std::is_convertible_v<T, const hone_tensor *>)
            value_ = hone_of_tensor(from);
        else if constexpr (std::is_same_v<U, tensor>)
            value_ = hone_of_tensor(from.get());
        else {
            own_ = std::make_unique<tensor>(from);
            value_ = hone_of_tensor(own_->get());
        }
    }
    const hone_value &get() const
    {
        return value_;
    }

  private:
    hone_value value_;
    std::unique_ptr<tensor> own_;
};

// What a kernel's function is called with beside its arguments.
class run
{
  public:
    run(const hone_plan *plan, const hone_execution *execution) : plan_(plan), execution_(execution)
    {
    }
    // The value of the i-th parameter of the kernel's space.
    std::int64_t config(std::size_t i) const
    {
        return plan_->config[i];
    }
    // A dim of the signature, by its name.
    std::int64_t dim(const char *name) const
    {
        std::int64_t value = 0;
        const hone_status status = hone_call_dim(plan_->call, name, &value);
        if (status != HONE_OK) throw error(status, std::string("the call has no dim ") + name);
        return value;
    }
    // body(index) for each index below count, on at most `threads` threads. What a body throws, the first of several, is
    // thrown here when all have ended.
    template <class F> void parallel_for(std::int32_t threads, std::int64_t count, F &&body) const
    {
        parallel_workers(threads, count, [&](std::int64_t index, std::int32_t) { body(index); });
    }
    // body(index, worker): no two bodies run at the same time with one worker, 0 <= worker < workers.
    template <class F> void parallel_workers(std::int32_t workers, std::int64_t count, F &&body) const
    {
        struct job {
            F &body;
            std::vector<std::exception_ptr> failures; // of each worker
        } all{body, std::vector<std::exception_ptr>(workers > 0 ? static_cast<std::size_t>(workers) : 1)};
        hone_plan_parallel_workers(
            plan_, execution_, workers, count,
            [](void *ctx, std::int64_t index, std::int32_t worker) {
                job &own = *static_cast<job *>(ctx);
                std::exception_ptr &failure = own.failures[static_cast<std::size_t>(worker)];
                try {
                    if (!failure) own.body(index, worker);
                } catch (...) {
                    failure = std::current_exception();
                }
            },
            &all);
        for (const std::exception_ptr &failure : all.failures)
            if (failure) std::rethrow_exception(failure);
    }
    const hone_plan *plan() const
    {
        return plan_;
    }
    const hone_execution *execution() const
    {
        return execution_;
    }

  private:
    const hone_plan *plan_;
    const hone_execution *execution_;
};

namespace detail
{

// An argument of a kernel's function, of the type that the function asks for.
template <class T> struct given;
// Whether elements of a tensor may be read as T. Integers without a sign stand for any element of their size, as uint16_t for
// bf16; void and types that are no numbers are the function's own business.
template <class T> bool reads(const hone_dtype &of)
{
    using U = std::remove_cv_t<T>;
    if constexpr (!std::is_arithmetic_v<U>)
        return true;
    else if constexpr (std::is_unsigned_v<U> && !std::is_same_v<U, bool>)
        return of.bits == 8 * sizeof(U);
    else {
        const hone_dtype own = hone_dtype_of(dtype<U>());
        return of.code == own.code && of.bits == own.bits;
    }
}
// None stands for whatever the function takes: a null pointer, an empty span, 0.
inline void check_kind(const hone_value &value, bool is_right, const char *asked)
{
    if (!is_right && value.tag != HONE_VALUE_NONE)
        throw error(
            HONE_UNSUPPORTED, std::string(value.tag == HONE_VALUE_TENSOR ? "a tensor" : "a scalar") +
                                  " stands where the kernel's function takes " + asked);
}
template <class T> struct given<T *> {
    static T *of(const hone_value &value)
    {
        check_kind(value, value.tag == HONE_VALUE_TENSOR, "a tensor");
        if (value.tag != HONE_VALUE_TENSOR) return nullptr;
        if (!reads<T>(value.as.tensor->dtype)) {
            const hone_dtype_info *info = hone_dtype_find(value.as.tensor->dtype);
            throw error(
                HONE_UNSUPPORTED, std::string("a tensor has elements of ") +
                                      (info != nullptr ? info->name : "another type") +
                                      ", and the kernel's function takes others");
        }
        return static_cast<T *>(hone_tensor_data(value.as.tensor));
    }
};
template <> struct given<const hone_tensor *> {
    static const hone_tensor *of(const hone_value &value)
    {
        check_kind(value, value.tag == HONE_VALUE_TENSOR, "a tensor");
        return value.tag == HONE_VALUE_TENSOR ? value.as.tensor : nullptr;
    }
};
template <> struct given<const char *> {
    static const char *of(const hone_value &value)
    {
        check_kind(value, value.tag == HONE_VALUE_STRING, "a text");
        return value.tag == HONE_VALUE_STRING ? value.as.string : nullptr;
    }
};
template <class T> struct given<span<T>> {
    static span<T> of(const hone_value &value)
    {
        check_kind(value, value.tag == HONE_VALUE_TENSOR, "a tensor");
        if (value.tag != HONE_VALUE_TENSOR) return {};
        if (!hone_tensor_is_row_major(value.as.tensor))
            throw error(HONE_UNSUPPORTED, "a tensor is not row-major, and the kernel takes a span");
        return {given<T *>::of(value), static_cast<std::size_t>(hone_tensor_elements(value.as.tensor))};
    }
};
template <class T> struct scalar {
    static T of(const hone_value &value)
    {
        check_kind(value, value.tag != HONE_VALUE_TENSOR && value.tag != HONE_VALUE_STRING, "a number");
        return value.tag == HONE_VALUE_FLOAT ? static_cast<T>(value.as.f64) : static_cast<T>(value.as.i64);
    }
};
template <> struct given<bool> : scalar<bool> {
};
template <> struct given<std::int32_t> : scalar<std::int32_t> {
};
template <> struct given<std::int64_t> : scalar<std::int64_t> {
};
template <> struct given<float> : scalar<float> {
};
template <> struct given<double> : scalar<double> {
};
template <> struct given<hone_value> {
    static hone_value of(const hone_value &value)
    {
        return value;
    }
};

template <class F, class... Args, std::size_t... I>
void call(F &function, run &own, const hone_value *args, std::tuple<Args...> *, std::index_sequence<I...>)
{
    (void)args;
    function(own, given<std::remove_cv_t<std::remove_reference_t<Args>>>::of(args[I])...);
}

// The arguments of a function behind its first, which is a run &.
template <class F> struct arguments : arguments<decltype(&F::operator())> {
};
template <class C, class... Args> struct arguments<void (C::*)(run &, Args...) const> {
    using types = std::tuple<Args...>;
};
template <class C, class... Args> struct arguments<void (C::*)(run &, Args...)> {
    using types = std::tuple<Args...>;
};
template <class... Args> struct arguments<void (*)(run &, Args...)> {
    using types = std::tuple<Args...>;
};

template <class F>
hone_status guarded(
    F &function, const hone_plan *plan, const hone_value *args, const hone_execution *execution) noexcept
{
    using types = typename arguments<std::remove_cv_t<F>>::types;
    try {
        run own(plan, execution);
        const std::size_t count = hone_signature_count(hone_call_signature(plan->call));
        if (std::tuple_size_v < types >> count)
            throw error(
                HONE_UNSUPPORTED, "the kernel's function takes " + std::to_string(std::tuple_size_v<types>) +
                                      " arguments behind its hone::run &, and the signature has " +
                                      std::to_string(count) + " parameters and results");
        call(function, own, args, static_cast<types *>(nullptr), std::make_index_sequence<std::tuple_size_v<types>>());
        return HONE_OK;
    } catch (const error &failure) {
        return hone_plan_fail(plan, failure.status(), failure.what());
    } catch (const std::bad_alloc &) {
        return hone_plan_fail(plan, HONE_OUT_OF_MEMORY, "no memory left");
    } catch (const std::exception &failure) {
        return hone_plan_fail(plan, HONE_KERNEL_FAILED, failure.what());
    } catch (...) {
        return hone_plan_fail(plan, HONE_KERNEL_FAILED, "it threw something that is no std::exception");
    }
}

// A lambda that captures nothing goes to hone as the address of a function, so that a contest can run it in a process of
// its own; one that captures is an object of this process.
template <class... Args>
hone_status run_function(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    auto *function = reinterpret_cast<void (*)(run &, Args...)>(plan->kernel->user);
    return guarded(function, plan, args, execution);
}

template <class F>
hone_status run_object(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return guarded(*static_cast<F *>(plan->kernel->user), plan, args, execution);
}

template <class Types> struct function_of;
template <class... Args> struct function_of<std::tuple<Args...>> {
    using pointer = void (*)(run &, Args...);
    static constexpr hone_run_function *run = run_function<Args...>;
};

// A runtime and what its kernels capture, until the last who uses it is gone.
struct state {
    hone_runtime *rt = nullptr;
    std::vector<std::shared_ptr<void>> kept;
    state() = default;
    state(const state &) = delete;
    state &operator=(const state &) = delete;
    ~state()
    {
        hone_runtime_close(&rt);
    }
};

template <class F> void set_run(state &own, hone_kernel &kernel, F &&function)
{
    using D = std::decay_t<F>;
    using made = function_of<typename arguments<D>::types>;
    if constexpr (std::is_convertible_v<D, typename made::pointer>) {
        kernel.user = reinterpret_cast<void *>(static_cast<typename made::pointer>(function));
        kernel.run = made::run;
    } else {
        auto object = std::make_shared<D>(std::forward<F>(function));
        kernel.user = object.get();
        kernel.run = run_object<D>;
        own.kept.push_back(std::move(object));
    }
}

} // namespace detail

// Arguments of one call, as hone's functions take them. Lives as long as what it was made of.
class arguments
{
  public:
    template <class... Args> explicit arguments(Args &&...args)
    {
        held_.reserve(sizeof...(args));
        (held_.emplace_back(std::forward<Args>(args)), ...);
        for (const argument &one : held_)
            values_.push_back(one.get());
    }
    const hone_value *data() const
    {
        return values_.data();
    }
    std::size_t size() const
    {
        return values_.size();
    }

  private:
    std::vector<argument> held_;
    std::vector<hone_value> values_;
};

// A decision that is ready to run, for arguments like those that it was bound for.
class plan
{
  public:
    // One indirect call; nothing is allocated for arguments that are hone::tensor or numbers.
    template <class... Args> void operator()(Args &&...args) const
    {
        const std::array<argument, sizeof...(args)> held{argument(std::forward<Args>(args))...};
        std::array<hone_value, sizeof...(args)> values;
        for (std::size_t i = 0; i < held.size(); i++)
            values[i] = held[i].get();
        const hone_status status = plan_->run(plan_.get(), values.data(), nullptr);
        if (status == HONE_OK) return;
        hone_error err{};
        err.where = "plan.run";
        check(hone_plan_failed(plan_.get(), status, &err), err);
    }
    bool is_current() const
    {
        return hone_plan_is_current(plan_.get());
    }
    std::string kernel() const
    {
        return plan_->kernel->name;
    }
    const hone_plan *get() const
    {
        return plan_.get();
    }

  private:
    friend class operation;
    plan(std::shared_ptr<detail::state> own, const hone_plan *from)
        : plan_(from, [own](const hone_plan *bound) { hone_plan_release(&bound); })
    {
    }
    std::shared_ptr<const hone_plan> plan_;
};

// What a contest found. Times are nanoseconds of one run.
class result
{
  public:
    explicit result(hone_result *from) : result_(from, [](hone_result *own) { hone_result_release(&own); })
    {
    }
    std::string kernel() const
    {
        return decision().kernel;
    }
    std::string config() const
    {
        return decision().config_json;
    } // JSON object
    double time_ns() const
    {
        return decision().evidence.time_ns;
    }
    const hone_decision &decision(std::size_t i = 0) const
    {
        return *hone_result_decision(result_.get(), i);
    }
    hone_result *get() const
    {
        return result_.get();
    }

  private:
    std::shared_ptr<hone_result> result_;
};

// What a kernel says of itself; what is not set is the default of hone_kernel.
struct about {
    const char *space = nullptr;
    std::int64_t priority = 0;
    std::uint64_t needs = 0;
    const char *revision = nullptr;
    bool (*supports)(const hone_kernel *, const hone_call *, hone_error *) = nullptr;
    bool is_reference = false;
};

// An algorithm of a runtime. Copies are the same one.
class operation
{
  public:
    // Runs it: positional parameters, results, keyword-only parameters.
    template <class... Args> void operator()(Args &&...args) const
    {
        const arguments given(std::forward<Args>(args)...);
        hone_error err;
        check(hone_run(op_, given.data(), given.size(), nullptr, &err), err);
    }
    template <class... Args> plan bind(Args &&...args) const
    {
        const arguments given(std::forward<Args>(args)...);
        const hone_plan *out = nullptr;
        hone_error err;
        check(hone_bind(op_, given.data(), given.size(), &out, &err), err);
        return plan(state_, out);
    }
    // options: .struct_size is set here.
    template <class... Args> result tune(hone_tune_options options, Args &&...args) const
    {
        const arguments given(std::forward<Args>(args)...);
        hone_result *out = nullptr;
        hone_error err;
        options.struct_size = sizeof options;
        const hone_status status = hone_tune_values(op_, given.data(), given.size(), &options, &out, &err);
        result found(out);
        check(status, err);
        return found;
    }
    template <class... Args> std::string explain(Args &&...args) const
    {
        const arguments given(std::forward<Args>(args)...);
        std::string text;
        hone_call *call = nullptr;
        hone_error err;
        check(
            hone_call_bind(
                hone_allocator_system(), hone_op_signature(op_), given.data(), given.size(), true, &call, &err),
            err);
        const std::unique_ptr<hone_call, void (*)(hone_call *)> held(
            call, [](hone_call *own) { hone_call_release(&own); });
        const auto append = [](void *ctx, const char *piece, std::size_t size) {
            static_cast<std::string *>(ctx)->append(piece, size);
        };
        check(hone_explain(op_, call, HONE_TEXT, append, &text, &err), err);
        return text;
    }
    // Adds a kernel for the CPU: function(hone::run &, arguments in the order of values in C), each of them a pointer or a
    // span of a tensor's elements, a const hone_tensor *, a number, a bool or a const char *. It may throw. A tensor of
    // other elements than the function takes is HONE_UNSUPPORTED; unsigned integers take any of their size, void * all.
    template <class F> void kernel(const char *name, F &&function, const about &about = {})
    {
        hone_kernel made;
        hone_kernel_init(&made);
        made.algorithm = algorithm_.c_str();
        made.name = name;
        made.platform = HONE_NATIVE;
        made.backend = HONE_CPU;
        made.priority = about.priority;
        made.needs = about.needs;
        made.space = about.space;
        made.revision = about.revision;
        made.supports = about.supports;
        made.is_reference = about.is_reference;
        detail::set_run(*state_, made, std::forward<F>(function));
        hone_error err;
        check(hone_register_kernels(state_->rt, &made, 1, &err), err);
    }
    const hone_op *get() const
    {
        return op_;
    }

  private:
    friend class runtime;
    operation(std::shared_ptr<detail::state> own, const char *name) : state_(std::move(own)), algorithm_(name)
    {
        hone_error err;
        check(hone_op_get(state_->rt, name, &op_, &err), err);
    }
    std::shared_ptr<detail::state> state_;
    std::string algorithm_;
    const hone_op *op_ = nullptr;
};

class runtime
{
  public:
    // options: .struct_size is set here.
    explicit runtime(hone_runtime_options options = hone_runtime_options()) : state_(std::make_shared<detail::state>())
    {
        hone_error err;
        options.struct_size = sizeof options;
        check(hone_runtime_open(&options, &state_->rt, &err), err);
    }
    operation get(const char *name) const
    {
        return operation(state_, name);
    }
    // Registers an algorithm with its reference, a function as operation::kernel takes it, which computes in higher
    // precision than the dtype.
    //   options  .struct_size, .signature and .reference_kernel are set here
    template <class F>
    operation algorithm(const char *signature, F &&reference, hone_algorithm options = hone_algorithm())
    {
        options.struct_size = sizeof options;
        options.signature = signature;
        options.reference_kernel = "reference";
        hone_signature *parsed = nullptr;
        hone_error err;
        check(hone_signature_parse(hone_allocator_system(), signature, &parsed, &err), err);
        const std::string name = hone_signature_name(parsed);
        hone_signature_release(&parsed);
        check(hone_register_algorithm(state_->rt, &options, &err), err);
        operation made(state_, name.c_str());
        about plain;
        plain.is_reference = true;
        made.kernel("reference", std::forward<F>(reference), plain);
        return made;
    }
    hone_runtime *get() const
    {
        return state_->rt;
    }

  private:
    std::shared_ptr<detail::state> state_;
};

// Overlays, overrides and a policy, immutable; `scope` makes one the calling thread's for a block.
class context
{
  public:
    // Takes over the reference that hone_context_derive gave.
    explicit context(hone_context *from) : context_(from, [](hone_context *own) { hone_context_release(&own); })
    {
    }
    context(
        const runtime &rt, hone_policy policy, const hone_override *choice = nullptr, const context *parent = nullptr)
    {
        hone_context *out = nullptr;
        hone_error err;
        hone_context *around = parent != nullptr ? parent->get() : nullptr;
        check(hone_context_derive(rt.get(), around, nullptr, choice, policy, &out, &err), err);
        *this = context(out);
    }
    hone_context *get() const
    {
        return context_.get();
    }

  private:
    std::shared_ptr<hone_context> context_;
};

class scope
{
  public:
    explicit scope(const context &inner) : inner_(inner), before_(hone_context_enter(inner.get()))
    {
    }
    ~scope()
    {
        hone_context_enter(before_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    context inner_;
    hone_context *before_;
};

} // namespace hone

#endif
