//! The cases of one weakness: their files, and the good and bad functions in them.
//!
//!     CWE401_…__char_malloc_22a.c      goodB2G1  calls …_22_goodB2G1Sink
//!     CWE401_…__char_malloc_22b.c      …_22_goodB2G1Sink, …_22_badSink
//!     → case `…__char_malloc_22`, one bad flow, good flows `goodB2G1`, …
//!
//! A flow is a function and the sources and sinks that only it calls; it counts
//! once. Each case has one bad flow. The function `good` that does nothing but
//! call the others is no flow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// One test case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub has_bad: bool,
    /// Names of its good flows.
    pub good: BTreeSet<String>,
}

pub(crate) struct Suite {
    /// By name, `CWE401_Memory_Leak__char_malloc_22`.
    pub cases: BTreeMap<String, Case>,
    /// What is to be compiled, Juliet's helpers included.
    pub files: Vec<PathBuf>,
    pub flags: Vec<String>,
}

/// What a function of a case is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Bad,
    /// With the name of its flow, empty for the caller of all of them.
    Good(String),
    Helper,
}

impl Suite {
    pub(crate) fn read(folder: &Path, cwe: u32, every: usize) -> Result<Suite> {
        let support = folder.join("testcasesupport");
        let prefix = format!("CWE{cwe}_");
        let mut all: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for file in c_files(&folder.join("testcases"), &prefix)? {
            if let Some(name) = case_of(&file.to_string_lossy()) {
                all.entry(name).or_default().push(file);
            }
        }
        if all.is_empty() {
            bail!("no C case of CWE-{cwe} in {}", folder.join("testcases").display());
        }
        let mut suite = Suite {
            cases: BTreeMap::new(),
            files: vec![support.join("io.c"), support.join("std_thread.c")],
            flags: vec![format!("-I{}", support.display())],
        };
        for (name, mut files) in all.into_iter().step_by(every) {
            files.sort();
            let mut case = Case::default();
            for file in &files {
                let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
                for function in functions(&String::from_utf8_lossy(&text)) {
                    match role(&function) {
                        Role::Bad => case.has_bad = true,
                        Role::Good(flow) if !flow.is_empty() => {
                            case.good.insert(flow);
                        }
                        Role::Good(_) | Role::Helper => {}
                    }
                }
            }
            suite.files.extend(files);
            suite.cases.insert(name, case);
        }
        Ok(suite)
    }
}

fn c_files(testcases: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut left: Vec<PathBuf> = list(testcases)?.into_iter().filter(|path| name(path).starts_with(prefix)).collect();
    let mut files = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(list(&path)?);
        } else if name(&path).starts_with(prefix) && name(&path).ends_with(".c") && !name(&path).contains("w32") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The case a file belongs to: its name without the part letter.
pub(crate) fn case_of(file: &str) -> Option<String> {
    let name = file.rsplit('/').next()?.strip_suffix(".c")?;
    let name = name.strip_suffix(|last: char| last.is_ascii_lowercase()).unwrap_or(name);
    (name.starts_with("CWE") && name.ends_with(|last: char| last.is_ascii_digit())).then(|| name.to_owned())
}

/// Judges a function by its name, `…_22_goodB2G1Sink`.
pub(crate) fn role(function: &str) -> Role {
    // The prefix that makes a name unique ends in a number and perhaps a part letter.
    let own = function.rsplit('_').next().unwrap_or(function);
    let lower = own.to_ascii_lowercase();
    if lower.contains("bad") {
        return Role::Bad;
    }
    let Some(start) = lower.find("good") else { return Role::Helper };
    let mut flow = &own[start..];
    for ending in ["Sink", "Source", "Va"] {
        flow = flow.strip_suffix(ending).unwrap_or(flow);
    }
    if flow == "good" && own == flow { Role::Good(String::new()) } else { Role::Good(flow.to_owned()) }
}

/// Names of the functions defined in a file, in Juliet's layout: the head on one
/// line from the first column, the brace on the next.
fn functions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let head = |line: &str| {
        let before = line.starts_with(|first: char| first.is_ascii_alphabetic()).then(|| line.split_once('('))??.0;
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        (!name.is_empty() && line.ends_with(')')).then(|| name.to_owned())
    };
    lines.windows(2).filter(|pair| pair[1].starts_with('{')).filter_map(|pair| head(pair[0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_belong_to_one_case() {
        let case = Some("CWE401_Memory_Leak__char_malloc_22".to_owned());
        assert_eq!(case_of("/x/CWE401_Memory_Leak__char_malloc_22a.c"), case);
        assert_eq!(case_of("CWE401_Memory_Leak__char_malloc_22.c"), case);
        assert_eq!(case_of("/x/io.c"), None);
        assert_eq!(case_of("CWE401_Memory_Leak__char_malloc_22.cpp"), None);
    }

    #[test]
    fn names_tell_the_role() {
        let good = |flow: &str| Role::Good(flow.to_owned());
        for (name, expected) in [
            ("CWE401_Memory_Leak__char_malloc_22_bad", Role::Bad),
            ("CWE401_Memory_Leak__char_malloc_61b_badSource", Role::Bad),
            ("helperBad", Role::Bad),
            ("goodB2G1", good("goodB2G1")),
            ("CWE401_Memory_Leak__char_malloc_22_goodB2G1Sink", good("goodB2G1")),
            ("goodG2BVaSink", good("goodG2B")),
            ("CWE401_Memory_Leak__char_malloc_22_good", good("")),
            ("staticReturnsTrue", Role::Helper),
            ("printLine", Role::Helper),
        ] {
            assert_eq!(role(name), expected, "{name}");
        }
    }

    #[test]
    fn a_case_is_read_with_its_flows() {
        let folder = tempfile::tempdir().unwrap();
        let cases = folder.path().join("testcases/CWE401_Memory_Leak/s01");
        std::fs::create_dir_all(&cases).unwrap();
        let text = "static int five = 5;\r\nvoid CWE401_x__y_01_bad()\r\n{\r\n    f();\r\n}\r\n\
                    static void goodB2G(char * data)\r\n{\r\n}\r\nvoid CWE401_x__y_01_goodB2GSink();\r\n\
                    void CWE401_x__y_01_good()\n{\n}\n";
        std::fs::write(cases.join("CWE401_x__y_01.c"), text).unwrap();
        std::fs::write(cases.join("CWE401_x__w32_y_01.c"), text).unwrap();
        let suite = Suite::read(folder.path(), 401, 1).unwrap();
        assert_eq!(suite.files.len(), 3);
        let case = &suite.cases["CWE401_x__y_01"];
        assert!(case.has_bad);
        assert_eq!(case.good.iter().collect::<Vec<_>>(), ["goodB2G"]);
        assert!(Suite::read(folder.path(), 415, 1).is_err());
    }
}
