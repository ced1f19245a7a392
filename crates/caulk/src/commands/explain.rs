//! `caulk explain`: a rule, or one finding of the last `check`.

use anyhow::{Result, bail};
use caulk_findings::{Graph, Rule};
use caulk_models::nearest;
use caulk_report::{DiskSources, Report, explain_finding, explain_rule, to_dot};

use crate::args::ExplainArgs;
use crate::exit::Outcome;
use crate::output;
use crate::saved::Saved;

pub(super) fn run(args: &ExplainArgs) -> Result<Outcome> {
    let text = match Rule::from_id(&args.what) {
        Some(rule) if args.dot => bail!("--dot draws a finding, and `{}` is a rule; give a fingerprint", rule.id()),
        Some(rule) => explain_rule(rule),
        None if looks_like_fingerprint(&args.what) => explain(args)?,
        None => match nearest(&args.what, Rule::ALL.into_iter().map(Rule::id)) {
            Some(rule) => bail!("no rule `{}`; did you mean `{rule}`?", args.what),
            None => bail!(
                "`{}` is neither a fingerprint (16 hexadecimal digits) nor a rule; the rules are {}",
                args.what,
                Rule::ALL.map(Rule::id).join(", ")
            ),
        },
    };
    output::print(&text)?;
    Ok(Outcome::Clean)
}

/// Enough digits to mean one; the beginning will do.
fn looks_like_fingerprint(word: &str) -> bool {
    (4..=16).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit())
}

fn explain(args: &ExplainArgs) -> Result<String> {
    let saved = Saved::find(args.cache.as_deref())?;
    let wanted = args.what.to_ascii_lowercase();
    let mut matches = saved.findings.findings.iter().filter(|finding| finding.fingerprint.0.starts_with(&wanted));
    let Some(finding) = matches.next() else {
        bail!("the last `caulk check` of {} found nothing with the fingerprint {}", saved.root, args.what);
    };
    if matches.any(|other| other.fingerprint != finding.fingerprint) {
        bail!("several fingerprints begin with {}; give more digits", args.what);
    }
    if args.dot {
        let graph = finding.graph.clone().unwrap_or_else(|| Graph::from_steps(&finding.steps));
        return Ok(to_dot(&graph, &saved.root));
    }
    let sources = DiskSources::new();
    Ok(explain_finding(&Report::new(&saved.findings, &saved.root, &sources), finding, None))
}
