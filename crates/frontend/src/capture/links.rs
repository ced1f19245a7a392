//! Reads link commands: of compiler drivers, of `ld` and of `ar`.

use std::path::Path;

use crate::flags::{self, Arg, Tool};
use crate::link::{LinkKind, LinkRecord};
use crate::paths::absolute;

/// What a command links, if it links anything.
pub fn link_of_command(words: &[String], directory: &Path) -> Option<LinkRecord> {
    let at = flags::compiler_index(words);
    match at {
        Some(at) => link_of_driver(words, &words[at + 1..], directory),
        None => match flags::tool(words.first()?)?.tool {
            Tool::Archiver => link_of_archiver(&words[1..], directory),
            Tool::Linker => link_of_linker(&words[1..], directory),
            Tool::C | Tool::Cpp | Tool::Wrapper => None,
        },
    }
}

/// What a file is, by its name.
pub fn kind_of_output(output: &Path) -> Option<LinkKind> {
    let name = output.file_name()?.to_str()?;
    if name.ends_with(".a") {
        Some(LinkKind::Archive)
    } else if name.ends_with(".so") || name.contains(".so.") || name.ends_with(".dylib") {
        Some(LinkKind::Shared)
    } else if name.ends_with(".o") || name.ends_with(".lo") {
        Some(LinkKind::Object)
    } else {
        None
    }
}

/// Options under which a driver stops before linking, or does nothing at all.
pub(super) fn stops_early(argument: &Arg<'_>) -> bool {
    matches!(
        argument,
        Arg::Plain(
            "-c" | "-S" | "-E" | "-M" | "-MM" | "-fsyntax-only" | "-###" | "--version" | "-V" | "--help" | "-cc1"
        )
    ) || matches!(argument, Arg::Plain(word) if word.starts_with("-print-") || word.starts_with("-dump"))
}

fn link_of_driver(words: &[String], arguments: &[String], directory: &Path) -> Option<LinkRecord> {
    let parsed = flags::parse(arguments);
    if parsed.iter().any(stops_early) {
        return None;
    }
    let has = |wanted: &[&str]| parsed.iter().any(|a| matches!(a, Arg::Plain(word) if wanted.contains(word)));
    let output = parsed.iter().rev().find_map(|argument| match argument {
        Arg::Valued { option: "-o", value } => Some(*value),
        _ => None,
    });
    let output = absolute(directory, Path::new(output.unwrap_or("a.out")));
    let kind = if has(&["-shared", "--shared", "-dynamiclib", "-bundle"]) {
        LinkKind::Shared
    } else if has(&["-r"]) {
        LinkKind::Object
    } else {
        LinkKind::Program
    };
    let mut inputs = Vec::new();
    for argument in &parsed {
        match *argument {
            Arg::Input { path, .. } => inputs.push(input_name(words, path, directory)),
            Arg::Valued { option: "-l", value } => inputs.push(format!("-l{value}")),
            Arg::Valued { option: "-Xlinker", value } if value.ends_with(".a") || value.ends_with(".o") => {
                inputs.push(absolute(directory, Path::new(value)).display().to_string());
            }
            Arg::Plain(word) if word.starts_with("-Wl,") => {
                let files = word[4..].split(',').filter(|word| word.ends_with(".a") || word.ends_with(".o"));
                inputs.extend(files.map(|file| absolute(directory, Path::new(file)).display().to_string()));
            }
            Arg::Plain(_) | Arg::Valued { .. } => {}
        }
    }
    find_libraries(&parsed, directory, &mut inputs);
    (!inputs.is_empty()).then_some(LinkRecord { output, kind, inputs })
}

/// A source among the inputs stands for the object the driver makes of it.
fn input_name(words: &[String], path: &str, directory: &Path) -> String {
    let file = absolute(directory, Path::new(path));
    let object = match flags::language_by_name(&file) {
        flags::Language::Other => None,
        _ => flags::object_of(words, directory, &file),
    };
    object.unwrap_or(file).display().to_string()
}

