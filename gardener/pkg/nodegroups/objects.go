// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Names. The chart limits the rights of the extension to them.
const (
	ServiceName   = "extension-evenkeel-nodegroups"
	AuthorityName = ServiceName + "-ca"
	ServerName    = ServiceName + "-server"
	ClientName    = ServiceName + "-client"
)

const (
	// Port of the server.
	Port int32 = 8086
	// ClientFolder is where cluster-autoscaler finds its files.
	ClientFolder = "/etc/cluster-autoscaler/evenkeel"
)

// service returns the Service of the manager's pods. It is headless, so that the caller tries all
// pods: only the leader listens.
func service(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ServiceName},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone,
			Selector: map[string]string{
				v1beta1constants.LabelApp: v1beta1constants.LabelKubernetes, v1beta1constants.LabelRole: v1beta1constants.DeploymentNameMachineControllerManager,
			},
			Ports: []corev1.ServicePort{{Name: "node-groups", Protocol: corev1.ProtocolTCP, Port: Port, TargetPort: intstr.FromInt32(Port)}},
		},
	}
}

// host returns the name that the caller verifies.
func host(namespace string) string { return ServiceName + "." + namespace + ".svc" }

func hosts(namespace string) []string { return []string{host(namespace)} }

// cloudConfig allows more time for an answer than the caller's default: see docs/autoscaler.md.
func cloudConfig(namespace string) []byte {
	return fmt.Appendf(nil, "address: %s:%d\ncert: %[3]s/%[4]s\nkey: %[3]s/%[5]s\ncacert: %[3]s/%[6]s\ngrpc_timeout: 20s\n",
		host(namespace), Port, ClientFolder, CertificateKey, PrivateKey, AuthoritiesKey)
}

func secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeOpaque, Data: data}
}

// checksum returns a checksum of the values of some keys.
func checksum(data map[string][]byte, keys ...string) string {
	h := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(h, "%s %d\n", key, len(data[key]))
		h.Write(data[key])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// AuthorityChecksum changes when the server of a manager must restart: see law 2.
func AuthorityChecksum(server *corev1.Secret) string { return checksum(server.Data, AuthoritiesKey) }

// FilesChecksum changes with everything that cluster-autoscaler reads when it starts.
func FilesChecksum(client *corev1.Secret) string {
	return checksum(client.Data, slices.Sorted(maps.Keys(client.Data))...)
}
