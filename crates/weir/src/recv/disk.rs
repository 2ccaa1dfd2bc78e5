//! A block device as the place of a session's only file: a disk image goes to the disk as it comes.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_object::store::{DeviceError, look_at_device};
use weir_units::Bytes;

use crate::args::Recv;
use crate::exit::{Exit, Failure};
use crate::folders;

/// The device that the options name as the place for the file, if it is one: the user has said that all of it may be written over, and nothing
/// uses it.
pub(super) fn of(args: &Recv) -> Result<Option<PathBuf>, Failure> {
    let is_device = |path: &&PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    let Some(path) = args.out.as_ref().filter(is_device) else { return Ok(None) };
    let refused = |why: String| Failure::new(Exit::Files, format!("cannot write to {}: {why}", path.display()));
    let length = look_at(path).map_err(|error| refused(error.to_string()))?;
    if !args.overwrite {
        let length = Bytes::new(length);
        let why = format!("all that is on this device of {length} would be lost; say --overwrite if that is meant");
        return Err(Failure::new(Exit::Usage, format!("cannot write to {}: {why}", path.display())));
    }
    // One name, whatever link led to it: what was received of a file is found again by it.
    fs::canonicalize(path).map(Some).map_err(|error| refused(error.to_string()))
}

/// Bytes of a device that can be written over. A receiver that was just killed holds it until all that it wrote is there.
#[expect(clippy::disallowed_methods, reason = "it is waited for another process, which tells nobody when it ends")]
fn look_at(path: &Path) -> Result<u64, DeviceError> {
    for _ in 0..LOOKS {
        match look_at_device(path) {
            Err(DeviceError::InUse) => std::thread::sleep(PAUSE),
            looked => return looked,
        }
    }
    look_at_device(path)
}

/// Where it is kept what a device has of its file, so that a receiver which was killed goes on.
pub(super) fn working_folder(device: &Path) -> Result<PathBuf, Failure> {
    let name = device.file_name().unwrap_or(device.as_os_str());
    let folder = folders::state().map(|state| state.join("devices").join(name));
    let missing = "neither XDG_STATE_HOME nor HOME says where to keep what was received of a file on a device";
    let folder = folder.ok_or_else(|| Failure::new(Exit::Usage, missing))?;
    folders::make_for(&folder).map_err(Failure::of(Exit::Files, folder.display()))?;
    Ok(folder)
}

/// It is looked for five seconds.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);
