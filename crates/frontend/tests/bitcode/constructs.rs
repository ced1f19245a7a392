//! Every construct that clang makes code of.

use super::*;

#[test]
fn branches_and_returns_keep_the_order_of_the_source() {
    let unit = unit("int f(int *p) { if (!p) return -1; return *p; }");
    assert_eq!(
        body(&unit, "f"),
        "bb0:
v1 = cmp ne v0, null
branch v1, bb2, bb1
bb1:
jump bb3
bb2:
v2 = load i32 v0
jump bb3
bb3:
v3 = phi i32 [bb1: i32 -1], [bb2: v2]
return v3"
    );
}

#[test]
fn loops_become_phis_and_bindings() {
    let unit = unit("int sum(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }");
    let text = print_function(&unit, function(&unit, "sum"));
    assert!(text.contains("phi i32 [bb0: i32 0]"), "{text}");
    assert!(text.contains("offset v0 + 0 + v"), "{text}");
    let names: Vec<&str> = function(&unit, "sum").vars.iter().map(|var| var.name.as_str()).collect();
    assert_eq!(names, ["a", "n", "s", "i"]);
    assert!(text.contains("bind var2, i32 0"), "{text}");
    assert!(text.contains("bind var3, v"), "{text}");
}

#[test]
fn unreachable_blocks_are_dropped() {
    let text =
        bodies("void stop(void) __attribute__((noreturn)); int f(void) { stop(); return 1; again: goto again; }");
    assert_eq!(text, "bb0:\ncall void @stop() noreturn\nunreachable\n");
}

#[test]
fn switches_have_cases_and_ranges() {
    let text = bodies(
        "int f(int x) { switch (x) { case 1: return 10; case -5: case 7: return 11; case 20 ... 21: return 12; case 1000 ... 90000: return 14; default: return 13; } }",
    );
    assert!(text.contains("switch v0 [1: bb1, -5: bb2, 7: bb2, 20: bb3, 21: bb3] default bb"), "{text}");
    assert!(text.contains("cmp ule"), "{text}");
}

#[test]
fn computed_goto_names_its_targets() {
    let text = bodies(
        "int f(int i) { static void *t[] = { &&a, &&b }; void *p = i ? &&a : t[i]; goto *p; a: return 1; b: return 2; }",
    );
    assert_lines(&text, &["indirect v7 [bb4, bb5]"]);
    assert!(text.contains(": bb4]"), "the address of a label is a value:\n{text}");
}

#[test]
fn variable_arrays_and_alloca_have_a_count() {
    let unit = unit("void g(void *, void *); void f(long n) { int v[n]; void *a = __builtin_alloca(n); g(v, a); }");
    assert_eq!(body(&unit, "f"), "bb0:\nv1 = alloca 4 x v0 var0\nv2 = alloca 1 x v0\ncall void @g(v1, v2)\nreturn");
    assert_eq!(function(&unit, "f").vars.iter().next().expect("v").name, "v");
}

#[test]
fn bit_fields_are_shifts_and_masks() {
    let text = bodies("struct s { int a : 3; unsigned b : 7; }; unsigned f(struct s *p) { p->a = 2; return p->b; }");
    assert_lines(&text, &["v1 = load i16 v0", "v2 = and i16 v1, i16 -8", "v3 = or i16 v2, i16 2", "store v3 to v0"]);
    assert!(text.contains("lshr i16"), "{text}");
}

#[test]
fn unions_share_their_storage() {
    let text = bodies("union u { long i; char *p; }; char *f(long i) { union u x; x.i = i; return x.p; }");
    assert_lines(&text, &["v1 = alloca 8 var0", "store v0 to v1", "v2 = load ptr v1", "return v2"]);
}

#[test]
fn atomics_may_store_their_value() {
    let text = bodies(
        "#include <stdatomic.h>
         _Atomic(void *) cell; atomic_int count;
         int f(void *p) { void *old = 0; __atomic_thread_fence(5); count++; return atomic_compare_exchange_strong(&cell, &old, p); }
         void *g(void *p) { return atomic_exchange(&cell, p); }
         void *h(void) { return atomic_load(&cell); }",
    );
    assert_lines(&text, &["v3 = atomic i32 @count, i32 1"]);
    assert!(text.contains("atomic agg16 @cell, v"), "{text}");
    assert!(text.contains("atomic i64 @cell, v"), "{text}");
    assert!(!text.contains("fence"), "{text}");
}

