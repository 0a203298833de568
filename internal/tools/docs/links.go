package main

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// tree is what texts speak of.
type tree struct {
	root     string
	pages    map[string]*page
	names    map[string]bool // of files, without their folder
	targets  map[string]bool // of make
	commands map[string]bool // of mobula
}

func newTree(root string, all []*page) (*tree, error) {
	t := &tree{root: root, pages: make(map[string]*page), names: make(map[string]bool)}
	for _, p := range all {
		t.pages[p.path] = p
	}
	if err := walk(root, func(name string) error { t.names[path.Base(name)] = true; return nil }); err != nil {
		return nil, err
	}
	var err error
	if t.targets, err = grep(regexp.MustCompile(`(?m)^([a-z][a-z-]*):`), filepath.Join(root, "Makefile")); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "cmd", "mobula", "*.go"))
	if err == nil {
		t.commands, err = grep(regexp.MustCompile(`Use: "([a-z]+)`), files...)
	}
	return t, err
}

// grep gives what the first group of a pattern is in files.
func grep(pattern *regexp.Regexp, files ...string) (map[string]bool, error) {
	out := make(map[string]bool)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range pattern.FindAllSubmatch(b, -1) {
			out[string(m[1])] = true
		}
	}
	return out, nil
}

func (t *tree) exists(name string) bool {
	_, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(name)))
	return err == nil
}

// checkLinks gives the links of a page that lead nowhere.
func (t *tree) checkLinks(p *page) (out []string) {
	for _, l := range p.links {
		u, err := url.Parse(l.text)
		if err != nil {
			out = append(out, finding(p, l.line, "link %q: %v", l.text, err))
			continue
		}
		if u.Scheme != "" || u.Host != "" {
			continue // another's
		}
		to := p.path
		if u.Path != "" {
			to = path.Join(path.Dir(p.path), u.Path)
		}
		switch target := t.pages[to]; {
		case strings.HasPrefix(to, "../") || !t.exists(to):
			out = append(out, finding(p, l.line, "link %q: there is no %s", l.text, to))
		case u.Fragment != "" && (target == nil || !target.anchors[u.Fragment]):
			out = append(out, finding(p, l.line, "link %q: %s has no heading %q", l.text, to, u.Fragment))
		}
	}
	return out
}

var (
	pathLike = regexp.MustCompile(`^[A-Za-z_][\w.-]*(/[\w.-]+)+/?$`)
	fileLike = regexp.MustCompile(`^[\w-]+\.(go|py|md|proto|sh|toml)$`)
	standIn  = regexp.MustCompile(`(^|/)([A-Z]+|[0-9]+)($|/)`) // of a part that is any name: owner/JOB, worker/3
	makes    = regexp.MustCompile(`(?m)(?:^|&& |; )(?:[A-Z_]+=\S+ )*make ([a-z][a-z-]*)`)
	commands = regexp.MustCompile(`(?m)(?:^|&& |; )(?:[A-Z_]+=\S+ )*(?:bin/)?mobula ([a-z]+)`)
)

// checkNames gives what a page names and is not there.
func (t *tree) checkNames(p *page) (out []string) {
	for _, s := range p.spans {
		switch {
		case p.path == "CHANGELOG.md":
		case fileLike.MatchString(s.text):
			if !t.names[s.text] {
				out = append(out, finding(p, s.line, "there is no file %s", s.text))
			}
		case pathLike.MatchString(s.text) && !standIn.MatchString(s.text):
			if !t.pathIsThere(p, strings.TrimSuffix(s.text, "/")) {
				out = append(out, finding(p, s.line, "there is no %s", s.text))
			}
		}
		out = append(out, t.checkCommands(p, s)...)
	}
	for _, b := range p.blocks {
		if b.language == "sh" || b.language == "" {
			out = append(out, t.checkCommands(p, b.found)...)
		}
	}
	return out
}

// pathIsThere tells whether a path is one of the tree's, from the root or the page's folder, or begins with nothing of the tree.
func (t *tree) pathIsThere(p *page, name string) bool {
	first, rest, _ := strings.Cut(name, "/")
	if first == "mobula" { // an import path
		first, _, _ = strings.Cut(rest, "/")
		name = rest
	}
	return built(name) || !t.exists(first) || t.exists(name) || t.exists(path.Join(path.Dir(p.path), name))
}

func (t *tree) checkCommands(p *page, s found) (out []string) {
	for _, m := range makes.FindAllStringSubmatch(s.text, -1) {
		if !t.targets[m[1]] {
			out = append(out, finding(p, s.line, "make has no target %s", m[1]))
		}
	}
	for _, m := range commands.FindAllStringSubmatch(s.text, -1) {
		if !t.commands[m[1]] {
			out = append(out, finding(p, s.line, "mobula has no command %s", m[1]))
		}
	}
	return out
}
