// Twins of short members of Tensor: what Python computes in less time than it takes to call and to return.
#include "calls.h"

static const struct {
    const char *name;
    Run run;
} methods[] = {{"backward", tt_backward}, {NULL, NULL}};

Run tt_method(const char *name) {
    for (int k = 0; methods[k].name; k++) {
        if (!strcmp(methods[k].name, name)) return methods[k].run;
    }
    return NULL;
}
