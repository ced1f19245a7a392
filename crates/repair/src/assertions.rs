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

use caulk_source::{FileText, FunctionSource, Span, Token};

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
    for (at, token) in tokens.iter().enumerate() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.is(b'('));
        if !opens || file.slice(token.span) != ASSERT {
            continue;
        }
        bytes[token.span.start..token.span.end].copy_from_slice(UNEVALUATED);
        // A member may be a bit-field, which has no size: `sizeof!p->ready ` is that of a truth, and as long.
        if let Some(end) = member_alone(file, &tokens[at + 2..]) {
            bytes[tokens[at + 1].span.start] = b'!';
            bytes[end.span.start] = b' ';
        }
    }
    bytes
}

/// The closing bracket behind `p->ready` or `state.open.first`, if nothing else stands before it.
fn member_alone<'t>(file: &FileText, tokens: &'t [Token]) -> Option<&'t Token> {
    let end = tokens.iter().position(|token| token.is(b')'))?;
    let plain = |token: &Token| {
        let text = file.slice(token.span);
        text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'>' | b'.'))
    };
    let begins = tokens.first().is_some_and(|first| file.slice(first.span)[0].is_ascii_alphabetic());
    let arrow = |pair: &[Token]| pair[0].is(b'-') && pair[1].is(b'>') || file.slice(pair[0].span) == b"->";
    let is_minus = |at: usize| tokens[at].is(b'-') && !tokens.get(at + 1).is_some_and(|next| next.is(b'>'));
    let is_greater = |at: usize| tokens[at].is(b'>') && !(at > 0 && tokens[at - 1].is(b'-'));
    let member = tokens[..end].windows(2).any(|pair| arrow(pair) || pair[0].is(b'.'));
    let other = (0..end).any(|at| is_minus(at) || is_greater(at));
    (begins && member && !other && tokens[..end].iter().all(plain)).then(|| &tokens[end])
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

    #[test]
    fn a_bit_has_no_size() {
        let of =
            |text: &str| String::from_utf8_lossy(&left_out(&FileText::new("a.c".into(), text.into()))).into_owned();
        assert_eq!(of("assert(p->two.ready);"), "sizeof!p->two.ready ;");
        assert_eq!(of("assert(p->n > q->n);"), "sizeof(p->n > q->n);");
        assert_eq!(of("assert(p->n - q.n);"), "sizeof(p->n - q.n);");
        assert_eq!(of("assert(f(p->n));"), "sizeof(f(p->n));");
    }
}
