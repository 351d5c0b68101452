// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
)

// TLS are files in PEM format: the certificate of the server, and the CA certificates for clients.
type TLS struct {
	CertFile, KeyFile string
	// ClientCAFile contains the CA certificates for clients.
	ClientCAFile string
}

// IsSet reports whether any of the files is set.
func (t TLS) IsSet() bool { return t != TLS{} }

// IsComplete reports whether all of the files are set.
func (t TLS) IsComplete() bool { return t.CertFile != "" && t.KeyFile != "" && t.ClientCAFile != "" }

// Credentials returns those of a server that requires a certificate from clients. It reads the
// files again for each connection, so that renewed certificates need no restart.
func (t TLS) Credentials() (credentials.TransportCredentials, error) {
	if _, err := t.loadConfig(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.loadConfig() },
	}), nil
}

func (t TLS) loadConfig() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	signers, err := os.ReadFile(t.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("load CA certificates for clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(signers) {
		return nil, fmt.Errorf("load CA certificates for clients: %w in %s", errNoCertificate, t.ClientCAFile)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, nil
}

var errNoCertificate = errors.New("no certificate")

// CheckAddress returns an error if a server must not listen there. Without certificates, it must be
// loopback, since clients can add and remove machines.
func CheckAddress(address string, t TLS) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: use host:port, for example 127.0.0.1:8086: %w", address, err)
	}
	if t.IsSet() && !t.IsComplete() {
		return errors.New("the certificate, its key and the CA certificates for clients are required together: set all three files")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !t.IsSet() {
		return fmt.Errorf("address %q is reachable from outside: it requires a certificate, its key and CA certificates for clients", address)
	}
	return nil
}
