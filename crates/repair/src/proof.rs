//! The proof: a program before and after a candidate, compared.
//!
//! # Invariants
//! - Anything that is not shown is a reason to say no. The reason is told to the user.

use std::collections::{BTreeMap, BTreeSet};

use caulk_analysis::Doubt;
use caulk_findings::{Finding, Place, Rule};

use crate::change::{Change, Expect};
use crate::lockstep::{self, Verdict};
use crate::paired;
use crate::survey::{DRAINS, Spot, Survey};
use crate::workshop::{Doubts, Rebuilt};

/// Shows that the candidate repairs `finding` and hurts nothing, or says what is missing.
pub fn prove(
    before: &Survey,
    after: &Rebuilt,
    finding: &Finding,
    change: &Change,
    expect: Expect,
) -> Result<Vec<String>, String> {
    warnings(after)?;
    let survey = &after.survey;
    let released = harmless(before, survey, finding, change, expect)?;
    if expect.releases && released == 0 {
        return Err("the new release is not reached, or not seen as one".into());
    }
    shifted(before, survey, finding, &survey.releases, change)?;
    unchanged(before, survey, finding, change)?;
    gone(before, survey, finding, change)?;
    let mut why = Vec::new();
    if released > 0 {
        why.push("on every path to the new release the pointer is null or the only reference to a live block".into());
    }
    why.push("the patched program compiles without a new warning and was analysed again as a whole".into());
    why.push("every function does what it did, on every path, but for what it releases".into());
    why.push("no other finding appeared, and no caller sees a difference in what is released or kept".into());
    Ok(why)
}

/// Shows that nothing is worse than it was, whether or not the error is gone; the number of new releases.
pub fn harmless(
    before: &Survey,
    survey: &Survey,
    finding: &Finding,
    change: &Change,
    expect: Expect,
) -> Result<usize, String> {
    appeared(before, survey, change)?;
    let (released, changed) = releases(before, survey, change, expect, finding)?;
    // A block that nobody else refers to is gone: other functions cannot tell, whatever the analysis makes of it.
    let alone = expect.only_releases() && !expect.overwrites && !expect.grows && released > 0;
    let concerned = |function: &str| !alone || changed.contains(function);
    suspicions(before, survey, expect, &concerned)?;
    effects(before, survey, expect, &concerned)?;
    if !alone {
        elsewhere(before, survey, change)?;
    }
    Ok(released)
}

/// What a look at the changed function alone says against a candidate. The proof would say so, too.
pub fn first_look(
    before: &Survey,
    seen: &Rebuilt,
    finding: &Finding,
    change: &Change,
    expect: Expect,
) -> Result<(), String> {
    warnings(seen)?;
    appeared(before, &seen.survey, change)?;
    releases(before, &seen.survey, change, expect, finding).map(|_| ())
}

/// Shows that a release is not needed: the variable `probe`, which leaks wherever it is, is not found.
///
/// What nobody is told of counts as well: in `main`, it would be lost when the program ends anyway.
pub fn useless(
    before: &Survey,
    probed: &Survey,
    finding: &Finding,
    (change, probe): (&Change, &str),
) -> Result<String, String> {
    let found = |found: &Finding| found.object.contains(probe);
    if probed.findings.iter().any(found) || probed.lost.iter().any(|(spot, _)| is_new(change, spot)) {
        return Err("on some path it is the only release".into());
    }
    if before.degraded.iter().any(|(_, function)| *function == finding.sink.function) {
        return Err(format!("`{}` is too large to be proved", finding.sink.function));
    }
    Ok("on every path through the deleted release the block is released by the other one, or there is none".into())
}

/// Shows that a new release does not look into a null pointer: nothing leaks where it would.
pub fn not_null(probed: &Survey, change: &Change, probe: &str) -> Result<(), String> {
    let found = |found: &Finding| found.object.contains(probe);
    let at_end = probed.lost.iter().any(|(spot, at_end)| *at_end && is_new(change, spot));
    match at_end || probed.findings.iter().any(found) {
        true => Err(NULL_THERE.into()),
        false => Ok(()),
    }
}

/// Shows that a destructor only releases where it is called now: what a probe would ask is not come to.
pub fn stays_quiet(probed: &Doubts, probe: &Change) -> Result<(), String> {
    match probed.keys().any(|spot| is_new(probe, spot)) {
        true => Err("its own release may do more there".into()),
        false => Ok(()),
    }
}

/// Shows that the changed functions do what they did.
fn unchanged(before: &Survey, after: &Survey, finding: &Finding, change: &Change) -> Result<(), String> {
    match lockstep::compare(before, after, change, &finding.release) {
        Verdict::Same => Ok(()),
        Verdict::Differs { old, new, what } => Err(format!("{what} (line {old}, now {new})")),
        Verdict::Unknown { why } => Err(format!("it could not be shown that the rest stays as it was: {why}")),
    }
}

