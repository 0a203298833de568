package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// page is a text of the tree, and what of it is checked.
type page struct {
	path    string // from the root, with slashes
	text    []byte
	title   string
	doc     ast.Node
	links   []found
	spans   []found
	blocks  []block // comments for the checker among them
	anchors map[string]bool
}

// found is something at a place.
type found struct {
	line int
	text string
}

// block is a fenced block, or a comment.
type block struct {
	found
	language string // empty: none was said; "<!--": a comment
}

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()), // comments; the texts are ours
)

// finding is something that is not in order.
func finding(p *page, line int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", p.path, line, fmt.Sprintf(format, args...))
}

// pages reads every text below root, in the order of their paths. Folders that are not ours, or hidden, are left out.
func pages(root string) ([]*page, error) {
	var out []*page
	err := walk(root, func(name string) error {
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err == nil {
			out = append(out, parse(name, b))
		}
		return err
	})
	return out, err
}

// walk calls f for each file of the tree that is somebody's work.
func walk(root string, f func(name string) error) error {
	return filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "__pycache__"}, d.Name()) || built(name)) {
			return fs.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		return f(name)
	})
}

// built tells whether a path is of what the Makefile makes.
func built(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "bin" || first == "dist"
}

func parse(name string, b []byte) *page {
	p := &page{path: name, text: b, anchors: make(map[string]bool)}
	p.doc = markdown.Parser().Parse(text.NewReader(b))
	_ = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			p.take(n)
		}
		return ast.WalkContinue, nil
	})
	if p.title == "" {
		p.title = path.Base(name)
	}
	return p
}

func (p *page) take(n ast.Node) {
	switch n := n.(type) {
	case *ast.Link:
		p.links = append(p.links, found{p.line(n), string(n.Destination)})
	case *ast.Image:
		p.links = append(p.links, found{p.line(n), string(n.Destination)})
	case *ast.CodeSpan:
		p.spans = append(p.spans, found{p.line(n), string(textOf(n, p.text))})
	case *ast.FencedCodeBlock:
		first := 1
		if n.Lines().Len() > 0 {
			first = p.lineAt(n.Lines().At(0).Start)
		}
		p.blocks = append(p.blocks, block{found{first, string(lines(n, p.text))}, string(n.Language(p.text))})
	case *ast.HTMLBlock:
		if n.HTMLBlockType == ast.HTMLBlockType2 && n.Lines().Len() > 0 {
			s := string(lines(n, p.text))
			if n.HasClosure() {
				s += string(n.ClosureLine.Value(p.text))
			}
			p.blocks = append(p.blocks, block{found{p.lineAt(n.Lines().At(0).Start), s}, "<!--"})
		}
	case *ast.Heading:
		if id, ok := n.AttributeString("id"); ok {
			p.anchors[string(id.([]byte))] = true
		}
		if n.Level == 1 && p.title == "" {
			p.title = string(textOf(n, p.text))
		}
	}
}

// line is the line of an inline node: that of the first text in it, or of what it stands in.
func (p *page) line(n ast.Node) int {
	at := -1
	_ = ast.Walk(n, func(x ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := x.(*ast.Text); ok && entering {
			at = t.Segment.Start
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	for up := n; at < 0 && up != nil; up = up.Parent() {
		if up.Type() == ast.TypeBlock && up.Lines() != nil && up.Lines().Len() > 0 {
			at = up.Lines().At(0).Start
		}
	}
	return p.lineAt(max(at, 0))
}

func (p *page) lineAt(offset int) int { return 1 + bytes.Count(p.text[:offset], []byte("\n")) }

func lines(n ast.Node, source []byte) []byte {
	var out []byte
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		out = append(out, s.Value(source)...)
	}
	return out
}

// textOf is what is read of an inline node.
func textOf(n ast.Node, source []byte) []byte {
	var out []byte
	_ = ast.Walk(n, func(x ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := x.(*ast.Text); ok && entering {
			out = append(out, t.Segment.Value(source)...)
			if t.SoftLineBreak() {
				out = append(out, ' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out
}
