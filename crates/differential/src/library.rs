//! The hand-written functions that every generated program shares: constructors, destructors, containers.
//!
//! They are statements like all others: mutations break them, too.

use crate::rng::Rng;
use crate::tree::{Function, Stmt};

pub const TYPES: &str = r"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELEASE(p) \
    do { \
        free(p); \
        (p) = NULL; \
    } while (0)

#define FAIL_IF(condition) \
    do { \
        if (condition) { \
            rc = -1; \
            goto out; \
        } \
    } while (0)

struct node {
    int value;
    char *name;
    struct node *next;
};

struct list {
    struct node *head;
    int count;
};

struct box {
    struct node *item;
    int puts;
};

static unsigned input;

static int bit(int n) { return (int)((input >> n) & 1u); }
";

fn function(head: &str, body: Vec<Stmt>) -> Function {
    Function { head: format!("static {head}"), body }
}

fn plain(text: &str) -> Stmt {
    Stmt::plain(text)
}

fn free(text: &str, var: &str) -> Stmt {
    Stmt::Free { text: text.into(), var: var.into() }
}

fn when(cond: &str, then: Vec<Stmt>) -> Stmt {
    Stmt::If { cond: cond.into(), then, otherwise: Vec::new() }
}

/// The functions in order of use. Without names, nodes have no inner object and plain `free` releases them.
/// The input's bit `full` makes containers refuse.
pub fn functions(rng: &mut Rng, names: bool, full: usize) -> Vec<Function> {
    let mut all = vec![node_show(), node_new()];
    if names {
        all.extend([node_free(), node_named(rng)]);
    }
    all.extend([list_push(rng, full), list_clear(rng, names), node_make(names), box_put(rng, names, full), text_new()]);
    all
}

/// Takes every path of the functions above, so that what is wrong with them shows when the program runs. Only the
/// compiler of the runs sees it.
pub fn exercise(names: bool) -> Function {
    let release = node_release(names);
    let fresh = plain(&format!("struct node *n = {};", node_construct(names, 4, "x")));
    let fill = |call: &str| Stmt::Loop {
        head: "for (int i = 0; i < 5; i++)".into(),
        body: vec![
            fresh.clone(),
            plain("node_show(n);"),
            when(&format!("{call} < 0"), vec![plain(&format!("{release}(n);"))]),
        ],
    };
    let make = |value: u32| {
        let free = plain(&format!("{release}(made{value});"));
        [
            plain(&format!("struct node *made{value} = NULL;")),
            when(&format!("node_make(&made{value}, {value}) == 0"), vec![free]),
        ]
    };
    let mut body = vec![
        plain("struct list list = { NULL, 0 };"),
        fill("list_push(&list, n)"),
        plain("list_clear(&list);"),
        plain("struct box box = { NULL, 0 };"),
        fill("box_put(&box, n)"),
        plain(&format!("{release}(box.item);")),
    ];
    body.extend(make(5));
    body.extend(make(61));
    body.extend([plain("char *s = text_new(3);"), plain("free(s);")]);
    Function { head: "#ifdef EXERCISE\nstatic void exercise(void)".into(), body }
}

/// How a node is released.
pub fn node_release(names: bool) -> &'static str {
    if names { "node_free" } else { "free" }
}

/// A constructor call.
pub fn node_construct(names: bool, value: usize, name: &str) -> String {
    if names { format!("node_named({value}, \"{name}\")") } else { format!("node_new({value})") }
}

fn node_new() -> Function {
    function(
        "struct node *node_new(int value)",
        vec![
            plain("struct node *n = malloc(sizeof(*n));"),
            when("n == NULL", vec![plain("return NULL;")]),
            plain("n->value = value;"),
            plain("n->name = NULL;"),
            plain("n->next = NULL;"),
            plain("return n;"),
        ],
    )
}

fn node_free() -> Function {
    function(
        "void node_free(struct node *n)",
        vec![when("n == NULL", vec![plain("return;")]), free("free(n->name);", "n->name"), free("free(n);", "n")],
    )
}

/// The second allocation of a constructor fails: the first must go.
fn node_named(rng: &mut Rng) -> Function {
    let release = if rng.percent(50) { free("free(n);", "n") } else { free("node_free(n);", "n") };
    function(
        "struct node *node_named(int value, const char *name)",
        vec![
            plain("struct node *n = node_new(value);"),
            when("!n", vec![plain("return NULL;")]),
            plain("n->name = strdup(name);"),
            when("!n->name", vec![release, plain("return NULL;")]),
            plain("return n;"),
        ],
    )
}

fn node_show() -> Function {
    function(
        "int node_show(const struct node *n)",
        vec![
            when("!n", vec![plain("printf(\"none\\n\");"), plain("return 0;")]),
            plain("printf(\"%d %s\\n\", n->value, n->name ? n->name : \"-\");"),
            plain("return n->value;"),
        ],
    )
}

/// Stores the item, or fails and leaves it with the caller.
fn list_push(rng: &mut Rng, full: usize) -> Function {
    let mut body = if rng.percent(50) {
        vec![when(&format!("n == NULL || bit({full})"), vec![plain("return -1;")])]
    } else {
        vec![when("!n", vec![plain("return -1;")]), when(&format!("bit({full})"), vec![plain("return -2;")])]
    };
    body.extend([plain("n->next = l->head;"), plain("l->head = n;"), plain("l->count++;"), plain("return 0;")]);
    function("int list_push(struct list *l, struct node *n)", body)
}

fn list_clear(rng: &mut Rng, names: bool) -> Function {
    let release = free(&format!("{}(n);", node_release(names)), "n");
    let drain = if rng.percent(50) {
        vec![Stmt::Loop {
            head: "while (l->head != NULL)".into(),
            body: vec![plain("struct node *n = l->head;"), plain("l->head = n->next;"), release],
        }]
    } else {
        vec![
            plain("struct node *n = l->head;"),
            Stmt::Loop {
                head: "while (n)".into(),
                body: vec![plain("struct node *next = n->next;"), release, plain("n = next;")],
            },
            plain("l->head = NULL;"),
        ]
    };
    let mut body = drain;
    body.push(plain("l->count = 0;"));
    function("void list_clear(struct list *l)", body)
}

fn node_make(names: bool) -> Function {
    let made = if names { "node_named(value, \"made\")" } else { "node_new(value)" };
    let release = free(&format!("{}(n);", node_release(names)), "n");
    function(
        "int node_make(struct node **out, int value)",
        vec![
            plain(&format!("struct node *n = {made};")),
            when("n == NULL", vec![plain("return -1;")]),
            when("value > 60", vec![release, plain("return -1;")]),
            plain("*out = n;"),
            plain("return 0;"),
        ],
    )
}

/// Replaces what the box owns.
fn box_put(rng: &mut Rng, names: bool, full: usize) -> Function {
    let refuse = rng.percent(60);
    let mut body = Vec::new();
    if refuse {
        body.push(when(&format!("bit({full})"), vec![plain("return -1;")]));
    }
    body.extend([
        free(&format!("{}(b->item);", node_release(names)), "b->item"),
        plain("b->item = n;"),
        plain("b->puts++;"),
        plain("return 0;"),
    ]);
    function("int box_put(struct box *b, struct node *n)", body)
}

fn text_new() -> Function {
    function(
        "char *text_new(int seed)",
        vec![
            plain("char *s = malloc(8);"),
            when("s == NULL", vec![plain("return NULL;")]),
            plain("s[0] = (char)('a' + seed % 26);"),
            plain("s[1] = '\\0';"),
            plain("return s;"),
        ],
    )
}