fn warnings(after: &Rebuilt) -> Result<(), String> {
    let mut known = count(after.warnings_before.iter());
    for warning in &after.warnings_after {
        match known.get_mut(warning) {
            Some(left) if *left > 0 => *left -= 1,
            // The author calls it all the same.
            Some(_) if warning.contains(DEPRECATED) => {}
            _ => return Err(format!("the compiler would warn: {warning}")),
        }
    }
    Ok(())
}

/// The identity of a finding without lines.
fn identity(finding: &Finding) -> (Rule, &str, &str, &str, &str) {
    (finding.rule, &finding.source.file, &finding.source.function, &finding.sink.function, &finding.object)
}

fn count<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// What is said of a candidate that does no harm, but not all there is to do.
pub const REMAINS: &str = "the error would remain";

/// A warning of a function's name, not of how it is used.
const DEPRECATED: &str = "[-Wdeprecated-declarations]";

/// What is said of a candidate that would look into a null pointer.
pub const NULL_THERE: &str = "on some path the pointer is null there";

fn appeared(before: &Survey, after: &Survey, change: &Change) -> Result<(), String> {
    let old = count(before.findings.iter().map(identity));
    let new = count(after.findings.iter().map(identity));
    // Another loss of a block that was lost before is no new error. Another use of a released one is, also where an
    // old use went: the release may have come to another block.
    let used: BTreeSet<_> = before.findings.iter().map(|found| (found.rule, moved(&found.sink, change))).collect();
    for found in &after.findings {
        let key = identity(found);
        let sink = (found.sink.file.as_str(), found.sink.line, found.sink.column);
        let is_elsewhere = !found.rule.is_leak() && !used.contains(&(found.rule, sink));
        if is_elsewhere || new[&key] > old.get(&key).copied().unwrap_or(0) {
            return Err(format!("it would cause another error: {}", found.message));
        }
    }
    Ok(())
}

/// Where a place of the program before is afterwards.
fn moved<'a>(place: &'a Place, change: &Change) -> (&'a str, u32, u32) {
    let (line, column) = if std::path::Path::new(&place.file) == change.file {
        change.position(place.line, place.column)
    } else {
        (place.line, place.column)
    };
    (&place.file, line, column)
}

fn gone(before: &Survey, after: &Survey, finding: &Finding, change: &Change) -> Result<(), String> {
    let old = count(before.findings.iter().map(identity));
    let new = count(after.findings.iter().map(identity));
    let key = identity(finding);
    if new.get(&key).copied().unwrap_or(0) >= old.get(&key).copied().unwrap_or(0) {
        return Err(REMAINS.into());
    }
    let (source, sink) = (moved(&finding.source, change), moved(&finding.sink, change));
    let same = |found: &&Finding| {
        found.rule == finding.rule
            && (found.source.line, found.source.column) == (source.1, source.2)
            && (found.sink.file.as_str(), found.sink.line, found.sink.column) == sink
    };
    match after.findings.iter().find(same) {
        Some(_) => Err(REMAINS.into()),
        None => Ok(()),
    }
}

/// The functions that a change can mean something to.
type Concerned<'a> = dyn Fn(&str) -> bool + 'a;

fn suspicions(before: &Survey, after: &Survey, expect: Expect, concerned: &Concerned<'_>) -> Result<(), String> {
    for (key, number) in after.suspicions.iter().filter(|entry| concerned(&entry.0.0)) {
        // One release more loses nothing.
        if key.1.starts_with("Leak") && expect.only_releases() {
            continue;
        }
        if *number > before.suspicions.get(key).copied().unwrap_or(0) {
            return Err(format!("it may cause another error in `{}`", key.0));
        }
    }
    Ok(())
}

fn effects(before: &Survey, after: &Survey, expect: Expect, concerned: &Concerned<'_>) -> Result<(), String> {
    let none = BTreeSet::new();
    for (key, effects) in after.effects.iter().filter(|entry| concerned(&entry.0.1)) {
        let old = before.effects.get(key).unwrap_or(&none);
        // What has no doubt is a block of the function itself, whatever loop it comes from.
        let own = |new: &String| expect.only_releases() && (new == DRAINS || new.starts_with("does not release"));
        let meant = |new: &&String| own(new) || expect.in_destructor && is_part(new, old);
        if let Some(new) = effects.difference(old).find(|new| !meant(new)) {
            return Err(format!("callers of `{}` would see a difference: it {new}", key.1));
        }
    }
    // A way through for null that is gone: the new code looks into what may be null.
    if let Some((name, _)) = before.null_takers.difference(&after.null_takers).find(|entry| concerned(&entry.0)) {
        return Err(format!("`{name}` could no longer be called with NULL"));
    }
    match after.degraded.difference(&before.degraded).find(|key| concerned(&key.1)) {
        Some(key) => Err(format!("`{}` becomes too large to be proved", key.1)),
        None => Ok(()),
    }
}

