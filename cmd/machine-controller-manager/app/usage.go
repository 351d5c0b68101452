// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/internal/version"
)

// PrintUsage explains the binary and its flags.
func PrintUsage(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprint(w, `Evenkeel's machine-controller-manager runs Gardener's controllers for MachineDeployments, MachineSets and machine safety,
unmodified, such that they never act on a state older than their own writes. It takes the place of the stock binary:
every flag of that means here what it means there, and the lease is the same, so the two never work at the same time.

  machine-controller-manager --control-kubeconfig=control.yaml --target-kubeconfig=target.yaml --namespace=shoot--a--b
  machine-controller-manager --control-kubeconfig=inClusterConfig --target-kubeconfig=none

With --controllers=balancer it distributes the replicas of Balancers and nothing else, in any cluster, with a lease of
its own.

Flags:
`)
	fmt.Fprint(w, flags.FlagUsagesWrapped(120))
}

// Version is one line for people.
func Version() string { return version.Line(name) }
