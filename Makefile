# SPDX-License-Identifier: Apache-2.0

# The local cluster that up, demo, status, down and reset use.
CLUSTER ?= evenkeel
export CLUSTER
# The version of Kubernetes of local clusters, such as 1.34; see hack/localcluster/versions.
export KUBERNETES
# Build tags of Evenkeel's binaries; see test/localcluster/programs.go.
TAGS := grpcnotrace
UP := go run ./hack/up
BENCH := go run ./test/bench

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-19s  %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "New here? Run make demo. Before a pull request: make verify test."
	@echo "NAME=value in a description sets a variable: make storms STORMS=50."

##@ Local cluster (CLUSTER=name selects one of several)

.PHONY: demo
demo: ## Play a three-minute story: reserve, rollout, burst of pods, outage. Starts a cluster if necessary
	@./hack/preflight.sh
	@[ -x .local/bin/evenkeel-localcluster ] || cat hack/demo/recording.txt
	@$(UP) up -brief
	@go run ./hack/demo

.PHONY: up
up: ## Build and start a cluster with Evenkeel, or connect to the running one. NODES=real: with real kubelets. KUBERNETES=1.34: that version
	@./hack/preflight.sh
	@$(UP) up $(if $(NODES),-nodes=$(NODES))

.PHONY: status
status: ## Show which processes of the cluster run
	@$(UP) status

.PHONY: down
down: ## Stop the cluster and keep its data
	@$(UP) down

.PHONY: reset
reset: ## Stop the cluster and delete its data
	@$(UP) reset

##@ Build

.PHONY: build
build: ## Build the binaries into .local/bin
	@mkdir -p .local/bin
	go build -tags=$(TAGS) -o .local/bin/ ./cmd/...

.PHONY: generate
generate: ## Generate deep copies, clients, CRDs, and the tables and pictures in docs
	go run ./hack/generate

.PHONY: manifests
manifests: ## Render kubernetes/deploy from the Helm chart
	go run ./hack/manifests

.PHONY: site
site: ## Build the documents as a site with search into .local/site, and check its links. REPOSITORY=url: for links to files
	cd hack/site && go run . -root ../.. -out .local/site $(if $(REPOSITORY),-repository=$(REPOSITORY))

##@ Test

.PHONY: verify
verify: ## Check generated code, formatting, vet, staticcheck, and the rules of this repository
	@go run ./hack/verify

.PHONY: test
test: ## Run all short tests: the next three targets, in parallel
	@$(UP) build
	@$(MAKE) --no-print-directory build
	@go run ./test/parts test-units test-clusters test-e2e

# Packages whose tests depend on the real clock. Most of them start processes.
ON_CLOCK = ./test/localcluster ./cmd/machine-controller/app ./cmd/machine-controller-manager ./cmd/evenkeel-workloads ./test/install ./test/integration/... ./cmd/machine-controller-manager/app ./cmd/evenkeel-workloads/app \
	./cmd/kubectl-evenkeel/app ./internal/plugin/page ./internal/daemon ./pkg/provider/nodegroup ./test/parts
# Packages that targets of their own run.
APART = ./test/bench/... ./test/conformance ./test/docs ./test/e2e/... ./test/ui/...
UNITS = $(filter-out $(shell go list $(ON_CLOCK) $(APART)),$(shell go list ./...))

# With a fixed seed, properties draw the same problems in each run, so that the result depends on the
# change alone. make laws draws new ones.
test-units test-clusters: export RAPID_SEED ?= 1

# make verify runs go vet, and no one debugs these binaries.
QUICK = --vet=off --ldflags=-w

# Unit tests need only CPU time, so they leave the processors to the other parts, which have
# deadlines. GOGC: storms allocate much.
.PHONY: test-units
test-units: ## Run unit tests, laws and storms, in virtual time
	@GOGC=400 nice -n 10 go test $(QUICK) -timeout=20m $(UNITS)
	cd hack/localcluster/kwok && nice -n 10 go test .

.PHONY: test-clusters
test-clusters: ## Run tests that start API servers or depend on the real clock
	go test $(QUICK) -p 2 -timeout=20m $(ON_CLOCK)
	go test $(QUICK) -count=1 -timeout=10m ./test/e2e/federation -ginkgo.label-filter=short -ginkgo.no-color

.PHONY: test-e2e
test-e2e: ## Run the short end-to-end specs on a local cluster
	go tool ginkgo $(QUICK) --procs=4 --label-filter='!long$(LACKS)' --timeout=15m --no-color ./test/e2e

