"""What the packages say: one version everywhere, manual pages and completion that know what the program
knows."""
import os
import re
import subprocess

import pytest

from roots import REPOSITORY

COMPLETION = REPOSITORY / "packaging/completion/slurmlet.bash"
MANUAL = REPOSITORY / "packaging/man/slurmlet.8"
PAGES = [MANUAL, *(REPOSITORY / "packaging/man" / page for page in ("slurmlet.yaml.5", "slurmlet-operator.8"))]


def text(name):
    return (REPOSITORY / name).read_text()


def test_one_version_everywhere():
    version = re.search(r"project\(slurmlet VERSION (\S+)", text("CMakeLists.txt")).group(1)
    spec = text("packaging/rpm/slurmlet.spec")
    release = re.search(r"(?m)^Release: +(\d+)", spec).group(1)
    assert re.search(r"(?m)^Version: +(\S+)", spec).group(1) == version
    newest = re.search(r"%changelog\n\* (\w+ \w+ \d+ \d+) .* - (\S+)\n", spec)
    assert newest.group(2) == f"{version}-{release}"
    first = re.match(r"slurmlet \((\S+)-(\d+)\) ", text("packaging/debian/changelog"))
    assert first.groups() == (version, release)


# -- the program's own help ------------------------------------------------------


def shown(program, *arguments):
    return subprocess.run([str(program), *arguments, "--help"], check=True, capture_output=True,
                          text=True).stdout


def commands(program):
    usage = shown(program).split("Usage:\n", 1)[1].split("\n\n", 1)[0]
    return {line.split()[1] for line in usage.splitlines() if re.match(r"  \S+ [a-z]", line)}


def flags(program, command=None):
    """{long flag: (type, meaning)}"""
    found = {}
    for line in shown(program, *([command] if command else [])).splitlines():
        match = re.match(r" +(?:-\w, )?(--[a-z0-9-]+)(?: (\w+))?   +(.*)", line)
        if match:
            found[match.group(1)] = (match.group(2) or "", match.group(3))
    return found


def own_flags(program, command):
    return flags(program, command).keys() - flags(program).keys()


# -- manual pages ----------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_manual_page_is_without_warnings(page):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
                          capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"})
    assert done.stderr == ""
    assert len(done.stdout) > 2000


def test_manual_has_each_command_and_each_flag_that_is_no_setting(program):
    page = MANUAL.read_text().replace("\\-", "-")
    settings = PAGES[1].read_text().replace("\\-", "-")
    assert {"print-node", "check"} <= commands(program)
    for command in commands(program):
        assert re.search(rf"(?m)^\.TP\n\.B {command}$", page), command
        for flag in own_flags(program, command):
            assert flag in page, (command, flag)
    for flag in flags(program):
        assert f"Flag \\fB{flag}\\fR" in settings or flag in page, flag


# -- completion ------------------------------------------------------------------


def completed(program, *words):
    """What bash offers for the last of the words."""
    script = ('source "$1"; program=$2; shift 2; COMP_WORDS=("${program##*/}" "$@"); COMP_CWORD=$#; '
              '_slurmlet "$program"; ((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", str(COMPLETION), str(program), *words],
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_completion_offers_the_commands(program):
    assert completed(program, "") == commands(program)
    assert "help" in commands(program)
    assert completed(program, "help", "") == commands(program)
    assert completed(program, "wait") == {"wait-registered"}
    assert completed(program, "--log-level", "debug", "print-n") == {"print-node"}


def test_completion_offers_the_flags_of_each_command(program):
    assert completed(program, "--") == set(flags(program))
    for command in commands(program):
        assert completed(program, command, "--") == set(flags(program, command)), command


def test_completion_offers_words_that_the_program_takes(program):
    """Each flag with a choice: all words of the help and no others."""
    choices = 0
    for command in [None, *sorted(commands(program))]:
        for flag, (kind, meaning) in flags(program, command).items():
            offered = completed(program, *([command] if command else []), flag, "") \
                if kind == "string" else set()
            if not offered or offered & set(os.listdir()):
                continue
            choices += 1
            words = set(re.findall(r"[a-z]+", re.sub(r"\([^)]*\)", "", meaning)))
            assert offered <= words, (command, flag, offered)
    assert choices > 4


def test_completion_offers_files_where_files_are_meant(program, tmp_path):
    (tmp_path / "some-file").touch()
    (tmp_path / "some-directory").mkdir()
    both = {f"{tmp_path}/some-file", f"{tmp_path}/some-directory"}
    for flag in ("--config", "--kubeconfig", "--bootstrap-kubeconfig", "--provider-config",
                 "--metadata", "--slurm-conf", *(f for f in flags(program) if f.endswith("-file"))):
        assert flag in flags(program)
        assert completed(program, flag, f"{tmp_path}/") == both, flag
        assert completed(program, flag, "=", f"{tmp_path}/some-f") == {f"{tmp_path}/some-file"}
    for flag in (f for f in flags(program) if f.endswith("-dir")):
        assert completed(program, flag, f"{tmp_path}/") == {f"{tmp_path}/some-directory"}, flag


def test_completion_knows_flags_without_a_value(program):
    assert "--port" in completed(program, "--node-unschedulable", "--po")
    assert completed(program, "--port", "") == set()


def test_completion_knows_the_operator_too(operator, tmp_path):
    help_ = subprocess.run([str(operator), "--help"], check=True, capture_output=True, text=True).stdout
    [words] = re.findall(r"(?m)^usage: slurmlet-operator \[([^\]]+)\] \[flags\]$", help_)
    assert completed(operator, "") == set(words.split(" | "))
    assert "check" in words and completed(operator, "che") == {"check"}
    known = set(re.findall(r"(?m)(?:^ +|, )(--[a-z-]+)(?=[ ,\n])", help_))
    assert {"--kubeconfig", "--dry-run", "--help"} <= known
    assert completed(operator, "--") == completed(operator, "check", "--") == known
    (tmp_path / "some-file").touch()
    assert completed(operator, "--kubeconfig", f"{tmp_path}/") == {f"{tmp_path}/some-file"}
    assert completed(operator, "--slurm-source", "") == {"cli", "rest"}
    assert completed(operator, "--leader-elect", "--int") == {"--interval"}
    for flag, meaning in re.findall(r"(?m)^  (--[a-z-]+) string .*\n((?:      .*\n)+)", help_):
        offered = completed(operator, flag, "") if not flag.endswith(("-file", "-dir", "config", "-conf")) else set()
        assert all(word.rstrip("=").lower() in meaning.lower() for word in offered), (flag, offered)


def test_completion_is_installed_for_both(unpacked):
    for package, directory in unpacked.items():
        assert (directory / "usr/share/bash-completion/completions" / package).read_text() == COMPLETION.read_text()
