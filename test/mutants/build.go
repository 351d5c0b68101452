// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

const (
	numberVariable  = "EVENKEEL_MUTANT"
	reachedVariable = "EVENKEEL_MUTANTS_REACHED"
	specsVariable   = "EVENKEEL_MUTANTS_SPECS"
)

// switches is the file that is added to a mutated package.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantNumber  = mutantFromEnvironment()
	mutantFile    = mutantOpenReached()
	mutantReached [%d]atomic.Bool
)

func mutantFromEnvironment() int {
	if n, err := strconv.Atoi(os.Getenv("` + numberVariable + `")); err == nil {
		return n
	}
	return -1
}

func mutantOpenReached() *os.File {
	path := os.Getenv("` + reachedVariable + `")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return file
}

func mutantNote(line string) {
	if mutantFile != nil {
		mutantFile.WriteString(line + "\n")
	}
}

func mutantChosen(n int) bool {
	if mutantFile != nil && !mutantReached[n].Swap(true) {
		mutantNote(strconv.Itoa(n))
	}
	return n == mutantNumber
}

func mutantPick[T any](n int, mutated, original T) T {
	if mutantChosen(n) {
		return mutated
	}
	return original
}

func mutantDrop[T any](n int, original T) T {
	if mutantChosen(n) {
		var zero T
		return zero
	}
	return original
}

func mutantWithout[S ~[]E, E any](n, i int, original S) S {
	if mutantChosen(n) {
		return append(original[:i:i], original[i+1:]...)
	}
	return original
}
`

// hooks is the test file that is added to a mutated package with Ginkgo's specs. It notes which specs
// reach which mutants, and skips the specs that are not chosen. Its name comes first, so that its
// BeforeEach does, too.
const hooks = `package %s

import (
	"bufio"
	"os"
	"strconv"

	"github.com/onsi/ginkgo/v2"
)

var mutantSpecs = mutantReadSpecs()

func mutantReadSpecs() map[string]bool {
	path := os.Getenv("` + specsVariable + `")
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	specs := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		specs[lines.Text()] = true
	}
	return specs
}

var _ = ginkgo.BeforeEach(func() {
	text := strconv.Quote(ginkgo.CurrentSpecReport().FullText())
	if mutantSpecs != nil && !mutantSpecs[text] {
		ginkgo.Skip("does not reach the mutant")
	}
	if mutantFile != nil {
		for i := range mutantReached {
			mutantReached[i].Store(false)
		}
		mutantNote("` + beginNote + `" + text)
	}
})

var _ = ginkgo.ReportAfterEach(func(r ginkgo.SpecReport) {
	mutantNote("` + endNote + `" + strconv.FormatInt(int64(r.RunTime), 10))
})
`

// The lines of the notes between which the mutants of one spec are.
const (
	beginNote = "begin "
	endNote   = "end "
)

// Binary is a test binary with all mutants of a package in it.
type Binary struct {
	Path string
	// Refused are mutants that do not compile.
	Refused map[int]bool
}

// Build compiles the mutants of a package into one test binary below dir. Mutants that do not
// compile are left out: the compiler names the line, and all mutants of that line go.
func Build(p *Package, mutants []Mutant, insertions map[string][]insertion, dir string) (Binary, error) {
	b := Binary{Path: filepath.Join(dir, "mutants.test"), Refused: map[int]bool{}}
	for {
		overlay, err := writeOverlay(p, len(mutants), insertions, b.Refused, dir)
		if err != nil {
			return b, err
		}
		problems, err := compile(p, overlay, b.Path)
		if err == nil {
			return b, nil
		}
		before := len(b.Refused)
		refuse(problems, mutants, b.Refused)
		if len(b.Refused) == before {
			return b, fmt.Errorf("compile the mutants of %s: %w\n%s", p.Path, err, problems)
		}
	}
}

func writeOverlay(p *Package, mutants int, insertions map[string][]insertion, refused map[int]bool, dir string) (string, error) {
	replace := map[string]string{filepath.Join(p.Dir, "zz_mutants.go"): filepath.Join(dir, "zz_mutants.go")}
	content := map[string][]byte{filepath.Join(dir, "zz_mutants.go"): fmt.Appendf(nil, switches, p.Name, mutants+1)}
	if p.Ginkgo {
		replace[filepath.Join(p.Dir, "aa_mutants_test.go")] = filepath.Join(dir, "aa_mutants_test.go")
		content[filepath.Join(dir, "aa_mutants_test.go")] = fmt.Appendf(nil, hooks, p.Name)
	}
	for path, source := range p.sources {
		mutated := filepath.Join(dir, filepath.Base(path))
		replace[path] = mutated
		content[mutated] = weave(source, insertions[path], refused)
	}
	overlay := filepath.Join(dir, "overlay.json")
	var err error
	if content[overlay], err = json.Marshal(map[string]any{"Replace": replace}); err != nil {
		return "", err
	}
	for path, text := range content {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
	}
	return overlay, nil
}

func compile(p *Package, overlay, target string) (string, error) {
	// -e: all errors, not the first ten.
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-gcflags="+p.Path+"=-e", "-overlay="+overlay, "-o", target, ".")
	cmd.Dir = p.Dir
	var problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &problems
	err := cmd.Run()
	return problems.String(), err
}

var place = regexp.MustCompile(`(?m)([^/\s:]+\.go):(\d+):\d+: `)

// refuse adds the mutants that a compiler's message is about.
func refuse(problems string, mutants []Mutant, refused map[int]bool) {
	wrong := map[string]bool{}
	for _, match := range place.FindAllStringSubmatch(problems, -1) {
		wrong[match[1]+":"+match[2]] = true
	}
	for _, m := range mutants {
		if wrong[m.Position.Filename+":"+strconv.Itoa(m.Position.Line)] {
			refused[m.ID] = true
		}
	}
}
