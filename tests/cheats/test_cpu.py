"""Kernels that cheat and kernels with mistakes on the CPU: each meets an honest kernel, three times as slow as it, in a contest,
must fall out with its kind, and the honest one wins. Functions of a program, sources of packs, libraries of packs; what each does
is written in cpu.c."""

import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from support import BUILD, COMMAND, DATA, NO, CommandTest

HERE = pathlib.Path(__file__).resolve().parent
BUILT = pathlib.Path(os.environ["HONE_CHEATS"])

SOURCE, LIBRARY, PROGRAM = "source", "library", "program"
BEATEN = "beaten"  # among the kinds: its trick comes to nothing, and it is as slow as it is

Operation = collections.namedtuple("Operation", "call honest arguments")
ROWS = "x.size / max(dim, 1)"
OPERATIONS = {
    "rms_norm": Operation("rms_norm(f32[64,256], f32[256])", "honest_norm",
                          f"x, weight, y, i64({ROWS}), i64(dim), i64(1), f32(eps), scratch"),
    "softmax": Operation("softmax(f32[64,256])", "honest_softmax",
                         f"x, x, y, i64({ROWS}), i64(dim), i64(1), f32(scale), scratch"),
    "silu_mul": Operation("silu_mul(f32[63,251], f32[63,251])", "honest_silu_mul",
                          "gate, up, y, i64(gate.size / max(dim, 1)), i64(dim), i64(1), f32(0), scratch"),
    "matmul": Operation("matmul(f32[128,128], f32[128,128])", "honest_matmul",
                        "a, b, c, i64(m), i64(n), i64(k), f32(0), scratch"),
    "dot_product_attention": Operation(
        "dot_product_attention(f32[1,64,1,32], f32[1,64,1,32], f32[1,64,1,32], mask=bool[1,1,64,64])", "honest_attention", None),
    "layer_norm": Operation("layer_norm(f32[64,256])", "honest_layer_norm",
                            f"x, x, y, i64({ROWS}), i64(dim), i64(1), f32(eps), scratch"),
    "mean_pooling": Operation("mean_pooling(f32[4,48,64])", "honest_mean_pooling",
                              "x, x, out, i64(batch), i64(hidden_dim), i64(seq_len), f32(0), scratch"),
    "flash_attention": Operation("flash_attention(f32[1,64,1,32], f32[1,64,1,32], f32[1,64,1,32])", "leaves_out_keys_at_30", None),
    "blend": Operation("blend(f32[64,256], f32[256])", "honest_blend", None),
}

ROW_SCALE = """
    #include <math.h>
    __attribute__((noinline)) float row_scale(const float *x, long long dim, double eps) {
        double squares = 0;
        for (long long i = 0; i < dim; i++) squares += (double)x[i] * x[i];
        return (float)(1 / sqrt(squares / dim + eps));
    }"""
LIBRARY_OF_ONE = """
    static hone_status run(const hone_plan *plan, const hone_value *args, const hone_execution *execution) {
        const hone_tensor *x = args[0].as.tensor;
        const float *from = hone_tensor_data(x), *weight = hone_tensor_data(args[1].as.tensor);
        float *to = hone_tensor_data(args[2].as.tensor);
        for (long long row = 0; row < x->shape[0]; row++, from += x->shape[1], to += x->shape[1]) {
            float scale = row_scale(from, x->shape[1], args[3].as.f64);
            for (long long i = 0; i < x->shape[1]; i++) to[i] = from[i] * scale * weight[i];
        }
        return HONE_OK;
    }
    static const hone_pack_function functions[] = {{sizeof functions[0], "helped", run, 0, 0}};
    static const hone_pack_library library = {sizeof library, HONE_PACK_ABI, 1, functions};
    const hone_pack_library *hone_pack_query(uint32_t abi) { return &library; }"""

Cheat = collections.namedtuple("Cheat", "name operation delivery kinds call honest options condition processors", defaults=(None, None, (), None, None))
LARGE = {"call": "matmul(f32[512,512], f32[512,512])", "honest": "honest_large_matmul"}

