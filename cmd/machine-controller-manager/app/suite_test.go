// SPDX-License-Identifier: Apache-2.0

package app

import (
	"flag"
	"io"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
)

// suite is for tests in virtual time.
var suite *testing.T

func TestApp(t *testing.T) {
	suite = t
	quiet := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(quiet)
	_ = quiet.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(io.Discard)
	RegisterFailHandler(Fail)
	RunSpecs(t, "machine-controller-manager")
}
