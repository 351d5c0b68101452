// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"path/filepath"
	"strconv"
)

const (
	serviceCIDR         = "10.96.0.0/16"
	kubernetesServiceIP = "10.96.0.1"
	podCIDR             = "10.128.0.1/9"
	issuer              = "https://kubernetes.default.svc"
	aggregator          = "front-proxy-client"
)

// identities of the components that are clients of the API server, as kubeadm defines them; kwok
// stands for all kubelets.
var identities = map[string][]string{
	ControllerManager: {"system:kube-controller-manager"},
	Scheduler:         {"system:kube-scheduler"},
	Kwok:              {"evenkeel:kwok", "system:masters"},
}

// binary that contains a component.
func (c *Cluster) binary(component string) string {
	if component == Kwok {
		return filepath.Join(binDir(c.options.Root), kwokBinary)
	}
	return filepath.Join(c.options.controlPlaneDir(), controlPlaneBinary)
}

// podGroups turns on PodGroups, whose pods kube-scheduler starts together. Other versions than the
// default have none, or serve another version of them.
func (c *Cluster) podGroups(flags ...string) []string {
	if c.options.Kubernetes != "" {
		return nil
	}
	return append(flags, "--feature-gates=GenericWorkload=true,GangScheduling=true")
}

func (c *Cluster) componentArgs(component string) []string {
	args := map[string]func() []string{
		Etcd:              c.etcdArgs,
		APIServer:         c.apiServerArgs,
		ControllerManager: c.controllerManagerArgs,
		Scheduler:         c.schedulerArgs,
		Kwok:              c.kwokArgs,
	}[component]()
	return append(args, c.options.ExtraArgs[component]...)
}

func (c *Cluster) etcdArgs() []string {
	client, peer := c.baseURL(etcdClientPort), c.baseURL(etcdPeerPort)
	ca, server := c.keys.etcd.files.certFile, c.keys.etcdServer
	args := []string{
		"--name=etcd",
		"--data-dir=" + c.etcdDir(),
		"--log-level=warn",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + ca, "--cert-file=" + server.certFile, "--key-file=" + server.keyFile,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca, "--peer-cert-file=" + server.certFile, "--peer-key-file=" + server.keyFile,
	}
	if c.options.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (c *Cluster) apiServerArgs() []string {
	ca, server, accounts := c.keys.cluster.files.certFile, c.keys.server, c.keys.serviceAccounts
	args := []string{
		"--bind-address=127.0.0.1", c.securePort(APIServer),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + server.certFile, "--tls-private-key-file=" + server.keyFile,
		"--client-ca-file=" + ca,
		"--requestheader-client-ca-file=" + c.keys.frontProxy.files.certFile, "--requestheader-allowed-names=" + aggregator,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.keys.frontProxyClient.certFile, "--proxy-client-key-file=" + c.keys.frontProxyClient.keyFile,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		"--service-account-issuer=" + issuer,
		"--service-account-signing-key-file=" + accounts.keyFile, "--service-account-key-file=" + accounts.certFile,
		"--etcd-servers=" + c.baseURL(etcdClientPort), "--etcd-cafile=" + c.keys.etcd.files.certFile,
		"--etcd-certfile=" + c.keys.etcdClient.certFile, "--etcd-keyfile=" + c.keys.etcdClient.keyFile,
	}
	args = append(args, c.podGroups("--runtime-config=scheduling.k8s.io/v1alpha2=true")...)
	if !c.options.hasComponent(ControllerManager) {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.RealNodes {
		args = append(args, "--enable-admission-plugins=NodeRestriction", egressFlag+c.egressConfig(),
			"--kubelet-client-certificate="+c.keys.kubeletClient.certFile, "--kubelet-client-key="+c.keys.kubeletClient.keyFile)
	}
	if c.options.Audit {
		args = append(args, "--audit-policy-file="+c.auditPolicy(), "--audit-log-path="+c.AuditLog(), "--audit-log-maxsize=100000") // one file, however large
	}
	return args
}

func (c *Cluster) controllerManagerArgs() []string {
	ca := c.keys.cluster.files
	return append(append(c.clientArgs(ControllerManager), c.podGroups()...),
		"--use-service-account-credentials",
		"--root-ca-file="+ca.certFile,
		"--service-account-private-key-file="+c.keys.serviceAccounts.keyFile,
		"--cluster-signing-cert-file="+ca.certFile, "--cluster-signing-key-file="+ca.keyFile,
		"--service-cluster-ip-range="+serviceCIDR,
		// Each controller first fetches a token. At the default of 20 requests per second, that
		// alone takes four seconds.
		"--kube-api-qps=200", "--kube-api-burst=400",
	)
}

func (c *Cluster) schedulerArgs() []string { return append(c.clientArgs(Scheduler), c.podGroups()...) }

// clientArgs are the flags that kube-controller-manager and kube-scheduler have in common.
func (c *Cluster) clientArgs(component string) []string {
	config, server := c.componentKubeconfig(component), c.keys.server
	return []string{
		"--bind-address=127.0.0.1", c.securePort(component),
		"--tls-cert-file=" + server.certFile, "--tls-private-key-file=" + server.keyFile,
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false",
	}
}

func (c *Cluster) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + c.componentKubeconfig(Kwok),
		"--address=" + loopback(c.portOf(Kwok)),
		"--cidr=" + podCIDR,
	}
}

func (c *Cluster) securePort(component string) string {
	return "--secure-port=" + strconv.Itoa(c.portOf(component))
}

func (c *Cluster) baseURL(listener string) string { return "https://" + loopback(c.portOf(listener)) }
