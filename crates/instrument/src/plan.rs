//! What the C++ part is told, and what it says: lines of words with tabs in between.
//!
//! ```text
//! family  memory  free  pointer
//! model   strdup  family=0
//! model   strtol  store=0>1            what argument 0 leads to is put where argument 1 points
//! model   getaddrinfo  family=4  out=3  success=zero  deep
//! site    0  /p/a.c  7  25
//! ```

use std::fmt::Write;

use caulk_models::{Condition, Effect, FamilyId, FunctionModel, Models, Place};

use crate::{Program, Verdict, Wanted};

/// Families that one function of one argument (or of that and the length) releases, without waiting for anything.
const FAMILIES: &[&str] = &["memory", "file", "descriptor", "dir", "addrinfo", "mapping"];

/// Allocating functions whose blocks hold no pointers into themselves.
#[rustfmt::skip]
const RAW: &[&str] = &[
    "malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign", "valloc", "pvalloc", "posix_memalign",
    "strdup", "strndup", "wcsdup", "asprintf", "vasprintf", "__asprintf_chk", "__vasprintf_chk", "realpath",
    "canonicalize_file_name", "getcwd", "get_current_dir_name", "__strdup", "__strndup", "tempnam", "getline", "getdelim",
    "__getdelim",
];

