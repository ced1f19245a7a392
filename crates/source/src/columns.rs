//! Declarations in columns, as some authors write them.
//!
//! ```c
//! struct environ          *env = NULL;
//! int                      argc;
//! char                    *text = NULL;    // not `char *text = NULL;`
//! ```
//!
//! # Invariants
//! - Only white space between the type and the name changes.
//! - What no neighbour does is not done: the block's own declarations decide, and where it has none, the function's first ones.

use crate::syntax::{FunctionSource, StmtId, StmtKind};

const TAB: usize = 8;

/// How a neighbour's name stands behind its type.
struct Gap {
    /// Where the tabs end, counted from the type's first letter.
    column: usize,
    is_pointer: bool,
    /// A blank behind the tabs, where the stars of others are.
    blank: bool,
}

impl FunctionSource {
    /// The declaration as its neighbours in a block are written.
    pub(crate) fn in_columns(&self, block: StmtId, declaration: &str) -> String {
        let gaps = match self.gaps(block) {
            gaps if gaps.is_empty() => self.gaps(self.body),
            gaps => gaps,
        };
        let tabbed: Vec<&Gap> = gaps.iter().flatten().collect();
        let Some((kind, name)) = split(declaration).filter(|_| tabbed.len() * 2 > gaps.len()) else {
            return declaration.to_string();
        };
        let column = tabbed.iter().map(|gap| gap.column).max().unwrap_or_default();
        let tabs = column.saturating_sub(kind.len()).div_ceil(TAB).max(1);
        let blank = !name.starts_with('*') && tabbed.iter().any(|gap| gap.blank && !gap.is_pointer);
        format!("{kind}{}{}{name}", "\t".repeat(tabs), if blank { " " } else { "" })
    }

    /// Of each declaration right in a block: its gap, if there are tabs in it.
    fn gaps(&self, block: StmtId) -> Vec<Option<Gap>> {
        let StmtKind::Compound { items } = &self.stmts[block].kind else { return Vec::new() };
        let declarations = items.iter().filter(|item| matches!(self.stmts[**item].kind, StmtKind::Decl { .. }));
        declarations.map(|item| gap(&self.text(self.stmts[*item].span))).collect()
    }
}

/// `char`, `*text = NULL;`
fn split(declaration: &str) -> Option<(&str, &str)> {
    let end = declaration.find(['=', ',', ';', '[', '(']).unwrap_or(declaration.len());
    let head = declaration[..end].trim_end();
    let name = head.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_')? + 1;
    let stars = head[..name].trim_end_matches('*').len();
    let kind = head[..stars].trim_end();
    (!kind.is_empty()).then(|| (kind, &declaration[stars..]))
}

fn gap(declaration: &str) -> Option<Gap> {
    let (kind, name) = split(declaration)?;
    let between = &declaration[kind.len()..declaration.len() - name.len()];
    if !between.starts_with('\t') || kind.contains('\t') {
        return None;
    }
    let tabs = between.bytes().filter(|byte| *byte == b'\t').count();
    let column = (kind.len() / TAB + tabs) * TAB;
    Some(Gap { column, is_pointer: name.starts_with('*'), blank: between.ends_with(' ') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_has_a_type_and_a_name() {
        assert_eq!(split("char *text = NULL;"), Some(("char", "*text = NULL;")));
        assert_eq!(split("struct node **list, *next;"), Some(("struct node", "**list, *next;")));
        assert_eq!(split("int\t\t\t old[2];"), Some(("int", "old[2];")));
        assert_eq!(split("name;"), None);
    }

    #[test]
    fn tabs_end_at_a_column() {
        let column = |text: &str| gap(text).map(|gap| (gap.column, gap.blank));
        assert_eq!(column("struct environ\t\t*env = NULL;"), Some((24, false)));
        assert_eq!(column("int\t\t\t argc;"), Some((24, true)));
        assert_eq!(column("char *text;"), None);
    }
}
