//! Static archives as `ar` writes them, with GNU's long names; read whole, written with some members replaced.

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub data: Vec<u8>,
}

/// The members in order; `None` if it is no archive, a thin one, or damaged.
pub fn read_archive(bytes: &[u8]) -> Option<Vec<Member>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let (mut members, mut long) = (Vec::new(), &[][..]);
    while rest.len() >= HEADER {
        let (header, after) = rest.split_at_checked(HEADER)?;
        let name = std::str::from_utf8(&header[..16]).ok()?.trim_end();
        let size: usize = std::str::from_utf8(&header[48..58]).ok()?.trim().parse().ok()?;
        let (data, after) = after.split_at_checked(size)?;
        rest = after.get(size % 2..).unwrap_or_default();
        match name {
            "//" => long = data,
            "/" | "/SYM64/" => {}
            _ => {
                let name = match name.strip_prefix('/') {
                    Some(at) => {
                        let text = long.get(at.parse().ok()?..)?;
                        let end = text.iter().position(|byte| matches!(byte, b'/' | b'\n'))?;
                        String::from_utf8_lossy(&text[..end]).into_owned()
                    }
                    None => name.trim_end_matches('/').to_owned(),
                };
                members.push(Member { name, data: data.to_vec() });
            }
        }
    }
    Some(members)
}

/// An archive without an index: `ranlib` makes one.
pub fn write_archive(members: &[Member]) -> Vec<u8> {
    let mut names = Vec::new();
    let short: Vec<String> = members
        .iter()
        .map(|member| {
            if member.name.len() < 16 && !member.name.contains('/') {
                return format!("{}/", member.name);
            }
            let at = names.len();
            names.extend_from_slice(member.name.as_bytes());
            names.extend_from_slice(b"/\n");
            format!("/{at}")
        })
        .collect();
    let mut out = MAGIC.to_vec();
    if !names.is_empty() {
        put(&mut out, "//", &names);
    }
    for (member, name) in members.iter().zip(&short) {
        put(&mut out, name, &member.data);
    }
    out
}

fn put(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, data.len());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    if data.len() % 2 == 1 {
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, data: &[u8]) -> Member {
        Member { name: name.to_owned(), data: data.to_vec() }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let members = [member("a.o", b"odd"), member("a_rather_long_name.o", b"even"), member("a.o", b"")];
        assert_eq!(read_archive(&write_archive(&members)).unwrap(), members);
    }

    #[test]
    fn damage_is_no_panic() {
        let whole = write_archive(&[member("a_rather_long_name.o", b"x"), member("b.o", b"yy")]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x15;
            let _ = read_archive(&damaged);
            let _ = read_archive(&whole[..at]);
        }
    }
}
