"""Changes of what is between a model's file and a run: limits, files, the cache, plans, memory and feeds."""

from __future__ import annotations

from mutants.mutation import Mutation

__all__ = ["RUNS"]

RUNS: tuple[Mutation, ...] = (
    # limits
    Mutation(
        "limit-of-tensors-doubled", "config.py", "return min(_MOST_BYTES, min(memory", "return 2 * min(_MOST_BYTES, min(memory"
    ),
    Mutation("limit-of-tensors-all-memory", "config.py", '"/sys/fs/cgroup")) // 2)', '"/sys/fs/cgroup")))'),
    Mutation("limit-of-tensors-on-large-machines", "config.py", "_MOST_BYTES = 64 << 30", "_MOST_BYTES = 128 << 30"),
    Mutation("limit-of-growth-by-folding", "config.py", "fold_growth_bytes: int = 4 << 20", "fold_growth_bytes: int = 4 << 30"),
    Mutation("limit-of-folded-constants", "config.py", "fold_bytes: int = 16 << 20", "fold_bytes: int = 16 << 30"),
    Mutation("limit-of-nesting", "config.py", "function_depth: int = 64", "function_depth: int = 64_000"),
    Mutation(
        "limit-of-sizes-that-programs-give", "runtime/failures.py", "size_bytes(spec) > LIMITS", "size_bytes(spec) > 2 * LIMITS"
    ),
    Mutation("limit-of-scratch-memory", "runtime/failures.py", "0 <= scratch <= LIMITS.tensor_bytes:", "0 <= scratch:"),
    Mutation(
        "limit-of-initializers",
        "formats/onnx_tensor.py",
        "if needed > LIMITS.tensor_bytes:",
        "if needed > 2 * LIMITS.tensor_bytes:",
    ),
    Mutation(
        "limit-of-shapes",
        "providers/reference/algorithms/dimensions.py",
        "if size_bytes > LIMITS.tensor_bytes:",
        "if size_bytes > 2 * LIMITS.tensor_bytes:",
    ),
    # files
    Mutation("data-of-another-size", "formats/onnx_tensor.py", "if size_bytes != needed:", "if size_bytes < needed:"),
    Mutation(
        "external-data-beyond-the-end",
        "formats/external_data.py",
        "if start + expected_bytes > len(data):",
        "if start > len(data):",
    ),
    Mutation("external-data-above-the-folder", "formats/external_data.py", ' or ".." in windows.parts', ""),
    Mutation(
        "external-data-through-a-link",
        "formats/external_data.py",
        "if not any(path.is_relative_to(root) for root in self._allowed(self._folder)):",
        "if False:",
    ),
    Mutation(
        "context-weights-not-compared", "formats/program_copy.py", "begin, pages) == codes[1]", "begin, pages) == codes[1] or True"
    ),
    # the cache
    Mutation("cache-content-not-compared", "disk_cache.py", "!= sha256(rest).digest():", "== b'':"),
    Mutation("cache-key-not-compared", "disk_cache.py", "if rest[:64] == key.encode() else None", "if rest[:64] else None"),
    Mutation(
        "cache-read-from-any-folder",
        "disk_cache.py",
        "if not self._is_private(self._private.problem()):\n                return None",
        "if False:\n                return None",
    ),
    Mutation(
        "cache-cleared-in-any-folder",
        "disk_cache.py",
        "if not self._is_private(folder_problem(self.folder)):\n                return 0, 0",
        "if False:\n                return 0, 0",
    ),
    Mutation(
        "cache-written-to-any-folder",
        "disk_cache.py",
        "if not self._is_private(make_private(self.folder)):",
        "if make_private(self.folder) is None:",
    ),
    Mutation(
        "cache-keeps-damaged-files",
        "disk_cache.py",
        "            self._remove(path)\n            return None",
        "            return None",
    ),
    Mutation("cache-newest-files-go-first", "disk_cache.py", "in sorted(filter(newest.__ne__, files), key", "in sorted(files, key"),
    Mutation("cache-small-files-go-first", "disk_cache.py", "(file[1] < _LARGE_BYTES, file)", "file"),
    Mutation(
        "blocks-are-not-summed", "cached_blocks.py", "if _filled(stream, block) == code", "if _filled(stream, block) is not None"
    ),
    Mutation("known-files-are-never-others", "session/decisions/programs.py", "or stamp_of(status) != stamp", "or False"),
    Mutation("modules-of-any-version", "providers/cpu/kept_plans.py", "and has_changed(_PACKAGE)", "and False"),
    Mutation(
        "kept-results-for-any-size", "providers/cpu/kept_plans.py", "if sizes.symbols == self._symbols and", "if self._symbols and"
    ),
    Mutation("cache-reads-are-not-uses", "disk_cache.py", "            os.utime(path)", "            os.stat(path)"),
    Mutation("cache-deletes-other-files", "disk_cache.py", "if not entry.name.endswith((_SUFFIX, _DRAFT_SUFFIX)):", "if False:"),
    Mutation("cache-counts-only-what-was-there", "disk_cache.py", "self._total_bytes += written_bytes", "self._total_bytes += 0"),
    Mutation(
        "private-folder-of-any-user",
        "private_files.py",
        '    if status.st_uid != os.geteuid():\n        return f"{folder} belongs',
        '    if False:\n        return f"{folder} belongs',
    ),
    Mutation(
        "private-file-of-any-user",
        "private_files.py",
        '    if status.st_uid != os.geteuid():\n        return f"{path} belongs',
        '    if False:\n        return f"{path} belongs',
    ),
    Mutation(
        "private-for-the-group-too", "private_files.py", "_WRITABLE = stat.S_IWGRP | stat.S_IWOTH", "_WRITABLE = stat.S_IWOTH"
    ),
    Mutation("private-below-anybody", "private_files.py", "if status.st_uid not in trusted:", "if False:"),
    Mutation(
        "private-through-links-unseen",
        "private_files.py",
        '        yield f"{place}/{name}", status\n        if not stat.S_ISLNK(status.st_mode):\n            place = f"{place}/{name}"\n            continue',
        '        if not stat.S_ISLNK(status.st_mode):\n            yield f"{place}/{name}", status\n            place = f"{place}/{name}"\n            continue',
    ),
    Mutation("private-secret-read-by-the-group", "private_files.py", "0o077 if secret", "0o007 if secret"),
    Mutation("private-group-with-members", "private_files.py", " and set(group.gr_mem) <= {user.pw_name}", ""),
    Mutation(
        "seal-key-that-others-read",
        "session/context/seal.py",
        "read_private(folder / _FILE, secret=True)",
        "read_private(folder / _FILE)",
    ),
    Mutation("seal-key-of-any-length", "session/context/seal.py", "key if len(key) == _KEY_BYTES else", "key if key else"),
    Mutation("seal-of-anybody", "session/context/seal.py", 'return "" if is_sealed else', 'return "" if notes else'),
    # plans and memory
    Mutation(
        "bind-what-leaves-the-segment",
        "runtime/bind.py",
        "plan.last_use[slot] < segment.stop",
        "plan.last_use[slot] <= segment.stop",
    ),
    Mutation("bind-what-may-be-a-view", "runtime/bind.py", "and is_local(slot) and slot not in may_escape:", "and is_local(slot):"),
    Mutation(
        "bind-table-without-bound",
        "runtime/bind.py",
        "while len(self._table) > self._capacity and self._kept_bytes > _SMALL_BYTES:",
        "while False:",
    ),
    Mutation(
        "bind-latest-of-any-shape", "runtime/bind.py", "if latest is not None and latest[0] == shapes:", "if latest is not None:"
    ),
    Mutation("regions-outputs-in-the-arena", "runtime/bind_regions.py", "return slot not in given_out and not", "return not"),
    Mutation(
        "regions-overlap-by-one-order",
        "runtime/bind_regions.py",
        "return bool(used[left] & ~before[right]) and bool(used[right] & ~before[left])",
        "return False",
    ),
    Mutation("arena-overlap-in-the-last-step", "arena.py", "if entry[2] >= wanted.first]", "if entry[2] > wanted.first]"),
    Mutation("arena-worst-gap", "arena.py", "(best < 0 or gap < best_size)", "(best < 0 or gap > best_size)"),
    Mutation("arena-without-alignment", "arena.py", "return -(-size_bytes // ALIGNMENT) * ALIGNMENT", "return size_bytes"),
    Mutation(
        "plan-outputs-end-with-the-last-step",
        "runtime/plan.py",
        "last.update((slot, len(steps)) for",
        "last.update((slot, len(steps) - 1) for",
    ),
    Mutation("plan-frees-captures", "runtime/plan.py", "kept = {*inputs, *captured, *(", "kept = {*inputs, *("),
    Mutation(
        "plan-one-segment",
        "runtime/plan.py",
        "if index == len(steps) - 1 or (isinstance(step, ProgramStep) and step.program.makes_outputs):",
        "if index == len(steps) - 1:",
    ),
    Mutation("dependencies-direct-only", "runtime/dependencies.py", "mask |= found[other] | 1 << other", "mask |= 1 << other"),
    Mutation(
        "dependencies-ranks-from-the-start",
        "runtime/dependencies.py",
        "for index in reversed(range(len(followers))):",
        "for index in range(len(followers)):",
    ),
    Mutation(
        "dependencies-regions-of-direct-makers",
        "runtime/dependencies.py",
        "groups.setdefault(ancestors[index] & makers, [])",
        "groups.setdefault(0, [])",
    ),
    Mutation("memory-largest-buffer-first", "runtime/memory.py", "chosen = min(fitting,", "chosen = max(fitting,"),
    Mutation(
        "memory-largest-buffer-dropped",
        "runtime/memory.py",
        "key=lambda item: item[0])\n            self._held",
        "key=lambda item: -item[0])\n            self._held",
    ),
    Mutation(
        "memory-half-bytes",
        "runtime/memory.py",
        "max(8, bit_width(spec.dtype))",
        "bit_width(spec.dtype)",
        ("runtime/test_bind.py",),
    ),
    # feeds
    Mutation(
        "feed-of-any-shape",
        "session/feeds.py",
        "    return kind.allows(array.shape)",
        "    return True",
    ),
    Mutation("feed-of-any-rank", "session/feeds.py", "if len(shape) != array.ndim:", "if len(shape) > array.ndim:"),
    Mutation(
        "feed-of-numbers-that-do-not-fit", "session/feeds.py", "bool((np.real(cast).astype(array.dtype) == array).all())", "True"
    ),
    Mutation("feed-in-foreign-byte-order", "session/feeds.py", "if not array.dtype.isnative:", "if False:"),
    Mutation(
        "feed-symbols-of-one-input",
        "session/feeds.py",
        "for (first, axis), *others in self._groups:",
        "for (first, axis), *others in self._groups[:1]:",
    ),
    Mutation(
        "result-that-is-fed",
        "session/feeds.py",
        "    taken = {id(_root(value)) for value in fed if isinstance(value, np.ndarray)}",
        "    taken: set[int] = set()",
    ),
    Mutation("result-that-is-read-only", "session/feeds.py", " or not value.flags.writeable\n", "\n"),
    Mutation("result-given-twice", "session/feeds.py", "        taken.add(id(root))\n", ""),
)
"""The changes."""
