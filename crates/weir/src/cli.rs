//! From the command line to the command, and from its end to the exit code.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, Recv, SendWhat, SessionSource};
use crate::console::Console;
use crate::events::{ReceiverEvent, Trouble};
use crate::exit::{Exit, Failure};
use crate::progress::{Stdout, print};
use crate::{
    announce, demo, describe, doctor, key, lab, live, man, media, recv, schemes, send, several, standard, stream,
};

/// Runs what the command line asks for.
pub fn run() -> ExitCode {
    let command = Cli::parse().command;
    let wants_json = match &command {
        Command::Send(SendWhat::File(args)) => args.output.json,
        Command::Send(SendWhat::Live(args)) => args.output.json,
        Command::Send(SendWhat::Media(args)) => args.output.json,
        Command::Send(SendWhat::Stream(args)) => args.output.json,
        Command::Agent(args) => args.output.json,
        Command::Recv(args) => args.output.json,
        Command::Doctor(args) => args.json,
        _ => false,
    };
    let exit = dispatch(command).unwrap_or_else(|failure| {
        report(&failure, wants_json);
        failure.exit
    });
    exit.into()
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Send(SendWhat::File(args)) => send::files(&args, &mut Console::new(&args.output)?),
        Command::Send(SendWhat::Live(args)) => live::send(&args, &mut Console::new(&args.output)?),
        Command::Send(SendWhat::Media(args)) if args.unicast.is_some() => {
            media::serve(&args, &mut Console::new(&args.output)?)
        }
        Command::Send(SendWhat::Media(args)) => media::send(&args, &mut Console::new(&args.output)?),
        Command::Send(SendWhat::Stream(args)) => stream::send(&args, &mut Console::new(&args.output)?),
        Command::Agent(args) => stream::serve(&args, &mut Console::new(&args.output)?),
        Command::Recv(args) if args.announced.is_some() => announce::receive(&args),
        Command::Recv(args) if args.sessions.len() > 1 => several::files(&args),
        Command::Recv(args)
            if !args.priority.is_empty() || args.priorities.is_some() || !args.manager_settings.is_empty() =>
        {
            let message =
                "--priority, --priorities and --manager-set divide bandwidth among several sessions, and one was given";
            Err(Failure::new(Exit::Usage, message))
        }
        Command::Recv(args) => match &args.sessions[0] {
            SessionSource::File(_) | SessionSource::Stdin | SessionSource::Url(_) | SessionSource::Sender(_)
                if args.via.is_some() =>
            {
                Err(Failure::new(Exit::Usage, "--via is for streams over a tree, whose addresses begin with stream://"))
            }
            SessionSource::Sender(_) | SessionSource::Stream(_) if args.hook.is_some() => {
                Err(Failure::new(Exit::Usage, "--hook runs after sessions of files, and this is a stream"))
            }
            SessionSource::Sender(address) => live::recv(&args, address, &mut Console::new(&args.output)?),
            SessionSource::Stream(address) => stream::receive(&args, address, &mut Console::new(&args.output)?),
            _ => described(&args),
        },
        Command::Describe(args) => describe::describe(&args).map(|text| shown(&text)),
        Command::Key(what) => key::run(&what).map(|text| shown(&text)),
        Command::Doctor(args) => doctor::run(&args),
        Command::Schemes => Ok(shown(&schemes::listing())),
        Command::Demo(args) => demo::run(&args),
        Command::DemoLive(args) => demo::live::run(&args),
        Command::Lab(what) => lab::run(&what),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "weir", &mut script);
            Ok(shown(&String::from_utf8_lossy(&script)))
        }
        Command::Man { folder } => man::write(Cli::command(), &folder),
    }
}

/// Receives what a description tells of.
fn described(args: &Recv) -> Result<Exit, Failure> {
    let wanted = recv::Wanted::of(args)?;
    match wanted.description.media.clone() {
        Some(format) => media::recv(args, &wanted, &format, &mut Console::new(&args.output)?),
        None if standard::is_output(args) => recv::files_of(args, wanted, &mut Console::next_to_stdout(&args.output)?),
        None => recv::files_of(args, wanted, &mut Console::new(&args.output)?),
    }
}

/// Prints what was asked for. A reader that stops reading has seen enough.
fn shown(text: &str) -> Exit {
    match print(text) {
        Stdout::Open | Stdout::Closed => Exit::Done,
    }
}

/// A failure before anything ran: to people on standard error, to machines as the event that it is.
fn report(failure: &Failure, wants_json: bool) {
    eprintln!("weir: {failure}");
    if wants_json {
        let trouble = Trouble { t_s: 0.0, message: failure.to_string(), exit_code: Some(failure.exit.code()) };
        let line = serde_json::to_string(&ReceiverEvent::Error(trouble)).expect("events are plain data");
        shown(&format!("{line}\n"));
    }
}
