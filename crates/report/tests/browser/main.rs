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
    assert_eq!(visit.browser.text("h1"), "3 findings in p");
    assert_eq!(visit.visible_rows(), 3);
    assert_eq!(visit.browser.text("#shown"), "3 findings");
    visit.browser.click("#rows a[href*='00c0ffee']");
    assert_eq!(visit.browser.text("h1"), "buf is never released when append fails");
    visit.browser.press("]");
    assert!(visit.browser.address().contains("0d0ub1ef4ee00001"), "{}", visit.browser.address());
    visit.browser.press("u");
    assert!(visit.browser.address().contains("index.html"));
    visit.end();
}

#[test]
fn filters_live_in_the_address() {
    let visit = Visit::sample().index();
    let browser = &visit.browser;
    browser.choose("rule", "memory-leak");
    assert_eq!(visit.visible_rows(), 2);
    assert_eq!(visit.anchor(), "rule=memory-leak");
    assert_eq!(browser.text("#shown"), "2 of 3 findings");
    browser.eval("document.activeElement.blur()");
    browser.press("/");
    browser.press("fails APPEND");
    assert_eq!(visit.visible_rows(), 1);
    assert_eq!(visit.anchor(), "q=fails+APPEND&rule=memory-leak");

    browser.reload();
    assert_eq!(visit.visible_rows(), 1);
    assert_eq!(browser.eval("document.querySelector('[name=q]').value"), "fails APPEND");

    browser.press("/");
    browser.press(" zebra/");
    assert_eq!(browser.eval("document.activeElement.value"), "fails APPEND zebra/", "a search field takes every key");
    assert_eq!(visit.visible_rows(), 0);
    assert!(browser.text("#none").contains("No finding matches"));
    browser.click("[type=reset]");
    assert_eq!(visit.visible_rows(), 3);
    assert_eq!(visit.anchor(), "");

    browser.click(".bars a[href='#rule=double-free']");
    assert_eq!(visit.visible_rows(), 1);
    assert_eq!(browser.eval("document.querySelector('[name=rule]').value"), "double-free");
    browser.open(&visit.page("index.html"), "#repair=no-patch");
    assert_eq!(visit.visible_rows(), 1);
    browser.open(&visit.page("index.html"), "#since=known");
    assert_eq!(visit.visible_rows(), 0);
    visit.end();
}

#[test]
fn the_list_can_be_sorted() {
    let visit = Visit::sample().index();
    let first = || visit.browser.eval("document.querySelector('#rows tr').dataset.confidence");
    assert_eq!(first(), "low");
    visit.browser.choose("sort", "confidence");
    assert_eq!(first(), "high");
    visit.browser.choose("sort", "");
    assert_eq!(first(), "low");
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
    assert_eq!(current(), "");
    browser.press("j");
    assert_eq!(current(), "1");
    assert_eq!(browser.eval("document.querySelector('#prev').disabled"), true);
    browser.press("n");
    browser.press("\u{E014}");
    assert_eq!(current(), "3");
    assert_eq!(in_view(3), true);

    // A callee that was closed opens when the path enters it.
    browser.eval("document.querySelector('details.callee').open = false");
    browser.press("j");
    assert_eq!(current(), "4");
    assert_eq!(visit.anchor(), "step-4");
    assert_eq!(browser.eval("document.querySelector('details.callee').open"), true);
    assert_eq!(in_view(4), true);
    assert!(browser.eval("document.querySelector('#say').textContent").as_str().unwrap().starts_with("Step 4 of 7"));
    assert_eq!(browser.eval("document.querySelector('.graph .now').dataset.node"), "4");

    browser.press("jjjjj");
    assert_eq!(current(), "7");
    assert_eq!(browser.eval("document.querySelector('#next').disabled"), true);
    browser.press("k\u{E012}p");
    assert_eq!(current(), "4");
    browser.click("#next");
    assert_eq!(current(), "5");
    assert_eq!(browser.text("#walk"), "5 of 7");
    browser.reload();
    assert_eq!(current(), "5");
    visit.end();
}

#[test]
fn nodes_of_the_graph_lead_to_their_lines() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    browser.click(".graph a[data-node='6'] rect");
    assert_eq!(visit.anchor(), "step-6");
    assert_eq!(browser.eval("document.querySelector('.step.now').id"), "step-6");
    // The node beside the path leads to its line.
    browser.click(".graph a[href='#f1-l8'] rect");
    assert_eq!(visit.anchor(), "f1-l8");
    let top = browser.eval("document.querySelector('#f1-l8').getBoundingClientRect().top").as_f64().unwrap();
    assert!((0.0..1000.0).contains(&top), "{top}");
    let on_path = browser.eval("document.querySelectorAll('.graph .edge.on').length");
    assert_eq!(on_path, 6);
    visit.end();
}

