// SPDX-License-Identifier: Apache-2.0

// Command verify checks what no compiler checks: generated code, formatting, vet, staticcheck, and
// the rules of the house (see rules.go).
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// check is one thing to verify: it returns what is wrong, in lines for a person, or an error where
// it could not look.
type check struct {
	name  string
	fix   string
	wrong func() ([]string, error)
}

var checks = []check{
	{"formatting", "run: gofmt -w .", func() ([]string, error) {
		return output("gofmt", "-l", "cmd", "gardener", "hack", "internal", "pkg", "test")
	}},
	{"rules of the house", "see CONTRIBUTING.md", func() ([]string, error) { return violations(".") }},
	{"rooms", "see CONTRIBUTING.md", strays},
	{"paths in documents", "correct the document", func() ([]string, error) { return deadPaths(os.DirFS(".")) }},
	{"glossary", "explain a word on the page that uses it", longGlossary},
	{"go.mod and go.sum", "run: go mod tidy, here and in gardener", untidy},
	{"versions of modules", "require the same version in each of these go.mod files", differingVersions},
	{"generated code", "run: make generate", generatedDiff},
	{"go vet", "", func() ([]string, error) { return output("go", "vet", "./...") }},
	{"staticcheck", "", func() ([]string, error) { return output("go", "tool", "staticcheck", "./...") }},
	{"govulncheck", "raise the module, or say in docs/security.md why it does no harm", vulnerable},
}

const usage = `usage: go run ./hack/verify [check ...]

Runs all checks, or only those that are named, and fails if something is wrong. The checks:
`

func main() {
	chosen, err := choose(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "verify: %v\n\n%s", err, usage)
		for _, c := range checks {
			fmt.Fprintln(os.Stderr, "  "+c.name)
		}
		os.Exit(2)
	}
	if !run(chosen) {
		os.Exit(1)
	}
}

// choose returns the checks with these names; all without names.
func choose(names []string) ([]check, error) {
	if len(names) == 0 {
		return checks, nil
	}
	var chosen []check
	for _, name := range names {
		i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no check %q", name)
		}
		chosen = append(chosen, checks[i])
	}
	return chosen, nil
}

// run runs checks, and reports whether nothing is wrong.
func run(chosen []check) bool {
	failed := false
	for _, c := range chosen {
		start := time.Now()
		wrong, err := c.wrong()
		var skip notMade
		if err != nil && !errors.As(err, &skip) {
			wrong = append(wrong, "verify "+c.name+": "+err.Error())
		}
		verdict := "ok"
		if len(wrong) > 0 {
			verdict, failed = "FAILED", true
		} else if skip != "" {
			verdict = "skipped: " + skip.Error() + ";"
		}
		fmt.Printf("%-20s %-6s %5.1fs\n", c.name, verdict, time.Since(start).Seconds())
		for _, line := range wrong {
			fmt.Println("  " + line)
		}
		if len(wrong) > 0 && c.fix != "" {
			fmt.Println("  -> " + c.fix)
		}
	}
	return !failed
}

// untidy checks gardener too: it imports the packages of this module, so what they need is in its go.sum as well.
func untidy() ([]string, error) {
	var wrong []string
	for _, module := range []string{".", "gardener"} {
		diff, err := output("go", "-C", module, "mod", "tidy", "-diff")
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, diff...)
	}
	return wrong, nil
}

// output runs a command that prints what is wrong, and nothing where all is well.
func output(name string, args ...string) ([]string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	var lines []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && !strings.HasPrefix(line, "go: downloading ") {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		return lines, nil
	}
	return nil, err
}

// generatedDiff generates into a folder of its own and compares, so that the working tree stays as
// it is.
func generatedDiff() ([]string, error) {
	const fresh = ".local/verify"
	if err := os.RemoveAll(fresh); err != nil {
		return nil, err
	}
	if _, err := output("go", "run", "./hack/generate", "-out", fresh); err != nil {
		return nil, err
	}
	var wrong []string
	for _, name := range []string{"pkg/client", "kubernetes/crds", "kubernetes/optional-crds", "docs/metrics.md", "gardener/pkg/additions/alerts.yaml", "gardener/pkg/additions/dashboard.json", "gardener/charts/gardener-extension-evenkeel/templates/crd-reserves.yaml"} {
		lines, err := output("diff", "-r", fresh+"/"+name, name)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, lines...)
	}
	for _, differ := range []func(string) ([]string, error){deepCopyDiff, stubDiff, pictureDiff} {
		lines, err := differ(fresh)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, lines...)
	}
	return wrong, nil
}

// stubDiff compares the gRPC stubs.
func stubDiff(fresh string) ([]string, error) { return namedDiff(fresh, "*.pb.go") }

// pictureDiff compares the pictures of the documents.
func pictureDiff(fresh string) ([]string, error) { return namedDiff(fresh, "*.svg") }

// namedDiff compares the fresh files whose names match a pattern.
func namedDiff(fresh, pattern string) ([]string, error) {
	files, err := output("find", fresh, "-name", pattern, "-printf", "%P\n")
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, file := range files {
		lines, err := output("diff", "-N", fresh+"/"+file, file)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, lines...)
	}
	return wrong, nil
}

func deepCopyDiff(fresh string) ([]string, error) {
	files, err := output("find", "pkg/apis", fresh+"/pkg/apis", "-name", "zz_generated.deepcopy.go", "-printf", "%P\n")
	if err != nil {
		return nil, err
	}
	seen, wrong := map[string]bool{}, []string{}
	for _, file := range files {
		if seen[file] {
			continue
		}
		seen[file] = true
		lines, err := output("diff", "-N", fresh+"/pkg/apis/"+file, "pkg/apis/"+file)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, lines...)
	}
	return wrong, nil
}
