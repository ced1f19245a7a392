//! A model in words, for `caulk models`.

use crate::types::{Condition, Course, Effect, FamilyId, FunctionModel, Models, Place};

impl Models {
    /// One line: `fdopen: allocates a file stream; on success takes argument 0; null on failure`.
    /// Arguments are counted from 0, as in the files.
    pub fn describe(&self, model: &FunctionModel) -> String {
        let mut parts: Vec<String> = model.effects.iter().map(|effect| self.effect(effect)).collect();
        let returns = &model.returns;
        if let Some(argument) = returns.argument {
            parts.push(format!("returns argument {argument}"));
        }
        if let Some(argument) = returns.interior {
            parts.push(format!("returns a pointer into what argument {argument} points to"));
        }
        if let Some(argument) = returns.interior_deref {
            parts.push(format!("returns a pointer into what *argument {argument} points to"));
        }
        if returns.borrowed {
            parts.push("the result belongs to the library".to_owned());
        }
        if returns.never {
            parts.push("never returns".to_owned());
        }
        if let Some(argument) = returns.never_if_nonzero {
            parts.push(format!("never returns if argument {argument} is not 0"));
        }
        if returns.twice {
            parts.push("may return twice".to_owned());
        }
        for argument in &model.needs {
            parts.push(format!("needs argument {argument}, which must not be null"));
        }
        if model.keeps_nothing {
            parts.push("keeps nothing of what its arguments lead to".to_owned());
        }
        if let Some(argument) = model.protection {
            parts.push(format!("argument {argument} says whether the memory may be written"));
        }
        if let Some(argument) = returns.sure {
            parts.push(format!("does not fail if argument {argument} is a string literal"));
        }
        if returns.zero {
            parts.push("0 on success".to_owned());
        }
        if returns.nonnegative {
            parts.push("never negative".to_owned());
        }
        if returns.error_number {
            parts.push("leads to the number of the last error".to_owned());
        }
        if returns.nonnull {
            parts.push("never null".to_owned());
        }
        if parts.is_empty() {
            parts.push("only looks at its arguments".to_owned());
        }
        if returns.pure {
            parts.push("same result for the same arguments".to_owned());
        }
        if returns.draws {
            parts.push("takes the next each time".to_owned());
        }
        if let Some(course) = model.course {
            parts.push(
                match course {
                    Course::Waits => "waits, asks or starts something",
                    Course::Reads => "takes something in",
                    Course::Jumps => "goes on elsewhere",
                    Course::BeginsThread => "begins a thread",
                    Course::EndsThread => "ends the thread",
                    Course::Replaced => "another program may take the place of this one",
                }
                .to_owned(),
            );
        }
        match returns.fails {
            Some(0) => parts.push("0 or null on failure".to_owned()),
            Some(value) => parts.push(format!("{value} on failure")),
            None => {}
        }
        if returns.fails_negative {
            parts.push("negative on failure".to_owned());
        }
        if returns.fails_nonpositive {
            parts.push("0 or negative on failure".to_owned());
        }
        if returns.fails_nonzero {
            parts.push("not 0 on failure".to_owned());
        }
        format!("{}: {}", model.name, parts.join("; "))
    }

    fn noun(&self, family: FamilyId) -> &str {
        self.families.get(family).map_or("resource", |spec| spec.noun.as_str())
    }

    fn effect(&self, effect: &Effect) -> String {
        match effect {
            Effect::Allocates { family, place, when, zeroed } => {
                let filled = if *zeroed { "zeroed " } else { "" };
                let at = if *place == Place::Return { String::new() } else { format!(" at {}", say(place)) };
                format!("{}allocates {filled}{}{at}", prefix(*when), self.noun(*family))
            }
            Effect::Releases { family, place, when, null_ok } => {
                let null = if *null_ok { "" } else { " (not null)" };
                format!("{}releases {} at {}{null}", prefix(*when), self.noun(*family), say(place))
            }
            Effect::Reallocates { family, arg, frees_on_failure } => {
                let kept = if *frees_on_failure { "releasing it in any case" } else { "keeping it on failure" };
                format!("exchanges {} at argument {arg} for a new one, {kept}", self.noun(*family))
            }
            Effect::Replaces { family, place } => {
                format!("exchanges {} at {} in place", self.noun(*family), say(place))
            }
            Effect::Retains { family, place } => {
                format!("counts one more reference to {} at {}", self.noun(*family), say(place))
            }
            Effect::Takes { place, when } => format!("{}takes {}", prefix(*when), say(place)),
            Effect::Stores { arg, into, when } => {
                format!("{}stores argument {arg} into {}", prefix(*when), say(into))
            }
            Effect::Points { place, into } => format!("lets {} point into {}", say(place), say(into)),
            Effect::Clears { place } => format!("sets {} to null", say(place)),
            Effect::Copies { from, to } => format!("copies what argument {from} points to into argument {to}"),
            Effect::Writes { arg, nonzero } => {
                format!("writes {}through argument {arg}", if *nonzero { "a number that is not 0 " } else { "" })
            }
            Effect::Zeroes { arg, size } => {
                format!("fills what argument {arg} points to with zeros, argument {size} of them")
            }
            Effect::Sends { arg, depth: 0, .. } => format!("sends what argument {arg} points to, pointers as well"),
            Effect::Sends { arg, .. } => format!("sends what lies behind the pointers in argument {arg}"),
            Effect::Sweeps { family, place: Place::Return } => {
                format!("releases every {} there is, whoever has it", self.noun(*family))
            }
            Effect::Sweeps { family, place } => {
                format!("releases the {} that has the number at {}, whoever has it", self.noun(*family), say(place))
            }
            Effect::WritesRest { from } => format!("writes through argument {from} and all after it"),
            Effect::Calls { function, data } => format!("calls argument {function}{}", with(*data)),
            Effect::Registers { function, data } => format!("keeps argument {function} to call later{}", with(*data)),
        }
    }
}

fn with(data: Option<u32>) -> String {
    data.map(|data| format!(" with argument {data}")).unwrap_or_default()
}

fn say(place: &Place) -> String {
    match place {
        Place::Return => "the result".to_owned(),
        Place::Arg(argument) => format!("argument {argument}"),
        Place::Deref(argument) => format!("*argument {argument}"),
        Place::Field(argument, offset) => format!("byte {offset} of *argument {argument}"),
    }
}

fn prefix(when: Condition) -> String {
    match when {
        Condition::Always => String::new(),
        Condition::OnSuccess => "on success ".to_owned(),
        Condition::OnFailure => "on failure ".to_owned(),
        Condition::ArgNull(argument) => format!("if argument {argument} is null, "),
        Condition::Unless(argument, offset) => {
            format!("unless something lies at byte {offset} of *argument {argument}, ")
        }
        Condition::ArgNotNull(argument) => format!("if argument {argument} is not null, "),
    }
}
