// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mounts are the Secrets that a container mounts by themselves, as folders of this machine. The generic kubeconfig is not among them.
type mounts []aMount

type aMount struct{ path, folder, secret string }

func newMounts(spec corev1.PodSpec) (all mounts) {
	GinkgoHelper()
	secrets := map[string]string{}
	for _, volume := range spec.Volumes {
		if volume.Secret != nil {
			secrets[volume.Name] = volume.Secret.SecretName
		}
	}
	for _, mount := range spec.Containers[0].VolumeMounts {
		if secret := secrets[mount.Name]; secret != "" {
			all = append(all, aMount{path: mount.MountPath, folder: must(os.MkdirTemp(seedCluster.Dir(), "mount-")), secret: secret})
		}
	}
	return all
}

// replace has a text name the folders of this machine.
func (m mounts) replace(text string) string {
	for _, one := range m {
		text = strings.ReplaceAll(text, one.path, one.folder)
	}
	return text
}

// refresh brings the files to what the Secrets contain, also while the process runs. What a pod has mounted stays when its Secret goes.
func (m mounts) refresh(ctx context.Context, namespace string) {
	for _, one := range m {
		var secret corev1.Secret
		err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: one.secret}, &secret)
		if ctx.Err() != nil {
			return
		}
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		for name, data := range secret.Data {
			one.write(name, []byte(m.replace(string(data))))
		}
	}
}

func (one aMount) write(name string, data []byte) {
	path := filepath.Join(one.folder, name)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, data) {
		return
	}
	Expect(os.WriteFile(path+".new", data, 0o600)).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}
