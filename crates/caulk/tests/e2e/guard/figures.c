// AutoFix's figures 1, 3, 7 and 8, with a main that walks every path.
#include "autofix_fig1_paths.c"
#include "autofix_fig3_loop.c"
#include "autofix_fig7_literal.c"
#include "autofix_fig8_connect.c"

int main(void) {
    for (int c = 0; c < 2; c++) {
        stack_or_heap_bad(c);
        stack_or_heap_ok(c);
        caller_releases_sometimes_bad(c);
        caller_releases_always_ok(c);
    }
    fun_bad(5);
    fun_ok(5);
    describe_bad(0);
    describe_bad("heap");
    describe_ok(0);
    describe_ok("heap");
    // Nobody listens on port 1; the addresses to bind to are looked up in each round.
    struct context with_source = {-1, "127.0.0.1"}, without = {-1, 0};
    for (int i = 0; i < 3; i++) {
        printf("%d %d\n", connect_bad(&with_source, "127.0.0.1", "1"), connect_bad(&without, "127.0.0.1", "1"));
        printf("%d\n", connect_ok(&with_source, "127.0.0.1", "1"));
    }
    return 0;
}
