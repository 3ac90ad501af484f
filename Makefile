# The habits of this repository. Each target is a command that you may as well
# type; CONTRIBUTING.md says when to use which.

.DEFAULT_GOAL := help
.PHONY: help test race stress fuzz bench lint demo pictures recording mutants model chaos ci nightly

PKG ?=
COUNT ?= 20
FUZZTIME ?= 1m
DURATION ?= 30m
SEED ?= 0
SITE ?= standalone,sentinel,cluster

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## what needs no server, quickly
	go test $(or $(PKG),./...)

race: ## every test, race detector on, against servers of its own (PKG=./store/... for some)
	go run ./internal/test/testenv $(PKG)

stress: ## the same COUNT times over (COUNT=20), to find what fails now and then
	go run ./internal/test/testenv -count=$(COUNT) -timeout=60m $(PKG)

fuzz: ## each fuzz target in turn (FUZZTIME=1m)
	FUZZTIME=$(FUZZTIME) bash .ci/run nightly fuzz

bench: ## every benchmark, against real servers (PKG=./asynclock for some)
	go run ./internal/test/testenv -- go test -p=1 -run '^$$' -bench . -benchmem $(or $(PKG),./...)

lint: ## format, tidy modules, golangci-lint with go vet
	bash .ci/run format tidy lint

demo: ## the demonstration of the README
	go run ./cmd/asynclock demo

pictures: ## draw the pictures of the pages again, from data (needs npx of Node.js)
	go run ./internal/pictures
	cd bench && go run . -redraw -out ../docs/benchmarks

recording: ## record the demo again, and draw it
	go run ./internal/pictures -record

mutants: ## break each rule of the protocol in turn, and see its test fail (LIST=1 prints the rules)
	go run ./internal/test/mutants $(if $(LIST),-list)

model: ## search the protocol's model in every order of its steps
	docs/model/run.sh

chaos: ## break everything at random, DURATION (30m) at each SITE, judge it, write docs/chaos.md
	go run ./internal/test/chaos -duration $(DURATION) -seed $(SEED) -site $(SITE) -report docs/chaos.md

ci: ## all that has to hold before a change goes in
	bash .ci/run

nightly: ## everything else: other servers, every mutant, the model, long fuzzing and chaos
	bash .ci/run nightly
