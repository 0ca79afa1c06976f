"""``acc_check`` as a host, which judges the calls that trainings send, and the certificates of both sides."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.common import DIVERGENT, DONE, add_command, numbers, print_lines, print_verdict, seconds
from msprobe_ms.cli.parser import mistaken
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.accuracy.checked import Checked
    from msprobe_ms.accuracy.config_file import Section
    from msprobe_ms.accuracy.options import Options
    from msprobe_ms.accuracy.selection import Selection
    from msprobe_ms.remote.addresses import Address

_EPILOG = tr("""\
examples:
  msprobe certificates -o certificates --host checker.example.com --host 10.0.0.7

Copy ca.crt, server.crt and server.key to the machine that judges, ca.crt, client.crt and client.key to those that
train; name the folder as tls_path (--tls). Keys may be read by their owner alone: keep it so.""")


def add_certificates(commands: Any) -> None:
    parser = add_command(
        commands, "certificates", _certificates, tr("make keys and certificates for checks on another machine"),
        _EPILOG,
    )  # fmt: skip
    parser.add_argument("-o", "--output_path", type=Path, metavar="DIR", required=True, help="where they go")
    parser.add_argument(
        "--host", action="append", default=[], metavar="NAME",
        help="name or address of the machine that judges, as trainings reach it; may be repeated",
    )  # fmt: skip
    parser.add_argument("--days", type=_days, metavar="N", default=365, help="how long they hold (default 365)")


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3650:
        raise mistaken(tr("{text}; accepted are 1 to 3650 days", text=repr(text)))
    return int(text)


def _certificates(options: argparse.Namespace) -> int:
    from msprobe_ms.remote.certificates import make_certificates

    print_lines(
        tr("file: {path}", path=path) for path in make_certificates(options.output_path, options.host, options.days)
    )
    return DONE


def add_receiving(group: Any) -> None:
    """Add the options of a host."""
    group.add_argument(
        "--listen", metavar="HOST:PORT|FOLDER",
        help="judge what trainings send there (run --check --to, or online_run_ut in their configuration)",
    )  # fmt: skip
    group.add_argument("--ranks", type=numbers, metavar="N,N-M", help="the ranks to wait for (default 0)")
    add_encryption(group)
    group.add_argument(
        "--disk",
        type=_mebibytes,
        metavar="MIB",
        default=8192,
        help="disk space for calls that wait to be judged (default 8192)",
    )
    group.add_argument(
        "--idle", type=seconds, metavar="S", default=600.0,
        help="give a training up after so many seconds without data from it (default 600)",
    )  # fmt: skip


def add_encryption(group: Any) -> None:
    """Add the options that say how calls are kept secret on their way."""
    group.add_argument("--tls", type=Path, metavar="DIR", help="the folder with certificates (msprobe certificates)")
    group.add_argument(
        "--unencrypted", action="store_true", default=None,
        help="send calls to other machines unencrypted: others can read and change them",
    )  # fmt: skip


def _mebibytes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 24:
        raise mistaken(tr("{text}; accepted is a whole number from 1", text=repr(text)))
    return int(text)


def receive(options: argparse.Namespace, section: Section, wanted: Options, selection: Selection) -> int:
    """Judge what trainings send; returns the exit status."""
    from msprobe_ms.accuracy.checked import Checked as AllChecked
    from msprobe_ms.accuracy.receiving.host import check_received
    from msprobe_ms.accuracy.receiving.settings import MIB, Receiving
    from msprobe_ms.accuracy.summary import summary_lines
    from msprobe_ms.remote.addresses import SERVER

    if given := [
        key for key in ("result_csv_path", "scheduler", "filter_api", "api_info_file") if getattr(options, key)
    ]:
        raise UsageError(
            tr(
                "{command}: --{given}: not where trainings send their calls",
                command=options.command,
                given=", --".join(given),
            )
        )
    output = options.out_path or Path(section.dump_path or ".")
    receiving = Receiving(
        address=_address(options, section).checked(SERVER),
        ranks=tuple(options.ranks or section.rank_list),
        output=output,
        options=replace(wanted, dump=Path(), framework=""),
        selection=selection,
        workers=options.num_splits,
        disk=options.disk * MIB,
        idle=options.idle,
        page=not options.no_html,
    )
    found = check_received(receiving)
    for rank, checked in found.items():
        print_verdict(summary_lines(tr("rank {rank}", rank=rank), checked))
    return check_status(options, AllChecked([result for checked in found.values() for result in checked.results]))


def _address(options: argparse.Namespace, section: Section) -> Address:
    from msprobe_ms.remote.addresses import SERVER, address_of, configured

    if options.listen:
        return address_of(options.listen, options.tls, unencrypted=bool(options.unencrypted))
    return configured(
        nfs_path=section.nfs_path,
        host=section.host,
        port=section.port,
        tls_path=section.tls_path if options.tls is None else str(options.tls),
        unencrypted=bool(options.unencrypted) or section.unencrypted,
        side=SERVER,
    )


def check_status(options: argparse.Namespace, checked: Checked) -> int:
    """Return the exit status of a pre-check, and say why where it is not 0."""
    from msprobe_ms.accuracy.summary import status_reason

    reason = status_reason(checked, strict=options.strict) if options.exit_code else ""
    if reason:
        print_lines([reason])
    return DIVERGENT if reason else DONE
