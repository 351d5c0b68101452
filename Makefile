# SPDX-License-Identifier: Apache-2.0

# The cluster that up, demo, status, down and reset speak of.
CLUSTER ?= evenkeel
# Machines that `make scale` brings up and down.
N ?= 500
# How long `make scale-reserve` looks for writes at rest.
REST ?= 2m
# How often `make footprint` measures.
TURNS ?= 3

export CLUSTER
# Build tags of our binaries; see internal/localcluster/programs.go.
TAGS := grpcnotrace
UP := go run ./hack/up

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  CLUSTER=name chooses a local cluster (now: $(CLUSTER)); several run side by side."

##@ Try it

.PHONY: demo
demo: ## A story of three minutes on a local cluster that is built and started if need be: reserve, rollout, burst, outage
	@./hack/preflight.sh
	@$(UP) up -brief
	@go run ./hack/demo

.PHONY: up
up: ## Build and start the local cluster with our two binaries; again: join it
	@./hack/preflight.sh
	@$(UP) up

.PHONY: status
status: ## Say what of the local cluster runs
	@$(UP) status

.PHONY: down
down: ## Stop the local cluster, keep its data
	@$(UP) down

.PHONY: reset
reset: ## Stop the local cluster and forget its data
	@$(UP) reset

##@ Build and check

.PHONY: build
build: ## Build our binaries into .local/bin
	@mkdir -p .local/bin
	go build -tags=$(TAGS) -o .local/bin/ ./cmd/...

.PHONY: image
image: ## Build the image NAME of release VERSION; BUILDER and BASE are images of Go and of the base, by digest
	@./hack/pinned.sh "$(BUILDER)" "$(BASE)"
	docker buildx build --platform=linux/amd64,linux/arm64 --build-arg=VERSION=$(VERSION) --build-arg=BUILDER=$(BUILDER) --build-arg=BASE=$(BASE) \
		--sbom=true --provenance=mode=max -t $(NAME) --push .

.PHONY: gardener-image
gardener-image: ## Build the image NAME of the Gardener extension, of release VERSION; BUILDER and BASE as for image
	@./hack/pinned.sh "$(BUILDER)" "$(BASE)"
	docker buildx build -f gardener/Dockerfile --platform=linux/amd64,linux/arm64 --build-arg=VERSION=$(VERSION) --build-arg=BUILDER=$(BUILDER) --build-arg=BASE=$(BASE) \
		--sbom=true --provenance=mode=max -t $(NAME) --push .

.PHONY: release
release: ## Everything that release VERSION publishes, into .local/release/VERSION; BASE by digest, URL of the downloads, PUSH=repository uploads images
	cd hack/release && go run . -root ../.. -version=$(VERSION) -base=$(BASE) -url=$(URL) -push=$(PUSH)

.PHONY: test-tools
test-tools: ## The tests of what has a Go module of its own: the release, the mutator
	cd hack/release && go test -count=1 -timeout=30m .
	cd hack/mutants && go test -count=1 -timeout=30m .

