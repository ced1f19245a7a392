//! The statements of a generated program, and their text in one of several styles.
//!
//! Statements that matter for memory are marked, so that [`crate::mutate`] can take them away, double or move
//! them; everything else is text.

/// How one program is written down.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub unit: &'static str,
    /// `{` on a line of its own.
    pub allman: bool,
    /// Bodies of one statement: 0 with braces, 1 on the next line, 2 on the same line.
    pub short_bodies: u8,
    pub crlf: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    /// Anything without a meaning for mutations.
    Plain(String),
    /// Releases what `var` points to.
    Free {
        text: String,
        var: String,
    },
    /// `var = NULL;`
    Clear {
        var: String,
    },
    /// Reads through `var`, guarded against NULL.
    Use {
        text: String,
        var: String,
    },
    If {
        cond: String,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Loop {
        head: String,
        body: Vec<Stmt>,
    },
    Switch {
        selector: String,
        arms: Vec<Vec<Stmt>>,
    },
    /// An insertion that can fail: `if (insert < 0) free`.
    Insert {
        call: String,
        value: String,
        free: String,
        checked: bool,
    },
    /// `result = call; free; return result;`, or just `return call;`.
    ReturnCall {
        result: String,
        call: String,
        free: Vec<Stmt>,
        direct: bool,
    },
    Label(String),
}

#[derive(Clone, Debug)]
pub struct Function {
    /// Up to and with the closing parenthesis.
    pub head: String,
    pub body: Vec<Stmt>,
}

impl Stmt {
    pub fn plain(text: impl Into<String>) -> Self {
        Stmt::Plain(text.into())
    }

    /// The blocks below this statement.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            Stmt::If { then, otherwise, .. } => vec![then, otherwise],
            Stmt::Loop { body, .. } => vec![body],
            Stmt::Switch { arms, .. } => arms.iter_mut().collect(),
            Stmt::ReturnCall { free, .. } => vec![free],
            _ => Vec::new(),
        }
    }
}

pub fn render(prelude: &str, functions: &[Function], style: Style) -> String {
    let mut text = prelude.to_string();
    for function in functions {
        text.push('\n');
        text.push_str(&function.head);
        text.push_str("\n{\n");
        block(&mut text, &function.body, 1, style);
        text.push_str("}\n");
    }
    if style.crlf { text.replace('\n', "\r\n") } else { text }
}

fn block(text: &mut String, stmts: &[Stmt], depth: usize, style: Style) {
    for stmt in stmts {
        statement(text, stmt, depth, style);
    }
}

fn line(text: &mut String, depth: usize, style: Style, content: &str) {
    for _ in 0..depth {
        text.push_str(style.unit);
    }
    text.push_str(content);
    text.push('\n');
}

fn statement(text: &mut String, stmt: &Stmt, depth: usize, style: Style) {
    match stmt {
        Stmt::Plain(content) | Stmt::Free { text: content, .. } | Stmt::Use { text: content, .. } => {
            line(text, depth, style, content);
        }
        Stmt::Clear { var } => line(text, depth, style, &format!("{var} = NULL;")),
        Stmt::Label(name) => line(text, 0, style, &format!("{name}:")),
        Stmt::If { cond, then, otherwise } => {
            let bare_then = body(text, &format!("if ({cond})"), then, depth, style, false);
            if !otherwise.is_empty() {
                let joined = !bare_then && !style.allman;
                body(text, "else", otherwise, depth, style, joined);
            }
        }
        Stmt::Loop { head, body: inner } => {
            body(text, head, inner, depth, style, false);
        }
        Stmt::Switch { selector, arms } => {
            line(text, depth, style, &format!("switch ({selector}) {{"));
            for (number, arm) in arms.iter().enumerate() {
                let last = number + 1 == arms.len();
                let label = if last { "default:".into() } else { format!("case {number}:") };
                line(text, depth, style, &label);
                block(text, arm, depth + 1, style);
                line(text, depth + 1, style, "break;");
            }
            line(text, depth, style, "}");
        }
        Stmt::Insert { call, value, free, checked } => {
            let call = call.replace("$", value);
            if *checked {
                let then = [Stmt::plain(free.clone())];
                body(text, &format!("if ({call} < 0)"), &then, depth, style, false);
            } else {
                line(text, depth, style, &format!("{call};"));
            }
        }
        Stmt::ReturnCall { result, call, free, direct } => {
            if *direct {
                line(text, depth, style, &format!("return {call};"));
            } else {
                line(text, depth, style, &format!("{result} = {call};"));
                block(text, free, depth, style);
                line(text, depth, style, &format!("return {result};"));
            }
        }
    }
}

/// A head with its body; says whether the body went without braces.
fn body(text: &mut String, head: &str, stmts: &[Stmt], depth: usize, style: Style, joined: bool) -> bool {
    let single = matches!(stmts, [Stmt::Plain(_) | Stmt::Free { .. } | Stmt::Use { .. } | Stmt::Clear { .. }]);
    // A one-line `if` inside a `Plain` would take the following `else`.
    let safe = single
        && !matches!(stmts, [Stmt::Plain(content) | Stmt::Use { text: content, .. }] if content.starts_with("if"));
    if safe && style.short_bodies > 0 {
        let mut inner = String::new();
        statement(&mut inner, &stmts[0], 0, style);
        if style.short_bodies == 1 {
            line(text, depth, style, head);
            line(text, depth + 1, style, inner.trim_end());
        } else {
            line(text, depth, style, &format!("{head} {}", inner.trim_end()));
        }
        return true;
    }
    if style.allman {
        line(text, depth, style, head);
        line(text, depth, style, "{");
    } else if joined && text.ends_with("}\n") {
        text.truncate(text.len() - 1);
        text.push_str(&format!(" {head} {{\n"));
    } else {
        line(text, depth, style, &format!("{head} {{"));
    }
    block(text, stmts, depth + 1, style);
    line(text, depth, style, "}");
    false
}
