"""`cognicraft config`: the settings in force."""

from __future__ import annotations

import typer

from cognicraft.cli.options import ConfigFile, Home, Json, WorkspaceName

app = typer.Typer(help="The settings in force.", no_args_is_help=True)


@app.command("show")
def show_settings(
    workspace: WorkspaceName = None, home: Home = None, config_file: ConfigFile = None, as_json: Json = False
) -> None:
    """Show every setting, its value and where it comes from."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json, table

    rows = open_workspace(workspace, home, config_file).resolved.rows()
    if as_json:
        print_json({key: {"value": value, "origin": origin} for key, value, origin in rows})
    else:
        table(["setting", "value", "from"], rows)


@app.command("path")
def show_path(home: Home = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """Show which settings file is read, and where workspaces are kept."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json

    opened = open_workspace(None, home, config_file)
    file = opened.resolved.file
    if as_json:
        print_json({"settings_file": str(file) if file else None, "home": str(opened.settings.home_folder)})
        return
    print(f"settings file: {file if file else 'none (./cognicraft.toml and HOME/cognicraft.toml are looked for)'}")
    print(f"home: {opened.settings.home_folder}")
