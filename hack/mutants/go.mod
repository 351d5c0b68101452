module github.com/evenkeel/evenkeel/hack/mutants

go 1.26
