// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writtenKinds are those that gardenlet writes into a Shoot's namespace, as far as there are any here.
var writtenKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	{Group: "resources.gardener.cloud", Version: "v1alpha1", Kind: "ManagedResource"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "Extension"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "Worker"},
}

// everything is what the API server has of a Shoot, in its bytes: resourceVersions and managed fields are in there, too.
func (s *shoot) everything(ctx context.Context) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, kind := range writtenKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		options := []client.ListOption{client.InNamespace(s.namespace)}
		if kind.Kind == "Namespace" {
			options = []client.ListOption{client.MatchingFields{"metadata.name": s.namespace}}
		}
		if err := seed.List(ctx, list, options...); !meta.IsNoMatchError(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		for _, item := range list.Items {
			all[kind.Kind+" "+item.GetName()] = string(must(item.MarshalJSON()))
		}
	}
	Expect(all).To(HaveKey("Deployment machine-controller-manager"))
	return all
}

// sentToWebhooks are the namespaces with an object that the API server sent to a webhook, since some byte of its audit log.
func sentToWebhooks(since int64) map[string]bool {
	GinkgoHelper()
	log := must(os.Open(seedCluster.AuditLog()))
	defer log.Close()
	must(log.Seek(since, 0))
	sent := map[string]bool{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return sent
		}
		if !bytes.Contains(line, []byte("mutation.webhook.admission.k8s.io/")) {
			continue
		}
		var event struct{ ObjectRef struct{ Namespace string } }
		Expect(json.Unmarshal(line, &event)).To(Succeed())
		sent[event.ObjectRef.Namespace] = true
	}
}

func auditSize() int64 {
	GinkgoHelper()
	return must(os.Stat(seedCluster.AuditLog())).Size()
}

// differences are the objects that are not the same, and how they are now.
func differences(before, after map[string]string) []string {
	var lines []string
	for name, text := range after {
		if before[name] != text {
			lines = append(lines, fmt.Sprintf("%s was %s and is %s", name, before[name], text))
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			lines = append(lines, name+" is gone")
		}
	}
	return lines
}

// tenShoots have stock machine-controller-manager, and were reconciled.
func tenShoots(ctx context.Context) []*shoot {
	GinkgoHelper()
	var all []*shoot
	for i := range 10 {
		s := writeShoot(ctx, fmt.Sprintf("ten%d", i), stock, newPool("pool", 3, 9, "a", "b", "c"))
		s.withWorkers(ctx)
		all = append(all, s)
	}
	for _, s := range all {
		s.gardenletWrites(ctx)
	}
	return all
}

func isNeighbour(i int) bool { return !strings.Contains("258", fmt.Sprint(i)) }
