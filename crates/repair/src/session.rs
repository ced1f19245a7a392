//! All findings, one after another, each on the text that the patches before it left.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use caulk_analysis::Doubt;
use caulk_base::{ContentHash, Hasher};
use caulk_findings::{Finding, Fingerprint, Patch, PatchStatus, Rule};
use caulk_source::{EditSet, FileText, unified_diff};

use crate::assertions;
use crate::change::{self, Candidate, Change, Expect};
use crate::configurations;
use crate::origin::Origin;
use crate::proof;
use crate::refuse;
use crate::release;
use crate::strategies::{self, Bench};
use crate::survey::Survey;
use crate::target::Target;
use crate::weigh::Scales;
use crate::workshop::Workshop;

/// More proofs for one finding cost more time than they are worth.
const MAX_PROOFS: usize = 20;

const WRONG_ALREADY: &str = "another error of the function, or of one that it calls, must be mended first";
const GENERATED: &str = "the file is generated; its source must be changed instead";

/// The answer to one finding.
#[derive(Clone, Debug)]
pub struct Done {
    pub finding: Finding,
    pub patch: Patch,
    /// The file after this patch and those before it; `None` if refused, or if another patch took care of it.
    pub after: Option<(PathBuf, Vec<u8>)>,
}

#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// In the order in which patches build upon each other; what was refused comes last.
    pub done: Vec<Done>,
    /// Files as they were, and as all patches together leave them.
    pub files: Vec<(PathBuf, Vec<u8>, Vec<u8>)>,
}

/// The user's word on a proved patch: the reason why it is not wanted.
pub type Accept<'a> = dyn FnMut(&Finding, &Patch) -> Result<(), String> + 'a;

/// Repairs what `wanted` asks for. A finding whose patch is not accepted is left as it is.
pub fn repair(
    workshop: &dyn Workshop,
    survey: Survey,
    root: &Path,
    wanted: &dyn Fn(&Finding) -> bool,
    accept: &mut Accept<'_>,
) -> Repaired {
    let mut session = Session {
        workshop,
        root,
        first: survey.findings.iter().filter(|finding| wanted(finding)).cloned().collect(),
        unseen: Vec::new(),
        survey,
        originals: BTreeMap::new(),
        patched: Vec::new(),
        origin: Origin::default(),
        done: Vec::new(),
        reasons: BTreeMap::new(),
        tried: Vec::new(),
        failed: RefCell::default(),
        beside: BTreeMap::new(),
        declined: BTreeMap::new(),
    };
    while session.round(accept) {}
    if session.look_closer() {
        while session.round(accept) {}
    }
    session.finish()
}

/// A candidate that holds.
struct Proved {
    before: Vec<u8>,
    change: Change,
    patched: Vec<(PathBuf, Vec<u8>)>,
    survey: Survey,
    why: Vec<String>,
}

type Identity = (String, String, String, String, usize);

struct Session<'a> {
    workshop: &'a dyn Workshop,
    root: &'a Path,
    first: Vec<Finding>,
    /// Those that a closer look does not find, and why they were refused before.
    unseen: Vec<(Finding, String, Vec<String>)>,
    survey: Survey,
    originals: BTreeMap<PathBuf, Vec<u8>>,
    patched: Vec<(PathBuf, Vec<u8>)>,
    origin: Origin,
    done: Vec<Done>,
    /// Why the findings that are left were refused, by identity.
    reasons: BTreeMap<Identity, (String, Vec<String>)>,
    /// Candidates for the finding at hand that were refused.
    tried: Vec<String>,
    /// Texts that could not be proved since the last patch, whatever finding they were for, and why.
    failed: RefCell<BTreeMap<(ContentHash, Expect), String>>,
    /// What else went with a patch that releases it by one of its names: the finding's fingerprint, and the patch by number.
    beside: BTreeMap<Fingerprint, usize>,
    /// Findings whose patch the user does not want, by fingerprint, and why.
    declined: BTreeMap<Fingerprint, String>,
}

