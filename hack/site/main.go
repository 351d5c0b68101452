// SPDX-License-Identifier: Apache-2.0

// Command site builds README.md, CONTRIBUTING.md and docs as a static site with search, and checks
// its links. Open its index.html: it needs no server.
//
//	go run . -root ../.. -out .local/site
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gohugoio/hugo/commands"
)

func main() {
	root := flag.String("root", "../..", "root of the repository")
	out := flag.String("out", ".local/site", "folder below the root that receives the site, and is emptied first")
	repository := flag.String("repository", "https://github.com/evenkeel/evenkeel", "URL of the repository, for links to files that are not pages")
	flag.Parse()
	if err := run(*root, *out, *repository); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out, repository string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if err := os.Setenv("HUGO_PARAMS_REPOSITORY", repository); err != nil {
		return err
	}
	out = filepath.Join(root, out)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := commands.Execute([]string{
		"--source", root, "--config", filepath.Join(root, "hack/site/hugo.yaml"), "--destination", out,
		"--cacheDir", filepath.Join(root, ".local/site-cache"), "--noBuildLock", "--panicOnWarning", "--quiet",
	}); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	pages, err := readFiles(os.DirFS(out))
	if err != nil {
		return err
	}
	if wrong := check(pages); len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	fmt.Printf("%d files, links checked: %s\n", len(pages), filepath.Join(out, "index.html"))
	return nil
}
