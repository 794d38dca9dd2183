// What the readers make of programs: bodies and how often they run, values, and the calls that stand in them.
#include "offline/find.h"
#include "offline/forms/forms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LABEL "ejkernel_ops#x@v0:0123456789abcdef"

typedef struct subject {
    hone_graph graph;
    hone_finds finds;
} subject;

static void open_subject(subject *s, const char *text, bool hlo)
{
    hone_allocator allocator = hone_allocator_system();
    hone_graph_init(&s->graph, &allocator);
    (hlo ? hone_hlo_read : hone_stablehlo_read)(hone_view_of(text), &s->graph);
    hone_graph_finish(&s->graph);
    assert_false(s->graph.failed);
    assert_true(hone_find_calls(&s->graph, &s->finds));
}

static void close_subject(subject *s)
{
    hone_allocator allocator = s->graph.allocator;
    hone_free(&allocator, s->finds.items);
    hone_graph_deinit(&s->graph);
}

static void assert_type(const hone_operands *view, uint32_t index, const char *type)
{
    assert_true(index < view->count);
    if (!hone_view_is(view->types[index], type))
        fail_msg("%.*s is not %s", (int)view->types[index].size, view->types[index].data, type);
}

static void assert_count(const char *text, bool hlo, int64_t count)
{
    subject s;
    open_subject(&s, text, hlo);
    assert_int_equal(s.finds.count, 1);
    if (s.finds.items[0].count != count) fail_msg("%ld, not %ld:\n%s", (long)s.finds.items[0].count, (long)count, text);
    close_subject(&s);
}

// A loop in StableHLO from `init` while `compare`, by `step`.
static void assert_trips(const char *init, const char *compare, const char *step, int64_t trips)
{
    char text[4096];
    snprintf(
        text, sizeof text,
        "module @m {\n"
        "  func.func public @main(%%arg0: tensor<4xf32> loc(\"x\"), %%arg1: tensor<i32> loc(\"n\")) -> tensor<4xf32> "
        "{\n"
        "    %%c = stablehlo.constant dense<%s> : tensor<i32> loc(#loc)\n"
        "    %%c_9 = stablehlo.constant dense<9> : tensor<i32> loc(#loc)\n"
        "    %%0:3 = stablehlo.while(%%iterArg = %%c, %%iterArg_0 = %%arg0, %%iterArg_1 = %%c_9) : tensor<i32>, "
        "tensor<4xf32>, tensor<i32>\n"
        "    cond {\n"
        "      %%c_2 = stablehlo.constant dense<10> : tensor<i32> loc(#loc)\n"
        "      %%1 = stablehlo.compare %s : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc)\n"
        "      stablehlo.return %%1 : tensor<i1> loc(#loc)\n"
        "    } do {\n"
        "      %%c_3 = stablehlo.constant dense<2> : tensor<i32> loc(#loc)\n"
        "      %%1 = %s : tensor<i32> loc(#loc)\n"
        "      %%2 = stablehlo.negate %%iterArg_0 : tensor<4xf32> loc(\"while/body/" LABEL "/neg\")\n"
        "      stablehlo.return %%1, %%2, %%iterArg_1 : tensor<i32>, tensor<4xf32>, tensor<i32> loc(#loc)\n"
        "    } loc(#loc)\n"
        "    return %%0#1 : tensor<4xf32> loc(#loc)\n"
        "  } loc(#loc)\n"
        "} loc(#loc)\n"
        "#loc = loc(unknown)\n",
        init, compare, step);
    assert_count(text, false, trips);
}

