// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

// setFault makes something go wrong for a zone, class or machine, or ends it where fault is empty. Specs of several
// processes share the one ConfigMap of faults.
func setFault(ctx context.Context, level, name, fault string) {
	GinkgoHelper()
	Expect(retry.OnError(retry.DefaultBackoff, lostRace, func() error { return editFaults(ctx, level, name, fault) })).To(Succeed())
	if fault != "" {
		DeferCleanup(func(ctx context.Context) { setFault(ctx, level, name, "") })
	}
}

func lostRace(err error) bool { return errors.IsConflict(err) || errors.IsAlreadyExists(err) }

func editFaults(ctx context.Context, level, name, fault string) error {
	configs := control.CoreV1().ConfigMaps(namespace)
	config, err := configs.Get(ctx, virtual.FaultsConfigMap, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		config, err = configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	faults := map[string]map[string]any{}
	if err := yaml.Unmarshal([]byte(config.Data[virtual.FaultsKey]), &faults); err != nil {
		return err
	}
	if faults[level] == nil {
		faults[level] = map[string]any{}
	}
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(fault), &parsed); err != nil {
		return err
	}
	faults[level][name] = parsed
	if fault == "" {
		delete(faults[level], name)
	}
	text, err := yaml.Marshal(faults)
	if err != nil {
		return err
	}
	config.Data = map[string]string{virtual.FaultsKey: string(text)}
	_, err = configs.Update(ctx, config, metav1.UpdateOptions{})
	return err
}