.PHONY: test-race
test-race: ## Run unit tests with the race detector
	go test -race $(filter-out $(shell go list $(APART) ./test/install ./test/integration/...),$(shell go list ./...))

.PHONY: test-conformance
test-conformance: ## Check that the simulated API server behaves as a real one does
	@$(UP) build
	go test -count=1 -timeout=20m ./test/conformance -ginkgo.v -ginkgo.no-color

.PHONY: test-gardener
test-gardener: ## Run the Gardener extension's unit tests (a separate module; the first build takes minutes)
	cd gardener && go vet ./... && nice -n 10 go test $(QUICK) -timeout=20m ./apis/... ./charts/... ./cmd/... ./pkg/...

.PHONY: test-tools
test-tools: ## Run the tests of the release, mutation and site tools (separate modules)
	cd hack/release && go test -count=1 -timeout=30m .
	cd test/mutants && go test -count=1 -timeout=30m .
	cd hack/site && go test -count=1 .

##@ Search for faults (each takes hours)

# What nightly runs.
NIGHT = storms laws soak explore mutants test-race test-tools test-gardener test-conformance e2e-long e2e-rbac e2e-rbac-federation e2e-federation-long e2e-parity e2e-kueue e2e-docs e2e-nodegroup e2e-versions e2e-upgrade e2e-autoscaler e2e-gardener e2e-hostile
# Real machines need root.
REAL := $(if $(filter 0,$(shell id -u)),e2e-real)

.PHONY: nightly
nightly: ## Run these and all long tests one after the other, with one result line for each
	@$(if $(REAL),,echo "e2e-real is left out: it needs root")
	@go run ./test/nightly $(NIGHT) $(REAL)

STORMS ?= 300
STORMY = ./test/sim/storm ./test/reserve ./pkg/controller/balance ./pkg/controller/balancer ./pkg/controller/booking ./pkg/controller/capacitybuffer \
	./pkg/controller/federatedhpa ./pkg/controller/machinedeployment ./pkg/controller/release ./pkg/controller/reserves ./pkg/provider/nodegroup

.PHONY: storms
storms: ## Run STORMS=300 random histories of each controller, and half as many with new seeds
	STORMS=$(STORMS) GOGC=400 go test -count=1 -timeout=12h $(STORMY) -ginkgo.focus='[Ss]torm|Two instances' -ginkgo.v -ginkgo.no-color -ginkgo.timeout=12h

ORACLE ?= 100

# With MCM=v0.63.0, in a copy with that version of machine-controller-manager, which shows what its types change, too.
BUMP = rm -rf .local/oracle && git clone -q . .local/oracle && cd .local/oracle && go get github.com/gardener/machine-controller-manager@$(MCM) && \
	go mod tidy && go run ./hack/generate && git --no-pager diff --stat && go build ./...

.PHONY: oracle
oracle: ## Compare with machine-controller-manager in all stories by hand, and ORACLE=100 random ones of each kind. MCM=v0.63.0: with that version
	$(if $(MCM),$(BUMP))
	cd $(if $(MCM),.local/oracle,.) && ORACLE=$(ORACLE) go test -count=1 -timeout=12h ./test/oracle -ginkgo.no-color -ginkgo.timeout=12h

CHECKS ?= 5000

.PHONY: laws
laws: ## Check each property with CHECKS=5000 new random problems
	GOGC=400 go test -count=1 -timeout=4h $(sort $(dir $(addprefix ./,$(shell git grep -l pgregory.net/rapid '*_test.go')))) -rapid.checks=$(CHECKS) \
		-ginkgo.skip='[Ss]torm|Two instances' -ginkgo.no-color

.PHONY: laws-distribute
laws-distribute: ## Check the laws of package distribute with 100,000 random problems
	go test -count=1 -timeout=60m ./pkg/distribute -rapid.checks=100000

.PHONY: laws-federation
laws-federation: ## Check the laws of federated autoscalers in 100,000 random histories
	go test -count=1 -timeout=60m ./pkg/controller/federatedhpa/plan -run=TestPlan -histories=100000 -ginkgo.focus='Random histories' -ginkgo.v -ginkgo.no-color

SOAK ?= 10000

.PHONY: soak
soak: ## Create and delete SOAK=10000 objects in each controller, and check for leaks
	SOAK=$(SOAK) go test -v -count=1 -p 1 -timeout=3h $(STORMY) -ginkgo.label-filter=soak -ginkgo.v -ginkgo.no-color

