//! From a type's spelling to a declaration of a variable.

use crate::error::Refusal;

/// `char *` and `tmp` make `char *tmp`; `int (*)(void)` makes `int (*tmp)(void)`.
pub fn declarator(type_name: &str, name: &str) -> Result<String, Refusal> {
    let refuse = || Refusal::Type(type_name.to_string());
    let spelled = type_name.trim();
    let hard = ["unnamed", "anonymous", "typeof", "__attribute__", "(^", "_Atomic", "<dependent", "..."];
    if spelled.is_empty() || spelled == "void" || hard.iter().any(|mark| spelled.contains(mark)) {
        return Err(refuse());
    }
    // A pointer to a function or to an array: the name goes to the innermost `(*)`.
    if let Some(at) = spelled.find("(*") {
        let inner = at + 1 + spelled[at + 1..].find(')').ok_or_else(refuse)?;
        let stars = &spelled[at + 1..inner];
        if !stars.bytes().all(|byte| byte == b'*') || spelled[inner..].contains("(*") {
            return Err(refuse());
        }
        return Ok(format!("{}{name}{}", &spelled[..inner], &spelled[inner..]));
    }
    if spelled.contains('(') || spelled.contains('[') {
        return Err(refuse());
    }
    // Top-level qualifiers of a pointer belong to the old variable, not to the value.
    let spelled = [" *const", " *restrict", " *volatile"]
        .iter()
        .find_map(|mark| spelled.ends_with(mark).then(|| &spelled[..spelled.len() - mark.len() + 2]))
        .unwrap_or(spelled);
    let gap = if spelled.ends_with('*') { "" } else { " " };
    Ok(format!("{spelled}{gap}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_where_c_wants_them() {
        let ok = |spelled| declarator(spelled, "t").unwrap();
        assert_eq!(ok("int"), "int t");
        assert_eq!(ok("char *"), "char *t");
        assert_eq!(ok("const struct s **"), "const struct s **t");
        assert_eq!(ok("char *const"), "char *t");
        assert_eq!(ok("int (*)(const char *)"), "int (*t)(const char *)");
        assert_eq!(ok("int (*)[4]"), "int (*t)[4]");
    }

    #[test]
    fn what_is_hard_to_spell_is_refused() {
        for spelled in ["void", "", "struct (unnamed at a.c:1:1)", "int (*(*)(void))(int)", "int[4]", "void (^)(void)"]
        {
            assert!(declarator(spelled, "t").is_err(), "{spelled}");
        }
    }
}
