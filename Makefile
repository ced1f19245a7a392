# What people do with this tree. `make try` and `make test` need a Rust toolchain and
# Debian 12 (or newer); they install the rest from Debian's packages when it is missing.

CARGO  ?= cargo
PREFIX ?= /usr/local
SHARE  := $(DESTDIR)$(PREFIX)/share
TARGET := $(or $(CARGO_TARGET_DIR),target)

# BENCH takes more options: make bench PROJECTS="../tmux ../redis" BENCH="--peers all -j 2"
PROJECTS ?= examples/notes
BENCH    ?=

FUZZ_SECONDS ?= 30
# The first random program: another number, other programs.
FUZZ_SEED    ?= 1

.PHONY: help setup build try test lint bench fuzz install uninstall clean

help:
	@echo "make try       build caulk and watch it work on the program in examples/notes"
	@echo "make test      every test"
	@echo "make lint      rustfmt, clippy, and the rules of the house (cargo xtask tidy)"
	@echo "make bench     seconds, memory and findings against clang on PROJECTS=\"dir dir\", into $(TARGET)/bench.md"
	@echo "make fuzz      damaged input for every reader, and random programs repaired, guarded and run: FUZZ_SECONDS=$(FUZZ_SECONDS) each"
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

test:
	@scripts/setup build test browser
	$(CARGO) test --workspace --no-fail-fast

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) xtask tidy

bench: build
	$(CARGO) build --release --package caulk-bench
	$(TARGET)/release/caulk-bench projects -o $(TARGET)/bench.md $(BENCH) $(PROJECTS)

# With debug assertions: an overflow is a result, too.
fuzz: setup
	$(CARGO) build --package caulk-fuzz --package caulk-differential --package caulk
	$(TARGET)/debug/caulk-fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) --out $(TARGET)/fuzz
	$(TARGET)/debug/caulk-differential --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) --out $(TARGET)/fuzz \
	    --caulk $(TARGET)/debug/caulk --jobs $$(nproc)
	$(TARGET)/debug/caulk-differential --guard --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) --out $(TARGET)/fuzz \
	    --caulk $(TARGET)/debug/caulk --jobs $$(nproc)

install: build
	install -D -m 755 $(TARGET)/release/caulk $(DESTDIR)$(PREFIX)/bin/caulk
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(TARGET)/release/caulk man > $(SHARE)/man/man1/caulk.1
	$(TARGET)/release/caulk completions bash > $(SHARE)/bash-completion/completions/caulk
	$(TARGET)/release/caulk completions zsh > $(SHARE)/zsh/site-functions/_caulk
	$(TARGET)/release/caulk completions fish > $(SHARE)/fish/vendor_completions.d/caulk.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/caulk $(SHARE)/man/man1/caulk.1 $(SHARE)/bash-completion/completions/caulk \
	    $(SHARE)/zsh/site-functions/_caulk $(SHARE)/fish/vendor_completions.d/caulk.fish

clean:
	$(CARGO) clean