impl Session<'_> {
    /// Tries the findings that are left; true as soon as one was repaired, because all places moved.
    fn round(&mut self, accept: &mut Accept<'_>) -> bool {
        let findings = self.survey.findings.clone();
        let keys = identities(&findings);
        for (finding, key) in findings.iter().zip(keys) {
            if !self.is_asked_for(finding) || self.reasons.contains_key(&key) {
                continue;
            }
            match self.one(finding, accept) {
                Ok(()) => {
                    // What was refused elsewhere is not made possible by a patch here, unless it waited for one.
                    let waits = |reason: &str| reason == WRONG_ALREADY;
                    self.reasons.retain(|known, (reason, _)| known.2 != finding.sink.function && !waits(reason));
                    return true;
                }
                Err(reason) => {
                    self.reasons.insert(key, (reason, std::mem::take(&mut self.tried)));
                }
            }
        }
        false
    }

    /// Goes on with a survey that tells more paths apart in the functions that are not repaired: what is merged there is a
    /// patch that cannot be proved. What is found beside the first findings then is left as it is.
    fn look_closer(&mut self) -> bool {
        let findings = std::mem::take(&mut self.survey.findings);
        let keys = identities(&findings);
        let refused = findings.iter().zip(&keys).filter_map(|(finding, key)| {
            let (reason, tried) = self.reasons.get(key).filter(|(_, tried)| !tried.is_empty())?;
            Some((finding.clone(), reason.clone(), tried.clone()))
        });
        let left: Vec<(Finding, String, Vec<String>)> = refused.collect();
        self.survey.findings = findings;
        if left.is_empty() {
            return false;
        }
        self.workshop.look_closer(&left.iter().map(|(finding, ..)| finding.sink.function.clone()).collect());
        let Ok(closer) = self.workshop.rebuild(&self.patched) else { return false };
        self.unseen = left;
        self.unseen.retain(|(finding, ..)| !is_among(finding, &closer.survey.findings));
        self.survey = closer.survey;
        self.reasons.retain(|_, (_, tried)| tried.is_empty());
        self.failed.borrow_mut().clear();
        true
    }

    /// Is it one of the first findings, by whatever fingerprint it goes beside the patches?
    fn is_asked_for(&self, finding: &Finding) -> bool {
        let goes_by = |name: &Fingerprint| self.survey.findings.iter().any(|other| other.fingerprint == *name);
        self.first.iter().any(|first| {
            first.fingerprint == finding.fingerprint || is_same(first, finding) && !goes_by(&first.fingerprint)
        })
    }

    fn one(&mut self, finding: &Finding, accept: &mut Accept<'_>) -> Result<(), String> {
        self.tried.clear();
        if let Some(reason) = self.declined.get(&finding.fingerprint) {
            return Err(reason.clone());
        }
        let function = self.workshop.function_at(&finding.sink.file, finding.sink.line, &self.patched)?;
        if function.file.has_line_directives() {
            return Err(GENERATED.into());
        }
        let target = Target::new(finding, function);
        let body = |name: &str| self.workshop.function_named(name, &self.patched);
        if let Some(reason) = refuse::reason(&target, &self.survey.sides, &body) {
            return Err(reason);
        }
        if finding.rule.is_leak() && is_wrong(&self.survey, finding) {
            return Err(WRONG_ALREADY.into());
        }
        let bench = Bench { target: &target, survey: &self.survey, workshop: self.workshop, patched: &self.patched };
        if let Some(reason) = configurations::in_callees(&bench) {
            return Err(reason);
        }
        let proposals = strategies::propose(&bench);
        let unwanted = target.name.as_ref().zip(target.sink).and_then(|(name, sink)| {
            let span = target.function.stmt(sink).span;
            release::unwanted(&bench, name, if target.sink_is_end() { span.end - 1 } else { span.start })
        });
        let mut reason: Option<String> = None;
        let candidates = proposals.candidates;
        let mut parts: Vec<Candidate> = Vec::new();
        let too_light = self.weigh(finding, &candidates);
        let mut proofs = 0;
        for (at, candidate) in candidates.into_iter().enumerate() {
            let attempted = match too_light.get(&at) {
                Some(why) => Err(why.clone()),
                None if proofs >= MAX_PROOFS => continue,
                None => {
                    proofs += 1;
                    self.attempt_guarded(finding, &candidate, accept)
                }
            };
            match attempted {
                Ok(()) => return Ok(()),
                Err(why) => {
                    if self.declined.contains_key(&finding.fingerprint) {
                        return Err(why);
                    }
                    self.tried.push(format!("{}: {why}", candidate.title));
                    if why == proof::REMAINS {
                        parts.push(candidate);
                    }
                    if reason.as_ref().is_none_or(|known| rank(&why) > rank(known)) {
                        reason = Some(why);
                    }
                }
            }
        }
        // What is right, but on some of the paths only: all of it together, and then no more than is needed.
        for mut group in change::together(&parts) {
            let Some(all) = change::joined(&group) else { continue };
            if let Err(why) = self.prove(finding, &all) {
                self.tried.push(format!("{}: {why}", all.title));
                continue;
            }
            let mut at = 0;
            while group.len() > 2 && at < group.len() {
                let left = group.remove(at);
                match change::joined(&group) {
                    Some(fewer) if self.prove(finding, &fewer).is_ok() => {}
                    _ => {
                        group.insert(at, left);
                        at += 1;
                    }
                }
            }
            if let Some(all) = change::joined(&group) {
                return self.attempt(finding, &all, accept);
            }
        }
        if let Some(destructor) = unwanted.filter(|_| finding.rule.is_leak()) {
            return Err(format!("`{destructor}` does more than release it"));
        }
        let written = |name: &String| {
            let decls = &target.function.decls;
            decls.iter().any(|decl| decl.name == *name && decl.origin == caulk_source::Origin::Written)
        };
        let place = target.function.file.offset_of(finding.source.line, finding.source.column);
        let expanded = place.is_some_and(|at| target.function.macros.iter().any(|used| used.span.contains(at)));
        if reason.is_none() && finding.source.in_macro && expanded && !target.name.as_ref().is_some_and(written) {
            return Err("the allocation is in the body of a macro".into());
        }
        let told = proposals.refusals.iter().position(|why| rank(why) > 1).unwrap_or(0);
        Err(reason
            .or_else(|| proposals.refusals.into_iter().nth(told))
            .unwrap_or_else(|| "no place was found where it could be released".into()))
    }

    /// Candidates that cannot be proved, and why, as far as one program for all of them tells.
    fn weigh(&self, finding: &Finding, candidates: &[Candidate]) -> BTreeMap<usize, String> {
        let mut refused = BTreeMap::new();
        for scales in Scales::of(candidates) {
            let doubts = self.read(&scales, candidates);
            let is_needed = |at: usize| doubts.contains(&(at, Doubt::StillReferenced));
            let mut again: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (at, name) in scales.mixed(candidates).into_iter().filter(|(at, _)| is_needed(*at)) {
                again.entry(name).or_default().push(at);
            }
            let apart: Vec<usize> = again.values().flatten().copied().collect();
            let mut all: Vec<(usize, Doubt)> = doubts.iter().filter(|(at, _)| !apart.contains(at)).copied().collect();
            for same in again.values() {
                let alone: Vec<Candidate> = same.iter().map(|at| candidates[*at].clone()).collect();
                for scales in Scales::of(&alone) {
                    all.extend(self.read(&scales, &alone).into_iter().map(|(at, doubt)| (same[at], doubt)));
                }
            }
            for (at, doubt) in all {
                // The release itself may go the allocator's way, as a macro that the weighing does not call.
                if doubt == Doubt::Chosen {
                    continue;
                }
                if let Err(why) = proof::speaks_against(doubt, candidates[at].expect, finding) {
                    refused.entry(at).or_insert(why);
                }
            }
        }
        refused
    }

    /// What a program in which candidates are weighed says of them.
    fn read(&self, scales: &Scales, candidates: &[Candidate]) -> Vec<(usize, Doubt)> {
        let Some(first) = candidates.first() else { return Vec::new() };
        let weighed = self.text_of(&first.file).and_then(|before| {
            let change = Change::new(first.file.clone(), before, &scales.edits)?;
            let patched = self.with(&change);
            let seen = self.workshop.look(&self.patched, &patched)?;
            Ok((seen.map_or_else(|| self.workshop.rebuild(&patched), Ok)?, change))
        });
        weighed.map_or_else(|_: String| Vec::new(), |(rebuilt, change)| scales.read(&rebuilt.survey, &change.after))
    }

    /// A file as it is now.
    fn text_of(&self, file: &Path) -> Result<Vec<u8>, String> {
        match self.patched.iter().find(|(path, _)| path == file) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display())),
        }
    }

    /// The proof of a candidate: what the program is with it, and why that is good.
    fn prove(&self, finding: &Finding, candidate: &Candidate) -> Result<Proved, String> {
        let before = self.text_of(&candidate.file)?;
        let change = Change::new(candidate.file.clone(), before.clone(), &candidate.edits)?;
        if change.before.has_line_directives() {
            return Err(GENERATED.into());
        }
        if change.is_empty() {
            return Err("nothing would change".into());
        }
        let path = candidate.file.as_os_str().as_encoded_bytes();
        let key = (Hasher::new().field(path).field(&change.after.bytes).finish(), candidate.expect);
        if let Some(known) = self.failed.borrow().get(&key) {
            return Err(known.clone());
        }
        let patched = self.with(&change);
        if let Some(seen) = self.workshop.look(&self.patched, &patched)?
            && let Err(why) = proof::first_look(&self.survey, &seen, finding, &change, candidate.expect)
        {
            self.failed.borrow_mut().insert(key, why.clone());
            return Err(why);
        }
        let rebuilt = self.workshop.rebuild(&patched)?;
        let proved = proof::prove(&self.survey, &rebuilt, finding, &change, candidate.expect);
        // That the error would remain is said of one finding, everything else of the program.
        if let Err(why) = &proved
            && why != proof::REMAINS
        {
            self.failed.borrow_mut().insert(key, why.clone());
        }
        let mut why = proved?;
        if candidate.expect.only_releases()
            && let Some(seen) = self.workshop.look_warily(&self.patched, &patched)?
        {
            proof::certain((&self.survey, &rebuilt.survey), &seen, finding, &change, candidate.expect)?;
        }
        proof::reached(&rebuilt.survey, &candidate.reached, finding, &change, candidate.expect)?;
        if let Some((name, edits)) = &candidate.probe {
            let probe = Change::new(candidate.file.clone(), before.clone(), edits)?;
            let probed = self.workshop.rebuild(&self.with(&probe))?;
            why.push(proof::useless(&self.survey, &probed.survey, finding, (&probe, name))?);
        }
        let needs = |name: &str| rebuilt.survey.needy.contains(name);
        if let Some((name, edits)) = change::null_probe(&candidate.edits, &needs) {
            let probe = Change::new(candidate.file.clone(), before.clone(), &edits)?;
            let probed = self.workshop.rebuild(&self.with(&probe))?;
            proof::not_null(&probed.survey, &probe, &name)?;
        }
        if let Some(edits) = change::member_probe(&candidate.edits, &candidate.quiet_if_null) {
            let probe = Change::new(candidate.file.clone(), before.clone(), &edits)?;
            let patched = self.with(&probe);
            proof::stays_quiet(&self.workshop.rebuild(&patched)?.survey.releases, &probe)?;
            if let Some(seen) = self.workshop.look_warily(&self.patched, &patched)? {
                proof::stays_quiet(&seen, &probe)?;
            }
        }
        self.prove_without_assertions(finding, candidate)?;
        Ok(Proved { before, change, patched, survey: rebuilt.survey, why })
    }

    /// That the candidate does no harm where assertions are left out, if the function has any.
    fn prove_without_assertions(&self, finding: &Finding, candidate: &Candidate) -> Result<(), String> {
        let function = self.workshop.function_at(&finding.sink.file, finding.sink.line, &self.patched)?;
        let sides = &self.survey.sides;
        // Whoever is given the block, and this function.
        let args =
            function.calls.iter().flat_map(|call| call.args.iter().enumerate().map(move |(at, arg)| (call, at, arg)));
        let given = args.filter(|(_, _, arg)| finding.object.contains(&function.text(arg.span)));
        let receivers = given.flat_map(|(call, at, _)| sides.receivers(&call.callee, at));
        let asserting = sides.asserting(receivers.chain([function.name.as_str()]));
        let Some(first) = asserting.first() else { return Ok(()) };
        let left_out = |name: &str| assertions::may_be_left_out(name);
        let own = || left_out(first);
        if !candidate.expect.only_releases() || candidate.probe.is_some() || function.file.path != candidate.file {
            return Err(own());
        }
        let mut without = self.patched.clone();
        let mut leave_out = |path: &Path| -> Result<(), String> {
            let text = FileText::new(path.to_owned(), self.text_of(path)?);
            put(&mut without, path, assertions::left_out(&text));
            Ok(())
        };
        leave_out(&candidate.file)?;
        for name in &asserting {
            let found = self.workshop.function_named(name, &self.patched).ok_or_else(|| left_out(name))?;
            let path = &found.file.path;
            // What a header holds is in every unit.
            let is_unit = *path == candidate.file || path.extension().is_some_and(|kind| kind == "c");
            if !is_unit || !assertions::has_any(&found) {
                return Err(left_out(name));
            }
            leave_out(path)?;
        }
        let stay =
            |name: &&str| self.workshop.function_named(name, &without).is_none_or(|found| assertions::has_any(&found));
        let stays = self.workshop.function_at(&finding.sink.file, finding.sink.line, &without)?;
        if assertions::has_any(&stays) {
            return Err(own());
        }
        if let Some(name) = asserting.iter().find(|name| stay(name)) {
            return Err(left_out(name));
        }
        let before = self.workshop.rebuild(&without)?.survey;
        if is_wrong(&before, finding) {
            return Err(own());
        }
        let text =
            without.iter().find(|(path, _)| *path == candidate.file).map_or_else(Vec::new, |(_, text)| text.clone());
        let changed = |edits: &EditSet| -> Result<(Survey, Change), String> {
            let change = Change::new(candidate.file.clone(), text.clone(), edits)?;
            let mut patched = without.clone();
            put(&mut patched, &change.file, change.after.bytes.clone());
            Ok((self.workshop.rebuild(&patched)?.survey, change))
        };
        let (after, change) = changed(&candidate.edits)?;
        let needs = |name: &str| after.needy.contains(name);
        let harmless = proof::harmless(&before, &after, finding, &change, candidate.expect).and_then(|_| {
            let Some((name, edits)) = change::null_probe(&candidate.edits, &needs) else { return Ok(()) };
            let (probed, change) = changed(&edits)?;
            proof::not_null(&probed, &change, &name)
        });
        harmless.map_err(|_| own())
    }

    /// With a test where the candidate gives null to somebody who cannot live with it.
    fn attempt_guarded(
        &mut self,
        finding: &Finding,
        candidate: &Candidate,
        accept: &mut Accept<'_>,
    ) -> Result<(), String> {
        let attempted = self.attempt(finding, candidate, accept);
        let null = attempted.as_ref().is_err_and(|why| why == proof::NULL_THERE);
        let Some(text) = self.text_of(&candidate.file).ok().filter(|_| null) else { return attempted };
        let needs = |name: &str| name != "free" && (self.survey.needy.contains(name) || name == finding.release);
        let edits = change::guarded(&candidate.edits, &FileText::new(candidate.file.clone(), text), &needs);
        if edits == candidate.edits {
            return attempted;
        }
        self.attempt(finding, &Candidate { edits, ..candidate.clone() }, accept)
    }

    fn attempt(&mut self, finding: &Finding, candidate: &Candidate, accept: &mut Accept<'_>) -> Result<(), String> {
        let Proved { before, change, patched, survey, mut why } = self.prove(finding, candidate)?;
        why.splice(0..0, candidate.why.iter().cloned());
        if let Some(made) = self.workshop.made_from(&candidate.file) {
            let made = made.strip_prefix(self.root).unwrap_or(&made).display().to_string();
            why.push(format!(
                "this was shown of `{made}` with the same change; it is made from this file: make it again"
            ));
        }
        let patch = self.patch(finding, candidate, &change, why);
        if let Err(reason) = accept(finding, &patch) {
            self.declined.insert(finding.fingerprint.clone(), reason.clone());
            return Err(reason);
        }
        for name in self.gone_beside(candidate, finding, &survey) {
            self.beside.entry(name).or_insert(self.done.len());
        }
        self.originals.entry(candidate.file.clone()).or_insert(before);
        self.failed.borrow_mut().clear();
        self.survey = survey;
        self.patched = patched;
        let after = Some((candidate.file.clone(), change.after.bytes.clone()));
        self.origin.push(change);
        self.done.push(Done { finding: finding.clone(), patch, after });
        Ok(())
    }

    /// Other findings of the function that are gone with a candidate which releases a name of theirs: the block goes by
    /// several calls, or was lost at several places.
    fn gone_beside(&self, candidate: &Candidate, finding: &Finding, after: &Survey) -> Vec<Fingerprint> {
        let released: Vec<String> = change::released(&candidate.edits).into_iter().map(|entry| entry.0).collect();
        let alone = candidate.strategy == change::BEFORE_EXIT && candidate.edits.edits().len() < 2;
        let merged = after.degraded.difference(&self.survey.degraded).any(|entry| entry.1 == finding.sink.function);
        if alone || merged || !candidate.expect.only_releases() {
            return Vec::new();
        }
        let is_gone = |first: &&Finding| {
            let here = first.sink.function == finding.sink.function && first.rule.is_leak();
            here && first.fingerprint != finding.fingerprint && !is_among(first, &after.findings)
        };
        let named = |first: &&Finding| {
            let same = |found: &&Finding| found.fingerprint == first.fingerprint || is_same(found, first);
            let Some(now) = self.survey.findings.iter().find(same) else { return false };
            let function = self.workshop.function_at(&now.sink.file, now.sink.line, &self.patched);
            let held = function.is_ok_and(|function| {
                let holders = Target::new(now, function).holders();
                holders.iter().any(|holder| released.contains(holder))
            });
            held && now.family == finding.family
        };
        let gone = self.first.iter().filter(is_gone).filter(named);
        gone.map(|first| first.fingerprint.clone()).collect()
    }

    /// All files as patched so far, and this one on top.
    fn with(&self, change: &Change) -> Vec<(PathBuf, Vec<u8>)> {
        let mut patched = self.patched.clone();
        put(&mut patched, &change.file, change.after.bytes.clone());
        patched
    }

    fn patch(&self, finding: &Finding, candidate: &Candidate, change: &Change, why_safe: Vec<String>) -> Patch {
        let path = candidate.file.strip_prefix(self.root).unwrap_or(&candidate.file).display().to_string();
        let diff = unified_diff(&path, &change.before.bytes, &change.after.bytes);
        Patch {
            fingerprint: finding.fingerprint.clone(),
            status: PatchStatus::Fixed,
            strategy: candidate.strategy.to_owned(),
            title: candidate.title.clone(),
            why_safe,
            diff: String::from_utf8_lossy(&diff).into_owned(),
            edits: self.origin.edits(&candidate.edits, change),
            tried: Vec::new(),
        }
    }

    fn finish(mut self) -> Repaired {
        let mut done = std::mem::take(&mut self.done);
        let left = &self.survey.findings;
        for (finding, key) in left.iter().zip(identities(left)).filter(|(finding, _)| self.is_asked_for(finding)) {
            let known = self.reasons.get(&key).cloned();
            let (reason, tried) = known.unwrap_or_else(|| ("no safe patch was found".into(), Vec::new()));
            let patch = Patch { tried, ..Patch::refused(finding.fingerprint.clone(), reason) };
            done.push(Done { finding: finding.clone(), patch, after: None });
        }
        // What another finding's patch repaired as well has no patch of its own.
        let patches: Vec<Patch> = done.iter().map(|one| one.patch.clone()).collect();
        let repaired: Vec<(Finding, Patch)> = done
            .iter()
            .filter(|one| one.patch.is_fixed())
            .map(|one| (one.finding.clone(), one.patch.clone()))
            .collect();
        for finding in name_again(&self.first, &mut done) {
            // It repairs what is lost at the same place; a single release before one exit repairs nothing at another.
            let same = |other: &Finding, patch: &Patch| {
                // Patches before it have moved its places; those of the program as it was are compared.
                let other = self.first.iter().find(|one| one.fingerprint == other.fingerprint).unwrap_or(other);
                let object = |one: &Finding| (one.object.clone(), one.source.file.clone(), one.source.line);
                let everywhere = patch.edits.len() > 1 || patch.strategy != change::BEFORE_EXIT;
                other.sink.function == finding.sink.function
                    && !loses_part(patch, other, finding)
                    && (other.sink.line == finding.sink.line || (everywhere && object(other) == object(finding)))
            };
            let known = repaired.iter().find(|(other, patch)| same(other, patch)).map(|(_, patch)| patch);
            let beside = || self.beside.get(&finding.fingerprint).and_then(|at| patches.get(*at));
            let patch = match known.or_else(beside).filter(|patch| patch.is_fixed()) {
                Some(patch) => {
                    let title = format!("{} (the same patch)", patch.title);
                    Patch { fingerprint: finding.fingerprint.clone(), title, ..patch.clone() }
                }
                None => match self.unseen.iter().find(|(unseen, ..)| is_same(unseen, finding)) {
                    // What does not come up on a closer look is no less an error for that.
                    Some((_, reason, tried)) => {
                        Patch { tried: tried.clone(), ..Patch::refused(finding.fingerprint.clone(), reason.clone()) }
                    }
                    // A patch may well make the path hard to follow, and leave the error where it is.
                    None => Patch::refused(
                        finding.fingerprint.clone(),
                        "it is not reported any more beside the other patches, none of which repairs it",
                    ),
                },
            };
            done.push(Done { finding: finding.clone(), patch, after: None });
        }
        // One error may be lost at more places, seen closely: what was asked for has its answer.
        let is_first = |one: &Done| self.first.iter().any(|first| first.fingerprint == one.finding.fingerprint);
        done.retain(|one| one.patch.is_fixed() || is_first(one));
        let patched: BTreeMap<PathBuf, Vec<u8>> = self.patched.into_iter().collect();
        let files = self
            .originals
            .into_iter()
            .filter_map(|(path, old)| patched.get(&path).map(|new| (path.clone(), old, new.clone())))
            .collect();
        Repaired { done, files }
    }
}

