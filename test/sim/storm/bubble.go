// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"flag"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/onsi/ginkgo/v2"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/test/sim"
)

// Bubble runs body in virtual time, which begins on 1 January 2000. A failed expectation ends body
// and fails the spec. Everything that body starts must have ended when it returns.
func Bubble(t *testing.T, body func()) {
	t.Helper()
	prepare()
	passed := false
	synctest.Test(t, func(*testing.T) {
		defer ginkgo.GinkgoRecover()
		body()
		passed = true
	})
	if !passed {
		ginkgo.Fail("the run in virtual time failed", 1) // recorded already; this ends the spec
	}
}

// prepare makes client-go fit for virtual time: its error handler would find that the last error
// was in the future, and sleep for the years in between.
var prepare = sync.OnceFunc(func() {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the one that logs
	log := io.Discard
	if Repeating() {
		log = ginkgo.GinkgoWriter
	}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err) // klog has these flags
		}
	}
	klog.SetOutput(log)
})

// endless returns what ends the process when writes never cease within one moment, unless the
// options have something else. It prints which run that was.
func endless(o sim.Options) func(what string) {
	if o.Endless != nil {
		return o.Endless
	}
	return func(what string) {
		sim.EndProcess(fmt.Sprintf("%s, seed %d: %s", ginkgo.CurrentSpecReport().FullText(), o.Seed, what))
	}
}
