// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// whoami asks the API server whom it takes a component for.
func (c *Cluster) whoami(ctx context.Context, component string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.componentKubeconfig(component))
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// listening returns the TCP addresses that the process pid accepts connections on.
func listening(pid int) (addresses []string) {
	inodes := socketsOf(pid)
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		Expect(err).NotTo(HaveOccurred())
		for _, line := range strings.Split(string(text), "\n")[1:] {
			const local, state, inode, listen = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if len(fields) > inode && fields[state] == listen && inodes[fields[inode]] {
				addresses = append(addresses, parseAddress(fields[local]))
			}
		}
	}
	return addresses
}

func socketsOf(pid int) map[string]bool {
	inodes := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	Expect(err).NotTo(HaveOccurred())
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes[strings.Trim(target, "socket:[]")] = true
		}
	}
	return inodes
}

// parseAddress reads what the kernel writes: 32-bit words in the machine's order, a colon, the port.
func parseAddress(text string) string {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	Expect(err).NotTo(HaveOccurred())
	ip := make(net.IP, len(raw))
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(ip[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	number, err := strconv.ParseUint(port, 16, 16)
	Expect(err).NotTo(HaveOccurred())
	return net.JoinHostPort(ip.String(), strconv.FormatUint(number, 10))
}
