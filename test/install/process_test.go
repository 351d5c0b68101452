// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/running"
)

// soon is how long a process may take to start and to take its lease.
const soon = 30 * time.Second

var _ = Describe("Our binary, as the chart's account, with the flags of the chart's Deployment", func() {
	DescribeTable("works, is refused nothing, and shows metrics to who may see them",
		func(ctx context.Context, folder, account, binary, controllers string, lease ...string) {
			built, err := tools.Kustomize(ctx, folder)
			Expect(err).NotTo(HaveOccurred())
			readers, err := tools.Kustomize(ctx, "kubernetes/deploy/metrics-reader")
			Expect(err).NotTo(HaveOccurred())
			all := objects(built)
			maps.Copy(all, objects(readers))
			address := running.FreeAddress()
			flags := here(argsOf(all["Deployment "+chart.Namespace+"/"+account]), address)
			Expect(flags).To(ContainElement("--controllers=" + controllers))
			sure(ctx, in(all), "apply", "--server-side", "--force-conflicts", "-f", "-")
			DeferCleanup(func(ctx context.Context) { sure(ctx, in(passing(all)), "delete", "--ignore-not-found", "-f", "-") })
			kubeconfig, err := cluster.AccountKubeconfig(ctx, chart.Namespace, account)
			Expect(err).NotTo(HaveOccurred())
			process, err := cluster.RunProgram(ctx, localcluster.Program{
				Name: "p-" + account, Package: "./cmd/" + binary,
				Kubeconfig: kubeconfig, Flags: append(flags, "--leader-elect-retry-period=500ms"),
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { Expect(process.Stop()).To(Succeed()) })
			Eventually(func() (string, error) {
				return kubectl(ctx, nil, append([]string{"get", "lease", "-o", "jsonpath={.spec.holderIdentity}"}, lease...)...)
			}, soon).Should(ContainSubstring("_"))

			Eventually(read).WithArguments(address, "").WithTimeout(soon).Should(Equal(http.StatusUnauthorized))
			Expect(read(address, "made up")).To(Equal(http.StatusUnauthorized))
			reader := "reader-of-" + account
			sure(ctx, nil, "create", "serviceaccount", reader)
			token := strings.TrimSpace(sure(ctx, nil, "create", "token", reader))
			Expect(read(address, token)).To(Equal(http.StatusForbidden))
			sure(ctx, nil, "create", "clusterrolebinding", reader, "--clusterrole=evenkeel-metrics-reader", "--serviceaccount=default:"+reader)
			// What was said of a token holds for ten seconds.
			Eventually(read).WithArguments(address, token).WithTimeout(soon).Should(Equal(http.StatusOK))

			Expect(process.Stop()).To(Succeed())
			log, err := os.ReadFile(cluster.AuditLog())
			Expect(err).NotTo(HaveOccurred())
			asked := 0
			for line := range strings.Lines(string(log)) {
				if strings.Contains(line, `"username":"system:serviceaccount:`+chart.Namespace+":"+account+`"`) {
					asked++
					Expect(line).NotTo(ContainSubstring(`"authorization.k8s.io/decision":"forbid"`))
				}
			}
			Expect(asked).To(BeNumerically(">", 5))
		},
		Entry("the manager", "kubernetes", "machine-controller-manager", "machine-controller-manager", "mcm,nodegroup,release,balance,reserves,capacitybuffer", "machine-controller-manager"),
		Entry("the Balancer's", "kubernetes/deploy/balancer", "evenkeel-balancer", "evenkeel-workloads", "balancer", "-n", "kube-system", "balancer"),
		Entry("the hub's", "kubernetes/deploy/federation-hub", "evenkeel-federatedhpa", "evenkeel-workloads", "federatedhpa", "-n", "kube-system", "federatedhpa"),
	)
})

// passing are the objects that may go. CRDs would take machines with them, and no controller here ends a Namespace.
func passing(all map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(_ string, o *unstructured.Unstructured) bool {
		return o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"
	})
	return rest
}

// here are the flags of a process that runs on this machine: clusters by kubeconfig, and nothing beyond loopback.
func here(flags []string, metrics string) []string {
	flags = slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return strings.HasSuffix(flag, "-kubeconfig=inClusterConfig") || strings.HasPrefix(flag, "--secure-metrics-address=")
	})
	return append(flags, "--secure-metrics-address="+metrics)
}

// read is the status that who shows a token gets for metrics.
func read(address, token string) (int, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
