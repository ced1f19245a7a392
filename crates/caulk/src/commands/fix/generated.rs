//! C files that are made from something else: a grammar, most often. What was written by hand stands in both.
//!
//! ```text
//! parse.y                          parse.c, made from it
//! 900  static char *               #line 900 "parse.y"
//! 901  word(void)                  static char *
//! ...                              word(void)
//! ```
//!
//! A patch belongs into the grammar, where places are named for it anyway. Where whole lines stand in both alike, the
//! made file after a patch is known without the tool that makes it: the same lines, patched, and later `#line`s moved.
//! That is compiled and proved.
//!
//! # Invariants
//! - What does not stand in both, line by line, is not touched.
//! - A byte of the text that is given to be edited lies where it lies in the file that was written by hand.

use std::path::{Path, PathBuf};

use caulk_frontend::CompileCommand;

/// Lines that stand in both files, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alike {
    written: usize,
    made: usize,
    count: usize,
}

/// A file that is made from another one.
pub(super) struct Generated {
    /// The file that the compiler reads.
    pub made: PathBuf,
    text: Vec<u8>,
    /// The file that was written by hand, as it was when the other was made.
    written: Vec<u8>,
    alike: Vec<Alike>,
    /// How the made file calls the written one.
    names: Vec<String>,
    /// Lines of the made text that say where a part was written: (line there, number that it says, counted from 0).
    directives: Vec<(usize, usize)>,
}

/// What a parser is given to see a function where it was written.
pub(super) struct View {
    /// What stands before it, in the made file.
    pub before: Vec<u8>,
    /// The written file, with blanks for all that is not C alike in both.
    pub text: Vec<u8>,
}

impl Generated {
    /// The unit's own file, if parts of it were written in `written`.
    pub(super) fn from(command: &CompileCommand, written: &Path) -> Option<Self> {
        let made = command.directory.join(&command.file);
        if made == written {
            return None;
        }
        let named = |name: &str| caulk_frontend::named_source(command, name) == written;
        Self::of(made.clone(), std::fs::read(&made).ok()?, std::fs::read(written).ok()?, &named)
    }

    fn of(made: PathBuf, text: Vec<u8>, written: Vec<u8>, named: &dyn Fn(&str) -> bool) -> Option<Self> {
        let source = lines(&written);
        let mut alike: Vec<Alike> = Vec::new();
        let (mut directives, mut names) = (Vec::new(), Vec::new());
        let (mut inside, mut known): (Option<Alike>, bool) = (None, false);
        for (at, line) in lines(&text).into_iter().enumerate() {
            if let Some((number, name)) = directive(line) {
                known = name.map_or(known, named);
                names.extend(name.filter(|_| known).map(str::to_owned));
                alike.extend(inside.take().filter(|part| part.count > 0));
                if known {
                    directives.push((at, number.saturating_sub(1)));
                    inside = Some(Alike { written: number.saturating_sub(1), made: at + 1, count: 0 });
                }
            } else if let Some(part) = &mut inside {
                let other = source.get(part.written + part.count).copied().unwrap_or_default();
                if other == line {
                    part.count += 1;
                } else if part.count == 0 && other.ends_with(line) {
                    // What stands behind `%%` or `%{`, mostly nothing.
                    (part.written, part.made) = (part.written + 1, part.made + 1);
                } else {
                    alike.extend(inside.take().filter(|part| part.count > 0));
                }
            }
        }
        alike.extend(inside.filter(|part| part.count > 0));
        (!directives.is_empty()).then_some(Self { made, text, written, alike, names, directives })
    }

    /// The made file, once the written one reads like this.
    pub(super) fn again(&self, patched: &[u8]) -> Result<Vec<u8>, String> {
        if patched == self.written {
            return Ok(self.text.clone());
        }
        let (old, new) = (lines(&self.written), lines(patched));
        let first = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let rest = old.len().min(new.len()) - first;
        let last = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        let (old_end, new_end) = (old.len() - last, new.len() - last);
        let covers = |part: &&Alike| part.written <= first && old_end <= part.written + part.count;
        let part = self.alike.iter().find(covers).ok_or_else(|| self.differs())?;
        let (from, to) = (part.made + first - part.written, part.made + old_end - part.written);
        let mut again = Vec::with_capacity(self.text.len() + patched.len().saturating_sub(self.written.len()));
        for (at, line) in lines(&self.text).into_iter().enumerate() {
            if at == from {
                new[first..new_end].iter().for_each(|line| again.extend_from_slice(line));
            }
            let says = self.directives.iter().find(|(line, _)| *line == at).map(|(_, number)| *number);
            match says {
                _ if (from..to).contains(&at) => {}
                Some(number) if number >= old_end => {
                    again.extend(renumbered(line, number + 1 + new_end - old_end));
                }
                _ => again.extend_from_slice(line),
            }
        }
        Ok(again)
    }

