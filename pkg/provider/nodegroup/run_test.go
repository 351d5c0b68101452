// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/sim"
)

// authority signs certificates, and keeps its own in a file.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

// issue makes a certificate; without a signer it signs itself.
func issue(folder, name string, signer *authority) (*authority, TLS) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: signer == nil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, with := template, key
	if signer != nil {
		parent, with = signer.cert, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), with)
	Expect(err).NotTo(HaveOccurred())
	cert, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	raw, err := x509.MarshalECPrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	files := TLS{CertFile: filepath.Join(folder, name+".crt"), KeyFile: filepath.Join(folder, name+".key")}
	Expect(os.WriteFile(files.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)).To(Succeed())
	Expect(os.WriteFile(files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)).To(Succeed())
	return &authority{cert, key, files.CertFile}, files
}

// started is a Server on a socket, until the spec ends.
func started(secure credentials.TransportCredentials) (address string) {
	GinkgoHelper()
	api := sim.New(sim.Options{})
	config := api.ConfigFor(serving)
	ours, core := versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	machines, nodes := stores.New(ours, metav1.NamespaceAll), target.New(core, nil)
	s, err := New(Clients{Machines: ours.MachineV1alpha1()},
		Informers{Machines: machines, Target: nodes}, Options{Namespace: ns})
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	machines.Start(ctx)
	nodes.Start(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener, secure) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
		machines.Shutdown()
		nodes.Shutdown()
		api.Close()
	})
	return listener.Addr().String()
}

// call asks for groups once.
func call(address string, secure credentials.TransportCredentials) error {
	GinkgoHelper()
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure))
	Expect(err).NotTo(HaveOccurred())
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = pb.NewCloudProviderClient(connection).NodeGroups(ctx, &pb.NodeGroupsRequest{})
	return err
}

// calling are the credentials of a caller that trusts one authority and shows a certificate, or none.
func calling(trusted *authority, shown *TLS) credentials.TransportCredentials {
	GinkgoHelper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(trusted.cert)
	if shown != nil {
		cert, err := tls.LoadX509KeyPair(shown.CertFile, shown.KeyFile)
		Expect(err).NotTo(HaveOccurred())
		config.Certificates = []tls.Certificate{cert}
	}
	return credentials.NewTLS(config)
}

