"""Which files clang-tidy is run on. ./dev lint runs these tests."""

import datetime
import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

from clang_tidy import Sources, changed_since, find_base, select


class Repository(unittest.TestCase):
    """A repository with a commit of yesterday on main."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        variables = mock.patch.dict(os.environ)
        variables.start()
        self.addCleanup(variables.stop)
        for name in [name for name in os.environ if name.startswith("GIT_")] + ["CUBIND_TIDY_BASE"]:
            os.environ.pop(name, None)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("base/text.hpp", "#pragma once\n")
        self.write("base/text.cpp", '#include "base/text.hpp"\n')
        self.write("base/other.cpp", '#include "other.hpp"\n')
        self.write("base/other.hpp", '#include "schemas/cubind.pb.h"\n')
        self.write("schemas/cubind.proto", "")
        self.write("build/generated/schemas/cubind.pb.h", "")
        self.write(".gitignore", "/build/\n")
        self.old = self.commit(hours=24)

    def git(self, *arguments):
        run = subprocess.run(["git", "-C", self.root, *arguments], check=True, capture_output=True, text=True)
        return run.stdout.strip()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, hours):
        when = (datetime.datetime.now() - datetime.timedelta(hours=hours)).isoformat(timespec="seconds")
        self.git("add", "--all")
        identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        with mock.patch.dict(os.environ, {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}):
            self.git(*identity, "commit", "--quiet", "--allow-empty", "--message=change")
        return self.git("rev-parse", "HEAD")

    def publish(self):
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")

    def reached(self):
        sources = Sources(self.root, self.root / "build")
        changed = changed_since(self.root, find_base(self.root))
        return {path.name for path in self.root.glob("base/*.cpp") if sources.reaches(path, changed)}

    def test_a_branch_is_compared_with_what_it_shares_with_the_published_main(self):
        newer = self.commit(hours=2)
        self.publish()
        self.commit(hours=1)
        self.assertEqual(find_base(self.root), newer)

    def test_the_published_main_is_compared_with_its_newest_commit_older_than_twelve_hours(self):
        self.commit(hours=2)
        self.publish()
        self.assertEqual(find_base(self.root), self.old)

    def test_an_old_commit_that_is_published_late_is_not_its_own_base(self):
        self.commit(hours=13)
        self.publish()
        self.assertEqual(find_base(self.root), self.old)

    def test_the_base_is_on_the_line_of_main_and_no_commit_of_a_merged_branch(self):
        self.git("checkout", "--quiet", "-b", "side")
        self.commit(hours=14)
        self.git("checkout", "--quiet", "main")
        identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        self.git(*identity, "merge", "--quiet", "--no-ff", "--message=merge", "side")
        self.publish()
        self.assertEqual(find_base(self.root), self.old)

    def test_a_tree_inside_a_larger_repository_names_its_own_files(self):
        self.write("outer/base/text.cpp", "// new\n")
        self.commit(hours=1)
        self.assertEqual(changed_since(self.root / "outer", self.old), {"base/text.cpp"})

    def test_names_are_not_quoted(self):
        self.write("base/größe.cpp", "")
        self.assertEqual(changed_since(self.root, self.old), {"base/größe.cpp"})

    def test_all_files_are_checked_where_a_header_is_gone_or_git_does_not_answer(self):
        files = [self.root / "base" / "text.cpp"]
        sources = Sources(self.root, self.root / "build")
        (self.root / "base" / "other.hpp").unlink()
        self.assertEqual(select(self.root, sources, files)[0], files)
        self.assertIsNone(changed_since(self.root, "0" * 40))

    def test_the_environment_names_another_base(self):
        os.environ["CUBIND_TIDY_BASE"] = self.commit(hours=2)
        self.commit(hours=1)
        self.assertEqual(find_base(self.root), os.environ["CUBIND_TIDY_BASE"])

    def test_a_base_that_is_no_commit_is_an_error(self):
        os.environ["CUBIND_TIDY_BASE"] = "nowhere"
        with self.assertRaises(SystemExit):
            find_base(self.root)

    def test_a_shallow_clone_and_a_tree_without_git_have_no_base(self):
        self.commit(hours=1)
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(find_base(pathlib.Path(folder)))
            clone = pathlib.Path(folder) / "clone"
            self.git("clone", "--quiet", "--depth=1", f"file://{self.root}", str(clone))
            self.assertIsNone(find_base(clone))

    def test_a_source_is_reached_by_a_change_of_a_header_and_by_a_new_file(self):
        self.commit(hours=1)
        self.write("base/text.hpp", "#pragma once\n// changed\n")
        self.write("base/new.cpp", "")
        self.assertEqual(self.reached(), {"text.cpp", "new.cpp"})

    def test_a_source_is_reached_by_a_change_of_the_proto_behind_a_generated_header(self):
        self.write("schemas/cubind.proto", "// changed\n")
        self.commit(hours=1)
        self.assertEqual(self.reached(), {"other.cpp"})

    def test_what_itself_has_changed_is_checked_before_what_includes_a_change(self):
        self.commit(hours=1)
        self.write("base/other.hpp", "// changed\n")
        self.write("base/text.cpp", '#include "base/text.hpp"\n// changed\n')
        self.write("build/batches/all.cpp", '#include "base/text.cpp"\n')
        names = ("base/other.cpp", "base/text.cpp", "build/batches/all.cpp")
        sources = Sources(self.root, self.root / "build")
        found, _ = select(self.root, sources, [self.root / name for name in names])
        self.assertEqual([path.name for path in found], ["text.cpp", "all.cpp", "other.cpp"])


if __name__ == "__main__":
    unittest.main()