#[test]
fn the_patch_is_copied() {
    let visit = Visit::sample().leak();
    let browser = &visit.browser;
    browser
        .cdp("Browser.grantPermissions", json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }));
    browser.click("[data-copy=patch-text]");
    browser.until("navigator.clipboard.readText()", &json!(sample::patch().diff));
    browser.click("[data-copy=command]");
    browser.until("navigator.clipboard.readText()", &json!("caulk fix --finding 00c0ffee00c0ffee --apply"));
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
            assert_eq!(visit.visible_rows(), rows, "{choice}");
            assert_eq!(visit.anchor(), format!("repair={choice}"));
        }
        browser.choose("repair", word);
        browser.click("#rows tr:not([hidden]) a");
        assert_eq!(browser.text(".kicker .fix"), word);
        // Old on the left, new on the right, in one row where both are there.
        let added = browser.eval(
            "[...document.querySelectorAll('.diff tr.changed')].map(r => r.cells[3].querySelector('code').textContent)",
        );
        assert!(added.to_string().contains("free(buf);"), "{added}");
        assert_eq!(browser.eval("document.querySelectorAll('.diff tr:not(.changed) td.ins').length"), 0);
        assert!(!browser.text(".why").is_empty());
        let tells_how = browser.eval("!!document.querySelector('#command')");
        assert_eq!(tells_how, !applied, "what is in the source already needs no command");
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
    assert!(!is_dark());
    browser.media("prefers-color-scheme", "dark");
    browser.reload();
    assert!(is_dark());
    assert_eq!(browser.text(".theme"), "Light theme");
    browser.click(".theme");
    assert!(!is_dark());
    // The choice holds on the next page.
    browser.click("#up");
    assert!(!is_dark());
    visit.end();
}

#[test]
fn a_phone_shows_everything_without_scrolling_sideways() {
    let visit = Visit::sample();
    let browser = &visit.browser;
    browser.narrow(375);
    for page in ["index.html", "finding/00c0ffee00c0ffee.html", "finding/0bad0bad0bad0bad.html"] {
        browser.open(&visit.page(page), "");
        let widths = browser.eval("[document.documentElement.scrollWidth, innerWidth]");
        assert_eq!(widths[0], 375, "{page}: {widths}");
    }
    browser.open(&visit.page("finding/00c0ffee00c0ffee.html"), "");
    browser.click("#next");
    assert_eq!(browser.text("#walk"), "1 of 7");
    let bottom = browser.eval("document.querySelector('.walker').getBoundingClientRect().bottom === innerHeight");
    assert_eq!(bottom, true, "the buttons stay at the thumb");
    visit.end();
}

#[test]
fn hostile_source_stays_text() {
    let visit = Visit::sample();
    let browser = &visit.browser;
    browser.open(&visit.page("finding/0bad0bad0bad0bad.html"), "");
    browser.click(".fold");
    // The lines come from a script that has to load first.
    browser.until("document.querySelector('.code').innerText.includes('alert(10)')", &json!(true));
    assert_eq!(browser.eval("document.querySelector('.fold')"), Value::Null);
    assert_eq!(browser.eval("document.images.length"), 0);
    assert_eq!(browser.eval("document.querySelectorAll('body script, b, i, u').length"), 0);
    assert!(browser.text("h1").contains("</script><script>alert(5)</script>"));
    assert_eq!(
        browser.eval("[...document.querySelectorAll('.ln')].at(-1).innerText.trim()"),
        "const char *tail = \"</code></div><img src=x onerror=alert(10)>\";"
    );
    browser.open(&visit.page("index.html"), "");
    assert_eq!(browser.eval("document.images.length"), 0);
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
    assert_eq!(visit.visible_rows(), 2000);
    assert_eq!(browser.text("#shown"), "2,000 findings");
    browser.choose("folder", "src/net");
    assert_eq!(visit.visible_rows(), 574, "a folder holds what lies below it");
    browser.click("[name=q]");
    browser.press("item58 ");
    assert_eq!(visit.visible_rows(), 1);
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
        let headings = browser.eval("document.querySelectorAll('h1').length");
        assert_eq!(headings, 1);
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
    assert_eq!(shown("aside.path"), true);
    browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    for selector in ["aside.path", "header.top", ".copy", ".crumbs"] {
        assert_eq!(shown(selector), false, "{selector}");
    }
    for selector in ["h1", ".step", ".code", ".diff", ".graph"] {
        assert_eq!(shown(selector), true, "{selector}");
    }
    visit.end();
}
