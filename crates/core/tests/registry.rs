//! What holds for every scheme of the registry.

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session, Setting, Stream};
use weir_units::{Bytes, Rate};
use weir_wire::CciForm;

#[test]
fn every_setting_that_the_help_lists_exists() {
    let packet_size = Bytes::new(1000);
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(8), 2.0).expect("valid");
    let session = Session { ladder, packet_size, form: CciForm::Short, habitat: Habitat::Lab };
    let stream = Stream { packet_size, feedback_size: Bytes::new(40), habitat: Habitat::Lab };
    for scheme in registry::SCHEMES {
        for setting in scheme.settings {
            let settings = [Setting { key: setting.key.into(), value: "?".into() }];
            let built = match scheme.is_layered() {
                true => scheme.receiver(&session, &settings),
                false => scheme.source(&stream, &settings),
            };
            let error = built.map(drop).expect_err("no value is '?'");
            assert!(error.to_string().starts_with(&format!("setting {}=?", setting.key)), "{error}");
        }
    }
}
