"""Validates what `capstan lint --format json` prints against docs/diagnostics.schema.json.

usage: validate_diagnostics.py CAPSTAN SCHEMA; exit code 77 (skipped) without the jsonschema module.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("the module jsonschema is not installed")
    sys.exit(77)

CONFIGS = {
    "clean": '[target]\nstack = "bridge-0.4"\n[model]\nnum_layers = 4\n',
    "syntax": "[model\n",
    "types": '[target]\nstack = "bridge-0.4"\n[model]\nnum_layers = "x"\nnum_layer = 1\nparams_dtype = "bf17"\n[modle]\na = 1\n'
             '[tokenizer]\n"größe" = "\\u0001"\n',
    "target": '[target]\nstack = "bridge-9"\n',
    "rules": '[target]\nstack = "bridge-0.4"\ngpu = "h100"\n[model]\ncuda_graph_impl = "local"\ncuda_graph_scope = ["full_iteration", '
             '"attn"]\nrecompute_granularity = "full"\n[env]\nPYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True"\n',
}


def main() -> int:
    capstan, schema_path = sys.argv[1:]
    schema = json.loads(pathlib.Path(schema_path).read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    checker = validator(schema)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, text in CONFIGS.items():
            path = pathlib.Path(folder) / f"{name}.toml"
            path.write_text(text)
            files.append(str(path))
        for arguments in [[file] for file in files] + [files, [files[0], folder + "/missing.toml"]]:
            run = subprocess.run([capstan, "lint", "--format", "json", "--no-project", *arguments], capture_output=True, text=True)
            if run.returncode not in (0, 1, 3):
                print(f"exit {run.returncode} for {arguments}: {run.stderr}")
                return 1
            report = json.loads(run.stdout)
            for error in checker.iter_errors(report):
                print(f"{arguments}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
                return 1
            if run.returncode == 1 and not report["diagnostics"]:
                print(f"{arguments}: exit code 1 without a diagnostic")
                return 1
        # The schema must be able to refuse.
        report["version"] = "one"
        if checker.is_valid(report):
            print("the schema takes a report without a version number")
            return 1
    return 0


sys.exit(main())
