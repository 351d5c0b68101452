// SPDX-License-Identifier: Apache-2.0

// Command krew makes what the plugin manager krew installs: an archive of the plugin for each
// platform, and the manifest.
//
//	go run ./hack/krew -version v1.2.3 -base https://example.com/releases/v1.2.3
//	kubectl krew install --manifest=.local/krew/evenkeel.yaml --archive=.local/krew/kubectl-evenkeel_linux_amd64.tar.gz
package main

import (
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

// usual are the platforms that people run kubectl on.
const usual = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	version := flag.String("version", "", "version of the plugin, as in v1.2.3")
	base := flag.String("base", "", "address of the folder from which archives will be downloaded")
	platforms := flag.String("platforms", usual, "platforms to build for")
	out := flag.String("out", ".local/krew", "folder to write to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *version, *base, strings.Split(*platforms, ","), *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, base string, platforms []string, out string) error {
	if !strings.HasPrefix(version, "v") || base == "" {
		return errors.New("-version must be like v1.2.3, and -base the address of a folder")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	var archives []archive
	for _, text := range platforms {
		system, arch, ok := strings.Cut(text, "/")
		if !ok {
			return fmt.Errorf("platform %q: write it as linux/amd64", text)
		}
		a := archive{OS: system, Arch: arch}
		binary, err := build(ctx, a, version, out)
		if err != nil {
			return err
		}
		if err := a.write(out, binary, license); err != nil {
			return err
		}
		fmt.Println(filepath.Join(out, a.file()), a.Sum)
		archives = append(archives, a)
	}
	path := filepath.Join(out, "evenkeel.yaml")
	fmt.Println(path)
	return os.WriteFile(path, []byte(manifest(version, base, archives)), 0o644)
}

// stamp is what the linker is told of the version.
const stamp = "-X github.com/evenkeel/evenkeel/internal/version.stamp="

// build returns the plugin for a platform. It says the version that the manifest says.
func build(ctx context.Context, a archive, version, out string) ([]byte, error) {
	path := filepath.Join(out, a.binary())
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w "+stamp+version, "-o", path, "./cmd/kubectl-evenkeel")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+a.OS, "GOARCH="+a.Arch)
	if text, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build for %s/%s: %w: %s", a.OS, a.Arch, err, text)
	}
	binary, err := os.ReadFile(path)
	return binary, errors.Join(err, os.Remove(path))
}
