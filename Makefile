# What people and CI run. Where a target takes more than a line, a Go program or a script in hack/ or images/ does it.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL: # the steps share one machine, one dev cluster and one Go build cache

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The operator's image by name. Without a registry the dev cluster is handed the archive of that very name.
IMG ?= mysql-operator:latest
# The namespace the operator is deployed to.
NAMESPACE ?= mysql-operator
# Which kinds to reconcile: empty for the MySQL kinds, `all`, or a list.
KINDS ?=
# Nodes of the dev cluster: empty keeps what is there, one at first.
NODES ?=
CONTAINER_TOOL ?= docker

images := .dev/images
ldflags := -s -w -X main.version=$(VERSION)
# All but the race detector builds alike, as Kubernetes and the image's binaries are built: a package is compiled once for all.
export CGO_ENABLED := 0
# A client library that this machine's module proxy refuses is left out, with what needs it. These targets link none of them, and do not ask.
asks_nobody := help dev-down clean make-room mysql-image undeploy uninstall
missing = $(if $(filter-out $(asks_nobody),$(or $(MAKECMDGOALS),help)),$(shell hack/missing-modules))
export GOFLAGS := $(strip -trimpath $(filter-out -trimpath,$(shell go env GOFLAGS)) $(if $(findstring -tags=without_,$(GOFLAGS)),,$(missing)))
operator := go run -ldflags "$(ldflags)" ./cmd/mysql-operator
timeout := 60m
kinds := $(if $(KINDS),--kinds=$(KINDS))
# The tests of test/integration that run with the race detector, too.
race_stories := ^Test(Engine|NewObjectsAre|AnOperatorOfANamespace|Conversion|MySQLClusterReadyMeans|MySQLClusterHealsMembers)
lint := go tool -modfile=tools/go.mod golangci-lint

# The cluster to work on: the one of KUBECONFIG where that is given, else the dev cluster of this work tree.
ifeq ($(strip $(KUBECONFIG)),)
kubeconfig := $(CURDIR)/.dev/kubeconfig
KUBECTL ?= $(CURDIR)/.dev/bin/kubectl
else
kubeconfig := $(KUBECONFIG)
KUBECTL ?= kubectl
endif
on_cluster := KUBECONFIG=$(kubeconfig) KUBECTL=$(KUBECTL) IMG=$(IMG)
kubectl := KUBECONFIG=$(kubeconfig) $(KUBECTL)

##@ Start here

.PHONY: help
help: ## print this table
	@awk 'BEGIN { FS = ":.*## "; print "usage: make TARGET [NAME=value …]" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z0-9-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nKUBECONFIG=FILE makes every target work on that cluster instead of the dev cluster.\n'

.PHONY: demo
demo: image mysql-image cluster ## show it all: dev cluster, operator, the founding my-cluster, rows written and read
	$(on_cluster) go run ./test/demo

##@ Test

# What each layer may take, in seconds, on two cores with warm caches: 30 minutes in all. To compare with what hack/run-tests prints.
budget_unit := 120
budget_race := 180
budget_engine := 120
budget_integration := 480
budget_mysqld := 240
budget_e2e := 660

.PHONY: test
test: test-unit test-integration test-mysqld test-e2e test-failover ## run all tests (what CI runs)

# Race detection needs cgo, and makes programs several times slower. Packages whose code starts goroutines or has locks are tested with it, and the
# others without. Those with tests that do less with the race detector, or that it cannot run, are tested both ways.
module := github.com/mysql-operator/mysql-operator
with_race = $(sort $(dir $(shell grep -rlE --include='*.go' --exclude='*_test.go' '\bgo func\b|\bsync[.]|\berrgroup[.]' cmd crds listen reconcile)))
less_with_race = $(sort $(dir $(shell grep -rl --include='*_test.go' '^//go:build.*!race' cmd reconcile)))
other_layers := $(addprefix $(module)/test/,bench/% campaign demo e2e% integration% tutorial)
without_race = $(filter-out $(other_layers) $(patsubst %/,$(module)/%,$(filter-out $(less_with_race),$(with_race))),$(shell go list ./...))
.PHONY: test-unit
test-unit: ## run the unit tests: seconds once warm
	hack/need gcc=gcc,libc6-dev
	hack/run-tests unit $(budget_unit) -timeout=$(timeout) $(without_race)
	CGO_ENABLED=1 hack/run-tests race $(budget_race) -race -timeout=$(timeout) $(patsubst %/,./%,$(with_race))

