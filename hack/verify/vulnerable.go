// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// notMade is why a check could not be made. That is said, and fails nothing.
type notMade string

func (s notMade) Error() string { return string(s) }

// vulnerabilityIndex is small, and there where the database is. It is the file that govulncheck
// asks for first.
const vulnerabilityIndex = "/index/db.json"

// vulnerable are known faults in modules that our code calls into.
func vulnerable() ([]string, error) {
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = "https://vuln.go.dev"
	}
	if err := reachable(strings.TrimSuffix(database, "/") + vulnerabilityIndex); err != nil {
		return nil, notMade(fmt.Sprintf("the vulnerability database cannot be reached: %v", err))
	}
	tool, err := filepath.Abs(".local/bin/govulncheck")
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-o", tool, "golang.org/x/vuln/cmd/govulncheck")
	build.Dir = "hack/vulncheck"
	if out, err := build.CombinedOutput(); err != nil {
		return strings.Split(strings.TrimSpace(string(out)), "\n"), fmt.Errorf("build govulncheck: %w", err)
	}
	out, err := exec.Command(tool, "./...").CombinedOutput()
	if err == nil {
		return nil, nil
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func reachable(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
