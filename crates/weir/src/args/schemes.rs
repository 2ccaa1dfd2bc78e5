//! Schemes on the command line: which there are and what they offer, as the registry has it.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use weir_core::registry::{self, OfferedRates, SCHEMES, Scheme};
use weir_units::Rate;

use crate::top;

/// The scheme of a layered session unless the user chooses another.
pub(crate) const LAYERED_DEFAULT: &str = "sluice";
/// The scheme of a live stream unless the user chooses another.
pub(crate) const PACED_DEFAULT: &str = "rap";

/// A scheme for layered sessions by its name; the help lists those of the registry.
pub(super) fn layered() -> impl TypedValueParser<Value = &'static Scheme> {
    PossibleValuesParser::new(SCHEMES.iter().filter(|scheme| scheme.is_layered()).map(|scheme| scheme.name))
        .map(|name| registry::find(&name).expect("the parser lets only names of the registry through"))
}

/// A scheme for unicast streams by its name; the help lists those of the registry.
pub(super) fn paced() -> impl TypedValueParser<Value = &'static Scheme> {
    PossibleValuesParser::new(SCHEMES.iter().filter(|scheme| scheme.is_paced()).map(|scheme| scheme.name))
        .map(|name| registry::find(&name).expect("the parser lets only names of the registry through"))
}

/// Help about `--rates`.
pub(super) fn rates_help() -> String {
    let defaults = defaults_by_scheme(|rates| format!("{}..", rates.low.exact()));
    let usual = registry::find(LAYERED_DEFAULT).ok().and_then(Scheme::rates).map_or(Rate::ZERO, |rates| rates.high);
    format!(
        "Lowest and highest rate that a receiver can get, in bits a second, such as 256k..100M; or one rate for all. Without a \
         highest rate all channels together take nine tenths of the speed that the interface states, and the highest rate is {} \
         at most; it is {} where the interface is virtual or states no speed {defaults}",
        top::HIGHEST.exact(),
        usual.exact(),
    )
}

/// Help about `--ratio`.
pub(super) fn ratio_help() -> String {
    let defaults = defaults_by_scheme(|rates| rates.ratio.to_string());
    format!("Ratio of each rate to the one below it: smaller fits each link better and takes more groups {defaults}")
}

/// What the default scheme offers, and the others that offer something else: `[default: 1.5; for stair and fglm 1.2]`.
fn defaults_by_scheme(show: impl Fn(OfferedRates) -> String) -> String {
    let offers = || SCHEMES.iter().filter_map(|scheme| Some((scheme.name, show(scheme.rates()?))));
    let usual = offers().find_map(|(name, offer)| (name == LAYERED_DEFAULT).then_some(offer)).unwrap_or_default();
    let mut others: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, offer) in offers().filter(|(_, offer)| *offer != usual) {
        match others.iter_mut().find(|(known, _)| *known == offer) {
            Some((_, names)) => names.push(name),
            None => others.push((offer, vec![name])),
        }
    }
    let others: String = others.iter().map(|(offer, names)| format!("; for {} {offer}", names.join(" and "))).collect();
    format!("[default: {usual}{others}]")
}
