// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	// auditEnv names a folder for the API server's audit log, which records the requests of each account.
	auditEnv = "EVENKEEL_E2E_AUDIT"
	// managerControllers are all that the chart can have: a Balancer is looked after by a process with other rights.
	managerControllers = "--controllers=mcm,nodegroup,release,balance,reserves,capacitybuffer,booking,preparation"

	managerAccess = "kubernetes/deploy/manager/access.yaml"
)

// allAccess is what the chart lets its processes do in one cluster for all, with a Gardener and prepared machines.
var allAccess = []string{
	managerAccess, "kubernetes/deploy/gardener/access.yaml", "kubernetes/deploy/preparation/access.yaml", "kubernetes/deploy/booking/access.yaml", "kubernetes/deploy/target/access.yaml", "kubernetes/deploy/balancer/access.yaml",
}

// accountOf is a kubeconfig of one of the chart's accounts.
func accountOf(ctx context.Context, c *localcluster.Cluster, account string) string {
	GinkgoHelper()
	path, err := c.AccountKubeconfig(ctx, chart.Namespace, account)
	Expect(err).NotTo(HaveOccurred())
	return path
}
