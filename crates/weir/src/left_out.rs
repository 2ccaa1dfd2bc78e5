//! What of a folder is not sent, in words: a tree of a system has thousands of links that lead out of it, and each of them for the same reason.

use std::path::PathBuf;

use crate::progress::name;

/// A message for each of the first few paths that are left out for a reason, and one for how many more there are.
pub(crate) fn messages(left_out: &[(PathBuf, &'static str)]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&PathBuf>)> = Vec::new();
    for (path, reason) in left_out {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, paths)) => paths.push(path),
            None => reasons.push((reason, vec![path])),
        }
    }
    let mut messages = Vec::new();
    for (reason, paths) in reasons {
        let named = if paths.len() <= MOST_NAMED + 1 { paths.len() } else { MOST_NAMED };
        let of_path = |path: &&PathBuf| format!("{} is not sent: {reason}", name(&path.to_string_lossy()));
        messages.extend(paths[..named].iter().map(of_path));
        if named < paths.len() {
            messages.push(format!("{} more are not sent: {reason}", paths.len() - named));
        }
    }
    messages
}

/// Paths that are named for each reason, besides the only one that would be left.
const MOST_NAMED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_paths_are_named_for_each_reason_and_the_rest_is_counted() {
        let of = |count, reason| (0..count).map(move |i| (PathBuf::from(format!("/t/{reason}{i}")), reason));
        let all: Vec<_> = of(7, "a link").chain(of(5, "a pipe")).collect();
        let messages = messages(&all);
        assert_eq!(messages[0], "/t/a link0 is not sent: a link");
        assert_eq!(messages[4], "3 more are not sent: a link");
        assert_eq!(messages[9], "/t/a pipe4 is not sent: a pipe");
        assert_eq!(messages.len(), 10);
    }

    #[test]
    fn a_path_is_one_line() {
        assert_eq!(messages(&[("a\nb".into(), "a pipe")]), ["a\u{fffd}b is not sent: a pipe"]);
    }
}