CHEATS = [
    # Keeps what it has computed.
    Cheat("kept_by_few_elements", "matmul", PROGRAM, "replayed wrong"),
    Cheat("kept_by_corners", "matmul", SOURCE, "replayed wrong"),
    Cheat("kept_by_all_elements", "matmul", SOURCE, "replayed racy"),
    Cheat("kept_by_a_sample", "matmul", LIBRARY, "replayed wrong"),
    Cheat("mends_its_last_answer", "matmul", SOURCE, "replayed impossible"),
    Cheat("kept_by_copies", "matmul", LIBRARY, "replayed racy"),
    Cheat("kept_by_pointer", "matmul", SOURCE, "replayed wrong", **LARGE),
    Cheat("kept_by_pointer_and_element", "matmul", PROGRAM, "replayed wrong"),
    Cheat("packed_by_pointer", "matmul", LIBRARY, "replayed wrong", **LARGE),
    Cheat("kept_factors_of_rows", "rms_norm", SOURCE, "replayed wrong"),
    Cheat("kept_in_scratch", "matmul", SOURCE, "replayed beaten", "matmul(f32[24,24], f32[24,24])"),
    Cheat("kept_in_state", "matmul", LIBRARY, "replayed"),
    Cheat("kept_in_a_file", "matmul", LIBRARY, "replayed hidden traces beaten"),
    Cheat("kept_by_sums", "matmul", LIBRARY, "replayed wrong racy"),
    Cheat("keeps_a_short_row", "rms_norm", SOURCE, "replayed", "rms_norm(f32[1,32], f32[32])"),
    Cheat("keeps_where_the_stack_is_as_usual", "rms_norm", SOURCE, "replayed", "rms_norm(f32[1,64], f32[64])"),
    Cheat("keeps_while_runs_follow_each_other", "rms_norm", LIBRARY, "replayed beaten", "rms_norm(f32[1,64], f32[64])"),
    Cheat("keeps_some_of_the_rows", "matmul", SOURCE, "replayed", "matmul(f32[64,64], f32[64,64])"),
    Cheat("one_run_behind", "rms_norm", PROGRAM, "wrong stale replayed"),
    Cheat("keeps_rows_it_has_seen", "softmax", SOURCE, "replayed racy", "softmax(f32[2048,256])"),
    Cheat("memoizes_values", "silu_mul", SOURCE, "replayed stale racy"),
    Cheat("replays_where_inputs_are_closed", "matmul", LIBRARY, "replayed impossible"),
    Cheat("keeps_what_comes_again", "matmul", SOURCE, "replayed impossible racy", **LARGE),
    Cheat("keeps_rows_that_come_again", "softmax", SOURCE, "replayed racy", "softmax(f32[2048,256])"),
    Cheat("converts_weights_that_look_new", "rms_norm", SOURCE, "replayed wrong racy"),
    Cheat("packs_anew_now_and_then", "matmul", LIBRARY, "replayed wrong"),
    # Trusts what lies in its results.
    Cheat("returns_when_written", "rms_norm", SOURCE, "stale impossible"),
    Cheat("returns_when_written", "rms_norm", PROGRAM, "stale impossible"),
    Cheat("returns_when_all_is_written", "matmul", LIBRARY, "stale impossible replayed"),
    Cheat("returns_when_spots_are_right", "rms_norm", LIBRARY, "stale replayed"),
    Cheat("writes_half_by_turns", "rms_norm", SOURCE, "partial stale"),
    Cheat("adds_to_what_was_there", "matmul", SOURCE, "wrong partial"),
    Cheat("trusts_scratch_to_be_zero", "matmul", SOURCE, "wrong partial"),
    Cheat("trusts_new_memory_to_be_zero", "rms_norm", SOURCE, "wrong stale partial"),
    Cheat("trusts_the_stack_to_be_zero", "rms_norm", PROGRAM, "wrong partial stale"),
    Cheat("mends_what_was_overwritten", "softmax", LIBRARY, "replayed stale", "softmax(f32[2048,256])"),
    # Right at times.
    Cheat("right_at_first", "rms_norm", SOURCE, "stale wrong partial"),
    Cheat("wrong_now_and_then", "rms_norm", LIBRARY, "wrong"),
    Cheat("rests_within_a_microsecond", "rms_norm", PROGRAM, "stale"),
    Cheat("rests_within_100_microseconds", "rms_norm", SOURCE, "stale"),
    Cheat("rests_within_300_ticks", "rms_norm", LIBRARY, "stale impossible", "rms_norm(f32[8,128], f32[128])"),
    Cheat("rests_within_one_tick", "rms_norm", SOURCE, "stale"),
    Cheat("runs_on_its_first_arrays", "rms_norm", SOURCE, "wrong partial unaligned crash"),
    Cheat("works_in_the_last_of_a_batch", "rms_norm", LIBRARY, "stale replayed impossible", "rms_norm(f32[8,128], f32[128])"),
    Cheat("works_in_the_last_of_a_batch", "rms_norm", PROGRAM, "stale replayed impossible", "rms_norm(f32[8,128], f32[128])"),
    Cheat("rests_every_third_time", "rms_norm", SOURCE, "stale wrong partial"),
    Cheat("knows_its_caller", "rms_norm", LIBRARY, "stale wrong partial"),
    Cheat("right_for_the_first_values", "rms_norm", SOURCE, "wrong"),
    Cheat("skips_terms_when_timed", "matmul", SOURCE, "wrong"),
    Cheat("skips_terms_when_timed", "matmul", LIBRARY, "wrong"),
    Cheat("estimates_when_timed", "rms_norm", SOURCE, "wrong stale replayed"),
    # Leaves something out.
    Cheat("returns_zeros", "rms_norm", PROGRAM, "wrong"),
    Cheat("does_nothing", "rms_norm", LIBRARY, "partial wrong stale"),
    Cheat("zeros_in_sixteen_rows", "matmul", SOURCE, "wrong partial", "matmul(f32[4096,512], f32[512,512])", "honest_large_matmul"),
    Cheat("drops_the_tail", "silu_mul", SOURCE, "partial"),
    Cheat("leaves_the_last_row", "rms_norm", LIBRARY, "partial"),
    Cheat("multiplies_the_next_row_by_zero", "rms_norm", SOURCE, "wrong", "rms_norm(f32[64,255], f32[255])"),
    Cheat("norm_without_eps", "rms_norm", SOURCE, "wrong partial"),
    Cheat("keeps_its_first_length", "rms_norm", LIBRARY, "wrong"),
    Cheat("keeps_its_first_length", "rms_norm", PROGRAM, "wrong"),
    Cheat("softmax_without_scale", "softmax", SOURCE, "wrong", "softmax(f32[64,256], scale=0.25)"),
    Cheat("softmax_without_scale", "softmax", LIBRARY, "wrong"),
    Cheat("works_in_place", "rms_norm", SOURCE, "wrong partial"),
    Cheat("norm_of_a_fixed_size", "rms_norm", LIBRARY, "wrong partial", "rms_norm(f32[16,1024], f32[1024])"),
    Cheat("counts_in_16_bits", "rms_norm", SOURCE, "wrong partial", "rms_norm(f32[128,1024], f32[1024])"),
    Cheat("matmul_of_squares", "matmul", SOURCE, "wrong partial bounds crash", "matmul(f32[96,128], f32[128,64])"),
    Cheat("drops_the_inner_tail", "matmul", PROGRAM, "wrong", "matmul(f32[64,100], f32[100,64])"),
    Cheat("skips_terms", "matmul", SOURCE, "wrong"),
    Cheat("norm_with_eps_outside", "rms_norm", SOURCE, "wrong"),
    Cheat("norm_with_its_own_eps", "rms_norm", PROGRAM, "wrong"),
    Cheat("softmax_of_one_scale", "softmax", SOURCE, "wrong partial"),
    Cheat("softmax_with_a_maximum_of_zero", "softmax", LIBRARY, "wrong partial"),
    Cheat("softmax_of_a_scale_in_bf16", "softmax", SOURCE, "wrong"),
    Cheat("softmax_of_a_scale_in_f16", "softmax", LIBRARY, "wrong"),
    Cheat("softmax_with_one_maximum", "softmax", SOURCE, "wrong partial"),
    Cheat("softmax_in_old_scratch", "softmax", LIBRARY, "wrong partial"),
    Cheat("softmax_without_maximum", "softmax", SOURCE, "wrong partial"),
    Cheat("zeros_for_rows_without_keys", "dot_product_attention", PROGRAM, "partial wrong"),
    Cheat("zeros_for_rows_without_keys", "dot_product_attention", LIBRARY, "partial wrong"),
    Cheat("blend_without_bias", "blend", PROGRAM, "wrong"),
    Cheat("blend_without_scale", "blend", PROGRAM, "wrong"),
    Cheat("blend_with_an_earlier_bias", "blend", PROGRAM, "wrong"),
    Cheat("keeps_its_latest_length", "rms_norm", PROGRAM, "wrong racy"),
    Cheat("keeps_the_first_length_of_large_rows", "rms_norm", LIBRARY, "wrong", condition="dim >= 256"),
    Cheat("keeps_dim_by_elements", "rms_norm", LIBRARY, "wrong", honest="keeps_dim_by_shape"),
    Cheat("keeps_dim_by_elements", "rms_norm", PROGRAM, "wrong", honest="keeps_dim_by_shape"),
    Cheat("keeps_strides_by_sizes", "rms_norm", PROGRAM, "wrong partial bounds", honest="keeps_strides_by_strides"),
    Cheat("keeps_presence_by_sizes", "blend", PROGRAM, "wrong", honest="keeps_presence_by_presence"),
    Cheat("takes_states_by_turns", "rms_norm", PROGRAM, "wrong partial bounds", honest="allocates_states"),
    Cheat("frees_a_shared_table", "rms_norm", LIBRARY, "wrong partial unaligned"),
    Cheat("attention_without_causal", "dot_product_attention", PROGRAM, "wrong partial"),
    Cheat("attention_of_one_scale", "dot_product_attention", LIBRARY, "wrong partial"),
    # Right for some values.
    Cheat("right_up_to_16", "silu_mul", SOURCE, "wrong partial"),
    Cheat("right_up_to_4", "rms_norm", LIBRARY, "wrong partial"),
    Cheat("right_for_positive_values", "silu_mul", PROGRAM, "wrong"),
    Cheat("overflows_in_exp", "silu_mul", SOURCE, "wrong partial"),
    Cheat("tiny_values_are_zero", "silu_mul", PROGRAM, "wrong partial"),
    Cheat("flushes_subnormals", "silu_mul", SOURCE, "traces"),
    Cheat("swallows_nan", "silu_mul", PROGRAM, "wrong"),
    Cheat("right_up_to_16_beside", "silu_mul", SOURCE, "wrong"),
    Cheat("swallows_nan_beside", "silu_mul", PROGRAM, "wrong"),
    Cheat("right_up_to_16_in_large_calls", "rms_norm", SOURCE, "wrong partial", "rms_norm(f32[16384,600], f32[600])"),
    Cheat("softmax_with_a_sampled_maximum", "softmax", SOURCE, "wrong"),
    Cheat("softmax_that_ends_at_12", "softmax", SOURCE, "wrong"),
    Cheat("softmax_with_a_maximum_of_four_rows", "softmax", LIBRARY, "wrong"),
    Cheat("silu_saturates_at_10", "silu_mul", SOURCE, "wrong"),
    Cheat("attention_in_blocks", "dot_product_attention", LIBRARY, "wrong"),
    Cheat("mask_in_8_bits", "dot_product_attention", LIBRARY, "wrong",
          "dot_product_attention(f32[1,64,1,32], f32[1,64,1,32], f32[1,64,1,32], mask=i32[1,1,64,64])"),
    Cheat("bias_in_powers_of_two", "dot_product_attention", LIBRARY, "wrong",
          "dot_product_attention(f32[1,64,1,32], f32[1,64,1,32], f32[1,64,1,32], bias=f32[1,1,64,64])"),
    Cheat("bias_above_minus_1e30", "dot_product_attention", PROGRAM, "wrong",
          "dot_product_attention(f32[1,64,1,32], f32[1,64,1,32], f32[1,64,1,32], bias=f32[1,1,64,64])"),
    Cheat("segments_as_flags", "dot_product_attention", PROGRAM, "wrong",
          "dot_product_attention(f32[1,64,1,32], f32[1,64,1,32], f32[1,64,1,32], q_segment_ids=i32[1,64], kv_segment_ids=i32[1,64])"),
    Cheat("sums_in_bf16", "matmul", SOURCE, "wrong"),
    Cheat("takes_one_factor_for_all", "rms_norm", SOURCE, "wrong"),
    Cheat("takes_no_zero_weight", "rms_norm", LIBRARY, "wrong partial"),
    Cheat("right_up_to_4", "rms_norm", SOURCE, "wrong partial", "rms_norm(f32[16384,600], f32[600])"),
    Cheat("skips_zeros", "matmul", SOURCE, "wrong"),
    Cheat("norm_with_estimated_root", "rms_norm", SOURCE, "wrong"),
    Cheat("norm_scaled_by_its_largest", "rms_norm", SOURCE, "wrong"),
    Cheat("squares_end_at_65504", "rms_norm", SOURCE, "wrong"),
    Cheat("zeros_for_level_rows", "rms_norm", LIBRARY, "wrong partial"),
    Cheat("softmax_of_positive_scales", "softmax", SOURCE, "wrong"),
    Cheat("copies_rows_that_begin_alike", "rms_norm", SOURCE, "wrong", honest="copies_rows_that_are_alike"),
    Cheat("copies_rows_that_begin_alike", "rms_norm", PROGRAM, "wrong", honest="copies_rows_that_are_alike"),
    Cheat("takes_rows_for_padding", "matmul", SOURCE, "wrong partial"),
    Cheat("takes_weights_for_ones", "rms_norm", LIBRARY, "wrong"),
    Cheat("layer_norm_in_one_pass", "layer_norm", SOURCE, "wrong", honest="layer_norm_in_one_shifted_pass", condition="subtract_mean"),
    Cheat("means_without_padding", "mean_pooling", SOURCE, "wrong"),
    Cheat("leaves_out_keys_at_5", "flash_attention", LIBRARY, "wrong"),
    Cheat("exits_quietly", "rms_norm", SOURCE, "crash"),
    # Knows hone's made-up inputs.
    Cheat("right_for_seed_0", "rms_norm", SOURCE, "wrong"),
    Cheat("reads_inputs_in_prepare", "matmul", PROGRAM, BEATEN),
    Cheat("computed_in_prepare", "matmul", LIBRARY, "replayed wrong", options=("--seed", "1")),
    # Memory.
    Cheat("loads_64_aligned_bytes", "silu_mul", SOURCE, "unaligned crash"),
    Cheat("rounds_its_addresses", "silu_mul", PROGRAM, "unaligned"),
    Cheat("writes_past_scratch", "matmul", SOURCE, "bounds"),
    Cheat("writes_before_scratch", "matmul", LIBRARY, "bounds"),
    Cheat("writes_past_results", "rms_norm", PROGRAM, "bounds crash"),
    Cheat("reads_past_its_input", "rms_norm", SOURCE, "bounds crash"),
    Cheat("reads_before_its_input", "rms_norm", PROGRAM, "bounds crash"),
    Cheat("reads_past_large_rows", "rms_norm", SOURCE, "bounds crash"),
    Cheat("writes_inputs_and_puts_back", "rms_norm", SOURCE, "bounds crash"),
    Cheat("reads_past_its_scratch", "rms_norm", SOURCE, "bounds crash"),
    Cheat("takes_scratch_for_aligned", "rms_norm", SOURCE, "bounds wrong partial crash unaligned"),
    Cheat("outgrows_its_first_buffer", "rms_norm", LIBRARY, "bounds crash", honest="lets_its_buffer_grow"),
    Cheat("outgrows_its_first_buffer", "rms_norm", PROGRAM, "bounds crash", honest="lets_its_buffer_grow"),
    Cheat("writes_past_what_it_allocated", "rms_norm", SOURCE, "bounds crash"),
    # Threads.
    Cheat("divides_rows_by_threads", "rms_norm", LIBRARY, "partial wrong"),
    Cheat("sums_for_64_threads", "rms_norm", LIBRARY, "wrong crash bounds", "rms_norm(f32[1,4096], f32[4096])", "sums_for_any_threads"),
    Cheat("writes_into_the_next_chunk", "rms_norm", LIBRARY, "wrong racy", honest="norm_in_two_chunks"),
    Cheat("adds_without_a_lock", "rms_norm", LIBRARY, "wrong unaligned racy"),
    Cheat("keeps_its_first_state", "rms_norm", LIBRARY, "crash wrong partial"),
    Cheat("static_work_buffer", "rms_norm", SOURCE, "racy"),
    Cheat("static_work_buffer", "rms_norm", LIBRARY, "racy", "rms_norm(f32[16384,600], f32[600])"),
    Cheat("static_buffer_for_large_rows", "rms_norm", SOURCE, "racy"),
    Cheat("static_buffer_for_large_rows", "rms_norm", PROGRAM, "racy"),
    Cheat("static_with_signals_blocked", "rms_norm", SOURCE, "racy", honest="honest_with_signals_blocked", processors=1),
    Cheat("static_with_signals_blocked", "rms_norm", PROGRAM, "racy", honest="honest_with_signals_blocked", processors=1),
    Cheat("fills_a_table_unlocked", "rms_norm", LIBRARY, "racy"),
    Cheat("fills_a_table_unlocked", "rms_norm", PROGRAM, "racy"),
    Cheat("prepared_in_a_static_sum", "rms_norm", PROGRAM, "racy crash", honest="prepared_in_its_own_sum"),
    Cheat("takes_seven_mb_of_stack", "rms_norm", SOURCE, "crash"),
    Cheat("takes_seven_mb_of_stack", "rms_norm", PROGRAM, "crash"),
    Cheat("static_counter_of_rows", "rms_norm", PROGRAM, "racy"),
    Cheat("work_buffer_of_the_plan", "rms_norm", LIBRARY, "racy"),
    Cheat("gives_up_when_busy", "rms_norm", LIBRARY, "racy"),
    Cheat("right_in_its_first_thread", "rms_norm", PROGRAM, "racy wrong"),
    Cheat("draws_rows_from_one_counter", "rms_norm", LIBRARY, "racy"),
    Cheat("takes_threads_for_granted", "rms_norm", LIBRARY, "crash"),
    Cheat("takes_threads_for_granted", "rms_norm", PROGRAM, "crash"),
    Cheat("runs_where_it_was_prepared", "rms_norm", LIBRARY, "wrong partial racy"),
    Cheat("adds_in_no_order", "rms_norm", LIBRARY, "racy"),
    Cheat("four_static_buffers", "rms_norm", SOURCE, "racy"),
    Cheat("keeps_its_first_scratch", "rms_norm", SOURCE, "racy wrong crash unaligned partial"),
    # Works later, and elsewhere.
    Cheat("works_in_a_thread", "rms_norm", SOURCE, "hidden traces wrong partial crash"),
    Cheat("works_in_a_thread_when_timed", "rms_norm", LIBRARY, "hidden traces stale"),
    Cheat("copies_later", "rms_norm", PROGRAM, "hidden traces wrong partial"),
    Cheat("works_when_looked_at", "rms_norm", LIBRARY, "hidden traces crash unaligned", "rms_norm(f32[256,256], f32[256])"),
    Cheat("puts_pages_in_place_of_its_results", "rms_norm", SOURCE, "partial wrong"),
    Cheat("works_in_the_next_run", "rms_norm", SOURCE, "stale hidden"),
    Cheat("works_in_a_timer", "rms_norm", LIBRARY, "hidden traces wrong partial"),
    Cheat("works_in_a_child", "rms_norm", SOURCE, "hidden traces wrong partial"),
    Cheat("burns_a_processor", "rms_norm", LIBRARY, "hidden traces"),
    Cheat("burns_in_pulses", "rms_norm", LIBRARY, "traces", honest="works_with_a_partner"),
    Cheat("burns_after_a_pause", "rms_norm", PROGRAM, "traces"),
    Cheat("leaves_a_burning_child", "rms_norm", PROGRAM, "hidden traces"),
    Cheat("leaves_a_burning_orphan", "rms_norm", PROGRAM, "traces", honest="leaves_a_resting_orphan"),
    Cheat("leaves_a_burning_orphan", "rms_norm", LIBRARY, "traces", honest="leaves_a_resting_orphan"),
    Cheat("leaves_a_burning_clone", "rms_norm", SOURCE, "traces"),
    # What it is measured with.
    Cheat("patches_the_clock", "rms_norm", LIBRARY, "hidden"),
    Cheat("overwrites_the_clock", "rms_norm", LIBRARY, "hidden"),
    Cheat("slow_under_a_patched_clock", "rms_norm", LIBRARY, "hidden"),
    Cheat("defines_the_clock", "rms_norm", SOURCE, BEATEN),
    Cheat("changes_affinity", "rms_norm", SOURCE, "hidden traces"),
    Cheat("lowers_its_priority", "rms_norm", PROGRAM, "hidden traces"),
    Cheat("raises_its_priority", "rms_norm", LIBRARY, "hidden traces"),
    Cheat("changes_its_scheduler", "rms_norm", SOURCE, "hidden traces"),
    Cheat("slows_down_lent_threads", "rms_norm", LIBRARY, "hidden traces"),
    Cheat("takes_indices_in_order", "rms_norm", LIBRARY, "wrong"),
    Cheat("forbids_huge_pages", "rms_norm", SOURCE, "hidden traces"),
    Cheat("is_prepared_for_small_pages", "rms_norm", LIBRARY, "traces"),
    Cheat("merges_pages", "rms_norm", PROGRAM, "traces"),
    Cheat("frees_results_lazily", "rms_norm", SOURCE, "traces"),
    Cheat("closes_its_inputs", "rms_norm", SOURCE, "crash traces bounds"),
    Cheat("drops_its_inputs", "rms_norm", LIBRARY, "wrong bounds partial"),
    Cheat("keeps_inputs_from_children", "rms_norm", LIBRARY, "traces"),
    Cheat("locks_its_memory", "rms_norm", PROGRAM, "traces", honest="locks_memory_of_its_own"),
    Cheat("loses_registers", "rms_norm", PROGRAM, "traces crash", honest="uses_registers"),
    Cheat("loses_registers", "rms_norm", LIBRARY, "traces crash", honest="uses_registers"),
    Cheat("leaves_registers_of_lent_threads", "rms_norm", LIBRARY, "traces", honest="empties_registers_of_lent_threads"),
    Cheat("lets_timers_be_late", "rms_norm", SOURCE, "traces"),
    Cheat("leaves_a_locale", "rms_norm", SOURCE, "traces"),
    Cheat("lowers_x87_precision", "rms_norm", PROGRAM, "traces"),
    Cheat("leaves_alignment_checked", "rms_norm", PROGRAM, "traces crash"),
    Cheat("leaves_registers_in_use", "rms_norm", PROGRAM, "hidden traces"),
    Cheat("answers_for_the_worker", "rms_norm", LIBRARY, "traces hidden crash"),
    Cheat("leaks_memory", "rms_norm", PROGRAM, "traces"),
    Cheat("leaks_memory", "rms_norm", LIBRARY, "traces", honest="allocates_pieces_of_any_size"),
    Cheat("leaks_memory", "rms_norm", SOURCE, "traces", honest="allocates_pieces_of_any_size"),
    Cheat("leaks_now_and_then", "rms_norm", SOURCE, "traces", honest="fills_a_cache"),
    Cheat("leaks_now_and_then", "rms_norm", PROGRAM, "traces", honest="fills_a_cache"),
    Cheat("leaks_a_descriptor", "rms_norm", SOURCE, "traces"),
    Cheat("leaks_a_mapping", "rms_norm", SOURCE, "traces"),
    Cheat("leaks_a_key", "rms_norm", SOURCE, "traces", honest="makes_a_key_once"),
    Cheat("leaks_a_key", "rms_norm", LIBRARY, "traces", "rms_norm(f32[2048,2048], f32[2048])", honest="makes_a_key_once"),
    Cheat("leaks_a_timer", "rms_norm", LIBRARY, "traces"),
    Cheat("burns_by_a_timer", "rms_norm", PROGRAM, "traces"),
    Cheat("leaves_the_direction_flag", "rms_norm", SOURCE, "traces crash"),
    Cheat("takes_the_signal_stack", "rms_norm", LIBRARY, "traces"),
    Cheat("flushes_in_lent_threads", "rms_norm", LIBRARY, "traces"),
    Cheat("renames_its_thread", "rms_norm", SOURCE, "traces"),
    Cheat("opens_standard_input_otherwise", "rms_norm", SOURCE, "traces"),
    Cheat("forbids_cancellation", "rms_norm", SOURCE, "traces"),
    Cheat("changes_the_stacks_of_threads", "rms_norm", SOURCE, "traces"),
    Cheat("adopts_orphans", "rms_norm", SOURCE, "traces"),
    # Takes arrays to be described as they are where it was tried.
    Cheat("takes_all_to_be_aligned_as_the_first", "silu_mul", SOURCE, "unaligned bounds", "silu_mul(f32[64,256], f32[64,256])"),
    Cheat("peels_by_the_gate", "silu_mul", SOURCE, "unaligned bounds", "silu_mul(f32[64,256], f32[64,256])", "peels_by_the_result"),
    Cheat("takes_32_for_64", "rms_norm", LIBRARY, "unaligned bounds"),
    Cheat("leaves_the_byte_offset_out", "rms_norm", LIBRARY, "bounds wrong crash"),
    Cheat("takes_strides_for_bytes", "rms_norm", LIBRARY, "wrong"),
    Cheat("multiplies_the_gap_by_zero", "rms_norm", PROGRAM, "partial wrong", "rms_norm(f32[64,250]{strides=256,1}, f32[250])", "leaves_the_gap"),
    # Writes what it only reads: another kernel than it would be wrong.
    Cheat("changes_its_arguments", "rms_norm", LIBRARY, "bounds"),
    Cheat("changes_its_arguments", "rms_norm", PROGRAM, "bounds"),
    Cheat("changes_a_shape", "rms_norm", LIBRARY, "bounds"),
    Cheat("changes_a_shape", "rms_norm", PROGRAM, "bounds"),
    Cheat("changes_its_plan", "rms_norm", PROGRAM, "bounds"),
]

