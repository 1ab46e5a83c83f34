"""The pools of the streaming application."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

from spark_jobs.names import Layer
from spark_jobs.settings import load_settings
from spark_jobs.storage.streams import streaming_conf


def test_within_each_pool_the_oldest_job_goes_first(tmp_path: Path) -> None:
    conf = streaming_conf(load_settings(tmp_path))
    assert conf["spark.scheduler.mode"] == "FAIR"
    file = Path(unquote(urlsplit(conf["spark.scheduler.allocation.file"]).path))
    pools = ET.parse(file).getroot().findall("pool")  # noqa: S314 - our own file
    assert {pool.attrib["name"]: pool.findtext("schedulingMode") for pool in pools} == {
        "default": "FIFO",
        str(Layer.GOLD): "FIFO",
    }
