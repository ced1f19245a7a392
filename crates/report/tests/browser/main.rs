//! The pages in a real browser: what they do, that they are quiet, and that they
//! ask for nothing outside their folder.

#[path = "../support/sample.rs"]
mod sample;

mod driver;

use std::path::PathBuf;

use caulk_findings::{Confidence, Findings, Fingerprint, Patch, Rule};
use caulk_report::{HtmlOptions, Report, write_html};
use driver::Browser;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What a page comes to show: a page answers to an act a little later, and on a busy machine much later. Looks until
/// the value is the wanted one, and asserts it after a time that no machine needs.
macro_rules! soon {
    ($value:expr, $wanted:expr $(, $($words:tt)+)?) => {{
        let patience = std::time::Instant::now() + driver::PATIENCE;
        while $value != $wanted && std::time::Instant::now() < patience {
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
        assert_eq!($value, $wanted $(, $($words)+)?);
    }};
}

/// A report on disk and a browser to look at it.
struct Visit {
    folder: TempDir,
    browser: Browser,
}

impl Visit {
    fn to(findings: &Findings, patches: &[Patch]) -> Visit {
        Visit::with(findings, patches, HtmlOptions::default())
    }

    fn with(findings: &Findings, patches: &[Patch], options: HtmlOptions) -> Visit {
        let folder = tempfile::tempdir().unwrap();
        let sources = sample::sources();
        let report = Report { patches, known: Some(&[]), ..Report::new(findings, sample::ROOT, &sources) };
        write_html(&report, &options, folder.path()).unwrap();
        Visit { folder, browser: Browser::start() }
    }

    fn sample() -> Visit {
        Visit::to(&sample::findings(), &[sample::patch(), sample::refusal()])
    }

    fn page(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn index(self) -> Visit {
        self.browser.open(&self.page("index.html"), "");
        self
    }

    fn leak(self) -> Visit {
        self.browser.open(&self.page("finding/00c0ffee00c0ffee.html"), "");
        self
    }

    fn visible_rows(&self) -> u64 {
        self.browser.eval("document.querySelectorAll('#rows tr:not([hidden])').length").as_u64().unwrap()
    }

    /// The address behind the `#`.
    fn anchor(&self) -> String {
        self.browser.address().split_once('#').map(|(_, anchor)| anchor.to_owned()).unwrap_or_default()
    }

    /// Nothing in the console, nothing from outside the folder.
    fn end(self) {
        let Visit { folder, browser } = self;
        let (console, asked) = browser.finish();
        assert_eq!(console, [""; 0], "the console must stay empty");
        let home = format!("file://{}/", folder.path().display());
        assert!(asked.iter().any(|address| address.starts_with(&home)), "requests were seen: {asked:?}");
        let outside: Vec<&String> =
            asked.iter().filter(|address| !address.starts_with(&home) && !address.starts_with("data:")).collect();
        assert!(outside.is_empty(), "{outside:?}");
    }
}

#[test]
fn the_overview_opens_and_leads_to_a_finding() {
    let visit = Visit::sample().index();
    soon!(visit.browser.text("h1"), "3 findings in p");
    soon!(visit.visible_rows(), 3);
    soon!(visit.browser.text("#shown"), "3 findings");
    visit.browser.click("#rows a[href*='00c0ffee']");
    soon!(visit.browser.text("h1"), "buf is never released when append fails");
    visit.browser.press("]");
    soon!(visit.browser.address().contains("0d0ub1ef4ee00001"), true, "{}", visit.browser.address());
    visit.browser.press("u");
    soon!(visit.browser.address().contains("index.html"), true);
    visit.end();
}

#[test]
fn filters_live_in_the_address() {
    let visit = Visit::sample().index();
    let browser = &visit.browser;
    browser.choose("rule", "memory-leak");
    soon!(visit.visible_rows(), 2);
    soon!(visit.anchor(), "rule=memory-leak");
    soon!(browser.text("#shown"), "2 of 3 findings");
    browser.eval("document.activeElement.blur()");
    browser.press("/");
    browser.press("fails APPEND");
    soon!(visit.visible_rows(), 1);
    soon!(visit.anchor(), "q=fails+APPEND&rule=memory-leak");

    browser.reload();
    soon!(visit.visible_rows(), 1);
    soon!(browser.eval("document.querySelector('[name=q]').value"), "fails APPEND");

    browser.press("/");
    browser.press(" zebra/");
    soon!(browser.eval("document.activeElement.value"), "fails APPEND zebra/", "a search field takes every key");
    soon!(visit.visible_rows(), 0);
    soon!(browser.text("#none").contains("No finding matches"), true);
    browser.click("[type=reset]");
    soon!(visit.visible_rows(), 3);
    soon!(visit.anchor(), "");

    browser.click(".bars a[href='#rule=double-free']");
    soon!(browser.eval("document.querySelector('[name=rule]').value"), "double-free");
    soon!(visit.visible_rows(), 1);
    browser.open(&visit.page("index.html"), "#repair=no-patch");
    soon!(visit.visible_rows(), 1);
    browser.open(&visit.page("index.html"), "#since=known");
    soon!(visit.visible_rows(), 0);
    visit.end();
}

#[test]
fn the_list_can_be_sorted() {
    let visit = Visit::sample().index();
    let first = || visit.browser.eval("document.querySelector('#rows tr').dataset.confidence");
    soon!(first(), "low");
    visit.browser.choose("sort", "confidence");
    soon!(first(), "high");
    visit.browser.choose("sort", "");
    soon!(first(), "low");
    visit.end();
}

#[test]
fn the_path_is_walked_by_keyboard() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    let current =
        || browser.eval("[...document.querySelectorAll('[aria-current=step]')].map(e => e.dataset.go).join()");
    let in_view = |step: u32| {
        let check = format!(
            "(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('#step-{step}').getBoundingClientRect())"
        );
        browser.eval(&check)
    };
    soon!(current(), "");
    browser.press("j");
    soon!(current(), "1");
    soon!(browser.eval("document.querySelector('#prev').disabled"), true);
    browser.press("n");
    browser.press("\u{E014}");
    soon!(current(), "3");
    soon!(in_view(3), true);

    // A callee that was closed opens when the path enters it.
    browser.eval("document.querySelector('details.callee').open = false");
    browser.press("j");
    soon!(current(), "4");
    soon!(visit.anchor(), "step-4");
    soon!(browser.eval("document.querySelector('details.callee').open"), true);
    soon!(in_view(4), true);
    soon!(browser.eval("document.querySelector('#say').textContent.startsWith('Step 4 of 7')"), true);
    soon!(browser.eval("document.querySelector('.graph .now').dataset.node"), "4");

    browser.press("jjjjj");
    soon!(current(), "7");
    soon!(browser.eval("document.querySelector('#next').disabled"), true);
    browser.press("k\u{E012}p");
    soon!(current(), "4");
    browser.click("#next");
    soon!(current(), "5");
    soon!(browser.text("#walk"), "5 of 7");
    browser.reload();
    soon!(current(), "5");
    visit.end();
}

#[test]
fn nodes_of_the_graph_lead_to_their_lines() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    browser.click(".graph a[data-node='6'] rect");
    soon!(visit.anchor(), "step-6");
    soon!(browser.eval("document.querySelector('.step.now').id"), "step-6");
    // The node beside the path leads to its line.
    browser.click(".graph a[href='#f1-l8'] rect");
    soon!(visit.anchor(), "f1-l8");
    let top = || browser.eval("document.querySelector('#f1-l8').getBoundingClientRect().top").as_f64().unwrap();
    soon!((0.0..1000.0).contains(&top()), true, "{}", top());
    soon!(browser.eval("document.querySelectorAll('.graph .edge.on').length"), 6);
    visit.end();
}

