# make demo    one file to four receivers behind unequal links, on this machine, unprivileged; FILE=path for your own
# make demo-live  layered video to three receivers behind unequal links, with the pictures that each puts out; FILE=clip for your own
# make test    everything that must hold: formatting, lints, docs, unit, property, conformance and namespace tests
# make reproduce  every figure of the papers in full, into target/reproduction and docs/reproduction.md
# make yardstick  the default scheme, or SCHEME=name, on the networks of today (docs/yardstick.md)
# make churn   a thousand hours of streams whose members come, leave, die and are cut off: two hours on two cores
# make bench   speed, next to uftp and ns-2 in the same run (needs root for network namespaces)
# make python  the laboratory as a Python package, in a virtual environment of its own, target/python
# make python-docs  its reference, from its docstrings, in target/python-docs
#
# make install    the program, manual pages, completions and service into PREFIX, /usr/local if not given; DESTDIR for packagers
# make deb        a package for this Debian or Ubuntu, in target/deb
# make static     one file that runs on every Linux: target/x86_64-unknown-linux-musl/release/weir
# make package-test  the package and the static program in bare Debian systems, from one to the other (needs root)

.PHONY: demo demo-live test test-in-time test-lints test-documentation test-no-std test-golden python python-test python-test-build python-test-run python-bench python-docs bench churn reproduce yardstick build install uninstall install-files deb static package-test
.PHONY: need-cargo need-python need-ffmpeg need-test-tools need-bench-tools need-package-tools

FILE ?=
PREFIX ?= /usr/local
DESTDIR ?=
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
STATIC := $(shell uname -m)-unknown-linux-musl
BINARY ?= target/release/weir
REPRODUCTION := target/reproduction
PAPERS := avmrc mtcp pslm rap stair

demo: build
	target/release/weir demo $(FILE)

demo-live: need-ffmpeg build
	target/release/weir demo-live $(FILE)

build: need-cargo
	cargo build --release --locked -p weir

# Most tests wait for packets in real time. What only computes runs next to them, on processors that nobody else wants, and tells afterwards.
# The tests of the package start sessions of their own, where that priority does not hold.
IDLY := $(if $(shell command -v chrt),chrt --idle 0,nice -n 19)
CARGO_TEST := cargo test --locked --workspace --no-fail-fast
COMPUTED := target/computed.log
test: need-cargo need-python need-test-tools
	cargo fmt --all --check
	$(CARGO_TEST) --lib --bins --tests --no-run
	@$(IDLY) $(MAKE) --no-print-directory test-golden test-lints test-documentation test-no-std python-test-build >$(COMPUTED) 2>&1 & computing=$$!; \
		$(MAKE) --no-print-directory test-in-time; in_time=$$?; \
		wait $$computing; computed=$$?; cat $(COMPUTED); \
		[ $$computed = 0 ] && exit $$in_time
	$(MAKE) --no-print-directory python-test-run

test-lints:
	cargo clippy --locked --workspace --all-targets -- -D warnings

test-in-time:
	$(CARGO_TEST) --lib --bins --tests

test-documentation: export RUSTDOCFLAGS = -D warnings
test-documentation:
	cargo doc --locked --workspace --no-deps --document-private-items
	$(CARGO_TEST) --doc

test-no-std:
	@for crate in units wire core link; do grep -q '^#!\[no_std\]' crates/$$crate/src/lib.rs || { echo "weir-$$crate must be no_std"; exit 1; }; done
	cargo check --locked -p weir-units -p weir-wire -p weir-core -p weir-link

test-golden:
	target/debug/weir lab verify avmrc/fig01 avmrc/fig04 --set session.main.settings.confirm_steps=half --no-cache --scenarios scenarios
	target/debug/weir lab verify avmrc/fig06 rap/fig08 pslm/fig04 pslm/fig05 pslm/leave --no-cache --scenarios scenarios
	target/debug/weir lab verify avmrc/fig01 avmrc/fig04 --set 'variant=["AVMRC literal", "AVMRC sustained"]' --no-cache --scenarios scenarios

# The package is built as a wheel and installed into a virtual environment: as people would, and apart from the source.
python: need-cargo need-python
	$(call install_wheel,release,target/python,cluster,frames,notebooks)
	@echo "installed: target/python/bin/python -c 'from weir import lab; print(lab.scenarios())'; notebooks: target/python/bin/jupyter lab docs/notebooks"