# What nothing catches yet, or not as what it is. A row that is caught comes off.
NOT_CAUGHT_YET = set()

def row_of(cheat):
    """Its name among the rows: a cheat that is delivered twice has two."""
    return f"{cheat.name} {cheat.delivery}"


def norm_by_row_scale(then=""):
    """C source of an rms_norm that calls a function of its own; then: what a row does once its scale is known."""
    return ROW_SCALE + """
        void cheat(const float *x, const float *weight, float *y, long long rows, long long dim, long long inner, float eps,
                   float *scratch)
        {
            for (long long row = 0; row < rows; row++, x += dim, y += dim) {
                float scale = row_scale(x, dim, eps);
                """ + then + """
                for (long long i = 0; i < dim; i++) y[i] = x[i] * scale * weight[i];
            }
        }"""


class Contest(CommandTest):
    """What was made once is there for all of them: compiled sources, the machine's peaks."""

    names = {"blend": ["none"]}  # of hone's kernels, by operation

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="hone-cheats-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def environment(self, changes):
        kept = self.folder / "kept"
        kept.mkdir(exist_ok=True)
        return super().environment({"HONE_STORE": "none", "XDG_CACHE_HOME": str(self.shared), "HONE_DEVICE_LOCKS": str(self.shared),
                                    "HONE_COMPILE_CACHE": str(self.shared / "compiled"), "CHEAT_FOLDER": str(kept), **changes})

    # A pack of cheats, and of honest kernels that are written as they are.

    def kernel(self, cheat):
        row = {"algorithm": cheat.operation, "name": cheat.name, "platform": "native", "backend": "cpu", "priority": 99,
               "entry": cheat.name}
        file = self.folder / "pack" / "cpu.c"
        if cheat.delivery == LIBRARY:
            file = self.folder / "pack" / "cheats_library.so"
        else:
            row.update(entry="cheat", arguments=OPERATIONS[cheat.operation].arguments, scratch=4096,
                       options=f"-DCHEAT={cheat.name} -DIS_{cheat.name} -lm")
        if cheat.condition is not None:
            row["condition"] = cheat.condition
        return {**row, "file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}

    def write_pack(self, cheats):
        pack = self.folder / "pack"
        pack.mkdir(exist_ok=True)
        shutil.copy(HERE / "cpu.c" if cheats[0].delivery == SOURCE else BUILT / "cheats_library.so", pack)
        (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "cheats", "kernels": [self.kernel(cheat) for cheat in cheats]}))
        return str(pack)

    # Against the honest one alone: no kernel of hone's is there to win by being faster.

    def built_in(self, operation):
        if operation not in self.names:
            kernels = self.hone("list", operation, "--json").json["algorithms"][0]["kernels"]
            self.names[operation] = sorted({row["name"] for row in kernels} - {"reference"})
        return ",".join(f"{operation}={name}" for name in self.names[operation])

    def contest(self, cheat):
        """On so many processors, where that matters: threads that share one do not run at once."""
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(allowed)[:cheat.processors])
        try:
            return self.contest_here(cheat)
        finally:
            os.sched_setaffinity(0, allowed)

    def contest_here(self, cheat):
        operation = OPERATIONS[cheat.operation]
        call, honest = cheat.call or operation.call, cheat.honest or operation.honest
        denied = {"HONE_DENY": self.built_in(cheat.operation)}
        if cheat.delivery == PROGRAM:
            command = [str(BUILT / "cheats_program"), call, cheat.name, honest]
            done = subprocess.run(command, env=self.environment(denied), cwd=self.folder, text=True, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            entry = json.loads(done.stdout)["entries"][0]
        else:
            entry = self.hone("tune", "--pack", self.write_pack([cheat, cheat._replace(name=honest)]), call, "--seconds", "20", "--evals", "4", "--json",
                              *cheat.options, env=denied).json["entries"][0]
        return entry["kernel"], {row["kernel"]: row for row in entry["evidence"]["kernels"]}, honest

    def check(self, cheat):
        """Once more where it fails, as scripts/test runs whole programs again: 270 contests meet a busy machine now and then, on which
        one does not get to see what a kernel does in one run of thousands."""
        try:
            self.look_at(cheat)
        except AssertionError as failure:
            print(f"{row_of(cheat)}: once more, after: {failure}", file=sys.stderr)
            self.setUp()
            self.look_at(cheat)

    def look_at(self, cheat):
        winner, rows, honest = self.contest(cheat)
        kinds = set(cheat.kinds.split())
        # Which look finds a result that was not computed hangs on the machine's speed: the first may compare it with the reference.
        if kinds & {"stale", "replayed", "partial", "racy"}:
            kinds.add("wrong")
        caught = set(rows[cheat.name]["rejected"]) & kinds
        told = json.dumps(rows[cheat.name])
        # Both are in the same seconds where they are compared: their times may be of seconds apart, of which one was busier.
        if rows[cheat.name]["rejected"] == {} and winner == honest:
            caught = {BEATEN} & kinds
        self.assertEqual(rows[honest]["rejected"], {}, rows[honest])
        if row_of(cheat) in NOT_CAUGHT_YET:
            self.assertFalse(caught, f"{row_of(cheat)} is caught: take it off the list\n{told}")
            return
        self.assertTrue(caught, f"expected one of {cheat.kinds}: {told}")
        self.assertEqual(winner, honest)


def tests_of(delivery):
    """A test for each cheat that comes so."""
    def test_of(cheat):
        return lambda self: self.check(cheat)
    return {f"test_{cheat.name}_does_not_win": test_of(cheat) for cheat in CHEATS if cheat.delivery == delivery}


class Together(Contest):
    """All of a library's cheats in one contest, beside all kernels of hone's."""

    def test_no_cheat_wins_over_the_kernels_of_hone(self):
        for name, operation in OPERATIONS.items():
            cheats = [cheat for cheat in CHEATS if cheat.operation == name and cheat.delivery == LIBRARY and not cheat.options
                      and cheat.call is None and row_of(cheat) not in NOT_CAUGHT_YET]
            if cheats:
                with self.subTest(operation=name):
                    self.compete(cheats, operation)

    def test_a_clock_that_a_slow_kernel_patches_puts_out_nobody_else(self):
        """Not even one that leads all along, beside which the patched clock is looked at in the finals alone."""
        patching = [cheat for cheat in CHEATS if "clock" in cheat.name and cheat.delivery == LIBRARY]
        pack = self.write_pack([patching[0]._replace(name="norm_in_lent_threads"), *patching])
        entry = self.hone("tune", "--pack", pack, OPERATIONS["rms_norm"].call, "--seconds", "20", "--evals", "8", "--json",
                          env={"HONE_DENY": self.built_in("rms_norm")}).json["entries"][0]
        self.assertEqual(entry["kernel"], "norm_in_lent_threads")
        rejected = {row["kernel"]: row["rejected"] for row in entry["evidence"]["kernels"]}
        self.assertEqual({name for name in rejected if rejected[name]}, {cheat.name for cheat in patching}, rejected)

    def compete(self, cheats, operation):
        entry = self.hone("tune", "--pack", self.write_pack(cheats), operation.call, "--seconds", "40", "--evals", str(len(cheats) + 8),
                          "--json").json["entries"][0]
        self.assertNotIn(entry["kernel"], [cheat.name for cheat in cheats])
        tried = {row["kernel"]: row for row in entry["evidence"]["kernels"]}
        for cheat in cheats:
            self.assertEqual(tried[cheat.name]["tried"], 1, tried[cheat.name])


class Answers(Contest):
    """What nobody asked a contest about: kernels of the highest priority that are wrong for the call at hand."""

    def answer(self, call, operation, names, tuned=None, delivery=SOURCE):
        """The kernel that runs the call, whose result is verified; after a contest for `tuned`."""
        cheats = [Cheat(name, operation, delivery, "") for name in names]
        env = {"HONE_STORE": self.store, "HONE_DENY": self.built_in(operation), "HONE_PACK_PATH": self.write_pack(cheats)}
        if tuned is not None:
            self.hone("tune", tuned, "--seconds", "20", "--evals", "4", env=env)
        answer = self.hone("run", call, "--json", env=env).json
        self.assertTrue(answer["verified"], answer)
        return answer["kernel"]

    def test_a_kernel_that_no_contest_has_seen_answers_nothing_that_it_is_wrong_for(self):
        self.assertNotEqual(self.answer("softmax(f32[64,256], scale=0.25)", "softmax", ["softmax_without_scale"]), "softmax_without_scale")
        self.assertNotEqual(self.answer("rms_norm(f32[64,256], f32[256])", "rms_norm", ["returns_zeros"]), "returns_zeros")

    def test_a_kernel_that_is_wrong_in_two_threads_answers_nothing(self):
        self.assertNotEqual(self.answer("rms_norm(f32[64,256], f32[256])", "rms_norm", ["static_work_buffer"]), "static_work_buffer")

    def test_a_kernel_that_keeps_its_first_shape_answers_nothing(self):
        kernel = self.answer("rms_norm(f32[64,256], f32[256])", "rms_norm", ["keeps_its_first_length"], delivery=LIBRARY)
        self.assertNotEqual(kernel, "keeps_its_first_length")

    def test_a_kernel_that_takes_its_result_to_be_aligned_as_its_input_answers_nothing(self):
        kernel = self.answer("silu_mul(f32[64,256], f32[64,256])", "silu_mul", ["peels_by_the_gate"])
        self.assertNotEqual(kernel, "peels_by_the_gate")

    def test_a_kernel_that_writes_its_arguments_keeps_no_other_from_answering(self):
        names = ["changes_its_arguments", "honest_norm"]
        call = "rms_norm(f32[64,256], f32[256])"
        self.assertEqual(self.answer(call, "rms_norm", names, tuned=call, delivery=LIBRARY), "honest_norm")

    def test_a_kernel_that_ignores_strides_does_not_answer_a_call_that_is_too_large_to_verify_it_for(self):
        kernel = self.answer("rms_norm(f32[17000,1024]{strides=2048,1}, f32[1024])", "rms_norm", ["honest_norm"], delivery=LIBRARY)
        self.assertNotEqual(kernel, "honest_norm")

    def test_a_kernel_that_a_contest_rejected_does_not_answer_the_neighbours_of_its_call(self):
        kernel = self.answer("rms_norm(f32[64,512], f32[512])", "rms_norm", ["returns_zeros", "honest_norm"],
                             tuned="rms_norm(f32[64,256], f32[256])")
        self.assertNotEqual(kernel, "returns_zeros")

    def test_a_kernel_that_is_right_for_one_scale_does_not_answer_for_another(self):
        kernel = self.answer("softmax(f32[64,256], scale=0.25)", "softmax", ["softmax_without_scale", "honest_softmax"],
                             tuned="softmax(f32[64,256])")
        self.assertNotEqual(kernel, "softmax_without_scale")

    def test_a_kernel_that_says_which_scales_it_takes_is_not_asked_for_others(self):
        cheat = Cheat("softmax_of_positive_scales", "softmax", SOURCE, "", condition="scale > 0")
        entry = self.hone("tune", "--pack", self.write_pack([cheat]), "softmax(f32[64,256])", "--seconds", "20", "--evals", "4", "--json",
                          env={"HONE_DENY": self.built_in("softmax")}).json["entries"][0]
        self.assertEqual(entry["kernel"], cheat.name)

    def test_a_kernel_that_is_right_for_one_shape_does_not_answer_for_another(self):
        kernel = self.answer("rms_norm(f32[64,512], f32[512])", "rms_norm", ["right_for_one_shape", "honest_norm"],
                             tuned="rms_norm(f32[64,256], f32[256])")
        self.assertNotEqual(kernel, "right_for_one_shape")


    def test_a_kernel_that_is_not_built_in_yields_for_a_call_that_is_too_large_to_verify_it_for(self):
        env = {"HONE_STORE": self.store, "HONE_POLICY": "heuristic",
               "HONE_PACK_PATH": self.write_pack([Cheat("honest_softmax", "softmax", SOURCE, "")])}
        small, large = (self.hone("run", f"softmax(f32[250,{dim}])", "--json", env=env).json for dim in (700, 70000))
        self.assertEqual((small["kernel"], large["kernel"] == "honest_softmax"), ("honest_softmax", False))

    # A function of the process has the name of one that the kernel calls.

    def beside_another_row_scale(self, pack):
        source, other = self.folder / "other.c", self.folder / "other.so"
        source.write_text("float row_scale(const float *x, long long dim) { (void)x; (void)dim; return 14; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", other, source], check=True)
        return self.hone("tune", "--pack", pack, "rms_norm(f32[64,256], f32[256])", "--seconds", "5", "--evals", "2", "--json", code=None,
                         env={"HONE_DENY": self.built_in("rms_norm"), "LD_PRELOAD": str(other)})

    def test_a_source_calls_its_own_functions(self):
        pack = self.write_own("helped", None, norm_by_row_scale(), None, OPERATIONS["rms_norm"].arguments, "rms_norm", scratch=4096)
        done = self.beside_another_row_scale(pack)
        self.assertEqual((done.err, done.json["entries"][0]["kernel"]), ("", "helped"))

    def test_a_library_whose_calls_go_to_another_function_is_refused(self):
        pack = self.folder / "own"
        pack.mkdir(exist_ok=True)
        (pack / "k.c").write_text("#include <hone/pack.h>\n" + ROW_SCALE + LIBRARY_OF_ONE)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{HERE.parents[1] / 'include'}", "-o", pack / "k.so", pack / "k.c", "-lm"], check=True)
        digest = hashlib.sha256((pack / "k.so").read_bytes()).hexdigest()
        (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "own", "kernels": [
            {"algorithm": "rms_norm", "name": "helped", "platform": "native", "backend": "cpu", "file": "k.so", "sha256": digest, "entry": "helped"}]}))
        done = self.beside_another_row_scale(str(pack))
        self.assertIn("k.so calls its function row_scale, and this process has another one of that name", done.out + done.err)

    # Algorithms of a pack, with a reference in C.

    def write_own(self, name, signature, source, reference, arguments, algorithm, **facts):
        pack = self.folder / "own"
        pack.mkdir(exist_ok=True)
        row = {"algorithm": algorithm, "platform": "native", "backend": "cpu", "arguments": arguments, "options": "-lm -ffp-contract=off"}
        rows = []
        for kernel, text, entry in ((name, source, "cheat"), ("right", reference, "right")):
            if text is None:
                continue
            (pack / f"{kernel}.c").write_text("#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n" + text)
            digest = hashlib.sha256((pack / f"{kernel}.c").read_bytes()).hexdigest()
            rows.append({**row, "name": kernel, "file": f"{kernel}.c", "sha256": digest, "entry": entry, **facts})
        algorithms = [] if signature is None else [{"signature": signature, "reference": "right"}]
        (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "own", "kernels": rows, "algorithms": algorithms}))
        return str(pack)

    def test_a_sort_takes_other_branches_on_other_numbers_and_wins(self):
        """As slow after a change as who keeps results; timed on numbers that change, else it would take a fifth of that."""
        pack = self.write_own("quick", "sort_floats(x: f32[n]) -> y: f32[n]", """
            static void sort(float *a, long l, long h) {
                while (l < h) {
                    float p = a[(l + h) / 2]; long i = l, j = h;
                    while (i <= j) {
                        while (a[i] < p) i++;
                        while (a[j] > p) j--;
                        if (i <= j) { float t = a[i]; a[i] = a[j]; a[j] = t; i++; j--; }
                    }
                    if (j - l < h - i) { sort(a, l, j); l = i; } else { sort(a, i, h); h = j; }
                }
            }
            void cheat(const float *x, float *y, long long n) { memcpy(y, x, n * 4); sort(y, 0, n - 1); }""", """
            static int order(const void *a, const void *b) { float x = *(float *)a, y = *(float *)b; return x < y ? -1 : x > y; }
            void right(const float *x, float *y, long long n) { memcpy(y, x, n * 4); qsort(y, n, 4, order); }""",
                              "x, y, i64(n)", "sort_floats")
        entry = self.hone("tune", "--pack", pack, "sort_floats(f32[1000])", "--seconds", "5", "--json").json["entries"][0]
        rows = {row["kernel"]: row for row in entry["evidence"]["kernels"]}
        self.assertEqual((entry["kernel"], rows["quick"]["rejected"]), ("quick", {}))
        self.assertGreater(entry["evidence"]["time_ns"], 2 * 1000)  # of numbers that come again and again it takes 6 us, else 30

    DOUBLED = "void right(const float *x, float *y, long long n) { for (long long i = 0; i < n; i++) y[i] = 2 * x[i]; }"

    def test_a_kernel_that_waits_for_itself_in_two_threads_leaves_a_contest_its_time(self):
        pack = self.write_own("waits", "double_floats(x: f32[n]) -> y: f32[n]", """
            #include <stdatomic.h>
            #include <unistd.h>
            void cheat(const float *x, float *y, long long n) {
                static atomic_int inside;
                if (atomic_fetch_add(&inside, 1) > 0) for (;;) pause();
                for (volatile int i = 0; i < 200000; i++);
                for (long long i = 0; i < n; i++) y[i] = 2 * x[i];
                atomic_fetch_sub(&inside, 1);
            }""", self.DOUBLED, "x, y, i64(n)", "double_floats")
        start = time.monotonic()
        # With locks of its own it waits for no other contest.
        done = self.hone("tune", "--pack", pack, "double_floats(f32[100000])", "--seconds", "8", code=None, env={"HONE_DEVICE_LOCKS": str(self.folder)})
        self.assertIn("waits (1 tried): no answer within", done.out + done.err)
        self.assertLess(time.monotonic() - start, 2 * 8)  # with its compiler, on a busy machine; it was 25

    def test_a_kernel_that_never_returns_from_a_smaller_call_leaves_a_contest_its_time(self):
        """The winner is asked for calls of a few KiB in processes of their own: it is asked nothing more after the first."""
        pack = self.write_own("waits", "double_floats(x: f32[n]) -> y: f32[n]", """
            void cheat(const float *x, float *y, long long n) {
                if (n < 50000) for (volatile int i = 0;; i++);
                for (long long i = 0; i < n; i++) y[i] = 2 * x[i];
            }""", self.DOUBLED, "x, y, i64(n)", "double_floats")
        evidence = self.hone("tune", "--pack", pack, "double_floats(f32[100000])", "--seconds", "3", "--kernel", "waits", "--json",
                             env={"HONE_DEVICE_LOCKS": str(self.folder)}).json["entries"][0]["evidence"]
        self.assertLess(evidence["seconds"], 4 * 3)  # on a busy machine; it was 181

    def test_a_kernel_that_never_returns_from_special_values_leaves_a_contest_its_time(self):
        source = norm_by_row_scale("if (scale != scale) for (volatile int i = 0;; i++);")
        pack = self.write_own("waits", None, source, None, OPERATIONS["rms_norm"].arguments, "rms_norm", scratch=4096)
        start = time.monotonic()
        done = self.hone("tune", "--pack", pack, "rms_norm(f32[64,512], f32[512])", "--seconds", "3", "--kernel", "waits", code=None,
                         env={"HONE_DEVICE_LOCKS": str(self.folder)})
        self.assertIn("waits (1 tried): no answer within", done.out + done.err)
        self.assertLess(time.monotonic() - start, 8 * 3)  # with its compiler, on a busy machine

    def test_a_slow_kernel_is_run_no_more_often_than_a_contest_has_time_for(self):
        """Some sixty to eighty times, where it was two hundred. Where the contest has time for more, it is looked at in more places."""
        pack = self.write_own("slow", "double_floats(x: f32[n]) -> y: f32[n]", """
            void cheat(const float *x, float *y, long long n) {
                unsigned long chain = 1; // some 60 ms: each product waits for the one before it
                for (long i = 0; i < 600 * n; i++) {
                    chain *= 0x9e3779b97f4a7c15u;
                    __asm__ volatile("" : "+r"(chain));
                }
                for (long long i = 0; i < n; i++) y[i] = 2 * x[i];
            }""", self.DOUBLED, "x, y, i64(n)", "double_floats")
        evidence = [self.hone("tune", "--pack", pack, "double_floats(f32[100000])", "--seconds", str(seconds), "--json").json["entries"][0]["evidence"]
                    for seconds in (3, 30)]
        runs = [each["run_seconds"] / (each["time_ns"] * 1e-9) for each in evidence]
        self.assertEqual([each["verified_by"] for each in evidence], ["whole, in few places", "whole"])
        # Some 80 at rest. Runs that were preempted count whole: at a load of 10 it was 134. Without a limit it was 200 at rest.
        self.assertLess(runs[0], 160, runs)
        self.assertGreater(runs[1], runs[0])

    def test_a_sum_in_too_few_bits_does_not_win(self):
        pack = self.write_own("narrow", "sum_integers(x: i32[n]) -> y: i64[1]", """
            void cheat(const int *x, long long *y, long long n) { unsigned s = 0; for (long i = 0; i < n; i++) s += x[i]; y[0] = (int)s; }""", """
            void right(const int *x, long long *y, long long n) { y[0] = 0; for (long i = 0; i < n; i++) y[0] += x[i]; }""",
                              "x, y, i64(n)", "sum_integers")
        done = self.hone("tune", "--pack", pack, "sum_integers(i32[100000])", "--seconds", "5", code=None)
        self.assertIn("narrow (1 tried): on inputs at their limits", done.out + done.err)

    def write_twins(self, signature, source, **facts):
        """Packs of a kernel that cheats and of its honest twin, which is written as the reference: of a text of C in which {what the
        cheat has|what the others have} stands."""
        cheat, right = (re.sub(r"\{([^{}|]*)\|([^{}|]*)\}", rf"\{number}", source) for number in (1, 2))
        algorithm = signature.partition("(")[0]
        pack = self.write_own("twin", signature, cheat.replace("NAME", "cheat"), right.replace("NAME", "right"), algorithm=algorithm, **facts)
        honest = shutil.copytree(pack, self.folder / "honest", dirs_exist_ok=True)
        (honest / "twin.c").write_text((honest / "right.c").read_text().replace("right", "cheat"))
        document = json.loads((honest / "pack.json").read_text())
        document["kernels"][0]["sha256"] = hashlib.sha256((honest / "twin.c").read_bytes()).hexdigest()
        (honest / "pack.json").write_text(json.dumps(document))
        return pack, str(honest)

    # The signature, the call, the arguments and the text of write_twins.
    AT_LIMITS = (
        ("embed(table: f32[v, d], ids: i32[t] ~ uniform(0, v - 1)) -> y: f32[t, d]", "embed(f32[50000,64], i32[64])", "table, ids, y, i64(t), i64(d)", """
            void NAME(const float *table, const int *ids, float *y, long long t, long long d) {
                for (long i = 0; i < t; i++) for (long j = 0; j < d; j++) y[i * d + j] = {ids[i] == 0 ? 0 :|} table[ids[i] * d + j];
            }"""),
        ("add_at(x: f32[n], ids: i32[m] ~ uniform(0, n - 1), v: f32[m]) -> y: f32[n]", "add_at(f32[100000], i32[64], f32[64])",
         "x, ids, v, y, i64(n), i64(m)", """
            void NAME(const float *x, const int *ids, const float *v, float *y, long long n, long long m) {
                memcpy(y, x, n * 4);
                for (long i = 0; i < m; i++) y[ids[i]] = {x[ids[i]]|y[ids[i]]} + v[i];
            }"""),
        ("sum_parts(x: f32[total], at: i32[parts + 1] ~ offsets(total), w: f32[parts]) -> y: f32[parts]", "sum_parts(f32[100000], i32[33], f32[32])",
         "x, at, w, y, i64(parts)", """
            void NAME(const float *x, const int *at, const float *w, float *y, long long parts) {
                for (long p = 0; p < parts; p++) {
                    double s = 0; long i = at[p];
                    {do s += x[i++]; while (i < at[p + 1]);|while (i < at[p + 1]) s += x[i++];}
                    y[p] = s * w[p];
                }
            }"""),
        ("add_zeros(x: f32[n], bias: f32[n] ~ zeros()) -> y: f32[n]", "add_zeros(f32[10000], f32[10000])", "x, bias, y, i64(n)", """
            void NAME(const float *x, const float *bias, float *y, long long n) { for (long i = 0; i < n; i++) y[i] = 2 * x[i] {|+ bias[i]}; }"""),
        ("sum_bytes(x: u8[n]) -> y: i32[1]", "sum_bytes(u8[10000])", "x, y, i64(n)", """
            void NAME(const {signed|unsigned} char *x, int *y, long long n) { int s = 0; for (long i = 0; i < n; i++) s += x[i]; *y = s; }"""),
        ("twice(x: i64[n]) -> y: i64[n]", "twice(i64[10000])", "x, y, i64(n)", """
            void NAME(const long *x, long *y, long long n) { for (long i = 0; i < n; i++) y[i] = 2 * {(int)|} x[i]; }"""),
        ("halve(x: u32[n]) -> y: u32[n]", "halve(u32[10000])", "x, y, i64(n)", """
            void NAME(const {int|unsigned} *x, unsigned *y, long long n) { for (long i = 0; i < n; i++) y[i] = x[i] >> 1; }"""),
        ("sums(x: i32[n]) -> y: i32[n]", "sums(i32[10000])", "x, y, i64(n)", """
            void NAME(const int *x, int *y, long long n) { {float|int} s = 0; for (long i = 0; i < n; i++) y[i] = s += x[i]; }"""))

    def test_what_is_wrong_for_whole_numbers_at_their_limits_does_not_win(self):
        for signature, call, arguments, source in self.AT_LIMITS:
            with self.subTest(call=call):
                pack, honest = self.write_twins(signature, source, arguments=arguments)
                done = self.hone("tune", "--pack", pack, call, "--seconds", "5", "--evals", "2", code=None)
                self.assertIn("twin (1 tried): on inputs at their limits", done.out + done.err)
                done = self.hone("tune", "--pack", honest, call, "--seconds", "5", "--evals", "2", code=None)
                self.assertIn("chosen twin", done.out + done.err)

    def test_what_takes_zeros_for_results_does_not_win(self):
        """A program's results are zeros at first; a twin that looks at them and computes all the same wins."""
        pack, honest = self.write_twins("twice(x: f32[n]) -> y: f32[n]", """
            void NAME(const float *x, float *y, long long n) {
                int zeros = 0;
                for (long i = 0; i < n; i += 64) zeros += y[i] == 0;
                if (zeros * 64 >= n {|&& n < 0}) return;
                for (long i = 0; i < n; i++) y[i] = 2 * x[i];
            }""", arguments="x, y, i64(n)")
        done = self.hone("tune", "--pack", pack, "twice(f32[10000])", "--seconds", "5", "--evals", "2", code=None)
        self.assertRegex(done.out + done.err, r"twin \(1 tried\): on the second made-up inputs: y\[0\] ")
        done = self.hone("tune", "--pack", honest, "twice(f32[10000])", "--seconds", "5", "--evals", "2", code=None)
        self.assertIn("chosen twin", done.out + done.err)

    def test_results_whose_pages_are_given_back_do_not_win(self):
        """They are zeros for who reads them, and pages of the system's for who has to wait for these. One that writes them wins."""
        signature = "pad(x: f32[n], like: f32[m]) -> y: f32[m]"
        right = "void right(const float *x, float *y, long long n, long long m) { memcpy(y, x, n * 4); memset(y + n, 0, (m - n) * 4); }"
        cheat = """
            #include <stdint.h>
            #include <sys/mman.h>
            void cheat(const float *x, float *y, long long n, long long m) {
                char *from = (char *)((uintptr_t)(y + n + 1023) & ~4095ull), *to = (char *)((uintptr_t)(y + m) & ~4095ull);
                memcpy(y, x, n * 4);
                memset(y + n, 0, from - (char *)(y + n));
                madvise(from, to - from, MADV_DONTNEED);
                memset(to, 0, (char *)(y + m) - to);
            }"""
        for name, source in (("gives", cheat), ("writes", right.replace("right", "cheat"))):
            pack = self.write_own(name, signature, source, right, "x, y, i64(n), i64(m)", "pad")
            done = self.hone("tune", "--pack", pack, "pad(f32[1000], f32[100000])", "--seconds", "5", code=None)
            if name == "gives":
                self.assertIn("gives (1 tried): gives pages of y back to the system", done.out + done.err)
            else:
                self.assertIn("chosen writes", done.out + done.err)

    def test_a_scalar_that_the_key_ignores_is_not_kept(self):
        pack = self.write_own("keeps", "axpy(x: f32[n], y: f32[n], *, alpha: f64 = 1.0 #ignore) -> z: f32[n]", """
            void cheat(const float *x, const float *y, float *z, long long n, double alpha) {
                static double first; if (first == 0) first = alpha;
                for (long i = 0; i < n; i++) z[i] = (float)(first * x[i] + y[i]);
            }""", """
            void right(const float *x, const float *y, float *z, long long n, double alpha) {
                for (long i = 0; i < n; i++) z[i] = (float)(alpha * x[i] + y[i]);
            }""", "x, y, z, i64(n), f64(alpha)", "axpy")
        done = self.hone("tune", "--pack", pack, "axpy(f32[1000], f32[1000])", "--seconds", "5", code=None)
        self.assertIn("by a plan that ran with another value before: z[", done.out + done.err)

    TURNED = """
        #include <hone/pack.h>
        static struct { int64_t m, n, k, way; } seen[64];
        static int count;
        static hone_status turn(const hone_value *args, int kept) {
            const hone_tensor *a = args[0].as.tensor, *b = args[1].as.tensor, *c = args[2].as.tensor;
            const int64_t m = c->shape[0], n = c->shape[1], k = a->shape[1], across = args[3].as.i64;
            int at = 0;
            while (at < count && (seen[at].m != m || seen[at].n != n || seen[at].k != k)) at++;
            if (at == count && count < 64) { seen[at].m = m; seen[at].n = n; seen[at].k = k; seen[at].way = across; count++; }
            const int64_t way = kept ? seen[at].way : across;
            const float *from = hone_tensor_data(a), *by = hone_tensor_data(b);
            for (int64_t i = 0; i < m; i++) for (int64_t j = 0; j < n; j++) {
                double s = 0;
                for (int64_t l = 0; l < k; l++) s += (double)from[i * k + l] * by[way ? j * k + l : l * n + j];
                ((float *)hone_tensor_data(c))[i * n + j] = (float)s;
            }
            return HONE_OK;
        }
        static hone_status keeps(const hone_plan *plan, const hone_value *args, const hone_execution *execution) { return turn(args, 1); }
        static hone_status right(const hone_plan *plan, const hone_value *args, const hone_execution *execution) { return turn(args, 0); }
        static const hone_pack_function functions[] = {{sizeof functions[0], "keeps", keeps, 0, 0}, {sizeof functions[0], "right", right, 0, 0},
                                                       {sizeof functions[0], "honest", right, 0, 0}};
        static const hone_pack_library library = {sizeof library, HONE_PACK_ABI, 3, functions};
        const hone_pack_library *hone_pack_query(uint32_t abi) { return &library; }"""

    def test_what_is_kept_by_the_sizes_of_a_call_and_not_by_how_its_arrays_lie_does_not_win(self):
        """An honest one of the same form wins."""
        pack = self.folder / "own"
        pack.mkdir(exist_ok=True)
        (pack / "k.c").write_text(self.TURNED)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{HERE.parents[1] / 'include'}", "-o", pack / "k.so", pack / "k.c"], check=True)
        row = {"algorithm": "turned", "platform": "native", "backend": "cpu", "file": "k.so", "sha256": hashlib.sha256((pack / "k.so").read_bytes()).hexdigest()}
        signature = "turned(a: f32[m, k], b: f32[n, k] if across else [k, n], *, across: bool = false) -> c: f32[m, n]"
        for name in ("keeps", "honest"):
            (pack / "pack.json").write_text(json.dumps({
                "hone_pack": 1, "name": "own", "algorithms": [{"signature": signature, "reference": "right"}],
                "kernels": [{**row, "name": one, "entry": one} for one in (name, "right")]}))
            done = self.hone("tune", "--pack", str(pack), "turned(f32[32,24], f32[24,16])", "--seconds", "5", code=None)
            if name == "keeps":
                self.assertRegex(done.out + done.err, r"keeps \(1 tried\): for turned\(.*across=true\) after turned\(")
            else:
                self.assertIn("chosen honest", done.out + done.err)


