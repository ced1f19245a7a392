//! What the tools' names and sentences mean.

use crate::{Kind, Role};

/// The kind of an alarm, from its rule's name, its sentence or both.
pub fn kind(text: &str) -> Option<Kind> {
    let text = text.to_ascii_lowercase().replace(['-', '_'], " ");
    let has = |part: &str| text.contains(part);
    if has("mismatch") || has("alloc dealloc") {
        return Some(Kind::Mismatched);
    }
    if has("double free") || has("double fclose") || has("double close") || has("free released memory") {
        return Some(Kind::DoubleFree);
    }
    let after = has("use after") || has("after it is freed") || has("after free") || has("heap use");
    if after && !has("scope") && !has("use after return") {
        return Some(Kind::UseAfterFree);
    }
    if has("bad free") || has("non heap") || has("not malloc") || has("invalid free") || has("not heap") {
        return Some(Kind::InvalidFree);
    }
    if has("leak") || has("never closed") {
        let resource = ["file", "resource", "stream", "descriptor", "fd ", "never closed"].iter().any(|word| has(word));
        return Some(if resource { Kind::ResourceLeak } else { Kind::Leak });
    }
    None
}

pub fn kind_of_cwe(number: u64) -> Option<Kind> {
    match number {
        401 => Some(Kind::Leak),
        772 | 775 | 404 => Some(Kind::ResourceLeak),
        415 => Some(Kind::DoubleFree),
        416 => Some(Kind::UseAfterFree),
        762 => Some(Kind::Mismatched),
        590 | 761 => Some(Kind::InvalidFree),
        _ => None,
    }
}

/// What an event on a path means for the object, if anything.
pub fn role(text: &str) -> Option<Role> {
    let text = text.to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    if has("leak") || has("entry to") || has("assum") {
        return None;
    }
    let allocated = ["allocat", "opened", "acquired", "obtained", "duplicated"].iter().any(|word| has(word));
    if allocated && !has("deallocat") && !has("calling") && !has("return") {
        return Some(Role::Allocation);
    }
    let released = ["freed", "released", "deallocated", "closed", "invalidated", "first ‘", "first '"];
    (released.iter().any(|word| has(word)) && !has("after it") && !has("attempt")).then_some(Role::Release)
}
