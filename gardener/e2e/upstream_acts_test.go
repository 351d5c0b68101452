// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/autoscaling/clusterautoscaler"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	fakesecrets "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

const (
	// forksImage is never started: the fork cannot be built here.
	forksImage    = "gardener/cluster-autoscaler:v1.36.0"
	upstreamImage = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1"
	// withoutReserve lets only cluster-autoscaler give machines to pods.
	withoutReserve = `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","autoscaler":"upstream"}`
	withUpstream   = `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"pool","excess":2}],"autoscaler":"upstream"}`
)

// upstreamBinary is an unmodified cluster-autoscaler that was built for external gRPC providers, or none: without its story.
var upstreamBinary = os.Getenv("CLUSTER_AUTOSCALER")

func init() {
	images[upstreamImage] = map[string]string{"./cluster-autoscaler": upstreamBinary}
}

// deployAutoscaler has Gardener deploy the fork, as for a Shoot whose owner is in a hurry.
func (s *shoot) deployAutoscaler(ctx context.Context) {
	GinkgoHelper()
	namespace, version := &corev1.Namespace{}, semver.MustParse("1.36.0")
	Expect(seed.Get(ctx, client.ObjectKey{Name: s.namespace}, namespace)).To(Succeed())
	hurried := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	verbosity := int32(4)
	component := clusterautoscaler.New(seed, s.namespace, fakesecrets.New(seed, s.namespace), forksImage, 1, &gardencorev1beta1.ClusterAutoscaler{
		ScanInterval: hurried(time.Second), ScaleDownUnneededTime: hurried(5 * time.Second), ScaleDownDelayAfterAdd: hurried(5 * time.Second),
		ScaleDownDelayAfterFailure: hurried(5 * time.Second), Verbosity: &verbosity,
	}, nil, version, version)
	component.SetNamespaceUID(namespace.UID)
	var machines []extensionsv1alpha1.MachineDeployment
	for _, d := range s.deployments(ctx) {
		machines = append(machines, extensionsv1alpha1.MachineDeployment{Name: d.Name, Minimum: 2, Maximum: 6})
	}
	component.SetMachineDeployments(machines)
	Expect(component.Deploy(ctx)).To(Succeed())
}

func (s *shoot) autoscaler(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: mutation.AutoscalerName}, d)).To(Succeed())
	return d
}

// becomesUpstream waits until both Deployments are changed.
func (s *shoot) becomesUpstream(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string { return imageOf(s.autoscaler(ctx)) }).WithContext(ctx).WithTimeout(soon).Should(Equal(upstreamImage))
	Expect(mutation.IsServing(s.manager(ctx))).To(BeTrue())
}

// certified calls the server of the running manager with what cluster-autoscaler reads now.
type certified struct{ files map[string][]byte }

func (s *shoot) caller(ctx context.Context) certified {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: nodegroups.ClientName}, &secret)).To(Succeed())
	return certified{secret.Data}
}

// groups are the node groups of a Shoot with their limits.
func (c certified) groups(ctx context.Context, s *shoot) ([]string, error) {
	pair, err := tls.X509KeyPair(c.files[nodegroups.CertificateKey], c.files[nodegroups.PrivateKey])
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(c.files[nodegroups.AuthoritiesKey])
	pods := s.kubelet.running()
	if len(pods) != 1 {
		return nil, fmt.Errorf("%d pods run", len(pods))
	}
	connection, err := grpc.NewClient("passthrough:///"+pods[0].groups, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: trusted, ServerName: nodegroups.ServiceName + "." + s.namespace + ".svc",
	})))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	response, err := pb.NewCloudProviderClient(connection).NodeGroups(ctx, &pb.NodeGroupsRequest{})
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, g := range response.NodeGroups {
		groups = append(groups, fmt.Sprintf("%s %d:%d", g.Id, g.MinSize, g.MaxSize))
	}
	return groups, nil
}

// rotates is how far the Shoot has rotated its authorities.
func (s *shoot) rotates(ctx context.Context, phase gardencorev1beta1.CredentialsRotationPhase) {
	GinkgoHelper()
	s.cluster.Shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &metav1.Time{Time: time.Unix(1, 0)}},
	}}
	s.saveCluster(ctx)
}

// misdirected has the API server call an address without a server for Deployments, while the extension runs.
func misdirected(ctx context.Context) (over func()) {
	GinkgoHelper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	Expect(seed.Get(ctx, client.ObjectKey{Name: extensionProgram}, configuration)).To(Succeed())
	urls := []string{}
	patch := client.MergeFrom(configuration.DeepCopy())
	for i := range configuration.Webhooks {
		address := &configuration.Webhooks[i].ClientConfig
		urls = append(urls, *address.URL)
		nobody := strings.Replace(*address.URL, strconv.Itoa(must(seedCluster.Port(extensionProgram))), strconv.Itoa(must(seedCluster.Port("nobody"))), 1)
		address.URL = &nobody
	}
	Expect(seed.Patch(ctx, configuration, patch)).To(Succeed())
	return func() {
		patch := client.MergeFrom(configuration.DeepCopy())
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.URL = &urls[i]
		}
		Expect(seed.Patch(ctx, configuration, patch)).To(Succeed())
	}
}

// newNetwork is a double of the network of the seed for cluster-autoscaler: a proxy that reaches Services by their names, if the pod
// has the label that gardener-resource-manager asks for.
func (s *shoot) newNetwork(ctx context.Context) {
	GinkgoHelper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		upstream, err := s.dial(ctx, r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer upstream.Close()
		caller, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer caller.Close()
		if _, err := io.WriteString(caller, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(upstream, buffered)
			_ = upstream.Close()
		}()
		_, _ = io.Copy(caller, upstream)
	}))
	DeferCleanup(server.CloseClientConnections)
	GinkgoT().Setenv("HTTPS_PROXY", server.URL)
}

// dial connects to one of the pods of a Service that listen.
func (s *shoot) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(host, "."+s.namespace+".svc")
	var service corev1.Service
	if err := seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &service); err != nil {
		return nil, err
	}
	number := must(strconv.Atoi(port))
	if s.autoscaler(ctx).Spec.Template.Labels[gardenerutils.NetworkPolicyLabel(name, int32(number))] != "allowed" {
		return nil, fmt.Errorf("no NetworkPolicy allows %s", address)
	}
	labels := s.manager(ctx).Spec.Template.Labels
	for key, value := range service.Spec.Selector {
		if labels[key] != value {
			return nil, fmt.Errorf("the Service selects %s=%s", key, value)
		}
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == int32(number) }) {
		return nil, fmt.Errorf("the Service has no port %s", port)
	}
	for _, p := range slices.Backward(s.kubelet.running()) {
		if c, err := net.Dial("tcp", p.groups); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("nobody listens for %s", address)
}