/// Library functions whose models are taken at their word. Models are made for finding errors: what is missing in one
/// costs a finding there, and a block that is still in use here. So only these count, and the user's own.
#[rustfmt::skip]
const TRUSTED: &[&str] = &[
    // Memory.
    "malloc", "calloc", "realloc", "reallocarray", "free", "aligned_alloc", "memalign", "posix_memalign", "valloc",
    "malloc_usable_size", "mmap", "munmap",
    // Strings and bytes.
    "memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "rawmemchr", "mempcpy", "memmem", "bcopy", "bzero", "bcmp",
    "explicit_bzero", "strlen", "strnlen", "strcpy", "strncpy", "stpcpy", "stpncpy", "strlcpy", "strlcat", "strcat",
    "strncat", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strcoll", "strxfrm", "strchr", "strchrnul", "strrchr",
    "strstr", "strcasestr", "strpbrk", "strspn", "strcspn", "strdup", "strndup", "index", "rindex", "basename", "dirname",
    "strverscmp", "strsignal", "strerror_r", "strptime", "fnmatch", "regcomp", "regexec", "gettext", "dgettext", "dcgettext",
    "ngettext", "textdomain", "bindtextdomain", "setlocale", "nl_langinfo", "mbrtowc", "mbrlen", "mbtowc", "wcrtomb", "wctomb",
    "wcsncmp", "wcscat", "wcsrchr", "wcsstr", "wcswidth",
    "strtok_r", "strsep", "wcslen", "wcscpy", "wcsncpy", "wcscmp", "wcsdup", "wcschr", "mbstowcs", "wcstombs", "mblen",
    // Numbers and characters.
    "atoi", "atol", "atoll", "atof", "strtol", "strtoll", "strtoul", "strtoull", "strtoimax", "strtoumax", "strtod", "strtof",
    "strtold", "abs", "labs", "isalnum", "isalpha", "isdigit", "isspace", "isupper", "islower", "tolower", "toupper",
    "__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc", "qsort", "bsearch",
    // Streams.
    "fopen", "fclose", "fflush", "fread", "fwrite", "fgets", "fputs", "puts", "fputc", "putc", "putchar", "fgetc", "getc",
    "getchar", "ungetc", "printf", "fprintf", "sprintf", "snprintf", "vprintf", "vfprintf", "vsprintf", "vsnprintf",
    "dprintf", "vdprintf", "asprintf", "vasprintf", "fseek", "fseeko", "ftell", "ftello", "rewind", "feof", "ferror",
    "clearerr", "fileno", "perror", "tmpfile", "fputs_unlocked", "fwrite_unlocked", "fputc_unlocked", "putc_unlocked",
    "getc_unlocked", "fread_unlocked", "fgets_unlocked", "remove", "rename", "flockfile", "funlockfile",
    "syslog", "vsyslog", "warn", "warnx", "err", "errx", "vwarn", "vwarnx", "verr", "verrx", "error", "error_at_line",
    "getline", "getdelim", "__getdelim", "scanf", "fscanf", "sscanf", "tempnam", "fflush_unlocked", "feof_unlocked",
    "ferror_unlocked", "fileno_unlocked",
    // Files and descriptors.
    "open", "openat", "creat", "close", "read", "write", "pread", "pwrite", "lseek", "fsync", "fdatasync", "ftruncate",
    "truncate", "fstat", "stat", "lstat", "access", "unlink", "rmdir", "mkdir", "chdir", "fchdir", "chmod", "fchmod",
    "chown", "fchown", "link", "symlink", "readlink", "realpath", "getcwd", "isatty", "opendir", "readdir", "closedir",
    "rewinddir", "dirfd", "mkstemp", "mkdtemp", "utimes", "flock", "lockf", "dup", "getenv", "setenv", "unsetenv", "gethostname",
    "socket", "accept", "accept4", "bind", "connect", "listen", "shutdown", "send", "sendto", "recv", "recvfrom",
    "getsockname", "getpeername", "getaddrinfo", "freeaddrinfo", "getnameinfo", "inet_ntop", "inet_pton", "inet_addr",
    "inet_aton", "inet_ntoa", "gethostbyname", "getservbyname", "getpwnam", "getpwuid", "getgrnam", "getgrgid", "crypt",
    "setsockopt", "getsockopt", "poll", "select", "sendfile", "fallocate", "posix_fallocate", "posix_fadvise", "mkfifo", "utime",
    "utimensat", "futimens", "renameat", "unlinkat", "mkdirat", "fstatat", "faccessat", "readlinkat", "lchown", "statvfs",
    "fstatvfs", "tcgetattr", "tcsetattr", "uname", "getrusage", "getrlimit", "setrlimit", "getrandom", "getentropy",
    "gai_strerror", "usleep", "sleep", "nanosleep", "kill", "raise", "getpid", "system",
    // Time, errors, ends.
    "time", "gettimeofday", "clock_gettime", "localtime_r", "gmtime_r", "mktime", "timegm", "strftime", "difftime",
    "strerror", "__errno_location", "exit", "_exit", "abort", "__assert_fail", "rand", "srand", "random", "srandom",
    "localtime", "gmtime", "ctime", "asctime", "ctime_r", "asctime_r",
    "pthread_mutex_init", "pthread_mutex_destroy", "pthread_mutex_trylock", "pthread_cond_init", "pthread_cond_destroy",
    "pthread_cond_signal", "pthread_cond_broadcast", "pthread_rwlock_init", "pthread_rwlock_destroy",
    "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_rwlock_unlock",
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_create", "longjmp", "siglongjmp", "atexit", "putenv",
];

/// Where these succeed, the descriptor is of use by being open, even if nobody can name it any more: it holds a lock or a port.
const HOLDING: &[&str] = &["flock", "lockf", "bind", "listen"];

/// What they make is released together with its length, their second argument.
const MAPPING: &[&str] = &["mmap", "mmap64"];

/// What they return is as good as the argument: a descriptor that is open as long as the stream is, or a number.
const NAMING: &[&str] = &["fileno", "fileno_unlocked", "dirfd", "abs", "labs"];

/// A stream or a directory over a descriptor that may be somebody else's is not ours to close.
const BORROWING_HANDLES: &[&str] = &["fdopen", "fdopendir", "freopen"];

/// `__snprintf_chk` and `open64` are trusted as `snprintf` and `open` are.
fn is_trusted(name: &str) -> bool {
    let bare = name.trim_start_matches("__isoc99_").trim_start_matches("__isoc23_");
    let bare = bare.strip_suffix("64").unwrap_or(bare);
    let checked = bare.strip_prefix("__").and_then(|name| name.strip_suffix("_chk"));
    [name, bare].into_iter().chain(checked).any(|name| TRUSTED.contains(&name))
}

