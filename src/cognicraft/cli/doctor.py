"""`cognicraft doctor`: is everything there that the work needs?"""

from __future__ import annotations

import typer

from cognicraft.cli.options import ConfigFile, Home, Json


def doctor(home: Home = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """Check the installation: packages, model files, home folder, workspaces. Exit code 7 if something is wrong."""
    from cognicraft.cli.output import print_json
    from cognicraft.diagnosis import diagnose

    report = diagnose(home=home, config_file=config_file)
    if as_json:
        print_json(report)
    else:
        print(f"cognicraft {report.version}")
        for check in report.checks:
            print(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}")
            if check.remedy:
                print(f"     {check.remedy}")
    if not report.ok:
        raise typer.Exit(7)