.PHONY: sbom
sbom: build ## What each of our binaries is made of, as CycloneDX in .local/sbom; VERSION=v0.1.0 names a release
	go run ./hack/sbom -version=$(VERSION) $(patsubst cmd/%,.local/bin/%,$(wildcard cmd/*))

.PHONY: test
test: ## Everything short: units, laws, storms, integration, short end-to-end specs; the three parts below side by side
	@$(UP) build
	@$(MAKE) --no-print-directory build
	@go run ./hack/parts test-units test-clusters test-e2e

# Packages whose tests live by the real clock, most of them with processes of their own.
ON_CLOCK = ./internal/localcluster ./cmd/machine-controller/app ./test/install ./test/integration/... ./cmd/machine-controller-manager/app \
	./cmd/kubectl-evenkeel/app ./cmd/kubectl-evenkeel/internal/page ./internal/daemon ./pkg/provider/nodegroup ./hack/parts
UNITS = $(filter-out $(shell go list $(ON_CLOCK)),$(shell go list ./cmd/... ./hack/... ./internal/... ./pkg/...))

# Properties draw the same problems in each run, so that the result depends on the change alone. `make laws` draws new ones.
test-units test-clusters: export RAPID_SEED ?= 1

# They compute, and are given what the other parts, which wait, leave of the processors. Storms make much garbage.
.PHONY: test-units
test-units: ## Units, laws and storms
	@GOGC=400 nice -n 10 go test -timeout=20m $(UNITS)
	cd hack/localcluster/kwok && nice -n 10 go test -trimpath .

.PHONY: test-clusters
test-clusters: ## What starts API servers of its own, short end-to-end specs of federation among it
	go test -p 2 $(ON_CLOCK)
	go test -count=1 -timeout=10m ./test/e2e/federation -ginkgo.label-filter=short -ginkgo.no-color

.PHONY: test-e2e
test-e2e: ## Short end-to-end specs
	go tool ginkgo --procs=4 --label-filter='!long' --timeout=15m --no-color ./test/e2e

.PHONY: test-gardener
test-gardener: ## Units of the Gardener extension, which has a Go module of its own: the first build takes minutes
	cd gardener && go vet ./... && nice -n 10 go test -timeout=20m ./apis/... ./charts/... ./cmd/... ./pkg/...

.PHONY: test-race
test-race: ## Units of what is ours under the race detector (MCM's own controllers race with themselves)
	go test -race ./cmd/... ./hack/... ./internal/... ./pkg/...

# How many storms of each kind `make storms` plays, besides half as many with seeds that are drawn.
STORMS ?= 300

.PHONY: storms
storms: ## STORMS=300 storms of each controller, and half as many with seeds drawn anew
	STORMS=$(STORMS) GOGC=400 go test -count=1 -timeout=12h $(STORMY) -ginkgo.focus='[Ss]torm|Two instances' -ginkgo.v -ginkgo.no-color

STORMY = ./internal/sim/storm ./pkg/lens ./pkg/controller/balance ./pkg/controller/balancer ./pkg/controller/capacitybuffer \
	./pkg/controller/federatedhpa ./pkg/controller/machinetaint ./pkg/controller/release ./pkg/controller/reserves ./pkg/provider/nodegroup

# How many problems `make laws` draws for each property.
CHECKS ?= 5000

.PHONY: laws
laws: ## CHECKS=5000 new problems for each property of all packages
	GOGC=400 go test -count=1 -timeout=4h $(sort $(dir $(addprefix ./,$(shell git grep -l pgregory.net/rapid '*_test.go')))) -rapid.checks=$(CHECKS) \
		-ginkgo.skip='[Ss]torm|Two instances' -ginkgo.no-color

# How many objects come and go in each soak.
SOAK ?= 10000

.PHONY: soak
soak: ## SOAK=10000 objects come and go in each controller, one after the other, in virtual time; what is held returns to where it was
	SOAK=$(SOAK) go test -v -count=1 -p 1 -timeout=3h $(STORMY) -ginkgo.label-filter=soak -ginkgo.v -ginkgo.no-color

# How many faults may happen on one way, and how many states of each model are searched at most.
FAULTS ?= 2
STATES ?= 12000000

.PHONY: explore
explore: ## Every interleaving of the reserve's plans with up to FAULTS=2 faults: the laws on each step, and rest at the end
	go test -v -count=1 -timeout=1h ./internal/explore -ginkgo.v -ginkgo.no-color -ginkgo.focus='keeps the laws' -explore.faults=$(FAULTS) -explore.states=$(STATES)

# What a night runs: e2e-hostile joins it where there is such a target.
NIGHT = storms laws soak explore mutants test-race test-tools test-gardener test-conformance e2e-long e2e-rbac e2e-parity e2e-docs e2e-gardener $(if $(shell grep '^e2e-hostile:' $(firstword $(MAKEFILE_LIST))),e2e-hostile)

.PHONY: nightly
nightly: ## Long storms, the race detector, and all long end-to-end specs, one after the other, with a line of result for each
	@go run ./hack/nightly $(NIGHT)

.PHONY: test-conformance
test-conformance: ## A real API server, with history forgotten and backups restored, does what the simulated one does
	@$(UP) build
	go test -count=1 -timeout=20m ./test/conformance -ginkgo.v -ginkgo.no-color

.PHONY: e2e-long
e2e-long: ## Long end-to-end specs: soaks, outages of minutes, repeated kills
	@$(UP) build
	go tool ginkgo --procs=2 --label-filter=long --timeout=90m --no-color ./test/e2e

.PHONY: e2e-docs
e2e-docs: ## What the documents tell to type, typed: each document on a cluster of its own
	@$(UP) build
	go test -count=1 -timeout=60m ./test/docs -ginkgo.v -ginkgo.no-color

.PHONY: e2e-parity
e2e-parity: ## Without excess: what ours and the stock binary write in the same story, by the audit log
	@$(UP) build
	go test -count=1 -timeout=30m ./test/e2e/parity -ginkgo.v -ginkgo.no-color

.PHONY: e2e-stock
e2e-stock: ## The short end-to-end specs of what stock has too, against stock machine-controller-manager: same end states
	@$(UP) build
	EVENKEEL_E2E_MCM=stock go tool ginkgo --procs=4 --label-filter='!long && !ours' --timeout=15m --no-color ./test/e2e

.PHONY: e2e-autoscaler
e2e-autoscaler: ## Node groups on a local cluster; with CLUSTER_AUTOSCALER=path also what an unmodified cluster-autoscaler makes of them
	@$(UP) build
	go tool ginkgo --procs=3 --timeout=60m --no-color ./test/e2e/autoscaler

.PHONY: e2e-gardener
e2e-gardener: ## Gardener's own code against ours and stock: two control planes, gardenlet's Deployment and Role. FOCUS=regexp picks stories, PEER=none leaves stock out, NIGHTS=20 hibernates that often, with CLUSTER_AUTOSCALER=path an unmodified cluster-autoscaler scales a Shoot, too
	@$(UP) build
	cd gardener && go test -count=1 -timeout=5h ./e2e -ginkgo.no-color -ginkgo.timeout=5h $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

.PHONY: e2e-hostile
e2e-hostile: ## A user of one namespace creates the largest legal objects for five minutes (DURATION): memory, releases for others, nothing created
	@$(UP) build
	go test -v -count=1 -timeout=30m ./test/e2e/hostile -ginkgo.v -ginkgo.no-color -hostile.duration=$(or $(DURATION),5m)

.PHONY: e2e-rbac
e2e-rbac: AUDIT = $(CURDIR)/.local/audit
e2e-rbac: ## The short end-to-end specs with the audit log on: nothing is refused to the chart's accounts, and no right of theirs is idle
	@$(UP) build
	@rm -rf $(AUDIT) && mkdir -p $(AUDIT)
	EVENKEEL_E2E_AUDIT=$(AUDIT) go tool ginkgo --procs=4 --label-filter='!long || gardener' --timeout=15m --no-color ./test/e2e
	go run ./hack/rights -audit $(AUDIT) -excuses test/e2e/unused-rights.yaml \
		kubernetes/deploy/manager/access.yaml kubernetes/deploy/gardener/access.yaml kubernetes/deploy/target/access.yaml kubernetes/deploy/balancer/access.yaml

.PHONY: e2e-ui
e2e-ui: ## The plugin's page in a real browser, light and dark, desktop and phone; needs Chromium. PICTURES=folder keeps pictures
	@$(if $(PICTURES),mkdir -p $(PICTURES))
	go test -count=1 -timeout=10m ./test/ui -ginkgo.no-color -pictures=$(abspath $(PICTURES))

.PHONY: bench-size
bench-size: ## What reserve is suggested for synthetic weeks, and how long the search takes
	go run ./test/bench/size

.PHONY: bench-ui
bench-ui: ## 1000 machines, 10,000 pods: from a change to the page in a real browser, and the plugin's memory; needs Chromium
	@$(UP) build
	go run ./test/bench/ui

.PHONY: e2e-rbac-federation
e2e-rbac-federation: AUDIT = $(CURDIR)/.local/audit-federation
e2e-rbac-federation: ## The same for the accounts of federation
	@$(UP) build
	@rm -rf $(AUDIT) && mkdir -p $(AUDIT)
	EVENKEEL_E2E_AUDIT=$(AUDIT) go test -count=1 -timeout=20m ./test/e2e/federation -ginkgo.label-filter='!long' -ginkgo.no-color
	go run ./hack/rights -audit $(AUDIT) -excuses test/e2e/federation/unused-rights.yaml \
		kubernetes/deploy/federation-hub/access.yaml kubernetes/deploy/federation-member/access.yaml kubernetes/deploy/federation-placement/access.yaml

.PHONY: bench-overcreation
bench-overcreation: ## Machines created too many while the watch lags: stock controllers beside ours
	go test -count=1 ./pkg/lens -run=TestLens -ginkgo.focus=Over-creation -ginkgo.v -ginkgo.no-color

.PHONY: bench-distribute
bench-distribute: ## The distribution kernel beside placing one replica after the other
	go test -run='^$$' -bench=. ./pkg/distribute

.PHONY: bench-balancer
bench-balancer: ## 100 Balancers, 30,000 pods, 500 changes: time to the last scale beside a bare client, memory, writes at rest
	@$(UP) build
	go run ./test/bench/balancer

.PHONY: laws-distribute
laws-distribute: ## Each law of the distribution kernel over 100,000 random problems
	go test -count=1 -timeout=60m ./pkg/distribute -rapid.checks=100000

.PHONY: laws-federation
laws-federation: ## The laws of federated autoscalers in 100,000 random histories
	go test -count=1 -timeout=60m ./pkg/controller/federatedhpa -run=TestFederatedHPA -histories=100000 -ginkgo.focus='Random histories' -ginkgo.v -ginkgo.no-color

.PHONY: bench-release
bench-release: ## How long pods wait: the floor, instant release, pause pods, no reserve; with CLUSTER_AUTOSCALER=path the autoscaler, too
	@$(UP) build
	go run ./test/bench/release

.PHONY: bench-nodegroup
bench-nodegroup: ## What cluster-autoscaler waits for: each call at 1000 nodes in 30 groups, a whole loop, and the floor of those that write
	@$(UP) build
	go run ./test/bench/nodegroup

.PHONY: bench-reserve
bench-reserve: ## 50 releases: from the answer to who raised replicas to a Node without the taint, beside the floor
	@$(UP) build
	go run ./test/bench/reserve

.PHONY: scale-reserve
scale-reserve: N = 1000
scale-reserve: ## A reserve of 100 for N=1000 machines: time to the marks, memory, CPU, writes in REST=2m, beside stock and a bare client
	@$(UP) build
	go run ./test/bench/reserve -n $(N) -rest $(REST)

.PHONY: footprint
footprint: N = 10
footprint: ## Memory, CPU, goroutines and requests at N=10 machines, at rest and in motion, medians of TURNS=3: stock, ours, ours with a reserve
	@$(UP) build
	go run ./test/bench/footprint -n $(N) -turns $(TURNS)

.PHONY: bench-plugin
bench-plugin: ## kubectl evenkeel at 1000 machines and 10,000 pods: time and memory of status and explain, beside kubectl get
	@$(UP) build
	go run ./test/bench/plugin

.PHONY: bench-similar
bench-similar: ## Grouping by hashing beside comparing every pair
	go test -run='^$$' -bench=. ./pkg/similar

.PHONY: bench-federation
bench-federation: ## 100 federated autoscalers over 10 clusters in virtual time: time, calls and memory, and beside a cluster that hangs
	go test -v -count=1 ./pkg/controller/federatedhpa -run=TestFederatedHPA -objects=100 -members=10 -ginkgo.focus='A fleet' -ginkgo.v -ginkgo.no-color

.PHONY: e2e-federation
e2e-federation: ## Short end-to-end specs of federation: a hub and three members, each a control plane of its own
	@$(UP) build
	go test -count=1 -timeout=20m ./test/e2e/federation -ginkgo.label-filter='!long' -ginkgo.no-color

.PHONY: e2e-federation-long
e2e-federation-long: ## Long end-to-end specs of federation: outages of minutes
	@$(UP) build
	go test -count=1 -timeout=60m ./test/e2e/federation -ginkgo.label-filter=long -ginkgo.no-color

.PHONY: mutants
mutants: ## What tests catch: change one small place of the code at a time. PACKAGES="pkg/fit pkg/reserve" SINCE=commit BUDGET=1h
	cd hack/mutants && go run . -root ../.. $(if $(SINCE),-since $(SINCE)) $(if $(BUDGET),-budget $(BUDGET)) $(PACKAGES)

.PHONY: scale
scale: ## N=500 machines up and down: time, API writes and memory, ours beside the stock binary
	@$(UP) build
	go run ./test/scale -n $(N)

.PHONY: generate
generate: ## Make what is generated: deep copies, clients, CRDs, the page about metrics
	go run ./hack/generate

.PHONY: manifests
manifests: ## Render kubernetes/deploy from the Helm chart
	go run ./hack/manifests

.PHONY: verify
verify: ## Check generated code, formatting, vet, lints and the rules of the house
	@go run ./hack/verify
