//! Conditional compilation as text: which `#if` branch a byte lies in, and what may come before it.
//!
//! ```text
//! #ifdef A
//!     if (foo)          // branch 1
//! #endif
//!         return -1;    // in no branch, but under A it is the body of the `if`
//! ```
//!
//! A statement inserted before that `return` would be right in one configuration and wrong in
//! the other. [`Regions::starts_statement`] therefore asks every configuration: the last token before
//! the place must end a statement in all branches that can precede it.

use crate::lex::{DirectiveKind, Lexed, Span, Token};

/// A branch of an `#if` group; 0 is the file itself.
type Branch = usize;

#[derive(Clone, Debug)]
struct Group {
    start: usize,
    end: usize,
    parent: Branch,
    /// Byte range of the text of each branch.
    branches: Vec<(usize, usize)>,
    has_else: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Regions {
    groups: Vec<Group>,
    /// From this offset on, this branch; sorted.
    changes: Vec<(usize, Branch)>,
}

impl Regions {
    pub fn new(lexed: &Lexed, length: usize) -> Self {
        let mut regions = Self::default();
        let mut open: Vec<(usize, Branch)> = Vec::new();
        let mut next_branch = 1;
        let mut current = 0;
        for directive in &lexed.directives {
            let (start, end) = (directive.span.start, directive.span.end);
            match directive.kind {
                DirectiveKind::If => {
                    open.push((regions.groups.len(), current));
                    regions.groups.push(Group {
                        start,
                        end: length,
                        parent: current,
                        branches: vec![(end, length)],
                        has_else: false,
                    });
                    current = next_branch;
                    next_branch += 1;
                }
                DirectiveKind::Elif | DirectiveKind::Else => {
                    let Some(&(group, _)) = open.last() else { continue };
                    let group = &mut regions.groups[group];
                    if let Some(last) = group.branches.last_mut() {
                        last.1 = start;
                    }
                    group.branches.push((end, length));
                    group.has_else |= directive.kind == DirectiveKind::Else;
                    current = next_branch;
                    next_branch += 1;
                }
                DirectiveKind::Endif => {
                    let Some((group, outer)) = open.pop() else { continue };
                    let group = &mut regions.groups[group];
                    if let Some(last) = group.branches.last_mut() {
                        last.1 = start;
                    }
                    group.end = end;
                    current = outer;
                }
                DirectiveKind::Line | DirectiveKind::Other => continue,
            }
            regions.changes.push((start, current));
        }
        regions
    }

    pub fn branch_at(&self, offset: usize) -> Branch {
        match self.changes.partition_point(|&(from, _)| from <= offset) {
            0 => 0,
            n => self.changes[n - 1].1,
        }
    }

    /// Whether both places are compiled under the same conditions.
    pub fn same_branch(&self, a: usize, b: usize) -> bool {
        self.branch_at(a) == self.branch_at(b)
    }

    /// Whether whatever condition `outer` lies under holds at `offset`, too.
    pub fn is_under(&self, offset: usize, outer: usize) -> bool {
        self.groups.iter().flat_map(|group| &group.branches).all(|&(start, end)| {
            let holds = |at: usize| (start..end).contains(&at);
            !holds(outer) || holds(offset)
        })
    }

    /// Whether the two places lie in branches of one `#if` of which never more than one is compiled.
    pub fn never_together(&self, a: usize, b: usize) -> bool {
        self.groups.iter().any(|group| {
            let branch = |at: usize| group.branches.iter().position(|&(start, end)| (start..end).contains(&at));
            branch(a).zip(branch(b)).is_some_and(|(a, b)| a != b)
        })
    }

    /// Whether a conditional directive lies between the two places.
    pub fn directive_between(&self, a: usize, b: usize) -> bool {
        let (low, high) = (a.min(b), a.max(b));
        self.changes.iter().any(|&(at, _)| low <= at && at < high)
    }

    /// Whether the place is compiled in every configuration; the guard around a whole header is none.
    pub fn is_unconditional(&self, offset: usize) -> bool {
        let around = |group: &&Group| (group.start..group.end).contains(&offset);
        self.groups.iter().filter(around).all(|group| group.branches.len() == 1 && group.start == 0)
    }

    /// Texts under a condition inside `within`, apart from those that are never compiled together with `offset`.
    pub fn branches_beside(&self, within: Span, offset: usize) -> Vec<Span> {
        let apart = |group: &&Group| within.contains(group.start) && !(group.start..group.end).contains(&offset);
        let branches = self.groups.iter().filter(apart).flat_map(|group| &group.branches);
        branches.map(|&(start, end)| Span::new(start, end)).collect()
    }

    /// Whether a statement could start at `offset` whatever the configuration.
    pub fn starts_statement(&self, lexed: &Lexed, offset: usize, ends: &dyn Fn(&Token) -> bool) -> bool {
        self.precedes(lexed, offset, 0, ends, 0)
    }

