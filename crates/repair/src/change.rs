//! A candidate: edits of one file, and what is claimed about them.

use std::path::PathBuf;

use caulk_analysis::WEIGH;
use caulk_source::{EditSet, FileText, FunctionSource};

/// Two strategies that do the same thing at different places.
pub const BEFORE_EXIT: &str = "release-before-exit";
pub const LAST_KNOWN: &str = "release-where-last-known";
/// A release under a test of what a callee has returned.
pub const CONDITIONAL: &str = "conditional-release";

/// What a candidate expects of the proof beyond what all must show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expect {
    /// It adds a release, which must be found again in the patched program.
    pub releases: bool,
    /// The next statement overwrites the very place that still points to the block.
    pub overwrites: bool,
    /// It lets a destructor release one more part of what it is given.
    pub in_destructor: bool,
    /// It releases what `realloc` could not make larger.
    pub grows: bool,
    /// A release was moved from here: it may have the doubts that it had.
    pub moved: Option<(u32, u32)>,
}

impl Expect {
    /// Releases are added in a function's own body, and nothing is taken away.
    pub fn only_releases(self) -> bool {
        self.releases && !self.in_destructor && self.moved.is_none()
    }
}

#[derive(Clone, Debug)]
pub struct Candidate {
    pub strategy: &'static str,
    pub title: String,
    pub why: Vec<String>,
    pub file: PathBuf,
    pub edits: EditSet,
    pub expect: Expect,
    /// For a deleted release: a program in which the variable of this name leaks exactly where the release does
    /// something.
    pub probe: Option<(String, EditSet)>,
    /// The release that it adds, or the pointer that it sets.
    pub call: Option<String>,
    /// Releases of the author's, by line and column, that are come to by one more way.
    pub reached: Vec<(u32, u32)>,
    /// It takes a release away where that is an error whatever is compiled.
    pub everywhere: bool,
    /// Releases of the program that do nothing else only where these members of what they are given are null.
    pub quiet_if_null: Vec<(String, Vec<String>)>,
}

impl Candidate {
    pub fn new(function: &FunctionSource, strategy: &'static str, title: String, edits: EditSet) -> Self {
        Self {
            strategy,
            title,
            why: Vec::new(),
            file: function.file.path.clone(),
            edits,
            expect: Expect { releases: true, ..Expect::default() },
            probe: None,
            call: None,
            reached: Vec::new(),
            everywhere: false,
            quiet_if_null: Vec::new(),
        }
    }

    pub fn overwriting(mut self) -> Self {
        self.expect.overwrites = true;
        self
    }

    pub fn in_destructor(mut self) -> Self {
        self.expect.in_destructor = true;
        self
    }

    pub fn growing(mut self) -> Self {
        self.expect.grows = true;
        self
    }

    pub fn calling(mut self, call: &str) -> Self {
        self.call = Some(call.to_owned());
        self
    }

    pub fn moving(mut self, from: (u32, u32)) -> Self {
        self.expect.moved = Some(from);
        self
    }

    pub fn without_release(mut self) -> Self {
        self.expect.releases = false;
        self
    }

    pub fn everywhere(mut self) -> Self {
        self.everywhere = true;
        self
    }

    pub fn reaching(mut self, releases: Vec<(u32, u32)>) -> Self {
        self.reached = releases;
        self
    }
}

