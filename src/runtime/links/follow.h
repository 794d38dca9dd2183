// Adopts what other processes have decided, outside of the hot path.
//
// Once a second a thread of the runtime reads a number that the store changes with every commit of another process
// (hone_store_ops.changes). When it has changed, the thread compares each plan that the chain guessed or found with the
// stores' present answer, and removes the plans that differ from the table: the next call decides again. A hit pays
// nothing for this. Plans that are bound stay as they are, and are marked (hone_plan_is_current).
#ifndef HONE_RUNTIME_LINKS_FOLLOW_H
#define HONE_RUNTIME_LINKS_FOLLOW_H

#include "runtime/links/links.h"

// Checks now, so that what is reported about a call is what its next run does. Opens no store; does nothing inside a
// visit of a store.
void hone_runtime_take_up(hone_runtime *rt);
// Drops the plans that answer a request's exact call, in its context, differently from the decision that was just
// reported.
void hone_runtime_stand_by(const hone_request *request, const hone_decision *told);
// Starts the thread, once there is a plan and an open store that other processes may write.
void hone_runtime_follow(hone_runtime *rt);
// The same in a child process that continues as a program.
void hone_runtime_follow_in_child(hone_runtime *rt);

#endif
