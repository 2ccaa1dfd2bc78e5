//! Gives the crate the digest of everything that decides a run's result, so that the cache never answers for other code:
//! the sources and manifests of the crates below, and the versions of what they depend on. And builds the scenarios in.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The crates whose code runs in a run.
const CRATES: [&str; 6] = ["units", "wire", "core", "link", "sim", "lab"];

/// Parts of this crate that only read results. Whatever is not named here counts.
const READERS: [&str; 8] = ["capture", "claim", "dossier", "export", "figure", "library", "recording", "report"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut digest = Digest::default();
    digest.file(&root.join("Cargo.lock"));
    for name in CRATES {
        let folder = root.join("crates").join(name);
        digest.file(&folder.join("Cargo.toml"));
        digest.folder(&folder.join("src"), name == "lab");
    }
    println!("cargo::rustc-env=WEIR_CODE_VERSION={:032x}", digest.0);
    build_in(&root.join("scenarios"));
}

/// Puts the scenarios of the papers into the program, so that an installed laboratory needs no files.
fn build_in(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.strip_prefix(folder).expect("it was found below the folder").display().to_string();
        writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string()).expect("a string takes it");
    }
    list += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("scenarios.rs"), list).expect("cargo gives a folder that can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}

/// FNV-1a with 128 bits: nobody attacks a cache of one's own.
struct Digest(u128);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn file(&mut self, path: &Path) {
        println!("cargo::rerun-if-changed={}", path.display());
        match fs::read(path) {
            Ok(bytes) => self.add(&bytes),
            // Cargo.lock is not there where the crate is built outside of its workspace.
            Err(_) => self.add(b"missing"),
        }
    }

    fn folder(&mut self, folder: &Path, skip_readers: bool) {
        println!("cargo::rerun-if-changed={}", folder.display());
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if skip_readers && READERS.contains(&name) {
                continue;
            }
            self.add(name.as_bytes());
            if path.is_dir() { self.folder(&path, false) } else { self.file(&path) }
        }
    }
}
