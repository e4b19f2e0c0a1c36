//! Real programs from their published source: fetched by cargo, copied, and given our allocator with two lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// The two lines.
const DEPENDENCY: &str = "[dependencies.tally-alloc]\npath = ";
const INSTALLED: &str = "#[global_allocator]\nstatic GLOBAL: tally_alloc::TallyAlloc = tally_alloc::TallyAlloc::system();\n";

/// A program as it is published.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name of its package.
    pub package: &'static str,
    /// The package's version.
    pub version: &'static str,
    /// The name of its executable.
    pub binary: &'static str,
    /// The file of its `main`, from the package's root.
    pub main: &'static str,
    /// The profile that it is released with.
    pub profile: &'static str,
    /// Its default features bring an allocator of its own, and no program has two.
    pub has_own_allocator: bool,
}

/// Searches the text of files.
pub const RIPGREP: Program = Program {
    package: "ripgrep",
    version: "15.1.0",
    binary: "rg",
    main: "crates/core/main.rs",
    profile: "release-lto",
    has_own_allocator: false,
};

/// Finds files by name.
pub const FD: Program = Program {
    package: "fd-find",
    version: "10.5.0",
    binary: "fd",
    main: "src/main.rs",
    profile: "release",
    has_own_allocator: false,
};

/// Transforms JSON: a small interpreter whose values are reference-counted blocks.
pub const JAQ: Program = Program {
    package: "jaq",
    version: "3.1.2",
    binary: "jaq",
    main: "src/main.rs",
    profile: "release",
    has_own_allocator: true,
};

/// What is built of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What was published.
    Published,
    /// That and the two lines.
    Counted,
}

/// A copy of a program's source, to be built or tested.
#[derive(Debug)]
pub struct Copy {
    program: Program,
    root: PathBuf,
    target: PathBuf,
    with_symbols: bool,
}

impl Program {
    /// Has cargo put the source and those of all that it depends on into one directory, if they are not there yet.
    /// Returns where that is.
    ///
    /// # Errors
    ///
    /// When cargo cannot.
    pub fn vendor(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        let Self {
            package, version, ..
        } = self;
        let directory = directory.join(package);
        let vendored = directory.join("vendor");
        if !self.source_in(&vendored).join("Cargo.toml").exists() {
            fs::create_dir_all(directory.join("src"))?;
            fs::write(directory.join("src/lib.rs"), "")?;
            let manifest = format!(
                "[package]\nname = \"fetched\"\nedition = \"2024\"\n[dependencies]\n{package} = \"={version}\"\n[workspace]\n"
            );
            fs::write(directory.join("Cargo.toml"), manifest)?;
            let mut vendor = cargo();
            vendor
                .args(["vendor", "--quiet", "--versioned-dirs", "vendor"])
                .current_dir(&directory)
                .stdout(Stdio::null());
            succeed(&mut vendor)?;
        }
        Ok(vendored)
    }

    fn source_in(&self, vendored: &Path) -> PathBuf {
        vendored.join(format!("{}-{}", self.package, self.version))
    }

    /// Copies the source, in one of its forms, with `more` code at the end of `main`'s file.
    ///
    /// # Errors
    ///
    /// When it cannot be fetched, or a file cannot be read or written.
    pub fn copy(&self, directory: &Path, form: Form, more: &str) -> anyhow::Result<Copy> {
        let source = self.source_in(&self.vendor(directory)?);
        let root = directory.join(self.package).join(match form {
            Form::Published => "published",
            Form::Counted => "counted",
        });
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        copy_tree(&source, &root)?;
        let manifest = root.join("Cargo.toml");
        let mut text = fs::read_to_string(&manifest)?;
        // Outside any workspace.
        text.push_str("\n[workspace]\n");
        let main = root.join(self.main);
        let mut code = fs::read_to_string(&main)?;
        if form == Form::Counted {
            let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            text.push_str(&format!("{DEPENDENCY}{:?}\n", ours.canonicalize()?));
            code.push_str(INSTALLED);
        }
        fs::write(&main, code + more)?;
        fs::write(&manifest, text)?;
        Ok(Copy {
            program: *self,
            root,
            target: directory.join("target"),
            with_symbols: false,
        })
    }
}

impl Copy {
    /// Leaves the names of functions in the executable, whatever the profile says.
    #[must_use]
    pub const fn with_symbols(mut self) -> Self {
        self.with_symbols = true;
        self
    }

    /// Builds the program with the profile that it is released with. Returns the executable's path.
    ///
    /// # Errors
    ///
    /// When it does not build.
    pub fn build(&self) -> anyhow::Result<PathBuf> {
        let Program {
            profile, binary, ..
        } = self.program;
        succeed(self.cargo("build").args(["--quiet", "--profile", profile]))?;
        let name = format!("{binary}{}", std::env::consts::EXE_SUFFIX);
        let built = self.target.join(profile).join(&name);
        let program = self.root.join(&name);
        fs::copy(&built, &program).with_context(|| format!("copying {}", built.display()))?;
        Ok(program)
    }

    /// Runs the program's own tests.
    ///
    /// # Errors
    ///
    /// When they do not build.
    pub fn test(&self) -> anyhow::Result<Tested> {
        let output = self
            .cargo("test")
            .args(["--no-fail-fast"])
            .stderr(Stdio::inherit())
            .output()?;
        let tested = Tested::of(&String::from_utf8_lossy(&output.stdout));
        ensure!(
            output.status.success() || !tested.failed.is_empty(),
            "the tests of {} do not run",
            self.program.package
        );
        Ok(tested)
    }

    fn cargo(&self, command: &str) -> Command {
        let mut cargo = cargo();
        cargo
            .arg(command)
            .arg("--manifest-path")
            .arg(self.root.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&self.target);
        if self.with_symbols {
            let profile = self.program.profile;
            cargo.args(["--config", &format!("profile.{profile}.strip = \"none\"")]);
        }
        if self.program.has_own_allocator {
            cargo.arg("--no-default-features");
        }
        cargo
    }
}

/// What became of a program's tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tested {
    /// How many passed.
    pub passed: usize,
    /// How many the program itself leaves out.
    pub ignored: usize,
    /// The names of those that failed.
    pub failed: Vec<String>,
}

impl Tested {
    /// Reads what libtest prints.
    fn of(output: &str) -> Self {
        let mut tested = Self::default();
        for line in output.lines() {
            let Some(line) = line.strip_prefix("test ") else {
                continue;
            };
            if line.ends_with("... ok") {
                tested.passed += 1;
            } else if line.contains(" ... ignored") {
                tested.ignored += 1;
            } else if let Some(name) = line.strip_suffix(" ... FAILED") {
                tested.failed.push(name.to_owned());
            }
        }
        tested
    }
}

/// Returns the cargo that runs us.
#[must_use]
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end.
///
/// # Errors
///
/// When it cannot be run, or fails.
pub fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("running {command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(&name);
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if name != ".cargo-checksum.json" && name != ".cargo-ok" {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Tested;

    #[test]
    fn tests_are_told_by_how_they_end() {
        let output = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, slow\n\
                      test result: FAILED. 1 passed; 1 failed; 1 ignored\n";
        assert_eq!(
            Tested::of(output),
            Tested {
                passed: 1,
                ignored: 1,
                failed: vec!["c".to_owned()],
            }
        );
    }
}
