// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// packagingCommand writes what packages install below /usr/share. It is hidden, because only those who make
// packages need it.
func (a *app) packagingCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "packaging DIR",
		Short:  "Write man pages and completions",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			for path, write := range map[string]func(path string) error{
				"bash-completion/completions/asynclock":    func(path string) error { return root.GenBashCompletionFileV2(path, true) },
				"zsh/site-functions/_asynclock":            root.GenZshCompletionFile,
				"fish/vendor_completions.d/asynclock.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
				"man/man1/" + manName(root) + ".1":         func(path string) error { return writeManPages(root, filepath.Dir(path)) },
			} {
				path = filepath.Join(args[0], filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := write(path); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// writeManPages writes the pages of a command and of those below it that help shows.
func writeManPages(cmd *cobra.Command, dir string) error {
	for _, c := range shown(cmd) {
		if err := writeManPages(c, dir); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o644)
}

func shown(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			all = append(all, c)
		}
	}
	return all
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the help of a command as a man page. Package doc of cobra would take the help for Markdown, fill its
// lines, and add three dependencies. The help has its lines already.
func manPage(cmd *cobra.Command) string {
	var page, commands strings.Builder
	for _, c := range shown(cmd) {
		fmt.Fprintf(&commands, "%-25s %s\n", manName(c)+"(1)", c.Short)
	}
	fmt.Fprintf(&page, ".TH %s 1 \"\" asynclock\n", strings.ToUpper(manName(cmd)))
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&page, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
		}
	}
	section("NAME", manName(cmd)+" - "+cmd.Short)
	switch {
	case cmd.Runnable():
		section("SYNOPSIS", cmd.UseLine())
	case cmd.HasAvailableSubCommands():
		section("SYNOPSIS", cmd.CommandPath()+" COMMAND")
	}
	section("DESCRIPTION", cmp.Or(cmd.Long, cmd.Short))
	section("COMMANDS", commands.String())
	if cmd.Runnable() || !cmd.HasParent() {
		section("OPTIONS", cmd.LocalFlags().FlagUsagesWrapped(78)+cmd.InheritedFlags().FlagUsagesWrapped(78))
	}
	section("EXAMPLES", cmd.Example)
	if cmd.HasParent() {
		section("SEE ALSO", manName(cmd.Parent())+"(1)")
	}
	return page.String()
}

// roff returns text so that man shows it as it is.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