# FAULTS bounds the faults on one path, STATES the states of one model.
FAULTS ?= 2
STATES ?= 12000000

.PHONY: explore
explore: ## Search every interleaving of the plans, with up to FAULTS=2 faults, for a broken law
	go test -v -count=1 -timeout=1h ./test/explore -ginkgo.v -ginkgo.no-color -ginkgo.focus='keeps the laws' -explore.faults=$(FAULTS) -explore.states=$(STATES)

.PHONY: mutants
mutants: ## Change one place at a time, and list changes that no test catches. PACKAGES="pkg/fit" SINCE=commit BUDGET=1h
	cd test/mutants && go run . -root ../.. $(if $(SINCE),-since $(SINCE)) $(if $(BUDGET),-budget $(BUDGET)) $(PACKAGES)

##@ End-to-end tests

.PHONY: e2e-long
e2e-long: ## Run the long specs: soaks, outages of minutes, repeated kills
	@$(UP) build
	go tool ginkgo --procs=2 --label-filter=long --timeout=90m --no-color ./test/e2e

.PHONY: e2e-docs
e2e-docs: ## Run the commands of each document on a new cluster
	@$(UP) build
	go test -count=1 -timeout=60m ./test/docs -ginkgo.v -ginkgo.no-color

.PHONY: e2e-stock
e2e-stock: ## Run the specs that do not need Evenkeel against stock machine-controller-manager
	@$(UP) build
	EVENKEEL_E2E_MCM=stock go tool ginkgo --procs=4 --label-filter='!long && !ours' --timeout=15m --no-color ./test/e2e

.PHONY: e2e-parity
e2e-parity: ## Compare the API writes of Evenkeel without an excess, and what they lead to, with those of the stock binary
	@$(UP) build
	go test -count=1 -timeout=30m ./test/e2e/parity -ginkgo.v -ginkgo.no-color

.PHONY: e2e-kueue
e2e-kueue: ## Run Jobs in the queues of an unmodified Kueue (the first build takes minutes)
	@$(UP) build
	go test -count=1 -timeout=40m ./test/e2e/kueue -ginkgo.v -ginkgo.no-color

.PHONY: e2e-rbac
e2e-rbac: AUDIT = $(CURDIR)/.local/audit
e2e-rbac: ## Compare the rights of the chart's accounts with the requests in the audit log
	@$(UP) build
	@rm -rf $(AUDIT) && mkdir -p $(AUDIT)
	EVENKEEL_E2E_AUDIT=$(AUDIT) go tool ginkgo --procs=4 --label-filter='!long || gardener' --timeout=15m --no-color ./test/e2e
	go run ./test/rights/cmd -audit $(AUDIT) -excuses test/e2e/unused-rights.yaml \
		kubernetes/deploy/manager/access.yaml kubernetes/deploy/gardener/access.yaml kubernetes/deploy/target/access.yaml kubernetes/deploy/balancer/access.yaml kubernetes/deploy/preparation/access.yaml

.PHONY: e2e-rbac-federation
e2e-rbac-federation: AUDIT = $(CURDIR)/.local/audit-federation
e2e-rbac-federation: ## The same for the accounts of federation
	@$(UP) build
	@rm -rf $(AUDIT) && mkdir -p $(AUDIT)
	EVENKEEL_E2E_AUDIT=$(AUDIT) go test -count=1 -timeout=20m ./test/e2e/federation -ginkgo.label-filter='!long' -ginkgo.no-color
	go run ./test/rights/cmd -audit $(AUDIT) -excuses test/e2e/federation/unused-rights.yaml \
		kubernetes/deploy/federation-hub/access.yaml kubernetes/deploy/federation-member/access.yaml kubernetes/deploy/federation-placement/access.yaml

.PHONY: e2e-federation
e2e-federation: ## Run the short specs of federation: a hub and three members
	@$(UP) build
	go test -count=1 -timeout=20m ./test/e2e/federation -ginkgo.label-filter='!long' -ginkgo.no-color

.PHONY: e2e-federation-long
e2e-federation-long: ## Run the long specs of federation: outages of minutes
	@$(UP) build
	go test -count=1 -timeout=60m ./test/e2e/federation -ginkgo.label-filter=long -ginkgo.no-color

