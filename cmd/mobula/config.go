package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"mobula/internal/config"
	"mobula/internal/release"
	"mobula/wire"
)

func (a *app) config() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "config", Short: "List every setting, its value and where that comes from", Args: cobra.NoArgs,
		Long: `Config lists the settings of a node: the key in the YAML file, the environment variable, the
value that a node started now would have, and where it comes from. A flag goes before the
environment, that before the file, that before the default.`,
		Example: `  mobula config
  MOBULA_STORE_SIZE=2GiB mobula config --config node.yaml`,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(config.Input{File: file, Environ: a.environ})
			if err != nil {
				return err
			}
			all := cfg.Describe()
			return a.print(all, func(w io.Writer) {
				for _, v := range all {
					value := v.Value
					if value == "" || v.Source == "default" {
						value = v.Default
					}
					fmt.Fprintf(w, "%s = %s  (%s)\n    %s\n    %s, --%s, %s\n", v.Key, value, v.Source, v.Doc, v.Env, v.Flag, v.Kind)
				}
			})
		},
	}
	c.Flags().StringVar(&file, "config", "", "configuration file")
	return c
}

// versions is what version prints.
type versions struct {
	Mobula   string `json:"mobula"`
	Commit   string `json:"commit,omitempty"`
	Protocol uint32 `json:"protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this binary", Args: cobra.NoArgs,
		Example: "  mobula version\n  mobula version --json",
		RunE: func(*cobra.Command, []string) error {
			v := versions{Mobula: release.Build(), Protocol: wire.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Commit = s.Value
					}
				}
			}
			return a.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "mobula %s, protocol %d, %s, %s\n", v.Mobula, v.Protocol, v.Go, v.Platform)
				if v.Commit != "" {
					fmt.Fprintf(w, "commit %s\n", v.Commit)
				}
			})
		},
	}
}