static void trips_are_counted_where_counter_and_bound_are_constants(void **state)
{
    (void)state;
    static const char add[] = "stablehlo.add %iterArg, %c_3", add_swapped[] = "stablehlo.add %c_3, %iterArg";
    static const char subtract[] = "stablehlo.subtract %iterArg, %c_3";
    assert_trips("0", "LT, %iterArg, %c_2, SIGNED", add, 5);
    assert_trips("1", "LT, %iterArg, %c_2, SIGNED", add_swapped, 5);
    assert_trips("0", "LE, %iterArg, %c_2, SIGNED", add, 6);
    assert_trips("0", "GT, %c_2, %iterArg, SIGNED", add, 5);
    assert_trips("0", "NE, %iterArg, %c_2, SIGNED", add, 5);
    assert_trips("1", "NE, %iterArg, %c_2, SIGNED", add, -1); // it steps over its bound
    assert_trips("10", "LT, %iterArg, %c_2, SIGNED", add, 0);
    assert_trips("20", "GT, %iterArg, %c_2, SIGNED", subtract, 5);
    assert_trips("20", "GE, %iterArg, %c_2, SIGNED", subtract, 6);
    assert_trips("0", "LT, %iterArg, %c_2, SIGNED", subtract, -1); // never ends
    assert_trips("0", "LT, %iterArg, %iterArg_1, SIGNED", add, 5); // a bound that is carried along: 9
    assert_trips("0", "LT, %iterArg, %c_2, SIGNED", "stablehlo.multiply %iterArg, %c_3", -1);
    assert_trips("0", "EQ, %iterArg, %c_2, SIGNED", add, -1);
    assert_trips("0", "LT, %iterArg, %arg1, SIGNED", add, -1); // a bound that the caller gives
    assert_trips("[0, 1]", "LT, %iterArg, %c_2, SIGNED", add, -1);
    assert_trips("-9223372036854775797", "LT, %iterArg, %c_2, SIGNED", add, 4611686018427387904);
    assert_trips("-9223372036854775808", "LT, %iterArg, %c_2, SIGNED", add, -1); // further than 64 bits
}

