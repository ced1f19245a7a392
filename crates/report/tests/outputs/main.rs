//! Every output over the same hand-made findings.

#[path = "../support/sample.rs"]
mod sample;

mod baseline;
mod code_hosts;
mod dot;
mod explain;
mod html;
mod json;
mod sarif;
mod text;
