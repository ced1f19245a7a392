# What people do with this tree. `make try` and `make test` need a Rust toolchain and
# Debian 12 (or newer); they install the rest from Debian's packages when it is missing.

CARGO  ?= cargo
PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help setup build try test lint install uninstall clean

help:
	@echo "make try       build caulk and watch it work on the program in examples/notes"
	@echo "make test      every test"
	@echo "make lint      rustfmt, clippy, and the rules of the house (cargo xtask tidy)"
	@echo "make install   caulk into PREFIX=$(PREFIX) (DESTDIR is honoured)"

setup:
	@scripts/setup build test

build: setup
	$(CARGO) build --release --package caulk

# The development profile: less to compile than a release build, and `make test` shares it.
try:
	@scripts/setup build test
	$(CARGO) build --package caulk
	@CAULK=$(TARGET)/debug/caulk scripts/try

test: setup
	$(CARGO) test --workspace

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) xtask tidy

install: build
	install -D -m 755 $(TARGET)/release/caulk $(DESTDIR)$(PREFIX)/bin/caulk

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/caulk

clean:
	$(CARGO) clean
