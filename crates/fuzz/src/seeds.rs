//! Sound inputs to start from.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::targets::Target;

/// A bit of everything the lowering has to deal with.
const PROGRAM: &str = r#"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char *text; unsigned kind : 3; union { int i; double d; } u; };
static struct node *head;
static int (*const table[])(const char *) = { puts, 0 };
static int push(const char *text) {
    struct node *node = calloc(1, sizeof *node);
    if (!node || !(node->text = strdup(text))) { free(node); return -1; }
    node->next = head; head = node; node->kind = 5;
    return table[0](text);
}
static int sum(int n, ...) {
    va_list list; int total = 0;
    va_start(list, n);
    while (n--) total += va_arg(list, int);
    va_end(list);
    return total;
}
int main(int argc, char **argv) {
    char buffer[argc + 1]; _Atomic int count = 0;
    static void *labels[] = { &&one, &&two };
    memset(buffer, 0, sizeof buffer);
    for (int i = 0; i < argc; i++) count += push(argv[i]);
    switch (argc) { case 0 ... 3: goto *labels[argc & 1]; case 7: return 7; default: break; }
one: __asm__ volatile("" ::: "memory");
two: while (head) { struct node *next = head->next; free(head->text); free(head); head = next; }
    return sum(2, count, 1);
}
"#;

const DATABASE: &str = r#"[
  {"directory": "/project/build", "command": "gcc -DNAME=\"a b\" -I../include -c ../src/a.c -o a.o", "file": "../src/a.c"},
  {"directory": "/project", "arguments": ["cc", "-O2", "@flags.rsp", "-c", "b.c"], "file": "b.c", "output": "b.o"}
]"#;

const CONFIGURATION: &str = r#"
[models.families]
memory = { memory = true, release = "free" }
arena = { noun = "arena", release = "arena_free", handle = "opaque" }
[models.functions]
arena_new = { allocates = "arena", fails = "null" }
arena_free = { releases = "arena, not null" }
arena_dup = { allocates = "memory at *0", takes = "1 on success", fails = "negative" }
arena_copy = { like = "arena_dup" }
arena_move = { stores = "1 into 0", writes = "2..", returns = ["0", "into 1"] }
"#;

/// The inputs that are damaged. For bitcode they are made by clang 19.
pub(crate) fn seeds(target: Target) -> Result<Vec<Vec<u8>>> {
    match target {
        Target::Models => Ok(vec![CONFIGURATION.into(), b"[models]\n".to_vec()]),
        Target::Database => Ok(vec![DATABASE.into(), b"[]".to_vec()]),
        Target::Bitcode => Ok(vec![bitcode(PROGRAM)?, bitcode("int f(int *p) { return p ? *p : -1; }\n")?]),
    }
}

fn bitcode(program: &str) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let (source, output) = (folder.path().join("seed.c"), folder.path().join("seed.bc"));
    std::fs::write(&source, program)?;
    let clang = std::env::var_os("CAULK_CLANG").unwrap_or_else(|| "clang-19".into());
    let flags = ["-c", "-emit-llvm", "-O0", "-g", "-Xclang", "-disable-O0-optnone", "-w", "-o"];
    let ran = Command::new(clang).args(flags).arg(&output).arg(&source).output().context("cannot run clang-19")?;
    if !ran.status.success() {
        bail!("clang-19 does not compile the seed: {}", String::from_utf8_lossy(&ran.stderr));
    }
    Ok(std::fs::read(output)?)
}
