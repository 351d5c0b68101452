// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// update writes the screens anew, to be looked at before they are committed.
var update = flag.Bool("update", false, "write testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestScreen(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Screen")
}

// golden holds a screen against the file that shows how it should be.
func golden(name, text string) {
	GinkgoHelper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(text).To(Equal(string(want)))
}
