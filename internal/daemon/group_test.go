// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Together", func() {
	It("ends all when one ends, and waits for the slowest", bubble(func() {
		from := time.Now()
		broken := errors.New("broken")
		err := Together(context.Background(),
			func(context.Context) error { time.Sleep(time.Second); return broken },
			func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Minute); return ctx.Err() },
		)
		Expect(err).To(MatchError(broken))
		Expect(err).NotTo(MatchError(context.Canceled))
		Expect(time.Since(from)).To(Equal(time.Second + time.Minute))
	}))

	It("ends without error when told to stop", bubble(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		Expect(Together(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })).To(Succeed())
	}))
})

var _ = Describe("Config", func() {
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
		clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]}`

	It("reads a kubeconfig", func() {
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(path, []byte(kubeconfig), 0o600)).To(Succeed())
		config, err := Config(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Host).To(Equal("https://127.0.0.1:6443"))
	})

	It("names the file it cannot read", func() {
		_, err := Config("/nowhere/kubeconfig")
		Expect(err).To(MatchError(os.ErrNotExist))
		Expect(err).To(MatchError(ContainSubstring("/nowhere/kubeconfig")))
	})

	DescribeTable("asks the pod for its service account", func(path string) {
		_, err := Config(path)
		Expect(err).To(MatchError(ContainSubstring("in-cluster")))
	}, Entry("without a path", ""), Entry("when told so", InCluster))
})

var _ = Describe("Readiness", func() {
	It("is there while waiting, goes with the turn, comes with the caches", func() {
		var r Readiness
		Expect(r.Check()).NotTo(Succeed())
		r.Wait()
		Expect(r.Check()).To(Succeed())
		r.Lead()
		Expect(r.Check()).NotTo(Succeed())
		r.Filled()
		Expect(r.Check()).To(Succeed())
	})
})
