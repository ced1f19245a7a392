//! Changing statements: temporaries, tests of results, jumps, deletions, declarations.

use caulk_source::{CallId, FunctionSource, Placement, Refusal, Snippet};

use super::{applied, function_in, stmt};

fn call(function: &FunctionSource, callee: &str) -> CallId {
    function.calls.iter_ids().find(|(_, call)| call.callee == callee).map(|(id, _)| id).expect("a call")
}

fn through_temp(text: &str, target: &str) -> String {
    let function = function_in(text);
    let name = function.fresh_name("ret");
    let code = Snippet::line("free(p);");
    let edits = function.return_through_temp(stmt(&function, target), &name, &code, Placement::Auto).unwrap();
    applied(&function, &edits)
}

#[test]
fn a_returned_value_goes_through_a_typed_temporary() {
    assert_eq!(
        through_temp("char *f(char *p)\n{\n\treturn name(p);\n}\n", "return name(p);"),
        "char *f(char *p)\n{\n\tchar *ret = name(p);\n\tfree(p);\n\treturn ret;\n}\n"
    );
    assert_eq!(
        through_temp("int f(char *p, int ret)\n{\n\tif (ret) return g(p);\n\treturn 0;\n}\n", "return g(p);"),
        "int f(char *p, int ret)\n{\n\tif (ret) {\n\t\tint ret2 = g(p);\n\t\tfree(p);\n\t\treturn ret2;\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn without_mixed_declarations_the_variable_goes_to_the_start_of_the_block() {
    assert_eq!(
        through_temp("int f(char *p)\n{\n\tint n = 0;\n\n\tg(p);\n\treturn g(p);\n}\n", "return g(p);"),
        "int f(char *p)\n{\n\tint n = 0;\n\tint ret;\n\n\tg(p);\n\tret = g(p);\n\tfree(p);\n\treturn ret;\n}\n"
    );
    assert_eq!(
        through_temp("int f(char *p)\n{\n\tg(p);\n\tint n = 0;\n\treturn g(p) + n;\n}\n", "return g(p) + n;"),
        "int f(char *p)\n{\n\tg(p);\n\tint n = 0;\n\tint ret = g(p) + n;\n\tfree(p);\n\treturn ret;\n}\n"
    );
}

#[test]
fn a_case_gets_a_block_for_the_temporary() {
    assert_eq!(
        through_temp(
            "int f(char *p, int n)\n{\n\tswitch (n) {\n\tcase 1:\n\t\treturn g(p);\n\t}\n\treturn 0;\n}\n",
            "return g(p);"
        ),
        "int f(char *p, int n)\n{\n\tswitch (n) {\n\tcase 1: {\n\t\tint ret = g(p);\n\t\tfree(p);\n\t\treturn ret;\n\t}\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn void_and_long_returns() {
    assert_eq!(
        through_temp("void h(char *);\nvoid f(char *p)\n{\n\treturn h(p);\n}\n", "return h(p);"),
        "void h(char *);\nvoid f(char *p)\n{\n\th(p);\n\tfree(p);\n\treturn;\n}\n"
    );
    assert_eq!(
        through_temp(
            "int f(char *p)\n{\n\treturn add(p, /* x */\n\t           p);\n}\n",
            "return add(p, /* x */\n\t           p);"
        ),
        "int f(char *p)\n{\n\tint ret = add(p, /* x */\n\t           p);\n\tfree(p);\n\treturn ret;\n}\n"
    );
}

#[test]
fn a_return_without_a_blank_keeps_its_words_apart() {
    assert_eq!(
        through_temp("int f(char *p)\n{\n\treturn(g(p));\n}\n", "return(g(p));"),
        "int f(char *p)\n{\n\tint ret = g(p);\n\tfree(p);\n\treturn ret;\n}\n"
    );
    assert_eq!(
        through_temp("int f(char *p)\n{\n\treturn (g(p), 1);\n}\n", "return (g(p), 1);"),
        "int f(char *p)\n{\n\tint ret = (g(p), 1);\n\tfree(p);\n\treturn ret;\n}\n"
    );
}

#[test]
fn types_that_have_no_simple_declaration_are_refused() {
    let text = "int (*h(void *))[3];\nint (*f(char *p))[3]\n{\n\treturn h(p);\n}\n";
    let function = function_in(text);
    let target = stmt(&function, "return h(p);");
    let edits = function.return_through_temp(target, "ret", &Snippet::default(), Placement::Auto).unwrap();
    assert!(applied(&function, &edits).contains("\tint (*ret)[3] = h(p);\n\treturn ret;\n"));
    let hard = "struct { int a; } *h(void);\n__typeof__(h()) f(void)\n{\n\treturn h();\n}\n";
    let function = function_in(hard);
    let target = stmt(&function, "return h();");
    let refusal = function.return_through_temp(target, "ret", &Snippet::default(), Placement::Auto);
    assert!(matches!(refusal, Err(Refusal::Type(_))), "{refusal:?}");
}

fn tested(text: &str) -> String {
    let function = function_in(text);
    let edits = function
        .test_ignored_result(call(&function, "add"), "", " < 0", &Snippet::line("free(p);"))
        .expect("not refused");
    applied(&function, &edits)
}

#[test]
fn an_ignored_result_is_tested() {
    assert_eq!(
        tested("void f(char *p)\n{\n\tadd(0, p);\n}\n"),
        "void f(char *p)\n{\n\tif (add(0, p) < 0)\n\t\tfree(p);\n}\n"
    );
    assert_eq!(
        tested("void f(char *p)\n{\n\t(void)add(0, p); /* c */\n}\n"),
        "void f(char *p)\n{\n\tif (add(0, p) < 0)\n\t\tfree(p); /* c */\n}\n"
    );
    assert_eq!(
        tested("void f(char *p)\n{\n\tif (p)\n\t\tadd(0, p);\n\telse\n\t\tg(p);\n}\n"),
        "void f(char *p)\n{\n\tif (p) {\n\t\tif (add(0, p) < 0)\n\t\t\tfree(p);\n\t} else\n\t\tg(p);\n}\n"
    );
    assert_eq!(
        tested("void f(char *p)\n{\n\tif (p) add(0, p); else g(p);\n}\n"),
        "void f(char *p)\n{\n\tif (p) {\n\t\tif (add(0, p) < 0)\n\t\t\tfree(p);\n\t} else g(p);\n}\n"
    );
    assert_eq!(
        tested("void f(char *p) { add(0, p); g(0); }\n"),
        "void f(char *p) { if (add(0, p) < 0) free(p); g(0); }\n"
    );
    assert_eq!(
        tested("#define ADD(x) add(0, x)\nvoid f(char *p)\n{\n\tADD(p);\n}\n"),
        "#define ADD(x) add(0, x)\nvoid f(char *p)\n{\n\tif (ADD(p) < 0)\n\t\tfree(p);\n}\n"
    );
}

#[test]
fn a_longer_body_gets_braces() {
    let function = function_in("int f(char *p)\n{\n\tadd(0, p);\n\treturn 0;\n}\n");
    let body = Snippet::lines(["free(p);", "return -1;"]);
    let edits = function.test_ignored_result(call(&function, "add"), "!", "", &body).unwrap();
    assert_eq!(
        applied(&function, &edits),
        "int f(char *p)\n{\n\tif (!add(0, p)) {\n\t\tfree(p);\n\t\treturn -1;\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn results_that_are_used_or_void_are_not_tested() {
    let used = function_in("int f(char *p)\n{\n\tint r = add(0, p);\n\treturn r;\n}\n");
    assert!(used.test_ignored_result(call(&used, "add"), "", " < 0", &Snippet::default()).is_err());
    let void = function_in("void f(char *p)\n{\n\tfree(p);\n}\n");
    assert!(void.test_ignored_result(call(&void, "free"), "", " < 0", &Snippet::default()).is_err());
}

fn hoisted(text: &str) -> Result<String, Refusal> {
    let function = function_in(text);
    let name = function.fresh_name("copy");
    let edits = function.hoist_call(call(&function, "strdup"), None, &name, &Snippet::default(), Placement::Auto)?;
    Ok(applied(&function, &edits))
}

#[test]
fn an_unnamed_argument_gets_a_name() {
    assert_eq!(
        hoisted("void f(char *p)\n{\n\tadd(0, strdup(p));\n}\n").unwrap(),
        "void f(char *p)\n{\n\tchar *copy = strdup(p);\n\tadd(0, copy);\n}\n"
    );
    assert_eq!(
        hoisted("int f(char *p)\n{\n\tg(p);\n\tif (add(0, strdup(p)) < 0)\n\t\treturn 1;\n\treturn 0;\n}\n").unwrap(),
        "int f(char *p)\n{\n\tchar *copy;\n\tg(p);\n\tcopy = strdup(p);\n\tif (add(0, copy) < 0)\n\t\treturn 1;\n\treturn 0;\n}\n"
    );
    assert_eq!(
        hoisted("int f(char *p)\n{\n\tint r = add(0, strdup(p));\n\treturn r;\n}\n").unwrap(),
        "int f(char *p)\n{\n\tchar *copy = strdup(p);\n\tint r = add(0, copy);\n\treturn r;\n}\n"
    );
    assert_eq!(
        hoisted("int f(char *p)\n{\n\tif (p)\n\t\treturn add(0, strdup(p));\n\treturn 0;\n}\n").unwrap(),
        "int f(char *p)\n{\n\tif (p) {\n\t\tchar *copy = strdup(p);\n\t\treturn add(0, copy);\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn a_call_that_may_not_run_or_whose_order_matters_is_not_hoisted() {
    let conditional = "int f(char *p)\n{\n\tif (p && add(0, strdup(p)))\n\t\treturn 1;\n\treturn 0;\n}\n";
    assert_eq!(hoisted(conditional), Err(Refusal::ConditionallyEvaluated));
    let choice = "void f(char *p)\n{\n\tadd(0, p ? strdup(p) : 0);\n}\n";
    assert_eq!(hoisted(choice), Err(Refusal::ConditionallyEvaluated));
    let looping = "void f(char *p)\n{\n\twhile (add(0, strdup(p)))\n\t\tg(p);\n}\n";
    assert_eq!(hoisted(looping), Err(Refusal::ConditionallyEvaluated));
    let ordered = "void f(char *p)\n{\n\tadd(p++, strdup(p));\n}\n";
    assert_eq!(hoisted(ordered), Err(Refusal::EvaluationOrder));
    let in_macro = "#define ADD(x) add(0, x)\nvoid f(char *p)\n{\n\tADD(strdup(p));\n}\n";
    assert_eq!(hoisted(in_macro), Err(Refusal::InMacro("ADD".into())));
}

#[test]
fn a_return_becomes_a_jump() {
    let text = "int f(char *p)\n{\n\tint ret = 0;\n\tif (g(p))\n\t\treturn -1;\n\tif (!p) return ret;\nout:\n\tfree(p);\n\tif (ret) goto out;\n\treturn ret;\n}\n";
    let function = function_in(text);
    let edits = function.return_to_goto(stmt(&function, "return -1;"), "ret", "out").unwrap();
    assert!(applied(&function, &edits).contains("\tif (g(p)) {\n\t\tret = -1;\n\t\tgoto out;\n\t}\n"));
    let first = function.stmts.iter_ids().find(|(_, s)| function.file.slice(s.span) == b"return ret;").unwrap().0;
    let edits = function.return_to_goto(first, "ret", "out").unwrap();
    assert!(applied(&function, &edits).contains("\tif (!p) goto out;\n"));
}

#[test]
fn statements_are_replaced_and_deleted() {
    let text = "int f(char *p)\n{\n\t/* keep */\n\tfree(p); /* goes too */\n\tg(0); free(0); g(p);\n\tif (p)\n\t\tg(\n\t\t  p);\n\treturn 0;\n}\n";
    let function = function_in(text);
    let deleted = |target: &str| applied(&function, &function.delete_stmt(stmt(&function, target)).unwrap());
    assert!(deleted("free(p);").contains("{\n\t/* keep */\n\tg(0); free(0); g(p);\n"));
    assert!(deleted("free(0);").contains("\tg(0); g(p);\n"));
    assert!(deleted("g(p);").contains("\tg(0); free(0);\n"));
    assert!(deleted("g(\n\t\t  p);").contains("\tif (p)\n\t\t{ }\n\treturn 0;\n"));
    assert!(deleted("if (p)\n\t\tg(\n\t\t  p);").contains("g(p);\n\treturn 0;\n"));
    let edits = function.replace_stmt(stmt(&function, "g(\n\t\t  p);"), &Snippet::from("g(0);\ng(0);")).unwrap();
    assert!(applied(&function, &edits).contains("\tif (p) {\n\t\tg(0);\n\t\tg(0);\n\t}\n\treturn 0;\n"));
}

#[test]
fn nothing_under_a_directive_is_lost_by_replacing() {
    let text = "int f(char *p)\n{\n\tif (g(p)) {\n#ifdef A\n\t\tg(0);\n#endif\n\t}\n\treturn 0;\n}\n";
    let function = function_in(text);
    let target = stmt(&function, "if (g(p)) {\n#ifdef A\n\t\tg(0);\n#endif\n\t}");
    assert_eq!(function.delete_stmt(target), Err(Refusal::Conditional));
}

#[test]
fn conditions_and_null_assignments() {
    let text = "int f(char *p)\n{\n\tif (g(p) < 0)\n\t\tfree(p);\n\treturn 0;\n}\n";
    let function = function_in(text);
    let edits = function.replace_condition(stmt(&function, "if (g(p) < 0)\n\t\tfree(p);"), "p && g(p) < 0").unwrap();
    assert!(applied(&function, &edits).contains("\tif (p && g(p) < 0)\n"));
    let edits = function.set_null_after(stmt(&function, "free(p);"), "p").unwrap();
    assert!(applied(&function, &edits).contains("\tif (g(p) < 0) {\n\t\tfree(p);\n\t\tp = NULL;\n\t}\n"));
}

#[test]
fn declarations_go_behind_the_others() {
    let text = "int f(char *p)\n{\n\tint a;\n\tint b = 1; /* c */\n\n\ta = b;\n\twhile (a) {\n\t\tg(p);\n\t}\n\treturn a;\n}\n";
    let function = function_in(text);
    let edits = function.declare_in(function.body, "char *owned = NULL;").unwrap();
    assert!(applied(&function, &edits).contains("\tint b = 1; /* c */\n\tchar *owned = NULL;\n\n\ta = b;\n"));
    let edits = function.declare_in(stmt(&function, "{\n\t\tg(p);\n\t}"), "int n = 0;").unwrap();
    assert!(applied(&function, &edits).contains("\twhile (a) {\n\t\tint n = 0;\n\t\tg(p);\n\t}\n"));
}

#[test]
fn declarations_are_for_every_configuration() {
    let text = "int f(char *p)\n{\n\tint a = 0;\n#ifndef SMALL\n\tint b = 1;\n#endif\n\n\ta += *p;\n#ifndef SMALL\n\ta += b;\n#endif\n\treturn a;\n}\n";
    let function = function_in(text);
    let edits = function.declare_in(function.body, "char *owned = NULL;").unwrap();
    assert!(applied(&function, &edits).contains("\tint a = 0;\n\tchar *owned = NULL;\n#ifndef SMALL\n\tint b = 1;\n"));
    let text = "int f(char *p)\n{\n#ifndef SMALL\n\tint b = 1;\n#endif\n\treturn *p;\n}\n";
    let function = function_in(text);
    assert!(function.declare_in(function.body, "char *owned = NULL;").is_err());
}
