//! Damaged bitcode and damaged buffers: an error, never a panic.

use caulk_frontend::BitcodeError;

use super::*;

const SOURCE: &str = "#include <stdlib.h>
struct s { struct s *next; char name[8]; };
static struct s *head, table[3] = { { table } };
int f(struct s *p, int n) {
    char buffer[n];
    switch (n) { case 1: return 2; case 3: break; default: free(p); }
    for (int i = 0; i < n; i++) { p->next = malloc(n); head = p; buffer[i] = *p->name; }
    return buffer[0];
}";

/// What the plugin writes for the source.
fn buffer() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("t.c"), SOURCE).expect("writes the source");
    let plugin = install_plugin(folder.path()).expect("installs the plugin");
    clang(folder.path(), &plugin_arguments(&plugin), &[])
}

#[test]
fn what_is_not_bitcode_is_said_to_be_none() {
    for bytes in [&b""[..], b"BC", b"\x7fELF and so on, long enough", b"BC\xC0\xDE", b"BC\xC0\xDE0123456789ab+"] {
        assert_eq!(lower(bytes), Err(BitcodeError::NotBitcode));
    }
    assert!(matches!(lower(b"BC\xC0\xDE0123456789ab"), Err(BitcodeError::Unreadable(_))));
}

#[test]
fn truncated_bitcode_is_an_error() {
    let whole = bitcode(SOURCE, &[]);
    assert!(lower(&whole).is_ok());
    for length in (16..whole.len() - 4).step_by(164) {
        assert!(lower(&whole[..length / 4 * 4]).is_err(), "{length} of {} bytes were accepted", whole.len());
    }
}

#[test]
fn a_truncated_buffer_is_an_error() {
    let whole = buffer();
    assert!(lower(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(lower(&whole[..length]).is_err(), "{length} of {} bytes were accepted", whole.len());
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(matches!(lower(&longer), Err(BitcodeError::Damaged { .. })));
    let mut other = whole;
    other[7] ^= 1;
    assert!(matches!(lower(&other), Err(BitcodeError::Damaged { what, .. }) if what.contains("version")));
}

#[test]
fn a_flipped_bit_gives_an_error_or_a_unit_whose_ids_exist() {
    let whole = buffer();
    let mut refused = 0;
    for bit in 64..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match lower(&damaged) {
            Ok(unit) => drop((verify(&unit), print_unit(&unit))),
            Err(error) => {
                assert!(matches!(error, BitcodeError::Damaged { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > whole.len(), "only {refused} flips were noticed");
}

#[test]
fn the_plugin_is_installed_once_and_mended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = install_plugin(&folder.path().join("new")).expect("installs");
    let time = |path: &Path| std::fs::metadata(path).expect("is there").modified().expect("has a time");
    let first = time(&path);
    assert_eq!(install_plugin(&folder.path().join("new")).expect("is there"), path);
    assert_eq!(time(&path), first);
    let whole = std::fs::read(&path).expect("reads");
    std::fs::write(&path, &whole[..100]).expect("damages");
    install_plugin(&folder.path().join("new")).expect("mends");
    assert_eq!(std::fs::read(&path).expect("reads"), whole);
}
