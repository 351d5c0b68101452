// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// release is what is built, and where.
type release struct {
	Version string // as in v0.1.0
	Base    string // image with the digest
	URL     string // of the folder that people download from
	Root    string // of the repository that is released, absolute
	Tools   string // root of the repository whose tools are used, absolute; the same but in tests
	Out     string // absolute
	Push    string // repository of the images; empty: they are not pushed
	Commit  string
	// Date of the commit in seconds since 1970: files in images carry it, so that the same commit
	// has the same digests.
	Date string
	// Commands are the images' names, each a folder of cmd.
	Commands []string
}

func main() {
	var r release
	flag.StringVar(&r.Version, "version", "", "version to release, as in v0.1.0")
	flag.StringVar(&r.Base, "base", "", "base image, by digest: NAME@sha256:...")
	flag.StringVar(&r.URL, "url", "", "address of the folder that the archives will be downloaded from")
	flag.StringVar(&r.Root, "root", ".", "root of the repository")
	flag.StringVar(&r.Out, "out", "", "folder to write to (default .local/release/VERSION in the repository)")
	flag.StringVar(&r.Push, "push", "", "repository to push the images to, as in registry.example.com/evenkeel (default: do not push)")
	flag.Parse()
	r.Commands = append(charted, "machine-controller")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := r.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(ctx context.Context) error {
	if err := r.resolve(ctx); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.Out), os.MkdirAll(filepath.Join(r.Out, "sbom"), 0o755)); err != nil {
		return err
	}
	images, err := r.images(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return r.chart(ctx, images) },
		r.plugin,
		func(context.Context) error { return r.provenance(images) },
		func(context.Context) error { return r.sums() },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if r.Push != "" {
		err = r.push(ctx, images)
	}
	fmt.Println(r.Out)
	return err
}

// resolve fills in what follows from the repository.
func (r *release) resolve(ctx context.Context) (err error) {
	if r.Root, err = filepath.Abs(r.Root); err != nil {
		return err
	}
	r.Tools = cmp.Or(r.Tools, r.Root)
	if r.Out == "" {
		r.Out = filepath.Join(r.Root, ".local", "release", r.Version)
	}
	if r.Out, err = filepath.Abs(r.Out); err != nil {
		return err
	}
	if r.Commit, err = r.output(ctx, r.Root, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	r.Date, err = r.output(ctx, r.Root, "git", "show", "-s", "--format=%ct", "HEAD")
	return err
}

// plugin packs the kubectl plugin for each platform, and lists what it is made of.
func (r *release) plugin(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "evenkeel-plugin")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, "kubectl-evenkeel")
	for _, command := range [][]string{
		{"go", "run", "./hack/krew", "-version=" + r.Version, "-base=" + r.URL, "-out=" + filepath.Join(r.Out, "krew")},
		{"go", "build", "-trimpath", "-o", binary, "./cmd/kubectl-evenkeel"},
		{"go", "run", "./hack/sbom", "-version=" + r.Version, "-out=" + filepath.Join(r.Out, "sbom"), binary},
	} {
		if _, err := r.output(ctx, r.Root, command[0], command[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// output runs a command in a folder and returns what it prints.
func (r *release) output(ctx context.Context, folder, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "VERSION="+r.Version, "SOURCE_DATE_EPOCH="+r.Date)
	// The whole group ends with the context: go run and ko start processes of their own.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
