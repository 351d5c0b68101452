// SPDX-License-Identifier: Apache-2.0

// Command rights prints which requests of the chart's accounts an audit log shows as refused, and
// which of their rights were not used.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/test/rights"
)

func main() {
	folder := flag.String("audit", "", "folder with the audit log")
	excuses := flag.String("excuses", "", "file with rights that no run uses, and why they are granted")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./test/rights/cmd -audit folder -excuses file manifest...")
		flag.PrintDefaults()
	}
	flag.Parse()
	wrong, err := check(*folder, *excuses, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "rights:", err)
		os.Exit(2)
	}
	for _, line := range wrong {
		fmt.Println(line)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

func check(folder, excuses string, paths []string) ([]string, error) {
	granted, err := granted(paths)
	if err != nil {
		return nil, err
	}
	log, lines, err := logged(folder, granted)
	if err != nil {
		return nil, err
	}
	excused, err := excused(excuses)
	if err != nil {
		return nil, err
	}
	fmt.Printf("%d rights granted, %d kinds of requests in %d MB of log, %d refused, %d excuses\n",
		len(granted), len(log.Used), lines>>20, len(log.Refused), len(excused))
	return rights.Check(granted, log, excused), nil
}

func granted(paths []string) ([]rights.Right, error) {
	var texts []io.Reader
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		defer file.Close()
		texts = append(texts, file)
	}
	all, err := rights.Granted(texts...)
	if err == nil && len(all) == 0 {
		err = errors.New("the manifests grant nothing")
	}
	return all, err
}

// logged reads all files of the log: it is cut when it gets long.
func logged(folder string, granted []rights.Right) (rights.Log, int64, error) {
	var accounts []string
	for _, right := range granted {
		accounts = append(accounts, right.Account)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("find audit log in %s: %w", folder, os.ErrNotExist)
	}
	var all rights.Log
	var size int64
	for _, path := range paths {
		if err != nil {
			break
		}
		var one rights.Log
		var bytes int64
		one, bytes, err = readLog(path, slices.Compact(accounts))
		all.Used, all.Refused = append(all.Used, one.Used...), append(all.Refused, one.Refused...)
		size += bytes
	}
	return all, size, err
}

func readLog(path string, accounts []string) (rights.Log, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return rights.Log{}, 0, err
	}
	defer file.Close()
	log, err := rights.Read(file, accounts...)
	if err != nil {
		return log, 0, fmt.Errorf("%s: %w", path, err)
	}
	size, err := file.Seek(0, io.SeekCurrent)
	return log, size, err
}

func excused(path string) ([]rights.Excuse, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read excuses: %w", err)
	}
	var all []rights.Excuse
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read excuses %s: %w", path, err)
	}
	return all, nil
}
