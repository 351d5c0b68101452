// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	for link, want := range map[string]string{
		`<a href="docs/b.html#c">b</a>`:           "",
		`<a href="#a">a</a>`:                      "",
		`<a href="https://example.com/a">far</a>`: "",
		`<img src="docs/d.svg" alt="d">`:          "",
		`<a href="docs/b.html#d">b</a>`:           "index.html: there is no docs/b.html#d",
		`<a class="x" href="docs/c.html">c</a>`:   "index.html: there is no docs/c.html",
		`<a href="/docs/b.html">b</a>`:            "index.html: there is no /docs/b.html",
		`<script src="//example.com/a.js">`:       "index.html: loads //example.com/a.js",
	} {
		files, err := readFiles(fstest.MapFS{
			"index.html":  {Data: []byte(`<h1 id="a">A</h1>` + link)},
			"docs/b.html": {Data: []byte(`<h2 id="c">C</h2><a href="../index.html#a">a</a>`)},
			"docs/d.svg":  {},
		})
		if err != nil {
			t.Fatal(err)
		}
		wrong := check(files)
		if want == "" && len(wrong) > 0 || want != "" && !slices.Equal([]string{want}, texts(wrong)) {
			t.Errorf("%s: got %v, want %q", link, errors.Join(wrong...), want)
		}
	}
}

func texts(all []error) (texts []string) {
	for _, err := range all {
		texts = append(texts, err.Error())
	}
	return texts
}
