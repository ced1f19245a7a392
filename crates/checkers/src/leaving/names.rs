//! Library functions by what they mean to someone who leaves.

/// Library functions that wait for somebody, ask, or start something: who calls them is not leaving.
pub const WAITS: &[&str] = &[
    "__fgets_chk",
    "__getdelim",
    "__isoc23_fscanf",
    "__isoc23_scanf",
    "__isoc99_fscanf",
    "__isoc99_scanf",
    "__recv_chk",
    "__recvfrom_chk",
    "_IO_getc",
    "accept",
    "accept4",
    "clone",
    "curl_easy_perform",
    "curl_multi_perform",
    "curl_multi_poll",
    "curl_multi_wait",
    "daemon",
    "epoll_pwait",
    "epoll_wait",
    "event_base_dispatch",
    "event_base_loop",
    "event_dispatch",
    "event_loop",
    "fgetc",
    "fgetc_unlocked",
    "fgets",
    "fgets_unlocked",
    "fork",
    "forkpty",
    "fscanf",
    "getc",
    "getc_unlocked",
    "getchar",
    "getchar_unlocked",
    "getdelim",
    "getline",
    "getpass",
    "gets",
    "kevent",
    "pause",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "pthread_create",
    "readline",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "scanf",
    "sem_wait",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "system",
    "thrd_create",
    "vfork",
    "vfscanf",
    "vscanf",
    "wgetch",
];

/// Those that take something in. Whoever reads is at work, unless the program does it wherever it ends.
pub const READS: &[&str] = &[
    "__fread_chk",
    "__pread_chk",
    "__read_chk",
    "fread",
    "fread_unlocked",
    "fts_open",
    "ftw",
    "glob",
    "nftw",
    "opendir",
    "pread",
    "pread64",
    "preadv",
    "read",
    "readdir",
    "readdir64",
    "readv",
    "scandir",
];

/// Functions that do not come back, with the process going on.
pub const JUMPS: &[&str] = &["__libc_start_main", "__longjmp_chk", "_longjmp", "longjmp", "setcontext", "siglongjmp"];

/// Functions that end a thread: the process, for all that a main thread without others cares.
pub const THREAD_ENDS: &[&str] = &["__pthread_unwind_next", "g_thread_exit", "pthread_exit", "thrd_exit"];

pub const THREAD_BEGINS: &[&str] = &["g_thread_new", "g_thread_try_new", "pthread_create", "thrd_create"];

pub const EXECS: &[&str] =
    &["execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve", "execveat"];
