module github.com/evenkeel/evenkeel/test/mutants

go 1.26