/// `releases **arg0[8]` where `releases *arg0` was there before: what was released is released with its parts.
fn is_part(new: &str, old: &BTreeSet<String>) -> bool {
    let (verb, object) = match (new.strip_prefix("releases *"), new.strip_prefix("does not release *")) {
        (Some(object), _) => ("releases", object),
        (_, Some(object)) => ("does not release", object),
        _ => return false,
    };
    let (object, tail) =
        object.split_once(" when").map_or((object, String::new()), |(object, tail)| (object, format!(" when{tail}")));
    // What is left over is left over with its owner, or is null while the owner goes.
    let owner = object.rsplit_once('[').map(|(owner, _)| owner);
    owner.is_some_and(|owner| {
        old.contains(&format!("releases {owner}"))
            || (verb != "releases" && old.contains(&format!("{verb} {owner}{tail}")))
    })
}

/// Releases in files that were not changed: what they are given may have changed.
fn elsewhere(before: &Survey, after: &Survey, change: &Change) -> Result<(), String> {
    let none = BTreeSet::new();
    for (spot, doubts) in &after.releases {
        if std::path::Path::new(&spot.file) == change.file {
            continue;
        }
        if doubts.difference(before.releases.get(spot).unwrap_or(&none)).next().is_some() {
            return Err(format!("it may cause another error in `{}`", spot.function));
        }
    }
    Ok(())
}

/// The number of releases in new text and the functions that have them; none of them, and none of the old ones, may have a new doubt.
fn releases(
    before: &Survey,
    after: &Survey,
    change: &Change,
    expect: Expect,
    finding: &Finding,
) -> Result<(usize, BTreeSet<String>), String> {
    let mut old: BTreeMap<(u32, u32), &BTreeSet<Doubt>> = BTreeMap::new();
    let here = |file: &str| std::path::Path::new(file) == change.file;
    for (spot, doubts) in before.releases.iter().filter(|entry| here(&entry.0.file)) {
        old.insert(change.position(spot.line, spot.column), doubts);
    }
    let had = expect.moved.and_then(|(line, column)| {
        let found =
            before.releases.iter().find(|(spot, _)| here(&spot.file) && (spot.line, spot.column) == (line, column));
        found.map(|entry| entry.1)
    });
    let none = BTreeSet::new();
    let (mut released, mut changed) = (0, BTreeSet::from([finding.sink.function.clone()]));
    let settled = |doubt: Doubt, known: &BTreeSet<Doubt>| {
        let others =
            matches!(doubt, Doubt::Escaped | Doubt::Lent | Doubt::StillReferenced | Doubt::Held | Doubt::NotOurs);
        // Of what came from elsewhere it was not known before which block it is, either.
        let unknown = doubt == Doubt::Blurred && known.contains(&Doubt::NotOurs);
        (others || unknown) && only_library(before, after, change, expect)
    };
    let taken_over: BTreeMap<(u32, u32), &BTreeSet<Doubt>> = before
        .releases
        .iter()
        .filter(|entry| here(&entry.0.file))
        .map(|(spot, doubts)| ((spot.line, spot.column), doubts))
        .collect();
    let old_at = |spot: &Spot, carried: Option<(u32, u32)>| match carried {
        Some(place) => taken_over.get(&place).copied(),
        None => old.get(&(spot.line, spot.column)).copied(),
    };
    for (spot, doubts) in &after.releases {
        if !here(&spot.file) {
            continue;
        }
        let carried = change.carried(spot.line, spot.column);
        if carried.is_none() && change.is_new(spot.line, spot.column) {
            released += 1;
            changed.insert(spot.function.clone());
            for doubt in doubts.iter().filter(|doubt| !had.is_some_and(|had| had.contains(doubt))) {
                speaks_against(*doubt, expect, finding)?;
            }
        } else {
            // A release that no way came to before was there all the same.
            let known = old_at(spot, carried).unwrap_or(&none);
            if let Some(doubt) = doubts.difference(known).find(|doubt| !settled(**doubt, known)) {
                return Err(say(*doubt, finding));
            }
        }
    }
    Ok((released, changed))
}

/// A release that was not there before, not even at another place.
fn is_new(change: &Change, spot: &Spot) -> bool {
    std::path::Path::new(&spot.file) == change.file
        && change.is_new(spot.line, spot.column)
        && change.carried(spot.line, spot.column).is_none()
}

