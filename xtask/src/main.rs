//! Development chores: `cargo xtask tidy`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

mod tidy;

const USAGE: &str = "usage: cargo xtask tidy    check the rules of the house that no compiler checks\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut errors = std::io::stderr().lock();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => match tidy::check(root()) {
            Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
            Ok(complaints) => {
                for complaint in &complaints {
                    let _ = writeln!(errors, "tidy: {complaint}");
                }
                let _ = writeln!(errors, "tidy: {} complaint(s)", complaints.len());
                ExitCode::from(1)
            }
            Err(error) => {
                let _ = writeln!(errors, "tidy: {error}");
                ExitCode::from(2)
            }
        },
        _ => {
            let _ = errors.write_all(USAGE.as_bytes());
            ExitCode::from(2)
        }
    }
}

/// The repository: the parent of this package.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
