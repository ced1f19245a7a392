//! What well-known functions do, as `caulk models` says it.

use caulk_models::{Effect, Models, Place};

#[track_caller]
fn contract(expected: &str) {
    let models = Models::builtin();
    let name = expected.split(':').next().unwrap_or_default();
    let model = models.get(name).unwrap_or_else(|| panic!("no model of {name}"));
    assert_eq!(models.describe(model), expected);
}

#[test]
fn memory() {
    contract("malloc: allocates memory; 0 or null on failure");
    contract("calloc: allocates zeroed memory; 0 or null on failure");
    contract("free: releases memory at argument 0");
    contract("realloc: exchanges memory at argument 0 for a new one, keeping it on failure; 0 or null on failure");
    contract("reallocf: exchanges memory at argument 0 for a new one, releasing it in any case; 0 or null on failure");
    contract("posix_memalign: allocates memory at *argument 0; not 0 on failure");
    contract("asprintf: allocates memory at *argument 0; -1 on failure");
    contract("__strdup: allocates memory; 0 or null on failure");
    contract(
        "getline: exchanges memory at *argument 0 in place; writes a number that is not 0 through argument 1; needs argument 0, which must not be null; needs argument 2, which must not be null; takes the next each time; waits, asks or starts something; -1 on failure",
    );
    contract(
        "realpath: if argument 1 is null, allocates memory; writes through argument 1; returns argument 1; \
         0 or null on failure",
    );
    contract(
        "getcwd: if argument 0 is null, allocates memory; writes through argument 0; returns argument 0; \
         0 or null on failure",
    );
}

#[test]
fn strings() {
    contract("strlen: needs argument 0, which must not be null; same result for the same arguments");
    contract(
        "strchr: returns a pointer into what argument 0 points to; needs argument 0, which must not be null; same result for the same arguments",
    );
    contract(
        "strcpy: writes through argument 0; returns argument 0; needs argument 0, which must not be null; needs argument 1, which must not be null; never null",
    );
    contract("memcpy: copies what argument 1 points to into argument 0; returns argument 0; never null");
    contract("strtol: lets *argument 1 point into argument 0; needs argument 0, which must not be null");
    contract(
        "strsep: lets *argument 0 point into *argument 0; returns a pointer into what *argument 0 points to; takes the next each time",
    );
    contract("__isoc99_sscanf: writes through argument 2 and all after it; -1 on failure");
    contract("puts: needs argument 0, which must not be null; -1 on failure");
    contract("strerror: the result belongs to the library; never null");
}

#[test]
fn streams_and_descriptors() {
    contract("fopen: allocates file stream; 0 or null on failure");
    contract("fclose: releases file stream at argument 0 (not null); -1 on failure");
    contract("fdopen: allocates file stream; on success takes argument 0; 0 or null on failure");
    contract("setvbuf: stores argument 1 into argument 0; needs argument 0, which must not be null; not 0 on failure");
    contract("open: allocates descriptor; -1 on failure");
    contract(
        "dup2: releases the descriptor that has the number at argument 1, whoever has it; returns argument 1; -1 on failure",
    );
    contract(
        "pipe: allocates descriptor at byte 0 of *argument 0; allocates descriptor at byte 4 of *argument 0; \
         0 on success; -1 on failure",
    );
    contract("read: writes through argument 1; takes the next each time; takes something in; -1 on failure");
    contract("fdopendir: allocates directory stream; on success takes argument 0; 0 or null on failure");
    contract("popen: allocates pipe to a process; waits, asks or starts something; 0 or null on failure");
    contract(
        "open_memstream: allocates file stream; allocates memory at *argument 0; writes through argument 1; \
         0 or null on failure",
    );
    contract("epoll_create1: allocates descriptor; -1 on failure");
}

#[test]
fn other_resources() {
    contract("getaddrinfo: allocates address list at *argument 3; not 0 on failure");
    contract("regcomp: allocates compiled regular expression at argument 0; not 0 on failure");
    contract("mmap: allocates mapping; argument 2 says whether the memory may be written; -1 on failure");
    contract(
        "deflateInit_: unless something lies at byte 80 of *argument 0, allocates compression stream at argument 0; \
         not 0 on failure",
    );
    contract(
        "inet_pton: writes through argument 2; does not fail if argument 1 is a string literal; 0 or negative on failure",
    );
    contract("sqlite3_close: on success releases database connection at argument 0; not 0 on failure");
    contract("deflateEnd: releases compression stream at argument 0");
    contract("SSL_CTX_up_ref: counts one more reference to SSL_CTX at argument 0");
    contract("SSL_CONF_CTX_new: allocates SSL configuration context; 0 or null on failure");
    contract("SSL_CONF_CTX_free: releases SSL configuration context at argument 0");
    contract("RSA_meth_dup: allocates RSA method; 0 or null on failure");
    contract("EC_KEY_METHOD_free: releases EC key method at argument 0");
    contract("g_clear_error: releases GError at *argument 0; sets *argument 0 to null");
    contract(
        "g_file_get_contents: allocates memory at *argument 1; on failure allocates GError at *argument 3; \
         writes through argument 2; 0 or null on failure",
    );
}

