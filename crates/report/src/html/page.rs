//! What all pages have in common.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::Report;
use crate::html::items::Item;
use crate::html::{GENERATOR, list, overview};

/// `file:` besides `'self'`, because browsers disagree whether a page from disk is itself.
const POLICY: &str = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:; \
                      base-uri 'none'; form-action 'none'";
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath \
                    d='M2 11 Q5 5 8 9 T14 6' fill='none' stroke='%230a6b73' stroke-width='3' \
                    stroke-linecap='round'/%3E%3C/svg%3E";

/// A whole page; `up` leads from it to the report's folder.
pub fn page(title: &str, up: &str, class: &str, report: &Report<'_>, main: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                (PreEscaped(GENERATOR))
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                link rel="icon" href=(PreEscaped(ICON));
                link rel="stylesheet" href={ (up) "assets/caulk.css" };
                script src={ (up) "assets/caulk.js" } {}
            }
            body class=(class) {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.mark href={ (up) "index.html" } { "caulk" }
                    span.project title=(report.root) { (project(report)) }
                    button.theme type="button" hidden { "Theme" }
                }
                main #main { (main) }
                footer { "caulk " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

/// Overview and list.
pub fn index(report: &Report<'_>, items: &[Item<'_>]) -> Markup {
    let title = format!("{} · caulk", project(report));
    page(&title, "", "index", report, html! { (overview::overview(report, items)) (list::list(report, items)) })
}

/// The name of the project's folder.
pub fn project<'a>(report: &Report<'a>) -> &'a str {
    let root = report.root.trim_end_matches('/');
    match root.rsplit_once('/').map_or(root, |(_, name)| name) {
        "" => "/",
        name => name,
    }
}

/// Text in which backticks mark code.
pub fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd backtick out is only a backtick.
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_become_code_and_the_rest_is_escaped() {
        assert_eq!(prose("`a<b` is <i>").into_string(), "<code>a&lt;b</code> is &lt;i&gt;");
        assert_eq!(prose("odd ` one").into_string(), "odd ` one");
    }
}