# The caches know nothing of processes and clusters: every run counts. On a real API server only the stories of the engine, where goroutines share
# something, and a few others have the race detector.
.PHONY: test-integration
test-integration: ## run the tests on a real API server and etcd
	hack/need gcc=gcc,libc6-dev
	CGO_ENABLED=1 hack/run-tests engine $(budget_engine) -race -parallel=4 -count=1 -timeout=$(timeout) -run='$(race_stories)' ./test/integration
	hack/run-tests integration $(budget_integration) -p=1 -count=1 -timeout=$(timeout) \
		$(if $(filter .,$(race_stories)),-run=VmGroup,-skip='$(race_stories)') ./test/integration ./test/tutorial
	hack/test-module devcluster/kubernetes

# All cases of which the other targets run a sample, and more random sequences: for a change of what they test, and before a release.
.PHONY: test-long
test-long: export SAMPLE_STRIDE := 1
test-long: export MIGRATION_OBJECTS := 10000
test-long: export CRDS_SEQUENCES := 100
test-long: export CONVERSION_ROUNDS := 3000
test-long: timeout := 90m
test-long: race_stories := .
test-long: failover_rounds := 5
test-long: test-unit test-integration test-mysqld test-e2e test-failover ## run all tests with every variant: hours

.PHONY: test-mysqld
test-mysqld: mysql-image ## run the tests of packages that speak to mysqld on a real one, without a cluster
	MYSQLD_ROOTFS=$(CURDIR)/$(images)/mysql-rootfs hack/run-tests mysqld $(budget_mysqld) -count=1 -timeout=15m $(addprefix ./reconcile/mysql/,agent binlog mysqld clone)

.PHONY: test-e2e
test-e2e: image mysql-image cluster ## run the tests with real MySQL in the pods of the dev cluster
	$(on_cluster) hack/run-tests e2e $(budget_e2e) -count=1 -timeout=60m ./test/e2e/...

# A short form of bench-failover. It fails if an acknowledged row is lost, if a client reads what it must not, or if the primary changes without
# a fault; never because of how long something takes.
failover_rounds := 1
.PHONY: test-failover
test-failover: image mysql-image cluster ## kill, hang, freeze and cut off the primary while clients write and read, and check what they saw
	$(on_cluster) go run ./test/bench/failover -rounds $(failover_rounds) -faults kill,stop,freeze,partition

# A part of this is in test-unit. All pairs of faults take hours.
.PHONY: simulate
simulate: ## run the replication simulator: N random clusters from seed FIRST on, and PAIRS pairs of faults in five clusters [N=1000000 FIRST=20001 PAIRS=0, which means all]
	go test -count=1 -timeout=24h ./reconcile/mysql/replication -run='^(TestSimulated|TestAPairOfFaults)' -simulator-first=$(or $(FIRST),1) -simulator-seeds=$(or $(N),20000) -explore-pairs=$(or $(PAIRS),5000)

.PHONY: test-mutants
test-mutants: ## break each rule of replication in turn, and check that a test notices: about four hours
	go run ./test/mutants