#[test]
fn the_patch_is_copied() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    browser
        .cdp("Browser.grantPermissions", json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }));
    browser.click("[data-copy=patch-text]");
    soon!(browser.eval("navigator.clipboard.readText()"), sample::patch().diff);
    browser.click("[data-copy=command]");
    soon!(browser.eval("navigator.clipboard.readText()"), "caulk fix --finding 00c0ffee00c0ffee --apply");
    visit.end();
}

#[test]
fn what_is_fixed_fixable_and_refused_is_told_apart() {
    for (applied, word) in [(false, "fixable"), (true, "fixed")] {
        let patches = [sample::patch(), sample::refusal()];
        let visit = Visit::with(&sample::findings(), &patches, HtmlOptions { applied }).index();
        let browser = &visit.browser;
        for (choice, rows) in [(word, 1), ("no-patch", 1), ("not-tried", 1)] {
            browser.choose("repair", choice);
            soon!(visit.visible_rows(), rows, "{choice}");
            soon!(visit.anchor(), format!("repair={choice}"));
        }
        browser.choose("repair", word);
        browser.click("#rows tr:not([hidden]) a");
        soon!(browser.text(".kicker .fix"), word);
        // Old on the left, new on the right, in one row where both are there.
        let added = browser.eval(
            "[...document.querySelectorAll('.diff tr.changed')].map(r => r.cells[3].querySelector('code').textContent)",
        );
        assert!(added.to_string().contains("free(buf);"), "{added}");
        soon!(browser.eval("document.querySelectorAll('.diff tr:not(.changed) td.ins').length"), 0);
        assert!(!browser.text(".why").is_empty());
        soon!(
            browser.eval("!!document.querySelector('#command')"),
            !applied,
            "what is in the source already needs no command"
        );
        // Everything can be reached with the keyboard alone.
        let order = browser.eval(
            "[...document.querySelectorAll('a[href], button:not([hidden]), [tabindex=\"0\"], summary')]\
             .filter(e => e.tabIndex >= 0 && e.offsetParent !== null || e.closest('svg')).length",
        );
        assert!(order.as_u64().unwrap() > 15, "{order}");
        visit.end();
    }
}

