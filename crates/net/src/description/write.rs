//! Descriptions as SDP text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use weir_units::{Hex, Rate, is_unprintable};
use weir_wire::CciForm;

use super::Description;

impl fmt::Display for Description {
    /// The description as SDP, lines ended by CR LF (RFC 8866 §5).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.channels.first().map_or("IP4", |channel| family(channel.ip()));
        let origin = self.source.map_or_else(|| unspecified(family).to_owned(), |source| source.to_string());
        let name = line_of_text(&self.name);
        write!(
            f,
            "v=0\r\no=- {} 1 IN {family} {origin}\r\ns={name}\r\nt=0 {}\r\n",
            self.tsi,
            self.expires.unwrap_or(0)
        )?;
        if let Some(source) = self.source {
            write!(f, "a=source-filter: incl IN {family} * {source}\r\n")?;
        }
        match &self.media {
            Some(media) => {
                write!(f, "a=weir-tsi:{}\r\n", self.tsi)?;
                media.write_session(f)?;
            }
            None => {
                write!(f, "a=flute-tsi:{}\r\na=flute-ch:{}\r\n", self.tsi, self.channels.len())?;
                write!(f, "a=weir-flute:{}\r\n", self.flute_version)?;
            }
        }
        if family == "IP6" {
            write!(f, "a=weir-hops:{}\r\n", self.ttl)?;
        }
        self.write_weir(f)?;
        // Of a scheme that is not known here the rates are not either, and nothing needs them.
        let rates = self.control.as_ref().and_then(|control| control.channel_rates().ok()).unwrap_or_default();
        let rates = rates.into_iter().map(Some).chain(std::iter::repeat(None));
        let mut channels = self.channels.iter().zip(rates).enumerate();
        channels.try_for_each(|(number, (channel, rate))| self.write_channel(f, number, *channel, rate))
    }
}

impl Description {
    fn write_weir(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(control) = &self.control {
            write!(f, "a=weir-cc:{}", control.scheme)?;
            for setting in &control.settings {
                write!(f, " {}={}", setting.key, setting.value)?;
            }
            write!(f, "\r\na=weir-cci:{}\r\n", form_name(control.form))?;
            write!(f, "a=weir-packet:{}\r\na=weir-ladder:", control.packet_size.count())?;
            for (number, rate) in control.ladder.rates().iter().enumerate() {
                write!(f, "{}{}", if number == 0 { "" } else { " " }, rate.bps())?;
            }
            write!(f, "\r\n")?;
        }
        if let Some(symbol_size) = self.symbol_size {
            write!(f, "a=weir-symbol:{symbol_size}\r\n")?;
        }
        if let Some(key) = &self.public_key {
            write!(f, "a=weir-key:ed25519 {}\r\n", Hex(key))?;
        }
        if let Some(epoch) = self.epoch {
            write!(f, "a=weir-epoch:{epoch}\r\n")?;
        }
        if let Some(address) = self.control_address {
            write!(f, "a=weir-control:{address}\r\n")?;
        }
        if let Some(key) = &self.receipt_key {
            write!(f, "a=weir-receipt:{}\r\n", Hex(key))?;
        }
        if let Some(priority) = self.priority {
            write!(f, "a=weir-priority:{priority}\r\n")?;
        }
        if let Some(sessions) = self.sessions {
            write!(f, "a=weir-sessions:{sessions}\r\n")?;
        }
        write!(f, "{}", self.sealing)
    }

    fn write_channel(
        &self,
        f: &mut fmt::Formatter<'_>,
        number: usize,
        channel: SocketAddr,
        rate: Option<Rate>,
    ) -> fmt::Result {
        match &self.media {
            Some(media) => media.write_line(f, channel.port())?,
            None => write!(f, "m=application {} FLUTE/UDP 0", channel.port())?,
        }
        write!(f, "\r\n")?;
        match channel.ip() {
            IpAddr::V4(group) => write!(f, "c=IN IP4 {group}/{}\r\n", self.ttl)?,
            IpAddr::V6(group) => write!(f, "c=IN IP6 {group}\r\n")?,
        }
        if let Some(rate) = rate {
            write!(f, "b=AS:{}\r\n", rate.bps().div_ceil(1_000))?;
        }
        self.media.as_ref().map_or(Ok(()), |media| media.write_channel(f, number))
    }
}

pub(super) fn form_name(form: CciForm) -> &'static str {
    match form {
        CciForm::Short => "short",
        CciForm::Long => "long",
        CciForm::Clocked => "clocked",
    }
}

pub(super) fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IP4" } else { "IP6" }
}

fn unspecified(family: &str) -> &'static str {
    if family == "IP4" { "0.0.0.0" } else { "::" }
}

/// A name that cannot break out of its line.
fn line_of_text(name: &str) -> String {
    let line: String = name.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    let line = line.trim();
    if line.is_empty() { "-".to_owned() } else { line.to_owned() }
}
