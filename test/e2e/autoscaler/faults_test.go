// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

// faults are what the virtual provider does wrong from now on, until others are or the spec ends.
func faults(ctx context.Context, text string) {
	GinkgoHelper()
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}, Data: map[string]string{virtual.FaultsKey: text}}
	maps := kube.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(ctx, written, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(ctx, written, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		return
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(maps.Delete(ctx, virtual.FaultsConfigMap, metav1.DeleteOptions{})).To(Succeed())
	})
}

// outage is a zone without capacity.
func outage(ctx context.Context, zone string) {
	GinkgoHelper()
	faults(ctx, fmt.Sprintf("zones: {%s: {outage: true}}", zone))
}

// cutOff are machines that send no heartbeats any more.
func cutOff(ctx context.Context, machines ...string) {
	GinkgoHelper()
	text := "machines:\n"
	for _, m := range machines {
		text += fmt.Sprintf("  %s: {ready: Unknown}\n", m)
	}
	faults(ctx, text)
}
