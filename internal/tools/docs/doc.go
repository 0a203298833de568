// Command docs checks the texts of this tree and makes a site of them.
//
//	docs check        dead links, paths and targets that are not there, snippets that do not compile
//	docs site FOLDER  the pages, and the reference of the public Go packages, as HTML
//
// It is a module of its own, so that its Markdown parser is no dependency of the runtime. It is started in its own
// folder or given -root.
//
// # What is checked
//
//   - A relative link leads to a file, and its fragment to a heading.
//   - What looks like a path in a code span ("raylet/owner", "doc.go") is there. Changelog apart, which tells of the past.
//   - "make TARGET" and "mobula COMMAND", in code spans and shell blocks, are a target and a command.
//   - Go blocks compile against this tree. One that begins with "package" is a program; the others of a page are one
//     package, statements each a function with ctx, c (a cluster), t and m (of testing) at hand. What a reader need not
//     see stands in a comment before the block: "<!-- go", declarations, "-->". After "<!-- go from FOLDER -->" the
//     blocks of the page are quotations instead: each is in a file of that folder, line by line.
//   - Python blocks are Python, and name nothing of package mobula that it has not.
//
// # State, blocking, errors
//
// A run owns nothing. It starts the go command, and Python if there is one, and waits for them. Every finding is a line
// "file:line: what"; the exit code is then 1.
package main