/// A finding may go by another fingerprint beside the patches that were made before: each answer gets back that of the
/// program as it was. What has no answer is left.
fn name_again<'a>(first: &'a [Finding], done: &mut [Done]) -> Vec<&'a Finding> {
    let same = |one: &Done, finding: &Finding| one.finding.fingerprint == finding.fingerprint;
    let known = |at: usize| first.iter().any(|finding| same(&done[at], finding));
    let first_of_name =
        |at: usize| !done[..at].iter().any(|one| one.finding.fingerprint == done[at].finding.fingerprint);
    let mut renamed: Vec<bool> = (0..done.len()).map(|at| !(known(at) && first_of_name(at))).collect();
    let mut left: Vec<&Finding> = Vec::new();
    let open: Vec<&Finding> = first.iter().filter(|finding| !done.iter().any(|one| same(one, finding))).collect();
    for finding in open {
        match done.iter().zip(&renamed).position(|(one, renamed)| *renamed && is_same(&one.finding, finding)) {
            Some(at) => {
                renamed[at] = false;
                done[at].finding.fingerprint = finding.fingerprint.clone();
                done[at].patch.fingerprint = finding.fingerprint.clone();
            }
            None => left.push(finding),
        }
    }
    left
}

/// The same error of a function, wherever in it.
fn is_same(one: &Finding, other: &Finding) -> bool {
    (one.rule, &one.sink.function, &one.object) == (other.rule, &other.sink.function, &other.object)
}