/// Whether all that is new are calls of library functions that release. Such a call gives nothing to anybody: that
/// somebody else may hold what an *old* release is given, or that it is a caller's, was so before, and merely not seen,
/// because paths are joined differently. Whether one of the new calls released it first, is another doubt.
fn only_library(before: &Survey, after: &Survey, change: &Change, expect: Expect) -> bool {
    let named = |spot: &Spot| {
        let at = change.after.offset_of(spot.line, spot.column.max(1))?;
        let text = &change.after.bytes[at..];
        let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
        std::str::from_utf8(&text[..end]).ok()
    };
    let of_library = |name: &str| before.library.contains(name);
    let mut new = after.releases.keys().filter(|spot| is_new(change, spot));
    expect.only_releases() && !expect.overwrites && !expect.grows && new.all(|spot| named(spot).is_some_and(of_library))
}

/// Shows that nothing speaks against the new releases even if nothing is taken for granted.
pub fn certain(
    (before, after): (&Survey, &Survey),
    seen: &Doubts,
    finding: &Finding,
    change: &Change,
    expect: Expect,
) -> Result<(), String> {
    shifted(before, after, finding, seen, change)?;
    let mut doubts = seen.iter().filter(|(spot, _)| is_new(change, spot)).flat_map(|(_, doubts)| doubts);
    doubts.try_for_each(|doubt| {
        let speaks = speaks_against(*doubt, expect, finding);
        speaks.map_err(|why| format!("{why}, if something in memory is not what it was"))
    })
}

/// Shows that nothing speaks against the author's own releases that are come to by one more way. He may know of the other
/// ways what cannot be seen: that a stream may be closed though its descriptor is the caller's.
pub fn reached(
    after: &Survey,
    releases: &[(u32, u32)],
    finding: &Finding,
    change: &Change,
    expect: Expect,
) -> Result<(), String> {
    let places: Vec<(u32, u32)> = releases.iter().map(|(line, column)| change.position(*line, *column)).collect();
    let is_one =
        |spot: &Spot| std::path::Path::new(&spot.file) == change.file && places.contains(&(spot.line, spot.column));
    let mut doubts = after.releases.iter().filter(|(spot, _)| is_one(spot)).flat_map(|(_, doubts)| doubts);
    doubts.try_for_each(|doubt| speaks_against(*doubt, expect, finding))
}

/// Shows that whoever is given a pointer into the middle of a block finds its beginning.
fn shifted(before: &Survey, after: &Survey, finding: &Finding, doubts: &Doubts, change: &Change) -> Result<(), String> {
    let mut spots = doubts.iter().filter(|(spot, doubts)| is_new(change, spot) && doubts.contains(&Doubt::Shifted));
    match spots.find(|(spot, _)| !paired::is_own(before, after, spot)) {
        Some(_) => Err(say(Doubt::Shifted, finding)),
        None => Ok(()),
    }
}

/// Whether a new release may have this doubt.
pub fn speaks_against(doubt: Doubt, expect: Expect, finding: &Finding) -> Result<(), String> {
    let overwritten = doubt == Doubt::Held && expect.overwrites;
    // The destructor's parameter is not its own block; its callers are asked below and elsewhere.
    let given = doubt == Doubt::NotOurs && expect.in_destructor;
    // Where the call succeeds, the block is gone all the same, whoever gave it: nobody may look at it behind the call
    // who does not know how it went. Those are this function and its callers, and they are analysed and compared.
    let grown = doubt == Doubt::NotOurs && expect.grows;
    // Whether the program's own release knows the way back is asked elsewhere.
    let asked = matches!(doubt, Doubt::Part | Doubt::Shifted);
    if overwritten || given || grown || asked { Ok(()) } else { Err(say(doubt, finding)) }
}

fn say(doubt: Doubt, finding: &Finding) -> String {
    match doubt {
        Doubt::Escaped => "somebody whose code is not known may still hold the pointer".into(),
        Doubt::Chosen => "the program may exchange the allocator it comes from, and this is not its own release".into(),
        Doubt::Lent => match finding.assumptions.first().and_then(|text| text.split('`').nth(1)) {
            Some(name) => format!("`{name}` may keep the pointer"),
            None if finding.family != "memory" => "somebody else may need what it was made of".into(),
            None => "a function whose code is not known may keep the pointer".into(),
        },
        Doubt::MayBeReleased => "on some path it is already released there".into(),
        Doubt::NotOurs => "on some path the pointer there is not a block of this function".into(),
        Doubt::StillReferenced | Doubt::Held => "on some path the block is still in use elsewhere".into(),
        Doubt::Part => "it is not certain to whom the parts belong that are released with it".into(),
        Doubt::Unsettled => "it was given to functions that call each other, and more than could be followed".into(),
        Doubt::Unset => "a part of the block that is looked at then was never written".into(),
        Doubt::Bereft => "what it works on may be released already".into(),
        Doubt::Blurred => "it is not certain which block the pointer means there".into(),
        Doubt::Shifted => "the pointer there does not lead to the beginning of its block".into(),
    }
}