/// `-lx` with `-Ldir`: the library that is there now, by its path.
fn find_libraries(parsed: &[Arg<'_>], directory: &Path, inputs: &mut [String]) {
    let folders: Vec<_> = parsed
        .iter()
        .filter_map(|argument| match argument {
            Arg::Valued { option: "-L", value } => Some(absolute(directory, Path::new(value))),
            _ => None,
        })
        .collect();
    for input in inputs {
        let Some(name) = input.strip_prefix("-l") else { continue };
        let names = [format!("lib{name}.so"), format!("lib{name}.a")];
        let found = folders.iter().find_map(|folder| names.iter().map(|n| folder.join(n)).find(|path| path.is_file()));
        if let Some(found) = found {
            *input = found.display().to_string();
        }
    }
}

fn link_of_linker(arguments: &[String], directory: &Path) -> Option<LinkRecord> {
    let parsed = flags::parse(arguments);
    let has = |wanted: &[&str]| parsed.iter().any(|a| matches!(a, Arg::Plain(word) if wanted.contains(word)));
    let output = parsed.iter().rev().find_map(|argument| match argument {
        Arg::Valued { option: "-o", value } => Some(*value),
        _ => None,
    });
    let kind = match () {
        () if has(&["-r", "--relocatable", "-i"]) => LinkKind::Object,
        () if has(&["-shared", "--shared", "-Bshareable"]) => LinkKind::Shared,
        () => LinkKind::Program,
    };
    let mut inputs: Vec<String> = parsed
        .iter()
        .filter_map(|argument| match *argument {
            Arg::Input { path, .. } => Some(absolute(directory, Path::new(path)).display().to_string()),
            Arg::Valued { option: "-l", value } => Some(format!("-l{value}")),
            _ => None,
        })
        .collect();
    find_libraries(&parsed, directory, &mut inputs);
    let output = absolute(directory, Path::new(output?));
    (!inputs.is_empty()).then_some(LinkRecord { output, kind, inputs })
}

/// `ar cr libx.a a.o b.o`, `ar rcs …`, `ar -rc …`; with `x`, `t`, `d` or `p` nothing is put in.
fn link_of_archiver(arguments: &[String], directory: &Path) -> Option<LinkRecord> {
    let mut words = arguments.iter().map(String::as_str);
    let mut operation = words.next()?;
    while operation == "--plugin" || operation.starts_with("--") {
        if operation == "--plugin" {
            words.next();
        }
        operation = words.next()?;
    }
    let letters = operation.trim_start_matches('-');
    if !letters.contains(['r', 'q']) {
        return None;
    }
    // `a`, `b` and `i` take the name of a member to stand beside.
    if letters.contains(['a', 'b', 'i']) {
        words.next();
    }
    let mut files = words.filter(|word| !word.starts_with('-'));
    let output = absolute(directory, Path::new(files.next()?));
    let inputs: Vec<String> = files.map(|file| absolute(directory, Path::new(file)).display().to_string()).collect();
    (!inputs.is_empty()).then_some(LinkRecord { output, kind: LinkKind::Archive, inputs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::split_shell;

    fn link(words: &str) -> Option<(String, LinkKind, String)> {
        let record = link_of_command(&split_shell(words), Path::new("/p"))?;
        Some((record.output.display().to_string(), record.kind, record.inputs.join(" ")))
    }

    #[test]
    fn drivers_link_unless_told_to_stop() {
        assert_eq!(
            link("gcc -O2 a.o sub/b.o ../lib/libx.a -lm -o app -Wl,--whole-archive,w.a,-z"),
            Some(("/p/app".into(), LinkKind::Program, "/p/a.o /p/sub/b.o /lib/libx.a -lm /p/w.a".into()))
        );
        assert_eq!(
            link("ccache cc -shared a.o -o libx.so.1"),
            Some(("/p/libx.so.1".into(), LinkKind::Shared, "/p/a.o".into()))
        );
        assert_eq!(
            link("gcc a.c b.o -o bin/app"),
            Some(("/p/bin/app".into(), LinkKind::Program, "/p/bin/app-a.o /p/b.o".into()))
        );
        assert_eq!(link("gcc a.o"), Some(("/p/a.out".into(), LinkKind::Program, "/p/a.o".into())));
        assert_eq!(link("g++ a.o -o app").map(|l| l.1), Some(LinkKind::Program));
        for words in ["gcc -c a.c", "gcc -E a.c", "gcc --version", "gcc", "make all", "", "gcc -print-file-name=x a.o"]
        {
            assert_eq!(link(words), None, "{words}");
        }
    }

    #[test]
    fn archivers_and_linkers() {
        assert_eq!(
            link("ar cru libx.a a.o b.o"),
            Some(("/p/libx.a".into(), LinkKind::Archive, "/p/a.o /p/b.o".into()))
        );
        assert_eq!(link("gcc-ar -rcs libx.a a.o").map(|l| l.2), Some("/p/a.o".into()));
        assert_eq!(link("ar rb old.o libx.a a.o").map(|l| l.0), Some("/p/libx.a".into()));
        assert_eq!(link("ar t libx.a"), None);
        assert_eq!(link("ar"), None);
        assert_eq!(link("ld -r -o all.o a.o b.o"), Some(("/p/all.o".into(), LinkKind::Object, "/p/a.o /p/b.o".into())));
    }
}