/// Candidates that do one thing at several places, made of some that do so at one each: those parts that go
/// together.
pub fn together(parts: &[Candidate]) -> Vec<Vec<Candidate>> {
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    for part in parts.iter().filter(|part| part.call.is_some()) {
        let strategy = |one: &Candidate| if one.strategy == BEFORE_EXIT { LAST_KNOWN } else { one.strategy };
        let same = |group: &&mut Vec<Candidate>| {
            group[0].call == part.call && strategy(&group[0]) == strategy(part) && group[0].file == part.file
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(part.clone()),
            None => groups.push(vec![part.clone()]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// All parts at once, as far as their edits do not meet.
pub fn joined(parts: &[Candidate]) -> Option<Candidate> {
    let (first, rest) = parts.split_first()?;
    let mut all = first.clone();
    for other in rest {
        let mut edits = all.edits.clone();
        edits.merge(&other.edits);
        if edits.conflict().is_none() {
            all.edits = edits;
            all.expect.overwrites |= other.expect.overwrites;
        }
    }
    if !rest.is_empty() {
        all.title = format!("{}, on every way on which that is missing", first.title);
    }
    Some(all)
}

/// For a candidate whose new releases look into structures, or must not be given null: a program in which the variable
/// of that name leaks wherever a pointer may be null that must not be. `needs` tells the functions of the second kind.
pub fn null_probe(edits: &EditSet, needs: &dyn Fn(&str) -> bool) -> Option<(String, EditSet)> {
    let name = "caulk_null_probe".to_owned();
    let mut found = false;
    let probed = each_release(edits, &mut |call, _| {
        let given = needs(call.name).then_some(call.argument);
        let pointers = looked_into(call.argument).into_iter().chain(given);
        let tests: Vec<String> = pointers.map(|pointer| format!("!({pointer})")).collect();
        found |= !tests.is_empty();
        let leak = format!("if ({}) {{ char *{name} = __builtin_malloc(1); *{name} = 0; }}", tests.join(" || "));
        (!tests.is_empty()).then_some(leak)
    });
    found.then(|| (name, without_clearing(&probed)))
}

/// For a candidate whose new releases do more than release unless some members are null: a program that asks what speaks
/// against a release wherever one of these members may not be.
pub fn member_probe(edits: &EditSet, quiet_if_null: &[(String, Vec<String>)]) -> Option<EditSet> {
    let mut found = false;
    let probed = each_release(edits, &mut |call, _| {
        let (_, members) = quiet_if_null.iter().find(|(name, _)| name == call.name)?;
        let tests: Vec<String> = members.iter().map(|member| format!("{}->{member}", call.argument)).collect();
        found = true;
        Some(format!("if ({}) {{ extern void {WEIGH}(int, ...); {WEIGH}(0, {}); }}", tests.join(" || "), call.argument))
    });
    found.then_some(probed)
}

/// The names of functions that new code calls as statements, once for each call.
pub fn called(edits: &EditSet) -> Vec<String> {
    let mut found = Vec::new();
    each_release(edits, &mut |call, _| {
        found.push(call.name.to_owned());
        None
    });
    found
}

/// Without `p->name = NULL;`, behind which a null pointer is not looked for any more.
fn without_clearing(edits: &EditSet) -> EditSet {
    let stays = |line: &&str| {
        let place = line.trim().strip_suffix(" = NULL;");
        !place.is_some_and(|place| crate::target::is_plain(place) && !looked_into(place).is_empty())
    };
    let mut made = EditSet::new();
    for edit in edits.edits() {
        let text: String = String::from_utf8_lossy(&edit.text).split_inclusive('\n').filter(stays).collect();
        made.put(caulk_source::Edit { text: text.into_bytes(), ..edit.clone() });
    }
    made
}

/// What new code releases, and where it stands.
pub fn released(edits: &EditSet) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    each_release(edits, &mut |call, (_, at)| {
        found.push((call.argument.to_owned(), at));
        None
    });
    found
}

/// `a`, `a->b` and `a->b[0].c` of `a->b[0].c->d`: what must not be null where it is read.
fn looked_into(expression: &str) -> Vec<&str> {
    let read = expression.strip_prefix('*');
    let path = read.unwrap_or(expression);
    let steps = path.char_indices().filter(|(at, _)| path[*at..].starts_with("->") || path[*at..].starts_with('['));
    steps.map(|(at, _)| &path[..at]).chain(read).collect()
}

/// The same with releases that must not be given null under a test.
pub fn guarded(edits: &EditSet, file: &FileText, needs: &dyn Fn(&str) -> bool) -> EditSet {
    // Text in another encoding must stay as it is, byte by byte.
    if edits.edits().iter().any(|edit| std::str::from_utf8(&edit.text).is_err()) {
        return edits.clone();
    }
    each_release(edits, &mut |call, (indent, at)| {
        // The text around the edit may be what indents it.
        let indent = if indent.is_empty() { file.indent_of(at) } else { indent.as_bytes() };
        let deeper = String::from_utf8_lossy(&file.deeper(indent)).into_owned();
        let head = file.style.line(format!("if ({})", call.argument).as_bytes());
        let test = format!("{}{}{deeper}{}", String::from_utf8_lossy(&head), file.style.eol, call.text);
        needs(call.name).then_some(test)
    })
}

/// `free(a->b);` in a line.
struct ReleaseCall<'a> {
    text: &'a str,
    name: &'a str,
    argument: &'a str,
}

impl<'a> ReleaseCall<'a> {
    fn in_line(line: &'a str) -> Option<Self> {
        let end = line.find(");")?;
        let open = line[..end].rfind('(')?;
        let argument = line[open + 1..end].trim();
        let name = line[..open].trim_end();
        let start = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        let found = Self { text: &line[start..end + 2], name: &name[start..], argument };
        // Not a value that is kept: `n = length(p);`
        let before = line[..start].trim_end();
        let stands = before.is_empty() || before.ends_with(['{', '}', ')', ';']) || before.ends_with("else");
        (stands && crate::target::is_plain(argument) && start < name.len()).then_some(found)
    }
}

/// What stands instead of a call, with the white space before it and its place in the file; `None`: the call itself.
type Instead<'a> = dyn FnMut(&ReleaseCall<'_>, (&str, usize)) -> Option<String> + 'a;

/// The edits with some of their calls, each seen with the white space before it and its place in the file, replaced.
fn each_release(edits: &EditSet, with: &mut Instead<'_>) -> EditSet {
    let mut made = EditSet::new();
    for edit in edits.edits() {
        let text = String::from_utf8_lossy(&edit.text).into_owned();
        let mut lines = String::new();
        let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let mut rest = text.split_inclusive('\n').peekable();
        while let Some(line) = rest.next() {
            // A line that begins in the file's own text is as deep as the one behind it.
            let indent = match (blanks(line), rest.peek()) {
                (0, Some(next)) if !next.trim_start().starts_with('}') => &next[..blanks(next)],
                (count, _) => &line[..count],
            };
            let call = ReleaseCall::in_line(line);
            match call.and_then(|call| Some((with(&call, (indent, edit.span.start))?, call))) {
                Some((instead, call)) => lines.push_str(&line.replacen(call.text, &instead, 1)),
                None => lines.push_str(line),
            }
        }
        made.put(caulk_source::Edit { text: lines.into_bytes(), ..edit.clone() });
    }
    made
}

/// A file before and after an edit, and how places map.
#[derive(Clone, Debug)]
pub struct Change {
    pub file: PathBuf,
    pub before: FileText,
    pub after: FileText,
    /// Replaced ranges and the length of their replacements, by start.
    moves: Vec<(usize, usize, usize)>,
}

impl Change {
    pub fn new(file: PathBuf, before: Vec<u8>, edits: &EditSet) -> Result<Self, String> {
        if let Some(offset) = edits.conflict() {
            return Err(format!("two edits meet at byte {offset}"));
        }
        let after = edits.apply(&file, &before).map_err(|error| error.to_string())?;
        let mut moves: Vec<(usize, usize, usize)> =
            edits.edits().iter().map(|edit| (edit.span.start, edit.span.end, edit.text.len())).collect();
        // A shared edit is applied once: lengths are taken from the texts where that makes a difference.
        let grown: usize = moves.iter().map(|entry| entry.2).sum();
        let shrunk: usize = moves.iter().map(|entry| entry.1 - entry.0).sum();
        if before.len() + grown - shrunk != after.len() {
            moves.dedup();
        }
        moves.sort_unstable();
        Ok(Self { before: FileText::new(file.clone(), before), after: FileText::new(file.clone(), after), file, moves })
    }

    pub fn is_empty(&self) -> bool {
        self.before.bytes == self.after.bytes
    }

    /// Where an old offset lies now; what was replaced lies at the end of its replacement.
    pub fn offset(&self, old: usize) -> usize {
        let mut shift = 0isize;
        for (start, end, length) in &self.moves {
            if *end <= old && *start <= old {
                shift += *length as isize - (end - start) as isize;
            } else if *start < old {
                return (*start as isize + shift + *length as isize).max(0) as usize;
            }
        }
        (old as isize + shift).max(0) as usize
    }

    /// Where a new offset lay before; `None` in new text, and at its edges, where it is not certain which side is meant.
    pub fn origin(&self, new: usize) -> Option<usize> {
        let mut shift = 0isize;
        for (start, end, length) in &self.moves {
            let from = *start as isize + shift;
            if (new as isize) < from {
                break;
            }
            if new as isize <= from + *length as isize {
                return None;
            }
            shift += *length as isize - (end - start) as isize;
        }
        usize::try_from(new as isize - shift).ok()
    }

    /// Where a line and column lie now.
    pub fn position(&self, line: u32, column: u32) -> (u32, u32) {
        match self.before.offset_of(line, column.max(1)) {
            Some(old) => {
                let (line, new) = self.after.position_of(self.offset(old));
                (line, if column == 0 { 0 } else { new })
            }
            None => (line, column),
        }
    }

    /// Whether text at a place of the old file was replaced or taken away.
    pub fn is_gone(&self, line: u32, column: u32) -> bool {
        let Some(at) = self.before.offset_of(line, column.max(1)) else { return false };
        self.moves.iter().any(|(start, end, _)| (*start..*end).contains(&at))
    }

    /// Whether text at a place of the new file was put there by the edit.
    pub fn is_new(&self, line: u32, column: u32) -> bool {
        let Some(at) = self.after.offset_of(line, column.max(1)) else { return false };
        let mut shift = 0isize;
        for (start, end, length) in &self.moves {
            let from = *start as isize + shift;
            if (from..from + *length as isize).contains(&(at as isize)) {
                return true;
            }
            shift += *length as isize - (end - start) as isize;
        }
        false
    }

    /// Where a call in new text stood before, letter for letter: `return put(b, p);` became `int n = put(b, p);`. Not where
    /// it was a statement of its own: a release that is moved is a new one. Nor where new text has the same call twice: one
    /// of them is new.
    pub fn carried(&self, line: u32, column: u32) -> Option<(u32, u32)> {
        if !self.is_new(line, column) {
            return None;
        }
        let at = self.after.offset_of(line, column.max(1))?;
        let call = call_at(&self.after.bytes[at..])?;
        let gone = self.moves.iter().flat_map(|(start, end, _)| (*start..*end).map(|at| (at, *end)));
        let mut found = gone.filter(|(at, end)| self.before.bytes[*at..*end].starts_with(call));
        let (from, _) = found.next()?;
        let mut again = self.new_text().into_iter().filter(|place| self.after.bytes[*place..].starts_with(call));
        if found.next().is_some() || again.nth(1).is_some() {
            return None;
        }
        let ahead = self.before.bytes[..from].trim_ascii_end();
        let is_part = ahead.ends_with(b"return") || ahead.last().is_some_and(|byte| b"(=!,".contains(byte));
        is_part.then(|| self.before.position_of(from))
    }

    /// The offsets of all new text.
    fn new_text(&self) -> Vec<usize> {
        let (mut shift, mut all) = (0isize, Vec::new());
        for (start, end, length) in &self.moves {
            let from = (*start as isize + shift).max(0) as usize;
            all.extend(from..(from + length).min(self.after.bytes.len()));
            shift += *length as isize - (end - start) as isize;
        }
        all
    }
}

/// The call that a text begins with.
fn call_at(text: &[u8]) -> Option<&[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let name = text.iter().take_while(|byte| is_word(byte)).count();
    let open = name + text[name..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if name == 0 || text.get(open) != Some(&b'(') {
        return None;
    }
    let (mut depth, mut at) = (0usize, open);
    while let Some(byte) = text.get(at) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(&text[..=at]),
            b')' => depth -= 1,
            // Brackets in texts are none.
            quote @ (b'"' | b'\'') => {
                at += 1;
                while text.get(at).is_some_and(|byte| byte != quote) {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use caulk_source::Span;

    use super::*;

    #[test]
    fn calls_are_carried_over_as_they_stand() {
        let file = PathBuf::from("a.c");
        let carried = |before: &str, edits: &[(usize, usize, &str)], call: &str| {
            let mut set = EditSet::default();
            edits.iter().for_each(|(start, end, text)| set.replace(Span::new(*start, *end), *text));
            let change = Change::new(file.clone(), before.into(), &set).expect("edits that do not meet");
            let whole = String::from_utf8_lossy(&change.after.bytes).into_owned();
            let (line, column) = change.after.position_of(whole.find(call).expect("it is there"));
            change.carried(line, column)
        };
        let edits = [(14, 14, "int n = put(b, \")\", g(p)); free(p); "), (21, 38, "n")];
        let before = "int f(void) { return put(b, \")\", g(p)); }";
        assert_eq!(carried(before, &edits, "put("), Some((1, 22)));
        assert_eq!(carried(before, &edits, "free("), None);
        assert_eq!(carried(before, &edits, "f(void"), None);
        // One of the two is new.
        let edits = [(14, 14, "int n = (end(p), 0); if (n) end(p); "), (21, 32, "n")];
        assert_eq!(carried("int f(void) { return (end(p), 0); }", &edits, "end("), None);
        // Moved behind the other statement.
        assert_eq!(carried("int f(void) { end(p); g(p); }", &[(14, 21, ""), (27, 27, " end(p);")], "end("), None);
    }

    #[test]
    fn every_pointer_on_the_way_is_looked_into() {
        assert_eq!(looked_into("p"), Vec::<&str>::new());
        assert_eq!(looked_into("s.name"), Vec::<&str>::new());
        assert_eq!(looked_into("*p"), ["p"]);
        assert_eq!(looked_into("a[0]"), ["a"]);
        assert_eq!(looked_into("a->b[0].c->d"), ["a", "a->b", "a->b[0].c"]);
        assert_eq!(looked_into("*a->b"), ["a", "a->b"]);
    }

    #[test]
    fn a_null_probe_comes_before_what_would_end_the_path() {
        let mut edits = EditSet::new();
        edits.insert(3, "free(a->b);\na->b = NULL;\n");
        let (_, probe) = null_probe(&edits, &|_| false).unwrap();
        let text = String::from_utf8_lossy(&probe.edits()[0].text).into_owned();
        assert!(text.starts_with("if (!(a)) {") && !text.contains("a->b = NULL"), "{text}");
    }
}
