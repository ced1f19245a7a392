//! What is known of one function once it was analysed.

use std::sync::Arc;

use crate::engine::Analysed;
use crate::incident::{Incident, ReleaseFact, Suspicion};
use crate::summary::{SiteFact, Summary};

/// The same for every program that has the function and in which every question of its analysis gets the same answer:
/// those share it, and whoever made something of it before knows it again by its address.
#[derive(Debug, Default)]
pub struct Learned {
    pub summary: Arc<Summary>,
    pub incidents: Vec<Arc<Incident>>,
    /// Calls that allocate.
    pub sites: Vec<SiteFact>,
    /// Calls that release, in order.
    pub releases: Vec<ReleaseFact>,
    pub suspicions: Vec<Suspicion>,
    /// The limit was reached and precision lost.
    pub degraded: bool,
}

impl From<Analysed> for Learned {
    fn from(analysed: Analysed) -> Self {
        Learned {
            summary: Arc::new(analysed.summary),
            incidents: analysed.incidents.into_iter().map(Arc::new).collect(),
            sites: analysed.sites,
            releases: analysed.releases,
            suspicions: analysed.suspicions,
            degraded: analysed.degraded,
        }
    }
}
