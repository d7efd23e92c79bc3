// Command dockerfile is a filter around BuildKit's frontend, which turns a
// Dockerfile into build steps. Each line of standard input is one JSON object
// {"dockerfile":…,"target":…,"args":{…}}; the answer is one line with the
// configuration of the target's image and BuildKit's own warnings, or
// {"error":…}. It runs no step and fetches no base image: each is taken for an
// empty one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

type question struct {
	Dockerfile string            `json:"dockerfile"`
	Target     string            `json:"target"`
	Args       map[string]string `json:"args"`
}

type answer struct {
	User       string            `json:"user,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Env        []string          `json:"env,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Images that this target needs, by the names in FROM.
	Bases    []string `json:"bases,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// bases answers for registries, and remembers what was asked for.
type bases struct{ asked []string }

func (b *bases) ResolveSourceMetadata(_ context.Context, _ *pb.SourceOp, _ sourceresolver.Opt) (*sourceresolver.MetaResponse, error) {
	return nil, nil
}

func (b *bases) ResolveImageConfig(_ context.Context, name string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	b.asked = append(b.asked, name)
	config, err := json.Marshal(ocispecs.Image{})
	return name, digest.FromString(name), config, err
}

func judge(line []byte) (given answer) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	registries := &bases{}
	options := dockerfile2llb.ConvertOpt{MetaResolver: registries}
	options.Target = asked.Target
	options.BuildArgs = asked.Args
	options.Warn = func(rule, _, _, text string, place []parser.Range) {
		number := 0
		if len(place) > 0 {
			number = place[0].Start.Line
		}
		given.Warnings = append(given.Warnings, fmt.Sprintf("line %d: %s (%s)", number, text, rule))
	}
	_, image, _, _, err := dockerfile2llb.Dockerfile2LLB(context.Background(), []byte(asked.Dockerfile), options)
	if err != nil {
		// With the warnings, which may be why.
		given.Error = err.Error()
		return given
	}
	given.User = image.Config.User
	given.Entrypoint = image.Config.Entrypoint
	given.Env = image.Config.Env
	given.Labels = image.Config.Labels
	given.Bases = registries.asked
	return given
}

func main() {
	input := bufio.NewReader(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			if err := output.Encode(judge(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