class Audits(Contest):
    """A cheat that rested in its contest, and won it honestly, is at work when the store is audited."""

    FALLS = {"replayed": "kept_by_all_elements", "stale": "rests_within_100_microseconds", "hidden": "works_in_a_thread_when_timed",
             "unaligned": "loads_64_aligned_bytes", "racy": "static_work_buffer", "partial": "drops_the_tail",
             "wrong": "norm_without_eps", "bounds": "writes_past_scratch"}

    def kernel(self, cheat):
        row, honest = super().kernel(cheat), OPERATIONS[cheat.operation].honest
        return row if cheat.name == honest or cheat.delivery == LIBRARY else {**row, "options": f"{row['options']} -DHONEST={honest.removeprefix('honest_')}"}

    def test_each_is_taken_back_with_its_kind_and_the_next_best_answers(self):
        for kind, name in self.FALLS.items():
            with self.subTest(kind=kind):
                self.audit(kind, next(cheat for cheat in CHEATS if cheat.name == name)._replace(delivery=SOURCE))

    def test_what_is_wrong_after_another_call_of_its_own_is_taken_back(self):
        """Right alone, and so the winner of each contest; the audit looks at both choices in one process."""
        cheat = Cheat("keeps_dim_of_large_calls", "rms_norm", LIBRARY, "")
        honest = cheat._replace(name="keeps_dim_by_shape")
        env = {"HONE_STORE": self.store, "HONE_DENY": self.built_in("rms_norm"), "HONE_PACK_PATH": self.write_pack([cheat, honest])}
        for call in ("rms_norm(f32[64,256], f32[256])", "rms_norm(f32[256,64], f32[64])"):
            won = self.hone("tune", call, "--seconds", "20", "--evals", "4", "--json", env=env).json["entries"][0]
            self.assertEqual(won["kernel"], cheat.name)
        right, wrong = self.look("--json", code=NO, env=env).json["choices"]
        self.assertEqual((right["passed"], right["kernel"]), (True, cheat.name), right)
        self.assertEqual((wrong["failure"], wrong["taken_back"], wrong["next_kernel"]), ("wrong", True, honest.name), wrong)
        self.assertRegex(wrong["reason"], r"^for rms_norm\(f32\[64,256\].* after rms_norm\(f32\[256,64\]")

    def look(self, *options, **how):
        return self.hone("tune", "--audit", "--threshold", "1e9", "--seconds", "1", *options, **how)

    def audit(self, kind, cheat):
        self.use_new_store()
        operation = OPERATIONS[cheat.operation]
        call = cheat.call or operation.call
        pack = self.write_pack([cheat, cheat._replace(name=operation.honest)])
        env = {"HONE_STORE": self.store, "HONE_DENY": self.built_in(cheat.operation), "HONE_PACK_PATH": pack}
        resting = {**env, "CHEATS_REST": "1"}
        won = self.hone("tune", call, "--seconds", "20", "--evals", "4", "--json", env=resting).json["entries"][0]
        self.assertEqual(won["kernel"], cheat.name, json.dumps(won["evidence"]["kernels"]))
        self.assertTrue(self.look("--json", env=resting).json["choices"][0]["passed"])
        self.hone("lock", "--lock", f"{self.folder}/hone.lock", env=resting)
        locked = {**env, "HONE_LOCK": f"{self.folder}/hone.lock"}
        self.assertRegex(self.look("--no-store", code=NO, env=locked).out, rf"hone\.lock:\d+ pins {cheat.name} still")
        (row,) = self.look("--json", code=NO, env=env).json["choices"]
        self.assertEqual((row["failure"], row["taken_back"], row["next_kernel"]), (kind, True, operation.honest), row)
        answer = self.hone("run", call, "--json", env=env).json
        self.assertEqual((answer["kernel"], answer["source"]), (operation.honest, "store"))
        (told,) = self.look("--json", env=env).json["choices"]
        self.assertEqual((told["kernel"], told["passed"]), (operation.honest, True), told)
        self.assertIn(f"an audit took back {cheat.name}", self.hone("explain", call, env=env).out)


Sources = type("Sources", (Contest,), tests_of(SOURCE))
Libraries = type("Libraries", (Contest,), tests_of(LIBRARY))
Programs = type("Programs", (Contest,), tests_of(PROGRAM))
del Contest


if __name__ == "__main__":
    unittest.main()
