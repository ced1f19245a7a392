mod links;
pub use links::{kind_of_output, link_of_command};
