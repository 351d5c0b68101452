// SPDX-License-Identifier: Apache-2.0

// Versions makes the go.mod files of the versions of Kubernetes in
// hack/localcluster/versions/list.txt. It needs the Go module proxy.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	folder     = "hack/localcluster"
	versions   = folder + "/versions"
	kubernetes = "k8s.io/kubernetes"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// run makes the files of all versions, or of those that are named.
func run(ctx context.Context, only []string) error {
	text, err := os.ReadFile(filepath.Join(versions, "list.txt"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" || len(only) > 0 && !slices.Contains(only, words[0]) {
			continue
		}
		if len(words) < 2 {
			return fmt.Errorf("line %q: want a minor version, a version, and module=version for exceptions", strings.TrimSpace(line))
		}
		fmt.Println(words[0], "...")
		if err := writeModule(ctx, words[0], words[1], words[2:]); err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
	}
	return nil
}

// writeModule makes the files of one version.
func writeModule(ctx context.Context, minor, version string, exceptions []string) error {
	staging, err := stagingOf(ctx, version)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "versions")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	own, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	begin, _, _ := strings.Cut(string(own), "require (") // module and go
	source, err := os.ReadFile(filepath.Join(folder, "main.go"))
	if err != nil {
		return err
	}
	mod := begin + fmt.Sprintf("require %s %s\n\nreplace (\n", kubernetes, version)
	for _, module := range staging {
		mod += fmt.Sprintf("\t%s => %[1]s %s\n", module, stagingVersion(module, version, exceptions))
	}
	for name, text := range map[string]string{"go.mod": mod + ")\n", "main.go": string(source)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := goCommand(ctx, dir, "mod", "tidy"); err != nil {
		return err
	}
	for _, kind := range []string{"mod", "sum"} {
		text, err := os.ReadFile(filepath.Join(dir, "go."+kind))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(versions, minor+"."+kind), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var staged = regexp.MustCompile(`(k8s\.io/[\w-]+) => \./staging`)

// stagingOf returns the modules that a release of Kubernetes has in its own repository.
func stagingOf(ctx context.Context, version string) (modules []string, err error) {
	output, err := goCommand(ctx, "", "mod", "download", "-json", kubernetes+"@"+version)
	if err != nil {
		return nil, err
	}
	var module struct{ GoMod string }
	if err := json.Unmarshal(output, &module); err != nil {
		return nil, fmt.Errorf("parse what go mod download says: %w", err)
	}
	text, err := os.ReadFile(module.GoMod)
	if err != nil {
		return nil, err
	}
	for _, match := range staged.FindAllStringSubmatch(string(text), -1) {
		modules = append(modules, match[1])
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("%s replaces no module by one of its own", module.GoMod)
	}
	return modules, nil
}

// stagingVersion is the version in which a module of a release is published.
func stagingVersion(module, version string, exceptions []string) string {
	for _, exception := range exceptions {
		if name, other, ok := strings.Cut(exception, "="); ok && module == "k8s.io/"+name {
			return other
		}
	}
	return "v0." + strings.TrimPrefix(version, "v1.")
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	output, err := cmd.Output()
	if err != nil {
		text := string(output)
		if failed, ok := err.(*exec.ExitError); ok {
			text += string(failed.Stderr)
		}
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(text))
	}
	return output, nil
}
