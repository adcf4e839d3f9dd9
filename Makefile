FUZZTIME ?= 10s

.PHONY: all test race lint fuzz bench golden clean

all: ## build the binary
	go build ./cmd/tfbatch

test:
	go test ./...

race: ## the packages that start goroutines
	go test -race -short ./loader ./pipeline ./stages ./internal/journal ./internal/queue ./internal/cpu ./internal/engine ./internal/tokenizer ./internal/jinja

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet ./...

fuzz: ## every Fuzz target of every package
	.ci/fuzz $(FUZZTIME)

bench: all
	./tfbatch bench jobs/demo.yaml
	go test -run '^$$' -bench . ./internal/cpu ./internal/engine ./internal/tokenizer

golden: ## rewrite the golden files of the tests that make them
	go test ./jobs ./stages ./cmd/tfbatch -update

clean:
	rm -f tfbatch
	rm -rf out