pub(crate) fn write(models: &Models, program: &Program<'_>, wanted: &Wanted) -> String {
    let mut text = String::new();
    let mut families = Vec::new();
    for (id, spec) in models.families.iter_ids() {
        if FAMILIES.contains(&spec.name.as_str()) && !spec.is_inline {
            families.push(id);
            let kind = if spec.is_integer { "integer" } else { "pointer" };
            line(&mut text, &["family", &spec.name, &spec.release, kind]);
        }
    }
    let trusted = |model: &&FunctionModel| {
        (model.origin.is_user() || is_trusted(&model.name)) && !BORROWING_HANDLES.contains(&model.name.as_str())
    };
    for model in models.sorted().into_iter().filter(trusted) {
        let words = describe(model, &families, models);
        line(&mut text, &["model", &model.name, &words.join("\t")]);
    }
    for model in models.sorted().into_iter().filter(|model| !trusted(model)) {
        let made = model.effects.iter().find_map(|effect| match effect {
            Effect::Allocates { family, .. } => models.families.get(*family),
            _ => None,
        });
        if let Some(family) = made {
            let why = if family.is_inline {
                format!(
                    "is kept in a variable of the program's (`{}` takes its address), not in a block of its own",
                    family.release
                )
            } else {
                format!("is released by `{}`, which is none of the functions that reclaim", family.release)
            };
            line(&mut text, &["unguarded", &model.name, &why]);
        }
    }
    match wanted {
        Wanted::Everything => line(&mut text, &["everything"]),
        Wanted::Sites(sites) => {
            for (number, site) in sites.iter().enumerate() {
                // A path with a tab or a line break names no file of a C program.
                if !site.file.contains(['\t', '\n']) {
                    let _ = writeln!(text, "site\t{number}\t{}\t{}\t{}", site.file, site.line, site.column);
                }
            }
        }
    }
    for (number, _) in program.modules.iter().enumerate().filter(|(_, module)| !module.debug) {
        let _ = writeln!(text, "strip\t{number}");
    }
    // The user's models are about just those parts.
    let library = |name: &&String| models.get(name).is_some_and(|model| !model.origin.is_user());
    for name in program.foreign.iter().filter(library) {
        line(&mut text, &["defined", name]);
    }
    if !program.name.contains(['\t', '\n']) {
        line(&mut text, &["name", program.name]);
    }
    text
}

fn line(text: &mut String, words: &[&str]) {
    text.push_str(&words.join("\t"));
    text.push('\n');
}

