//! Inserting beside statements: every syntactic shape.

use caulk_source::{Refusal, Snippet};

use super::{after, applied, before, function_in, refused_before, stmt};

#[test]
fn in_a_block_the_new_line_takes_the_indentation_of_its_neighbour() {
    assert_eq!(
        before("int f(char *p)\n{\n\tg(p);\n\treturn 0; /* done */\n}\n", "return 0;", "free(p);"),
        "int f(char *p)\n{\n\tg(p);\n\tfree(p);\n\treturn 0; /* done */\n}\n"
    );
    assert_eq!(
        after("int f(char *p)\n{\n  g(p); // use\n  return 0;\n}\n", "g(p);", "free(p);\np = NULL;"),
        "int f(char *p)\n{\n  g(p); // use\n  free(p);\n  p = NULL;\n  return 0;\n}\n"
    );
}

#[test]
fn a_comment_above_stays_above() {
    assert_eq!(
        before("int f(char *p)\n{\n    /* fail */\n    return 1;\n}", "return 1;", "free(p);"),
        "int f(char *p)\n{\n    /* fail */\n    free(p);\n    return 1;\n}"
    );
}

#[test]
fn the_body_of_an_if_gets_braces() {
    assert_eq!(
        before("int f(char *p)\n{\n\tif (g(p))\n\t\treturn -1;\n\treturn 0;\n}\n", "return -1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn -1;\n\t}\n\treturn 0;\n}\n"
    );
    assert_eq!(
        after("int f(char *p)\n{\n\tif (g(p)) // why\n\t\tg(0); /* c */\n\treturn 0;\n}\n", "g(0);", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) { // why\n\t\tg(0); /* c */\n\t\tfree(p);\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn a_one_line_if_becomes_a_block() {
    assert_eq!(
        before("int f(char *p)\n{\n    if (g(p)) return -1;\n    return 0;\n}\n", "return -1;", "free(p);"),
        "int f(char *p)\n{\n    if (g(p)) {\n        free(p);\n        return -1;\n    }\n    return 0;\n}\n"
    );
    assert_eq!(
        before("int f(char *p)\n{\n\tif (g(p)) return 1; /* no */\n\treturn 0;\n}\n", "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn 1; /* no */\n\t}\n\treturn 0;\n}\n"
    );
    assert_eq!(
        before("int f(char *p)\n{\n\tif (g(p)) /* no */ return 1;\n\treturn 0;\n}\n", "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) { /* no */\n\t\tfree(p);\n\t\treturn 1;\n\t}\n\treturn 0;\n}\n"
    );
    assert_eq!(
        before("int f(char *p)\n{\n\tif (g(p)) return 1; g(p);\n\treturn 0;\n}\n", "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn 1;\n\t}\n\tg(p);\n\treturn 0;\n}\n"
    );
}

#[test]
fn one_line_blocks_stay_on_their_line() {
    assert_eq!(
        before("int f(char *p)\n{\n\tif (g(p)) { g(0); return 1; }\n\treturn 0;\n}\n", "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) { g(0); free(p); return 1; }\n\treturn 0;\n}\n"
    );
    assert_eq!(
        after("int f(char *p) { g(p); return 0; }\n", "g(p);", "free(p);"),
        "int f(char *p) { g(p); free(p); return 0; }\n"
    );
    assert_eq!(
        before("int f(char *p) { if (g(p)) return 1; return 0; }\n", "return 1;", "free(p);"),
        "int f(char *p) { if (g(p)) { free(p); return 1; } return 0; }\n"
    );
}

#[test]
fn else_branches_are_joined_as_the_file_does_it() {
    let text = "int f(char *p)\n{\n\tif (g(p))\n\t\treturn 1;\n\telse\n\t\treturn 2;\n}\n";
    assert_eq!(
        before(text, "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn 1;\n\t} else\n\t\treturn 2;\n}\n"
    );
    assert_eq!(
        before(text, "return 2;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p))\n\t\treturn 1;\n\telse {\n\t\tfree(p);\n\t\treturn 2;\n\t}\n}\n"
    );
    let line = "int f(char *p)\n{\n\tif (g(p)) return 1; else return 2;\n}\n";
    assert_eq!(
        before(line, "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn 1;\n\t} else return 2;\n}\n"
    );
    assert_eq!(
        before(line, "return 2;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) return 1; else { free(p); return 2; }\n}\n"
    );
    let comment = "int f(char *p)\n{\n\tif (g(p))\n\t\treturn 1;\n\t/* else */\n\telse\n\t\treturn 2;\n}\n";
    assert_eq!(
        before(comment, "return 1;", "free(p);"),
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn 1;\n\t}\n\t/* else */\n\telse\n\t\treturn 2;\n}\n"
    );
}

#[test]
fn else_if_chains() {
    let text = "int f(char *p, int n)\n{\n    if (n == 1) {\n        return 1;\n    } else if (n == 2)\n        return 2;\n    else\n        g(p);\n    return 0;\n}\n";
    assert_eq!(
        before(text, "return 2;", "free(p);"),
        "int f(char *p, int n)\n{\n    if (n == 1) {\n        return 1;\n    } else if (n == 2) {\n        free(p);\n        return 2;\n    } else\n        g(p);\n    return 0;\n}\n"
    );
    assert_eq!(
        before(text, "if (n == 2)\n        return 2;\n    else\n        g(p);", "free(p);"),
        "int f(char *p, int n)\n{\n    if (n == 1) {\n        return 1;\n    } else {\n        free(p);\n        if (n == 2)\n            return 2;\n        else\n            g(p);\n    }\n    return 0;\n}\n"
    );
}

#[test]
fn loops_and_their_bodies() {
    assert_eq!(
        before(
            "int f(char *p, int n)\n{\n\tfor (int i = 0; i < n; i++)\n\t\tg(p);\n\treturn 0;\n}\n",
            "g(p);",
            "free(p);"
        ),
        "int f(char *p, int n)\n{\n\tfor (int i = 0; i < n; i++) {\n\t\tfree(p);\n\t\tg(p);\n\t}\n\treturn 0;\n}\n"
    );
    assert_eq!(
        after("int f(char *p, int n)\n{\n\twhile (n--)\n\t\tg(p);\n\treturn 0;\n}\n", "g(p);", "free(p);"),
        "int f(char *p, int n)\n{\n\twhile (n--) {\n\t\tg(p);\n\t\tfree(p);\n\t}\n\treturn 0;\n}\n"
    );
    assert_eq!(
        after("int f(char *p, int n)\n{\n\tdo\n\t\tg(p);\n\twhile (n--);\n\treturn 0;\n}\n", "g(p);", "free(p);"),
        "int f(char *p, int n)\n{\n\tdo {\n\t\tg(p);\n\t\tfree(p);\n\t} while (n--);\n\treturn 0;\n}\n"
    );
    assert_eq!(
        after("int f(char *p, int n)\n{\n\twhile (n--) g(p);\n\treturn 0;\n}\n", "while (n--) g(p);", "free(p);"),
        "int f(char *p, int n)\n{\n\twhile (n--) g(p);\n\tfree(p);\n\treturn 0;\n}\n"
    );
}

#[test]
fn switch_cases() {
    let text = "int f(char *p, int n)\n{\n\tswitch (n) {\n\tcase 1: return 1;\n\tcase 2:\n\t\treturn 2;\n\tcase 3:\n\t\tg(p);\n\t\tbreak;\n\tdefault:\n\t\tbreak;\n\t}\n\treturn 0;\n}\n";
    assert!(before(text, "return 1;", "free(p);").contains("\tcase 1: free(p); return 1;\n"));
    assert!(before(text, "return 2;", "free(p);").contains("\tcase 2:\n\t\tfree(p);\n\t\treturn 2;\n"));
    assert!(after(text, "g(p);", "free(p);").contains("\t\tg(p);\n\t\tfree(p);\n\t\tbreak;\n"));
    assert!(before(text, "case 3:\n\t\tg(p);", "free(p);").contains("\t\tfree(p);\n\tcase 3:\n\t\tg(p);\n"));
    let function = function_in(text);
    let code = Snippet::lines(["int r = g(p);", "free(p);"]).declaring();
    let edits = function.insert_before(stmt(&function, "return 2;"), &code).unwrap();
    assert!(
        applied(&function, &edits)
            .contains("\tcase 2: {\n\t\tint r = g(p);\n\t\tfree(p);\n\t\treturn 2;\n\t}\n\tcase 3:\n")
    );
}

#[test]
fn labels() {
    let text = "int f(char *p)\n{\n\tint r = g(p);\n\tif (r)\n\t\tgoto out;\n\tg(0);\nout:\n\treturn r;\n}\n";
    assert_eq!(
        before(text, "return r;", "free(p);"),
        "int f(char *p)\n{\n\tint r = g(p);\n\tif (r)\n\t\tgoto out;\n\tg(0);\nout:\n\tfree(p);\n\treturn r;\n}\n"
    );
    assert_eq!(
        before(text, "out:\n\treturn r;", "free(p);"),
        "int f(char *p)\n{\n\tint r = g(p);\n\tif (r)\n\t\tgoto out;\n\tg(0);\n\tfree(p);\nout:\n\treturn r;\n}\n"
    );
    let function = function_in(text);
    let code = Snippet::line("int again = g(p);").declaring();
    let edits = function.insert_before(stmt(&function, "return r;"), &code).unwrap();
    assert!(applied(&function, &edits).contains("out: {\n\tint again = g(p);\n\treturn r;\n}\n}\n"));
    assert_eq!(
        before("int f(char *p)\n{\n\tg(p);\nout: return 0;\n\tgoto out;\n}\n", "return 0;", "free(p);"),
        "int f(char *p)\n{\n\tg(p);\nout: free(p); return 0;\n\tgoto out;\n}\n"
    );
}

#[test]
fn line_endings_missing_newline_and_foreign_bytes_survive() {
    assert_eq!(
        before("int f(char *p)\r\n{\r\n\tif (g(p))\r\n\t\treturn 1;\r\n\treturn 0;\r\n}", "return 1;", "free(p);"),
        "int f(char *p)\r\n{\r\n\tif (g(p)) {\r\n\t\tfree(p);\r\n\t\treturn 1;\r\n\t}\r\n\treturn 0;\r\n}"
    );
    let text = b"int f(char *p)\n{\n\tg(\"\xe9\"); /* \xff */\n\treturn 0;\n}\n";
    let function = function_in(text);
    let edits = function.insert_before(stmt(&function, "return 0;"), &Snippet::line("free(p);")).unwrap();
    let new = edits.apply(&function.file.path, &function.file.bytes).unwrap();
    assert_eq!(new, b"int f(char *p)\n{\n\tg(\"\xe9\"); /* \xff */\n\tfree(p);\n\treturn 0;\n}\n");
}

#[test]
fn brace_styles_are_kept() {
    let allman = "int f(char *p)\n{\n    if (g(p))\n    {\n        g(0);\n    }\n    if (g(0))\n        return 1;\n    else\n        return 2;\n}\n";
    assert!(
        before(allman, "return 1;", "free(p);").contains(
            "    if (g(0))\n    {\n        free(p);\n        return 1;\n    }\n    else\n        return 2;\n"
        )
    );
    let gnu =
        "int\nf (char *p)\n{\n  if (g (p))\n    {\n      g (0);\n    }\n  if (g (0))\n    return 1;\n  return 0;\n}\n";
    assert!(
        before(gnu, "return 1;", "free (p);")
            .contains("  if (g (0))\n    {\n      free (p);\n      return 1;\n    }\n  return 0;\n")
    );
}

#[test]
fn old_style_definitions() {
    assert_eq!(
        before("int f(p, n)\n\tchar *p;\n\tint n;\n{\n\tif (n) return 1;\n\treturn 0;\n}\n", "return 1;", "free(p);"),
        "int f(p, n)\n\tchar *p;\n\tint n;\n{\n\tif (n) {\n\t\tfree(p);\n\t\treturn 1;\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn a_statement_that_is_a_macro_has_neighbours_but_no_inside() {
    let text =
        "#define FAIL_IF(c) do { if (c) return 1; } while (0)\nint f(char *p)\n{\n\tFAIL_IF(g(p));\n\treturn 0;\n}\n";
    assert!(before(text, "FAIL_IF(g(p));", "free(p);").contains("\tfree(p);\n\tFAIL_IF(g(p));\n"));
    assert!(after(text, "FAIL_IF(g(p));", "free(p);").contains("\tFAIL_IF(g(p));\n\tfree(p);\n"));
    let function = function_in(text);
    let inside = function.stmts.iter_ids().filter(|(_, s)| matches!(s.kind, caulk_source::StmtKind::Return { .. }));
    let (inside, _) = inside.min_by_key(|(_, s)| s.span.start).unwrap();
    assert_eq!(function.insert_before(inside, &Snippet::line("free(p);")), Err(Refusal::InMacro("FAIL_IF".into())));
    let block = "#define SAFE(p) if (p) { free(p); p = 0; }\nint f(char *p)\n{\n\tSAFE(p);\n\treturn 0;\n}\n";
    assert!(after(block, "SAFE(p);", "g(p);").contains("\tSAFE(p);\n\tg(p);\n\treturn 0;\n"));
    let body = "#define RET return 1\nint f(char *p)\n{\n\tif (g(p))\n\t\tRET;\n\treturn 0;\n}\n";
    assert!(before(body, "RET;", "free(p);").contains("\tif (g(p)) {\n\t\tfree(p);\n\t\tRET;\n\t}\n"));
}

#[test]
fn loop_macros_have_bodies_that_can_be_edited() {
    let text = "#define each(i, n) for (int i = 0; i < n; i++)\nint f(char *p, int n)\n{\n\teach(i, n)\n\t\tg(p);\n\treturn 0;\n}\n";
    assert!(after(text, "g(p);", "free(p);").contains("\teach(i, n) {\n\t\tg(p);\n\t\tfree(p);\n\t}\n\treturn 0;\n"));
    assert!(before(text, "each(i, n)\n\t\tg(p);", "free(p);").contains("\tfree(p);\n\teach(i, n)\n\t\tg(p);\n"));
}

#[test]
fn statements_cut_by_a_macro_are_refused() {
    let hidden = "#define IF_EACH(i, n) if (n > 3) for (int i = 0; i < n; i++)\nint f(char *p, int n)\n{\n\tIF_EACH(i, n)\n\t\tg(p);\n\treturn 0;\n}\n";
    let function = function_in(hidden);
    let (inner, _) =
        function.stmts.iter_ids().find(|(_, s)| matches!(s.kind, caulk_source::StmtKind::For { .. })).unwrap();
    assert_eq!(function.insert_before(inner, &Snippet::line("g(p);")), Err(Refusal::InMacro("IF_EACH".into())));
    let argument = "#define RUN(code) do { code } while (0)\nint f(char *p)\n{\n\tRUN(g(p);)\n\t;\n\treturn 0;\n}\n";
    assert_eq!(refused_before(argument, "g(p);"), Refusal::InMacro("RUN".into()));
    let semicolon = "#define RET return 1;\nint f(char *p)\n{\n\tif (g(p))\n\t\tRET\n\treturn 0;\n}\n";
    assert!(before(semicolon, "RET", "free(p);").contains("\tif (g(p)) {\n\t\tfree(p);\n\t\tRET\n\t}\n"));
}

#[test]
fn a_semicolon_behind_an_empty_macro_has_nothing_before_it() {
    let text = "#define TRACE\nint f(char *p)\n{\n\tg(p);\n\tTRACE;\n\treturn 0;\n}\n";
    assert_eq!(refused_before(text, ";"), Refusal::InMacro("TRACE".into()));
    assert!(before(text, "return 0;", "free(p);").contains("\tTRACE;\n\tfree(p);\n\treturn 0;\n"));
}

#[test]
fn code_under_directives_is_edited_only_where_every_configuration_agrees() {
    let plain = "int f(char *p)\n{\n#ifdef A\n\tg(0);\n#endif\n\treturn 0;\n}\n";
    assert!(before(plain, "return 0;", "free(p);").contains("#endif\n\tfree(p);\n\treturn 0;\n"));
    let inside = "#define A\nint f(char *p)\n{\n#ifdef A\n\tif (g(p))\n\t\treturn 1;\n#endif\n\treturn 0;\n}\n";
    assert!(
        before(inside, "return 1;", "free(p);")
            .contains("#ifdef A\n\tif (g(p)) {\n\t\tfree(p);\n\t\treturn 1;\n\t}\n#endif\n")
    );
    let dangling = "int f(char *p)\n{\n#ifdef A\n\tif (g(p))\n#endif\n\t\treturn 1;\n\treturn 0;\n}\n";
    assert_eq!(refused_before(dangling, "return 1;"), Refusal::Conditional);
    let body = "#define A\nint f(char *p)\n{\n\tif (g(p))\n#ifdef A\n\t\treturn 1;\n#else\n\t\treturn 2;\n#endif\n\treturn 0;\n}\n";
    assert_eq!(refused_before(body, "return 1;"), Refusal::Conditional);
    let other =
        "int f(char *p)\n{\n\tif (g(p)) {\n\t\tg(0);\n\t}\n#ifdef A\n\telse\n\t\tg(p);\n#endif\n\treturn 0;\n}\n";
    let function = function_in(other);
    let target = stmt(&function, "if (g(p)) {\n\t\tg(0);\n\t}");
    assert_eq!(function.insert_after(target, &Snippet::line("free(p);")), Err(Refusal::Conditional));
}

#[test]
fn statement_expressions_and_generated_files_are_refused() {
    let value = "int f(char *p)\n{\n\tint r = ({\n\t\tg(p);\n\t\tg(0);\n\t});\n\treturn r;\n}\n";
    let function = function_in(value);
    let last = stmt(&function, "g(0);");
    assert_eq!(function.insert_after(last, &Snippet::line("free(p);")), Err(Refusal::StatementExpression));
    assert!(before(value, "g(0);", "free(p);").contains("\t\tg(p);\n\t\tfree(p);\n\t\tg(0);\n"));
    assert_eq!(
        refused_before("#line 1 \"gram.y\"\nint f(char *p)\n{\n\treturn g(p);\n}\n", "return g(p);"),
        Refusal::Generated
    );
}

#[test]
fn starts_and_ends_of_blocks() {
    let text = "int f(char *p)\n{\n\tint r;\n\n\tr = g(p);\n\tif (r) {\n\t}\n\tif (r) {}\n\treturn r;\n}\n";
    let function = function_in(text);
    let code = Snippet::line("free(p);");
    let start = function.insert_at_start(function.body, &code).unwrap();
    assert!(applied(&function, &start).contains("\tint r;\n\tfree(p);\n\n\tr = g(p);\n"));
    let end = function.insert_at_end(function.body, &code).unwrap();
    assert!(applied(&function, &end).contains("\treturn r;\n\tfree(p);\n}\n"));
    let empty = function.insert_at_end(stmt(&function, "{\n\t}"), &code).unwrap();
    assert!(applied(&function, &empty).contains("\tif (r) {\n\t\tfree(p);\n\t}\n\tif (r) {}\n"));
    let tight = function.insert_at_start(stmt(&function, "{}"), &code).unwrap();
    assert!(applied(&function, &tight).contains("\tif (r) {\n\t\tfree(p);\n\t}\n\treturn r;\n"));
}

#[test]
fn two_edits_of_one_statement_share_their_braces() {
    let text = "int f(char *p, char *q)\n{\n\tif (g(p)) return 1;\n\treturn 0;\n}\n";
    let function = function_in(text);
    let target = stmt(&function, "return 1;");
    let mut edits = function.insert_before(target, &Snippet::line("free(p);")).unwrap();
    edits.merge(&function.insert_before(target, &Snippet::line("free(q);")).unwrap());
    assert_eq!(
        applied(&function, &edits),
        "int f(char *p, char *q)\n{\n\tif (g(p)) {\n\t\tfree(p);\n\t\tfree(q);\n\t\treturn 1;\n\t}\n\treturn 0;\n}\n"
    );
}

#[test]
fn braces_of_nested_statements_nest() {
    let text = "int f(char *p, int n)\n{\n\tswitch (n) {\n\tcase 1:\n\tcase 2:\n\t\tg(p);\n\t}\n\treturn 0;\n}\n";
    let function = function_in(text);
    let outer = Snippet::line("int a = 1;").declaring();
    let inner = Snippet::line("int b = 2;").declaring();
    let mut edits = function.insert_before(stmt(&function, "case 2:\n\t\tg(p);"), &outer).unwrap();
    edits.merge(&function.insert_before(stmt(&function, "g(p);"), &inner).unwrap());
    applied(&function, &edits);
}

#[test]
fn a_macro_that_makes_several_statements_is_one_statement() {
    let text = "#define STATE int state; state = 0\nint f(char *p)\n{\n\tint n;\n\tSTATE;\n\n\tn = g(p);\n\treturn n + state;\n}\n";
    assert!(after(text, "STATE;", "free(p);").contains("\tSTATE;\n\tfree(p);\n\n\tn = g(p);\n"));
    assert!(before(text, "STATE;", "g(p);").contains("\tint n;\n\tg(p);\n\tSTATE;\n"));
    let single = "#define STATE int state = 0\nint f(char *p)\n{\n\tSTATE;\n\treturn state;\n}\n";
    assert!(after(single, "STATE;", "free(p);").contains("\tSTATE;\n\tfree(p);\n\treturn state;\n"));
}
