/* Runs one program over all its inputs and failing allocations.
 *
 * The program is compiled with -Dmain=program_main and linked with --wrap for the allocating functions.
 * One line per run: input, mask of failing allocations, allocations made, verdict, output in hexadecimal.
 *
 * Runs share a child process until one of them is stopped by the sanitizer; the next child goes on behind it.
 * That is sound because a program's only state is its input, and it is much faster than a child per run.
 *
 * A program owns nothing at its end, so any block that is still alive is a leak; counting is exact where
 * LeakSanitizer can be misled by a stale pointer on the stack.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int program_main(int argc, char **argv);

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *block);

void __asan_set_error_report_callback(void (*callback)(const char *));

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0:symbolize=0:exitcode=77:allocator_may_return_null=1:handle_abort=0:print_summary=0";
}

/* Where the runs are; it outlives the child that makes them. */
struct shared {
    unsigned input;
    long step;
    long allocations_at_best;
    long allocations;
    long alive;
    char verdict[32];
};

static struct shared *shared;
static unsigned long long failing;

/* Whether the next allocation is one of those that fail. */
static int fails(void)
{
    long number = shared->allocations++;
    return number < 63 ? (int)((failing >> number) & 1) : (int)((failing >> 63) & 1);
}

void *__wrap_malloc(size_t size)
{
    void *block = fails() ? NULL : __real_malloc(size);
    shared->alive += block != NULL;
    return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *block = fails() ? NULL : __real_calloc(count, size);
    shared->alive += block != NULL;
    return block;
}

char *__wrap_strdup(const char *text)
{
    char *block = fails() ? NULL : __real_strdup(text);
    shared->alive += block != NULL;
    return block;
}

void *__wrap_realloc(void *old, size_t size)
{
    void *block = fails() ? NULL : __real_realloc(old, size);
    shared->alive += old == NULL && block != NULL;
    return block;
}

void __wrap_free(void *block)
{
    __real_free(block);
    shared->alive -= block != NULL;
}

static void on_error(const char *report)
{
    static const char *const kinds[] = { "double-free", "use-after-free", "bad-free", "SEGV", "overflow" };
    const char *found = "other";
    for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
        if (strstr(report, kinds[n]) != NULL) {
            found = kinds[n];
            break;
        }
    }
    if (strstr(report, "attempting free on address which was not malloc") != NULL)
        found = "bad-free";
    snprintf(shared->verdict, sizeof(shared->verdict), "%s", found);
}

static unsigned inputs;
static int deep;

static unsigned long long scattered(long number)
{
    unsigned long long mixed = ((unsigned long long)number + 1) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    return mixed ^ (mixed >> 31);
}

/* The mask of the current step; 0 steps over to the next input. */
static int mask_of_step(unsigned long long *mask)
{
    long step = shared->step;
    long count = shared->allocations_at_best;
    if (step == 0) {
        *mask = 0;
        return 1;
    }
    step--;
    if (deep) {
        long bits = inputs > 64 ? 4 : inputs > 16 ? 6 : 8;
        long subsets = (1l << (count + 2 < bits ? count + 2 : bits)) - 1;
        if (step < subsets) {
            *mask = (unsigned long long)step + 1;
            return 1;
        }
        step -= subsets;
    }
    long enough = deep ? 63 : 160 / (long)inputs + 2;
    long limit = count < enough ? count : enough;
    if (step < 2 * limit) {
        *mask = (step % 2 == 0 ? 1ull : ~0ull) << (step / 2);
        return 1;
    }
    step -= 2 * limit;
    if (!deep || step >= 32)
        return 0;
    /* Few of many fail, the same ones in every run of the harness. */
    *mask = scattered(step) & scattered(step + 64) & scattered(step + 128);
    return 1;
}

static void report(FILE *out, int file)
{
    static char output[1 << 16];
    ssize_t size = pread(file, output, sizeof(output), 0);
    fprintf(out, "%u %llu %ld %s ", shared->input, failing, shared->allocations, shared->verdict);
    for (ssize_t n = 0; n < size; n++)
        fprintf(out, "%02x", (unsigned char)output[n]);
    fprintf(out, "\n");
    fflush(out);
}

static void advance(void)
{
    if (shared->step == 0)
        shared->allocations_at_best = shared->allocations;
    shared->step++;
}

/* Readies the next run; 0 when all are done. */
static int prepare(int file)
{
    while (shared->input < inputs && !mask_of_step(&failing)) {
        shared->input++;
        shared->step = 0;
    }
    shared->allocations = 0;
    shared->alive = 0;
    strcpy(shared->verdict, "ok");
    if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0)
        exit(3);
    return shared->input < inputs;
}

static void child(int file)
{
    FILE *out = fdopen(dup(1), "w");
    if (out == NULL)
        _exit(3);
    dup2(file, 1);
    dup2(open("/dev/null", O_WRONLY), 2);
    setvbuf(stdout, NULL, _IOLBF, 4096);
    __asan_set_error_report_callback(on_error);
    const struct itimerval limit = { { 0, 0 }, { 5, 0 } };
    while (prepare(file)) {
        char number[16];
        char *arguments[] = { "program", number, NULL };
        snprintf(number, sizeof(number), "%u", shared->input);
        /* Of its own time: a busy machine is no endless loop. */
        setitimer(ITIMER_PROF, &limit, NULL);
        program_main(2, arguments);
        fflush(stdout);
        if (shared->alive > 0)
            strcpy(shared->verdict, "leak");
        report(out, file);
        advance();
    }
    _exit(0);
}

/* Usage: runner BITS FILE [deep] */
int main(int argc, char **argv)
{
    if (argc < 3)
        return 3;
    inputs = 1u << atoi(argv[1]);
    deep = argc > 3;
    int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || shared == MAP_FAILED)
        return 3;
    while (prepare(file)) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid < 0)
            return 3;
        if (pid == 0)
            child(file);
        int status = 0;
        waitpid(pid, &status, 0);
        if (shared->input >= inputs)
            break;
        if (WIFSIGNALED(status))
            strcpy(shared->verdict, WTERMSIG(status) == SIGPROF ? "timeout" : "crash");
        else if (strcmp(shared->verdict, "ok") == 0)
            strcpy(shared->verdict, "other");
        /* The child's copy of the mask is gone with it. */
        mask_of_step(&failing);
        report(stdout, file);
        advance();
    }
    return 0;
}
