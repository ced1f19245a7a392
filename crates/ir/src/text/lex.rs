//! Lines of words, numbers and signs, and a cursor over one of them.

use std::fmt;

use super::TextError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(String),
    Number(i128),
    Quoted(String),
    /// `@name`, `@"any name"`, `@file.c` before a line number.
    At(String),
    Sign(char),
    Arrow,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Quoted(text) => write!(f, "{text:?}"),
            Token::At(name) => write!(f, "`@{name}`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::Arrow => f.write_str("`->`"),
        }
    }
}

pub struct Line {
    /// From 1.
    pub number: usize,
    pub tokens: Vec<Token>,
}

/// The lines that hold something.
pub fn lines(text: &str) -> Result<Vec<Line>, TextError> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let tokens = tokens(line).map_err(|message| TextError { line: number, message })?;
        if !tokens.is_empty() {
            lines.push(Line { number, tokens });
        }
    }
    Ok(lines)
}

fn in_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '$')
}

fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            ';' => break,
            '"' => {
                let (text, length) = quoted(rest)?;
                (Token::Quoted(text), length)
            }
            '@' if rest[1..].starts_with('"') => {
                let (text, length) = quoted(&rest[1..])?;
                (Token::At(text), length + 1)
            }
            '@' => {
                let end = rest[1..].find(|c| !in_word(c) && c != '-').unwrap_or(rest.len() - 1);
                (Token::At(rest[1..=end].to_string()), end + 1)
            }
            '-' if rest[1..].starts_with('>') => (Token::Arrow, 2),
            '-' => {
                let end = rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
                let number = rest[..=end].parse().map_err(|_| "a number is expected after `-`".to_string())?;
                (Token::Number(number), end + 1)
            }
            '(' | ')' | '{' | '}' | '[' | ']' | ',' | ':' | '=' | '+' | '*' => (Token::Sign(first), 1),
            first if in_word(first) => {
                let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                let token = match word.parse() {
                    Ok(number) if first.is_ascii_digit() => Token::Number(number),
                    _ => Token::Word(word.to_string()),
                };
                (token, end)
            }
            other => return Err(format!("`{other}` has no meaning here")),
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// The text in the quotation marks at the start, and the length of the whole.
fn quoted(text: &str) -> Result<(String, usize), String> {
    let mut out = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((out, at + 1)),
            '\\' => match characters.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 'r')) => out.push('\r'),
                Some((_, other)) => out.push(other),
                None => break,
            },
            other => out.push(other),
        }
    }
    Err("a quotation mark is missing".to_string())
}

/// Reads the tokens of one line from left to right.
pub struct Cursor<'a> {
    pub line: usize,
    tokens: &'a [Token],
}

impl<'a> Cursor<'a> {
    pub fn new(line: &'a Line) -> Self {
        Self { line: line.number, tokens: &line.tokens }
    }

    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T, TextError> {
        Err(TextError { line: self.line, message: message.into() })
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, TextError> {
        match self.tokens.first() {
            Some(token) => self.fail(format!("{wanted} is expected, not {token}")),
            None => self.fail(format!("{wanted} is expected at the end of the line")),
        }
    }

    pub fn peek(&self) -> Option<&'a Token> {
        self.tokens.first()
    }

    pub fn peek_second(&self) -> Option<&'a Token> {
        self.tokens.get(1)
    }

    pub fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    pub fn end(&self) -> Result<(), TextError> {
        if self.tokens.is_empty() { Ok(()) } else { self.unexpected("the end of the line") }
    }

    pub fn is_at_end(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Takes the sign if it comes next.
    pub fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        if found {
            self.next();
        }
        found
    }

    pub fn sign(&mut self, sign: char) -> Result<(), TextError> {
        if self.take(sign) { Ok(()) } else { self.unexpected(&format!("`{sign}`")) }
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(other)) if other == word);
        if found {
            self.next();
        }
        found
    }

    pub fn peek_word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub fn word(&mut self, wanted: &str) -> Result<&'a str, TextError> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.next();
                Ok(word)
            }
            _ => self.unexpected(wanted),
        }
    }

    pub fn text(&mut self) -> Result<String, TextError> {
        match self.peek() {
            Some(Token::Quoted(text)) => {
                self.next();
                Ok(text.clone())
            }
            _ => self.unexpected("a text in quotation marks"),
        }
    }

    pub fn number<T: TryFrom<i128>>(&mut self) -> Result<T, TextError> {
        match self.peek() {
            Some(Token::Number(number)) => match T::try_from(*number) {
                Ok(value) => {
                    self.next();
                    Ok(value)
                }
                Err(_) => self.fail(format!("{number} is out of range")),
            },
            _ => self.unexpected("a number"),
        }
    }

    /// The number of `v3`, if an id with this prefix comes next.
    pub fn take_id(&mut self, prefix: &str) -> Option<u32> {
        let number = id_number(self.peek_word()?, prefix)?;
        self.next();
        Some(number)
    }

    pub fn id(&mut self, prefix: &str) -> Result<u32, TextError> {
        match self.take_id(prefix) {
            Some(number) => Ok(number),
            None => self.unexpected(&format!("`{prefix}` and a number")),
        }
    }

    /// Items between commas, up to the closing sign.
    pub fn list<T, C: FromIterator<T>>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, TextError>,
    ) -> Result<C, TextError> {
        let mut items = Vec::new();
        if !self.take(close) {
            loop {
                items.push(item(self)?);
                if self.take(close) {
                    break;
                }
                self.sign(',')?;
            }
        }
        Ok(items.into_iter().collect())
    }
}

/// The number of `v3` for prefix `v`.
pub fn id_number(word: &str, prefix: &str) -> Option<u32> {
    let digits = word.strip_prefix(prefix)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}
