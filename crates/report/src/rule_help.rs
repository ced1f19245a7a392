//! What each rule means, in the words of the documentation: the one source of
//! `caulk explain RULE`, the SARIF rule help and the report pages.

use caulk_findings::Rule;

/// Everything there is to say about one rule.
pub struct RuleHelp {
    /// One sentence without the final stop.
    pub short: &'static str,
    pub what: &'static str,
    pub bad: &'static str,
    pub good: &'static str,
    /// How caulk finds it and what it does not report.
    pub how: &'static str,
}

pub fn rule_help(rule: Rule) -> &'static RuleHelp {
    match rule {
        Rule::MemoryLeak => &MEMORY_LEAK,
        Rule::ResourceLeak => &RESOURCE_LEAK,
        Rule::DoubleFree => &DOUBLE_FREE,
        Rule::UseAfterFree => &USE_AFTER_FREE,
        Rule::MismatchedRelease => &MISMATCHED_RELEASE,
        Rule::InvalidFree => &INVALID_FREE,
        Rule::LeakAtExit => &LEAK_AT_EXIT,
    }
}

static MEMORY_LEAK: RuleHelp = RuleHelp {
    short: "Memory is allocated and its last reference is lost without a release",
    what: "A block of memory is allocated, and on some path the program loses the last pointer to it without having \
           released it: the pointer goes out of scope, is overwritten, its only owner is freed, or `realloc` fails \
           and its old block is dropped. The memory stays taken until the process ends.",
    bad: "\
char *buf = malloc(n);
if (fill(buf, n) < 0)
    return -1;          /* buf is lost here */
free(buf);
return 0;",
    good: "\
char *buf = malloc(n);
if (fill(buf, n) < 0) {
    free(buf);
    return -1;
}
free(buf);
return 0;",
    how: "Every allocation is followed through copies, stores, calls and returns of the whole program. A loss is \
          reported when a feasible path leads from the allocation to a point where nothing refers to the block any \
          more. Memory still held by a global or by `main` when the process ends, and what is lost just before, is not \
          a memory leak but `leak-at-exit`.",
};

static RESOURCE_LEAK: RuleHelp = RuleHelp {
    short: "A file, descriptor or other resource is opened and never closed",
    what: "A resource that has a closing function (`FILE *`, a file descriptor, `DIR *`, a pipe from `popen`, the \
           list from `getaddrinfo`, a mapping, or a family of the project's own models) is lost on some path without \
           having been closed. Descriptors run out long before memory does.",
    bad: "\
FILE *f = fopen(path, \"r\");
if (!f)
    return -1;
if (fgets(line, sizeof line, f) == NULL)
    return -1;          /* f stays open */
fclose(f);",
    good: "\
FILE *f = fopen(path, \"r\");
if (!f)
    return -1;
if (fgets(line, sizeof line, f) == NULL) {
    fclose(f);
    return -1;
}
fclose(f);",
    how: "Resources run through the same state machine as memory; the models say which function opens, which one \
          closes, and which value means failure. Standard streams are never reported.",
};

static DOUBLE_FREE: RuleHelp = RuleHelp {
    short: "A block or resource is released twice on one path",
    what: "The same block is released a second time on one path, often through an alias or by a caller that does not \
           know that the callee released it. The allocator's own data is damaged; attackers use it.",
    bad: "\
free(p);
if (failed)
    goto out;
...
out:
    free(p);            /* released again */",
    good: "\
free(p);
p = NULL;
if (failed)
    goto out;
...
out:
    free(p);            /* free(NULL) does nothing */",
    how: "Two releases of one object are reported when one feasible path runs through both and the object is the same \
          in both. Elements of one array are kept as one object, and a loop over them is not reported.",
};

static USE_AFTER_FREE: RuleHelp = RuleHelp {
    short: "Memory is used after it was released",
    what: "A released block is read, written, passed on or returned. The allocator may already have given it to \
           somebody else.",
    bad: "\
free(node);
node = node->next;      /* reads released memory */",
    good: "\
struct node *next = node->next;
free(node);
node = next;",
    how: "After a release, every use of the block through any pointer on a feasible path is reported: reads, writes, \
          passing it to a function that uses it, returning it. Comparing the stale pointer is not reported.",
};

static MISMATCHED_RELEASE: RuleHelp = RuleHelp {
    short: "A resource is released by a function of another family",
    what: "What one family of functions opened is released by another: `free` for a `FILE *`, `fclose` for a stream \
           from `popen`, `free` for the list from `getaddrinfo`.",
    bad: "\
FILE *p = popen(cmd, \"r\");
...
fclose(p);              /* leaves the child process behind */",
    good: "\
FILE *p = popen(cmd, \"r\");
...
pclose(p);",
    how: "Every release says which families it accepts; releasing an object of another family on a feasible path is \
          reported.",
};

static INVALID_FREE: RuleHelp = RuleHelp {
    short: "Something is freed that no allocator returned",
    what: "The pointer given to the release function was not returned by the allocator: a stack or global object, a \
           string literal, or a pointer into the middle of a block.",
    bad: "\
char small[16];
char *p = n < 16 ? small : malloc(n);
...
free(p);                /* may be the stack buffer */",
    good: "\
char small[16];
char *p = n < 16 ? small : malloc(n);
...
if (p != small)
    free(p);",
    how: "At each release, the objects the pointer may refer to on a feasible path are looked at; a stack slot, a \
          global, a literal or a non-zero offset into a block is reported.",
};

static LEAK_AT_EXIT: RuleHelp = RuleHelp {
    short: "Memory is still held when the process ends",
    what: "Memory that lives until the process ends: held by a global, a static cache or `main`, or lost by a function \
           behind which all that the program does is to end. The system takes it back, and closes what is open, so \
           most projects do not want it freed; it is off unless asked for with `--at-exit`.",
    bad: "\
int main(void) {
    config = load_config();
    return run(config);  /* config is never freed */
}",
    good: "\
int main(void) {
    config = load_config();
    int status = run(config);
    free_config(config);
    return status;
}",
    how: "Reported only with `--at-exit`: allocations that are reachable when the process ends and that no path \
          releases, and leaks on the way out. For those, every caller in the program is asked what it does with the \
          result that the function returns behind the loss: it must clean up, say something, and end the process or \
          return to callers that do the same. And the result must be the reason, because on another one the program \
          goes on, or be what the process ends with, as that of a command is.",
};