fn is_among(finding: &Finding, all: &[Finding]) -> bool {
    all.iter().any(|other| other.fingerprint == finding.fingerprint || is_same(other, finding))
}

/// Line-free identities, numbered among equals.
fn identities(findings: &[Finding]) -> Vec<Identity> {
    let mut seen: BTreeMap<(String, String, String, String), usize> = BTreeMap::new();
    let key = |finding: &Finding| {
        let rule = finding.rule.id().to_owned();
        (rule, finding.sink.file.clone(), finding.sink.function.clone(), finding.object.clone())
    };
    let number = |finding: &Finding| {
        let key = key(finding);
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        (key.0, key.1, key.2, key.3, *count)
    };
    findings.iter().map(number).collect()
}

/// Which of two reasons tells the user more.
fn rank(reason: &str) -> u8 {
    match reason {
        _ if reason.contains("may keep the pointer") || reason.contains("rests on an assertion") => 5,
        _ if reason.contains("could be followed")
            || reason.contains("still hold")
            || reason.contains("still in use") =>
        {
            4
        }
        _ if reason.starts_with("on some path") || reason.contains("not certain") => 3,
        _ if reason.contains("another error") || reason.contains("configuration") => 2,
        _ => 1,
    }
}

/// `free(p);` of the patch releases nothing that lies in `p`.
fn loses_part(patch: &Patch, other: &Finding, finding: &Finding) -> bool {
    let name = |one: &Finding| one.object.trim_matches('`').to_owned();
    let plain = format!("{}({});", finding.release, name(other));
    let calls = |edit: &caulk_findings::Edit| {
        let mut statements = edit.replacement.split_inclusive(['\n', '{', '}']);
        statements.any(|statement| statement.replacen(" (", "(", 1).trim() == plain)
    };
    let own = format!("({});", name(finding));
    name(other) != name(finding)
        && patch.edits.iter().any(calls)
        && !patch.edits.iter().any(|edit| edit.replacement.contains(&own))
}

/// Beside an error of the function itself, the same error on another way would not be told from it. And paths end at what no
/// program survives: of a callee with that it is not known how else it may end.
fn is_wrong(survey: &Survey, finding: &Finding) -> bool {
    let function = finding.sink.function.as_str();
    let errors = || survey.findings.iter().filter(|other| !other.rule.is_leak());
    let ends: Vec<&str> =
        errors().filter(|other| other.rule == Rule::InvalidFree).map(|other| other.sink.function.as_str()).collect();
    errors().any(|other| other.sink.function == function) || survey.sides.calls_any(function, &ends)
}

/// Gives a file another text.
fn put(patched: &mut Vec<(PathBuf, Vec<u8>)>, file: &Path, bytes: Vec<u8>) {
    match patched.iter_mut().find(|(path, _)| path == file) {
        Some(entry) => entry.1 = bytes,
        None => patched.push((file.to_owned(), bytes)),
    }
}