static void loops_in_functions_in_loops_multiply(void **state)
{
    (void)state;
    static const char text[] = "module @m {\n"
                               "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                               "    %0 = call @twice(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n"
                               "    %1 = func.call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
                               "    return %1 : tensor<4xf32>\n"
                               "  }\n"
                               "  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                               "    %0 = stablehlo.negate %arg0 : tensor<4xf32> loc(\"" LABEL "/neg\")\n"
                               "    %1 = stablehlo.abs %0 : tensor<4xf32> loc(\"other\")\n"
                               "    %2 = stablehlo.negate %1 : tensor<4xf32> loc(\"" LABEL "/neg\")\n"
                               "    return %2 : tensor<4xf32>\n"
                               "  }\n"
                               "  func.func private @never(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                               "    return %arg0 : tensor<4xf32>\n"
                               "  }\n"
                               "}\n";
    assert_count(text, false, 4);
}

static void a_recursive_function_has_no_call_count(void **state)
{
    (void)state;
    static const char text[] = "func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                               "  %0 = call @a(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n"
                               "  return %0 : tensor<4xf32>\n"
                               "}\n"
                               "func.func private @a(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                               "  %0 = stablehlo.negate %arg0 : tensor<4xf32> loc(\"" LABEL "/neg\")\n"
                               "  %1 = call @a(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
                               "  return %1 : tensor<4xf32>\n"
                               "}\n";
    assert_count(text, false, -1);
}

static void the_generic_form_is_read_too(void **state)
{
    (void)state;
    static const char text[] =
        "\"builtin.module\"() <{sym_name = \"m\"}> ({\n"
        "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %c = \"stablehlo.constant\"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32> loc(#loc)\n"
        "    %0:2 = \"stablehlo.while\"(%c, %arg0) ({\n"
        "    ^bb0(%arg1: tensor<i32> loc(unknown), %arg2: tensor<4xf32> loc(unknown)):\n"
        "      %c_0 = \"stablehlo.constant\"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32> loc(#loc)\n"
        "      %1 = \"stablehlo.compare\"(%arg1, %c_0) <{compare_type = #stablehlo<comparison_type SIGNED>, "
        "comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1> "
        "loc(#loc)\n"
        "      \"stablehlo.return\"(%1) : (tensor<i1>) -> () loc(#loc)\n"
        "    }, {\n"
        "    ^bb0(%arg1: tensor<i32> loc(unknown), %arg2: tensor<4xf32> loc(unknown)):\n"
        "      %c_0 = \"stablehlo.constant\"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32> loc(#loc)\n"
        "      %1 = \"stablehlo.add\"(%arg1, %c_0) : (tensor<i32>, tensor<i32>) -> tensor<i32> loc(#loc)\n"
        "      %2 = \"stablehlo.negate\"(%arg2) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc1)\n"
        "      \"stablehlo.return\"(%1, %2) : (tensor<i32>, tensor<4xf32>) -> () loc(#loc)\n"
        "    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) loc(#loc)\n"
        "    \"func.return\"(%0#1) : (tensor<4xf32>) -> () loc(#loc)\n"
        "  } loc(#loc)\n"
        "}) : () -> () loc(#loc)\n"
        "#loc = loc(unknown)\n"
        "#loc1 = loc(fused<\"x\">[\"other\", callsite(\"" LABEL "/neg\"(#loc) at \"caller\")])\n";
    subject s;
    open_subject(&s, text, false);
    assert_false(s.graph.cut);
    assert_int_equal(s.finds.count, 1);
    assert_int_equal(s.finds.items[0].count, 7);
    assert_int_equal(s.finds.items[0].view_count, 1);
    assert_type(&s.finds.items[0].views[0], 0, "tensor<4xf32>");
    close_subject(&s);
}

static void operands_come_from_outside_and_constants_do_not_count(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xbf16>, %arg2: tensor<5xf32>) -> "
        "tensor<2x4xf32> {\n"
        "  %cst = stablehlo.constant dense<3.000000e-01> : tensor<f32> loc(\"jit(f)\")\n"
        "  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc(\"jit(f)/b\")\n"
        "  %1 = stablehlo.sine %arg2 : tensor<5xf32> loc(\"jit(f)/sin\")\n"
        "  %2 = stablehlo.multiply %arg0, %0 : tensor<2x3xf32> loc(\"jit(f)/" LABEL "/mul\")\n"
        "  %3 = stablehlo.convert %arg1 : (tensor<3x4xbf16>) -> tensor<3x4xf32> loc(\"jit(f)/" LABEL "/cvt\")\n"
        "  %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
        "(tensor<2x3xf32>, "
        "tensor<3x4xf32>) -> tensor<2x4xf32> loc(\"jit(f)/" LABEL "/dot\")\n"
        "  %5:2 = stablehlo.optimization_barrier %4, %1 : tensor<2x4xf32>, tensor<5xf32> loc(\"jit(f)/" LABEL
        "/bar\")\n"
        "  return %5#0 : tensor<2x4xf32>\n"
        "}\n";
    subject s;
    open_subject(&s, text, false);
    assert_int_equal(s.finds.count, 1);
    const hone_found *found = &s.finds.items[0];
    assert_int_equal(found->views[0].count, 3);
    assert_type(&found->views[0], 0, "tensor<2x3xf32>");
    assert_type(&found->views[0], 1, "tensor<3x4xbf16>");
    assert_type(&found->views[0], 2, "tensor<5xf32>");
    assert_false(found->views[0].exact);
    close_subject(&s);
}

// As shard_map is lowered: what a call reads are the parts that a device has.
static void the_parameters_of_a_region_stand_before_its_brace(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xbf16>) -> tensor<4x3xf32> {\n"
        "  %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{\"d\"}, {}]>, <@mesh, [{\"d\"}, {}]>] "
        "out_shardings=[<@mesh, [{\"d\"}, {}]>] manual_axes={\"d\"} (%arg2: tensor<2x3xf32> loc(\"shard_map:\"(#loc)), "
        "%arg3: tensor<2x3xbf16> loc(\"shard_map:\"(#loc))) {\n"
        "    %2 = func.call @inner(%arg3, %arg2) : (tensor<2x3xbf16>, tensor<2x3xf32>) -> tensor<2x3xf32> loc(\"" LABEL
        "/jit(inner)\")\n"
        "    sdy.return %2 : tensor<2x3xf32> loc(\"x\")\n"
        "  } : (tensor<4x3xf32>, tensor<4x3xbf16>) -> tensor<4x3xf32> loc(\"jit(f)/shard_map\")\n"
        "  return %0 : tensor<4x3xf32>\n"
        "}\n"
        "func.func private @inner(%arg0: tensor<2x3xbf16>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
        "  return %arg1 : tensor<2x3xf32>\n"
        "}\n";
    subject s;
    open_subject(&s, text, false);
    assert_int_equal(s.finds.count, 1);
    assert_int_equal(s.finds.items[0].count, 1);
    assert_int_equal(s.finds.items[0].view_count, 2);
    assert_int_equal(s.finds.items[0].views[0].count, 2);
    assert_type(&s.finds.items[0].views[0], 0, "tensor<2x3xbf16>");
    assert_type(&s.finds.items[0].views[0], 1, "tensor<2x3xf32>");
    close_subject(&s);
}

static void a_reduction_with_a_body_is_one_operation(void **state)
{
    (void)state;
    static const char text[] = "func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<2xf32> {\n"
                               "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(\"jit(f)\")\n"
                               "  %0 = stablehlo.reduce(%arg0 init: %cst) across dimensions = [1] : (tensor<2x3xf32>, "
                               "tensor<f32>) -> tensor<2xf32>\n"
                               "   reducer(%arg1: tensor<f32> loc(\"a\"), %arg2: tensor<f32> loc(\"b\"))  {\n"
                               "    %2 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(\"jit(f)/" LABEL "/add\")\n"
                               "    stablehlo.return %2 : tensor<f32> loc(\"x\")\n"
                               "  } loc(\"jit(f)/" LABEL "/reduce\")\n"
                               "  %1 = stablehlo.negate %0 : tensor<2xf32> loc(\"jit(f)/" LABEL "/neg\")\n"
                               "  return %1 : tensor<2xf32>\n"
                               "}\n";
    subject s;
    open_subject(&s, text, false);
    assert_int_equal(s.finds.count, 1);
    assert_int_equal(s.finds.items[0].count, 1);
    assert_int_equal(s.finds.items[0].views[0].count, 1);
    assert_type(&s.finds.items[0].views[0], 0, "tensor<2x3xf32>");
    close_subject(&s);
}

static const char hlo_loop[] =
    "HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n\n"
    "body.1 {\n"
    "  arg.1 = (s32[], f32[4]{0}) parameter(0)\n"
    "  gte.1 = s32[] get-tuple-element(arg.1), index=0\n"
    "  one.1 = s32[] constant(1)\n"
    "  next.1 = s32[] add(gte.1, one.1), metadata={op_type=\"add\" op_name=\"jit(f)/while/body/add\"}\n"
    "  gte.2 = f32[4]{0} get-tuple-element(arg.1), index=1\n"
    "  neg.1 = f32[4]{0} negate(gte.2), metadata={op_name=\"jit(f)/while/body/ejkernel_ops#x\" stack_frame_id=3}\n"
    "  ROOT tuple.1 = (s32[], f32[4]{0}) tuple(next.1, neg.1)\n"
    "}\n\n"
    "condition.1 {\n"
    "  arg.2 = (s32[], f32[4]{0}) parameter(0)\n"
    "  gte.3 = s32[] get-tuple-element(arg.2), index=0\n"
    "  bound.1 = s32[] constant(12)\n"
    "  ROOT lt.1 = pred[] compare(gte.3, bound.1), direction=LT\n"
    "}\n\n"
    "ENTRY main.1 {\n"
    "  zero.1 = s32[] constant(0)\n"
    "  x.1 = f32[4]{0} parameter(0), metadata={op_name=\"x\"}\n"
    "  tuple.2 = (s32[], f32[4]{0}) tuple(zero.1, x.1)\n"
    "  while.1 = (s32[], f32[4]{0}) while(tuple.2), condition=condition.1, body=body.1, "
    "metadata={op_name=\"jit(f)/while\"}\n"
    "  ROOT gte.4 = f32[4]{0} get-tuple-element(while.1), index=1\n"
    "}\n";

static void loops_of_hlo_are_counted(void **state)
{
    (void)state;
    assert_count(hlo_loop, true, 12);
    static const char said[] =
        "HloModule jit_f\n"
        "%b (a: (f32[4])) -> (f32[4]) {\n"
        "  %a = (f32[4]{0}) parameter(0)\n"
        "  %g = f32[4]{0} get-tuple-element((f32[4]{0}) %a), index=0\n"
        "  %n = f32[4]{0} negate(f32[4]{0} %g), metadata={op_name=\"jit(f)/while/body/ejkernel_ops#x\"}\n"
        "  ROOT %t = (f32[4]{0}) tuple(f32[4]{0} %n)\n"
        "}\n"
        "%c (a: (f32[4])) -> pred[] {\n"
        "  %a.1 = (f32[4]{0}) parameter(0)\n"
        "  ROOT %p = pred[] constant(true)\n"
        "}\n"
        "ENTRY %m (x: f32[4]) -> (f32[4]) {\n"
        "  %x = f32[4]{0} parameter(0)\n"
        "  %t.1 = (f32[4]{0}) tuple(f32[4]{0} %x)\n"
        "  ROOT %w = (f32[4]{0}) while((f32[4]{0}) %t.1), condition=%c, body=%b, "
        "backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"8\\\"}}\"\n"
        "}\n";
    assert_count(said, true, 8);
}

static void adjacent_calls_are_separated_in_hlo(void **state)
{
    (void)state;
    static const char text[] = "HloModule jit_f\n"
                               "ENTRY main {\n"
                               "  a = f32[4]{0} parameter(0)\n"
                               "  b = f32[8]{0} parameter(1)\n"
                               "  x1 = f32[4]{0} sine(a), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  y1 = f32[8]{0} sine(b), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  x2 = f32[4]{0} add(x1, a), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  y2 = f32[8]{0} add(y1, b), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  x3 = f32[4]{0} sine(a), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  x4 = f32[4]{0} add(x3, a), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  s = f32[4]{0} slice(y2), slice={[0:4]}, metadata={op_name=\"jit(f)/slice\"}\n"
                               "  z = f32[4]{0} multiply(x2, s), metadata={op_name=\"jit(f)/mul\"}\n"
                               "  ROOT w = f32[4]{0} multiply(z, x4), metadata={op_name=\"jit(f)/mul\"}\n"
                               "}\n";
    subject s;
    open_subject(&s, text, true);
    assert_int_equal(s.finds.count, 2);
    assert_int_equal(s.finds.items[0].count, 2);
    assert_type(&s.finds.items[0].views[0], 0, "f32[4]{0}");
    assert_int_equal(s.finds.items[1].count, 1);
    assert_type(&s.finds.items[1].views[0], 0, "f32[8]{0}");
    close_subject(&s);
}

static void merged_work_still_shows_how_many_calls_there_were(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.sine %arg2 : tensor<4xf32> loc(\"jit(f)/" LABEL "/sin\")\n" // of both calls: was merged
        "  %1 = stablehlo.add %0, %arg0 : tensor<4xf32> loc(\"jit(f)/" LABEL "/add\")\n"
        "  %2 = stablehlo.add %0, %arg1 : tensor<4xf32> loc(\"jit(f)/" LABEL "/add\")\n"
        "  %3 = stablehlo.multiply %1, %2 : tensor<4xf32> loc(\"jit(f)/mul\")\n"
        "  return %3 : tensor<4xf32>\n"
        "}\n";
    assert_count(text, false, 2);
}

static void calls_that_feed_each_other_are_counted_by_their_work(void **state)
{
    (void)state;
    static const char text[] =
        "HloModule m\n"
        "ENTRY main {\n"
        "  a = f32[4,4]{1,0} parameter(0)\n"
        "  m = f32[4,4]{1,0} sine(a), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n" // of both calls: was merged
        "  d1 = f32[4,4]{1,0} dot(a, m), lhs_contracting_dims={1}, metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  r1 = f32[4]{0} exponential(d1), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  d2 = f32[4,4]{1,0} dot(r1, m), lhs_contracting_dims={1}, metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  ROOT r2 = f32[4]{0} exponential(d2), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "}\n";
    assert_count(text, true, 2);
}

// One with a mask, one without: their keys were cut, and only their products are the same.
static void calls_that_differ_in_what_is_no_product_are_counted_by_their_products(void **state)
{
    (void)state;
    static const char text[] =
        "HloModule m\n"
        "ENTRY main {\n"
        "  a = f32[4,4]{1,0} parameter(0)\n"
        "  d1 = f32[4,4]{1,0} dot(a, a), lhs_contracting_dims={1}, metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  m1 = f32[4,4]{1,0} divide(d1, a), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  r1 = f32[4,4]{1,0} exponential(m1), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  d2 = f32[4,4]{1,0} dot(r1, a), lhs_contracting_dims={1}, metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "  ROOT r2 = f32[4,4]{1,0} exponential(d2), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
        "}\n";
    assert_count(text, true, 2);
}

// What a gradient keeps of a call looks like its result, but for what it is made of.
static void a_product_that_a_gradient_keeps_is_no_call_of_its_own(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
        "  %0 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32> loc(\"jit(f)/" LABEL "/jvp()/mul\")\n"
        "  %1 = stablehlo.exponential %arg0 : tensor<4xf32> loc(\"jit(f)/" LABEL "/jvp()/exp\")\n"
        "  %2 = stablehlo.multiply %arg0, %1 : tensor<4xf32> loc(\"jit(f)/" LABEL "/jvp()/mul\")\n"
        "  return %0, %2 : tensor<4xf32>, tensor<4xf32>\n"
        "}\n";
    assert_count(text, false, 1);
}

// A call and the choice of its results are functions of one type, and no two calls; those of one name are.
static void calls_of_different_functions_are_not_equal(void **state)
{
    (void)state;
    static const char *const names[] = {"_where_11", "other_3.4"};
    for (int way = 0; way < 2; way++) {
        char text[2048];
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %%0 = call @other_9(%%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc(\"jit(f)/" LABEL "/jit\")\n"
            "  %%1 = call @\"%s\"(%%0) : (tensor<4xf32>) -> tensor<4xf32> loc(\"jit(f)/" LABEL "/jit\")\n"
            "  return %%1 : tensor<4xf32>\n}\n"
            "func.func private @other_9(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  return %%arg0 : tensor<4xf32>\n}\n"
            "func.func private @\"%s\"(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  return %%arg0 : tensor<4xf32>\n}\n",
            names[way], names[way]);
        assert_count(text, false, 1 + way);
    }
}

static void the_first_of_equal_calls_says_what_they_read(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%arg0: tensor<4xbf16>, %arg1: tensor<4xf16>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.convert %arg0 : (tensor<4xbf16>) -> tensor<4xf32> loc(\"jit(f)/" LABEL "/cvt\")\n"
        "  %1 = stablehlo.sine %0 : tensor<4xf32> loc(\"jit(f)/" LABEL "/sin\")\n"
        "  %2 = stablehlo.convert %arg1 : (tensor<4xf16>) -> tensor<4xf32> loc(\"jit(f)/" LABEL "/cvt\")\n"
        "  %3 = stablehlo.sine %2 : tensor<4xf32> loc(\"jit(f)/" LABEL "/sin\")\n"
        "  %4 = stablehlo.multiply %1, %3 : tensor<4xf32> loc(\"jit(f)/mul\")\n"
        "  return %4 : tensor<4xf32>\n"
        "}\n";
    subject s;
    open_subject(&s, text, false);
    assert_int_equal(s.finds.count, 1);
    assert_int_equal(s.finds.items[0].count, 2);
    assert_int_equal(s.finds.items[0].views[0].count, 1);
    assert_type(&s.finds.items[0].views[0], 0, "tensor<4xbf16>");
    close_subject(&s);
}

// A loop of unknown trips has no count, also where a loop around it runs no trip at all.
static void what_hangs_on_unknown_trips_is_unknown(void **state)
{
    (void)state;
    static const char form[] = "HloModule jit_f\n"
                               "inner {\n"
                               "  a = (f32[4]{0}) parameter(0)\n"
                               "  g = f32[4]{0} get-tuple-element(a), index=0\n"
                               "  n = f32[4]{0} negate(g), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n"
                               "  ROOT t = (f32[4]{0}) tuple(n)\n"
                               "}\n"
                               "c {\n"
                               "  a = (f32[4]{0}) parameter(0)\n"
                               "  ROOT p = pred[] constant(true)\n"
                               "}\n"
                               "outer {\n"
                               "  a = (f32[4]{0}) parameter(0)\n"
                               "  ROOT w = (f32[4]{0}) while(a), condition=c, body=inner%s\n"
                               "}\n"
                               "ENTRY m {\n"
                               "  x = f32[4]{0} parameter(0)\n"
                               "  t = (f32[4]{0}) tuple(x)\n"
                               "  ROOT w = (f32[4]{0}) while(t), condition=c, body=outer%s\n"
                               "}\n";
    static const struct {
        const char *inner, *outer;
        int64_t count;
    } cases[] = {{"3", "5", 15},  {"3", "0", 0},   {"0", "5", 0},   {"3", NULL, -1},
                 {NULL, "5", -1}, {NULL, "0", -1}, {"0", NULL, -1}, {NULL, NULL, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048], config[2][96];
        const char *const trips[] = {cases[i].inner, cases[i].outer};
        for (int k = 0; k < 2; k++)
            snprintf(
                config[k], sizeof config[k],
                trips[k] != NULL ? ", backend_config={\"known_trip_count\":{\"n\":\"%s\"}}" : "%s",
                trips[k] != NULL ? trips[k] : "");
        snprintf(text, sizeof text, form, config[0], config[1]);
        assert_count(text, true, cases[i].count);
    }
}

static void a_loops_trips_are_read_from_its_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int64_t trips;
    } cases[] = {
        {"", -1},
        {"{}", -1},
        {"{\"n\":\"8\"}", -1},
        {"{\"known_trip_count\":{\"n\":\"8\"}}", 8},
        {"{\"known_trip_count\":{\"n\":\"0\"},\"other\":\"5\"}", 0},
        {"\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"12\\\"}}\"", 12},
        {"{\"known_trip_count\":{},\"other\":\"5\"}", -1},
        {"{\"known_trip_count\":{\"n\":\"9223372036854775807\"}}", INT64_MAX},
        {"{\"known_trip_count\":{\"n\":\"9223372036854775808\"}}", -1},
        {"known_trip_count", -1},
        {"known_trip_count 7", 7},
        {"known_trip_coun", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (hone_hlo_trip_count(hone_view_of(cases[i].config)) != cases[i].trips) fail_msg("%s", cases[i].config);
}

// Without a key, the backward part of a gradient is part of a call of its operation, where there is one.
static void backward_parts_without_a_key_go_with_their_call(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        size_t finds;
    } cases[] = {
        {"jit(f)/jvp(ejkernel_ops#x", "jit(f)/transpose(jvp(ejkernel_ops#x", 1},
        {"jit(f)/transpose(jvp(ejkernel_ops#x", "jit(f)/jvp(ejkernel_ops#x", 1},
        {"jit(f)/jvp(ejkernel_ops#x", "jit(f)/transpose(jvp(ejkernel_ops#y", 2},
        {"jit(f)/transpose(jvp(ejkernel_ops#x", "jit(f)/transpose(jvp(ejkernel_ops#y", 2},
        {"jit(f)/jvp(ejkernel_ops#x", "jit(f)/transpose(jvp(" LABEL ")", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "HloModule jit_f\nENTRY main {\n"
            "  a = f32[4]{0} parameter(0)\n"
            "  b = f32[8]{0} parameter(1)\n"
            "  x = f32[4]{0} sine(a), metadata={op_name=\"%s\"}\n"
            "  y = f32[8]{0} cosine(b), metadata={op_name=\"%s\"}\n"
            "  ROOT t = (f32[4]{0}, f32[8]{0}) tuple(x, y)\n}\n",
            cases[i].first, cases[i].second);
        subject s;
        open_subject(&s, text, true);
        if (s.finds.count != cases[i].finds) fail_msg("%zu finds of:\n%s", s.finds.count, text);
        close_subject(&s);
    }
}

// What the scopes around a label say: JAX writes a transformation around the first scope that stands under it.
static void scopes_around_a_label_tell_batches_and_gradients(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        int repeat; // of the text before
        uint32_t vmaps;
        bool transposed;
    } cases[] = {
        {"jit(f)/", 1, 0, false},
        {"vmap(", 1, 1, false},
        {"vmap(vmap(jvp(", 1, 2, false},
        {"vmap(a)/vmap(", 1, 2, false},
        {"jit(f)/vmap()/while/body/", 1, 1, false},
        {"vmap(a)/transpose(b)/", 1, 1, true}, // also behind it, as JAX writes what checkpoint puts there
        {"jit(f)/transpose(jvp(jvp()))/checkpoint/", 1, 0, true},
        {"jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/", 1, 0, false}, // computed again
        {"jit(f)/mytranspose(b)/", 1, 0, false},
        {"transpose(jvp(", 1, 0, true},
        {"jit(f)/transpose(jvp(vmap(", 1, 1, true},
        {"avmap(vmapa(a/vmap(", 1, 1, false},
        {")))/vmap(", 1, 1, false},
        {"vmap(a)/", 70, 70, false},
        {"vmap(", 65, 65, false},
        {"transpose(b);vmap(", 1, 1, false},
        {"transpose(b;vmap(", 1, 1, false}, // the path of another operation stands in front
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048], path[1024] = "";
        for (int k = 0; k < cases[i].repeat; k++)
            strcat(path, cases[i].before);
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %%0 = stablehlo.sine %%arg0 : tensor<4xf32> loc(\"%s" LABEL "/sin\")\n"
            "  return %%0 : tensor<4xf32>\n}\n",
            path);
        subject s;
        open_subject(&s, text, false);
        assert_int_equal(s.finds.count, 1);
        const hone_found *found = &s.finds.items[0];
        if (found->vmaps != cases[i].vmaps || found->transposed != cases[i].transposed)
            fail_msg("%s: %u %d", cases[i].before, found->vmaps, found->transposed);
        close_subject(&s);
    }
}

// Paths within a function begin anew: what stands around its calls is said there. As JAX lowers the layers of a scan.
static void scopes_around_the_calls_of_a_function_are_those_of_its_operations(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *within; // paths of two calls, and within the function
        uint32_t vmaps;
        bool transposed;
        int64_t count;
    } cases[] = {
        {"jit(f)/while/body/closed_call", "jit(f)/closed_call", "", 0, false, 2},
        {"jit(f)/vmap()/while/body/closed_call", "jit(f)/vmap()/closed_call", "", 1, false, 2},
        {"jit(f)/vmap()/closed_call", "jit(f)/vmap()/closed_call", "vmap(a)/", 2, false, 2},
        {"jit(f)/jvp()/closed_call", "jit(f)/transpose(jvp())/closed_call", "", 0, false, 1},
        {"jit(f)/transpose(jvp())/closed_call", "jit(f)/jvp()/closed_call", "", 0, false, 1},
        {"jit(f)/transpose(jvp())/closed_call", "jit(f)/transpose(jvp())/closed_call", "", 0, true, 2},
        {"jit(f)/transpose(jvp())/closed_call", "jit(f)/transpose(jvp())/closed_call", "checkpoint/", 0, true, 2},
        {"jit(f)/transpose(jvp())/closed_call", "jit(f)/jvp()/closed_call", "checkpoint/rematted_computation/", 0,
         false, 2},
        {"jit(f)/transpose(jvp())/checkpoint/rematted_computation/closed_call", "jit(f)/jvp()/closed_call", "", 0,
         false, 2},
        {"jit(f)/jvp()/closed_call", "jit(f)/jvp()/closed_call", "transpose(a)/", 0, true, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %%0 = call @outer(%%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc(\"%s\")\n"
            "  %%1 = call @outer(%%0) : (tensor<4xf32>) -> tensor<4xf32> loc(\"%s\")\n"
            "  return %%1 : tensor<4xf32>\n}\n"
            "func.func private @outer(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %%0 = call @inner(%%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc(\"closed_call\")\n"
            "  return %%0 : tensor<4xf32>\n}\n"
            "func.func private @inner(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %%0 = stablehlo.sine %%arg0 : tensor<4xf32> loc(\"%s" LABEL "/sin\")\n"
            "  return %%0 : tensor<4xf32>\n}\n",
            cases[i].first, cases[i].second, cases[i].within);
        subject s;
        open_subject(&s, text, false);
        assert_int_equal(s.finds.count, 1);
        const hone_found *found = &s.finds.items[0];
        if (found->vmaps != cases[i].vmaps || found->transposed != cases[i].transposed ||
            found->count != cases[i].count)
            fail_msg("case %zu: %u %d %ld", i, found->vmaps, found->transposed, (long)found->count);
        close_subject(&s);
    }
}

// A path is read back from its label so far and no further, and so many labels of it.
static void a_path_is_read_as_far_as_any_program_needs(void **state)
{
    (void)state;
    enum { FAR = 4096, ROOM = 3 * FAR, MOST = 64 };
    static char path[ROOM], text[ROOM + 512];
    for (int way = 0; way < 4; way++) {
        if (way < 2) { // "vmap(" begins as far away as is read, or one byte further
            strcpy(path, "vmap(");
            memset(path + 5, 'a', (size_t)(FAR - 5 + way));
            path[FAR + way - 1] = '/';
            strcpy(path + FAR + way, LABEL "/sin");
        } else { // as many labels as are read, or one more
            path[0] = '\0';
            for (int i = 0; i < MOST + way - 2; i++)
                snprintf(path + strlen(path), 64, "ejkernel_ops#x%d@v0:0123456789abcdef/", i);
        }
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %%0 = stablehlo.sine %%arg0 : tensor<4xf32> loc(\"%s\")\n"
            "  return %%0 : tensor<4xf32>\n}\n",
            path);
        subject s;
        open_subject(&s, text, false);
        assert_int_equal(s.finds.count, way < 2 ? 1 : MOST);
        if (way < 2) assert_int_equal(s.finds.items[0].vmaps, way == 0);
        close_subject(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trips_are_counted_where_counter_and_bound_are_constants),
        cmocka_unit_test(loops_in_functions_in_loops_multiply),
        cmocka_unit_test(a_recursive_function_has_no_call_count),
        cmocka_unit_test(the_generic_form_is_read_too),
        cmocka_unit_test(operands_come_from_outside_and_constants_do_not_count),
        cmocka_unit_test(the_parameters_of_a_region_stand_before_its_brace),
        cmocka_unit_test(a_reduction_with_a_body_is_one_operation),
        cmocka_unit_test(loops_of_hlo_are_counted),
        cmocka_unit_test(adjacent_calls_are_separated_in_hlo),
        cmocka_unit_test(merged_work_still_shows_how_many_calls_there_were),
        cmocka_unit_test(calls_that_feed_each_other_are_counted_by_their_work),
        cmocka_unit_test(calls_that_differ_in_what_is_no_product_are_counted_by_their_products),
        cmocka_unit_test(a_product_that_a_gradient_keeps_is_no_call_of_its_own),
        cmocka_unit_test(calls_of_different_functions_are_not_equal),
        cmocka_unit_test(the_first_of_equal_calls_says_what_they_read),
        cmocka_unit_test(what_hangs_on_unknown_trips_is_unknown),
        cmocka_unit_test(a_loops_trips_are_read_from_its_configuration),
        cmocka_unit_test(backward_parts_without_a_key_go_with_their_call),
        cmocka_unit_test(scopes_around_a_label_tell_batches_and_gradients),
        cmocka_unit_test(scopes_around_the_calls_of_a_function_are_those_of_its_operations),
        cmocka_unit_test(a_path_is_read_as_far_as_any_program_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