# Linters that need types would analyse all of Kubernetes for devcluster/kubernetes: more than ten minutes.
.PHONY: lint
lint: ## check style, import rules, shell scripts, and that generated files are up to date
	hack/need shellcheck=shellcheck
	shellcheck .ci/run $(filter-out %.go,$(wildcard hack/*)) images/*/build
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs -r ls 2>/dev/null | xargs -r gofmt -l); [ -z "$$unformatted" ] || { echo "not formatted, run make fmt:" $$unformatted >&2; exit 1; }
	$(lint) run ./...
	go vet -tags=twoversions ./cmd/mysql-operator
	cd devcluster/kubernetes && GOFLAGS=-trimpath CGO_ENABLED=0 go tool -modfile=../../tools/go.mod golangci-lint run --fast-only --config ../../.golangci.yml ./...
	hack/check-generated

.PHONY: fmt
fmt: ## format the Go code
	$(lint) fmt ./...

##@ Measure (every result is a line: figure NAME VALUE UNIT)

.PHONY: bench-boot
bench-boot: ## process start until all definitions are served; the operator's memory
	go run ./test/bench/boot

.PHONY: bench-crds
bench-crds: ## what looking after definitions costs with 10,000 objects: boot, check, migration
	go run ./test/bench/crds

.PHONY: bench-kinds
bench-kinds: ## the operator's memory with all kinds and 100 objects of each
	go run ./test/bench/kinds

.PHONY: bench-scale
bench-scale: ## what 20, 200 and 1,000 clusters of three cost the operator, Ready and not: CPU, memory, requests, storm, restart
	go run ./test/bench/scale

.PHONY: bench-sizes
bench-sizes: mysql-image ## real mysqlds in memory limits from 512Mi to 4Gi, all connections open: killed or not, throughput; needs root
	go run ./test/bench/sizes

.PHONY: bench-ready
bench-ready: image mysql-image cluster ## apply to Ready with real MySQL, stage by stage; API writes at rest
	$(on_cluster) go run ./test/bench/ready

.PHONY: bench-backup
bench-backup: image mysql-image cluster ## backup and restore of 6 GiB beside a plain copy, mysqldump and mydumper; what clients notice
	hack/need mydumper=mydumper
	$(on_cluster) go run ./test/bench/backup

.PHONY: bench-durability
bench-durability: mysql-image ## what it costs to keep commits on several machines, and on their disks, with real mysqlds without Kubernetes
	go run ./test/bench/durability

.PHONY: bench-failover
bench-failover: image mysql-image cluster ## how long clients cannot write when the primary fails, in many ways; what they read; rows lost [NODES=3 N=3 FAULTS=kill,node SEED=1 LOAD=16 ROWS=500]
	$(on_cluster) go run ./test/bench/failover -floor 10 $(if $(LOAD),-load $(LOAD)) $(if $(ROWS),-rows $(ROWS)) $(if $(N),-rounds $(N)) $(if $(FAULTS),-faults $(FAULTS)) $(if $(SEED),-random -seed $(SEED))

bench-%: image mysql-image cluster
	$(on_cluster) go run ./test/bench/$*

##@ Dev cluster

# A new image under an old name does not roll a Deployment by itself.
.PHONY: dev-up
dev-up: image mysql-image cluster make-room deploy ## start the dev cluster with the operator in it [KINDS=all NODES=3]
	$(kubectl) --namespace $(NAMESPACE) rollout restart deployment/mysql-operator
	$(kubectl) --namespace $(NAMESPACE) rollout status deployment/mysql-operator --timeout=120s

# An operator that the demo or the tests started as a Pod would reconcile the same resources.
.PHONY: make-room
make-room:
ifeq ($(strip $(KUBECONFIG)),)
	$(kubectl) --namespace default delete pod mysql-operator --ignore-not-found
endif

.PHONY: dev-down
dev-down: ## stop the dev cluster and leave nothing of it behind
	go run ./devcluster down

.PHONY: cluster
ifeq ($(strip $(KUBECONFIG)),)
cluster: ## start the dev cluster alone and load the images built so far [NODES=3]
	go run ./devcluster up $(if $(NODES),--nodes $(NODES))
	@for archive in $(images)/*.tar; do [ ! -e $$archive ] || go run ./devcluster load $$archive || exit 1; done
else
cluster:
	@echo "working on the cluster of KUBECONFIG=$(KUBECONFIG); it has to have or pull the images itself (IMG=$(IMG))"
endif

##@ Build

.PHONY: build
build: ## build the static binaries of the image: bin/mysql-operator, and its companions for backups, members, PulsarConsumers and VmGroups
	CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags "$(ldflags)" -o bin/ $(addprefix ./cmd/,mysql-operator mysql-operator-backup mysql-operator-member mysql-operator-supervisor mysql-operator-pulsar mysql-operator-vsphere)
	ln -sfn mysql-operator-pulsar bin/pulsar-producer # by this name it produces; not in the image

.PHONY: plugin
plugin: ## build the plugin of kubectl, for people: bin/kubectl-mysql [GOOS=]
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(ldflags)" -o bin/ ./cmd/kubectl-mysql

.PHONY: image
image: build ## build the operator's image without an engine, as .dev/images/mysql-operator.tar
	images/operator/build $(IMG) $(VERSION) $(images)/mysql-operator.tar

.PHONY: mysql-image
mysql-image: ## build the MySQL image from Debian packages, as .dev/images/mysql.tar [FORCE=1 for a newer MySQL]
	FORCE=$(FORCE) images/mysql/build $(images)

.PHONY: docker-build
docker-build: build ## build the operator's image with docker [IMG=]
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) --tag $(IMG) .

# Whoever pulls an image expects every kind of it.
.PHONY: docker-push
docker-push: ## push the operator's image [IMG=; PARTIAL=1 also without a client library]
	@[ "$(PARTIAL)" = 1 ] || case '$(GOFLAGS)' in *without_*) \
		echo 'not pushed: built here, the image lacks a client library ($(GOFLAGS)); build it where the module proxy has it, or say PARTIAL=1' >&2; exit 1 ;; esac
	$(CONTAINER_TOOL) push $(IMG)

# What Go recorded in the binaries: the very modules that were linked.
.PHONY: sbom
sbom: build ## write the bill of materials of the image's binaries (CycloneDX), as bin/sbom.json
	go run -C tools ./sbom "$(VERSION)" $(addprefix ../bin/,mysql-operator mysql-operator-backup mysql-operator-member mysql-operator-supervisor mysql-operator-pulsar mysql-operator-vsphere) >bin/sbom.json.new
	mv bin/sbom.json.new bin/sbom.json

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what the binaries call; where the database is out of reach it says so
	hack/vulncheck

.PHONY: generate
generate: ## write the generated Go files anew
	go generate ./...

# Without the version of the moment: the files are kept in git and must not change with every commit. A file is replaced by
# a whole one: code that does not compile leaves what there is.
.PHONY: manifests
manifests: ## write the manifests in deploy/ anew
	@for part in crds rbac policy operator protection; do \
		file=deploy/$$part.yaml; \
		go run ./cmd/mysql-operator manifests $$part >$$file.new && mv $$file.new $$file || { rm -f $$file.new; exit 1; }; \
	done

.PHONY: clean
clean: dev-down ## remove everything built, the dev cluster included
	hack/remove bin .dev

##@ Deploy

.PHONY: run
run: ## run the operator on this machine against the cluster [KINDS=]
	go build -o .dev/bin/ ./cmd/mysql-operator-vsphere
	PATH="$(CURDIR)/.dev/bin:$$PATH" $(operator) run --kubeconfig=$(kubeconfig) --agent-image=$(IMG) --log-format=console $(kinds)

.PHONY: install
install: ## register the definitions; the operator does that by itself, too [KINDS=]
	$(operator) manifests crds $(kinds) | $(kubectl) apply --server-side --field-manager=mysql-operator-crds --filename=-

.PHONY: protect
protect: ## make the API server refuse to delete definitions that have objects
	$(operator) manifests protection --kinds=all | $(kubectl) apply --server-side --filename=-

.PHONY: uninstall
uninstall: ## remove the definitions; refused while resources exist [FORCE=1 deletes those as well]
	$(on_cluster) FORCE=$(FORCE) hack/uninstall

.PHONY: deploy
deploy: ## run the operator in the cluster [IMG= NAMESPACE= KINDS=]
	$(kubectl) get namespace $(NAMESPACE) >/dev/null 2>&1 || $(kubectl) create namespace $(NAMESPACE)
	$(operator) manifests all --namespace=$(NAMESPACE) --image=$(IMG) $(kinds) | $(kubectl) apply --server-side --filename=-
	$(kubectl) --namespace $(NAMESPACE) rollout status deployment/mysql-operator --timeout=120s

.PHONY: undeploy
undeploy: ## stop the operator; definitions, clusters and data stay [NAMESPACE=]
	$(operator) manifests operator rbac policy --namespace=$(NAMESPACE) | $(kubectl) delete --ignore-not-found --filename=-
