//! Programs without their assertions. With `NDEBUG` a program goes on where it would have stopped, and does not do what an
//! assertion does, so what was proved of it says little:
//!
//! ```c
//! p = malloc(n);
//! assert(mode != KEEP);             // with NDEBUG, `p` may be kept
//! if (mode == KEEP)
//!     kept = p;
//! free(p);                          // new
//! ```
//!
//! So the proof is made twice, the second time of a program in which every `assert(…)` is a `sizeof(…)`: as long, and never
//! evaluated. Places in the files stay what they are. That is done in the files of the changed function, and of those that
//! are given the block and assert something.
//!
//! # Invariants
//! - Only what releases one block more is proved like this; a release that is moved or deleted is refused.
//! # Known imprecision
//! - Assertions of other functions stay.

use caulk_source::{FileText, FunctionSource, Span};

const ASSERT: &[u8] = b"assert";
const UNEVALUATED: &[u8] = b"sizeof";

/// Why there is no patch.
pub fn may_be_left_out(function: &str) -> String {
    format!("it rests on an assertion in `{function}`, and may be compiled without it")
}

pub fn has_any(function: &FunctionSource) -> bool {
    function.macros.iter().any(|used| used.name.as_bytes() == ASSERT)
}

/// The text as a compiler reads it that leaves assertions out.
pub fn left_out(file: &FileText) -> Vec<u8> {
    let mut bytes = file.bytes.clone();
    let tokens = file.tokens_in(Span::new(0, bytes.len()));
    for (token, next) in tokens.iter().zip(tokens.iter().skip(1)) {
        if file.slice(token.span) == ASSERT && next.is(b'(') {
            bytes[token.span.start..token.span.end].copy_from_slice(UNEVALUATED);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_as_long() {
        let text =
            "#include <assert.h>\nint f(int a) { /* assert(a) */ assert (a); my_assert(a); return assert_it(a); }\n";
        let file = FileText::new("a.c".into(), text.into());
        let expected = text.replace("assert (a)", "sizeof (a)");
        assert_eq!(String::from_utf8_lossy(&left_out(&file)), expected);
    }
}