#[test]
fn inline_assembly_says_whether_it_clobbers_memory() {
    let text = bodies(
        "int f(int x, int *p) { int r; __asm__(\"mov %1,%0\" : \"=r\"(r) : \"r\"(x)); __asm__ volatile(\"\" ::: \"memory\"); __asm__(\"incl %0\" : \"+m\"(*p)); return r; }
         int g(int x) { __asm__ goto(\"jmp %l0\" : : : : out); return 1; out: return 2; }",
    );
    assert_lines(&text, &["v2 = call i32 asm(v0)", "call void asm clobbers()", "call void asm clobbers(v1, v1)"]);
    assert_lines(&text, &["call void asm()", "indirect ptr undef [bb1, bb2]"]);
}

#[test]
fn vectors_are_opaque_and_keep_their_operands() {
    let text = bodies(
        "typedef int v4 __attribute__((vector_size(16)));
         v4 add(v4 a, v4 b) { return a + b; }
         int get(v4 a) { return a[2]; }
         int any(v4 a, int i) { return a[i]; }
         v4 set(v4 a, int x) { a[1] = x; return __builtin_shufflevector(a, a, 3, 2, 1, 0); }",
    );
    assert_lines(
        &text,
        &[
            "v2 = opaque agg16 \"add\" (v0, v1)",
            "v1 = extract i32 v0 at 8",
            "v2 = opaque i32 \"extractelement\" (v0, v1)",
        ],
    );
    assert!(text.contains("insert agg16 v0, v1 at 4") && text.contains("opaque agg16 \"shufflevector\""), "{text}");
}

#[test]
fn variadic_functions_walk_their_list() {
    let unit = unit(
        "#include <stdarg.h>
         char *f(int n, ...) { va_list l, m; va_start(l, n); va_copy(m, l); char *p = va_arg(l, char *); va_end(m); va_end(l); return p; }
         void g(char *p) { f(1, p, 2L); }",
    );
    let text = print_function(&unit, function(&unit, "f"));
    assert!(text.starts_with("f0 @f(v0: i32, ...) -> ptr"), "{text}");
    for name in ["va_start", "va_copy", "va_end"] {
        assert!(text.contains(&format!("call void intrinsic \"llvm.{name}\"(")), "{text}");
    }
    assert_lines(&body(&unit, "g"), &["v1 = call ptr @f(i32 1, v0, i64 2)"]);
}

#[test]
fn setjmp_returns_twice_and_longjmp_never() {
    let unit = unit(
        "#include <setjmp.h>
         jmp_buf b; int f(void) { if (setjmp(b)) return 1; longjmp(b, 1); }",
    );
    let text = print_unit(&unit);
    assert!(text.contains("declare @_setjmp returns_twice"), "{text}");
    assert!(text.contains("call void @longjmp(@b, i32 1) noreturn"), "{text}");
}

#[test]
fn statement_expressions_and_nested_initialisers() {
    let text = bodies(
        "struct in { char *p; int n; }; struct out { struct in a[2]; };
         long f(char *q) { struct out o = { .a = { [1] = { .p = q } } }; return ({ long t = o.a[1].n; t + 1; }); }",
    );
    assert_lines(&text, &["v1 = alloca 32 var0", "fill v1, i8 0, i64 32"]);
    assert!(text.contains("+ 16") && text.contains("store v0 to"), "{text}");
}

#[test]
fn struct_assignment_is_a_copy() {
    let unit = unit(
        "struct s { char *p; long a[8]; }; struct s make(struct s *from) { return *from; }
         void use(struct s by_value); void f(struct s *d, struct s *s) { *d = *s; use(*s); __builtin_memset(d, 1, 9); }",
    );
    assert_lines(&body(&unit, "make"), &["copy v0, v1, i64 72"]);
    assert_lines(&body(&unit, "f"), &["copy v0, v1, i64 72", "call void @use(v1)", "fill v0, i8 1, i64 9"]);
    let make = function(&unit, "make");
    assert!(make.attrs.params[0].sret);
    assert_eq!(make.vars.iter().next().expect("from").param, Some(1));
    assert!(print_unit(&unit).contains("declare @use (byval)"), "{}", print_unit(&unit));
}

#[test]
fn structs_in_registers_are_taken_apart() {
    let unit = unit(
        "struct two { char *p; long n; }; struct two id(int k, struct two t, const char *s) { return t; }
         char *f(char *p) { struct two t = { p, 1 }; return id(0, t, p).p; }",
    );
    let id = function(&unit, "id");
    let params: Vec<_> = id.vars.iter().map(|var| (var.name.as_str(), var.param)).collect();
    assert_eq!(params, [("t", Some(1)), ("k", Some(0)), ("s", Some(3))]);
    assert!(id.attrs.params[3].pointer_to_const);
    let text = body(&unit, "f");
    assert!(text.contains("extract ptr v") && text.contains("call agg16 @id(i32 0, v"), "{text}");
}

#[test]
fn wide_integers() {
    let text = bodies(
        "__int128 f(__int128 a) { return a * 5 + ((__int128)1 << 100); } int g(__int128 a) { switch (a) { case 3: return 1; case (__int128)1 << 70: return 2; } return 0; }",
    );
    assert!(text.contains("mul i128") && text.contains("i128 5") && text.contains("i128 undef"), "{text}");
    assert!(text.contains("indirect ptr undef [bb"), "a case that fits no 64 bits goes anywhere:\n{text}");
}

#[test]
fn thread_locals_are_addresses() {
    let unit = unit("__thread char *cell; void f(char *p) { cell = p; }");
    assert_lines(&body(&unit, "f"), &["v1 = same ptr @cell", "store v0 to v1"]);
    assert!(unit.globals.iter().next().expect("cell").thread_local);
}

#[test]
fn constant_expressions_are_addresses_with_an_offset() {
    let text = bodies(
        "struct s { int a; char *p; }; struct s table[4]; int other;
         char **f(void) { return &table[2].p; } long g(void) { return (long)&table[1]; }
         int *h(void) { return &other; } void *failed(void) { return (void *)-1; }
         int test(void *p) { return p == (void *)-1; } void *null(void) { return (void *)0; }",
    );
    assert_lines(&text, &["return @table[40]", "return i64 @table[16]", "return @other", "return ptr -1"]);
    assert_lines(&text, &["v1 = cmp eq v0, ptr -1", "return null"]);
}

#[test]
fn hints_pass_their_value_and_leave_no_trace() {
    let unit = unit_before_optimisation(
        "int f(char *p) { if (__builtin_expect(!p, 0)) return 1; __builtin_assume(p != 0); __builtin_prefetch(p); return 0; }
         char *g(char *p) { return __builtin_assume_aligned(p, 16); }
         char *h(char *p) { return __builtin_align_down(p, 16); }
         unsigned long size(char *p) { return __builtin_object_size(p, 0); }",
    );
    let text: String = ["f", "g", "h", "size"].map(|name| body(&unit, name)).join("\n");
    for gone in ["assume", "prefetch", "lifetime", "expect"] {
        assert!(!text.contains(gone), "{text}");
    }
    assert!(text.contains("same i64 v"), "{text}");
    assert!(text.contains("offset v0 + 0 + i64 undef * 1"), "{text}");
    assert!(text.contains("intrinsic \"llvm.objectsize\"(v0"), "{text}");
}

#[test]
fn builtins_with_overflow_are_aggregates() {
    let text = bodies("int f(int a, int b) { int r; if (__builtin_add_overflow(a, b, &r)) return 0; return r; }");
    assert_lines(&text, &["v2 = call agg8 intrinsic \"llvm.sadd.with.overflow\"(v0, v1)"]);
    assert!(text.contains("extract i1 v2 at 4") && text.contains("extract i32 v2 at 0"), "{text}");
}

#[test]
fn floating_values_are_not_followed() {
    let text = bodies("double f(double a, float b) { return a < 1.0 ? -a * b : (int)a; }");
    for part in ["cmp float v0, float undef", "tofloat float", "float float"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn constants_of_different_types_and_one_machine_type_are_one_value() {
    // `verify` in `unit` would complain.
    bodies("double f(int x) { float a = 1.0f; double b = 2.0; return x ? a + 3.0f : b + 4.0; }");
    bodies(
        "struct a { long x; } g; struct b { char *p; } *h = (void *)&g; int f(char *p) { return p == (char *)&g || p == (char *)&g.x; }",
    );
}

#[test]
fn calls_through_pointers_and_casts() {
    let text = bodies(
        "typedef void (*fn)(void *); fn table[3]; void real(); 
         void f(int i, fn *p, void *x) { table[i](x); (*p)(x); ((void (*)(void *, int))real)(x, 1); ((void (*)(void))0)(); }",
    );
    assert!(text.contains("call void *v"), "{text}");
    assert!(text.contains("call void @real(v2, i32 1)"), "{text}");
    assert!(text.contains("call void *null()"), "{text}");
}

#[test]
fn cleanup_is_a_call_on_every_exit() {
    let text = bodies(
        "void release(char **p); char *get(void);
         int f(int x) { __attribute__((cleanup(release))) char *p = get(); if (x) return 1; return 2; }",
    );
    assert!(text.contains("call void @release(v"), "{text}");
}

#[test]
fn unwinding_is_left_out() {
    let unit = unit_with(
        "void release(char **p); char *get(void);
         int f(int x) { __attribute__((cleanup(release))) char *p = get(); get(); return 2; }",
        &["-fexceptions"],
    );
    let text = body(&unit, "f");
    assert!(!text.contains("landingpad") && !text.contains("opaque"), "{text}");
    assert_eq!(text.matches("@release").count(), 1, "{text}");
    assert_eq!(unit.gaps, []);
}