# Programs by -m: scripts in a virtual environment name its folder, and a cache may lie elsewhere.
PYTHON_TEST := $(CURDIR)/target/python-test/bin/python
python-test: python-test-build
	$(MAKE) --no-print-directory python-test-run

python-test-build: need-cargo need-python
	$(call install_wheel,dev,target/python-test,test)
	cd python && $(PYTHON_TEST) -m ruff check . && $(PYTHON_TEST) -m ruff format --check . && $(PYTHON_TEST) -m mypy

python-test-run:
	cd python/tests && $(PYTHON_TEST) -m pytest -q -p no:cacheprovider

# What a cluster costs next to the command line: needs a quiet machine, half an hour.
python-bench: python build
	target/python/bin/python python/benchmarks/throughput.py --weir target/release/weir
	target/python/bin/python python/benchmarks/overhead.py

python-docs: python
	target/python/bin/python -m pip install -q 'pdoc>=15'
	target/python/bin/python -m pdoc -o target/python-docs weir weir.transfer weir.lab.cluster weir.lab.store
	@echo "reference: target/python-docs/index.html"

# $(call install_wheel,PROFILE,FOLDER,EXTRAS…)
comma := ,
define install_wheel
	[ -x $(2)/bin/python ] || python3 -m venv $(2)
	$(2)/bin/python -m pip install -q 'maturin>=1.9,<2'
	rm -rf $(2)/wheel && cd python && ../$(2)/bin/python -m maturin build -q --locked --profile $(1) -i ../$(2)/bin/python -o ../$(2)/wheel
	$(2)/bin/python -m pip install -q --force-reinstall --no-deps $(2)/wheel/weir-*.whl
	$(2)/bin/python -m pip install -q "$$(ls $(2)/wheel/weir-*.whl)[$(3)$(if $(4),$(comma)$(4))$(if $(5),$(comma)$(5))]"
endef

# A claim that does not hold is a result, and ends verify with 1; anything above is a failure.
reproduce: build
	target/release/weir lab report $(PAPERS) --scenarios scenarios --out $(REPRODUCTION)/report.html
	target/release/weir lab plot $(PAPERS) --scenarios scenarios --out $(REPRODUCTION)/figures >/dev/null
	target/release/weir lab verify $(PAPERS) --scenarios scenarios --markdown >$(REPRODUCTION)/verdicts.md || test $$? = 1
	target/release/weir lab verify $(PAPERS) --scenarios scenarios --json >$(REPRODUCTION)/verdicts.json || test $$? = 1
	@sed -i -e '/^<!-- verdicts -->$$/,/^<!-- end -->$$/{/^<!--/!d}' -e '/^<!-- verdicts -->$$/r $(REPRODUCTION)/verdicts.md' docs/reproduction.md
	@echo "report: $(REPRODUCTION)/report.html; verdicts: docs/reproduction.md"

yardstick: build
	target/release/weir lab verify yardstick --scenarios scenarios $(if $(SCHEME),--set scheme=$(SCHEME)) || test $$? = 1

churn: need-cargo
	cargo test --release --locked -p weir-sim --test mtcp thousand -- --ignored --nocapture

bench: build need-bench-tools
	cargo build --release --locked -p weir-testkit
	target/release/weir-bench

# As root by sudo, cargo is often not in PATH: then what was built before is installed.
install: $(if $(shell command -v cargo),build)
	@[ -x $(BINARY) ] || { echo "there is no $(BINARY) yet: run make build, then sudo make install"; exit 1; }
	$(MAKE) --no-print-directory install-files
	@echo "installed $(DESTDIR)$(PREFIX)/bin/weir; make uninstall takes it away"