var _ = Describe("On a socket", func() {
	BeforeEach(func() {
		there := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines, 5*time.Second).ShouldNot(gleak.HaveLeaked(there)) })
	})

	It("serves only clients with a certificate signed by the right authority", func() {
		folder := GinkgoT().TempDir()
		ca, _ := issue(folder, "ca", nil)
		_, files := issue(folder, "server", ca)
		_, client := issue(folder, "client", ca)
		strangers, _ := issue(folder, "strangers", nil)
		_, stranger := issue(folder, "stranger", strangers)
		files.ClientCAFile = ca.file
		secure, err := files.Credentials()
		Expect(err).NotTo(HaveOccurred())
		address := started(secure)
		Expect(call(address, calling(ca, &client))).To(Succeed())
		Expect(code(call(address, calling(ca, nil)))).To(Equal(codes.Unavailable))
		Expect(code(call(address, calling(ca, &stranger)))).To(Equal(codes.Unavailable))
		Expect(code(call(address, insecure.NewCredentials()))).To(Equal(codes.Unavailable))
		By("renewed files count from the next connection on")
		_, _ = issue(folder, "server", strangers)
		Expect(code(call(address, calling(ca, &client)))).To(Equal(codes.Unavailable))
		Expect(call(address, calling(strangers, &client))).To(Succeed())
	})

	It("is not disturbed by garbage", func() {
		address := started(nil)
		Expect(call(address, insecure.NewCredentials())).To(Succeed())
		for _, garbage := range []string{"", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff", string(make([]byte, 1<<16))} {
			connection, err := net.Dial("tcp", address)
			Expect(err).NotTo(HaveOccurred())
			_, _ = connection.Write([]byte(garbage))
			Expect(call(address, insecure.NewCredentials())).To(Succeed())
			Expect(connection.Close()).To(Succeed())
		}
	})

	It("refuses a request that is too large, and an unknown method", func() {
		address := started(nil)
		connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		defer connection.Close()
		ctx := context.Background()
		_, err = pb.NewCloudProviderClient(connection).NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: string(make([]byte, maxRequestBytes))})
		Expect(code(err)).To(Equal(codes.ResourceExhausted))
		err = connection.Invoke(ctx, "/other.Service/Method", &pb.RefreshRequest{}, &pb.RefreshResponse{})
		Expect(code(err)).To(Equal(codes.Unimplemented))
	})

	DescribeTable("may be listened on",
		func(address string, files TLS, wrong string) {
			err := CheckAddress(address, files)
			if wrong == "" {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring(wrong)))
		},
		Entry("loopback", "127.0.0.1:8086", TLS{}, ""),
		Entry("loopback by its other name", "[::1]:8086", TLS{}, ""),
		Entry("loopback by name", "localhost:8086", TLS{}, ""),
		Entry("everywhere in clear text", ":8086", TLS{}, "reachable from outside"),
		Entry("an address in clear text", "10.0.0.1:8086", TLS{}, "reachable from outside"),
		Entry("a name in clear text", "example.org:8086", TLS{}, "reachable from outside"),
		Entry("everywhere with certificates", "0.0.0.0:8086", TLS{"a", "b", "c"}, ""),
		Entry("everywhere with a certificate that asks no client for one", "0.0.0.0:8086", TLS{CertFile: "a", KeyFile: "b"}, "required together"),
		Entry("everywhere with a certificate without its key", "0.0.0.0:8086", TLS{CertFile: "a", ClientCAFile: "c"}, "required together"),
		Entry("everywhere with a key without its certificate", "0.0.0.0:8086", TLS{KeyFile: "b", ClientCAFile: "c"}, "required together"),
		Entry("no port", "127.0.0.1", TLS{}, "host:port"),
	)

	It("reports which file is wrong", func() {
		folder := GinkgoT().TempDir()
		_, files := issue(folder, "server", nil)
		_, err := files.Credentials()
		Expect(err).To(MatchError(os.ErrNotExist))
		files.ClientCAFile = files.KeyFile
		_, err = files.Credentials()
		Expect(err).To(MatchError(errNoCertificate))
		files.CertFile = "/nowhere"
		_, err = files.Credentials()
		Expect(err).To(MatchError(ContainSubstring("/nowhere")))
	})
})

var _ = Describe("A panic", func() {
	It("is one call's", func() {
		_, err := recoverPanic(context.Background(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { panic("oh") })
		Expect(code(err)).To(Equal(codes.Internal))
	})
})

var _ = Describe("The end", func() {
	It("closes connections, ends calls under way, and writes nothing after (law 11)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			Expect(c.begin()).To(Succeed())
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == serving && r.Verb == "patch" {
					return time.Second, 0
				}
				return 0, 0
			})
			ended := make(chan error, 1)
			go func() { ended <- c.increaseOnly("pool", 1) }()
			time.Sleep(100 * time.Millisecond)
			begun := time.Now()
			Expect(c.process.Stop()).To(Succeed())
			Expect(<-ended).To(HaveOccurred())
			Expect(time.Since(begun)).To(BeNumerically("<", time.Second))
			Expect(code(c.begin())).To(Equal(codes.Unavailable))
			time.Sleep(time.Minute)
			Expect(c.writes()).To(BeEmpty())
			c.LatencyOf(nil)
		})
	})

	It("happens at once while the caches are not filled", func() {
		play(func(c *cluster) {
			Expect(c.process.Stop()).To(Succeed())
			c.Down(true, serving)
			again := c.Start(serving, server(c.wire))
			time.Sleep(time.Minute)
			Expect(again.Stop()).To(Succeed())
		})
	})
})