BESIDE := $(patsubst %.mod,%,$(notdir $(wildcard hack/localcluster/versions/*.mod)))
VERSIONS ?= $(firstword $(BESIDE)) $(lastword $(BESIDE))

.PHONY: e2e-versions
e2e-versions: ## Run the short specs and node groups on the oldest and the newest Kubernetes, or on VERSIONS='1.34 1.35'
	@go run ./test/nightly $(addprefix e2e-,$(VERSIONS))

# Specs that need what another version does not serve: PodGroups as 1.36 has them, image volumes (1.35) and devices (1.34).
e2e-1.%: export LACKS = && !podgroups
e2e-1.34: export LACKS = && !podgroups && !images
e2e-1.33: export LACKS = && !podgroups && !images && !devices
e2e-1.%:
	@KUBERNETES=1.$* $(UP) build
	@KUBERNETES=1.$* $(MAKE) --no-print-directory test-e2e e2e-nodegroup

# The newest release, as long as there is one.
FROM ?= $(or $(shell git describe --tags --abbrev=0 2>/dev/null),HEAD)

.PHONY: e2e-upgrade
e2e-upgrade: ## Upgrade from the version FROM=v0.1.0, and go back, at 20 moments of a rollout
	@$(UP) build
	go tool ginkgo --procs=2 --timeout=2h --no-color -v ./test/e2e/upgrade -- -upgrade.from=$(FROM)

.PHONY: e2e-autoscaler
e2e-autoscaler: ## Test node groups with an unmodified cluster-autoscaler, CLUSTER_AUTOSCALER=path
	@$(UP) build
	go tool ginkgo --procs=3 --label-filter='!record' --timeout=60m --no-color ./test/e2e/autoscaler

.PHONY: e2e-nodegroup
e2e-nodegroup: ## The part of e2e-autoscaler that needs no cluster-autoscaler
	@$(UP) build
	go tool ginkgo --procs=1 --label-filter='!autoscaler' --timeout=20m --no-color ./test/e2e/autoscaler

.PHONY: record-autoscaler
record-autoscaler: ## Record anew what cluster-autoscaler asks, CLUSTER_AUTOSCALER=path, and play it again
	@$(UP) build
	go tool ginkgo --procs=1 --label-filter=record --timeout=30m --no-color ./test/e2e/autoscaler
	go test -count=1 ./pkg/provider/nodegroup -ginkgo.label-filter=recorded -ginkgo.no-color

# PEER=none runs the stories without stock, NIGHTS=20 sets the number of hibernations, and
# CLUSTER_AUTOSCALER=none leaves out the story with an unmodified cluster-autoscaler.
.PHONY: e2e-gardener
e2e-gardener: ## Run Gardener's code with Evenkeel and with stock, an hour. FOCUS=regexp selects stories
	@$(UP) build
	cd gardener && go tool ginkgo --procs=3 --timeout=5h --no-color $(if $(FOCUS),--focus='$(FOCUS)') ./e2e

.PHONY: e2e-hostile
e2e-hostile: ## Let a user of one namespace create the largest legal objects, for DURATION=5m
	@$(UP) build
	go test -v -count=1 -timeout=30m ./test/e2e/hostile -ginkgo.v -ginkgo.no-color -hostile.duration=$(or $(DURATION),5m)

.PHONY: bench-ready
bench-ready: ## Measure how long pods take to be ready on real machines: without a reserve, with one, and with a prepared one
	@$(UP) build
	go test -v -count=1 -timeout=60m ./test/e2e/real -real.bench -ginkgo.no-color -ginkgo.label-filter=bench

.PHONY: e2e-real
e2e-real: ## Test machines that run real kubelets and containers (on Linux, as root)
	@$(UP) build
	go tool ginkgo --procs=2 --timeout=60m -v --no-color ./test/e2e/real

.PHONY: e2e-ui
e2e-ui: ## Test the plugin's page in a browser (needs Chromium). PICTURES=folder saves screenshots
	@$(if $(PICTURES),mkdir -p $(PICTURES))
	go test -count=1 -timeout=10m ./test/ui -ginkgo.no-color -pictures=$(abspath $(PICTURES))

##@ Benchmarks (go run ./test/bench CASE -h lists the flags of a case)

.PHONY: footprint
footprint: N = 10
footprint: TURNS ?= 3
footprint: ## Memory, CPU and requests at N=10 machines, medians of TURNS=3, beside stock. INCLUDED=1: reserve among the N
	@$(UP) build
	$(BENCH) footprint -n $(N) -turns $(TURNS) $(if $(INCLUDED),-included)

.PHONY: scale
scale: N = 500
scale: ## N=500 machines up and down: time, API writes and memory, beside stock
	@$(UP) build
	$(BENCH) scale -n $(N)

.PHONY: scale-reserve
scale-reserve: N = 1000
scale-reserve: PODS ?= 0
scale-reserve: REST ?= 2m
scale-reserve: ## A reserve of 100 for N=1000 machines with PODS=0, and the writes at rest in REST=2m, beside stock
	@$(UP) build
	$(BENCH) reserve -n $(N) -pods $(PODS) -rest $(REST)

.PHONY: scale-life
scale-life: N = 5000
scale-life: PODS ?= 50000
scale-life: REST ?= 10m
scale-life: ## What an event costs at N=5000 machines with PODS=50000, in REST=10m, outage, rollout, restart, beside a tenth
	@$(UP) build
	$(BENCH) reserve -life -n $(N) -pods $(PODS) -rest $(REST)

.PHONY: large
large: ## How long decisions take with N=5000 machines, beside a tenth, in memory
	$(BENCH) large -machines $(or $(N),5000)

CASES = bench-balancer bench-nodegroup bench-plugin bench-release bench-reserve bench-size bench-ui
.PHONY: $(CASES)
bench-release: ## How long pods wait: instant release, pause pods, no reserve; CLUSTER_AUTOSCALER=path adds it
bench-reserve: ## From the response to a raise of replicas to a Node without the taint
bench-nodegroup: ## How long cluster-autoscaler waits for each call, at 1000 nodes in 30 groups
bench-balancer: ## 100 Balancers with 30,000 pods: time to scale, memory, writes at rest
bench-plugin: ## kubectl evenkeel at 1000 machines and 10,000 pods: time and memory
bench-ui: ## The plugin's page at 1000 machines and 10,000 pods (needs Chromium)
bench-size: ## The reserves that kubectl evenkeel size suggests for synthetic weeks, and its time
$(CASES): bench-%:
	@$(UP) build
	$(BENCH) $*

.PHONY: bench-federation
bench-federation: ## 100 federated autoscalers over 10 clusters, in virtual time
	go test -v -count=1 ./pkg/controller/federatedhpa -run=TestFederatedHPA -objects=100 -members=10 -ginkgo.focus='A fleet' -ginkgo.v -ginkgo.no-color

.PHONY: bench-overcreation
bench-overcreation: ## Surplus machines created while the watch lags, beside stock
	go test -v -count=1 ./test/oracle -run=TestOracle -ginkgo.focus=Over-creation -ginkgo.v -ginkgo.no-color

.PHONY: bench-distribute
bench-distribute: ## Package distribute, beside placing one replica after the other
	go test -run='^$$' -bench=. ./pkg/distribute

.PHONY: bench-similar
bench-similar: ## Package similar, beside comparing every pair
	go test -run='^$$' -bench=. ./pkg/similar

##@ Release (see RELEASE.md)

.PHONY: release
release: ## Build what VERSION publishes into .local/release; BASE=image@digest, URL=downloads, PUSH=repository
	cd hack/release && go run . -root ../.. -version=$(VERSION) -base=$(BASE) -url=$(URL) -push=$(PUSH)

.PHONY: image
image: ## Build and push the image NAME of VERSION; BUILDER and BASE are images by digest. TARGET=evenkeel-workloads
	@./hack/pinned.sh "$(BUILDER)" "$(BASE)"
	docker buildx build --platform=linux/amd64,linux/arm64 $(if $(TARGET),--target=$(TARGET)) --build-arg=VERSION=$(VERSION) --build-arg=BUILDER=$(BUILDER) --build-arg=BASE=$(BASE) \
		--sbom=true --provenance=mode=max -t $(NAME) --push .

.PHONY: gardener-image
gardener-image: ## The same for the image of the Gardener extension
	@./hack/pinned.sh "$(BUILDER)" "$(BASE)"
	docker buildx build -f gardener/Dockerfile --platform=linux/amd64,linux/arm64 --build-arg=VERSION=$(VERSION) --build-arg=BUILDER=$(BUILDER) --build-arg=BASE=$(BASE) \
		--sbom=true --provenance=mode=max -t $(NAME) --push .

.PHONY: sbom
sbom: build ## Write a CycloneDX SBOM of each binary into .local/sbom; VERSION=v0.1.0 names a release
	go run ./hack/sbom -version=$(VERSION) $(patsubst cmd/%,.local/bin/%,$(wildcard cmd/*))