fn describe(model: &FunctionModel, families: &[FamilyId], models: &Models) -> Vec<String> {
    let mut words = Vec::new();
    let argument = |place: &Place| match place {
        Place::Return => None,
        Place::Arg(arg) | Place::Deref(arg) | Place::Field(arg, _) => Some(*arg),
    };
    for effect in &model.effects {
        match effect {
            Effect::Allocates { family, place, when, .. } => {
                allocates(model, (*family, place, *when), (families, models), &mut words);
            }
            // Perhaps of a part only.
            Effect::Releases { place: Place::Arg(arg), .. } if model.name == "munmap" => {
                words.push(format!("take={arg}"))
            }
            Effect::Releases { place: Place::Arg(arg), when: Condition::Always, .. } => {
                words.push(format!("release={arg}"));
            }
            Effect::Reallocates { family, arg: 0, frees_on_failure: false }
                if RAW.contains(&model.name.as_str()) && model.name != "recallocarray" =>
            {
                if let Some(at) = families.iter().position(|id| models.compatible(*id, *family)) {
                    words.extend([format!("family={at}"), "moves".to_owned()]);
                }
            }
            // On failure there may be a new block, too.
            Effect::Replaces { family, place: Place::Deref(arg) } if RAW.contains(&model.name.as_str()) => {
                if let Some(at) = families.iter().position(|id| id == family) {
                    words.extend([format!("family={at}"), format!("out={arg}"), "moves".to_owned()]);
                }
            }
            Effect::Reallocates { arg, .. } => words.push(format!("take={arg}")),
            Effect::Releases { place, .. }
            | Effect::Replaces { place, .. }
            | Effect::Retains { place, .. }
            | Effect::Takes { place, .. } => {
                words.extend(argument(place).map(|arg| format!("take={arg}")));
            }
            Effect::Stores { arg, .. } => words.push(format!("take={arg}")),
            Effect::Points { place: Place::Deref(into), into: Place::Arg(arg) | Place::Deref(arg) } => {
                // What already lies there may only move within it.
                if into != arg {
                    words.push(format!("store={arg}>{into}"));
                }
            }
            Effect::Points { into, .. } => words.extend(argument(into).map(|arg| format!("take={arg}"))),
            Effect::Copies { from, to } => words.push(format!("copy={from}>{to}")),
            Effect::Calls { function, data: Some(data) } => words.push(format!("callback={function}>{data}")),
            Effect::Registers { function, data } => {
                words.extend([Some(*function), *data].into_iter().flatten().map(|arg| format!("take={arg}")));
            }
            Effect::Calls { data: None, .. }
            | Effect::Clears { .. }
            | Effect::Writes { .. }
            | Effect::Zeroes { .. }
            | Effect::Sends { .. }
            | Effect::Sweeps { .. }
            | Effect::WritesRest { .. } => {}
        }
    }
    if HOLDING.contains(&model.name.as_str()) {
        words.push("hold=0".to_owned());
    }
    if NAMING.contains(&model.name.as_str()) {
        words.push("returns=0".to_owned());
    }
    words.extend(model.returns.argument.map(|arg| format!("returns={arg}")));
    words
}

fn allocates(
    model: &FunctionModel,
    (family, place, when): (FamilyId, &Place, Condition),
    (families, models): (&[FamilyId], &Models),
    words: &mut Vec<String>,
) {
    let Some(at) = families.iter().position(|id| *id == family) else { return };
    let only_if_null = match when {
        Condition::Always | Condition::OnSuccess => None,
        Condition::ArgNull(arg) => Some(arg),
        Condition::OnFailure | Condition::ArgNotNull(_) | Condition::Unless(..) => return,
    };
    let out = match place {
        Place::Return => None,
        Place::Deref(arg) => Some(*arg),
        Place::Arg(_) | Place::Field(..) => return,
    };
    let maps = MAPPING.contains(&model.name.as_str());
    // Nobody but `mmap` is known to be given the length.
    if !maps && models.families.get(family).is_some_and(|spec| spec.name == "mapping") {
        return;
    }
    words.extend(maps.then(|| "maps".to_owned()));
    words.push(format!("family={at}"));
    words.extend(only_if_null.map(|arg| format!("ifnull={arg}")));
    words.extend(out.map(|arg| format!("out={arg}")));
    let returns = &model.returns;
    let success = match returns.fails {
        _ if returns.fails_nonzero || returns.zero => "zero",
        _ if returns.fails_negative => "not-neg",
        Some(-1) => "not-1",
        Some(0) => "not-null",
        _ => "always",
    };
    words.push(format!("success={success}"));
    if !RAW.contains(&model.name.as_str()) {
        words.push("deep".to_owned());
    }
}

/// `0 <tab> yes <tab> 3`, `1 <tab> no <tab> it is returned at a.c:9`.
pub(crate) fn verdicts(report: &str, count: usize) -> Vec<Verdict> {
    let unknown = || Verdict::Not("nothing is allocated there that can be followed".to_owned());
    let mut verdicts: Vec<Verdict> = (0..count).map(|_| unknown()).collect();
    for line in report.lines() {
        let mut words = line.splitn(3, '\t');
        let (Some(number), Some(answer), Some(rest)) = (words.next(), words.next(), words.next()) else { continue };
        let Some(verdict) = number.parse::<usize>().ok().and_then(|number| verdicts.get_mut(number)) else { continue };
        *verdict = match answer {
            "yes" => Verdict::Guarded(rest.parse().unwrap_or(0)),
            _ => Verdict::Not(rest.to_owned()),
        };
    }
    verdicts
}
