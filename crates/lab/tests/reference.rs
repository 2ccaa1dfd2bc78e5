//! `docs/scenarios.md` says what the types that read scenario files say.

use std::path::Path;

#[test]
fn the_reference_page_is_the_one_that_the_types_make() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = weir_lab::scenario::reference();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/scenarios.md is out of date: WEIR_BLESS=1 cargo test -p weir-lab --test reference");
}
