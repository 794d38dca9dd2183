// Taking up what other processes have decided, off the hot path.
//
// A thread of the runtime looks once a second at a number that the store changes with every commit of another
// (hone_store_ops.changes). When it has changed, each plan that the chain guessed or found is compared with what the
// stores say now, and those that they say otherwise of are taken out of the table: the next call decides anew. A hit
// knows nothing of it. Plans that are bound stay as they are, and are marked (hone_plan_is_current).
#ifndef HONE_RUNTIME_LINKS_FOLLOW_H
#define HONE_RUNTIME_LINKS_FOLLOW_H

#include "runtime/links/links.h"

// Looks now, so that what is told of a call is what its next run does. Opens no store; nothing inside of a store's
// visit.
void hone_runtime_take_up(hone_runtime *rt);
// Takes plans back that answer a request's very call, in its context, otherwise than it was told now.
void hone_runtime_stand_by(const hone_request *request, const hone_decision *told);
// Has the thread started, once there is a plan and an open store that other processes may write.
void hone_runtime_follow(hone_runtime *rt);
// The same in a child that goes on as a program.
void hone_runtime_follow_in_child(hone_runtime *rt);

#endif
