// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

func TestApp(t *testing.T) {
	running.Silence()
	RegisterFailHandler(Fail)
	RunSpecs(t, Name)
}

// eventually is how long a test waits for what takes milliseconds.
const eventually = time.Minute

func parsed(arguments ...string) *Options {
	o := NewOptions()
	ExpectWithOffset(1, o.Flags().Parse(arguments)).To(Succeed())
	return o
}

// start runs some controllers on a simulated cluster.
func start(server *sim.Server, controllers string, arguments ...string) *running.Process {
	GinkgoHelper()
	port := running.FreePort()
	o := parsed(append([]string{
		fmt.Sprint("--port=", port), "--kube-api-qps=1000", "--kube-api-burst=1000",
		"--kubeconfig=" + running.Kubeconfig(server, "workloads"), "--controllers=" + controllers,
	}, arguments...)...)
	Expect(o.Validate()).To(Succeed())
	return running.Start(server, port, func(ctx context.Context) error { return Run(ctx, o) })
}
