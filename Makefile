# make demo    one file to four receivers behind unequal links, on this machine, unprivileged; FILE=path for your own
# make test    everything that must hold: formatting, lints, docs, unit, property, conformance and namespace tests
# make bench   speed, beside uftp and ns-2 in the same run (needs root for network namespaces)

.PHONY: demo test bench build need-cargo need-test-tools need-bench-tools

FILE ?=

demo: build
	target/release/weir demo $(FILE)

build: need-cargo
	cargo build --release --locked -p weir

test: need-cargo need-test-tools
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items
	@for crate in units wire core link; do grep -q '^#!\[no_std\]' crates/$$crate/src/lib.rs || { echo "weir-$$crate must be no_std"; exit 1; }; done
	cargo build --locked -p weir-units -p weir-wire -p weir-core -p weir-link
	cargo build --release --locked -p weir
	cargo test --locked --workspace

bench: build need-bench-tools
	cargo build --release --locked -p weir-testkit
	target/release/weir-bench

need-cargo:
	@command -v cargo >/dev/null || { echo "Weir is built with Rust 1.88 or later and cargo is not in PATH: install it with rustup (https://rustup.rs) or your distribution's package"; exit 1; }

# $(call need,COMMAND,PACKAGE): installs PACKAGE where we may, or says how to.
define need
	@command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && (apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) >/dev/null); } || true
	@command -v $(1) >/dev/null || { echo "this needs $(1): apt-get install $(2)"; exit 1; }
endef

need-test-tools:
	$(call need,ip,iproute2)
	$(call need,tshark,tshark)

need-bench-tools: need-test-tools
	$(call need,uftp,uftp)
	$(call need,ns,ns2)
	$(call need,taskset,util-linux)
