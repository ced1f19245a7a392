//! Breaks a program that is in order: the errors that people make.

use crate::rng::Rng;
use crate::tree::{Function, Stmt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A release is forgotten.
    DropFree,
    /// A release is written twice.
    DoubleFree,
    /// A release comes one statement too early.
    MoveFreeUp,
    /// What was released is read.
    UseAfterFree,
    /// A pointer keeps its value after the release.
    DropClear,
    /// The last reference is overwritten before the release.
    ClearBeforeFree,
    /// The result of an insertion that can fail is ignored.
    IgnoreInsert,
    /// A fresh object without a name goes into an insertion that can fail.
    UnnamedInsert,
    /// `return f(p);` with the release left out.
    ReturnDirect,
    /// `p = realloc(p, n);`
    DirectRealloc,
}

/// Applies up to `count` mutations at random places and says which.
pub fn mutate(functions: &mut [Function], count: usize, rng: &mut Rng) -> Vec<(Mutation, String)> {
    let mut made = Vec::new();
    for _ in 0..count {
        let sites = sites(functions);
        // Kinds first, so that the frequent ones do not crowd out the rest.
        let mut kinds: Vec<Mutation> = Vec::new();
        for (kind, ..) in &sites {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        let Some(kind) = rng.pick(&kinds).copied() else { break };
        let of_kind: Vec<_> = sites.into_iter().filter(|site| site.0 == kind).collect();
        let Some((_, function, block, index)) = rng.pick(&of_kind).copied() else { break };
        apply(&mut functions[function], block, index, kind);
        made.push((kind, functions[function].head.clone()));
    }
    made
}

/// Kind, function, number of the block within it, statement.
type Site = (Mutation, usize, usize, usize);

fn sites(functions: &mut [Function]) -> Vec<Site> {
    let mut found = Vec::new();
    for (number, function) in functions.iter_mut().enumerate() {
        let mut block_number = 0;
        each_block(&mut function.body, &mut |block| {
            for index in 0..block.len() {
                found.extend(kinds_at(block, index).into_iter().map(|kind| (kind, number, block_number, index)));
            }
            block_number += 1;
        });
    }
    found
}

fn kinds_at(block: &[Stmt], index: usize) -> Vec<Mutation> {
    match &block[index] {
        Stmt::Free { var, .. } => {
            let mut kinds = vec![Mutation::DropFree, Mutation::DoubleFree, Mutation::UseAfterFree];
            if index > 0
                && matches!(block[index - 1], Stmt::Use { .. } | Stmt::Plain(_))
                && !declares(&block[index - 1])
            {
                kinds.push(Mutation::MoveFreeUp);
            }
            if var.chars().all(char::is_alphabetic) && var != "list" {
                kinds.push(Mutation::ClearBeforeFree);
            }
            kinds
        }
        Stmt::Clear { .. } => vec![Mutation::DropClear],
        Stmt::Insert { checked: true, call, .. } => {
            let mut kinds = vec![Mutation::IgnoreInsert];
            if call.starts_with("list_push") {
                kinds.push(Mutation::UnnamedInsert);
            }
            kinds
        }
        Stmt::ReturnCall { direct: false, free, .. } if !free.is_empty() => vec![Mutation::ReturnDirect],
        Stmt::If { then, .. } if matches!(&then[..], [Stmt::Plain(text), _] if text.contains("= realloc(")) => {
            vec![Mutation::DirectRealloc]
        }
        _ => Vec::new(),
    }
}

/// Moving a release above a declaration would read an undeclared name.
fn declares(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Plain(text) if text.starts_with("struct ") || text.starts_with("char ") || text.starts_with("int "))
}

fn apply(function: &mut Function, block_number: usize, index: usize, kind: Mutation) {
    let mut number = 0;
    each_block(&mut function.body, &mut |block| {
        if number == block_number && index < block.len() {
            change(block, index, kind);
        }
        number += 1;
    });
}

fn change(block: &mut Vec<Stmt>, index: usize, kind: Mutation) {
    let stmt = block[index].clone();
    match (kind, stmt) {
        (Mutation::DropFree | Mutation::DropClear, _) => {
            block.remove(index);
        }
        (Mutation::DoubleFree, free) => block.insert(index + 1, free),
        (Mutation::MoveFreeUp, _) => block.swap(index - 1, index),
        (Mutation::UseAfterFree, Stmt::Free { var, .. }) => {
            let read = match is_text(&var) {
                true => format!("if ({var}) printf(\"%d\\n\", *{var});"),
                false if var == "list" => "if (list.head) node_show(list.head);".into(),
                false => format!("node_show({var});"),
            };
            block.insert(index + 1, Stmt::Use { text: read, var });
        }
        (Mutation::ClearBeforeFree, Stmt::Free { var, .. }) => block.insert(index, Stmt::Clear { var }),
        (Mutation::IgnoreInsert, Stmt::Insert { call, value, free, .. }) => {
            block[index] = Stmt::Insert { call, value, free, checked: false };
        }
        (Mutation::UnnamedInsert, _) => block.insert(index, Stmt::plain("list_push(&list, node_new(7));")),
        (Mutation::ReturnDirect, Stmt::ReturnCall { result, call, free, .. }) => {
            block[index] = Stmt::ReturnCall { result, call, free, direct: true };
        }
        (Mutation::DirectRealloc, Stmt::If { cond, .. }) => {
            let name = cond.split(' ').next().unwrap_or("s").to_string();
            let then = vec![Stmt::plain(format!("{name} = realloc({name}, 32);"))];
            block[index] = Stmt::If { cond, then, otherwise: Vec::new() };
        }
        _ => {}
    }
}

fn each_block(block: &mut Vec<Stmt>, visit: &mut dyn FnMut(&mut Vec<Stmt>)) {
    for stmt in block.iter_mut() {
        for inner in stmt.blocks_mut() {
            each_block(inner, visit);
        }
    }
    visit(block);
}

/// Texts have names of their own.
fn is_text(var: &str) -> bool {
    matches!(var, "s" | "t" | "n->name")
}