    /// Walks back from `offset`, not below `floor`; an empty branch defers to what lies before it.
    fn precedes(
        &self,
        lexed: &Lexed,
        offset: usize,
        floor: usize,
        ends: &dyn Fn(&Token) -> bool,
        depth: usize,
    ) -> bool {
        if depth > 64 {
            return false;
        }
        let count = lexed.tokens.partition_point(|token| token.span.end <= offset);
        let token = count.checked_sub(1).map(|n| &lexed.tokens[n]).filter(|token| token.span.start >= floor);
        let token_end = token.map_or(floor, |token| token.span.end);
        // The last group that ends between the token and here, and the innermost branch that starts there.
        let closed = self.groups.iter().filter(|g| g.end <= offset && g.end > token_end).max_by_key(|g| g.end);
        if let Some(group) = closed {
            let before = self.precedes(lexed, group.start, floor, ends, depth + 1);
            return (group.has_else || before)
                && group.branches.iter().all(|&(start, end)| {
                    let empty = !lexed.tokens.iter().any(|t| t.span.start >= start && t.span.end <= end);
                    if empty { before } else { self.precedes(lexed, end, start, ends, depth + 1) }
                });
        }
        let opened = self
            .groups
            .iter()
            .filter(|g| {
                g.start >= floor
                    && g.branches.iter().any(|&(start, end)| start >= token_end && start <= offset && offset <= end)
            })
            .max_by_key(|g| g.start);
        if let Some(group) = opened {
            return self.precedes(lexed, group.start, floor, ends, depth + 1);
        }
        token.is_none_or(ends)
    }

    /// Whether `else` may follow `offset` in some configuration.
    pub fn else_may_follow(&self, lexed: &Lexed, bytes: &[u8], offset: usize) -> bool {
        let first = lexed.tokens.partition_point(|token| token.span.start < offset);
        let is_else = |token: &Token| bytes.get(token.span.start..token.span.end) == Some(b"else");
        let Some(next) = lexed.tokens.get(first) else { return false };
        if is_else(next) {
            return true;
        }
        // Each branch that opens before the next token, and what follows its group.
        self.groups
            .iter()
            .filter(|g| g.start >= offset && g.start <= next.span.start && g.parent == self.branch_at(offset))
            .any(|g| {
                g.branches.iter().map(|&(start, _)| start).chain([g.end]).any(|from| {
                    let n = lexed.tokens.partition_point(|token| token.span.start < from);
                    lexed.tokens.get(n).is_some_and(is_else)
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::lex;

    fn starts(text: &str, marker: &str) -> bool {
        let lexed = lex(text.as_bytes());
        let regions = Regions::new(&lexed, text.len());
        let ends = |token: &Token| [b';', b'{', b'}', b':'].iter().any(|&punct| token.is(punct));
        regions.starts_statement(&lexed, text.find(marker).unwrap_or(0), &ends)
    }

    #[test]
    fn a_statement_starts_only_where_every_configuration_says_so() {
        assert!(starts("{ a; HERE; }", "HERE"));
        assert!(!starts("if (a) HERE;", "HERE"));
        assert!(!starts("{ a;\n#ifdef A\nif (b)\n#endif\nHERE; }", "HERE"));
        assert!(starts("{ a;\n#ifdef A\nb;\n#endif\nHERE; }", "HERE"));
        assert!(!starts("{\n#ifdef A\nif (a) {\n#else\nif (b)\n#endif\nHERE; }", "HERE"));
        assert!(starts("{ a;\n#ifdef A\nHERE;\n#endif\n }", "HERE"));
        assert!(starts("{ a;\n#ifdef A\nif (x)\n#else\nHERE;\n#endif\n }", "HERE"));
        assert!(!starts("{ if (a)\n#ifdef A\nb;\n#else\nHERE;\n#endif\n }", "HERE"));
        assert!(!starts("{ if (a)\n#ifdef A\n#endif\nHERE; }", "HERE"));
    }

    #[test]
    fn branches_of_one_condition_exclude_each_other() {
        let text = "#ifdef A\na\n#ifdef B\nb\n#endif\n#elif C\nc\n#else\nd\n#endif\ne";
        let regions = Regions::new(&lex(text.as_bytes()), text.len());
        let at = |marker: &str| text.find(&format!("\n{marker}")).map_or(0, |at| at + 1);
        let apart = |one: &str, other: &str| regions.never_together(at(one), at(other));
        assert!(apart("a", "c") && apart("b", "c") && apart("c", "d") && apart("d", "b"));
        assert!(!apart("a", "b") && !apart("a", "e") && !apart("e", "d") && !apart("c", "c"));
    }

    #[test]
    fn an_else_behind_a_directive_is_seen() {
        let text = "{ if (a) { b; }\n#ifdef A\nelse c;\n#endif\nd; }";
        let lexed = lex(text.as_bytes());
        let regions = Regions::new(&lexed, text.len());
        let end_of_if = text.find("}\n").map_or(0, |at| at + 1);
        assert!(regions.else_may_follow(&lexed, text.as_bytes(), end_of_if));
        assert!(!regions.else_may_follow(&lexed, text.as_bytes(), text.find("d;").map_or(0, |at| at + 2)));
    }
}
