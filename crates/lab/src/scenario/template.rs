//! A scenario file as a tree in which parameters have not been put in yet: assignments by path, and `{expression}`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::error::{ELSEWHERE, ScenarioError, Source};
use super::expression::evaluate;
use crate::results::Value;

/// Puts `value` at `path` (keys joined by dots; of a list, the number of an element from 0), where a value may or may not have
/// been. Lists keep their length.
pub(super) fn assign<'i>(tree: &mut DeTable<'i>, path: &str, value: DeValue<'i>) -> Result<(), String> {
    let (key, rest) = match path.split_once('.') {
        Some((key, rest)) => (key, Some(rest)),
        None => (path, None),
    };
    if key.is_empty() {
        return Err(format!("{path:?} is not a path of keys joined by dots"));
    }
    let key = Spanned::new(ELSEWHERE, Cow::Owned(key.to_owned()));
    let Some(rest) = rest else {
        tree.remove(&key);
        tree.insert(key, elsewhere(value));
        return Ok(());
    };
    if !tree.contains_key(&key) {
        tree.insert(key.clone(), Spanned::new(ELSEWHERE, DeValue::Table(DeTable::new())));
    }
    match tree.get_mut(&key) {
        Some(inner) => assign_within(inner, key.get_ref(), rest, value),
        None => Ok(()),
    }
}

/// Puts `value` at `path` below what `name` is.
fn assign_within<'i>(
    place: &mut Spanned<DeValue<'i>>,
    name: &str,
    path: &str,
    value: DeValue<'i>,
) -> Result<(), String> {
    match place.get_mut() {
        DeValue::Table(inner) => assign(inner, path, value),
        DeValue::Array(list) => {
            let (number, rest) = match path.split_once('.') {
                Some((number, rest)) => (number, Some(rest)),
                None => (path, None),
            };
            let len = list.len();
            let element = number.parse().ok().and_then(|number: usize| list.get_mut(number));
            match (element.ok_or_else(|| no_element(name, len, number))?, rest) {
                (element, Some(rest)) => assign_within(element, &format!("{name}.{number}"), rest, value),
                (element, None) => {
                    *element = elsewhere(value);
                    Ok(())
                }
            }
        }
        _ => Err(format!("{name} is a value and has no {path:?}")),
    }
}

/// Which elements a list has, to somebody who asked for another.
fn no_element(name: &str, len: usize, number: &str) -> String {
    let elements = match len {
        0 => "is empty".to_owned(),
        1 => format!("has one element, {name}.0"),
        len => format!("has {len} elements, {name}.0 to {name}.{}", len - 1),
    };
    format!("{name} is a list that {elements}, and no {number:?}")
}

/// A value that has no place in the file.
fn elsewhere(value: DeValue<'_>) -> Spanned<DeValue<'_>> {
    let value = match value {
        DeValue::Array(values) => {
            let mut displaced = DeArray::new();
            values.into_iter().for_each(|value| displaced.push(elsewhere(value.into_inner())));
            DeValue::Array(displaced)
        }
        DeValue::Table(table) => {
            let entries = table
                .into_iter()
                .map(|(key, value)| (Spanned::new(ELSEWHERE, key.into_inner()), elsewhere(value.into_inner())));
            DeValue::Table(entries.collect())
        }
        plain => plain,
    };
    Spanned::new(ELSEWHERE, value)
}

/// What `--set key=value` means by `value`: TOML, or else a string.
pub(super) fn outside_value(text: &str) -> DeValue<'_> {
    match DeValue::parse(text) {
        Ok(value) => value.into_inner(),
        Err(_) => DeValue::String(Cow::Borrowed(text)),
    }
}

/// Replaces every `{expression}` in every string of the tree.
pub(super) fn fill(
    tree: &mut DeTable<'_>,
    parameters: &BTreeMap<String, Value>,
    source: &Source,
) -> Result<(), ScenarioError> {
    for (_, value) in tree.iter_mut() {
        fill_value(value, parameters, source)?;
    }
    Ok(())
}

fn fill_value(
    value: &mut Spanned<DeValue<'_>>,
    parameters: &BTreeMap<String, Value>,
    source: &Source,
) -> Result<(), ScenarioError> {
    let span = value.span();
    match value.get_mut() {
        DeValue::String(text) if text.contains('{') => {
            let filled = fill_text(text, parameters).map_err(|message| source.error(Some(span), message))?;
            *text = Cow::Owned(filled);
        }
        DeValue::Array(values) => {
            for value in values.iter_mut() {
                fill_value(value, parameters, source)?;
            }
        }
        DeValue::Table(table) => fill(table, parameters, source)?,
        _ => {}
    }
    Ok(())
}

