//go:build tools

// Package h2spec pins the version of the suite that test_h2spec.py runs.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