#[test]
fn keeping_and_leaving() {
    contract("putenv: on success takes argument 0; not 0 on failure");
    contract(
        "pthread_create: keeps argument 2 to call later with argument 3; writes through argument 0; begins a thread; not 0 on failure",
    );
    contract("qsort: calls argument 3 with argument 0");
    contract(
        "tsearch: takes argument 0; calls argument 2 with argument 0; the result belongs to the library; 0 or null on failure",
    );
    contract("exit: never returns");
    contract("error: never returns if argument 0 is not 0");
    contract("_setjmp: writes through argument 0; may return twice");
    contract(
        "__errno_location: the result belongs to the library; leads to the number of the last error; never null; same result for the same arguments",
    );
}

#[test]
fn g_free_and_free_are_one_and_fclose_is_not() {
    let models = Models::builtin();
    let family = |name| models.family(name).unwrap_or_else(|| panic!("no family {name}"));
    assert!(models.compatible(family("memory"), family("glib-memory")));
    assert!(models.compatible(family("glib-memory"), family("xml-memory")));
    assert!(!models.compatible(family("memory"), family("file")));
    assert!(!models.compatible(family("memory"), family("openssl-memory")));
    let descriptor = &models.families[family("descriptor")];
    assert!(descriptor.is_integer && descriptor.opaque && !descriptor.is_memory);
    assert!(models.families[family("regex")].is_inline);
    assert!(models.families[family("memory")].is_memory);
}

/// Does the function keep this argument, hand it on, or hold it for somebody?
fn keeps(name: &str, number: u32) -> bool {
    let models = Models::builtin();
    let model = models.get(name).unwrap_or_else(|| panic!("no model of {name}"));
    model.effects.iter().any(|effect| match effect {
        Effect::Takes { place: Place::Arg(arg), .. } | Effect::Stores { arg, .. } => *arg == number,
        Effect::Takes { place: Place::Deref(arg) | Place::Field(arg, _), .. } => *arg == number,
        Effect::Registers { data, .. } | Effect::Calls { data, .. } => *data == Some(number),
        _ => false,
    })
}

/// May what lies in this argument come back from the function, or live on in what it makes?
fn hands_out(name: &str, number: u32) -> bool {
    let models = Models::builtin();
    let model = models.get(name).unwrap_or_else(|| panic!("no model of {name}"));
    !model.returns.borrowed
        && model.effects.iter().any(|effect| matches!(effect, Effect::Sends { arg, size: None, .. } if *arg == number))
}

#[test]
fn what_is_kept() {
    for (name, argument) in [
        ("aio_read", 0),
        ("argp_parse", 5),
        ("BIO_ctrl", 3),
        ("bufferevent_openssl_socket_new", 2),
        ("bufferevent_setfd", 1),
        ("bufferevent_socket_new", 0),
        ("bufferevent_socket_new", 1),
        ("clone", 1),
        ("curl_formadd", 5),
        ("dcngettext", 2),
        ("event_base_once", 1),
        ("event_new", 1),
        ("EVP_PKEY_CTX_ctrl", 5),
        ("evconnlistener_new", 5),
        ("evhttp_accept_socket", 1),
        ("fopencookie", 0),
        ("g_hash_table_insert", 2),
        ("g_intern_static_string", 0),
        ("g_io_channel_unix_new", 0),
        ("g_list_reverse", 0),
        ("g_ptr_array_add", 1),
        ("g_regex_match", 1),
        ("g_unix_fd_add", 0),
        ("lio_listio", 3),
        ("mq_notify", 1),
        ("pam_set_item", 2),
        ("pam_start", 2),
        ("pcre2_match_8", 1),
        ("pthread_attr_setstack", 1),
        ("pthread_sigqueue", 2),
        ("re_compile_pattern", 2),
        ("regfree", 0),
        ("SSL_set_ex_data", 2),
        ("timer_create", 1),
        ("xmlDocSetRootElement", 1),
        ("xmlSaveToBuffer", 0),
        ("xmlSaveToFd", 0),
        ("xmlSchemaNewDocParserCtxt", 0),
        ("xmlXPathNewNodeSet", 0),
    ] {
        assert!(keeps(name, argument), "{name}: argument {argument}");
    }
}

#[test]
fn what_comes_out_of_a_container() {
    for name in [
        "curl_easy_duphandle",
        "g_list_copy",
        "g_list_free",
        "g_list_nth_data",
        "g_queue_copy",
        "g_queue_pop_head",
        "menu_items",
        "OPENSSL_sk_dup",
        "OPENSSL_sk_pop",
        "OPENSSL_sk_value",
        "xmlHashLookup",
    ] {
        assert!(hands_out(name, 0), "{name}");
    }
}

/// Where the manual says "0 on success", any other result is a failure.
#[test]
fn zero_is_success() {
    let models = Models::builtin();
    for name in ["get_default_context_with_level", "getcon", "getifaddrs", "getseuserbyname", "timer_create"] {
        let returns = &models.get(name).unwrap_or_else(|| panic!("no model of {name}")).returns;
        assert!(returns.zero || returns.fails_nonzero, "{name}");
    }
}