/// Lightness of a colour as the browser computed it, from 0 to 255.
fn lightness(browser: &Browser, selector: &str, property: &str) -> f64 {
    let colour = browser.eval(&format!("getComputedStyle(document.querySelector({})).{property}", json!(selector)));
    let numbers: Vec<f64> = colour
        .as_str()
        .unwrap()
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|number| number.parse().ok())
        .collect();
    0.2126 * numbers[0] + 0.7152 * numbers[1] + 0.0722 * numbers[2]
}

#[test]
fn dark_follows_the_system_and_the_button() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    let is_dark = || {
        let (paper, ink) = (lightness(browser, "body", "backgroundColor"), lightness(browser, "body", "color"));
        assert!((paper - ink).abs() > 120.0, "text stands out: {paper} {ink}");
        paper < ink
    };
    browser.media("prefers-color-scheme", "light");
    browser.reload();
    soon!(is_dark(), false);
    browser.media("prefers-color-scheme", "dark");
    browser.reload();
    soon!(is_dark(), true);
    soon!(browser.text(".theme"), "Light theme");
    browser.click(".theme");
    soon!(is_dark(), false);
    // The choice holds on the next page.
    browser.click("#up");
    soon!(is_dark(), false);
    visit.end();
}

#[test]
fn a_phone_shows_everything_without_scrolling_sideways() {
    let visit = Visit::sample();
    let browser = &visit.browser;
    browser.narrow(375);
    for page in ["index.html", "finding/00c0ffee00c0ffee.html", "finding/0bad0bad0bad0bad.html"] {
        browser.open(&visit.page(page), "");
        soon!(browser.eval("document.documentElement.scrollWidth"), 375, "{page}");
    }
    browser.open(&visit.page("finding/00c0ffee00c0ffee.html"), "");
    browser.click("#next");
    soon!(browser.text("#walk"), "1 of 7");
    let at_bottom = "document.querySelector('.walker').getBoundingClientRect().bottom === innerHeight";
    soon!(browser.eval(at_bottom), true, "the buttons stay at the thumb");
    visit.end();
}

