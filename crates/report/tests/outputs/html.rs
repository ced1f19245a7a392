//! The pages as text; what a browser makes of them is tested in `browser`.

use std::collections::{BTreeMap, BTreeSet};

use caulk_findings::{Findings, MemorySources};
use caulk_report::{HtmlOptions, Report, RunReport, render_html, write_html};

use crate::sample;

fn pages(report: &Report<'_>) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    render_html(report, &HtmlOptions::default(), &mut |name, text| {
        assert!(pages.insert(name.to_owned(), text.to_owned()).is_none(), "{name} is written twice");
        Ok(())
    })
    .unwrap();
    pages
}

fn sample_pages() -> BTreeMap<String, String> {
    let findings = sample::findings();
    let sources = sample::sources();
    let patches = [sample::patch(), sample::refusal()];
    pages(&Report { patches: &patches, ..Report::new(&findings, sample::ROOT, &sources) })
}

/// The values of an attribute in a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn nothing_of_the_program_escapes_into_the_page() {
    for (name, page) in sample_pages().iter().filter(|(name, _)| name.ends_with(".html")) {
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        assert_eq!(page.matches("</script").count(), 1, "{name}");
        for bad in ["<img", "<b>", "<i>", "<u>", " onerror=\"", "javascript:", " style=\"", " onclick"] {
            assert!(!page.contains(bad), "{bad} in {name}");
        }
    }
    let data: Vec<String> =
        sample_pages().into_iter().filter(|(name, _)| name.starts_with("data/")).map(|(_, text)| text).collect();
    assert_eq!(data.len(), 3);
    assert!(data.iter().all(|text| !text.contains('<')));
    assert!(data.iter().any(|text| text.contains("&lt;/script&gt;")));
}

#[test]
fn every_link_leads_somewhere_within_the_folder() {
    let pages = sample_pages();
    for (name, page) in pages.iter().filter(|(name, _)| name.ends_with(".html")) {
        let ids: BTreeSet<&str> = values(page, "id").into_iter().collect();
        assert_eq!(ids.len(), values(page, "id").len(), "an id is used twice in {name}");
        for link in values(page, "href").into_iter().chain(values(page, "src")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match (file.strip_prefix("../"), name.contains('/')) {
                _ if link.starts_with("data:image/svg") => continue,
                (Some(up), true) => up.to_owned(),
                (None, true) if !file.is_empty() => format!("finding/{file}"),
                (None, false) if !file.is_empty() => file.to_owned(),
                (None, _) => name.clone(),
                (Some(_), false) => panic!("{link} leaves the folder"),
            };
            let there = pages.get(&target).unwrap_or_else(|| panic!("{name} links to {link}"));
            if !anchor.is_empty() && !anchor.contains('=') {
                assert!(values(there, "id").contains(&anchor), "{name} links to {link}");
            }
        }
    }
}

const RUN: &str = r#"{"tool": "caulk-runtime", "version": 1, "released": true, "sites": [
  {"file": "/p/src/load.c", "line": 6, "column": 8, "function": "load", "family": "memory", "blocks": 1200, "bytes": 48000},
  {"file": "/p/src/<other>.c", "line": 3, "column": 5, "function": "other", "family": "descriptor", "blocks": 2, "bytes": 0},
  {"file": "/p/src/quiet.c", "line": 9, "column": 1, "function": "quiet", "family": "memory", "blocks": 0, "bytes": 0}
]}"#;

#[test]
fn what_guarded_runs_lost_stands_at_the_finding_and_in_the_overview() {
    let (findings, sources) = (sample::findings(), sample::sources());
    let mut runs = RunReport::default();
    runs.add(RUN).unwrap();
    runs.add(RUN).unwrap();
    let pages = pages(&Report { runs: Some(&runs), ..Report::new(&findings, sample::ROOT, &sources) });
    let index = &pages["index.html"];
    for part in [
        "Lost in runs",
        "<a href=\"finding/00c0ffee00c0ffee.html\"><code>src/load.c:6</code></a>",
        "2,400 blocks, 96,000 bytes",
        "<code>src/&lt;other&gt;.c:3</code>",
        "2,404 blocks, 96,000 bytes reclaimed, at 2 of 3 guarded sites.",
    ] {
        assert!(index.contains(part), "{part} in {index}");
    }
    assert!(!index.contains("quiet.c"));
    assert!(pages["finding/00c0ffee00c0ffee.html"].contains("<dd>2,400 blocks, 96,000 bytes reclaimed</dd>"));
    runs.add(&RUN.replace("1200", "0").replace("true", "false")).unwrap();
    assert_eq!((runs.verb(), runs.sites.len()), ("lost", 3));
    assert!(!sample_pages()["index.html"].contains("Lost in runs"));
}

