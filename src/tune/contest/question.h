// The inputs of a contest: fixed before its first stage begins, and read by all of them.
#ifndef HONE_TUNE_CONTEST_QUESTION_H
#define HONE_TUNE_CONTEST_QUESTION_H

#include "tune/tuner.h"

typedef struct hone_question {
    const hone_tune_environment *environment;
    const hone_algorithm_entry *algorithm;
    const hone_call *call;     // NULL: a recorded space is searched
    const char *title;         // the call's text, or the recorded space's name
    hone_tune_options options; // defaults filled in
    bool patience_given, candidate_seconds_given;
    hone_store_key key;
} hone_question;

// Whether the caller has cancelled the contest.
static inline bool hone_question_is_cancelled(const hone_question *question)
{
    return question->options.cancel != NULL && *question->options.cancel;
}

// Fills all of a decision but its evidence.
void hone_question_fill_decision(
    const hone_question *question, const hone_kernel_ref *ref, const hone_config *config, hone_decision *out);

#endif
