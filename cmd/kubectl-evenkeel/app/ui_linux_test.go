// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("ui --open", func() {
	It("opens a browser without showing the key to other users of the machine", func(ctx context.Context) {
		folder := GinkgoT().TempDir()
		GinkgoT().Setenv("PATH", folder+":"+os.Getenv("PATH"))
		GinkgoT().Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
		Expect(syscall.Mkfifo(filepath.Join(folder, "told"), 0o600)).To(Succeed())
		script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" > %s/told\n", folder)
		Expect(os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700)).To(Succeed())
		address, stop, ended := newScene(everything).served(ctx, "--open")
		told, err := os.ReadFile(filepath.Join(folder, "told"))
		Expect(err).NotTo(HaveOccurred())
		path := strings.TrimSpace(string(told))
		Expect(path).To(HavePrefix(folder), "a file, not the address")
		file, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		Expect(os.ReadFile(path)).To(ContainSubstring("url=" + address))
		stop()
		Expect(<-ended).To(Succeed())
		Expect(filepath.Dir(path)).NotTo(BeADirectory())
	}, NodeTimeout(20*time.Second))
})