#[test]
fn only_reports_of_the_runtime_are_runs() {
    let mut runs = RunReport::default();
    for text in
        ["", "{}", "[1]", &RUN.replace("caulk-runtime", "other"), &RUN.replace("\"version\": 1", "\"version\": 9")]
    {
        assert!(runs.add(text).is_err(), "{text}");
    }
    assert_eq!(runs, RunReport::default());
}

#[test]
fn the_page_of_a_finding_tells_all() {
    let pages = sample_pages();
    let page = &pages["finding/00c0ffee00c0ffee.html"];
    for part in [
        "<h1><code>buf</code> is never released when <code>append</code> fails</h1>",
        "id=\"step-7\"",
        "<summary>inside <code class=\"fn\">append</code> <span class=\"path\">src/list.c</span></summary>",
        "<span class=\"branch taken-true\"><code>append(l, buf) &lt; 0</code>",
        "caulk fix --finding 00c0ffee00c0ffee --apply",
        "<td class=\"ins\"><span class=\"sr\">added: </span><code>\t\tfree(buf);</code></td>",
        "no other reference to the block exists at line 11",
        "<code>log_error</code> keeps none of its arguments",
        "href=\"#f1-l8\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // The callee is shown between the call and what follows it.
    let at = |part: &str| page.find(part).unwrap();
    assert!(at("id=\"step-3\"") < at("id=\"step-4\"") && at("id=\"step-5\"") < at("id=\"step-6\""));
    assert!(pages["finding/0d0ub1ef4ee00001.html"].contains("the release lies in a macro body"));
}

#[test]
fn findings_without_source_steps_or_graph_have_a_page() {
    let mut bare = sample::double_free();
    bare.steps.clear();
    let findings = Findings { findings: vec![bare.clone(), bare, sample::leak()], ..Findings::default() };
    let sources = MemorySources::default();
    let pages = pages(&Report::new(&findings, sample::ROOT, &sources));
    let names: Vec<&str> = pages.keys().map(String::as_str).filter(|name| name.starts_with("finding/")).collect();
    assert_eq!(
        names,
        ["finding/00c0ffee00c0ffee.html", "finding/0d0ub1ef4ee00001-2.html", "finding/0d0ub1ef4ee00001.html"]
    );
    assert!(pages["index.html"].contains("this is not a clean result"));
    assert!(pages["finding/00c0ffee00c0ffee.html"].contains("The source cannot be read."));
}

#[test]
fn known_findings_are_listed_and_marked() {
    let findings = Findings { findings: vec![sample::leak()], summary: sample::summary(), gaps: vec![] };
    let known = [sample::double_free()];
    let sources = sample::sources();
    let index = &pages(&Report { known: Some(&known), ..Report::new(&findings, sample::ROOT, &sources) })["index.html"];
    assert!(index.contains("<h1>2 findings"));
    assert_eq!(index.matches("data-since=\"new\"").count(), 1);
    assert_eq!(index.matches("data-since=\"known\"").count(), 1);
}

#[test]
fn a_second_run_removes_its_own_old_pages_only() {
    let folder = tempfile::tempdir().unwrap();
    let sources = sample::sources();
    let write = |findings: &Findings| {
        write_html(&Report::new(findings, sample::ROOT, &sources), &HtmlOptions::default(), folder.path()).unwrap()
    };
    let index = write(&sample::findings());
    assert!(index.is_file());
    let mine = folder.path().join("finding/notes.html");
    std::fs::write(&mine, "<p>mine</p>").unwrap();
    write(&Findings { findings: vec![sample::leak()], ..Findings::default() });
    let left: BTreeSet<String> = std::fs::read_dir(folder.path().join("finding"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, BTreeSet::from(["00c0ffee00c0ffee.html".to_owned(), "notes.html".to_owned()]));
}
