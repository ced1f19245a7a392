//! `caulk models`: what is known of library functions.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use caulk_models::{Models, nearest};

use crate::args::ModelsArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::output;

pub(super) fn run(args: &ModelsArgs) -> Result<Outcome> {
    let config = Config::load(args.config.as_deref(), Path::new("."))?;
    output::print(&listing(&config.models, &args.functions)?)?;
    Ok(Outcome::Clean)
}

/// One line a function, by name; only those of `wanted` if any are.
fn listing(models: &Models, wanted: &[String]) -> Result<String> {
    let mut text = String::new();
    let all = models.sorted();
    for name in wanted {
        if models.get(name).is_none() {
            match nearest(name, all.iter().map(|model| model.name.as_str())) {
                Some(other) => bail!("no model of `{name}`; did you mean `{other}`?"),
                None => bail!("no model of `{name}`; `caulk models` lists all"),
            }
        }
    }
    for model in all.iter().filter(|model| wanted.is_empty() || wanted.contains(&model.name)) {
        writeln!(text, "{}  ({})", models.describe(model), model.origin.file)?;
    }
    Ok(text)
}