#[test]
fn hostile_source_stays_text() {
    let visit = Visit::sample();
    let browser = &visit.browser;
    browser.open(&visit.page("finding/0bad0bad0bad0bad.html"), "");
    browser.click(".fold");
    // The lines come from a script that has to load first.
    soon!(browser.eval("document.querySelector('.code').innerText.includes('alert(10)')"), true);
    soon!(browser.eval("document.querySelector('.fold')"), Value::Null);
    soon!(browser.eval("document.images.length"), 0);
    soon!(browser.eval("document.querySelectorAll('body script, b, i, u').length"), 0);
    assert!(browser.text("h1").contains("</script><script>alert(5)</script>"));
    soon!(
        browser.eval("[...document.querySelectorAll('.ln')].at(-1).innerText.trim()"),
        "const char *tail = \"</code></div><img src=x onerror=alert(10)>\";"
    );
    browser.open(&visit.page("index.html"), "");
    soon!(browser.eval("document.images.length"), 0);
    visit.end();
}

/// `number` findings spread over folders, every rule and every confidence.
fn many(number: usize) -> Findings {
    let folders = ["src", "src/net", "src/net/tls", "lib", "lib/list", "tools", "tests"];
    let kinds = [sample::leak(), sample::double_free(), sample::leak(), sample::hostile()];
    let findings = (0..number)
        .map(|index| {
            let mut finding = kinds[index % kinds.len()].clone();
            finding.fingerprint = Fingerprint(format!("{index:016x}"));
            finding.confidence = [Confidence::High, Confidence::High, Confidence::Medium, Confidence::Low][index % 4];
            if index % 4 == 2 {
                finding.rule = Rule::ALL[index / 4 % Rule::ALL.len()];
                finding.message = format!("`item{index}` is lost when `queue_push` fails");
            }
            let file = format!("{}/{}/part{}.c", sample::ROOT, folders[index / 7 % folders.len()], index % 23);
            finding.source.file.clone_from(&file);
            finding.sink.file = file;
            finding
        })
        .collect();
    Findings { findings, summary: sample::summary(), gaps: sample::gaps() }
}

#[test]
fn two_thousand_findings_are_listed_and_filtered() {
    let visit = Visit::to(&many(2000), &[]).index();
    let browser = &visit.browser;
    soon!(visit.visible_rows(), 2000);
    soon!(browser.text("#shown"), "2,000 findings");
    browser.choose("folder", "src/net");
    soon!(visit.visible_rows(), 574, "a folder holds what lies below it");
    browser.click("[name=q]");
    browser.press("item58 ");
    soon!(visit.visible_rows(), 1);
    visit.end();
}

#[test]
fn every_control_has_a_name_for_screen_readers() {
    let visit = Visit::sample();
    let browser = &visit.browser;
    for page in ["index.html", "finding/00c0ffee00c0ffee.html"] {
        browser.open(&visit.page(page), "");
        let tree = browser.cdp("Accessibility.getFullAXTree", json!({}));
        let mut controls = 0;
        for node in tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] == false) {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            if matches!(role, "button" | "link" | "searchbox" | "combobox" | "region" | "search") {
                controls += 1;
                let name = node["name"]["value"].as_str().unwrap_or_default();
                assert!(!name.trim().is_empty(), "a {role} without a name in {page}: {node:#}");
            }
        }
        assert!(controls > 8, "{controls} controls in {page}");
        soon!(browser.eval("document.querySelectorAll('h1').length"), 1);
    }
    visit.end();
}

#[test]
fn print_leaves_out_what_paper_cannot_do() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    let shown = |selector: &str| {
        browser.eval(&format!("getComputedStyle(document.querySelector({})).display !== 'none'", json!(selector)))
    };
    soon!(shown("aside.path"), true);
    browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    for selector in ["aside.path", "header.top", ".copy", ".crumbs"] {
        soon!(shown(selector), false, "{selector}");
    }
    for selector in ["h1", ".step", ".code", ".diff", ".graph"] {
        soon!(shown(selector), true, "{selector}");
    }
    visit.end();
}
