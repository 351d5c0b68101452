// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	"context"
	"os"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/oracle"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// throughLens is stock behind the lens, without a reserve. It keeps promises as well or badly as stock.
var throughLens = oracle.Implementation{Name: "lens", Restarts: true, Program: func(ctx context.Context, config *rest.Config) error {
	return mcm.RunControllers(ctx, storm.Control(config), storm.Target(config), func(ctx context.Context, inner versioned.Interface) mcm.Lens {
		return lens.New(ctx, inner, lens.Options{})
	})
}}

var _ = Describe("Stock behind the lens", func() {
	for i, story := range oracle.Stories() {
		if os.Getenv("ORACLE") == "" && i%(2*thinned) != 1 {
			continue
		}
		It("ends as stock does: "+story.Name, func() {
			v := oracle.Judge(suite, story, throughLens)
			Expect(v.Differences).To(BeEmpty(), v.String())
		})
	}
	for _, slice := range oracle.Slices() {
		if os.Getenv("ORACLE") == "" {
			continue
		}
		It("ends as stock does, with random "+slice, func() {
			var all []string
			for _, seed := range seeds(1) {
				if v := oracle.Judge(suite, oracle.Random(slice, seed), throughLens); len(v.Differences) > 0 {
					all = append(all, v.String())
				}
			}
			Expect(strings.Join(all, "\n")).To(BeEmpty())
		})
	}
})