    /// The part in which a line (counted from 1) of the written file lies, as that file reads now.
    pub(super) fn view(&self, line: u32, now: &[u8]) -> Result<View, String> {
        let line = (line as usize).saturating_sub(1);
        let names = |name: &str| self.names.iter().any(|known| known == name);
        let moved = Self::of(self.made.clone(), self.again(now)?, now.to_vec(), &names);
        let here = |part: &&Alike| (part.written..part.written + part.count).contains(&line);
        let part = moved.as_ref().and_then(|moved| moved.alike.iter().find(here));
        let (Some(moved), Some(part)) = (&moved, part) else { return Err(self.differs()) };
        let mut text = Vec::with_capacity(now.len());
        for (at, line) in lines(now).into_iter().enumerate() {
            if (part.written..part.written + part.count).contains(&at) {
                text.extend_from_slice(line);
            } else {
                text.extend(line.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { *byte } else { b' ' }));
            }
        }
        Ok(View { before: lines(&moved.text)[..part.made].concat(), text })
    }

    fn differs(&self) -> String {
        let name = self.made.file_name().unwrap_or_default().to_string_lossy();
        format!("it is not written in `{name}`, which is made from its file, as it is there")
    }
}

/// Lines with their ends.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// `#line 900 "parse.y"`: the number of the next line, and its file.
fn directive(line: &[u8]) -> Option<(usize, Option<&str>)> {
    let line = std::str::from_utf8(line).ok()?.trim().strip_prefix('#')?.trim_start();
    let line = line.strip_prefix("line").unwrap_or(line).trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = line[..digits].parse().ok()?;
    let name = line[digits..].trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
    Some((number, name.map(|(name, _)| name)))
}

fn renumbered(line: &[u8], number: usize) -> Vec<u8> {
    let from = line.iter().position(u8::is_ascii_digit).unwrap_or(line.len());
    let to = from + line[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    [&line[..from], number.to_string().as_bytes(), &line[to..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "%{\nint a;\n%}\n%%\nx: y { $$ = 1; }\n%%\nint f(void)\n{\n\treturn a;\n}\n";
    const MADE: &str = "#line 2 \"p.y\"\nint a;\n#line 3 \"p.c\"\nint state;\n#line 7 \"p.y\"\nint f(void)\n{\n\treturn \
                        a;\n}\n#line 10 \"p.c\"\nint parse(void) {\n#line 5 \"p.y\"\n{ yyval = 1; }\n#line 13 \"p.c\"\n}\n";

    fn generated() -> Generated {
        Generated::of("p.c".into(), MADE.into(), WRITTEN.into(), &|name| name == "p.y").unwrap()
    }

    #[test]
    fn only_what_stands_in_both_is_alike() {
        let alike = |written, made, count| Alike { written, made, count };
        assert_eq!(generated().alike, [alike(1, 1, 1), alike(6, 5, 4)]);
        let made = MADE.replace("#line 7 \"p.y\"\n", "#line 6 \"p.y\"\n\n");
        let named = |name: &str| name == "p.y";
        let behind = Generated::of("p.c".into(), made.into(), WRITTEN.into(), &named).unwrap();
        assert_eq!(behind.alike, [alike(1, 1, 1), alike(6, 6, 4)]);
        assert!(generated().again(WRITTEN.replace("$$ = 1", "$$ = 2").as_bytes()).is_err());
    }

    #[test]
    fn a_patch_comes_into_what_is_made_and_later_numbers_move() {
        let new = WRITTEN.replace("int a;\n", "int a;\nint b;\n");
        let again = String::from_utf8(generated().again(new.as_bytes()).unwrap()).unwrap();
        let wanted =
            MADE.replace("int a;\n", "int a;\nint b;\n").replace("#line 7", "#line 8").replace("#line 5", "#line 6");
        assert_eq!(again, wanted);
    }

    #[test]
    fn a_function_is_seen_where_it_was_written() {
        let new = WRITTEN.replace("\treturn a;\n", "\ta++;\n\treturn a;\n");
        for text in [WRITTEN, &new] {
            let view = generated().view(8, text.as_bytes()).unwrap();
            assert_eq!(view.text.len(), text.len());
            let at = text.find("int f").unwrap();
            assert_eq!(view.text[at..], text.as_bytes()[at..]);
            assert!(view.text[..at].iter().all(u8::is_ascii_whitespace));
            assert!(view.before.ends_with(b"int state;\n#line 7 \"p.y\"\n"), "{:?}", String::from_utf8(view.before));
        }
        assert!(generated().view(5, WRITTEN.as_bytes()).is_err());
        // The file need not end in C.
        let written = "%{\nint a(void) { return 1; }\n%}\n%%\nx: y\n";
        let made = "#line 2 \"p.y\"\nint a(void) { return 1; }\n#line 3 \"p.c\"\nint state;\n";
        let generated = Generated::of("p.c".into(), made.into(), written.into(), &|name| name == "p.y").unwrap();
        assert!(generated.view(2, written.as_bytes()).is_ok());
    }
}
