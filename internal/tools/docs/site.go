package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

//go:embed page.html
var layout string

var pageTemplate = template.Must(template.New("page").Parse(layout))

// entry is a line of the navigation.
type entry struct{ Title, To string }

// section is a part of it.
type section struct {
	Title   string
	Entries []entry
}

// pythonIndex is what the Makefile has pdoc write beside the pages.
const pythonIndex = "python-reference/index.html"

// site writes every page and reference below out, and looks whether its links lead somewhere.
func site(root, out string) error {
	all, err := pages(root)
	if err != nil {
		return err
	}
	s := &siteWriter{root: root, out: out, pages: make(map[string]*page)}
	for _, p := range all {
		s.pages[p.path] = p
	}
	var refs []*reference
	for _, folder := range public {
		r, err := referenceOf(root, folder)
		if err != nil {
			return err
		}
		refs = append(refs, r)
	}
	s.nav = s.navigation(all, refs)
	for _, p := range all {
		s.rewrite(p)
		var b bytes.Buffer
		if err := markdown.Renderer().Render(&b, p.text, p.doc); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		s.write(htmlOf(p.path), p.title, template.HTML(b.String())) //nolint:gosec // our own texts
	}
	for _, r := range refs {
		s.write(refOf(r.path), r.path, r.body)
	}
	s.write("index.html", "Mobula", template.HTML(fmt.Sprintf(`<meta http-equiv="refresh" content="0; url=%s">`, htmlOf("README.md")))) //nolint:gosec // a constant
	if err := errors.Join(s.errs...); err != nil {
		return err
	}
	return leads(out)
}

// href is a link of a page to another of the site.
var href = regexp.MustCompile(`href="([^"#?]+)`)

// leads is an error for each link of the pages written that leads to no file.
func leads(out string) error {
	var all []error
	err := filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".html") || strings.HasPrefix(name, filepath.Join(out, filepath.FromSlash(path.Dir(pythonIndex)))) {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range href.FindAllSubmatch(b, -1) {
			if u, err := url.Parse(string(m[1])); err == nil && u.Scheme != "" {
				continue // another's
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(string(m[1])))); err != nil {
				all = append(all, fmt.Errorf("%s: link %q: %w", name, m[1], err))
			}
		}
		return nil
	})
	return errors.Join(append(all, err)...)
}

type siteWriter struct {
	root, out string
	pages     map[string]*page
	nav       []section
	errs      []error
}

func htmlOf(name string) string { return strings.TrimSuffix(name, ".md") + ".html" }

func refOf(importPath string) string {
	return "go/" + strings.ReplaceAll(importPath, "/", "-") + ".html"
}

// navigation gives every page and reference a place.
func (s *siteWriter) navigation(all []*page, refs []*reference) []section {
	start, guides, inside, decisions := section{Title: "Start"}, section{Title: "Guides"}, section{Title: "For contributors"}, section{Title: "Decisions"}
	for _, p := range all {
		e := entry{p.title, htmlOf(p.path)}
		switch {
		case strings.HasPrefix(p.path, "docs/guide/"):
			guides.Entries = append(guides.Entries, e)
		case strings.HasPrefix(p.path, "docs/decisions/"):
			decisions.Entries = append(decisions.Entries, e)
		case p.path == "ARCHITECTURE.md" || p.path == "CONTRIBUTING.md" || strings.HasSuffix(p.path, "dask_suite/README.md"):
			inside.Entries = append(inside.Entries, e)
		default:
			start.Entries = append(start.Entries, e)
		}
	}
	reference := section{Title: "Reference"}
	for _, r := range refs {
		reference.Entries = append(reference.Entries, entry{"Go: " + r.path, refOf(r.path)})
	}
	if _, err := os.Stat(filepath.Join(s.out, filepath.FromSlash(pythonIndex))); err == nil {
		reference.Entries = append(reference.Entries, entry{"Python: mobula", pythonIndex})
	}
	return []section{start, guides, reference, inside, decisions}
}

// rewrite turns a page's links to texts into links to their pages. What is no page, source above all, is named and not linked.
func (s *siteWriter) rewrite(p *page) {
	var sources []*ast.Link
	_ = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		l, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		u, err := url.Parse(string(l.Destination))
		if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
			return ast.WalkContinue, nil
		}
		to := path.Join(path.Dir(p.path), u.Path)
		if s.pages[to] == nil {
			to = path.Join(to, "README.md") // of a folder
		}
		if s.pages[to] == nil {
			sources = append(sources, l)
			return ast.WalkContinue, nil
		}
		u.Path = up(p.path) + htmlOf(to)
		l.Destination = []byte(u.String())
		return ast.WalkContinue, nil
	})
	for _, l := range sources {
		for c := l.FirstChild(); c != nil; c = l.FirstChild() {
			l.Parent().InsertBefore(l.Parent(), l, c)
		}
		l.Parent().RemoveChild(l.Parent(), l)
	}
}

// up is the way from a page to the site's root.
func up(name string) string { return strings.Repeat("../", strings.Count(name, "/")) }

func (s *siteWriter) write(name, title string, body template.HTML) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{"Title": title, "Body": body, "Nav": s.nav, "Up": up(name), "Here": name})
	if err == nil {
		full := filepath.Join(s.out, filepath.FromSlash(name))
		if err = os.MkdirAll(filepath.Dir(full), 0o755); err == nil {
			err = os.WriteFile(full, b.Bytes(), 0o644)
		}
	}
	s.errs = append(s.errs, err)
}
