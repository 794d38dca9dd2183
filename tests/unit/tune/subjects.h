// The kernels that the tuner is tested on: some good, most of them bad in one way each.
#ifndef HONE_TEST_TUNE_SUBJECTS_H
#define HONE_TEST_TUNE_SUBJECTS_H

#include "registry/registry.h"

// Registers the algorithms below and, under each, the kernels named after it.
//   scale_SUBJECT(x: f32[n], *, by: f64 = 2.0) -> y: f32[n], with kernels "good" and SUBJECT
// so that every contest is one between the good kernel and one bad one.
hone_status subjects_register(hone_registry *registry, hone_error *err);
// The same as functions of a host program.
hone_status subjects_register_hosts(hone_registry *registry, hone_error *err);

#endif
