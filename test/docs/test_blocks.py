"""Each shell block of a user page is run by a test, or says why it is not."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))
import blocks  # noqa: E402


def test_each_block_is_run_or_says_why_not():
    found = blocks.every()
    assert [block.name for block in found if not block.where and not block.why] == []
    print("\n".join(f"{block.name}: {block.where or 'not run: ' + block.why}" for block in found))
    assert len([block for block in found if block.where]) > 10


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


def test_what_a_comment_says_counts_for_the_next_block_only(tmp_path):
    one, two, three = blocks.of_page(page(tmp_path, """# A
<!-- run: cluster NAME=$NODE exit=1 -->
```
kubectl get node/NAME   # not the NAMESPACE, not NAME-2
```
- item

  <!-- not run: it takes an hour -->
  ```sh
  make
  ```
```
$ kubectl get nodes
NAME
```
```yaml
kubectl: no
```
"""))
    assert (one.where, one.exit_code, one.values) == ("cluster", 1, {"NAME": "$NODE"})
    assert one.script({"$NODE": "n1"}) == "kubectl get node/n1   # not the NAMESPACE, not NAME-2"
    assert (two.where, two.why, two.text) == ("", "it takes an hour", "make")
    assert (three.where, three.why) == ("", "")


def test_a_block_that_begins_with_no_known_command_is_run_where_a_comment_says_so(tmp_path):
    [one] = blocks.of_page(page(tmp_path, "<!-- run: node -->\n```\nID=1\necho $ID\n```\n```\nDebian GNU/Linux\n```\n"))
    assert (one.where, one.text) == ("node", "ID=1\necho $ID")


def test_of_a_block_with_output_the_commands_are_run(tmp_path):
    [one] = blocks.of_page(page(tmp_path, "```console\n$ a \\\n  b\nshown\n$ c\n```\n"))
    assert one.script({}) == "a \\\n  b\nc"