fn fill_text(text: &str, parameters: &BTreeMap<String, Value>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}').ok_or_else(|| format!("{text:?} has a {{ without its }}"))?;
        filled.push_str(before);
        match evaluate(expression, parameters)? {
            Value::Number(number) => filled.push_str(&number.to_string()),
            Value::Word(word) => filled.push_str(&word),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The tree in one line, keys in order: what two equal trees have in common, whatever their files look like.
pub(super) fn canonical(tree: &DeTable<'_>) -> String {
    let mut text = String::new();
    write_table(tree, &mut text);
    text
}

fn write_table(table: &DeTable<'_>, text: &mut String) {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.get_ref().clone());
    text.push('{');
    for (key, value) in entries {
        text.push_str(&format!("{:?}:", key.get_ref()));
        write_value(value.get_ref(), text);
        text.push(',');
    }
    text.push('}');
}

fn write_value(value: &DeValue<'_>, text: &mut String) {
    match value {
        DeValue::Table(table) => write_table(table, text),
        DeValue::Array(values) => {
            text.push('[');
            for value in values.iter() {
                write_value(value.get_ref(), text);
                text.push(',');
            }
            text.push(']');
        }
        DeValue::String(string) => text.push_str(&format!("{string:?}")),
        DeValue::Integer(number) => text.push_str(&number.to_string()),
        DeValue::Float(number) => text.push_str(&number.to_string()),
        DeValue::Boolean(flag) => text.push_str(&flag.to_string()),
        DeValue::Datetime(when) => text.push_str(&when.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> DeTable<'_> {
        DeTable::parse(text).expect("valid TOML").into_inner()
    }

    fn text(value: &str) -> DeValue<'_> {
        DeValue::String(Cow::Borrowed(value))
    }

    #[test]
    fn assignments_replace_and_create() {
        let mut tree = tree("a = 1\n[b]\nc = 2");
        assign(&mut tree, "a", text("x")).expect("replaces");
        assign(&mut tree, "b.d.e", text("y")).expect("creates");
        assert_eq!(canonical(&tree), r#"{"a":"x","b":{"c":2,"d":{"e":"y",},},}"#);
        assert!(assign(&mut tree, "a.b", text("z")).is_err_and(|error| error.contains("has no \"b\"")));
        assert!(assign(&mut tree, "", text("z")).is_err());
    }

    #[test]
    fn elements_of_lists_are_reached_by_their_numbers_and_no_others() {
        let mut tree = tree("change = [{ at = 1 }, { at = 2 }]\nnested = [[1, 2], [3]]\nnone = []");
        assign(&mut tree, "change.1.at", text("5s")).expect("there are two");
        assign(&mut tree, "change.0.link", text("rate=1M")).expect("creates a key in an element");
        assign(&mut tree, "nested.0.1", text("x")).expect("lists in lists");
        assign(&mut tree, "nested.1", text("y")).expect("a whole element");
        let expected = r#"{"change":[{"at":1,"link":"rate=1M",},{"at":"5s",},],"nested":[[1,"x",],"y",],"none":[],}"#;
        assert_eq!(canonical(&tree), expected);
        let mut refused = |path: &str| assign(&mut tree, path, text("z")).expect_err(path);
        assert_eq!(refused("change.2.at"), r#"change is a list that has 2 elements, change.0 to change.1, and no "2""#);
        assert_eq!(refused("change.at"), r#"change is a list that has 2 elements, change.0 to change.1, and no "at""#);
        assert_eq!(
            refused("nested.0.7"),
            r#"nested.0 is a list that has 2 elements, nested.0.0 to nested.0.1, and no "7""#
        );
        assert_eq!(refused("none.0"), r#"none is a list that is empty, and no "0""#);
        assert_eq!(refused("nested.0.0.a"), r#"nested.0.0 is a value and has no "a""#);
    }

    #[test]
    fn expressions_are_put_into_strings_wherever_they_stand() {
        let mut tree = tree("link = \"rate={1.5 * n}M,buffer={40 * n}p\"\nlist = [{ scheme = \"{s}\" }]");
        let word = Value::Word("rmrc".to_owned());
        let parameters = BTreeMap::from([("n".to_owned(), Value::Number(4.0)), ("s".to_owned(), word)]);
        let source = Source { file: String::new(), text: String::new() };
        fill(&mut tree, &parameters, &source).expect("all parameters are there");
        assert_eq!(canonical(&tree), r#"{"link":"rate=6M,buffer=160p","list":[{"scheme":"rmrc",},],}"#);
    }

    #[test]
    fn an_unclosed_brace_is_an_error_at_its_line() {
        let text = "a = 1\nb = \"{n\"";
        let source = Source { file: "f".to_owned(), text: text.to_owned() };
        let error = fill(&mut tree(text), &BTreeMap::new(), &source).expect_err("must be refused");
        assert_eq!(error.line, Some(2));
    }
}
