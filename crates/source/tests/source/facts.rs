//! What the author already does.

use super::{function_in, stmt};

#[test]
fn comments_near_a_statement() {
    let text = "/* about f */\nint f(char *p)\n{\n\t/* first */\n\t/* leaked on\n\t * purpose */\n\tp = malloc(3); // here\n\n\t/* far */\n\n\tg(p);\n\treturn 0;\n}\n";
    let function = function_in(text);
    assert_eq!(
        function.comments_near(stmt(&function, "p = malloc(3);")),
        ["/* first */", "/* leaked on\n\t * purpose */", "// here"]
    );
    assert!(function.comments_near(stmt(&function, "g(p);")).is_empty());
    assert_eq!(function.comment_near(text.find("malloc").unwrap()).len(), 3);
    assert_eq!(function.function_comments(), ["/* about f */"]);
}

#[test]
fn cleanup_labels_and_releases() {
    let text = "void node_free(void *);\nint f(char *p)\n{\n\tint ret = -1;\n\tchar *q = malloc(1);\n\tif (!q)\n\t\tgoto out;\n\tif (g(q))\n\t\tgoto free_q;\n\tret = 0;\nfree_q:\n\tnode_free(q);\nout:\n\tfree(p);\n\treturn ret;\n}\n";
    let function = function_in(text);
    let labels = function.cleanup_labels();
    let summary: Vec<_> =
        labels.iter().map(|l| (l.name.as_str(), l.stmts.len(), l.jumps.len(), l.ends_in.is_some())).collect();
    assert_eq!(summary, [("free_q", 3, 1, true), ("out", 2, 1, true)]);
    let releases: Vec<_> = function.releases_of("q").into_iter().map(|(name, _)| name).collect();
    assert_eq!(releases, ["node_free"]);
    let calls = function.calls_of_any(&["free", "node_free"]);
    let texts: Vec<_> = calls.iter().map(|id| function.text(function.calls[*id].span)).collect();
    assert_eq!(texts, ["node_free(q)", "free(p)"]);
}
