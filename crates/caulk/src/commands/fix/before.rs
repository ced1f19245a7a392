//! The sources as they were analysed, also when the patches are in the files already.

use std::collections::BTreeMap;
use std::sync::Arc;

use caulk_findings::SourceProvider;
use caulk_repair::Repaired;
use caulk_report::DiskSources;

pub(super) struct Before {
    patched: BTreeMap<String, Arc<str>>,
    others: DiskSources,
}

impl Before {
    pub(super) fn of(repaired: &Repaired) -> Self {
        let old = |text: &[u8]| Arc::from(String::from_utf8_lossy(text));
        let patched = repaired.files.iter().map(|(path, text, _)| (path.display().to_string(), old(text))).collect();
        Self { patched, others: DiskSources::new() }
    }
}

impl SourceProvider for Before {
    fn text(&self, path: &str) -> Option<Arc<str>> {
        self.patched.get(path).cloned().or_else(|| self.others.text(path))
    }
}