# What goes where, for install and for packages. What a service starts is where this puts it.
SHARE := $(DESTDIR)$(PREFIX)/share
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system
ZSH ?= $(SHARE)/zsh/site-functions
install-files:
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/weir
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(ZSH) $(SHARE)/fish/vendor_completions.d
	$(BINARY) man $(SHARE)/man/man1
	$(BINARY) completions bash >$(SHARE)/bash-completion/completions/weir
	$(BINARY) completions zsh >$(ZSH)/_weir
	$(BINARY) completions fish >$(SHARE)/fish/vendor_completions.d/weir.fish
	install -D -m 644 LICENSE $(SHARE)/doc/weir/copyright
	install -D -m 644 packaging/recv.conf.example $(SHARE)/doc/weir/examples/recv.conf
	@for unit in $(wildcard packaging/*.service); do \
		install -d $(UNITS) && sed 's#/usr/bin/weir#$(PREFIX)/bin/weir#' $$unit >$(UNITS)/$${unit##*/} || exit 1; done

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/weir $(SHARE)/man/man1/weir.1 $(SHARE)/man/man1/weir-*.1
	rm -f $(SHARE)/bash-completion/completions/weir $(ZSH)/_weir $(SHARE)/fish/vendor_completions.d/weir.fish
	rm -f $(addprefix $(UNITS)/,$(notdir $(wildcard packaging/*.service))) $(SHARE)/doc/weir/copyright $(SHARE)/doc/weir/examples/recv.conf
	rmdir $(SHARE)/doc/weir/examples $(SHARE)/doc/weir 2>/dev/null || true

deb: build need-package-tools
	packaging/deb $(BINARY)

# The linker is rustc's; ring and BLAKE3 have parts in C and assembly, which want a compiler for musl.
static: need-cargo
	$(call need,musl-gcc,musl-tools)
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/$(STATIC)" ] || { echo "this rustc has no $(STATIC): rustup target add $(STATIC), or your distribution's package of Rust's standard library for musl"; exit 1; }
	cargo build --release --locked -p weir --target $(STATIC)
	@echo "target/$(STATIC)/release/weir"

package-test: deb static
	$(call need,mmdebstrap,mmdebstrap)
	$(call need,systemd-nspawn,systemd-container)
	$(call need,ip,iproute2)
	packaging/test target/deb/weir_*_$$(dpkg --print-architecture).deb target/$(STATIC)/release/weir

need-cargo:
	@for tool in cargo rustc; do command -v $$tool >/dev/null || { echo "Weir is built with Rust $(RUST) or later, and $$tool is not in PATH: install it with rustup (https://rustup.rs)"; exit 1; }; done
	@for tool in cargo rustc; do found=$$($$tool --version | sed 's/^[a-z]* \([0-9.]*\).*/\1/'); \
		[ "$$(printf '%s\n' $(RUST) $$found | sort -V | head -n 1)" = $(RUST) ] || { echo "Weir is built with Rust $(RUST) or later, and this $$tool is $$found: rustup (https://rustup.rs) has today's next to your distribution's; make static on another machine makes a program that needs no Rust here"; exit 1; }; done

need-python:
	$(call need,python3,python3)
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "the package needs Python 3.10 or later, and this python3 is $$(python3 --version)"; exit 1; }
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null; } || { echo "this needs Python's venv: apt-get install python3-venv"; exit 1; }

# $(call need,COMMAND,PACKAGE): installs PACKAGE where we may, or says how to.
define need
	@command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && (apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) >/dev/null); } || true
	@command -v $(1) >/dev/null || { echo "this needs $(1): apt-get install $(2)"; exit 1; }
endef

# $(call need_header,HEADER,PACKAGE): the same for a C library.
define need_header
	@$(call has_header,$(1)) || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && (apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) >/dev/null); } || true
	@$(call has_header,$(1)) || { echo "this needs $(1): apt-get install $(2)"; exit 1; }
endef
has_header = printf '%s\n' '\#include <$(1)>' | cc -E - >/dev/null 2>&1

need-ffmpeg:
	$(call need,ffmpeg,ffmpeg)

need-test-tools: need-ffmpeg
	$(call need,ip,iproute2)
	$(call need,tshark,tshark)
	$(call need_header,aom/aom_encoder.h,libaom-dev)

need-bench-tools: need-test-tools
	$(call need,uftp,uftp)
	$(call need,ns,ns2)
	$(call need,taskset,util-linux)
	$(call need,ethtool,ethtool)
	$(call need,srt-live-transmit,srt-tools)

need-package-tools:
	$(call need,dpkg-shlibdeps,dpkg-dev)
